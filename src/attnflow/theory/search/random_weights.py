"""Problem 2: do all cosines follow one curve when Q, K, V are random?"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from attnflow import initial, weights
from attnflow.systems import SA
from attnflow.theory.checks.base import Trial
from attnflow.theory.checks.orthogonal import cosines
from attnflow.theory.search.base import Finding, Question

N, D = 8, 128


class RandomWeights(Question):
    """Problem 2 of [P]: T6.8 and T6.9 for random matrices."""

    id = "problem-2"
    aliases = ("P2",)
    source = "[P] Problem 2"
    statement = (
        "with random Q, K and V, from uniform starts in high dimension, all cosines follow one "
        "curve to O(√(log d/d))"
    )
    looks_for = f"weights, d = {D}, for which some cosine leaves the mean of all by 4√(log d/d)"

    def draw(self, key: Any) -> Trial:
        """Q, K Ginibre or QᵀK Wigner; V = I, Ginibre or ≻ 0; β between ½ and 9 ([P] Fig. 5)."""
        which, size, scores, values, tokens = jax.random.split(key, 5)
        pick = int(jax.random.randint(which, (), 0, 6))
        asked, valued = pick % 2, pick // 2
        Q, K = weights.ginibre(D, heads=2, scale=D**-0.25, key=scores)
        if asked:
            Q, K = weights.goe(D, key=scores), None
        V = (None, weights.ginibre(D, scale=D**-0.5, key=values), weights.wishart(D, key=values))
        beta = float(jax.random.uniform(size, (), minval=0.5, maxval=9.0))
        about = {
            "n": N,
            "d": D,
            "β": beta,
            "QK": ("Ginibre", "Wigner")[asked],
            "V": ("identity", "Ginibre", "positive")[valued],
        }
        x0 = initial.sphere(N, D, key=tokens)
        return Trial(about, SA(beta, Q=Q, K=K, V=V[valued]), x0, np.linspace(0.0, 20.0, 21))

    def look(self, trial: Trial) -> Finding:
        """How far a cosine is from the mean of all, at the worst time."""
        run = trial.run()
        c = cosines(run.xs)
        far = np.abs(c - c.mean(axis=-1, keepdims=True)).max(axis=-1)
        worst = int(np.argmax(far))
        limit = 4 * np.sqrt(np.log(D) / D)
        sentence = f"a cosine is {far[worst]:.3f} from the mean of all at t = {run.ts[worst]:g}"
        kind = "one curve" if far[worst] <= limit else "several curves"
        return Finding(f"V {trial.about['V']}: {kind}", bool(far[worst] > limit), sentence)
