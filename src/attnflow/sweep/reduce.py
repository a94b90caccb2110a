"""From the values of all realisations of a cell to the statistics that are saved."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from attnflow.spec.sweep import Keep, SweepSpec

UNFINISHED = "unfinished"
COUNTS = "int32"


@dataclass(frozen=True)
class Variable:
    """An array of the store.

    Attributes:
        name: its name.
        dtype: its dtype.
        dims: names of its dimensions after the axes of the sweep.
        shape: sizes of these dimensions.
        long_name: its description.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    long_name: str


def variables(spec: SweepSpec, inner: dict[str, tuple[int, ...]]) -> list[Variable]:
    """The arrays of a sweep. `inner` holds the shapes of the observables at one time."""
    times = len(spec.times.build())
    found = [Variable(UNFINISHED, COUNTS, (), (), "realisations that did not reach the last time")]
    for name, keep in spec.keep.items():
        dims = ("time", *(f"{name}_{i}" for i in range(len(inner[name]))))
        shape = (times, *inner[name])
        said = keep.observable.replace("_", " ")
        found.append(Variable(name, spec.dtype, dims, shape, f"{said}, mean over realisations"))
        if spec.realisations > 1:
            found.append(
                Variable(f"{name}_error", spec.dtype, dims, shape, f"{said}, standard error")
            )
        if keep.quantiles:
            quantile = (f"{name}_quantile", *dims)
            counts = (len(keep.quantiles), *shape)
            found.append(
                Variable(f"{name}_quantiles", spec.dtype, quantile, counts, f"{said}, quantiles")
            )
    return found


def reduced(spec: SweepSpec, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Means, standard errors and quantiles of a block over the realisations.

    A realisation counts up to the last time that it reached.
    """
    axis = values["ended"].ndim - 1
    kept = {UNFINISHED: (~values["ended"]).sum(axis=axis).astype(COUNTS)}
    for name, keep in spec.keep.items():
        kept |= _of(name, keep, values[name], axis)
    return kept


def _of(name: str, keep: Keep, values: np.ndarray, axis: int) -> dict[str, np.ndarray]:
    exact = values.astype(np.float64)
    count = np.isfinite(exact).sum(axis=axis)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        kept = {name: np.nanmean(exact, axis=axis)}
        if exact.shape[axis] > 1:
            spread = np.nanstd(exact, axis=axis, ddof=1)
            kept[f"{name}_error"] = spread / np.sqrt(np.maximum(count, 1))
        if keep.quantiles:
            quantiles = np.nanquantile(exact, keep.quantiles, axis=axis)
            kept[f"{name}_quantiles"] = np.moveaxis(quantiles, 0, axis)
    return {k: v.astype(values.dtype) for k, v in kept.items()}
