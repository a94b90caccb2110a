"""The repulsive flow as a solver: closed forms of the least energies, and published minima."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import attnflow as af
from attnflow.errors import InputError
from attnflow.observe import gradient, hessian
from attnflow.theory import log_pair_sum, optimal_configuration, sharp


def from_row(row, beta):
    """E_β where every point sees others at the same inner products: (value, how many)."""
    n = 1 + sum(count for _, count in row)
    return (np.exp(beta) + sum(c * np.exp(beta * s) for s, c in row)) / (2 * beta * n)


def plain_energy(x, beta):
    s = np.asarray(x) @ np.asarray(x).T
    return np.exp(beta * s).sum() / (2 * beta * len(x) ** 2)


def shaken(x, size, *batch):
    rng = np.random.default_rng(1)
    return np.asarray(af.initial.normalise(x + size * rng.normal(size=(*batch, *x.shape))))


R5 = 1 / np.sqrt(5)
CASES = [
    (4, 3, 1.0, "simplex", 2, [(-1 / 3, 3)]),
    (6, 3, 2.0, "cross-polytope", 3, [(-1, 1), (0, 4)]),
    (12, 3, 1.0, "icosahedron", 5, [(-1, 1), (-R5, 5), (R5, 5)]),
    (12, 3, 8.0, "icosahedron", 5, [(-1, 1), (-R5, 5), (R5, 5)]),
]


@pytest.mark.parametrize(("n", "d", "beta", "name", "strength", "row"), CASES)
def test_random_starts_find_the_sharp_configuration(n, d, beta, name, strength, row):
    found = optimal_configuration(n, d, beta, starts=2, key=3)
    assert (found.name, found.strength) == (name, strength)
    assert found.energy == pytest.approx(from_row(row, beta), rel=1e-12)
    np.testing.assert_allclose(found.inner_products.values, [s for s, _ in row], atol=1e-9)
    np.testing.assert_allclose(found.energies, from_row(row, beta), rtol=1e-10)
    assert found.hits == len(found.log_sums) == 2
    assert found.gradient_norm < 1e-9
    assert np.linalg.norm(gradient(found.points, beta)) < 1e-9 * found.energy
    bends = np.linalg.eigvalsh(hessian(found.points, beta))
    rotations = d * (d - 1) // 2
    np.testing.assert_allclose(bends[:rotations], 0, atol=1e-9 * bends[-1])
    assert bends[rotations] > 1e-6 * bends[-1]
    assert name in str(found)


def test_starts_are_told_apart():
    """A hexagon on the equator is critical: the flow leaves it only where rounding does."""
    hexagon = np.column_stack([np.asarray(af.initial.circle(6)), np.zeros(6)])
    starts = np.stack([hexagon, shaken(sharp("cross-polytope", d=3), 0.2)])
    found = optimal_configuration(6, 3, 2.0, x0=starts)
    assert found.hits == 1
    assert found.name == "cross-polytope"
    assert found.energies[0] == pytest.approx(plain_energy(hexagon, 2.0), rel=1e-12)
    assert found.energies[1] == pytest.approx(found.energy, rel=1e-12)
    assert optimal_configuration(6, 3, 2.0, x0=starts[0]).name is None


def test_the_log_sum(rng):
    x = np.asarray(af.initial.sphere(5, 3, key=2))
    pairs = [40.0 * x[i] @ x[j] for i in range(5) for j in range(5) if i != j]
    assert float(log_pair_sum(jnp.asarray(x), 40.0)) == pytest.approx(logsumexp(pairs), rel=1e-14)


@pytest.mark.parametrize(
    ("sizes", "options", "said"),
    [
        ((1, 3, 1.0), {}, "n must be a whole number of at least 2"),
        ((4, 1, 1.0), {}, "d must be a whole number of at least 2"),
        ((4, 3, 0.0), {}, "beta must be a finite number above 0"),
        ((4, 3, 1.0), {"starts": 0}, "starts must be a whole number of at least 1"),
        ((4, 3, 1.0), {"x0": np.eye(3)}, "x0 must have shape \\(n, d\\) = \\(4, 3\\)"),
        ((3, 3, 1.0), {"x0": 2 * np.eye(3)}, "x0 must have rows of norm 1"),
    ],
)
def test_bad_input(sizes, options, said):
    with pytest.raises(InputError, match=said):
        optimal_configuration(*sizes, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "beta", "size"), [("600-cell", 12.0, 0.05), ("E8", 8.0, 0.1)], ids=["600-cell", "E8"]
)
def test_large_configurations_come_back(name, beta, size):
    exact = sharp(name)
    n, d = exact.shape
    found = optimal_configuration(n, d, beta, x0=shaken(exact, size))
    row = af.theory.known_sharp(n, d)
    assert (found.name, found.strength) == (name, row.strength)
    assert found.energy == pytest.approx(plain_energy(exact, beta), rel=1e-12)
    pairs = plain_energy(exact, beta) - np.exp(beta) / (2 * beta * n)
    assert np.exp(found.log_sum) / (2 * beta * n**2) == pytest.approx(pairs, rel=1e-12)
    np.testing.assert_allclose(found.inner_products.values, row.inner_products, atol=1e-9)


@pytest.mark.slow
def test_24_points_may_do_better_than_the_24_cell():
    """Cohn, Conway, Elkies and Kumar: the roots of D4 are not universally optimal."""
    axes = [(np.eye(4)[i], np.eye(4)[j]) for i in range(4) for j in range(i)]
    cell = np.array([s * (a + t * b) for a, b in axes for s in (1, -1) for t in (1, -1)])
    cell = cell / np.sqrt(2)
    smooth = optimal_configuration(24, 4, 2.0, starts=4)
    assert smooth.energy == pytest.approx(plain_energy(cell, 2.0), rel=1e-12)
    np.testing.assert_allclose(smooth.inner_products.values, [-1, -0.5, 0, 0.5], atol=1e-7)
    assert smooth.name is None
    better = optimal_configuration(24, 4, 6.0, starts=4)
    assert better.energy < (1 - 1e-6) * plain_energy(cell, 6.0)
    assert better.energy == pytest.approx(plain_energy(better.points, 6.0), rel=1e-12)
    assert np.linalg.eigvalsh(hessian(better.points, 6.0))[0] > -1e-10 * better.energy


@pytest.mark.slow
def test_large_beta_is_the_problem_of_tammes():
    """Eight points at 74.8585°, the square antiprism of Schütte and van der Waerden."""
    found = optimal_configuration(8, 3, 4000.0, starts=8)
    closest = found.inner_products.values[-1]
    assert np.degrees(np.arccos(closest)) == pytest.approx(74.8585, abs=0.01)
    assert "not settled" not in str(found)
    assert np.isfinite(found.log_sums).all()
