"""[P] Fig. 5: phase diagrams with random Q, K and V."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from attnflow.figures.perspective.swept import BETAS, SPEC, TIMES, crossing, swept
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.plot.phase import phase_diagram
from attnflow.theory.checks.base import Quantity


def ensembles(d: int) -> dict[str, dict[str, Any]]:
    """The four ensembles in dimension d, scaled as the authors did.

    `QᵀK = G G'/√d` or `(G + Gᵀ)/√2`; V has a spectrum of order 1, but for the positive one, which
    is `G Gᵀ/√d`.
    """
    ginibre = {"family": "ginibre", "scale": round(d**-0.25, 8)}
    narrow, narrower = round(1 / math.sqrt(d), 8), round(1 / math.sqrt(d + 1), 8)
    return {
        "$Q$, $K$, $V$ Ginibre": {
            "system.Q": ginibre,
            "system.K": ginibre,
            "system.V": {"family": "ginibre", "scale": narrow},
        },
        r"$Q^\top K$ Wigner, $V \succ 0$": {
            "system.K": {"family": "goe"},
            "system.V": {"family": "wishart", "scale": narrow},
        },
        r"$Q$, $K$ Ginibre, $V = Q^\top K$": {
            "system.Q": ginibre,
            "system.K": ginibre,
            "system.V": {"family": "scores", "scale": narrow},
        },
        r"$Q^\top K$ Wigner, $V = Q^\top K$": {
            "system.K": {"family": "goe"},
            "system.V": {"family": "scores", "scale": narrower},
        },
    }


def spec(size: Size) -> dict[str, Any]:
    """The sweep: n = 32, d = 128 in the paper; quickly n = 16, d = 32.

    Both are made of the authors' layers with Δt = 0.1, not of the flow: `V = G Gᵀ/√d` has a norm
    of about 4√d, which such layers do not resolve, and the picture is one of them.
    """
    n, d = sized(size, (16, 32), (32, 128))
    return SPEC | {
        "title": f"Random matrices, n = {n}, d = {d}",
        "realisations": sized(size, 24, 512),
        "method": {"name": "Layers", "dt": 0.1},
        "start": {"name": "sphere", "n": n, "d": d},
        "times": TIMES | {"count": sized(size, 61, 301)},
        "axes": {
            "beta": BETAS | {"count": sized(size, 10, 90)},
            "ensemble": {"cases": ensembles(d)},
        },
    }


def _make(size: Size) -> Picture:
    data = swept(spec(size))
    data["together"].attrs["long_name"] = r"$P(\langle x_1, x_2\rangle \geq 1 - \delta)$"
    data = data.assign_coords(
        ensemble=[
            # mathtext sets a transposed matrix too far from what follows it
            f"({letter}) {name}".replace(r"^\top ", r"^{\!\!\top}\!")
            for letter, name in zip("abcd", data["ensemble"].values, strict=True)
        ]
    )
    figure = phase_diagram(data, "together")
    times, found = data["time"].values, data["together"].transpose("ensemble", "beta", "time")
    numbers: dict[str, Any] = {"β": data["beta"].values, "t": times}
    numbers["realisations"] = spec(size)["realisations"]
    seen: list[Quantity] = []
    for name, together in zip(data["ensemble"].values, found.values, strict=True):
        numbers[str(name)] = {
            "half time": crossing(times, together),
            "time that part of the pairs are together": time_in_part(times, together),
            "together at the end": together[:, -1],
        }
        seen += _seen(str(name)[:3], times, together)
    return Picture(figure, numbers, tuple(seen))


def time_in_part(
    times: Float[np.ndarray, " T"], together: Float[np.ndarray, "B T"]
) -> Float[np.ndarray, " B"]:
    """How long between 10% and 95% of the pairs are together, for each β; one save at least.

    >>> time_in_part(np.arange(4.0), np.array([[0.0, 1.0, 1.0, 1.0], [0.0, 0.5, 0.5, 0.5]]))
    array([1., 3.])
    """
    part = ((together >= 0.1) & (together <= 0.95)).sum(axis=1)
    return np.asarray(np.maximum(part, 1) * (times[1] - times[0]))


def _seen(
    letter: str, times: Float[np.ndarray, " T"], together: Float[np.ndarray, "B T"]
) -> list[Quantity]:
    """A sharp transition at the least β, and at some other a zone where only part have met."""
    tenth, half, most = (float(crossing(times, together[:1], p)[0]) for p in (0.1, 0.5, 0.9))
    # without a transition the difference of two infinite times would be no number
    width = (most - tenth) / half if np.isfinite(most) else np.inf
    part = time_in_part(times, together)
    longest = part.max() / part[0]
    return [
        Quantity(f"{letter} width of the transition / its time, least β", width, "≤", 1.0),
        Quantity(f"{letter} pairs together at the end, least β", together[0, -1], "≥", 0.95),
        Quantity(f"{letter} longest time of part together / at least β", longest, "≥", 3.0),
    ]


RECIPE = Recipe(
    "P-fig5",
    "[P] Fig. 5",
    "The phase diagram of Fig. 3 with random matrices, drawn anew in every realisation (n = 32, "
    "d = 128 in the paper): at small β all tokens meet in a sharp transition, and above there are "
    "zones where only part of the pairs are together for a long time. It is made of the authors' "
    "layers with Δt = 0.1, not of the flow, which in (b) such layers do not resolve: V has a norm "
    "of about 4√d there.",
    _make,
)
