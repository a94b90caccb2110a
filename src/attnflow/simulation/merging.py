"""Tokens that meet: when they do within a step, who stands for whom, and the merge tree."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attnflow.simulation.clock import Clock
from attnflow.spaces import inner
from attnflow.systems import System

BLOCK_ROWS = 256
"""Tokens whose distances to all others are looked at together: memory is O(n · BLOCK_ROWS)."""

SEARCH_PARTS, SEARCH_ROUNDS = 64, 8
"""A step is cut into so many parts, so many times, to find when two tokens meet: to rounding."""

Pair = tuple[Float[Array, ""], Int[Array, ""], Int[Array, ""]]
"""A squared distance, and the two tokens i < j."""


class Merges(eqx.Module):
    """The merge tree: one entry for each merge in the order of time, then unused ones.

    Unused entries have time NaN and tokens −1.

    Attributes:
        time: when two tokens met, shape (*batch, n − 1).
        kept: the token that goes on for both.
        gone: the token that joined it.
        mass_kept: the mass that `kept` had before.
        mass_gone: the mass that `gone` had.
    """

    time: Float[Array, "*batch m"]
    kept: Int[Array, "*batch m"]
    gone: Int[Array, "*batch m"]
    mass_kept: Float[Array, "*batch m"]
    mass_gone: Float[Array, "*batch m"]

    @classmethod
    def none(cls, n: int, dtype: Any) -> Merges:
        """The tree of n tokens of which none have met."""
        nobody, never = jnp.full(max(n - 1, 1), -1), jnp.full(max(n - 1, 1), jnp.nan, dtype)
        return cls(never, nobody, nobody, never, never)

    @property
    def count(self) -> Int[Array, "*batch"]:
        """How many merges there were."""
        return jnp.sum(self.gone >= 0, axis=-1)

    def leaders(self, n: int) -> Int[Array, " n"]:
        """The token that stands for each of the n tokens, for a single tree.

        >>> tree = Merges.none(3, float)
        >>> print(tree.with_merge(1.0, 0, 2, 1.0, 1.0).leaders(3))
        [0 1 0]
        """

        def one(k: Any, leader: Array) -> Array:
            return jnp.where(leader == self.gone[k], self.kept[k], leader)

        return jax.lax.fori_loop(0, len(self.gone), one, jnp.arange(n))

    def with_merge(self, time: Any, kept: Any, gone: Any, mass_kept: Any, mass_gone: Any) -> Merges:
        """The tree with one more merge."""
        at = self.count
        return Merges(
            self.time.at[at].set(time),
            self.kept.at[at].set(kept),
            self.gone.at[at].set(gone),
            self.mass_kept.at[at].set(mass_kept),
            self.mass_gone.at[at].set(mass_gone),
        )


class MergedTokens(eqx.Module):
    """Tokens with who stands for whom: a token that was merged moves along with its leader.

    It has mass 0, so that nobody feels it; its leader has the mass of both.
    """

    x: Float[Array, "n d"]
    mass: Float[Array, " n"]
    leader: Int[Array, " n"]
    merges: Merges

    @classmethod
    def of(cls, x: Float[Array, "n d"], masses: Any, merges: Merges | None) -> MergedTokens:
        """The tokens x, of which those in the merge tree have met already."""
        n = len(x)
        mass = jnp.ones(n, x.dtype) if masses is None else masses
        none = Merges.none(n, x.dtype)
        if merges is None:
            return cls(x, mass, jnp.arange(n), none)
        merges = jax.tree.map(lambda a, b: a.astype(b.dtype), merges, none)
        leader = merges.leaders(n)
        return cls(x, jnp.zeros_like(mass).at[leader].add(mass), leader, merges)

    def velocity(self, system: System, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The velocities of the tokens at x, those that were merged as their leaders'."""
        return system.velocity(jnp.zeros((), x.dtype), x, self.mass)[self.leader]

    def merged(self, i: Any, j: Any, time: Any, system: System) -> MergedTokens:
        """With j merged into i, at the mean of both."""
        a, b = self.mass[i], self.mass[j]
        share = a / (a + b)
        place = system.retract(share * self.x[i] + (1 - share) * self.x[j])
        leader = jnp.where(self.leader == j, i, self.leader)
        return MergedTokens(
            jnp.where((leader == i)[:, None], place, self.x),
            self.mass.at[i].add(b).at[j].set(0),
            leader,
            self.merges.with_merge(time, i, j, a, b),
        )


class Path(eqx.Module):
    """The tokens during a step, as its dense output has them."""

    interpolation: Any = eqx.field(static=True)
    dense: Any
    dt: Float[Array, ""]

    def at(self, s: Any) -> Float[Array, "n d"]:
        """The tokens at the time s after the beginning of the step."""
        return self.interpolation(t0=jnp.zeros_like(self.dt), t1=self.dt, **self.dense).evaluate(s)

    def with_rate(self, s: Float[Array, ""]) -> tuple[Array, Array]:
        """The tokens at s, and how fast they move."""
        return jax.jvp(self.at, (s,), (jnp.ones_like(s),))

    def of(self, i: Any, j: Any) -> Path:
        """The path of two tokens alone."""
        rows = jnp.stack([i, j])
        return Path(
            self.interpolation, jax.tree.map(lambda a: a[..., rows, :], self.dense), self.dt
        )

    def merged(self, i: Any, j: Any, share: Any) -> Path:
        """With the token i on the mean of both paths, of which its own has this share."""

        def mean(a: Array) -> Array:
            return a.at[..., i, :].set(share * a[..., i, :] + (1 - share) * a[..., j, :])

        return Path(self.interpolation, jax.tree.map(mean, self.dense), self.dt)


def merge_all(
    flock: MergedTokens,
    v: Float[Array, "n d"],
    path: Path,
    clock: Clock,
    tol: Any,
    system: System,
    look: Any,
) -> MergedTokens:
    """A flock at the end of a step, with all merged that is within tol and approaching there.

    The merges are those that happen one after the other along the path of the step, which began
    when the clock says, and have the times at which they do. Nothing is merged unless `look`.
    """

    def met(state: Any) -> Bool[Array, ""]:
        return state[-1][0] <= tol**2

    def merge(state: Any) -> Any:
        flock, v, path, since, pair = state
        s, i, j = first_meeting(path, flock, pair, since, tol, system)
        share = flock.mass[i] / (flock.mass[i] + flock.mass[j])
        flock = flock.merged(i, j, clock.after(s).high, system)
        v = v.at[i].set(share * v[i] + (1 - share) * v[j])
        return flock, v, path.merged(i, j, share), s, closest(flock.x, v, flock.mass)

    squared, i, j = closest(flock.x, v, flock.mass)
    pair = (jnp.where(look, squared, jnp.inf), i, j)
    return jax.lax.while_loop(met, merge, (flock, v, path, jnp.zeros_like(path.dt), pair))[0]


def first_meeting(
    path: Path, flock: MergedTokens, pair: Pair, since: Float[Array, ""], tol: Any, system: System
) -> tuple[Array, Array, Array]:
    """The first time along a path, and the pair, that meets of all that are within tol at its end.

    From a pair that is, one goes back in time as long as another one had met before.
    """
    nobody = jnp.full_like(pair[1], -1)

    def another(state: Any) -> Bool[Array, ""]:
        s, before, i, j, (squared, k, l) = state
        return (squared <= tol**2) & ((i != k) | (j != l)) & (s < before)

    def back(state: Any) -> Any:
        s, _, _, _, (_, i, j) = state
        time = meeting(path.of(i, j), tol, since, s)
        x, v = path.with_rate(time)
        earlier = closest(system.retract(x), v, flock.mass, (flock.x, tol))
        # A hair's breadth is no step back: pairs that meet together would call for each other.
        return time, s * (1 - 1e-12), i, j, earlier

    start = (path.dt, jnp.full_like(path.dt, jnp.inf), nobody, nobody, pair)
    s, _, i, j, _ = jax.lax.while_loop(another, back, start)
    return s, i, j


def meeting(
    path: Path, tol: Any, before: Float[Array, ""], after: Float[Array, ""]
) -> Float[Array, ""]:
    """The first time of an interval when the two tokens of a path are within tol and approaching.

    At its end they are taken to be.
    """

    def met(s: Float[Array, ""]) -> Bool[Array, ""]:
        x, v = path.with_rate(s)
        apart, rate = x[1] - x[0], v[1] - v[0]
        squared = apart @ apart
        return (squared <= tol**2) & ((apart @ rate < 0) | (squared <= equal(x)))

    def narrow(_: Any, between: tuple[Array, Array]) -> tuple[Array, Array]:
        before, after = between
        s = before + (after - before) * jnp.linspace(0, 1, SEARCH_PARTS + 1, dtype=after.dtype)
        k = jnp.argmax(jax.vmap(met)(s).at[-1].set(True))
        return s[jnp.maximum(k - 1, 0)], jnp.where(k == SEARCH_PARTS, after, s[k])

    return jax.lax.fori_loop(0, SEARCH_ROUNDS, narrow, (before, after))[1]


def closest(
    x: Float[Array, "n d"],
    v: Float[Array, "n d"],
    mass: Float[Array, " n"],
    later: tuple[Float[Array, "n d"], Any] | None = None,
) -> Pair:
    """The squared distance of the closest approaching pair of tokens with mass, and the pair.

    With `later` only those pairs count whose places then are within the given distance.
    """
    n, same = len(mass), equal(x)
    index = jnp.arange(n)

    def row(i: Array) -> tuple[Array, Array]:
        apart = x - x[i]
        squared = inner(apart, apart)[:, 0]
        approaching = (inner(apart, v - v[i])[:, 0] < 0) | (squared <= same)
        alive = (mass > 0) & (mass[i] > 0) & (index > i)
        if later is not None:
            between = later[0] - later[0][i]
            alive &= inner(between, between)[:, 0] <= later[1] ** 2
        squared = jnp.where(alive & approaching, squared, jnp.inf)
        j = jnp.argmin(squared)
        return squared[j], j

    squared, j = jax.lax.map(row, index, batch_size=min(BLOCK_ROWS, n))
    i = jnp.argmin(squared)
    return squared[i], i, j[i]


def equal(x: Float[Array, "n d"]) -> Float[Array, ""]:
    """The squared distance up to which tokens are equal: compilers round a difference of twins."""
    return jnp.square(4 * jnp.finfo(x.dtype).eps) * jnp.max(inner(x, x))


def joined(earlier: Merges | None, later: Merges | None) -> Merges | None:
    """The merge tree of a run and of its continuation. Runs on the host.

    A continuation that knows the tree of the run before it has its merges already; one that
    started from the places alone has merged equal tokens anew, which is no merge.

    >>> tree = Merges.none(3, float).with_merge(1.0, 0, 2, 1.0, 1.0)
    >>> anew = Merges.none(3, float).with_merge(5.0, 0, 2, 1.0, 1.0).with_merge(7.0, 0, 1, 2.0, 1.0)
    >>> print(joined(tree, anew).time)
    [1. 7.]
    """
    if earlier is None or later is None:
        return later if earlier is None else earlier
    shape = np.shape(earlier.time)
    both = [
        [np.array(a).reshape(-1, shape[-1]) for a in jax.tree.leaves(tree)]
        for tree in (earlier, later)
    ]
    members = [_joined(*([a[i] for a in tree] for tree in both)) for i in range(len(both[0][0]))]
    fields = [jnp.asarray(np.reshape(field, shape)) for field in zip(*members, strict=True)]
    return Merges(*fields)


def _joined(earlier: list[np.ndarray], later: list[np.ndarray]) -> list[np.ndarray]:
    """The fields of two trees of one member as those of one.

    A later run that merged equal tokens anew did so in an order of its own, so masses are added up
    along the joint tree, from those that tokens had when they first merged.
    """
    whole = [np.full_like(a, -1 if a.dtype.kind == "i" else np.nan) for a in earlier]
    entries = [
        entry
        for tree in (earlier, later)
        for entry in zip(*(a[: int(np.sum(tree[2] >= 0))] for a in tree), strict=True)
    ]
    mass: dict[int, float] = {}
    leader, count = np.arange(len(earlier[0]) + 1), 0
    for time, kept, gone, mass_kept, mass_gone in entries:
        mass.setdefault(int(kept), mass_kept)
        mass.setdefault(int(gone), mass_gone)
        kept, gone = sorted((int(leader[kept]), int(leader[gone])))
        if kept == gone:
            continue
        for field, value in zip(whole, (time, kept, gone, mass[kept], mass[gone]), strict=True):
            field[count] = value
        mass[kept] += mass[gone]
        leader[leader == gone] = kept
        count += 1
    return whole
