"""Problem 1: do tokens rest near a few clusters for long, before they become one?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from attnflow import initial
from attnflow.observe import cluster_history
from attnflow.simulation import Coarsening
from attnflow.systems import SA
from attnflow.theory.checks.base import Trial
from attnflow.theory.search.base import Finding, Question

MIN_DECADES = 1.0
"""A state is metastable when it lasts until ten times the time at which it formed."""


class Metastability(Question):
    """Problem 1 of [P], at large β on the circle and on S²."""

    id = "problem-1"
    aliases = ("P1",)
    source = "[P] Problem 1"
    statement = "for large β tokens stay near m clusters, 1 < m ≤ n/2, for long before they are one"
    looks_for = "a start that goes to one cluster with no such state lasting a decade of time"

    def draw(self, key: Any) -> Trial:
        """A uniform start and a β between 8 and 24."""
        which, size, tokens = jax.random.split(key, 3)
        d = 2 + int(jax.random.randint(which, (), 0, 2))
        beta = float(jax.random.uniform(size, (), minval=8.0, maxval=24.0))
        x0 = initial.sphere(16, d, key=tokens)
        ts = np.concatenate([[0.0], np.geomspace(0.1, 1e16, 120)])
        return Trial({"n": 16, "d": d, "β": beta}, SA(beta), x0, ts, Coarsening())

    def look(self, trial: Trial) -> Finding:
        """The longest time, in decades, at a count of clusters between 1 and n/2."""
        history = cluster_history(trial.run(), tol=1e-2)
        times, counts = history.times[1:], history.counts[1:]
        lasted = {
            int(m): float(np.log10(times[counts == m][-1] / times[counts == m][0]))
            for m in np.unique(counts)
            if 1 < m <= len(trial.x0) // 2
        }
        m = max(lasted, key=lasted.__getitem__) if lasted else 1
        longest = lasted.get(m, 0.0)
        if longest < MIN_DECADES and counts[-1] == 1:
            return Finding("none", True, f"one cluster; {m} clusters lasted {longest:.2f} decades")
        return Finding(f"{m} clusters lasted", sentence=f"{longest:.1f} decades")

    def tighter(self, trial: Trial) -> Trial:
        """The same start with a smaller eps and tolerances, up to the same time."""
        return replace(super().tighter(trial), ts=trial.ts)
