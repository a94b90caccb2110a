"""[S]: the flow with a trained head's (Q, K, V), from random tokens and from a real sentence."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, by_size
from attnflow.figures.scipy_solution import COARSE_TOL, Head, compare_with_scipy, sphere
from attnflow.figures.trained import SENTENCE, trained_model
from attnflow.models import HeadSpectrum, Model, ModelError, head_matrices, head_spectrum, idealised
from attnflow.plot.matrices import draw_spectrum
from attnflow.plot.style import FAINT, PALETTE, colours
from attnflow.plot.tokens import TokenView
from attnflow.simulation import Fixed, simulate
from attnflow.systems import SA
from attnflow.theory.checks.probability import leads_positive
from attnflow.verdicts import Quantity

HUB = "albert-xlarge-v2"
PAPER_HEAD = 5
TIMES = np.linspace(0.0, 9.0, 31)
"""In units of 1/|λ₁| of the matrix ΣV_h of the heads that act."""

OVERLAP = 0.9
CLUSTER_DISTANCE = float(np.sqrt(2 - 2 * OVERLAP))
"""The distance of tokens with this overlap; chains of closer ones are clusters."""

COUNT_LABEL = f"clusters (overlap > {OVERLAP:g}, linked)"


class Ran(NamedTuple):
    """Tokens along a flow, how many clusters they are in, and in which one each ends."""

    xs: Float[np.ndarray, "T n d"]
    clusters: Int[np.ndarray, " T"]
    labels: Int[np.ndarray, " n"]
    solves: Quantity


def _make(size: Size) -> Picture:
    model, name = trained_model(HUB, size)
    layer, head, own = chosen_head(model)
    flows = _flows(model, layer, head, own.radius, by_size(size, 0.3, 0.05))
    n, d = flows["a sentence"].xs.shape[1:]
    figure = _drawn(flows, own.eigenvalues, own.good, head)
    where = "all layers alike" if model.shared else f"layer {layer + 1}"
    figure.suptitle(f"{name}, {where}: {n} tokens in $d = {d}$")
    numbers: dict[str, Any] = {"model": name, "layer, from 0": layer, "head, from 0": head}
    numbers |= {"good triple": own.good, "why": own.why, "tokens": n, "t": TIMES}
    numbers |= {f"clusters, {start}": flow.clusters for start, flow in flows.items()}
    leading = complex(own.eigenvalues[0])
    seen = [
        Quantity("|arg| of the leading eigenvalue of V", abs(np.angle(leading)), "≤", 1e-9),
        Quantity("<Qφ₁, Kφ₁> > 0 and λ₁ simple: a good triple", float(own.good is True), "≥", 1),
    ]
    for start, flow in flows.items():
        seen.append(Quantity(f"{start}: clusters at the start / n", flow.clusters[0] / n, "≥", 0.5))
        seen.append(Quantity(f"{start}: clusters at the end", int(flow.clusters[-1]), "≤", 3))
        seen.append(flow.solves)
    return Picture(figure, numbers, tuple(seen))


def chosen_head(model: Model) -> tuple[int, int, HeadSpectrum]:
    """Layer and number of the slides' head, or of the good triple with the largest radius.

    Leading eigenvalues say which heads come into question, so that few are looked at closely.
    """
    if model.shared:
        return 0, PAPER_HEAD, head_spectrum(*(W[PAPER_HEAD] for W in head_matrices(model, 0)))
    radii = {}
    for layer in range(model.layers):
        _, _, V, O = head_matrices(model, layer)
        values = np.linalg.eigvals(V @ O)
        for h in np.flatnonzero(leads_positive(values)):
            radii[layer, int(h)] = np.abs(values[h]).max()
    for layer, head in sorted(radii, key=lambda at: -radii[at]):
        found = head_spectrum(*(W[head] for W in head_matrices(model, layer)))
        if found.good:
            return layer, head, found
    raise ModelError(f"{model.name} has no head that is a good triple.")


def _flows(model: Model, layer: int, head: int, alone: float, step: float) -> dict[str, Ran]:
    """The head alone from random tokens and from a sentence, and all heads of its layer."""
    words = model.states(SENTENCE)[layer]
    size = jnp.sqrt(jnp.mean(jnp.sum(jnp.square(words), axis=-1)))
    random = size * jnp.asarray(initial.sphere(*words.shape, key=0), words.dtype)
    Q, K, V, O = head_matrices(model, layer)
    together = float(np.abs(np.linalg.eigvals(np.einsum("hdk,hke->de", O, V))).max())
    given: dict[str, Any] = {
        "random tokens": (random, [head], alone),
        "a sentence": (words, [head], alone),
        "a sentence, all heads": (words, None, together),
    }
    return {
        start: _run(
            idealised(model, layer, x, heads),
            x,
            radius,
            step,
            [Head(Q[h], K[h], O[h] @ V[h] / radius) for h in heads or range(len(Q))],
        )
        for start, (x, heads, radius) in given.items()
    }


def _run(system: SA, x: Float[Array, "n d"], radius: float, step: float, heads: list[Head]) -> Ran:
    """The flow in units of time in which |λ₁| is 1."""
    paced = eqx.tree_at(lambda s: s.heads.V, system, system.heads.V / radius)
    xs = np.asarray(_paced(paced, initial.normalise(x), step), float)
    counts = observe.cluster_history((TIMES, xs), CLUSTER_DISTANCE).counts
    solves = _solves(xs, np.asarray(x, float), heads)
    return Ran(xs, counts, observe.clusters(xs[-1], CLUSTER_DISTANCE).labels, solves)


def _solves(
    xs: Float[np.ndarray, "T n d"], x: Float[np.ndarray, "n d"], heads: list[Head]
) -> Quantity:
    """Whether directions go as [P](2.3) says, with scores of tokens of the mean length."""
    beta = float(np.mean(np.sum(x**2, axis=1)) / np.sqrt(len(heads[0].Q)))
    field = sphere(*heads, beta=beta)
    return compare_with_scipy("[P](2.3)", field, TIMES, xs, until=3.0, most=2, bound=COARSE_TOL)


@eqx.filter_jit
def _paced(system: SA, x: Float[Array, "n d"], step: float) -> Float[Array, "T n d"]:
    return simulate(system, x, TIMES, method=Fixed(step)).xs


def _drawn(flows: dict[str, Ran], eigenvalues: np.ndarray, good: bool | None, head: int) -> Figure:
    figure = Figure(figsize=(9.6, 6.2), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(1.25, 1))
    for column, (start, flow) in enumerate(flows.items()):
        ax = figure.add_subplot(grid[0, column])
        _draw_flow(ax, flow)
        ax.set_title(start if "all" in start else f"{start}, head {head}")
    spectrum = figure.add_subplot(grid[1, 0])
    draw_spectrum(spectrum, eigenvalues, good=good)
    spectrum.set(title=f"eigenvalues of $V$, head {head}", xlabel="Re", ylabel="Im")
    counts = figure.add_subplot(grid[1, 1:])
    for (start, flow), colour in zip(flows.items(), PALETTE, strict=False):
        counts.step(TIMES, flow.clusters, where="post", color=colour, label=start)
    counts.set(xlabel=r"time, in units of $1/\lambda_1$", ylabel=COUNT_LABEL, ylim=(0, None))
    counts.set_xlim(0, TIMES[-1])
    counts.legend(loc="upper right")
    return figure


def _draw_flow(ax: Axes, flow: Ran) -> None:
    """Paths of the tokens through PCA, from grey dots to where they end."""
    view = TokenView(flow.xs, False)
    view.prepare(ax)
    paths = np.array([view.project(x)[0] for x in flow.xs])
    for token, colour in enumerate(colours(flow.labels)):
        ax.plot(*paths[:, token].T, color=colour, lw=0.8, alpha=0.4, zorder=1)
        ax.plot(*paths[-1, token], "o", color=colour, ms=8, mec="white", mew=0.6, zorder=3)
    ax.plot(*paths[0].T, ".", color=FAINT, ms=6, zorder=2)


RECIPE = Recipe(
    "S-albert",
    "[S] trained weights",
    "Attention on the sphere with the weights of one trained head that is a good triple (head 5 "
    "of albert-xlarge-v2, or one of MiniLM), from random tokens and from a sentence, and with all "
    "heads of its layer. Tokens are seen through PCA and gather in few clusters, which are chains "
    f"of overlaps above {OVERLAP:g}. No theorem says so for such weights on the sphere: that there "
    "be at most three is a bound that was chosen.",
    _make,
    model=True,
)
