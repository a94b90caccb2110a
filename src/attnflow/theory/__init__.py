"""What the numbers should be: closed forms, constants, and the classification of weights."""

from attnflow.theory.gamma import gamma, gap, transition_time

__all__ = ["gamma", "gap", "transition_time"]
