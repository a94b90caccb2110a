"""Bounded confidence: plain means, and what is proven about its end on the line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError

STEPS = np.arange(0.0, 41.0)


def plain(x, radius, masses=None):
    m = np.ones(len(x)) if masses is None else masses
    near = [np.linalg.norm(x - x[i], axis=1) <= radius for i in range(len(x))]
    return np.array([np.average(x[who], axis=0, weights=m[who]) for who in near])


def test_a_layer_is_the_mean_of_the_neighbours(rng):
    x, m = rng.uniform(0, 4, size=(30, 2)), rng.uniform(0.5, 2.0, 30)
    system = af.HegselmannKrause(1.0)
    for masses in (None, m):
        got = system.layer(0, jnp.asarray(x), 1.0, None if masses is None else jnp.asarray(m))
        np.testing.assert_allclose(got, plain(x, 1.0, masses), atol=1e-14)
    krause = af.Krause("indicator", radius=1.0).layer(0, jnp.asarray(x), 1.0)
    np.testing.assert_allclose(krause, system.layer(0, jnp.asarray(x), 1.0), atol=1e-14)


def test_on_the_line_it_stops_with_clusters_more_than_a_radius_apart(rng):
    x0 = np.sort(rng.uniform(0, 8, size=(4, 40, 1)), axis=1)
    run = af.simulate(af.HegselmannKrause(1.0), x0, STEPS)
    xs = np.asarray(run.xs)
    assert (np.diff(xs, axis=2) >= -1e-12).all()
    for member in xs:
        moved = np.abs(np.diff(member, axis=0)).max(axis=(1, 2))
        stop = int(np.argmax(moved < 1e-12))
        assert 2 < stop < 40
        assert (moved[stop:] < 1e-12).all()
        gaps = np.diff(member[-1, :, 0])
        assert ((gaps < 1e-10) | (gaps > 1.0)).all()
        assert 1 < (gaps > 1.0).sum() + 1 < 8


def test_the_run_is_the_iterated_map(rng):
    x = rng.uniform(0, 5, size=(40, 1))
    run = af.simulate(af.HegselmannKrause(1.0), x, STEPS)
    for k in range(1, 6):
        x = plain(x, 1.0)
        np.testing.assert_allclose(run.xs[k], x, atol=1e-12)


def test_motions(rng):
    x, p = rng.uniform(0, 4, size=(30, 2)), rng.permutation(30)
    O = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    y = af.HegselmannKrause(1.0).layer(0, jnp.asarray(x), 1.0)
    moved = af.HegselmannKrause(3).layer(0, jnp.asarray(3 * x[p] @ O - 1.0), 1.0)
    np.testing.assert_allclose(moved, 3 * y[p] @ O - 1.0, atol=1e-12)


def test_float32_under_jit():
    x = jnp.array([[0.0], [1.0], [3.0]], jnp.float32)
    got = jax.jit(lambda r: af.HegselmannKrause(r).layer(0, x, 1.0))(1.0)
    assert got.dtype == jnp.float32
    assert got[:, 0].tolist() == [0.5, 0.5, 3.0]


def test_bad_input(untyped):
    with pytest.raises(InputError, match="radius must be a finite number above 0"):
        af.HegselmannKrause(0.0)
    with pytest.raises(InputError, match="dt must be 1 for HegselmannKrause"):
        af.simulate(af.HegselmannKrause(1.0), np.eye(2), [0.0, 1.0], method=af.Layers(0.5))
    with pytest.raises(InputError, match="map in time"):
        af.simulate(af.HegselmannKrause(1.0), np.eye(2), [0.0, 1.0], method=af.Adaptive())
