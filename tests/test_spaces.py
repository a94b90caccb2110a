import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_chebyt, eval_gegenbauer

import reference
from attnflow.errors import InputError
from attnflow.spaces import Circle, Ellipsoid, Euclidean, Sphere, unit_rows

D = np.array([2.0, 0.5, 1.0])
SPACES = [Euclidean(), Sphere(), Ellipsoid(jnp.asarray(D))]
CURVED = SPACES[1:]
examples = settings(deadline=None, max_examples=6, derandomize=True)
keys = st.integers(0, 2**32 - 1)


def names(space):
    return type(space).__name__


def tokens(space, rng, *batch, n=5):
    return space.retract(jnp.asarray(rng.normal(size=(*batch, n, 3))))


@pytest.mark.parametrize("space", SPACES, ids=names)
@pytest.mark.parametrize("batch", [(), (4,)])
def test_shapes(space, batch, rng):
    x, v = tokens(space, rng, *batch), jnp.asarray(rng.normal(size=(*batch, 5, 3)))
    assert space.project(x, v).shape == space.retract(v).shape == (*batch, 5, 3)
    assert space.distance(x, v).shape == (*batch, 5)


def test_euclidean_space_changes_nothing(rng):
    x, v = jnp.asarray(rng.normal(size=(2, 5, 3)))
    space = Euclidean()
    assert space.project(x, v) is v
    assert space.retract(x) is x
    assert space.admit(x) is x


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_sphere_projects_off_the_sphere_too(radius, rng):
    x, v = radius * tokens(Sphere(), rng), rng.normal(size=(5, 3))
    want = [reference._remove_normal(v[i], np.asarray(x[i])) for i in range(5)]
    np.testing.assert_allclose(Sphere().project(x, jnp.asarray(v)), want, rtol=1e-13, atol=1e-14)


def test_ellipsoid_removes_the_part_along_its_normal(rng):
    space = Ellipsoid(D)
    x, v = tokens(space, rng), rng.normal(size=(5, 3))
    want = [reference._remove_normal(v[i], np.asarray(x[i]) / D**2) for i in range(5)]
    np.testing.assert_allclose(space.project(x, jnp.asarray(v)), want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("space", CURVED, ids=names)
def test_moving_along_a_projection_stays_in_the_space_to_second_order(space, rng):
    x, v = tokens(space, rng), jnp.asarray(rng.normal(size=(5, 3)))

    def gap(h):
        y = x + h * space.project(x, v)
        return float(jnp.abs(y - space.retract(y)).max())

    assert gap(1e-3) / gap(1e-4) == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize("space", SPACES, ids=names)
@given(key=keys)
@examples
def test_projecting_and_retracting_twice_is_once(space, key):
    rng = np.random.default_rng(key)
    x, v = tokens(space, rng), jnp.asarray(rng.normal(size=(5, 3)))
    once = space.project(x, v)
    np.testing.assert_allclose(space.project(x, once), once, atol=1e-13)
    np.testing.assert_allclose(space.retract(x), x, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_retraction_lands_in_the_space(scale, rng):
    y = jnp.asarray(scale * rng.normal(size=(5, 3)))
    np.testing.assert_allclose(np.linalg.norm(Sphere().retract(y), axis=-1), 1, rtol=1e-15)
    x = Ellipsoid(D).retract(y)
    np.testing.assert_allclose(np.linalg.norm(x / D, axis=-1), 1, rtol=1e-15)
    np.testing.assert_allclose(np.cross(x, y), 0, atol=1e-15 * scale)


@given(key=keys)
@examples
def test_sphere_turns_with_its_tokens(key):
    rng = np.random.default_rng(key)
    x, v = tokens(Sphere(), rng), jnp.asarray(rng.normal(size=(5, 3)))
    y = tokens(Sphere(), rng)
    O = jnp.asarray(np.linalg.qr(rng.normal(size=(3, 3)))[0])
    space = Sphere()
    np.testing.assert_allclose(
        space.project(x @ O, v @ O), space.project(x, v) @ O, rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(space.distance(x @ O, y @ O), space.distance(x, y), atol=1e-14)


def test_ellipsoid_of_ones_is_the_sphere(rng):
    x, v = tokens(Sphere(), rng), jnp.asarray(rng.normal(size=(5, 3)))
    round_one = Ellipsoid(np.ones(3))
    np.testing.assert_allclose(round_one.project(x, v), Sphere().project(x, v), atol=1e-14)
    np.testing.assert_allclose(round_one.retract(v), Sphere().retract(v), atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-5, 1.0, np.pi / 2, np.pi - 1e-7, np.pi])
def test_distance_on_the_sphere_is_the_angle(angle):
    x = jnp.array([1.0, 0.0])
    y = jnp.array([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(Sphere().distance(x, y), angle, rtol=1e-9, atol=1e-15)


def test_an_ellipsoid_keeps_its_half_axes_for_integers():
    y = jnp.eye(len(D), dtype=int)
    np.testing.assert_array_equal(Ellipsoid(D).retract(y), Ellipsoid(D).retract(y.astype(float)))


@pytest.mark.parametrize("space", [Euclidean(), Ellipsoid(D)], ids=names)
def test_distance_elsewhere_is_the_chord(space):
    assert space.distance(jnp.zeros(3), jnp.array([2.0, 3.0, 6.0])) == 7


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_unit_rows_neither_overflow_nor_underflow(size):
    x = unit_rows(jnp.array([[3.0, 4.0], [-1.0, 0.0]]) * size)
    np.testing.assert_allclose(x, [[0.6, 0.8], [-1, 0]], rtol=1e-15)


def test_sphere_admits_rows_that_are_unit_up_to_rounding(rng):
    x = tokens(Sphere(), rng) * (1 + 9e-7 * rng.choice([-1, 1], size=(5, 1)))
    admitted = Sphere().admit(x)
    np.testing.assert_allclose(np.linalg.norm(admitted, axis=-1), 1, rtol=1e-15)
    np.testing.assert_allclose(admitted, x, atol=1e-6)


def test_ellipsoid_admits_rows_that_are_on_it_up_to_rounding(rng):
    x = tokens(Ellipsoid(D), rng) * (1 + 9e-7)
    admitted = Ellipsoid(D).admit(x)
    np.testing.assert_allclose(np.linalg.norm(admitted / D, axis=-1), 1, rtol=1e-15)


@pytest.mark.parametrize("space", CURVED, ids=names)
def test_float32_rows_may_be_off_by_more(space, rng):
    x = tokens(space, rng)
    admitted = space.admit((x * (1 + 5e-5)).astype(jnp.float32))
    assert admitted.dtype == jnp.float32
    with pytest.raises(InputError, match=r"x0 must have rows .*\(to 0\.0001\)"):
        space.admit((x * (1 + 5e-4)).astype(jnp.float32))


@pytest.mark.parametrize("space", CURVED, ids=names)
def test_rows_that_are_off_by_more_than_rounding_are_refused(space, rng):
    with pytest.raises(InputError, match=r"x0 must have rows .*\(to 1e-06\)"):
        space.admit(tokens(space, rng) * (1 + 2e-6))


@pytest.mark.parametrize("space", CURVED, ids=names)
def test_traced_rows_are_retracted_unseen(space, rng):
    x = tokens(space, rng)
    np.testing.assert_allclose(jax.jit(lambda y: space.admit(y))(3 * x), x, rtol=1e-14)


def test_the_worst_token_is_named_and_the_remedy():
    x = jnp.array([[1.0, 0.0], [0.0, 3.0]])
    with pytest.raises(
        InputError, match=r"x0 must have rows of norm 1 .* token 1 has 3: .*initial\.normalise"
    ):
        Sphere().admit(x)
    with pytest.raises(InputError, match=r"x0 .* token 1, 1 has 3"):
        Sphere().admit(jnp.stack([x.at[1].set(x[0]), x]))


def test_the_remedy_on_an_ellipsoid_is_not_the_sphere(rng):
    x = tokens(Sphere(), rng)
    with pytest.raises(InputError, match=r"x0 must have rows of \|D⁻¹x\| 1 .*Ellipsoid\(D\)"):
        Ellipsoid(D).admit(x)


@pytest.mark.parametrize("space", CURVED, ids=names)
def test_a_token_at_the_origin_has_no_direction(space, rng):
    x = tokens(space, rng).at[2].set(0.0)
    with pytest.raises(InputError, match=r"x0 .* token 2 has 0: a token at the origin"):
        space.admit(x)


def test_ellipsoid_refuses_tokens_of_another_dimension():
    with pytest.raises(InputError, match="x0 has d = 2, but the ellipsoid's D has 3"):
        Ellipsoid(D).admit(jnp.eye(2))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_half_axes_are_finite_and_positive(bad):
    with pytest.raises(InputError, match="D must be finite and positive"):
        Ellipsoid(np.array([1.0, bad]))


@pytest.mark.parametrize("D", [1.0, np.ones((2, 2))])
def test_half_axes_are_a_vector(D, untyped):
    with pytest.raises(InputError, match="D must be a vector"):
        Ellipsoid(D)


@pytest.mark.parametrize("space", SPACES, ids=names)
def test_float32_stays_float32(space, rng):
    x, v = (a.astype(jnp.float32) for a in (tokens(space, rng), tokens(space, rng)))
    out = (space.project(x, v), space.retract(v), space.distance(x, v))
    assert {a.dtype for a in out} == {jnp.dtype("float32")}


def test_angles_are_as_far_apart_as_their_tokens(rng):
    a, b = (jnp.asarray(rng.uniform(-20, 20, size=(9, 1))) for _ in range(2))
    on_circle = [jnp.concatenate([jnp.cos(x), jnp.sin(x)], axis=-1) for x in (a, b)]
    assert np.allclose(Circle().distance(a, b), Sphere().distance(*on_circle), atol=1e-13)
    assert float(Circle().distance(jnp.zeros(1), jnp.array([1e-13]))) == pytest.approx(1e-13)


def test_only_single_angles_are_admitted():
    with pytest.raises(InputError, match=r"x0 must have shape \(n, 1\).*arctan2"):
        Circle().admit(jnp.eye(2))
    x = jnp.array([[100.0]])
    assert Circle().admit(x) is x


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("d", [2, 3, 4, 20])
def test_a_step_of_brownian_motion_is_of_order_two(d, degree):
    """The mean of a harmonic of degree l falls by e^{−l(l+d−2)τ/2} in a step of variance τ."""
    nodes, weights = np.polynomial.legendre.leggauss(400)

    def error(tau):
        """By quadrature over the length r of the tangential part, whose law is that of χ."""
        most = np.sqrt(tau) * (np.sqrt(d) + 12)
        r = most * (nodes + 1) / 2
        density = weights * r ** (d - 2) * np.exp(-(r**2) / (2 * tau))
        x = np.zeros((len(r), d))
        x[:, 0] = 1
        w = np.zeros((len(r), d))
        w[:, 1] = r
        cosines = Sphere().brownian(jnp.asarray(x), jnp.asarray(w), tau)[:, 0]
        harmonic = (
            eval_chebyt(degree, cosines)
            if d == 2
            else (
                eval_gegenbauer(degree, d / 2 - 1, cosines)
                / eval_gegenbauer(degree, d / 2 - 1, 1.0)
            )
        )
        mean = np.sum(density * harmonic) / density.sum()
        return abs(mean - np.exp(-degree * (degree + d - 2) * tau / 2))

    scale = 0.04 / (degree * (degree + d - 2))
    ratio = error(2 * scale) / error(scale)
    assert np.log2(ratio) == pytest.approx(3, abs=0.25)
