import numpy as np

from attnflow.sweep.reduce import reduced, variables
from small_sweep import spec

KEEP = {"E": {"observable": "energy", "quantiles": [0.0, 0.5]}}


def test_mean_error_and_quantiles(rng):
    values = rng.normal(size=(3, 10, 4))
    kept = reduced(spec(keep=KEEP), {"E": values, "ended": np.ones((3, 10), bool)})
    assert np.allclose(kept["E"], values.mean(axis=1))
    assert np.allclose(kept["E_error"], values.std(axis=1, ddof=1) / np.sqrt(10))
    assert np.allclose(kept["E_quantiles"][:, 0], values.min(axis=1))
    assert np.allclose(kept["E_quantiles"][:, 1], np.median(values, axis=1))
    assert kept["unfinished"].tolist() == [0, 0, 0]


def test_runs_that_stopped_do_not_count_where_they_were_not(rng):
    values = rng.normal(size=(1, 4, 3))
    values[0, 1, 2] = np.nan
    ended = np.array([[True, False, True, True]])
    kept = reduced(spec(keep=KEEP), {"E": values, "ended": ended})
    assert np.allclose(kept["E"][0, 2], values[0, [0, 2, 3], 2].mean())
    assert np.allclose(kept["E_error"][0, 2], values[0, [0, 2, 3], 2].std(ddof=1) / np.sqrt(3))
    assert kept["unfinished"].tolist() == [1]


def test_variables_are_what_is_reduced(rng):
    given = spec(keep=KEEP, realisations=1)
    names = {v.name: v for v in variables(given, {"E": (7,)})}
    kept = reduced(given, {"E": rng.normal(size=(4, 1, 3, 7)), "ended": np.ones((4, 1), bool)})
    assert set(names) == set(kept) == {"E", "E_quantiles", "unfinished"}
    for name, variable in names.items():
        assert kept[name].shape == (4, *variable.shape)
        assert len(variable.dims) == len(variable.shape)
