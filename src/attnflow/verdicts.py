"""A number beside its bound, for checks of theorems, figures and benchmarks alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat

from attnflow.records import plain

Verdict = Literal["holds", "fails", "unresolved"]
Part = Literal["theorem", "equation"]


@dataclass(frozen=True)
class Quantity:
    """A number that was measured beside its bound: that of a theorem, a figure or a target.

    Args:
        name: what was measured.
        value: the number.
        sense: "≤" or "≥", the side of the bound on which it should be.
        bound: the bound.
        part: what it is evidence of: that the theorem holds, or that the run solves its equation.
        vacuous: whether nothing that can be run comes near the bound: it holds, and shows nothing.

    >>> Quantity("diameter", 1e-9, "≤", 1e-6).holds
    True
    """

    name: str
    value: SupportsFloat
    sense: Literal["≤", "≥"]
    bound: SupportsFloat
    part: Part = "theorem"
    vacuous: bool = False

    def __post_init__(self) -> None:
        """Plain numbers, whatever array they came from."""
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "bound", float(self.bound))

    @property
    def margin(self) -> float:
        """How far the value is on the right side of its bound; negative if it is not."""
        value, bound = float(self.value), float(self.bound)
        return bound - value if self.sense == "≤" else value - bound

    @property
    def holds(self) -> bool:
        """Whether the value is within its bound. NaN is not."""
        return self.margin >= 0

    @property
    def slack(self) -> float:
        """The margin in units of the bound, to compare quantities of different size."""
        return self.margin / abs(float(self.bound)) if self.bound else self.margin

    def to_json(self) -> dict[str, Any]:
        """The numbers, and whether it holds."""
        return plain(
            {
                "name": self.name,
                "sense": self.sense,
                "measured": self.value,
                "bound": self.bound,
                "margin": self.margin,
                "holds": self.holds,
                "part": self.part,
                "vacuous": self.vacuous,
            }
        )


def described(about: Mapping[str, Any]) -> str:
    """What was drawn, in one line.

    >>> described({"n": 8, "β": 4.0})
    'n = 8, β = 4'
    """
    short = {k: f"{v:.4g}" if isinstance(v, float) else str(v) for k, v in about.items()}
    return ", ".join(f"{k} = {v}" for k, v in short.items())
