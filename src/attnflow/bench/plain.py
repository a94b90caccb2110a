"""What one would write without attnflow: SA with NumPy and SciPy. Run as a script, it is timed.

It imports nothing of attnflow, so that `python plain.py` costs what such a script costs.
"""

import numpy as np
from scipy.integrate import solve_ivp


def run_plain(
    x0: np.ndarray, ts: np.ndarray, beta: float, rtol: float = 1e-8, atol: float = 1e-10
) -> np.ndarray:
    """The states of SA at the times ts, by SciPy's DOP853.

    Args:
        x0: unit tokens, shape (n, d).
        ts: increasing times, shape (T,).
        beta: inverse temperature β.
        rtol: relative tolerance.
        atol: absolute tolerance.

    Returns:
        The states, shape (T, n, d).
    """

    def velocity(t: float, y: np.ndarray) -> np.ndarray:
        x = y.reshape(x0.shape)
        scores = beta * (x @ x.T)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        v = weights @ x / weights.sum(axis=1, keepdims=True)
        return (v - (v * x).sum(axis=1, keepdims=True) * x).ravel()

    run = solve_ivp(velocity, ts[[0, -1]], x0.ravel(), "DOP853", t_eval=ts, rtol=rtol, atol=atol)
    return run.y.T.reshape(len(ts), *x0.shape)


if __name__ == "__main__":
    start = np.random.default_rng(0).normal(size=(64, 3))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    run_plain(start, np.linspace(0, 30, 61), beta=4.0)
