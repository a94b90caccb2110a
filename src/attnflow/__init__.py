"""attnflow: Transformers as interacting particle systems.

Tokens are particles, layers are time.

>>> import attnflow as af
>>> x0 = af.initial.sphere(n=16, d=3, key=0)
>>> traj = af.simulate(af.SA(beta=1.0), x0, [0.0, 10.0])
>>> traj.final.shape
(16, 3)
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

import jax

if os.environ.get("JAX_ENABLE_X64", "1").lower() not in ("0", "false"):
    jax.config.update("jax_enable_x64", True)

from attnflow import attention, errors, initial, simulation, spaces, systems, weights
from attnflow._version import __version__
from attnflow.compilation import keep_compiled_programs
from attnflow.errors import IncompleteRun, InputError, Interrupted, ModelError
from attnflow.simulation import (
    Adaptive,
    Coarsening,
    Filippov,
    Fixed,
    Layers,
    Trajectory,
    simulate,
    solve,
)
from attnflow.systems import (
    CBO,
    SA,
    SYSTEMS,
    USA,
    Aggregation,
    AngularSA,
    AngularUSA,
    CircleCoupling,
    ConsensusAttention,
    CuckerSmale,
    EllipsoidAttention,
    Hardmax,
    HegselmannKrause,
    Krause,
    Kuramoto,
    MeanShift,
    Noisy,
    PostNorm,
    PostNormTransformer,
    PreNorm,
    PreNormTransformer,
    PureAttention,
    RescaledAttention,
    ResNet,
    SinkhornPure,
    SinkhornSA,
    System,
    Transformer,
    Vicsek,
)
from attnflow.weights import Heads

keep_compiled_programs()

if TYPE_CHECKING:
    from attnflow import figures, meanfield, models, observe, plot, report, spec, sweep, theory

LAZY_MODULES = (
    "figures",
    "meanfield",
    "models",
    "observe",
    "plot",
    "report",
    "spec",
    "sweep",
    "theory",
)
"""Imported when they are first named, so that `import attnflow` is quick."""

__all__ = [
    "CBO",
    "SA",
    "SYSTEMS",
    "USA",
    "Adaptive",
    "Aggregation",
    "AngularSA",
    "AngularUSA",
    "CircleCoupling",
    "Coarsening",
    "ConsensusAttention",
    "CuckerSmale",
    "EllipsoidAttention",
    "Filippov",
    "Fixed",
    "Hardmax",
    "Heads",
    "HegselmannKrause",
    "IncompleteRun",
    "InputError",
    "Interrupted",
    "Krause",
    "Kuramoto",
    "Layers",
    "MeanShift",
    "ModelError",
    "Noisy",
    "PostNorm",
    "PostNormTransformer",
    "PreNorm",
    "PreNormTransformer",
    "PureAttention",
    "ResNet",
    "RescaledAttention",
    "SinkhornPure",
    "SinkhornSA",
    "System",
    "Trajectory",
    "Transformer",
    "Vicsek",
    "__version__",
    "attention",
    "errors",
    "figures",
    "initial",
    "meanfield",
    "models",
    "observe",
    "plot",
    "report",
    "simulate",
    "simulation",
    "solve",
    "spaces",
    "spec",
    "sweep",
    "systems",
    "theory",
    "weights",
]

if not TYPE_CHECKING:  # a type checker would take every name for a known one

    def __getattr__(name: str) -> Any:
        if name in LAZY_MODULES:
            return importlib.import_module(f"attnflow.{name}")
        raise AttributeError(f"module 'attnflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY_MODULES})
