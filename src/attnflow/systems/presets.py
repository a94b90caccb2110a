"""What a system says of itself to specs and to the page: what may be drawn, and a run to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from attnflow.weights.families import FAMILIES


class Drawn(NamedTuple):
    """An argument that a spec may draw, as in `V = { family = "ginibre" }`.

    Attributes:
        families: the functions that draw it, by name.
        size: what they need to know: the dimension d, or the number n of tokens.
        numbers: whether a plain number is such a value; else it is passed on as it is.
    """

    families: Mapping[str, Callable[..., Any]]
    size: Literal["n", "d"]
    numbers: bool = True


MATRIX = Drawn(FAMILIES, "d")
"""A weight for tokens in R^d; a number is that times the identity."""

BLOCK_WEIGHT = Drawn(FAMILIES, "d", numbers=False)
"""Another weight of a block, of which a plain number may mean something else."""


class Preset(NamedTuple):
    """A run worth looking at, and the number that one turns.

    Attributes:
        number: the argument that one turns (β, K, a radius); None where there is none.
        value: its value.
        start: the name of the start.
        until: the time at which the run ends.
        d: the dimension of the tokens.
        side: the side of the cube, for the start "cube".
        extra: the other arguments, as a spec writes them, or a function of d that gives them.
        of_rows: the width of a state whose rows are not tokens in R^d alone (angles, or places with
            velocities).
        method: "adaptive", "fixed", "layers" or "coarsening".
        n: the number of tokens.
    """

    number: str | None
    value: float
    start: str
    until: float
    d: int = 2
    side: float = 10.0
    extra: Callable[[int], dict[str, Any]] | Mapping[str, Any] = MappingProxyType({})
    of_rows: int | None = None
    method: str = "adaptive"
    n: int = 200

    def arguments(self, d: int) -> dict[str, Any]:
        """The other arguments for tokens in R^d."""
        return dict(self.extra(d) if callable(self.extra) else self.extra)


def diagonal(d: int) -> dict[str, Any]:
    """A diagonal D that falls from 1.2 to 0.8.

    >>> diagonal(3)
    {'D': [1.2, 1.0, 0.8]}
    """
    return {"D": [round(1.2 - 0.4 * k / max(1, d - 1), 12) for k in range(d)]}


def random_feed_forward(d: int) -> dict[str, Any]:
    """A feed-forward layer of width 4d with random weights.

    >>> sorted(random_feed_forward(2))
    ['a', 'b', 'w']
    """
    return {
        "w": {"family": "ginibre", "rows": d, "d": 4 * d, "scale": 0.3 / (2 * d)},
        "a": {"family": "ginibre", "rows": 4 * d},
        "b": {"family": "bias", "d": 4 * d, "scale": 0.5},
    }
