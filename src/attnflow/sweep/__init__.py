"""Many runs: grids of cells with realisations, kept in a Zarr store that survives being killed."""

from attnflow.sweep.driver import Failure, Tally, load, run
from attnflow.sweep.plan import Plan, plan
from attnflow.sweep.status import Status, status

__all__ = ["Failure", "Plan", "Status", "Tally", "load", "plan", "run", "status"]
