"""A spec that is built, written and read again is the same run, bit for bit."""

import tomllib

import equinox as eqx
import numpy as np
import pytest
from hypothesis import strategies as st

from attnflow.spec import toml_of, write_spec
from attnflow.spec.read import parse_spec
from properties.strategies import always, cases

pytestmark = pytest.mark.slow

SMALL = ((3, 2),)
families = st.sampled_from(
    [
        {"family": "ginibre"},
        {"family": "ginibre", "heads": 2, "scale": 0.5},
        {"family": "goe"},
        {"family": "wishart"},
        {"family": "spectrum", "eigenvalues": ["0.5+1j", "0.5-1j"], "symmetric": False},
    ]
)
starts = st.sampled_from(
    [
        {"name": "sphere", "n": 3, "d": 2},
        {"name": "hemisphere", "n": 3, "d": 2},
        {"name": "clustered", "n": 3, "d": 2, "clusters": 2},
        {"name": "circle", "n": 3},
    ]
)
methods = st.sampled_from(
    [
        {"name": "Adaptive", "rtol": 1e-6},
        {"name": "Fixed", "dt": 0.1, "solver": "heun"},
        {"name": "Layers", "dt": 0.5},
        {"name": "Coarsening", "tol": 1e-5},
    ]
)


@st.composite
def specs(draw):
    """Specs of attention on the sphere, in which weights, start and method are named."""
    system = {"name": draw(st.sampled_from(["SA", "USA", "Transformer"]))}
    system["beta"] = draw(st.floats(0, 1e3) | st.integers(0, 9))
    V = draw(st.none() | st.floats(-2, 2) | families)
    system |= {} if V is None else {"V": V}
    times = draw(
        st.fixed_dictionaries({"stop": st.floats(1e-3, 1e6), "count": st.integers(2, 5)})
        | st.lists(st.integers(0, 99), min_size=2, unique=True).map(lambda t: {"values": sorted(t)})
    )
    return {
        "key": draw(st.integers(0, 2**31)),
        "dtype": draw(st.sampled_from(["float64", "float32"])),
        "system": system,
        "start": draw(starts),
        "times": times,
        "method": draw(methods),
    }


def same(ours, theirs):
    assert eqx.tree_equal(ours.system, theirs.system)
    assert ours.x0.dtype == theirs.x0.dtype
    np.testing.assert_array_equal(ours.x0, theirs.x0)
    np.testing.assert_array_equal(ours.ts, theirs.ts)
    assert eqx.tree_equal((ours.method, ours.key), (theirs.method, theirs.key))


@always(specs())
def test_a_spec_comes_back(fields):
    run = parse_spec(tomllib.loads(toml_of(fields))).build()
    text = write_spec(run.system, run.x0, run.ts, run.method, key=fields["key"])
    again = parse_spec(tomllib.loads(text))
    same(again.build(), run)
    there = again.build()
    assert text == write_spec(there.system, there.x0, there.ts, there.method, key=fields["key"])


@always(cases(masked=(None, "causal", "given"), shapes=SMALL))
def test_every_system_comes_back(case):
    text = write_spec(case.system, case.x, [0.0, 1.0])
    assert eqx.tree_equal(parse_spec(tomllib.loads(text)).build().system, case.system)
