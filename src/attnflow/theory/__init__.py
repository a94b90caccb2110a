"""What the numbers should be: closed forms, constants, and the classification of weights."""

from attnflow.theory.gamma import gamma, gap, transition_time
from attnflow.theory.wendel import in_hemisphere, wendel

__all__ = ["gamma", "gap", "in_hemisphere", "transition_time", "wendel"]
