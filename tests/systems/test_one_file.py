"""A new system is one class: specs, sweeps, the page and the list of systems follow from it."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import sweep
from attnflow.explore.form import Form
from attnflow.spec import parse_spec, parse_sweep, write_spec
from attnflow.systems.presets import MATRIX, Preset
from command import call


class LinearPull(af.System):
    """`x_i' = rate V (x̄ − x_i)` on R^d: every token goes to the mean, along V."""

    equation: ClassVar[str] = "x_i' = rate V (x̄ − x_i)"
    source: ClassVar[str] = "a test"
    space = af.spaces.Euclidean()
    drawn: ClassVar = {"V": MATRIX}
    preset = Preset("rate", 0.5, "cube", 3.0, side=2.0)

    rate: jnp.ndarray
    V: jnp.ndarray

    def __init__(self, rate=1.0, *, V=1.0):
        self.rate, self.V = jnp.asarray(rate, float), jnp.asarray(V, float)

    def velocity(self, t, x, masses=None):
        away = self.rate.astype(x.dtype) * (x.mean(axis=0) - x)
        V = self.V.astype(x.dtype)
        return V * away if V.ndim == 0 else away @ V.T

    def parameters(self):
        return {"rate": self.rate, "V": self.V}


SPEC = {
    "system": {"name": "LinearPull", "V": {"family": "goe"}},
    "start": {"name": "gaussian", "n": 5, "d": 2},
    "times": {"values": [0.0, 0.5]},
}


@pytest.fixture(autouse=True)
def row(monkeypatch):
    monkeypatch.setitem(af.SYSTEMS, "LinearPull", LinearPull)


def test_a_spec_draws_what_it_declares_and_holds_it():
    run = parse_spec(SPEC).build()
    assert run.system.V.shape == (2, 2)
    assert not np.array_equal(run.system.V, parse_spec(SPEC | {"key": 1}).build().system.V)
    text = write_spec(run.system, run.x0, run.ts)
    assert 'name = "LinearPull"' in text


def test_it_runs_as_its_equation_says():
    run = parse_spec(SPEC | {"system": {"name": "LinearPull", "rate": 2.0}}).build()
    found = af.simulate(*run[:3]).final
    mean = run.x0.mean(axis=0)
    np.testing.assert_allclose(found, mean + np.exp(-1.0) * (run.x0 - mean), atol=1e-8)


def test_a_sweep_has_its_numbers_as_axes(tmp_path):
    axes = {"axes": {"system.rate": [0.5, 1.0]}, "keep": {"size": {"observable": "diameter"}}}
    sweep.run(parse_sweep(SPEC | axes), tmp_path / "store")
    sizes = sweep.load(tmp_path / "store")["size"].values
    assert np.isfinite(sizes).all()


def test_the_page_and_the_list_show_it():
    form = Form.preset("LinearPull")
    assert (form.number, form.start, form.until) == (0.5, "cube", 3.0)
    form.check()
    built = form.build().build()
    assert isinstance(built.system, LinearPull)
    assert float(built.system.rate) == 0.5
    assert "LinearPull" in call("run", "--list")[1]
