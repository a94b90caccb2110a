"""The plane of a Coxeter element shows a configuration with the symmetry of its group."""

import numpy as np
import pytest

from attnflow.plot.polytopes import coxeter_plane
from attnflow.theory import sharp

COXETER_NUMBERS = {
    ("simplex", 5, 4): 5,
    ("cross-polytope", 8, 4): 6,
    ("icosahedron", 12, 3): 10,
    ("Clebsch", 16, 5): 8,
    ("Schläfli", 27, 6): 12,
    ("Gosset", 56, 7): 18,
    ("600-cell", 120, 4): 30,
    ("E8", 240, 8): 30,
}
"""Of A4, D4, H3, D5, E6, E7, H4 and E8, whose groups the neighbours of these points generate."""


@pytest.mark.parametrize(("name", "h"), COXETER_NUMBERS.items(), ids=lambda entry: str(entry))
def test_a_turn_by_the_coxeter_number_leaves_the_picture_as_it_is(name, h):
    kind, n, d = name
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]
    x = np.asarray(sharp(kind, n=n, d=d)) @ rotation
    plane = coxeter_plane(x)
    np.testing.assert_allclose(plane @ plane.T, np.eye(2), atol=1e-9)
    flat = x @ plane.T
    angle = 2 * np.pi / h
    turned = flat @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    apart = np.linalg.norm(flat[:, None] - turned[None], axis=-1)
    assert apart.min(axis=1).max() < 1e-6
    assert np.linalg.norm(flat, axis=1).max() > 0.5


def test_the_roots_of_e8_are_eight_rings_of_thirty():
    x = np.asarray(sharp("E8", n=240, d=8))
    radii = np.linalg.norm(x @ coxeter_plane(x).T, axis=1).round(6)
    assert np.unique(radii, return_counts=True)[1].tolist() == [30] * 8


def test_points_without_symmetry_have_no_plane():
    x = np.random.default_rng(0).normal(size=(9, 4))
    assert coxeter_plane(x / np.linalg.norm(x, axis=1, keepdims=True)) is None
