"""[P] Fig. 5: phase diagrams with random Q, K and V."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from attnflow.figures.perspective.sweeps import BETAS, DELTA, SPEC, TIMES, crossing, run_sweep
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import DEFAULT_TOL, Head, weights
from attnflow.plot.phase import phase_diagram
from attnflow.simulation import Layers, simulate
from attnflow.systems import SA
from attnflow.verdicts import Quantity

STEP, REALISATIONS, COMPARED_BETAS = 0.1, 24, 2
"""Δt of the layers; realisations that are run anew in plain NumPy, and at how many β."""

LAYER_BETA, COMPARED_LAYERS = 2.0, 8
"""The β at which so many layers are compared one by one."""


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
    n, d = by_size(size, (16, 32), (32, 128))
    return SPEC | {
        "title": f"Random matrices, n = {n}, d = {d}",
        "realisations": by_size(size, 24, 512),
        "method": {"name": "Layers", "dt": STEP},
        "start": {"name": "sphere", "n": n, "d": d},
        "times": TIMES | {"count": by_size(size, 61, 301)},
        "axes": {
            "beta": BETAS | {"count": by_size(size, 10, 90)},
            "ensemble": {"cases": ensembles(d)},
        },
    }


def _make(size: Size) -> Picture:
    data = run_sweep(spec(size))
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
    seen += _same_layers(size, data["beta"].values, times, found.values)
    return Picture(figure, numbers, tuple(seen))


def plain_weights(letter: str, d: int, rng: np.random.Generator) -> Head:
    """The matrices of one realisation of an ensemble, in plain NumPy."""
    G = rng.normal(size=(3, REALISATIONS, d, d))
    wigner = (G[0] + np.swapaxes(G[0], -1, -2)) / np.sqrt(2)
    if letter == "a":
        return Head(G[0] * d**-0.25, G[1] * d**-0.25, G[2] / np.sqrt(d))
    if letter == "b":
        return Head(None, wigner, G[1] @ np.swapaxes(G[1], -1, -2) / np.sqrt(d))
    if letter == "c":
        scores = np.swapaxes(G[0], -1, -2) @ G[1] / np.sqrt(d)
        return Head(G[0] * d**-0.25, G[1] * d**-0.25, scores / np.sqrt(d))
    return Head(None, wigner, wigner / np.sqrt(d + 1))


def plain_layers(
    letter: str, n: int, d: int, beta: float, times: Float[np.ndarray, " T"]
) -> Float[np.ndarray, "R T"]:
    """Which part of the pairs are together along the authors' layers, from other draws."""
    head, x = plain_draw(letter, n, d)
    pairs = np.triu_indices(n, 1)
    saved = np.round(times / STEP).astype(int)
    found = []
    for k in range(saved[-1] + 1):
        if k in saved:
            overlaps = (x @ np.swapaxes(x, -1, -2))[:, *pairs]
            found.append((overlaps >= 1 - DELTA).mean(axis=-1))
        x = plain_layer(x, head, beta)
    return np.stack(found, axis=1)


def plain_draw(letter: str, n: int, d: int) -> tuple[Head, Float[np.ndarray, "R n d"]]:
    """The weights and starts of realisations that are run in plain NumPy."""
    rng = np.random.default_rng([ord(letter), n, d])
    head, x = plain_weights(letter, d, rng), rng.normal(size=(REALISATIONS, n, d))
    return head, x / np.linalg.norm(x, axis=-1, keepdims=True)


def plain_layer(
    x: Float[np.ndarray, "*b n d"], head: Head, beta: float
) -> Float[np.ndarray, "*b n d"]:
    """Layers on the sphere: the residual step, then each token divided by its length."""
    y = x + STEP * weights(x, head, beta) @ x @ np.swapaxes(head.V, -1, -2)
    return y / np.linalg.norm(y, axis=-1, keepdims=True)


def off_layers(letter: str, n: int, d: int, beta: float) -> float:
    """How far a layer of SA is from the plain one, over the way, for the first realisation."""
    head, starts = plain_draw(letter, n, d)
    Q, K, V = (None if W is None else W[0] for W in head)
    x, run = starts[0], SA(beta, Q=Q, K=K, V=V)
    ts = STEP * np.arange(COMPARED_LAYERS + 1)
    xs = np.asarray(simulate(run, x, ts, method=Layers(STEP)).xs)
    plain = np.array([plain_layer(x, Head(Q, K, V), beta) for x in xs[:-1]])
    way = np.linalg.norm(plain - xs[:-1], axis=-1).max()
    return float(np.linalg.norm(plain - xs[1:], axis=-1).max() / way)


def _same_layers(
    size: Size,
    betas: Float[np.ndarray, " B"],
    times: Float[np.ndarray, " T"],
    found: Float[np.ndarray, "E B T"],
) -> list[Quantity]:
    """The mean over time of the part together, beside that of other draws in plain NumPy."""
    n, d = by_size(size, (16, 32), (32, 128))
    realisations = spec(size)["realisations"]
    seen = []
    for letter, together in zip("abcd", found, strict=True):
        off = []
        for k in np.linspace(0, len(betas) - 1, COMPARED_BETAS).round().astype(int):
            plain = plain_layers(letter, n, d, float(betas[k]), times).mean(axis=1)
            error = plain.std(ddof=1) * np.sqrt(1 / REALISATIONS + 1 / realisations)
            off.append(abs(together[k].mean() - plain.mean()) / error)
        name = f"({letter}) part together off that of plain layers, in standard errors"
        seen.append(Quantity(name, max(off), "≤", 4.0))
        name = f"({letter}) off a plain layer, over the way"
        seen.append(Quantity(name, off_layers(letter, n, d, LAYER_BETA), "≤", DEFAULT_TOL))
    return seen


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
