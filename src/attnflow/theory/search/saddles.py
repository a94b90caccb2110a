"""Problem 3: is every critical point of E_β on the circle, but the maximum, a strict saddle?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from attnflow.observe import diameter, gradient, hessian
from attnflow.systems import USA
from attnflow.theory.checks.base import Trial
from attnflow.theory.search.base import Finding, Question

GRADIENT_TOL = 1e-11
"""A gradient below this, in units of the Hessian, is that of a critical point."""

EIGENVALUE_TOL = 1e-9
"""An eigenvalue above this part of the largest modulus is positive."""


class Saddles(Question):
    """Problem 3 of [P], where it is open: between β = 1 and β of the order of n²."""

    id = "problem-3"
    aliases = ("P3",)
    source = "[P] Problem 3"
    statement = (
        "every critical point of E_β on the circle that is not one cluster is a strict saddle"
    )
    looks_for = "a critical point without an eigenvalue of the Hessian above 1e-9 of the largest"
    sizes = (3, 5, 8)

    def draw(self, key: Any) -> Trial:
        """Random angles, from which a critical point is solved for; β between 1 and 8."""
        which, size, tokens = jax.random.split(key, 3)
        n = self.sizes[int(jax.random.randint(which, (), 0, len(self.sizes)))]
        beta = float(jax.random.uniform(size, (), minval=1.0, maxval=8.0))
        x0 = on_circle(jax.random.uniform(tokens, (n,), maxval=2 * np.pi))
        return Trial({"n": n, "β": beta}, USA(beta), x0, np.linspace(0.0, 10.0, 11))

    def look(self, trial: Trial) -> Finding:
        """The Hessian at the critical point that Newton's method finds from the start."""
        beta = trial.about["β"]
        x, steepness = critical_point(trial.x0, beta)
        eigenvalues = np.linalg.eigvalsh(np.asarray(hessian(x, beta)))
        scale = np.abs(eigenvalues).max()
        if steepness > GRADIENT_TOL * scale:
            return Finding("no critical point found")
        if float(diameter(x)) < 1e-4:
            return Finding("one cluster")
        index = int((eigenvalues > EIGENVALUE_TOL * scale).sum())
        if index:
            return Finding(f"strict saddle of index {index}")
        sentence = f"largest eigenvalue {eigenvalues.max() / scale:.1e} of the largest modulus"
        return Finding("no strict saddle", True, sentence, replace(trial, x0=x))

    def tighter(self, trial: Trial) -> Trial:
        """From the critical point itself, so that Newton's method only sharpens it."""
        return replace(trial, x0=critical_point(trial.x0, trial.about["β"])[0])


def on_circle(angles: Any) -> Any:
    """Tokens on the unit circle."""
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)


def critical_point(x0: Any, beta: float) -> tuple[Any, float]:
    """A critical point of E_β near tokens on the circle, and the largest slope that is left."""

    def slope(angles: np.ndarray) -> np.ndarray:
        across = on_circle(angles + np.pi / 2)
        return np.asarray((gradient(on_circle(angles), beta) * across).sum(axis=-1))

    def jacobian(angles: np.ndarray) -> np.ndarray:
        return np.asarray(hessian(on_circle(angles), beta))

    angles = np.arctan2(*np.asarray(x0).T[::-1])
    found = scipy.optimize.root(slope, angles, jac=jacobian, method="hybr", options={"xtol": 1e-15})
    return on_circle(found.x), float(np.abs(slope(found.x)).max())
