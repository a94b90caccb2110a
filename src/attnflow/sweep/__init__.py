"""Many runs: grids of cells with realisations, saved in a Zarr store that survives a crash."""

from attnflow.retired import renamed_names
from attnflow.sweep.driver import Failure, SweepProgress, load, run
from attnflow.sweep.plan import Plan, plan
from attnflow.sweep.status import Status, status

__all__ = ["Failure", "Plan", "Status", "SweepProgress", "load", "plan", "run", "status"]

__getattr__ = renamed_names(__name__, {"Tally": "SweepProgress"})
