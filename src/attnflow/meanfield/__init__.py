"""The limit of many tokens: the flow of their density, solved and not sampled."""

from attnflow.meanfield.volumes import continuity_rate, limited_slopes, positive_step

__all__ = ["continuity_rate", "limited_slopes", "positive_step"]
