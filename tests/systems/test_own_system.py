"""What the docs promise for a system of one's own, in a user's file: it runs, or it is refused."""

import tomllib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import attnflow as af
from attnflow.cli import app
from attnflow.errors import InputError
from attnflow.spec import parse_sweep, write_spec
from attnflow.spec.read import parse_spec
from attnflow.sweep.check import check


class Shrinking(af.System):
    """Every token goes to the mean of all: `x(t) = m + e^{-rate t} (x(0) − m)`."""

    equation = "x_i' = rate · (mean − x_i)"
    source = "a test"
    noise_obstacle = None

    space: af.spaces.Euclidean
    rate: jax.Array

    def __init__(self, rate=1.0):
        self.space, self.rate = af.spaces.Euclidean(), jnp.asarray(rate, float)

    def velocity(self, t, x, masses=None):
        m = jnp.ones(len(x), x.dtype) if masses is None else masses
        return self.rate.astype(x.dtype) * (m @ x / m.sum() - x)

    def parameters(self):
        return {"rate": self.rate}


X0 = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 8.0]])
TS = np.array([0.0, 0.5, 2.0])


def exact(x0, shrunk, masses=None):
    mean = np.average(x0, axis=0, weights=masses)
    return mean + np.reshape(shrunk, (-1, 1, 1)) * (x0 - mean)


@pytest.mark.parametrize(
    ("method", "shrunk", "tol"),
    [
        (None, np.exp(-TS), 1e-8),
        (af.Adaptive(rtol=1e-10), np.exp(-TS), 1e-9),
        (af.Fixed(0.05), np.exp(-TS), 1e-5),
        (af.Layers(0.5), 0.5 ** (TS / 0.5), 1e-14),
    ],
    ids=["default", "Adaptive", "Fixed", "Layers"],
)
def test_it_runs(method, shrunk, tol):
    masses = np.array([1.0, 2.0, 5.0])
    found = af.simulate(Shrinking(), X0, TS, method=method, masses=masses).xs
    assert np.abs(found - exact(X0, shrunk, masses)).max() < 8 * tol


@pytest.mark.slow
def test_gradients_flow_through_it():
    def final(rate):
        return af.simulate(Shrinking(rate), X0, TS, method=af.Fixed(0.1)).final[2, 1]

    assert np.isclose(jax.grad(final)(1.0), -2 * np.exp(-2) * (8 - 8 / 3), rtol=1e-4)


def test_batches_and_noise():
    batch = af.simulate(Shrinking(), np.stack([X0, X0 + 1]), TS, method=af.Fixed(0.1))
    assert np.allclose(batch.xs, [exact(X0, np.exp(-TS)), exact(X0 + 1, np.exp(-TS))], rtol=1e-4)
    noisy, method = af.Noisy(Shrinking(), 0.1), af.Fixed(0.1, "euler")
    moved = af.simulate(noisy, X0, TS, method=method, key=jax.random.key(0)).final
    assert 1e-3 < np.abs(moved - exact(X0, np.exp(-TS))[-1]).max() < 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda own: af.simulate(own, X0, TS, method=af.Coarsening()), "Coarsening"),
        (lambda own: af.simulate(own, X0, TS, method=af.Filippov()), "Filippov is for Hardmax"),
        (lambda own: af.observe.attention(own, X0), "Shrinking has no attention matrix"),
        (lambda own: af.observe.energy_rate(own, X0), "Shrinking"),
        (lambda own: write_spec(own, X0, TS), "Shrinking is not in the table of systems"),
        (lambda own: parse_spec(SPEC).build(), "system.name: .*Shrinking"),
    ],
    ids=["Coarsening", "Filippov", "attention", "energy_rate", "write", "read"],
)
def test_what_it_does_not_declare_is_refused(asked, said):
    with pytest.raises(InputError, match=said):
        asked(Shrinking())


SPEC = {"system": {"name": "Shrinking", "rate": 2.0}, "start": {"name": "gaussian", "n": 3, "d": 2}}
SPEC |= {"times": {"values": [0.0, 1.0]}}


def test_a_row_in_the_table_gives_specs_sweeps_and_its_line_in_the_list(monkeypatch):
    monkeypatch.setitem(af.SYSTEMS, "Shrinking", Shrinking)
    run = parse_spec(SPEC).build()
    again = parse_spec(tomllib.loads(write_spec(run.system, run.x0, run.ts))).build()
    assert float(run.system.rate) == float(again.system.rate) == 2.0
    assert (again.x0 == run.x0).all()
    keep = {"width": {"observable": "diameter"}}
    swept = parse_sweep(SPEC | {"axes": {"system.rate": [1.0, 2.0]}, "keep": keep})
    assert check(swept) == {"width": ()}
    said = CliRunner().invoke(app, ["run", "--list"], env={"COLUMNS": "200"}).output
    assert Shrinking.equation in said


def test_an_infinite_parameter_comes_back_from_its_spec(monkeypatch):
    """JSON's `Infinity` would be no TOML."""
    monkeypatch.setitem(af.SYSTEMS, "Shrinking", Shrinking)
    text = write_spec(Shrinking(np.inf), X0, TS)
    assert "rate = inf" in text
    assert float(parse_spec(tomllib.loads(text)).build().system.rate) == np.inf


def test_one_that_does_not_name_its_parameters_is_not_written(monkeypatch):
    monkeypatch.setitem(af.SYSTEMS, "Shrinking", Shrinking)
    monkeypatch.delattr(Shrinking, "parameters")
    assert write_spec(Shrinking(), X0, TS).startswith('[system]\nname = "Shrinking"')
    with pytest.raises(InputError, match="a spec cannot hold Shrinking"):
        write_spec(Shrinking(2.0), X0, TS)
