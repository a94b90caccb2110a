"""Many runs: grids of cells with realisations, saved in a Zarr store that survives a crash."""

from attnflow.sweep.driver import Failure, Tally, load, run
from attnflow.sweep.plan import Plan, plan
from attnflow.sweep.status import Status, status

__all__ = ["Failure", "Plan", "Status", "Tally", "load", "plan", "run", "status"]
