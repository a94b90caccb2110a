"""Mean shift: plain means, modes of the density, attention, and scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.cluster

import attnflow as af
from attnflow.errors import InputError
from attnflow.spec.read import parse_spec
from attnflow.spec.write import write_spec

PLAIN = {"gaussian": lambda r: np.exp(-r * r / 2), "flat": lambda r: 1.0 * (r <= 1)}
STEPS = np.arange(0.0, 201.0, 10.0)


def clumps(key=0, spread=0.5):
    rng = np.random.default_rng(key)
    centres = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
    return np.concatenate([c + spread * rng.normal(size=(15, 2)) for c in centres])


def plain(x, y, h, K, masses=None):
    m = np.ones(len(y)) if masses is None else masses
    w = np.array([[m[j] * K(np.linalg.norm(a - b) / h) for j, b in enumerate(y)] for a in x])
    return (w @ y) / w.sum(axis=1, keepdims=True)


def log_density(x, y, h):
    return jax.nn.logsumexp(-jnp.sum((x - y) ** 2, axis=-1) / (2 * h * h))


@pytest.mark.parametrize("kernel", PLAIN)
def test_a_layer_is_the_weighted_mean(kernel, rng):
    y, m = clumps(), rng.uniform(0.5, 2.0, 45)
    x = y[:20] + 0.1
    got = af.MeanShift(0.8, data=y, kernel=kernel).layer(0, jnp.asarray(x), 1.0)
    np.testing.assert_allclose(got, plain(x, y, 0.8, PLAIN[kernel]), atol=1e-14)
    blurring = af.MeanShift(0.8, kernel=kernel)
    for masses in (None, m):
        got = blurring.layer(0, jnp.asarray(y), 1.0, None if masses is None else jnp.asarray(m))
        np.testing.assert_allclose(got, plain(y, y, 0.8, PLAIN[kernel], masses), atol=1e-13)


def test_blurring_is_krause_and_on_the_sphere_attention():
    x = af.initial.sphere(n=45, d=3, key=0)
    got = af.MeanShift(0.5).layer(0, x, 1.0)
    np.testing.assert_allclose(got, af.Krause(radius=0.5).layer(0, x, 1.0), atol=1e-13)
    np.testing.assert_allclose(got, af.SA(beta=4.0).drift(0.0, x), atol=1e-13)


def test_tokens_climb_the_density_to_its_modes():
    y, h = clumps(), 0.7
    x0 = np.random.default_rng(1).uniform(-2, 7, size=(45, 2))
    run = af.simulate(af.MeanShift(h, data=y), x0, STEPS)
    heights = np.array([[log_density(x, y, h) for x in xs] for xs in np.asarray(run.xs[::4])])
    assert (np.diff(heights, axis=0) > -1e-12).all()
    ends = af.observe.clusters(run.final, 1e-3).centers
    assert len(ends) == 3
    for end in np.asarray(ends):
        assert np.linalg.norm(jax.grad(log_density)(jnp.asarray(end), y, h)) < 1e-8
        assert np.linalg.eigvalsh(jax.hessian(log_density)(jnp.asarray(end), y, h))[-1] < -0.1


def test_far_from_all_data_nothing_underflows():
    y = clumps()
    far = jnp.array([[1e4, 0.0], [0.0, -1e4]])
    got = np.asarray(af.MeanShift(0.5, data=y).layer(0, far, 1.0))
    assert np.abs(got - y[:, None]).sum(axis=-1).min(axis=0).max() < 1e-9
    np.testing.assert_array_equal(af.MeanShift(0.5, data=y, kernel="flat").layer(0, far, 1.0), far)


def test_motions(rng):
    y, p = clumps(), rng.permutation(45)
    x = y + 0.2
    O = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    got = af.MeanShift(0.5, data=y).layer(0, jnp.asarray(x), 1.0)
    moved = af.MeanShift(1.0, data=2 * y @ O + 3).layer(0, jnp.asarray(2 * x[p] @ O + 3), 1.0)
    np.testing.assert_allclose(moved, 2 * got[p] @ O + 3, atol=1e-12)


def test_the_flat_kernel_is_that_of_scikit_learn():
    y = clumps(2, 0.6)
    theirs = sklearn.cluster.MeanShift(bandwidth=1.5, seeds=y).fit(y).cluster_centers_
    ours = np.asarray(af.simulate(af.MeanShift(1.5, data=y, kernel="flat"), y, STEPS).final)
    assert len(theirs) == 3
    away = np.linalg.norm(ours[:, None] - theirs, axis=-1)
    assert away.min(axis=0).max() < 1e-12
    assert away.min(axis=1).max() < 1.5


def test_float32_under_vmap():
    y = jnp.asarray(clumps(), jnp.float32)
    x = jnp.stack([y[:5], y[5:10]])
    got = jax.vmap(lambda x: af.MeanShift(0.8, data=clumps()).layer(0, x, 1.0))(x)
    assert got.dtype == jnp.float32
    want = plain(np.asarray(x[1], float), clumps(), 0.8, PLAIN["gaussian"])
    np.testing.assert_allclose(got[1], want, atol=1e-5)


def test_specs_hold_the_data():
    system = {"name": "MeanShift", "bandwidth": 1, "data": [[0, 0.5], [1, 2]], "kernel": "flat"}
    spec = {"system": system, "start": {"n": 3, "d": 2}, "times": {"stop": 2.0, "count": 3}}
    built = parse_spec(spec).build().system
    assert str(built) == "MeanShift(bandwidth=1, data=array(2, 2), kernel='flat')"
    text = write_spec(built, np.eye(2), [0.0, 1.0])
    assert 'data = [\n    [0.0, 0.5],\n    [1.0, 2.0],\n]\nkernel = "flat"' in text


def test_bad_input(untyped):
    y = clumps()
    for make, said in (
        (lambda: af.MeanShift(0.0), "bandwidth must be a finite number above 0"),
        (lambda: af.MeanShift(1.0, kernel="flatt"), "did you mean 'flat'"),
        (lambda: af.MeanShift(1.0, data=[[1.0], [1.0, 2.0]]), "data must be points"),
        (lambda: af.MeanShift(1.0, data=np.ones(3)), r"data must have shape \(k, d\)"),
        (lambda: af.MeanShift(1.0, data=[[np.nan]]), "data must be finite"),
    ):
        with pytest.raises(InputError, match=said):
            make()
    system = af.MeanShift(1.0, data=y)
    with pytest.raises(InputError, match="data of MeanShift have d = 2"):
        af.simulate(system, np.eye(3), [0.0, 1.0])
    with pytest.raises(InputError, match="masses must be left out"):
        af.simulate(system, np.eye(2), [0.0, 1.0], masses=[1.0, 2.0])
    with pytest.raises(InputError, match="dt must be 1 for MeanShift"):
        af.simulate(system, np.eye(2), [0.0, 1.0], method=af.Layers(0.5))
