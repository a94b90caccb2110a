"""Many tokens and their density: they are the same flow, up to the error of a sample."""

import numpy as np
import pytest
from scipy.special import iv

import attnflow as af
from attnflow import meanfield

CELLS = 4096


def shape(theta):
    return 1 + 0.6 * np.cos(theta) + 0.4 * np.sin(2 * theta)


def tokens_at(levels):
    """Tokens at these levels of the distribution function of the density."""
    grid = np.linspace(0, 2 * np.pi, 20001)
    steps = (shape(grid[1:]) + shape(grid[:-1])) / 2
    below = np.concatenate([[0], np.cumsum(steps)]) / steps.sum()
    theta = np.interp(levels, below, grid)
    return np.stack([np.cos(theta), np.sin(theta)], axis=-1)


def drawn(n, key):
    """Independent tokens of the density."""
    return tokens_at(np.random.default_rng(key).random(n))


def w1(x, rho):
    """W1 on the circle: the mean distance of the two distribution functions from their median."""
    theta = np.mod(np.arctan2(x[:, 1], x[:, 0]), 2 * np.pi)
    count, _ = np.histogram(theta, len(rho), (0, 2 * np.pi))
    width = 2 * np.pi / len(rho)
    apart = np.cumsum(count / len(x) - np.asarray(rho)[:, 0] * width)
    return width * np.abs(apart - np.median(apart)).sum()


def energy(x, beta):
    """E_β of tokens on the circle, through `e^{β cos} = I_0 + 2 Σ I_k cos k·`."""
    theta, k = np.arctan2(x[:, 1], x[:, 0]), np.arange(40)
    sums = np.array([np.abs(np.exp(1j * order * theta).mean()) ** 2 for order in k])
    return np.sum(np.where(k > 0, 2, 1) * iv(k, beta) * sums) / (2 * beta)


def followed(kind, beta, x0):
    """W1 at three times until clusters form, in units of the fastest mode's growth.

    And W1 between the tokens at the end and the density of the start, which is how far all moved.
    Energy grows along both.
    """
    fastest = af.theory.linear_growth(beta, 2, np.arange(1, 9), kind is af.SA).max()
    ts, method = np.array([0, 0.5, 1.0]) / fastest, af.Fixed(1 / (24 * fastest))
    limit, start = meanfield.CircleModes(kind(beta)), meanfield.density(shape, 512)
    smooth = af.simulate(limit, meanfield.modes(start, 63), ts, method=method)
    assert float(limit.tail(smooth.final)) < 1e-3
    backend = "spectral" if len(x0) > 5000 else None
    tokens = np.asarray(af.simulate(kind(beta, backend=backend), x0, ts, method=method).xs)
    densities = [limit.density(c, CELLS) for c in smooth.xs]
    energies = np.array(
        [[energy(x, beta), limit.energy(c)] for x, c in zip(tokens, smooth.xs, strict=True)]
    )
    assert np.all(np.diff(energies, axis=0) > 0)
    assert np.abs(energies[:, 0] / energies[:, 1] - 1).max() < 5 / np.sqrt(len(x0))
    apart = [w1(x, rho) for x, rho in zip(tokens, densities, strict=True)]
    return np.array(apart), w1(tokens[-1], densities[0])


def test_tokens_at_quantiles_follow_their_density():
    """Without the error of a sample, tokens and density differ by about 1/n."""
    apart, moved = followed(af.SA, 5.0, tokens_at((np.arange(1000) + 0.5) / 1000))
    assert apart.max() < 5e-3
    assert moved > 10 * apart.max()


@pytest.mark.slow
@pytest.mark.parametrize("beta", [1.0, 5.0])
@pytest.mark.parametrize("kind", [af.SA, af.USA])
def test_a_hundred_thousand_tokens_follow_at_the_rate_of_a_sample(kind, beta):
    """√n W1 is about the same for 10³ and 10⁵ tokens, at every time until clusters form."""
    n = 100_000
    many, moved = followed(kind, beta, drawn(n, key=0))
    few = np.mean([followed(kind, beta, drawn(1000, key))[0] for key in range(4)], axis=0)
    assert np.all(np.sqrt(n) * many < 4)
    assert np.all(np.sqrt(n) * many < 2.5 * np.sqrt(1000) * few)
    assert moved > 6 * many[-1]
