"""Systems whose answer is known, shared by the tests of every method."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import attnflow as af
import reference


class Known(NamedTuple):
    """A system, a start, times, and the pairwise cosines that must come out."""

    name: str
    system: af.System
    x0: jnp.ndarray
    ts: np.ndarray
    cosine: np.ndarray


def _orthogonal(name: str, make: Callable[[float], af.System], beta: float) -> Known:
    n, ts = 8, np.linspace(0, 4, 9)
    x0 = af.initial.orthogonal(n=n, d=10, key=1)
    cosine = reference.gamma(beta, n, ts, normalised=make is af.SA)
    return Known(f"{name} orthogonal beta={beta}", make(beta), x0, ts, cosine)


def _pair(name: str, make: Callable[[float], af.System], beta: float) -> Known:
    ts, c0 = np.linspace(0, 3, 7), -0.7
    x0 = jnp.array([[1.0, 0, 0], [c0, np.sqrt(1 - c0**2), 0]])
    cosine = reference.two_tokens(beta, c0, ts, normalised=make is af.SA)
    return Known(f"{name} pair beta={beta}", make(beta), x0, ts, cosine)


KINDS = (("SA", af.SA), ("USA", af.USA))
ORTHOGONAL = [_orthogonal(name, make, beta) for name, make in KINDS for beta in (0.0, 1.0, 4.0)]
PAIRS = [_pair(name, make, beta) for name, make in KINDS for beta in (0.0, 1.0, 4.0)]


def cosines(xs: np.ndarray) -> np.ndarray:
    """All cosines of different tokens, (T, pairs)."""
    xs = np.asarray(xs)
    i, j = np.triu_indices(xs.shape[1], 1)
    return np.einsum("tpd,tpd->tp", xs[:, i], xs[:, j])
