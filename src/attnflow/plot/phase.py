"""Phase diagrams: a saved number over time and one axis, with a panel for each other value."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnflow.errors import InputError, unknown
from attnflow.plot.style import INK, PALETTE, save, style
from attnflow.stores import readable
from attnflow.theory import transition_time

if TYPE_CHECKING:
    import xarray

MAX_COLUMNS = 3
MAX_PANELS = 24
SYMBOLS = {"beta": r"$\beta$", "time": "time $t$", "n": "$n$", "d": "$d$"}


class Curve(NamedTuple):
    """The curve [P](6.12): γ_β(t) = 1 − δ.

    Attributes:
        n: number of tokens.
        delta: the δ.
        normalised: True for SA, False for USA.
    """

    n: int
    delta: float
    normalised: bool = True


def phase_diagram(
    data: xarray.Dataset,
    variable: str,
    *,
    across: str = "beta",
    curve: Curve | None = None,
    counts: str | None = None,
    title: str | None = None,
    path: Path | None = None,
) -> Figure:
    """Draw a variable of a sweep over time and one axis; the other axes become panels.

    Args:
        data: the sweep, from `sweep.load`.
        variable: the name of a number that was saved.
        across: the axis to draw along.
        curve: also draw the time [P](6.12) at which orthogonal tokens have cosine 1 − δ.
        counts: the name of a saved number of clusters; its contours are drawn at 1½, 2½, ….
        title: the title of the picture.
        path: also write the picture to this file.
    """
    others = _others(data, variable, across)
    data = _read(data, [variable] if counts is None else [variable, counts])
    cells = list(itertools.product(*(range(data.sizes[d]) for d in others)))
    if len(cells) > MAX_PANELS:
        raise InputError(f"the picture would have {len(cells)} panels: select fewer values.")
    columns = min(MAX_COLUMNS, len(cells)) if len(cells) != 4 else 2
    rows = math.ceil(len(cells) / columns)
    with style():
        figure = Figure(figsize=(3.1 * columns + 1.2, 2.6 * rows + 0.5), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        shades = limits(data[variable].values)
        image: Any = None
        for ax, cell in zip(axes.flat, cells, strict=False):
            chosen = data.isel(dict(zip(others, cell, strict=True)))
            image = draw_phase(ax, chosen, variable, across, shades)
            if counts is not None:
                draw_counts(ax, chosen, counts, across)
            if curve is not None:
                draw_curve(ax, chosen[across].values, curve)
            ax.set_title(", ".join(_said(d, chosen[d].item()) for d in others))
        for ax in axes.flat[len(cells) :]:
            ax.set_visible(False)
        figure.supxlabel(SYMBOLS["time"], fontsize=11)
        figure.supylabel(SYMBOLS.get(across, across), fontsize=11)
        label = data[variable].attrs.get("long_name", variable)
        figure.colorbar(image, ax=axes, label=label, shrink=0.8)
        if title:
            figure.suptitle(title)
        if path is not None:
            save(figure, path)
    return figure


def sweep_diagram(data: xarray.Dataset, path: Path | None = None) -> Figure:
    """The phase diagram of a store: its first number, and what its spec suggests.

    This is the curve [P](6.12) if the number is the share of clustered pairs of SA or USA without
    matrices, and the contours of a number of clusters if one was saved.
    """
    spec = json.loads(data.attrs["spec"])
    across = next((a for a in spec["axes"] if _is_line(data, a)), None)
    if across is None:
        raise InputError("the sweep has no axis with at least two numbers to draw along.")
    across = "beta" if "beta" in spec["axes"] and _is_line(data, "beta") else across
    numbers = [k for k in spec["keep"] if set(data[k].dims) == {*spec["axes"], "time"}]
    if not numbers:
        raise InputError("the sweep saved nothing that is a single number at each time.")
    counts = [k for k in numbers if spec["keep"][k]["observable"] == "cluster_count"]
    drawn = next((k for k in numbers if k not in counts), numbers[0])
    return phase_diagram(
        data,
        drawn,
        across=across,
        curve=_curve(spec, drawn) if across == "beta" else None,
        counts=counts[0] if counts and counts[0] != drawn else None,
        title=spec.get("title"),
        path=path,
    )


def _is_line(data: xarray.Dataset, axis: str) -> bool:
    return data.sizes[axis] > 1 and np.issubdtype(data[axis].dtype, np.number)


def _curve(spec: dict[str, Any], drawn: str) -> Curve | None:
    keep, system, start = spec["keep"][drawn], spec["system"], spec["start"]
    plain = system["name"] in ("SA", "USA") and not {"Q", "K", "V", "mask"} & set(system)
    varied = [a for a in spec["axes"] if a not in ("beta", "d")]
    if keep["observable"] != "pairs_clustered" or not plain or varied or "n" not in start:
        return None
    return Curve(start["n"], keep.get("delta", 1e-3), system["name"] == "SA")


def _read(data: xarray.Dataset, variables: list[str]) -> xarray.Dataset:
    """Load what is drawn: a store that was opened lazily may turn out to be damaged."""
    for variable in variables:
        _require(data, variable)
    with readable(data.encoding.get("source", "the sweep")):
        return data[variables].load()


def _require(data: xarray.Dataset, variable: str) -> None:
    if variable not in data:
        raise unknown("variable", variable, map(str, data.data_vars))


def _others(data: xarray.Dataset, variable: str, across: str) -> list[Any]:
    _require(data, variable)
    dims = data[variable].dims
    if across not in dims or "time" not in dims:
        raise InputError(f"{variable} must vary along time and {across}; it varies along {dims}.")
    return [d for d in dims if d not in ("time", across)]


def limits(values: np.ndarray) -> tuple[float, float]:
    """[0, 1] for fractions, otherwise the range of the values."""
    if not np.isfinite(values).any():
        raise InputError("no cell of the sweep is done yet.")
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)


def phase_values(
    data: xarray.Dataset, variable: str, across: str = "beta"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, shape (T,), values of an axis, shape (B,), and a variable, shape (B, T).

    Args:
        data: the sweep, with its other axes selected.
        variable: the name of a number that was saved.
        across: the axis.
    """
    values = data[variable].transpose(across, "time").values
    return data["time"].values, data[across].values, values


def draw_phase(
    ax: Axes,
    data: xarray.Dataset,
    variable: str,
    across: str = "beta",
    shades: tuple[float, float] = (0.0, 1.0),
) -> Any:
    """Draw a variable of a sweep over time and one axis; returns the image for a colour bar.

    Args:
        ax: the axes.
        data: the sweep, with its other axes selected.
        variable: the name of a number that was saved.
        across: the axis to draw along.
        shades: the values of the lightest and the darkest shade.
    """
    t, y, values = phase_values(data, variable, across)
    low, high = shades
    ax.set(xlim=(t[0], t[-1]), ylim=(y.min(), y.max()))
    return ax.pcolormesh(
        t, y, values, cmap="Blues", shading="nearest", rasterized=True, vmin=low, vmax=high
    )


def draw_counts(ax: Axes, data: xarray.Dataset, counts: str, across: str = "beta") -> None:
    """Draw the contours 1½, 2½, … of a number of clusters.

    Args:
        ax: the axes.
        data: the sweep, with its other axes selected.
        counts: the name of the number of clusters.
        across: the axis to draw along.
    """
    number = data[counts].transpose(across, "time").values
    levels = np.arange(1.5, min(6.0, np.nanmax(number)), 1.0)
    if len(levels) and np.nanmin(number) < levels[-1]:
        places = data["time"].values, data[across].values
        lines = ax.contour(*places, number, levels=levels, colors=INK, linewidths=0.7)
        ax.clabel(lines, fmt=lambda level: f"{level:g}", fontsize=7)


def draw_curve(ax: Axes, beta: np.ndarray, curve: Curve) -> None:
    """Draw the curve [P](6.12): the time at which γ_β = 1 − δ, for each β.

    Args:
        ax: the axes.
        beta: values of β, shape (B,).
        curve: n, δ and the system.
    """
    ax.plot(curve_times(beta, curve), beta, color=PALETTE[1], lw=1.4)


def curve_times(beta: np.ndarray, curve: Curve) -> np.ndarray:
    """The times of the curve [P](6.12), for each β."""
    return np.asarray(transition_time(beta, curve.n, curve.delta, curve.normalised))


def _said(name: Any, value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{SYMBOLS.get(name, name)} $= {value:g}$"
