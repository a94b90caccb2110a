"""How often random tokens lie in one half of the sphere, and whether given ones do (T6.7)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy
from jaxtyping import ArrayLike, Bool, Float, Real

from attnflow.checks import require_count, require_finite
from attnflow.errors import InputError

SOLVER_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def wendel(n: int, d: int) -> float:
    """The probability that n uniform tokens on S^{d−1} lie in some open hemisphere (Wendel).

        2^{−(n−1)} Σ_{k<d} C(n−1, k)

    Under SA with V = I such tokens end in one cluster (L6.4). Exact until it is rounded to a float.

    >>> wendel(3, 2), wendel(5, 8)
    (0.75, 1.0)
    """
    n, d = require_count(n, "n"), require_count(d, "d")
    ways = term = 1
    for k in range(1, min(n, d)):
        term = term * (n - k) // k
        ways += term
    return float(Fraction(ways, 2 ** (n - 1)))


def in_hemisphere(
    x: Real[ArrayLike, "*batch n d"], tol: float | int = 1e-9
) -> Bool[np.ndarray, "*batch"]:
    """Whether some w has `<w, x_i> > 0` for every token: the hypothesis of L6.4.

    Tokens are taken at unit length, and the least cosine with w has to exceed `tol`. On the circle
    that is a gap of more than π between neighbours; in other dimensions a linear program decides
    for each member of the batch where w = Σ x_i does not do it. Runs on the host.

    >>> bool(in_hemisphere(np.array([[1.0, 0.0], [-0.9, 0.1]])))
    True
    >>> in_hemisphere(np.array([[[1.0, 0.0], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]))
    array([False,  True])
    """
    require_finite(x, "x")
    tokens = np.asarray(x, float)
    if tokens.ndim < 2 or 0 in tokens.shape[-2:]:
        raise InputError(f"x must have shape (*batch, n, d), but its shape is {tokens.shape}.")
    length = np.linalg.norm(tokens, axis=-1, keepdims=True)
    if not np.all(length > 0):
        raise InputError("x has a token at the origin, which is in no open hemisphere.")
    tokens = tokens / length
    if tokens.shape[-1] == 2:
        return _in_half_circle(tokens, tol)
    found = np.asarray(_margin(tokens, tokens.sum(axis=-2)) > tol)
    for index in np.argwhere(~found):
        one = tokens[tuple(index)]
        found[tuple(index)] = _margin(one, _best_direction(one)) > tol
    return found


def _in_half_circle(x: Float[np.ndarray, "*batch n 2"], tol: float | int) -> np.ndarray:
    angles = np.sort(np.arctan2(x[..., 1], x[..., 0]), axis=-1)
    around = angles[..., :1] + 2 * np.pi
    gaps = np.diff(np.concatenate([angles, around], axis=-1), axis=-1)
    return np.asarray(np.sin((gaps.max(axis=-1) - np.pi) / 2) > tol)


def _margin(x: Float[np.ndarray, "*batch n d"], w: Float[np.ndarray, "*batch d"]) -> np.ndarray:
    """The least cosine of a token with w."""
    length = np.maximum(np.linalg.norm(w, axis=-1), np.finfo(float).tiny)
    return np.asarray(np.einsum("...nd,...d->...n", x, w).min(axis=-1) / length)


def _best_direction(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " d"]:
    """The w in the unit cube whose least `<w, x_i>` is largest."""
    n, d = x.shape
    rows = np.column_stack([-x, np.ones(n)])
    bounds = [(-1, 1)] * d + [(None, 1)]
    found = scipy.optimize.linprog(
        -np.eye(d + 1)[d], rows, np.zeros(n), bounds=bounds, options=SOLVER_TOLERANCES
    )
    if found.x is None:
        raise RuntimeError(f"the linear program for a hemisphere was not solved: {found.message}")
    return found.x[:d]
