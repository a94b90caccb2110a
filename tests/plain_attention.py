"""Attention of extracted heads in plain NumPy, one head after the other."""

import numpy as np


def scores(heads, h, beta, y):
    """The scores of head h, (n, n)."""
    q, k = (
        y @ np.asarray(W[h]).T + (0 if b is None else np.asarray(b[h]))
        for W, b in ((heads.Q, heads.b_Q), (heads.K, heads.b_K))
    )
    if heads.rotary is None:
        return beta * q @ k.T
    turns = np.exp(1j * np.outer(np.arange(len(y)), heads.rotary.frequencies))
    half = turns.shape[1]
    q, k = ((w[:, :half] + 1j * w[:, half:]) * turns for w in (q, k))
    return beta * (q @ k.conj().T).real


def softmax(s, causal):
    s = np.where(np.tri(len(s), dtype=bool), s, -np.inf) if causal else s
    A = np.exp(s - s.max(axis=1, keepdims=True))
    return A / A.sum(axis=1, keepdims=True)


def added(heads, beta, y, causal):
    """What all heads add to the tokens, from the extracted matrices alone."""
    total = np.zeros_like(y) + (0 if heads.b_O is None else np.asarray(heads.b_O))
    for h in range(heads.count):
        v = y @ np.asarray(heads.V[h]).T + (0 if heads.b_V is None else np.asarray(heads.b_V[h]))
        total += softmax(scores(heads, h, beta, y), causal) @ v
    return total
