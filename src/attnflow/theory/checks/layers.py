"""R4: what holds for rescaled attention holds for its discrete layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from attnflow.simulation import Layers
from attnflow.theory.checks.base import Check, Draw, Trial
from attnflow.theory.checks.hyperplanes import Hyperplanes
from attnflow.theory.checks.polytope import Polytope


class DiscreteLayers(Check):
    """The trials of T3.1 and T4.1, run as layers [E] Remark 4."""

    id = "R4"
    source = "[E] Remark 4"
    hypothesis = "layers z ← z + Δt Σ_j A_ij(R^k z) R⁻¹V(z_j − z_i), R = I + ΔtV, Δt = ¼"
    conclusion = "T3.1, T4.1 and the shrinking hull, as for the flow"
    settings = "as for T3.1 and T4.1"

    def trials(self, key: int) -> Iterator[Trial]:
        """Those of the flow with `Layers`, in R³ of T3.1 alone."""
        for check in (Polytope(), Hyperplanes()):
            for trial in check.trials(key):
                if (check.id, trial.about["d"]) == ("T4.1", 3):
                    continue
                about = {"of": check.id} | trial.about
                yield replace(trial, about=about, method=Layers(dt=0.25), data=check)

    def judge(self, trial: Trial) -> Sequence[Draw]:
        """As for the flow."""
        return trial.data.judge(trial)
