"""A small program that uses attnflow as the README does; mypy reads it strictly, nobody runs it."""

from pathlib import Path

import jax
import numpy as np

import attnflow as af

x0 = af.initial.sphere(n=64, d=3, key=0)
system: af.System = af.SA(beta=4.0, V=-1.0, mask="causal")
run: af.Trajectory = af.simulate(system, x0, np.linspace(0, 30, 61), method=af.Fixed(dt=0.1))
run.save("run.zarr")
noisy = af.simulate(af.Noisy(af.SA(1.0), sigma=0.1), x0, [0.0, 1.0], key=1)

clusters: int = af.observe.clusters(run.final, tol=1e-2).count
energy = af.observe.energy(noisy.final, beta=4.0)
P = af.observe.attention(system, run.final)
rank = af.observe.rank(P)

wendel: float = af.theory.wendel(3, 2)
geometry: str = af.theory.limit_geometry(Q=None, K=None, V=np.eye(2)).kind
outcome = af.theory.check("T6.8", key=3)
holds: bool = outcome.verdict == "holds"

spec = af.spec.read_sweep(Path("examples/sweeps/circle.toml"))
tally = af.sweep.run(spec, "circle.zarr", workers=2, on_progress=lambda tally: print(tally.done))
complete: bool = tally.complete
data = af.sweep.load("circle.zarr")

report = af.report.summarise(run)
af.plot.overview(run, report, title="SA", path=Path("run.png"))
af.plot.sweep_diagram(data, path=Path("circle.png"))


class Still(af.System):
    """Nothing moves."""

    equation = "x' = 0"
    source = "an example"
    space: af.spaces.Space = af.spaces.Euclidean()

    def velocity(self, t: object, x: jax.Array, masses: object = None) -> jax.Array:
        """Zero."""
        return 0 * x


try:
    af.simulate(Still(), x0, [0.0, 1.0])
except af.IncompleteRun as error:
    print(error.time, error.trajectory)
