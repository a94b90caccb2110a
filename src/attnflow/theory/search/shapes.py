"""Problem 5: what do tokens settle on where Table 1 of [E] proves nothing?"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from attnflow import initial, weights
from attnflow.errors import InputError
from attnflow.systems import RescaledAttention
from attnflow.theory.checks.base import Trial
from attnflow.theory.geometry import limit_geometry
from attnflow.theory.limits import late, leading_coordinates, measured_geometry, still_moving
from attnflow.theory.search.base import MAX_DRAWS, Finding, Question
from attnflow.theory.search.codimension import MAX_STEPS, value


class Shapes(Question):
    """Problem 5 of [P]: other (Q, K, V) than those of Table 1."""

    id = "problem-5"
    aliases = ("P5",)
    source = "[P] Problem 5"
    statement = "also where nothing is proven tokens settle on (∂K ∪ {0}) × G"
    looks_for = "tokens at rest inside K, away from 0"
    kinds = ("identity", "rotation", "Ginibre", "paranormal")

    def draw(self, key: Any) -> Trial:
        """Ginibre Q and K, V of any kind that grows, until no row of Table 1 applies."""
        n, d = 16, 3
        for attempt in range(MAX_DRAWS):
            which, scores, draw, tokens = jax.random.split(jax.random.fold_in(key, attempt), 4)
            kind = self.kinds[int(jax.random.randint(which, (), 0, len(self.kinds)))]
            Q, K = weights.ginibre(d, heads=2, scale=d**-0.5, key=scores)
            V = np.asarray(value(kind, d, draw))
            grows = np.linalg.eigvals(V).real.max() > 0.3
            if grows and limit_geometry(Q, K, V).theorem is None:
                break
        else:
            raise InputError(
                f"{self.id}: none of {MAX_DRAWS} draws had a V that grows and no row of Table 1 "
                f"that applies: take other kinds of V than {', '.join(self.kinds)}."
            )
        x0 = initial.cube(n, d, side=8.0, key=tokens)
        ts = np.array([0.0, 20.0, 25.0])
        return Trial(
            {"n": n, "d": d, "V": kind}, RescaledAttention(Q=Q, K=K, V=V), x0, ts, late(MAX_STEPS)
        )

    def look(self, trial: Trial) -> Finding:
        """Classify the run."""
        run = trial.run()
        found = measured_geometry(run, tol=1e-2)
        kind = f"V {trial.about['V']}: {found.kind}"
        if found.kind != "unsettled":
            many = f"{found.points} points" if found.points > 1 else "one point"
            return Finding(f"{kind}, {many} in F")
        span = float(run.ts[-1])
        V = np.asarray(trial.system.heads.V)
        F = leading_coordinates(V, V.shape[-1] if V.ndim else 3, 1 / span)
        along = np.asarray(run.along(F))
        if still_moving(along, 1e-3):
            return Finding(f"V {trial.about['V']}: still moving")
        sentence = f"a token rests {found.residual:.3f} of K's size away from ∂K ∪ {{0}}"
        return Finding(f"V {trial.about['V']}: rests inside K", True, sentence)
