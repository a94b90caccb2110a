"""Wasserstein distances against assignments, closed forms and POT."""

import subprocess
import sys

import numpy as np
import ot
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import wasserstein_distance

import attnflow as af
from attnflow.errors import InputError
from attnflow.observe import Cells, wasserstein
from attnflow.observe import wasserstein as package_name
from attnflow.spaces import Circle, Ellipsoid, Euclidean, Sphere

CIRCLE = Circle()


def arcs(x, y):
    """Geodesic distances of angles, literally."""
    apart = np.abs(x[:, None] - y[None, :]) % (2 * np.pi)
    return np.minimum(apart, 2 * np.pi - apart)


def assigned(cost, p):
    rows, columns = linear_sum_assignment(cost**p)
    return np.mean(cost[rows, columns] ** p) ** (1 / p)


def angles(rng, n, spread=7.0):
    return rng.uniform(-spread, spread, n)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_circle_agrees_with_the_best_assignment(rng, p, n):
    for _ in range(5):
        x, y = angles(rng, n), rng.normal(1.0, 0.7, n)
        found = wasserstein(x[:, None], y[:, None], p, space=CIRCLE)
        assert found.method == "exact"
        assert found.distance == pytest.approx(assigned(arcs(x, y), p), abs=1e-11)


@pytest.mark.parametrize("p", [1, 2])
def test_the_circle_with_masses_agrees_with_a_linear_programme(rng, p):
    x, y = angles(rng, 30), angles(rng, 45)
    m, w = rng.uniform(0, 1, 30), rng.integers(0, 4, 45).astype(float)
    plan = ot.emd2(m / m.sum(), w / w.sum(), arcs(x, y) ** p) ** (1 / p)
    found = wasserstein(x[:, None], y[:, None], p, space=CIRCLE, masses=m, other_masses=w)
    assert found.distance == pytest.approx(plan, abs=1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_the_circle_agrees_with_pot(rng, p):
    x, y = angles(rng, 300), rng.normal(0.0, 1.0, 500)
    theirs = ot.wasserstein_circle(x / (2 * np.pi) % 1, y / (2 * np.pi) % 1, p=p, eps=1e-12)
    found = wasserstein(x[:, None], y[:, None], p, space=CIRCLE)
    assert found.distance == pytest.approx(2 * np.pi * float(theirs[0]) ** (1 / p), rel=1e-6)


@pytest.mark.parametrize("p", [1, 2])
def test_rotations_and_whole_turns_change_no_distance(rng, p):
    x, y, turn = angles(rng, 20), angles(rng, 30), 1.234
    before = wasserstein(x[:, None], y[:, None], p, space=CIRCLE).distance
    turns = 2 * np.pi * rng.integers(-3, 4, 20)
    after = wasserstein((x + turn + turns)[:, None], (y + turn)[:, None], p, space=CIRCLE).distance
    assert after == pytest.approx(before, abs=1e-10)
    again = wasserstein(y[:, None], x[:, None], p, space=CIRCLE).distance
    assert again == pytest.approx(before, abs=1e-10)


@pytest.mark.parametrize("p", [1, 2])
def test_a_rotated_cloud_is_as_far_as_it_was_turned(rng, p):
    x = angles(rng, 50)
    turned = wasserstein(x[:, None], x[:, None] + 1e-3, p, space=CIRCLE)
    assert turned.distance == pytest.approx(1e-3, abs=1e-12)
    assert wasserstein(x[:, None], x[::-1, None], p, space=CIRCLE).distance <= 1e-7


@pytest.mark.parametrize(("p", "known"), [(1, np.pi / 2), (2, np.pi / np.sqrt(3))])
@pytest.mark.parametrize("start", [0.0, 0.3, -2.0])
def test_one_token_against_the_uniform_density(p, known, start):
    uniform = Cells(np.ones(7), start)
    for theta in (0.0, 2.0, 6.2):
        found = wasserstein(np.array([[theta]]), uniform, p, space=CIRCLE)
        assert found.distance == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize(("p", "unit"), [(1, 1 / 2), (2, 1 / np.sqrt(3))])
def test_equidistant_tokens_against_the_uniform_density(p, unit):
    theta = 0.4 + 2 * np.pi * np.arange(10) / 10
    found = wasserstein(theta[:, None], Cells(np.full(16, 3.0)), p, space=CIRCLE)
    assert found.distance == pytest.approx(unit * np.pi / 10, abs=1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_a_density_is_the_limit_of_many_tokens(rng, p):
    rho, start = rng.uniform(0, 1, 12) * (np.arange(12) != 5), 0.37
    many = 4000
    share = np.repeat(rho, many)
    fine = start + (np.arange(12 * many) + 0.5) * 2 * np.pi / (12 * many)
    theta = angles(rng, 9)[:, None]
    found = wasserstein(theta, Cells(rho, start), p, space=CIRCLE).distance
    sampled = wasserstein(theta, fine[:, None], p, space=CIRCLE, other_masses=share).distance
    assert found == pytest.approx(sampled, abs=1e-4)
    itself = wasserstein(
        Cells(rho, start), fine[:, None], p, space=CIRCLE, other_masses=share
    ).distance
    assert itself <= 1e-4


def test_a_density_moves_with_its_start(rng):
    rho = rng.uniform(0, 1, 12) * (np.arange(12) < 4)
    moved = wasserstein(Cells(rho), Cells(rho, 0.05), 1, space=CIRCLE)
    assert moved.distance == pytest.approx(0.05, abs=1e-12)
    rolled = wasserstein(Cells(rho), Cells(np.roll(rho, 3), -np.pi / 2), space=CIRCLE)
    assert rolled.distance <= 1e-12


def test_tokens_in_the_plane_on_the_sphere_are_angles(rng):
    x, y = angles(rng, 9), angles(rng, 11)
    points = [np.stack([np.cos(z), np.sin(z)], 1) for z in (x, y)]
    assert wasserstein(*points, 2, space=Sphere()).distance == pytest.approx(
        wasserstein(x[:, None], y[:, None], 2, space=CIRCLE).distance, abs=1e-9
    )


@pytest.mark.parametrize("p", [1, 2])
def test_clouds_agree_with_the_best_assignment(rng, p):
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    plain = np.linalg.norm(x[:, None] - y[None], axis=-1)
    assert wasserstein(x, y, p).distance == pytest.approx(assigned(plain, p), abs=1e-10)
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    angle = np.arccos(np.clip(x @ y.T, -1, 1))
    found = wasserstein(x, y, p, space=Sphere())
    assert found.distance == pytest.approx(assigned(angle, p), abs=1e-8)
    assert found.method == "exact"
    assert float(found) == found.distance


def test_the_line_agrees_with_scipy(rng):
    x, y, m = rng.normal(size=50), rng.normal(1.0, 2.0, size=70), rng.uniform(0, 1, 50)
    found = wasserstein(x[:, None], y[:, None], masses=m)
    assert found.distance == pytest.approx(wasserstein_distance(x, y, m), abs=1e-12)
    x, y = np.sort(x), np.sort(y[:50])
    expected = np.sqrt(np.mean((x - y) ** 2))
    assert wasserstein(x[:, None], y[:, None], 2).distance == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("p", [1, 2])
def test_many_tokens_are_sliced_and_it_is_said(rng, monkeypatch, p):
    monkeypatch.setattr(sys.modules["attnflow.observe.wasserstein"], "MAX_EXACT_PAIRS", 100)
    x, shift = rng.normal(size=(200, 3)), np.array([0.0, 0.0, 2.0])
    found = wasserstein(x, x + shift, p)
    # A direction u sees the shift as |<u, e>| · 2, whose mean is 1 and whose square's is 4/3.
    known = {1: 1.0, 2: 2 / np.sqrt(3)}[p]
    assert found.method == "sliced"
    assert abs(found.distance - known) <= 4 * found.error
    assert 0.01 < found.error < 0.2


def test_slices_of_the_sphere_are_angles(rng, monkeypatch):
    monkeypatch.setattr(sys.modules["attnflow.observe.wasserstein"], "MAX_EXACT_PAIRS", 0)
    x = np.array([[0.0, 0.0, 1.0]])
    found = wasserstein(x, -x, 1, space=Sphere())
    # Projections of opposite tokens to a great circle are opposite.
    assert found.distance == pytest.approx(np.pi, abs=1e-4)


def test_importing_attnflow_does_not_import_pot():
    code = "import sys, attnflow; sys.exit('ot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_pot_the_extra_is_named(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(InputError, match=r"attnflow\[transport\]"):
        wasserstein(rng.normal(size=(3, 2)), rng.normal(size=(3, 2)))
    assert wasserstein(np.zeros((1, 1)), np.ones((1, 1)), space=CIRCLE).distance == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p": 3}, "p must be 1 or 2"),
        ({"space": Ellipsoid(np.ones(2))}, "space must be"),
        ({"y": np.zeros((2, 3))}, "same d"),
        ({"y": np.full((2, 2), np.nan)}, "y must be finite"),
        ({"masses": np.ones(3)}, "masses must have shape"),
        ({"other_masses": np.zeros(4)}, "other_masses must have an entry"),
        ({"other_masses": np.array([1.0, 1, 1, -1])}, "other_masses must be at least 0"),
        ({"x": Cells(np.ones(3))}, "space must be Circle"),
        ({"x": Cells(np.ones(3)), "space": CIRCLE, "masses": np.ones(3)}, "masses must be"),
        ({"space": CIRCLE}, "one angle for each token"),
        ({"space": Sphere(), "y": np.ones((4, 2))}, "y must have rows of norm 1"),
        ({"x": Cells(np.zeros(3)), "space": CIRCLE}, "x.rho must have an entry"),
    ],
)
def test_what_cannot_be_compared_is_refused(untyped, arguments, message):
    given = {"x": np.eye(2), "y": np.zeros((4, 2)), "space": Euclidean()} | arguments
    with pytest.raises(InputError, match=message):
        wasserstein(given.pop("x"), given.pop("y"), **given)
    assert af.observe.wasserstein is package_name
