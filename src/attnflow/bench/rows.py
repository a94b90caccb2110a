"""The rows of the benchmark and their targets. To add a row, add an object to the list."""

from __future__ import annotations

from attnflow.bench.contenders import ATTNFLOW, BLOCKED, DENSE, SPECTRAL, DriftProblem, Scaled
from attnflow.bench.drift import Drift, Growth
from attnflow.bench.first import (
    COMPILED,
    EMPTY,
    SCIPY,
    UNJITTED,
    ColdStart,
    FirstResult,
    Gradient,
    NewSize,
    SmallRun,
)
from attnflow.bench.peers import JAX_DENSE, KEOPS, MATMUL, NUMPY, SDPA
from attnflow.bench.row import Accurate, AtMost, Compiles, Faster, Grows, Needs, Row, Takes
from attnflow.bench.runs import FULL_DIMENSION, Metastable, PhaseDiagram
from attnflow.errors import unknown

SPHERE = DriftProblem(n=0, d=3, beta=4.0, dtype="float64")
CIRCLE = DriftProblem(n=0, d=2, beta=9.0, dtype="float64")


def powers(first: int, last: int) -> tuple[int, ...]:
    """Powers of two: `powers(3, 5)` is (8, 16, 32)."""
    return tuple(2**k for k in range(first, last + 1))


def wide(d: int, dtype: str) -> Drift:
    """A velocity in high dimension, where matrix products take nearly all of the time."""
    return Drift(
        name=f"d{d}-{dtype}",
        what="drift",
        problem=DriftProblem(n=4096, d=d, beta=4.0, dtype=dtype),
        contenders=(ATTNFLOW, SDPA, MATMUL, JAX_DENSE),
        targets=(Faster(1.0, SDPA.name),),
        quick_n=1024,
    )


ROWS: tuple[Row, ...] = (
    Drift(
        name="d3",
        what="drift",
        problem=DriftProblem(n=16_384, d=3, beta=4.0, dtype="float32"),
        contenders=(BLOCKED, SPECTRAL, SDPA, KEOPS, MATMUL, JAX_DENSE, NUMPY),
        # six blocks of 256 × n scores; all n² would be 1,074 MB
        targets=(Faster(2.5, SDPA.name), Faster(10.0, KEOPS.name), Needs(100.0, BLOCKED.name)),
        measure_memory=(BLOCKED, SPECTRAL, SDPA, KEOPS, MATMUL, JAX_DENSE, NUMPY),
        quick_n=2048,
    ),
    wide(64, "float32"),
    wide(128, "float32"),
    wide(64, "float64"),
    wide(128, "float64"),
    Drift(
        name="circle",
        what="drift on the circle",
        problem=DriftProblem(n=1_000_000, d=2, beta=9.0, dtype="float64"),
        contenders=(SPECTRAL, Scaled(BLOCKED, limit=100_000)),
        targets=(Faster(1000.0, BLOCKED.name), Accurate(1e-12), Grows(1.1)),
        measure_memory=(SPECTRAL,),
        sizes=(125_000, 250_000, 500_000, 1_000_000),
        quick_n=16_384,
    ),
    Drift(
        name="sphere",
        what="drift on S²",
        problem=DriftProblem(n=100_000, d=3, beta=4.0, dtype="float64"),
        contenders=(SPECTRAL, BLOCKED),
        targets=(
            Faster(40.0, BLOCKED.name),
            Accurate(1e-12),
            Compiles(5.0),
            Needs(600.0, BLOCKED.name),
        ),
        measure_memory=(SPECTRAL, BLOCKED),
        quick_n=16_384,
    ),
    Drift(
        name="ensemble",
        what="ensemble",
        problem=DriftProblem(n=32, d=2, beta=4.0, dtype="float32", replicates=512),
        contenders=(ATTNFLOW, MATMUL, SDPA, JAX_DENSE, NUMPY),
        targets=(Faster(1.8, MATMUL.name),),
    ),
    PhaseDiagram(
        n=32,
        d=1024,
        betas=(1.0, 3.0),
        replicates=128,
        targets=(Faster(20.0, FULL_DIMENSION),),
    ),
    Metastable(n=32, beta=16.0, stop=1e14, starts=5, targets=(Takes(1.0),)),
    ColdStart(starts=3, targets=(Takes(6.0),)),
    FirstResult(starts=5, targets=(AtMost(3.5, COMPILED), AtMost(6.0, EMPTY))),
    NewSize(starts=3, targets=(Takes(1.0, EMPTY), Takes(0.5, COMPILED))),
    *(SmallRun(n, targets=(Faster(2.5, SCIPY),)) for n in (16, 64, 256)),
    Gradient(targets=(AtMost(1.5, UNJITTED),)),
    Growth(
        name="growth",
        what="time of one drift against n, β = 4 (on the circle 9), float64",
        series=(
            (SPECTRAL, CIRCLE, powers(10, 20)),
            (SPECTRAL, SPHERE, powers(10, 20)),
            (BLOCKED, SPHERE, powers(10, 16)),
            (DENSE, SPHERE, powers(10, 13)),
            (SDPA, SPHERE, powers(10, 16)),
            (MATMUL, SPHERE, powers(10, 13)),
            (KEOPS, SPHERE, powers(10, 16)),
            (JAX_DENSE, SPHERE, powers(10, 13)),
            (NUMPY, SPHERE, powers(10, 13)),
        ),
        quick_sizes=powers(9, 12),
    ),
)
"""All rows, in the order in which they are measured."""


def select_rows(names: list[str]) -> list[Row]:
    """The rows with these names, in the order of the list; all rows if there are no names."""
    known = {row.name: row for row in ROWS}
    for name in names:
        if name not in known:
            raise unknown("row", name, known)
    return [row for row in ROWS if not names or row.name in names]
