"""`Trajectory`: what a run kept, with its labels, on disk and back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow._version import __version__
from attnflow.checks import is_traced
from attnflow.errors import InputError
from attnflow.files import atomic_write, restore
from attnflow.records import read_json
from attnflow.simulation.merging import Merges, joined
from attnflow.simulation.methods import Method
from attnflow.stores import damaged, open_dataset, write_dataset
from attnflow.systems import System

if TYPE_CHECKING:
    import xarray

MERGE_FIELDS = ("time", "kept", "gone", "mass_kept", "mass_gone")
FORMAT = "attnflow trajectory 1"


class Trajectory(eqx.Module):
    """What `simulate` returns.

    A system that is integrated in other coordinates than its own (`RescaledAttention`) keeps them
    too. Runs are continued from them, and `along` and `observe.attention_along` read them. Where
    `xs` cannot hold in its digits what they hold, it is NaN.

    Attributes:
        ts: the save times, shape (T,).
        xs: the states there, shape (*batch, T, n, d); with `save=fn` what fn returned.
        final: the last state, shape (*batch, n, d), from which a run can be continued.
        masses: the masses of the tokens; None if all are 1.
        steps: the accepted steps of each member of a batch.
        rejected: the rejected steps of each member.
        system: what was run; after `load` its description.
        method: how it was run; after `load` its description.
        merges: the merge tree of a run with `Coarsening`, and of the runs that it continues.
        inner: the states in the coordinates of the integration, like `xs`, where these differ.
        inner_final: the last state in these coordinates, like `final`.
        t_final: the time of `final`, shape (*batch): ts[-1], unless a run stopped before.
    """

    ts: Float[Array, " T"]
    xs: Any
    final: Any
    masses: Array | None
    steps: Array
    rejected: Array
    system: System | str
    method: Method | str
    merges: Merges | None = None
    inner: Array | None = None
    inner_final: Array | None = None
    t_final: Array | None = None

    @property
    def ended(self) -> Any:
        """The time from which this run is continued: that of `final`, one for all members."""
        if self.t_final is None or is_traced((self.t_final, self.ts)):
            return self.ts[-1]
        ends = np.unique(np.asarray(self.t_final))
        if len(ends) > 1:
            raise InputError(
                f"x0: the members of this batch stopped at different times, from t = {ends[0]:g} "
                f"to {ends[-1]:g}: continue each by itself, from run.final[i] at ts[0] = "
                "run.t_final[i]."
            )
        return ends[0]

    @property
    def positions(self) -> Array:
        """The tokens at the save times: `xs`, or what the system's `positions` makes of them.

        >>> import attnflow as af
        >>> af.simulate(af.Kuramoto(K=1.0), np.zeros((3, 1)), [0.0, 1.0]).positions.shape
        (2, 3, 2)
        """
        if not is_states(self.xs, self.final, self.ts):
            raise InputError("save=fn kept something else than states, so there are no positions.")
        xs = jnp.asarray(self.xs)
        if self.known_system is None:
            return xs
        tokens = jax.vmap(self.known_system.positions)(xs.reshape(-1, *xs.shape[-2:]))
        return tokens.reshape(*xs.shape[:-2], *tokens.shape[-2:])

    def along(self, W: Any) -> Array:
        """The numbers `<w_k, x_i>` at the save times, (*batch, T, n, k), for the rows w_k of W.

        They are right also where `xs` has lost them: for rescaled attention this is how to get
        φ_k*(z) at late times. A run that was loaded needs its system: `run.of(system)`.

        >>> import attnflow as af
        >>> run = af.simulate(af.SA(1.0), np.eye(3), [0.0, 1.0])
        >>> run.along(np.ones((1, 3))).shape
        (2, 3, 1)
        """
        W = jnp.asarray(W)
        if not is_states(self.xs, self.final, self.ts):
            raise InputError("save=fn kept something else than states, so nothing is along W.")
        if W.ndim != 2 or W.shape[1] != self.final.shape[-1]:
            raise InputError(
                f"W must have shape (k, {self.final.shape[-1]}), one row for each functional, but "
                f"its shape is {W.shape}."
            )
        kind = self.final.dtype
        W = W.astype(np.result_type(kind, np.complex64) if jnp.iscomplexobj(W) else kind)
        if self.inner is None:
            return self.xs.astype(W.dtype) @ W.T
        return _functionals(self, self.running, W)

    @property
    def known_system(self) -> Any:
        """The system, or None for a loaded run, which knows its name alone."""
        return self.system if isinstance(self.system, System) else None

    @property
    def running(self) -> System:
        """The system, which a loaded run does not have."""
        if self.known_system is not None:
            return self.known_system
        raise InputError(f"system: a loaded run knows the name {self.system} only: use run.of(it).")

    def of(self, system: System) -> Trajectory:
        """A loaded run together with the system that ran, which must be known to look inside."""
        if str(system) != str(self.system):
            raise InputError(f"system must be the one that ran, {self.system}, not {system}.")
        if not has_coordinates(system, self):
            raise InputError(
                f"system must be the one that ran, but the weights of this {system} are others: "
                "its coordinates of the last state do not belong to that state."
            )
        return replace(self, system=system)

    def each(self, fn: Any) -> Array:
        """`fn(t, state)` at each save time, of `inner` where there is one, with batch axes kept."""
        states = self.xs if self.inner is None else self.inner
        batch = states.shape[:-3]
        flat = states.reshape(-1, *states.shape[-3:])
        found = jax.lax.map(lambda run: jax.lax.map(lambda at: fn(*at), (self.ts, run)), flat)
        return found.reshape(*batch, *found.shape[1:])

    @property
    def with_digits(self) -> Trajectory:
        """This run up to the last save time before `xs` loses its digits, if it does."""
        if self.inner is None or not is_states(self.xs, self.final, self.ts):
            return self
        finite = np.isfinite(np.asarray(self.xs)).all(axis=(-1, -2)).reshape(-1, len(self.ts))
        count = int(np.argmin(np.append(finite.all(axis=0), False)))
        if count in (0, len(self.ts)):
            return self
        ts, xs, inner = (self.ts[:count], self.xs[..., :count, :, :], self.inner[..., :count, :, :])
        return replace(
            self,
            ts=ts,
            xs=xs,
            final=xs[..., -1, :, :],
            inner=inner,
            inner_final=inner[..., -1, :, :],
            t_final=None,
        )

    def join(self, later: Trajectory) -> Trajectory:
        """This run and its continuation as one; the time they share is kept once."""
        if is_traced((self.ts, later.ts)) or float(later.ts[0]) != float(self.ended):
            raise InputError(
                f"the later run starts at t = {later.ts[0]}, but this one ends at {self.ended}: "
                "join a run with its own continuation, simulate(system, run, ts)."
            )
        axis = self.final.ndim - 2
        shared = int(float(later.ts[0]) == float(self.ts[-1]))

        def after(a: Array, b: Array) -> Array:
            return jnp.concatenate([a, jax.lax.slice_in_dim(b, shared, None, axis=axis)], axis=axis)

        inner = None
        if self.inner is not None and later.inner is not None and self._goes_on_inside(later.inner):
            inner = after(self.inner, later.inner)
        return Trajectory(
            ts=jnp.concatenate([self.ts, later.ts[shared:]]),
            xs=jax.tree.map(after, self.xs, later.xs),
            final=later.final,
            masses=later.masses,
            steps=self.steps + later.steps,
            rejected=self.rejected + later.rejected,
            system=later.system,
            method=later.method,
            merges=joined(self.merges, later.merges),
            inner=inner,
            inner_final=later.inner_final,
            t_final=later.t_final,
        )

    def _goes_on_inside(self, inner: Array) -> bool:
        """Whether a continuation has the coordinates of this run: it then began where this ended.

        With another V they are others, and the two do not belong together.
        """
        last = np.asarray(self.inner_final)
        return np.array_equal(last, np.asarray(inner[..., 0, :, :]), equal_nan=True)

    def to_xarray(self) -> xarray.Dataset:
        """A dataset with the dimensions `time, token, dim` (and `batch`), described in `attrs`."""
        import xarray

        batch = _batch_names(self.final.ndim - 2)
        variables: dict[str, Any] = {"final": ((*batch, "token", "dim"), np.asarray(self.final))}
        if is_states(self.xs, self.final, self.ts):
            variables["x"] = ((*batch, "time", "token", "dim"), np.asarray(self.xs))
        elif isinstance(self.xs, (jnp.ndarray, np.ndarray)):
            extra = tuple(f"axis_{i}" for i in range(self.xs.ndim - len(batch) - 1))
            variables["x"] = ((*batch, "time", *extra), np.asarray(self.xs))
        else:
            raise InputError(
                "save=fn kept more than one array: label them yourself, or keep a single array."
            )
        if self.inner is not None:
            variables["inner"] = ((*batch, "time", "token", "dim"), np.asarray(self.inner))
        if self.inner_final is not None:
            variables["inner_final"] = ((*batch, "token", "dim"), np.asarray(self.inner_final))
        if self.masses is not None:
            names = (*batch, "token") if self.masses.ndim > 1 else ("token",)
            variables["mass"] = (names, np.asarray(self.masses))
        if self.merges is not None:
            for name in MERGE_FIELDS:
                values = np.asarray(getattr(self.merges, name))
                variables[f"merge_{name}"] = ((*batch, "merge"), values)
        if self.t_final is not None:
            variables["t_final"] = (batch, np.asarray(self.t_final))
        variables["steps"] = (batch, np.asarray(self.steps))
        variables["rejected"] = (batch, np.asarray(self.rejected))
        attrs = {
            "format": FORMAT,
            "attnflow": __version__,
            "system": str(self.system),
            "method": str(self.method),
        }
        return xarray.Dataset(variables, coords={"time": np.asarray(self.ts)}, attrs=attrs)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a Zarr store that `Trajectory.load` and `xarray.open_zarr` read.

        The store appears at `path` only when it is complete; that of another run is replaced.
        """
        path = Path(path)
        require_replaceable(path)
        data = self.to_xarray()
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as place:
            write_dataset(data, place)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Read what `save` wrote."""
        path = Path(path)
        restore(path)
        if not path.exists():
            raise InputError(f"there is no store at {path}.")
        if not (path / "zarr.json").exists():
            raise InputError(f"{path} is no Zarr store: it has no zarr.json.")
        data = open_dataset(path, whole=True)
        if data.attrs.get("format") != FORMAT:
            raise InputError(f"{path} is a Zarr store, but not of an attnflow trajectory.")
        try:
            return cls(
                ts=jnp.asarray(data["time"].values),
                xs=jnp.asarray(data["x"].values),
                final=jnp.asarray(data["final"].values),
                masses=_given(data, "mass"),
                steps=jnp.asarray(data["steps"].values),
                rejected=jnp.asarray(data["rejected"].values),
                system=data.attrs["system"],
                method=data.attrs["method"],
                merges=_merges(data),
                inner=_given(data, "inner"),
                inner_final=_given(data, "inner_final"),
                t_final=_given(data, "t_final"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(path, error) from None

    def __repr__(self) -> str:
        """What ran, how big it was, what it took."""
        if is_traced((self.ts, self.final)):
            return f"Trajectory(traced, {self.system})"
        *batch, n, d = self.final.shape
        size = f"{n} tokens in R^{d}"
        if batch:
            size = f"{' × '.join(map(str, batch))} runs of {size}"
        steps = np.asarray(self.steps)
        taken = f"{steps.min()}" if steps.min() == steps.max() else f"{steps.min()}–{steps.max()}"
        end = float(np.min(self.ts[-1] if self.t_final is None else self.t_final))
        stopped = f", stopped at t = {end:g}" if end > float(self.ts[-1]) else ""
        return (
            f"Trajectory of {self.system}\n"
            f"  {size}, {len(self.ts)} times from {float(self.ts[0]):g} to {float(self.ts[-1]):g}"
            f"{stopped}, {self.final.dtype}\n"
            f"  {self.method}: {taken} steps, {int(np.asarray(self.rejected).sum())} rejected"
        )


def has_coordinates(system: System, run: Trajectory) -> bool:
    """Whether the last state of a run is that of its coordinates `inner_final`, in this system.

    Entries without digits are left out; all of them together say nothing.
    """
    if run.inner_final is None or not system.encoded:
        return run.inner_final is None
    shape = run.final.shape[-2:]
    ys = jnp.asarray(run.inner_final).reshape(-1, *shape)
    ends = run.ts[-1] if run.t_final is None else run.t_final
    ts = jnp.broadcast_to(jnp.asarray(ends, ys.dtype), run.final.shape[:-2]).reshape(-1)
    there = np.asarray(run.final).reshape(-1, *shape)
    found = np.asarray(jax.vmap(system.decode)(ts, ys))
    if not np.array_equal(np.isnan(found), np.isnan(there)):
        return False
    known = np.isfinite(there) & np.isfinite(found)
    rtol = 1e-3 if run.final.dtype == jnp.float32 else 1e-6
    return np.allclose(found[known], there[known], rtol=rtol, atol=1e-12)


@eqx.filter_jit
def _functionals(run: Trajectory, system: System, W: Array) -> Array:
    return run.each(lambda t, y: system.functionals(t, y, W))


def _given(data: xarray.Dataset, name: str) -> Array | None:
    return jnp.asarray(data[name].values) if name in data else None


def _merges(data: xarray.Dataset) -> Merges | None:
    if "merge_time" not in data:
        return None
    return Merges(*(jnp.asarray(data[f"merge_{name}"].values) for name in MERGE_FIELDS))


def _batch_names(count: int) -> tuple[str, ...]:
    return ("batch",) if count == 1 else tuple(f"batch_{i}" for i in range(count))


def is_states(xs: Any, final: Any, ts: Any) -> bool:
    """Whether xs are the states at the times ts, rather than what `save` made of them."""
    expected = (*final.shape[:-2], len(ts), *final.shape[-2:])
    return getattr(xs, "shape", None) == expected


def require_replaceable(path: Path) -> None:
    """Refuse a path at which something is that is no store of a run."""
    if path.exists() and _format(path) != FORMAT:
        raise InputError(f"{path} exists and is no store of a run: choose another path.")


def _format(path: Path) -> Any:
    """What a Zarr store says that it is, if it is one."""
    try:
        return read_json(path / "zarr.json")["attributes"]["format"]
    except (InputError, KeyError, TypeError):
        return None
