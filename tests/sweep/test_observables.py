import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.sweep.observables import REPLACEMENTS, bind, known

SYSTEM = af.SA(2.0)
X = af.initial.sphere(n=6, d=3, key=0)


@pytest.mark.parametrize(
    ("observable", "parameters", "expected"),
    [
        ("energy", {}, lambda: af.observe.energy(X, 2.0)),
        ("pairs_clustered", {"delta": 0.5}, lambda: af.observe.pairs_clustered(X, 0.5)),
        ("effective_rank", {}, lambda: af.observe.effective_rank(X)),
        ("overlaps", {}, lambda: np.asarray(X) @ np.asarray(X).T),
        ("overlap_density", {"bins": 4}, lambda: af.observe.overlap_histogram(X, 4)[0]),
        ("mean_entropy", {}, lambda: af.observe.entropy(af.observe.attention(SYSTEM, X)).mean()),
        ("leader_count", {"share": 0.2}, lambda: _leaders(0.2)),
        ("rank", {}, lambda: af.observe.rank(af.observe.attention(SYSTEM, X))),
        ("hull_vertices", {}, lambda: len(af.observe.hull(X).vertices)),
        ("cluster_count", {"tol": 0.9}, lambda: af.observe.clusters(X, 0.9).count),
        ("energy_rate", {}, lambda: af.observe.energy_rate(SYSTEM, X)),
    ],
)
def test_by_name_under_jit(observable, parameters, expected):
    keep = bind("kept", observable, parameters)
    found = jax.jit(lambda x: keep(0.0, x, SYSTEM))(X)
    assert np.allclose(found, expected(), atol=1e-12)


def _leaders(share):
    P = np.asarray(af.observe.attention(SYSTEM, X))
    return np.asarray(af.observe.leaders(P, share)).sum()


def test_every_function_of_observe_is_known_or_has_a_reason():
    names = set(known())
    functions = {name: f for name, f in vars(af.observe).items() if inspect.isfunction(f)}
    for name in set(functions) - names - set(REPLACEMENTS):
        assert "ts" in inspect.signature(functions[name]).parameters, name
    assert set(REPLACEMENTS.values()) <= names
    assert {"energy", "diameter", "order_parameter", "saddle_index", "hull_vertices"} <= names
    assert not {"exponential_rate", "clusters", "hull"} & names


@pytest.mark.parametrize(
    ("observable", "parameters", "said"),
    [
        ("enrgy", {}, "keep.E.observable: unknown observable 'enrgy': did you mean 'energy'?"),
        ("clusters", {}, "use cluster_count"),
        ("energy", {"detla": 1.0}, "keep.E.detla: unknown parameter of energy"),
        ("neural_collapse", {}, "keep.E.labels: missing"),
    ],
)
def test_what_cannot_be_kept(observable, parameters, said):
    with pytest.raises(InputError, match=r".") as error:
        bind("E", observable, parameters)
    assert said in str(error.value)


def test_it_looks_at_positions_not_at_states():
    class Angles(af.SA):
        def positions(self, x):
            return jnp.concatenate([jnp.cos(x), jnp.sin(x)], axis=1)

    angles = jnp.array([[0.0], [0.1], [3.0]])
    keep = bind("R", "order_parameter", {})
    tokens = Angles(1.0).positions(angles)
    assert np.allclose(keep(0.0, angles, Angles(1.0)), af.observe.order_parameter(tokens))
