"""A second, slow and literal implementation of the equations of theory.md, for use as an oracle.

Tokens are rows: x has shape (n, d). Qs, Ks, Vs are lists with one matrix per head, Q and K of
shape (k, d), V of shape (d, d). masses is None (all ones) or (n,). mask is None or a boolean
(n, n) where mask[i, j] says that token i may attend to token j.
"""

from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

# ---------------------------------------------------------------------------------------------
# Attention and the velocities that follow from it
# ---------------------------------------------------------------------------------------------


def attention_matrix(x, Q, K, beta, masses=None, mask=None, normalised=True) -> np.ndarray:
    """A_ij = m_j e^{beta s_ij} / Z_i (E1), or over the total mass instead of Z_i (USA)."""
    n = len(x)
    m = np.ones(n) if masses is None else np.asarray(masses, dtype=float)
    A = np.zeros((n, n))
    for i in range(n):
        seen = [j for j in range(n) if (mask is None or mask[i, j]) and m[j] > 0]
        if not seen:
            if normalised:
                raise ValueError(f"token {i} has nothing to attend to, so its softmax is undefined")
            continue
        scores = {j: beta * np.dot(Q @ x[i], K @ x[j]) for j in seen}
        if normalised:
            top = max(scores.values())
            Z = sum(m[j] * np.exp(scores[j] - top) for j in seen)
            for j in seen:
                A[i, j] = m[j] * np.exp(scores[j] - top) / Z
        else:
            for j in seen:
                A[i, j] = m[j] * np.exp(scores[j]) / np.sum(m)
    return A


def drift(x, Qs, Ks, Vs, beta, masses=None, mask=None, normalised=True) -> np.ndarray:
    """E1, EH: sum over heads h and tokens j of A^h_ij V_h x_j."""
    n = len(x)
    out = np.zeros(np.shape(x))
    for Q, K, V in zip(Qs, Ks, Vs, strict=True):
        A = attention_matrix(x, Q, K, beta, masses, mask, normalised)
        for i in range(n):
            for j in range(n):
                out[i] += A[i, j] * (V @ x[j])
    return out


def _remove_normal(v, normal) -> np.ndarray:
    """The part of the vector v that is orthogonal to the vector normal."""
    return v - np.dot(normal, v) / np.dot(normal, normal) * normal


def sphere_velocity(x, Qs, Ks, Vs, beta, masses=None, mask=None, normalised=True) -> np.ndarray:
    """P23, SA, USA: the drift under P_perp at x_i."""
    v = drift(x, Qs, Ks, Vs, beta, masses, mask, normalised)
    return np.array([_remove_normal(v[i], x[i]) for i in range(len(x))])


def ellipsoid_velocity(
    x, D, Qs, Ks, Vs, beta, masses=None, mask=None, normalised=True
) -> np.ndarray:
    """RMS row: the drift projected to the tangent space of |D^{-1} x| = 1, normal D^{-2} x."""
    v = drift(x, Qs, Ks, Vs, beta, masses, mask, normalised)
    return np.array([_remove_normal(v[i], x[i] / D**2) for i in range(len(x))])


def rescaled_velocity(t, z, Qs, Ks, Vs, beta, masses=None) -> np.ndarray:
    """E4 for z = e^{-tV} x; with several heads the form with Vbar = sum_h V_h."""
    n = len(z)
    Vbar = sum(Vs)
    grow, shrink = expm(t * Vbar), expm(-t * Vbar)
    x = np.array([grow @ z[i] for i in range(n)])
    out = np.zeros(np.shape(z))
    if len(Vs) == 1:
        A = attention_matrix(x, Qs[0], Ks[0], beta, masses)
        for i in range(n):
            for j in range(n):
                out[i] += A[i, j] * (Vs[0] @ (z[j] - z[i]))
        return out
    for Q, K, V in zip(Qs, Ks, Vs, strict=True):
        A = attention_matrix(x, Q, K, beta, masses)
        for i in range(n):
            for j in range(n):
                out[i] += A[i, j] * (shrink @ V @ grow @ z[j])
    for i in range(n):
        out[i] -= Vbar @ z[i]
    return out


# ---------------------------------------------------------------------------------------------
# Layers: maps in discrete time
# ---------------------------------------------------------------------------------------------


def euler_layer(x, dt, Qs, Ks, Vs, beta, masses=None, mask=None, normalised=True) -> np.ndarray:
    """E3: one forward Euler step of E1."""
    return x + dt * drift(x, Qs, Ks, Vs, beta, masses, mask, normalised)


def rescaled_layer(k, z, dt, Qs, Ks, Vs, beta, masses=None) -> np.ndarray:
    """E4d: layer k -> k+1 of z^k = R^{-k} x^k, R = I + dt V (several heads: V = sum_h V_h)."""
    n, d = np.shape(z)
    R = np.eye(d) + dt * sum(Vs)
    Rk = np.linalg.matrix_power(R, k)
    x = np.array([Rk @ z[i] for i in range(n)])
    if len(Vs) == 1:
        A = attention_matrix(x, Qs[0], Ks[0], beta, masses)
        step = np.linalg.inv(R) @ Vs[0]
        out = np.array(z, dtype=float)
        for i in range(n):
            for j in range(n):
                out[i] += dt * A[i, j] * (step @ (z[j] - z[i]))
        return out
    y = euler_layer(x, dt, Qs, Ks, Vs, beta, masses)
    back = np.linalg.inv(np.linalg.matrix_power(R, k + 1))
    return np.array([back @ y[i] for i in range(n)])


def sphere_layer(x, dt, Qs, Ks, Vs, beta, masses=None, mask=None, normalised=True) -> np.ndarray:
    """SAd: the full residual step, then each row divided by its norm."""
    y = euler_layer(x, dt, Qs, Ks, Vs, beta, masses, mask, normalised)
    return np.array([row / np.linalg.norm(row) for row in y])


def rms_post_layer(
    x, dt, D, Qs, Ks, Vs, beta, masses=None, mask=None, normalised=True
) -> np.ndarray:
    """RMS, post-norm: y = x + dt drift(x), then x <- D y / |y| by row."""
    y = euler_layer(x, dt, Qs, Ks, Vs, beta, masses, mask, normalised)
    return np.array([D * row / np.linalg.norm(row) for row in y])


def rms_pre_layer(
    x, dt, D, Qs, Ks, Vs, beta, masses=None, mask=None, normalised=True
) -> np.ndarray:
    """RMS, pre-norm: x <- x + dt drift(N(x)) with N(x) = D x / |x| by row."""
    normed = np.array([D * row / np.linalg.norm(row) for row in x])
    return x + dt * drift(normed, Qs, Ks, Vs, beta, masses, mask, normalised)


# ---------------------------------------------------------------------------------------------
# Trajectories
# ---------------------------------------------------------------------------------------------


def _solve(f, y0, ts, rtol, atol) -> np.ndarray:
    """y at each of ts, y(ts[0]) = y0. Every save time ends a solve: nothing is interpolated."""
    ys = [np.array(y0, dtype=float)]
    for a, b in pairwise(ts):
        sol = solve_ivp(f, (a, b), ys[-1], method="DOP853", rtol=rtol, atol=atol)
        if not sol.success:
            raise RuntimeError(sol.message)
        ys.append(sol.y[:, -1])
    return np.array(ys)


def gamma(beta, n, ts, normalised=True) -> np.ndarray:
    """T6.8: the common cosine of n orthonormal tokens under SA or USA at times ts, ts[0] = 0."""
    if ts[0] != 0:
        raise ValueError("ts must start at 0, where gamma is 0")

    def rhs(_t, g):
        if normalised:  # numerator and denominator of T6.8 both divided by e^beta
            e = np.exp(beta * (g - 1))
            return 2 * e * (1 - g) * ((n - 1) * g + 1) / (1 + (n - 1) * e)
        return 2 / n * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1)

    return _solve(rhs, [0.0], ts, rtol=1e-12, atol=1e-14)[:, 0]


def two_tokens(beta, c0, ts, normalised=True) -> np.ndarray:
    """SA, USA with n = 2: x_1' = w (x_2 - c x_1), hence c' = 2 w (1 - c^2) for c = <x_1, x_2>."""

    def rhs(_t, c):
        if normalised:  # w = e^{beta c} / (e^beta + e^{beta c})
            e = np.exp(beta * (c - 1))
            w = e / (1 + e)
        else:
            w = np.exp(beta * c) / 2
        return 2 * w * (1 - c) * (1 + c)

    return _solve(rhs, [c0], ts, rtol=1e-12, atol=1e-14)[:, 0]


def integrate(velocity, x0, ts, rtol=1e-12, atol=1e-13) -> np.ndarray:
    """The solution of x' = velocity(t, x), x(ts[0]) = x0, at times ts: shape (len(ts), n, d)."""
    shape = np.shape(x0)

    def rhs(t, flat):
        return np.ravel(velocity(t, flat.reshape(shape)))

    return _solve(rhs, np.ravel(x0), ts, rtol, atol).reshape(len(ts), *shape)
