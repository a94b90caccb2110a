import pytest

from attnflow.errors import InputError
from attnflow.sweep.check import check
from small_sweep import spec


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"axes": {"system.name": ["SinkhornSA"], "beta": [1.0, -2.0, 3.0]}},
            "at system.name = SinkhornSA, beta = -2: system: beta must not be negative",
        ),
        ({"axes": {"d": [2, 0], "beta": [1.0]}}, "at d = 0, beta = 1: start: d must be"),
        (
            {"axes": {"system.name": ["SB"], "beta": [1.0]}},
            "at system.name = SB, beta = 1: system.name: unknown",
        ),
        ({"system": {"name": "SA"}, "axes": {"n": [4, 5]}}, "system.beta: missing"),
        ({"start": {"name": "gaussian", "n": 4, "d": 2}}, "unit"),
        (
            {"keep": {"E": {"observable": "overlaps"}}, "axes": {"n": [3, 4], "beta": [1.0]}},
            "shape",
        ),
        ({"keep": {"E": {"observable": "inner_products"}}}, "does not work under jit"),
        (
            {"system": {"name": "PureAttention"}, "keep": {"E": {"observable": "nothing"}}},
            "nothing",
        ),
        (
            {"realisations": 10_000_000, "times": {"stop": 1.0, "count": 10_000}},
            "fewer realisations",
        ),
        ({"times": {"values": [0.0, 2.0, 1.0]}}, "increas"),
        ({"method": {"name": "Layers", "dt": 0.3}}, "whole number of layers"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(changes, said):
    with pytest.raises(InputError) as error:
        check(spec(**changes))
    assert said in str(error.value)


def test_shapes_of_what_is_kept():
    keep = {"E": {"observable": "energy"}, "h": {"observable": "overlap_density", "bins": 7}}
    assert check(spec(keep=keep)) == {"E": (), "h": (7,)}
