"""A spec that is written builds the same run again, to the last digit."""

import tomllib

import numpy as np
import pytest

import attnflow as af
from attnflow import initial, weights
from attnflow.errors import InputError
from attnflow.spec import write_spec
from attnflow.spec.read import parse_spec

SYSTEMS = [
    af.SA(4.0),
    af.USA(1.5, V=-1.0),
    af.SA(2.0, Q=weights.ginibre(3, seed=0), K=weights.ginibre(3, seed=1)),
    af.RescaledAttention(V=weights.goe(3, seed=2)),
    af.SA(1.0, V=weights.ginibre(3, heads=2, seed=3)),
]


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
@pytest.mark.parametrize("method", [None, af.Adaptive(rtol=1e-6), af.Layers(dt=0.5)], ids=str)
def test_it_comes_back(system, method):
    x0 = initial.sphere(n=5, d=3, seed=4)
    ts = [0.0, 0.5, 10.0]
    text = write_spec(system, x0, ts, method, title='a "quoted" title')
    spec = parse_spec(tomllib.loads(text))
    run = spec.build()
    assert spec.title == 'a "quoted" title'
    assert type(run.system) is type(system)
    np.testing.assert_array_equal(run.x0, x0)
    np.testing.assert_array_equal(run.ts, ts)
    np.testing.assert_array_equal(run.system.velocity(0.0, x0), system.velocity(0.0, x0))
    assert str(run.method) == str(method)


def test_what_a_spec_cannot_hold_is_refused():
    x0 = initial.sphere(n=5, d=3, seed=4)
    turning = af.SA(1.0, V=lambda t: np.eye(3))
    with pytest.raises(InputError, match="V is a function of time"):
        write_spec(turning, x0, [0.0, 1.0])

    class Mine(af.SA):
        pass

    with pytest.raises(InputError, match="Mine is not in the table"):
        write_spec(Mine(1.0), x0, [0.0, 1.0])
