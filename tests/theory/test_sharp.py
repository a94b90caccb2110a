"""Sharp configurations against the table of Cohn and Kumar, and what they are not."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.observe import design_strength, inner_products
from attnflow.theory import known_sharp, recognised, sharp

ROOT5 = np.sqrt(5)
# Cohn and Kumar 2007, Table 1: d, n, strength, inner products; the counts are those of one point
TABLE = {
    "polygon": ({"n": 7}, 2, 7, 6, [np.cos(2 * np.pi * k / 7) for k in (3, 2, 1)], [2, 2, 2]),
    "simplex": ({"d": 5}, 5, 6, 2, [-1 / 5], [5]),
    "cross-polytope": ({"d": 4}, 4, 8, 3, [-1, 0], [1, 6]),
    "icosahedron": ({}, 3, 12, 5, [-1, -1 / ROOT5, 1 / ROOT5], [1, 5, 5]),
    "600-cell": (
        {},
        4,
        120,
        11,
        [-1, -(ROOT5 + 1) / 4, -1 / 2, (1 - ROOT5) / 4, 0, (ROOT5 - 1) / 4, 1 / 2, (1 + ROOT5) / 4],
        [1, 12, 20, 12, 30, 12, 20, 12],
    ),
    "Clebsch": ({}, 5, 16, 3, [-3 / 5, 1 / 5], [5, 10]),
    "Schläfli": ({}, 6, 27, 4, [-1 / 2, 1 / 4], [10, 16]),
    "Gosset": ({}, 7, 56, 5, [-1, -1 / 3, 1 / 3], [1, 27, 27]),
    "E8": ({}, 8, 240, 7, [-1, -1 / 2, 0, 1 / 2], [1, 56, 126, 56]),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_points_and_the_table_agree_with_the_paper(name, rng):
    sizes, d, n, strength, values, counts = TABLE[name]
    x = sharp(name, **sizes)
    assert x.shape == (n, d)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, atol=1e-14)
    found = inner_products(x)
    np.testing.assert_allclose(found.values, values, atol=1e-13)
    assert found.counts.tolist() == [n * count // 2 for count in counts]
    assert design_strength(x) == strength
    row = known_sharp(n, d)
    assert (row.name, row.strength) == (name, strength)
    np.testing.assert_allclose(row.inner_products, values, atol=1e-15)
    O = np.linalg.qr(rng.normal(size=(d, d)))[0]
    assert recognised(x[rng.permutation(n)] @ O) == name
    assert recognised(x + 1e-3 * rng.normal(size=x.shape)) is None


def test_a_simplex_may_have_fewer_points():
    x = sharp("simplex", n=3, d=6)
    np.testing.assert_allclose(x @ x.T, 1.5 * np.eye(3) - 0.5, atol=1e-15)
    assert recognised(x) == "simplex"
    assert design_strength(x) == known_sharp(3, 6).strength == 1


def test_what_is_not_in_the_table():
    assert known_sharp(24, 4) is None
    assert recognised(af.initial.sphere(5, 3, key=0)) is None
    assert recognised(np.array([[1.0, 0.0]])) is None
    assert recognised(np.vstack([np.eye(3)] * 2)) is None


@pytest.mark.parametrize(
    ("name", "sizes", "said"),
    [
        ("icosaedron", {}, "did you mean 'icosahedron'"),
        ("E8", {"n": 241}, "n must be 240 for the E8"),
        ("simplex", {}, "d must be given for a simplex"),
        ("simplex", {"n": 9, "d": 3}, "n must be at most d \\+ 1 = 4"),
        ("polygon", {"d": 2}, "n must be given for a polygon"),
        ("polygon", {"n": 5, "d": 3}, "d must be 2 for this polygon"),
        ("cross-polytope", {"n": 7, "d": 3}, "n must be 6 for this cross-polytope"),
        ("cross-polytope", {"d": 1}, "d must be a whole number of at least 2"),
    ],
)
def test_bad_input(name, sizes, said):
    with pytest.raises(InputError, match=said):
        sharp(name, **sizes)
