"""[S]: the flow with a trained head's (Q, K, V), from random tokens and from a real sentence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow import initial, observe
from attnflow.figures.recipe import Picture, Recipe, Size, sized
from attnflow.figures.texts import SENTENCE
from attnflow.figures.trained import trained_model
from attnflow.models import Model
from attnflow.plot.style import PALETTE
from attnflow.plot.tokens import Stage
from attnflow.simulate import Fixed, simulate
from attnflow.systems import PureAttention
from attnflow.theory.checks.base import Quantity

HUB = "albert-xlarge-v2"
PAPER_HEAD = 5
LENGTH, SAVES = 16.0, 17
"""The run takes so many times 1/λ₁, with so many saves."""


class Head(NamedTuple):
    """A trained head, its leading eigenvalue and the functional φ₁* that belongs to it."""

    layer: int
    number: int
    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    leading: float
    dual: Float[np.ndarray, " d"]
    alignment: float
    gap: float

    @property
    def good(self) -> bool:
        """Whether (Q, K, V) is a good triple, the hypothesis of T4.1."""
        return self.leading > 0 and self.gap > 0 and self.alignment > 0


def _make(size: Size) -> Picture:
    model, name = trained_model(HUB, size, "float64")
    heads = trained_heads(model)
    head = _chosen(heads, model)
    words = np.asarray(model.embed(SENTENCE))
    size_of = float(np.linalg.norm(words, axis=1).mean())
    random = size_of * np.asarray(initial.sphere(*words.shape, seed=0))
    beta = float(model.system.beta)
    one = PureAttention(head.Q, head.K, head.V, beta=beta)
    same = [h for h in heads if h.layer == head.layer]
    stacks = (np.stack([getattr(h, letter) for h in same]) for letter in "QKV")
    all_heads = PureAttention(*stacks, beta=beta)
    ts = np.linspace(0.0, LENGTH / head.leading, SAVES)
    step = Fixed(ts[1] / sized(size, 8, 16))
    runs = {
        "random tokens": np.asarray(simulate(one, random, ts, method=step).xs),
        "a sentence": np.asarray(simulate(one, words, ts, method=step).xs),
    }
    # With all heads tokens grow faster, so that less time shows the same.
    short = ts / 4
    together = np.asarray(simulate(all_heads, words, short, method=Fixed(step.dt / 4)).xs)
    figure = Figure(figsize=(10.4, 5.6), layout="constrained")
    axes = figure.subplots(2, 3)
    numbers: dict[str, Any] = {"model": name, "layer": head.layer, "head": head.number}
    numbers |= {"leading eigenvalue": head.leading, "<Qφ₁, Kφ₁>": head.alignment}
    numbers["good triples"] = [[h.layer, h.number] for h in heads if h.good]
    seen = []
    for column, (start, xs) in enumerate(runs.items()):
        shrunk = xs * np.exp(-head.leading * ts)[:, None, None]
        along = shrunk @ head.dual
        along = along / np.abs(along[0]).max()
        values = observe.clusters(along[-1][:, None], 0.02).count
        _draw_pca(axes[0, column], shrunk)
        axes[0, column].set_title(f"head {head.number} of layer {head.layer}, {start}")
        _draw_coordinate(axes[1, column], ts, along)
        numbers[f"{start}: φ₁* at the end"] = along[-1]
        seen.append(Quantity(f"{start}: values that φ₁* takes at the end", values, "≤", 3))
    _draw_pca(axes[0, 2], together / np.linalg.norm(together, axis=-1).max(axis=-1)[:, None, None])
    axes[0, 2].set_title("all heads of the layer, a sentence")
    spread = _spread(together)
    axes[1, 2].plot(short, spread, color=PALETTE[0])
    axes[1, 2].set(
        xlabel="time $t$",
        ylabel=r"mean of $\cos(x_i, x_j)$",
        xlim=(0, short[-1]),
        ylim=(None, 1.02),
    )
    numbers["all heads: mean cosine of pairs"] = spread
    seen.append(
        Quantity("all heads: gain of the mean cosine of pairs", spread[-1] - spread[0], "≥", 0.2)
    )
    figure.suptitle(f"{name}, {len(words)} tokens, $d = {words.shape[1]}$")
    return Picture(figure, numbers, tuple(seen))


def trained_heads(model: Model) -> list[Head]:
    """All heads of a model, without their biases."""
    found = []
    for layer in range(1 if model.shared else model.layers):
        now = model.system.heads.at(float(layer), float)
        for number, (Q, K, V, O) in enumerate(zip(now.Q, now.K, now.V, now.O, strict=True)):
            found.append(_head(layer, number, *(np.asarray(W) for W in (Q, K, V, O))))
    return found


def _head(
    layer: int, number: int, Q: np.ndarray, K: np.ndarray, V: np.ndarray, O: np.ndarray
) -> Head:
    """A head with O V as its value matrix, whose eigenvalues but zeros are those of V O."""
    values, vectors = np.linalg.eig(V @ O)
    order = np.argsort(-np.abs(values))
    first, second = values[order[:2]]
    real = abs(first.imag) < 1e-9
    dual = np.linalg.inv(vectors)[order[0]] @ V
    phi = O @ vectors[:, order[0]]
    phi, dual = phi / np.linalg.norm(phi), dual * np.linalg.norm(phi) / first
    aligned = float(((Q @ phi.real) @ (K @ phi.real)).real) if real else -np.inf
    gap = 1 - abs(second) / abs(first) if real else 0.0
    return Head(layer, number, Q, K, O @ V, float(first.real), dual.real, aligned, float(gap))


def _chosen(heads: list[Head], model: Model) -> Head:
    """The paper's head of a model with shared layers; else the good triple of the widest gap."""
    if model.shared:
        return heads[PAPER_HEAD]
    return max((head for head in heads if head.good), key=lambda head: head.gap)


def _spread(xs: Float[np.ndarray, "T n d"]) -> Float[np.ndarray, " T"]:
    """The mean cosine of pairs of tokens."""
    unit = xs / np.linalg.norm(xs, axis=-1, keepdims=True)
    n = xs.shape[1]
    return (np.sum(unit.sum(axis=1) ** 2, axis=-1) - n) / (n * (n - 1))


def _draw_pca(ax: Axes, xs: Float[np.ndarray, "T n d"]) -> None:
    """Tokens at the end, with their paths, in the plane of their leading principal components."""
    stage = Stage(xs, False)
    stage.set(ax)
    paths = np.array([stage.view(x)[0] for x in xs])
    ax.plot(paths[..., 0], paths[..., 1], color=PALETTE[0], lw=0.6, alpha=0.4)
    ax.plot(*paths[-1].T, "o", ms=5, color=PALETTE[1], mec="white", mew=0.5)


def _draw_coordinate(ax: Axes, ts: np.ndarray, along: Float[np.ndarray, "T n"]) -> None:
    ax.plot(ts, along, color=PALETTE[0], lw=0.8, alpha=0.7)
    ax.set(xlabel="time $t$", ylabel=r"$\varphi_1^*(z_i)$", xlim=(0, ts[-1]))


RECIPE = Recipe(
    "S-albert",
    "[S] trained weights",
    "The flow with the weights of one trained head that is a good triple (head 5 of "
    "albert-xlarge-v2, or one of MiniLM), from random tokens and from a sentence, seen through "
    "PCA: the leading coordinate takes at most three values. Beside it all heads of the layer.",
    _make,
    model=True,
)
