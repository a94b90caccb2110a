"""The plain equations that checks compare runs with: closed forms, and the library's velocities."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.errors import InputError
from attnflow.simulation import Fixed, Layers, simulate
from attnflow.systems import SA, USA, AngularSA, PureAttention, RescaledAttention
from attnflow.theory.checks.equations import off_the_equation, plain_run, plain_velocity

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3))
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)
Q, K, V = RNG.normal(size=(3, 2, 3, 3)) / 2
MASSES = np.linspace(0.5, 2.0, 5)


@pytest.mark.parametrize("normalised", [True, False])
def test_two_tokens_on_the_circle(normalised) -> None:
    # θ' of the angle 2a between them: −2 sin(2a) e^{β cos 2a} / Z, by hand.
    beta, a = 1.3, 0.4
    x = np.array([[np.cos(a), np.sin(a)], [np.cos(a), -np.sin(a)]])
    pull = np.exp(beta * np.cos(2 * a))
    Z = pull + np.exp(beta) if normalised else 2
    v = plain_velocity((SA if normalised else USA)(beta), 2, 2)(x)
    speed = -np.sin(2 * a) * pull / Z
    np.testing.assert_allclose(v[0], speed * np.array([-np.sin(a), np.cos(a)]), atol=1e-15)


@pytest.mark.parametrize(
    ("system", "x"),
    [
        (SA(2.0, Q=Q, K=K, V=V, mask="causal"), UNIT),
        (USA(1.0, Q=Q, K=K, V=V), UNIT),
        (SA(2.0, V=-1.0), UNIT),
        (PureAttention(Q=Q, K=K, V=V, beta=0.5, mask=np.tri(5, dtype=bool)), X),
    ],
    ids=["SA, causal", "USA", "SA, V = −1", "PureAttention, masked"],
)
def test_they_are_the_velocities_of_the_library(system, x) -> None:
    expected = np.asarray(system.velocity(0.0, jnp.asarray(x), jnp.asarray(MASSES)))
    np.testing.assert_allclose(plain_velocity(system, 5, 3, MASSES)(x), expected, atol=1e-13)


def test_rescaled_runs_and_layers() -> None:
    system = RescaledAttention(Q=Q, K=K, V=V)
    run = simulate(system, X, [0.0, 0.5, 1.0], masses=MASSES, method=Fixed(0.01))
    there = plain_run(system, X, (0.0, 1.0), masses=MASSES)
    np.testing.assert_allclose(run.final, there, atol=1e-6)
    half = plain_run(system, np.asarray(run.xs[1]), (0.5, 1.0), masses=MASSES)
    np.testing.assert_allclose(run.final, half, atol=1e-6)
    layers = simulate(system, X, [0.0, 1.0], method=Layers(0.25)).final
    np.testing.assert_allclose(plain_run(system, X, (0.0, 1.0), dt=0.25), layers, atol=1e-10)


def test_what_is_not_the_solution_is_off() -> None:
    after = plain_run(SA(2.0), UNIT, (0.0, 1.0))
    assert off_the_equation(SA(2.0), (0.0, 1.0), UNIT, after) == 0
    assert off_the_equation(SA(1.0), (0.0, 1.0), UNIT, after) > 0.05
    assert off_the_equation(SA(2.0), (0.0, 1.0), UNIT, UNIT) == 1


def test_an_equation_that_is_not_written_is_refused() -> None:
    with pytest.raises(InputError, match="one of SA, USA"):
        plain_velocity(AngularSA(1.0), 5, 1)
