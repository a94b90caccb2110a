"""What tokens do where their highest scores tie: the weights of a Filippov solution.

Token i moves along `Σ_j w_ij V (z_j − z_i)` with weights in the simplex over the set C_i of those
that tie. A choice of supports S_i ⊂ C_i is *viable* if the tie lasts on each support and nobody
else in C_i overtakes it: with the rates σ_ij of the scores, σ_ij is the same for j in S_i and not
less than for any other j in C_i. That is an equilibrium of a game in which token i plays j for the
payoff σ_ij, so there is always one, and often several: hence a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice, product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

TIE = 1e-10
"""Scores within this part of their size tie."""

SAME_POINT = 1e-8
"""Tokens within this part of the cloud's size are one place, and whom of them one follows is no
choice."""

REGRET = 1e-7
"""How much faster, relatively, another score may grow before a choice is given up."""

MIN_WEIGHT = 1e-8
"""A weight below this is no part of a support."""

STABILITY = 10.0
"""How fast, in units of |V|, a tie that rounding has broken is mended while it lasts."""

MAX_TIED = 16
"""More tied places than this have too many subsets to look at."""

MAX_ROUNDS = 20
"""So often tokens may change their minds before all combinations are looked at."""

MAX_COMBINATIONS = 5000
"""As many combinations of supports are looked at."""

Supports = list[tuple[int, ...]]


class NoSelection(Exception):
    """No viable choice was found."""


class Field(NamedTuple):
    """The inclusion `z_i' ∈ conv{V (z_j − z_i) : j ∈ argmax_j z_iᵀ M z_j}`, with masses."""

    M: Float[np.ndarray, "d d"]
    V: Float[np.ndarray, "d d"]
    masses: Float[np.ndarray, " n"]

    @property
    def speed(self) -> float:
        """|V|, the rate at which anything happens."""
        return float(np.linalg.norm(self.V, 2))

    def scores(self, z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
        """z_iᵀ M z_j."""
        return z @ self.M @ z.T

    def sizes(self, z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """How large the scores of each token can be, with a floor for those at the origin."""
        largest = np.linalg.norm(z @ self.M.T, axis=1).max()
        bounds = np.linalg.norm(z, axis=1) * largest
        return bounds + 1e-3 * bounds.max() + np.finfo(float).tiny

    def velocity(
        self, z: Float[np.ndarray, "n d"], W: Float[np.ndarray, "n n"]
    ) -> Float[np.ndarray, "n d"]:
        """`Σ_j w_ij V (z_j − z_i)`."""
        return (W @ z - z) @ self.V.T

    def rates(
        self, z: Float[np.ndarray, "n d"], v: Float[np.ndarray, "n d"]
    ) -> Float[np.ndarray, "n n"]:
        """The σ_ij, how fast scores grow when tokens move with v."""
        return v @ self.M @ z.T + z @ self.M @ v.T


def same_place(z: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, "n n"]:
    """Which tokens are at one place."""
    apart = np.zeros((len(z), len(z)))
    for along in z.T:  # one coordinate at a time: all of them would be n² d numbers
        np.maximum(apart, np.abs(along[:, None] - along), out=apart)
    return apart <= SAME_POINT * np.abs(z - z.mean(axis=0)).max()


def tied(field: Field, z: Float[np.ndarray, "n d"]) -> Supports:
    """The sets C_i, with one token for each place: that of the highest score."""
    scores, same = field.scores(z), same_place(z)
    sets = []
    for row, size in zip(scores, field.sizes(z), strict=True):
        kept: list[int] = []
        for j in np.argsort(-row, kind="stable"):
            if row[j] < row.max() - TIE * size:
                break
            if not same[j, kept].any():
                kept.append(int(j))
        sets.append(tuple(sorted(kept)))
    return sets


def weights(
    field: Field, z: Float[np.ndarray, "n d"], supports: Supports
) -> Float[np.ndarray, "n n"]:
    """The weights on the supports that keep their ties, the nearest such to the plain means.

    They may be negative, or not keep the ties, where the supports are not viable.
    """
    W = np.zeros((len(z), len(z)))
    for i, support in enumerate(supports):
        W[i, list(support)] = field.masses[list(support)]
    W /= W.sum(axis=1, keepdims=True)
    sliding = [i for i, support in enumerate(supports) if len(support) > 1]
    if not sliding:
        return W
    p, k = np.array([(i, j) for i in sliding for j in supports[i]]).T
    i, j, first = np.array([(i, j, supports[i][0]) for i in sliding for j in supports[i][1:]]).T
    matrix = np.concatenate([_change(field, z, (p, k), (i, j, first)), p == _column(sliding)])
    scores = field.scores(z)
    rates = field.rates(z, field.velocity(z, W)) + STABILITY * field.speed * scores
    missing = np.concatenate([rates[i, first] - rates[i, j], np.zeros(len(sliding))])
    W[p, k] += np.linalg.lstsq(matrix, missing, rcond=1e-12)[0]
    return W


def _column(indices: list[int]) -> Int[np.ndarray, "s 1"]:
    return np.array(indices)[:, None]


def _change(field: Field, z: Float[np.ndarray, "n d"], unknown: tuple, ties: tuple) -> np.ndarray:
    """How `σ_ij − σ_i,first` (rows) changes with each weight w_pk (columns)."""
    (p, k), (i, j, first) = unknown, ties
    push = (z[k] - z[p]) @ field.V.T
    own = (z[j] - z[first]) @ field.M.T @ push.T
    others = z[i] @ field.M @ push.T
    sign = (p == j[:, None]).astype(float) - (p == first[:, None])
    return (p == i[:, None]) * own + sign * others


def select(field: Field, z: Float[np.ndarray, "n d"], rule: str) -> Supports:
    """A viable choice of supports by the rule: token after token until nobody changes.

    Where that goes round in circles, all combinations are looked at.
    """
    sets = tied(field, z)
    undecided = [i for i, C in enumerate(sets) if len(C) > 1]
    if any(len(sets[i]) > MAX_TIED for i in undecided):
        raise NoSelection(f"more than {MAX_TIED} tokens tie for one token")
    supports: Supports = [C[:1] for C in sets]
    for _ in range(MAX_ROUNDS):
        before = list(supports)
        for i in undecided:
            supports[i] = _response(field, z, sets[i], supports, i, rule) or sets[i]
        if supports == before and _all_viable(field, z, sets, supports):
            return supports
    subsets = [_ordered(C, z.shape[1] + 1, rule) for C in sets]
    for combination in islice(product(*subsets), MAX_COMBINATIONS):
        if _all_viable(field, z, sets, list(combination)):
            return list(combination)
    raise NoSelection(f"the {len(undecided)} tokens whose scores tie find no choice that lasts")


def _response(
    field: Field,
    z: Float[np.ndarray, "n d"],
    C: tuple[int, ...],
    supports: Supports,
    i: int,
    rule: str,
) -> tuple[int, ...] | None:
    """The support of token i that the rule prefers among the viable ones, as the others stand."""
    viable = []
    for support in _ordered(C, z.shape[1] + 1, rule):
        W = weights(field, z, [*supports[:i], support, *supports[i + 1 :]])
        if _viable(field, z, C, support, W, i):
            if rule != "minimal-norm":
                return support
            viable.append((float(np.linalg.norm(field.velocity(z, W)[i])), support))
    return min(viable)[1] if viable else None


def _viable(
    field: Field,
    z: Float[np.ndarray, "n d"],
    C: tuple[int, ...],
    support: tuple[int, ...],
    W: Float[np.ndarray, "n n"],
    i: int,
) -> bool:
    """Whether token i, with these weights, keeps its tie and regrets nothing."""
    rates = field.rates(z, field.velocity(z, W))[i]
    followed = rates[list(support)]
    regret = REGRET * field.speed * field.sizes(z)[i]
    lasting = np.ptp(followed) <= regret
    unregretted = rates[list(C)].max() <= followed.max() + regret
    return bool(W[i, list(support)].min() >= MIN_WEIGHT and lasting and unregretted)


def _all_viable(
    field: Field, z: Float[np.ndarray, "n d"], sets: Supports, supports: Supports
) -> bool:
    W = weights(field, z, supports)
    each = zip(sets, supports, strict=True)
    return all(
        len(C) == 1 or _viable(field, z, C, support, W, i) for i, (C, support) in enumerate(each)
    )


def _ordered(C: tuple[int, ...], most: int, rule: str) -> Iterator[tuple[int, ...]]:
    """The subsets of C to look at: more than d + 1 tokens are of use only if they are all."""
    sizes = [*range(1, min(len(C), most) + 1), *([len(C)] if len(C) > most else [])]
    for size in reversed(sizes) if rule == "all" else sizes:
        yield from combinations(C, size)
