"""Random runs: a case, its save times and a method, of few structures that are compiled once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import attnflow as af
from properties.strategies import SHAPES, Case, cases

LARGER = SHAPES[1:]
PLAIN = {
    "sigma": "tanh",
    "norm": "rms",
    "phi": "gaussian",
    "W": "quadratic",
    "objective": "ackley",
}
"""What would be compiled anew is the same in all runs."""

NOISY = ("Noisy", "CBO", "Vicsek")
TOLERANCES = {"adaptive": 1e-5, "coarsening": 1e-5}
"""How far apart two runs may be that are the same but for rounding; without error control 1e-8."""


class Structure(NamedTuple):
    """What decides which code is compiled."""

    name: str
    kind: str = "none"
    method: str = "adaptive"
    mask: str | None = None
    heavy: bool = False


EVERY = (
    Structure("SA"),
    Structure("SA", method="coarsening", heavy=True),
    Structure("SA", "heads", "rk4", mask="given"),
    Structure("USA", "numbers", "rk4", heavy=True),
    Structure("EllipsoidAttention", "matrices"),
    Structure("Transformer", "heads", "layers"),
    Structure("PostNormTransformer", "mixed", "layers"),
    Structure("PureAttention", "matrices", "rk4"),
    Structure("RescaledAttention", "matrices"),
    Structure("RescaledAttention", "numbers", "layers", heavy=True),
    Structure("PreNorm", "rectangular", "rk4", heavy=True),
    Structure("SinkhornSA", "matrices", "rk4", heavy=True),
    Structure("ConsensusAttention", "rectangular", "rk4", mask="given", heavy=True),
    Structure("Kuramoto", method="rk4"),
    Structure("Aggregation", method="rk4"),
    Structure("CuckerSmale", method="rk4"),
    Structure("Krause", method="rk4", heavy=True),
    Structure("HegselmannKrause", method="updates"),
    Structure("Noisy", method="heun"),
    Structure("CBO", method="euler"),
    Structure("Vicsek", method="updates"),
)
"""Few for their cost: what holds for fields is tried with every system."""

CERTAIN = tuple(one for one in EVERY if one.name not in NOISY)


class Run(NamedTuple):
    """What `simulate` is asked for; times are a start, a time between and an end."""

    case: Case
    ts: np.ndarray
    method: Any
    key: int
    structure: Structure

    @property
    def tolerance(self) -> float:
        return TOLERANCES.get(self.structure.method, 1e-8)

    def go(self, **changes: Any) -> af.Trajectory:
        """The trajectory; `case`, `ts` or `method` may be changed, `x0` is for continuing."""
        x0 = changes.pop("x0", None)
        run = self._replace(**changes)
        case = run.case
        key = run.key if case.name in NOISY else None
        start, masses = (case.x, case.masses) if x0 is None else (x0, None)
        return af.simulate(case.system, start, run.ts, method=run.method, masses=masses, key=key)


def steps(draw, dt):
    """Times that are whole numbers of steps after the start, and even ones."""
    return dt * np.cumsum([0, 2 * draw(st.integers(1, 3)), 2 * draw(st.integers(1, 3))])


@st.composite
def timed(draw, kind):
    """Save times and a method of the kind; without error control the times are steps."""
    if kind in ("adaptive", "coarsening"):
        ts = np.cumsum([0.0, draw(st.floats(0.05, 1)), draw(st.floats(0.05, 1))])
        rtol = 10.0 ** draw(st.floats(-9, -7))
        return ts, af.Adaptive(rtol) if kind == "adaptive" else af.Coarsening(1e-6, rtol)
    dt = 1.0 if kind == "updates" else draw(st.sampled_from([0.0625, 0.125, 0.25]))
    method = af.Layers(dt) if kind in ("layers", "updates") else af.Fixed(dt / 4, kind)
    return steps(draw, dt), method


def resolved(method, case):
    """The method with steps that resolve the case: speeds of USA grow like e^β."""
    if case.name != "USA":
        return method
    Q, K, V = (abs(case.arguments.get(name, 1.0)) for name in "QKV")
    fastest = V * math.exp(case.arguments["beta"] * Q * K)
    halvings = max(0, math.ceil(math.log2(fastest * float(method.dt) + 1e-9)))
    return af.Fixed(float(method.dt) / 2**halvings, method.solver)


@st.composite
def runs(draw, structures=EVERY, shapes=LARGER):
    """A run of one of the structures."""
    one = draw(st.sampled_from(structures))
    case = draw(cases((one.name,), shapes, (one.kind,), (one.mask,), one.heavy))
    words = {name for name, value in case.arguments.items() if isinstance(value, str)}
    plain = {name: PLAIN[name] for name in words & PLAIN.keys()}
    ts, method = draw(timed(one.method))
    return Run(case.having(**plain), ts, resolved(method, case), draw(st.integers(0, 9)), one)
