"""Specs of oscillators: frequencies, graphs and couplings by name, drawn from the key."""

import tomllib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.spec import write_spec
from attnflow.spec.read import parse_spec, parse_sweep
from attnflow.sweep.check import check
from attnflow.weights import couplings, frequencies, graphs

TEXT = """
[system]
name = "Kuramoto"
K = 2.0
omega = { family = "lorentzian", width = 0.5 }
graph = { family = "erdos_renyi", p = 0.3 }

[start]
name = "angles"
n = 20

[times]
stop = 5.0
"""


def spec(**system):
    data = tomllib.loads(TEXT)
    return data | {"system": data["system"] | system}


def test_the_key_decides_frequencies_and_graph():
    first, again, other = (parse_spec(spec() | {"key": s}).build() for s in (1, 1, 2))
    assert repr(first.system) == "Kuramoto(K=2, omega=array(20,), graph=array(20, 20))"
    assert eqx.tree_equal(first.system, again.system)
    assert not np.allclose(first.system.omega, other.system.omega)
    assert not np.array_equal(first.system.graph, other.system.graph)
    root = jax.random.key(1)
    omega = frequencies.lorentzian(20, 0.5, key=jax.random.fold_in(root, 4))
    graph = graphs.erdos_renyi(20, 0.3, key=jax.random.fold_in(root, 5))
    assert np.array_equal(first.system.omega, omega)
    assert np.array_equal(first.system.graph, graph)


def test_numbers_and_even_frequencies():
    assert parse_spec(spec(omega=1)).build().system.omega.shape == ()
    given = parse_spec(spec(omega=list(range(20)))).build().system.omega
    assert np.array_equal(given, np.arange(20))
    table = {"family": "normal", "width": 1.0, "even": True}
    even = parse_spec(spec(omega=table)).build().system.omega
    assert np.array_equal(even, frequencies.normal(20, 1.0, even=True))


def test_couplings_by_name():
    data = {**spec(), "system": {"name": "CircleCoupling", "K": 1.0}}
    data["system"]["h"] = {"family": "harmonics", "sin": [0.5, 1]}
    h = parse_spec(data).build().system.h
    assert eqx.tree_equal(h, couplings.Harmonics(sin=[0.5, 1]))
    data["system"]["h"] = {"family": "exponential", "beta": 3.0}
    assert eqx.tree_equal(parse_spec(data).build().system.h, couplings.Exponential(3.0))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"omega": {"family": "lorenzian"}}, r"system\.omega\.name: .*did you mean 'lorentzian'"),
        ({"omega": {"family": "normal"}}, r"system\.omega\.width: missing"),
        ({"omega": "wide"}, r'system\.omega: must be .* family = "lorentzian"'),
        ({"graph": {"family": "erdos_renyi", "q": 1}}, r"system\.graph\.q: unknown parameter"),
        ({"graph": {"family": "erdos_renyi", "p": 2.0}}, r"system\.graph: p must be a probab"),
        ({"K": [[1.0]]}, "system: K must be a single real number"),
    ],
)
def test_a_wrong_field_is_named(change, said, untyped):
    with pytest.raises(af.InputError, match=said):
        parse_spec(spec(**change)).build()


@pytest.mark.parametrize(
    "system",
    [
        af.AngularSA(2.0),
        af.AngularUSA(2.0),
        af.Kuramoto(1.5),
        af.Kuramoto(1.5, 0.1, np.ones((3, 3))),
        af.Kuramoto(1.5, np.arange(3) / 7),
    ],
    ids=str,
)
def test_a_written_spec_comes_back(system):
    text = write_spec(system, np.ones((3, 1)), [0.0, 1.0])
    assert eqx.tree_equal(parse_spec(tomllib.loads(text)).build().system, system)


def test_a_coupling_of_ones_own_is_refused():
    system = af.CircleCoupling(jnp.tanh, 1.0)
    with pytest.raises(af.InputError, match="h is a function of an angle"):
        write_spec(system, np.ones((3, 1)), [0.0, 1.0])


def test_a_sweep_over_the_strength_can_run():
    sweep = {
        "axes": {"system.K": [0.5, 1.0, 2.0]},
        "keep": {"r": {"observable": "order_parameter"}},
    }
    assert check(parse_sweep(spec() | sweep)) == {"r": ()}
