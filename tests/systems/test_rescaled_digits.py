"""Rescaled attention at late times, where z = e^{−tV} x has no digits left for all coordinates."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import attnflow as af
from attnflow import theory
from attnflow.attention.close import close_weights
from attnflow.report import summarise
from attnflow.simulation import LostDigits
from attnflow.systems.balance import power

BASIS = np.array([[1.0, 0.6], [0.3, 1.0]])
DUAL = np.linalg.inv(BASIS)
TS = np.array([0.0, 10.0, 18.0, 40.0, 44.0])
START = af.initial.cube(n=6, d=2, side=2.0, key=3)


def skew(decaying: float) -> af.RescaledAttention:
    """A good triple: V has the eigenvalues 1 and `decaying` in a basis that is not orthogonal."""
    return af.RescaledAttention(V=BASIS @ np.diag([1.0, decaying]) @ DUAL)


def quiet(*given, **more) -> af.Trajectory:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostDigits)
        return af.simulate(*given, **more)


@pytest.fixture(scope="module", params=[-0.9, -2.0])
def run(request) -> af.Trajectory:
    return quiet(skew(request.param), START, TS)


def attention_of(t: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Weights of tokens x = e^t a φ₁ + b φ₂, written down for this V alone."""
    x = np.stack([np.exp(t) * a, b], axis=1) @ BASIS.T
    scores = np.einsum("ik,ijk->ij", x, x - x[np.argmax(x @ x.T, axis=1)][:, None])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def by_scipy(decaying: float, ts: np.ndarray) -> np.ndarray:
    """(a, b) of the tokens at the times: a = φ₁*(z), b = φ₂*(x)."""

    def field(t: float, state: np.ndarray) -> np.ndarray:
        a, b = state.reshape(2, -1)
        A = attention_of(t, a, b)
        return np.concatenate([A @ a - a, decaying * (A @ b)])

    start = (np.asarray(START) @ DUAL.T).T.ravel()
    found = scipy.integrate.solve_ivp(
        field, (ts[0], ts[-1]), start, "DOP853", ts, rtol=1e-10, atol=1e-13
    )
    return found.y.T.reshape(len(ts), 2, -1)


def test_coordinates_and_attention_are_those_of_scipy(run):
    decaying = float(np.linalg.eigvals(np.asarray(run.system.heads.V)).min())
    expected = by_scipy(decaying, TS[:3])
    ours = np.asarray(run.along(DUAL))[:3]
    grown = np.exp(-decaying * TS[:3])
    np.testing.assert_allclose(ours[..., 0], expected[:, 0], atol=1e-6)
    np.testing.assert_allclose(ours[..., 1] / grown[:, None], expected[:, 1], atol=1e-6)
    A = np.asarray(af.observe.attention_along(run))[:3]
    for t, (a, b), weights in zip(TS[:3], expected, A, strict=True):
        np.testing.assert_allclose(weights, attention_of(t, a, b), atol=1e-5)


def test_the_leading_coordinate_rests_for_good(run):
    leading = np.asarray(run.along(DUAL))[..., 0]
    np.testing.assert_allclose(leading[3:], leading[[2, 2]], atol=2e-7)
    found = theory.measured_geometry(run)
    assert found.kind == "hyperplanes"
    assert found.residual < 1e-9
    assert len(np.unique(leading[-1].round(6))) <= 3
    leads = int(np.argmax(af.observe.eigenbasis(run.system.heads.V).values))
    ours = np.asarray(af.observe.dual_coordinates(run))[..., leads]
    assert np.ptp(ours / leading) < 1e-12


def test_small_coordinates_of_leaders_keep_to_the_tolerance(run):
    """Tokens that all follow keep what they had: their x hardly moves, and so e^{tV} z."""
    tight = quiet(run.system, START, TS, method=af.Adaptive(1e-12, 1e-14))
    ours, theirs = (np.asarray(each.along(DUAL))[:3, :, 1] for each in (run, tight))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_entries_without_digits_are_nan_and_the_others_right():
    with pytest.warns(LostDigits, match=r"from t = 40 on .* real part 1 beside .*run\.along"):
        run = af.simulate(skew(-0.9), START, TS)
    z, along = np.asarray(run.xs), np.asarray(run.along(DUAL))
    assert np.isfinite(z[:3]).all()
    assert np.isnan(z[3:]).any()
    held = np.isfinite(z).all(axis=-1)
    np.testing.assert_allclose((z @ DUAL.T)[held][:, 0], along[held][:, 0], atol=1e-6)
    assert run.with_digits.ts.tolist() == TS[:3].tolist()
    assert len(summarise(run).times) == 3


def test_along_the_axes_nothing_is_lost():
    system = af.RescaledAttention(V=np.diag([-2.0, 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = af.simulate(system, START, [0.0, 30.0])
    assert np.isfinite(run.final).all()
    assert np.abs(run.final[:, 0]).max() > 1e20
    np.testing.assert_allclose(run.final, run.along(np.eye(2))[-1], rtol=1e-12)


def test_a_run_is_continued_from_what_it_kept(run, tmp_path):
    system, half = run.system, quiet(run.system, START, TS[:4])
    loaded = af.Trajectory.load(half.save(tmp_path / "run.zarr"))
    for earlier in (half, loaded):
        later = quiet(system, earlier, TS[3:])
        np.testing.assert_allclose(later.along(DUAL)[-1], run.along(DUAL)[-1], rtol=1e-5)
    whole = half.join(later)
    np.testing.assert_allclose(whole.along(DUAL), run.along(DUAL), rtol=1e-5)
    with pytest.raises(af.InputError, match="loaded run knows the name"):
        loaded.along(DUAL)
    np.testing.assert_array_equal(loaded.of(system).along(DUAL), half.along(DUAL))
    with pytest.raises(af.InputError, match="has lost digits at t = 40"):
        af.simulate(skew(-0.5), half, TS[3:])


def test_save_gets_z_and_what_a_stopped_run_kept_is_exact(run):
    kept = quiet(run.system, START, TS, save=lambda t, z: jnp.isnan(z).any())
    assert kept.xs.tolist() == np.isnan(np.asarray(run.xs)).any(axis=(1, 2)).tolist()
    assert kept.inner is None
    np.testing.assert_allclose(kept.inner_final, run.inner_final, rtol=1e-8)
    with pytest.raises(af.InputError, match="something else than states"):
        kept.along(DUAL)
    few = af.Adaptive(max_steps=int(run.steps) - 5)
    with pytest.raises(af.IncompleteRun) as caught:
        quiet(run.system, START, TS, method=few)
    part = caught.value.trajectory
    assert len(part.ts) >= 3
    np.testing.assert_allclose(part.along(DUAL)[2], run.along(DUAL)[2], rtol=1e-9)


def test_close_weights_are_softmax_and_see_the_last_digit():
    rng = np.random.default_rng(0)
    q, k, m = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.uniform(1, 2, 5)
    plain = m * np.exp(q @ k.T)
    ours = close_weights(jnp.asarray(q), jnp.asarray(k), jnp.asarray(m))
    np.testing.assert_allclose(ours, plain / plain.sum(axis=1, keepdims=True), rtol=1e-12)
    x = np.array([[1.0, 0.7], [1.0, 0.7 - 1.2e-16], [-1.0, 0.1]])
    assert close_weights(jnp.asarray(1e20 * x), jnp.asarray(x))[0].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("W", [np.ones(2), np.ones((1, 3))])
def test_functionals_of_another_dimension_are_refused(W):
    run = af.simulate(af.SA(1.0), af.initial.sphere(3, 2, key=0), [0.0, 0.1])
    with pytest.raises(af.InputError, match=r"W must have shape \(k, 2\)"):
        run.along(W)


@pytest.mark.parametrize("t", [0.5, 14.0], ids=["early", "late"])
def test_a_mask_is_that_of_pure_attention(t):
    """(4) holds for any weights whose rows sum to 1; late ones are told apart by differences."""
    V = BASIS @ np.diag([1.0, -0.2]) @ DUAL
    masked = af.RescaledAttention(V=V, mask="causal")
    pure = af.PureAttention(V=V, mask="causal")
    z = masked.to_z(t, START)
    moved = pure.velocity(t, START) - START @ V.T
    np.testing.assert_allclose(masked.to_x(t, masked.velocity(t, z)), moved, atol=1e-9)
    A = af.observe.attention(masked, z, t)
    np.testing.assert_allclose(A, af.observe.attention(pure, START), atol=1e-9)
    assert np.triu(A, 1).max() == 0


def layers_by_hand(decaying: float, dt: float, count: int) -> np.ndarray:
    """φ₁*(z) after each layer, where every coordinate keeps its own digits."""
    a, b = (np.asarray(START) @ DUAL.T).T
    found = [a]
    for k in range(count):
        A = attention_of(k * np.log1p(dt), a, b)
        a, b = a + dt / (1 + dt) * (A @ a - a), b + dt * decaying * (A @ b)
        found.append(a)
    return np.array(found)


def test_layers_stop_before_their_z_has_lost_a_coordinate():
    """Layers hold z itself: noise was handed out where z has no digits left for φ₁*(z)."""
    ts = np.arange(0, 40.25, 0.25)
    with pytest.raises(af.IncompleteRun, match=r"layers hold z itself.* run the flow") as caught:
        af.simulate(skew(-0.9), START, ts, method=af.Layers(0.25))
    part = caught.value.trajectory
    assert 15 < float(part.ts[-1]) < 30
    leading = np.asarray(part.xs) @ DUAL[0]
    np.testing.assert_allclose(leading, layers_by_hand(-0.9, 0.25, len(part.ts) - 1), atol=1e-5)


def diagonal(*values: float) -> af.RescaledAttention:
    return af.RescaledAttention(V=np.diag(values))


def test_another_v_has_other_coordinates(tmp_path):
    """Coordinates that were small passed for equal: z jumped from 0.5 to 2e8."""
    x0 = np.array([[1.0, 0.5], [-1.0, 0.7]])
    first = af.simulate(diagonal(1.0, -1.0), x0, [0.0, 1.0, 20.0])
    later = af.simulate(diagonal(1.0, -2.0), first, [20.0, 20.5])
    np.testing.assert_array_equal(later.xs[0], first.final)
    np.testing.assert_array_equal(first.join(later).along(np.eye(2)), first.join(later).xs)
    loaded = af.Trajectory.load(first.save(tmp_path / "run.zarr"))
    with pytest.raises(af.InputError, match=r"weights of this .* are others"):
        loaded.of(diagonal(1.0, -2.0))
    np.testing.assert_array_equal(
        af.simulate(diagonal(1.0, -2.0), loaded, [20.0, 20.5]).xs[0], first.final
    )


def test_rounding_in_an_imaginary_part_is_left_out():
    run = quiet(diagonal(1.0, -1.0), START, [0.0, 10.0, 100.0])
    real, complex_ = (run.along(np.array([[1.0, small]]))[-1] for small in (1e-17, 1e-17j))
    np.testing.assert_allclose(complex_, np.asarray(real) + 0j, rtol=1e-12)


def test_powers_of_many_layers():
    assert float(power(jnp.array([[1 + 1e-7]]), 2**24 + 5)[0, 0]) == pytest.approx(
        (1 + 1e-7) ** (2**24 + 5), rel=1e-9
    )
