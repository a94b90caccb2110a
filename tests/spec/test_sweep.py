import numpy as np
import pytest

from attnflow.errors import InputError
from attnflow.spec import parse_sweep, read_sweep
from attnflow.spec.read import parse_spec
from attnflow.sweep.check import check

BASE = {
    "system": {"name": "SA", "V": {"family": "ginibre"}},
    "start": {"name": "sphere", "n": 4, "d": 2},
    "times": {"stop": 2.0, "count": 3},
    "axes": {"beta": [1.0]},
    "keep": {"E": {"observable": "energy"}},
}


def keeping(*names):
    """The field `keep` with the energy under these names."""
    return {"keep": {name: {"observable": "energy"} for name in names}}


def test_values_of_axes():
    axes = {
        "beta": {"start": 1.0, "stop": 100.0, "count": 3, "spacing": "log"},
        "d": [2, 3],
        "ensemble": {
            "cases": {"plain": {"system.V": 1.0}, "Wigner": {"system.V.family": "wigner"}}
        },
    }
    spec = parse_sweep(BASE | {"axes": axes})
    assert np.allclose(spec.values("beta"), [1, 10, 100])
    assert spec.values("d") == [2, 3]
    assert spec.values("ensemble") == ["plain", "Wigner"]


def test_a_cell_is_the_run_with_its_values():
    axes = {
        "beta": [1.0, 3.0],
        "d": [2, 5],
        "system.V.family": ["ginibre", "goe"],
        "times": {"cases": {"twice": {"start.n": 8, "system.name": "USA"}}},
    }
    spec = parse_sweep(BASE | {"axes": axes})
    run = spec.cell({"beta": 3.0, "d": 5, "system.V.family": "goe", "times": "twice"}).build()
    assert type(run.system).__name__ == "USA"
    assert float(run.system.beta) == 3.0
    assert run.x0.shape == (8, 5)
    V = np.asarray(run.system.heads.V)
    assert V.shape == (5, 5)
    assert (V == V.T).all()
    assert spec.start.parameters() == {"n": 4, "d": 2}, "the spec itself stays as it is"


def test_a_cell_draws_what_its_run_draws():
    cell = parse_sweep(BASE | {"key": 3}).cell({"beta": 1.0}).build()
    parts = {name: BASE[name] for name in ("start", "times")}
    alone = parse_spec(parts | {"key": 3, "system": BASE["system"] | {"beta": 1.0}}).build()
    assert (cell.x0 == alone.x0).all()
    assert (cell.system.heads.V == alone.system.heads.V).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"axes": {"temperature": [1.0]}}, "axes.temperature: 'temperature' must say where"),
        ({"axes": {"beta": []}}, "axes.beta"),
        ({"axes": {"beta": {"start": 0, "stop": 1}}}, "axes.beta.count: missing"),
        ({"axes": {"beta": {"start": 0, "stop": 1, "cuont": 2}}}, "did you mean 'count'"),
        (
            {"axes": {"beta": {"start": 0, "stop": 1, "count": 3, "spacing": "log"}}},
            "log spacing needs start and stop above 0",
        ),
        ({"axes": {"x": {"cases": {"a": {"V": 1}}}}}, "axes.x: 'V' must say where it belongs"),
        ({"keep": {}}, "keep"),
        ({"keep": {"time": {"observable": "energy"}}}, "keep.time: choose another name"),
        ({"keep": {"E": {"observable": "energy", "quantiles": [2.0]}}}, "keep.E.quantiles.0"),
        (
            {"keep": {"E": {"observable": "energy", "quantiles": [0.5, 0.5]}}},
            "one of them appears twice",
        ),
        (
            {"axes": {"beta": [1.0], "system.beta": [2.0]}},
            "axes.system.beta: system.beta sets system.beta, which axes.beta sets already",
        ),
        (
            {"axes": {"start.n": [4, 5], "n": [6]}},
            "axes.n: n sets start.n, which axes.start.n sets already",
        ),
        (
            {"axes": {"beta": [1.0], "x": {"cases": {"a": {"beta": 2.0}, "b": {"d": 3}}}}},
            "axes.x: beta sets system.beta, which axes.beta sets already",
        ),
        (
            {"axes": {"x": {"cases": {"a": {"d": 2}, "b": {"beta": 2.0}}}, "beta": [1.0]}},
            "axes.beta: beta sets system.beta, which axes.x sets already",
        ),
        (
            {"axes": {"system.V.scale": [1.0, 2.0], "system.V": [1.0]}},
            "axes.system.V: system.V sets system.V.scale, which",
        ),
        (
            {"axes": {"x": {"cases": {"a": {"beta": 2.0, "system.beta": 3.0}}}}},
            "system.beta sets system.beta, which beta of the case a sets already",
        ),
        ({"axes": {"beta": [1.0, 2.0, 1]}}, "axes.beta: 1 appears twice"),
        ({"axes": {"system.V": [[[1.0]], [[1.0]]]}}, "axes.system.V: [[1.0]] appears twice"),
        ({"axes": {"beta": {"start": 2, "stop": 2, "count": 2}}}, "axes.beta: 2.0 appears twice"),
        ({"axes": {"time": {"cases": {"a": {"n": 3}}}}}, "axes.time: choose another name"),
        ({"axes": {"a/b": {"cases": {"a": {"n": 3}}}}}, "axes.a/b: choose another name"),
        (keeping("blocks"), "keep.blocks: choose another name"),
        (keeping("beta"), "keep.beta: choose another name, because axes.beta also has beta"),
        (
            keeping("E", "E_error"),
            "keep.E_error: choose another name, because keep.E also has E_error",
        ),
        (
            keeping("E_quantiles", "E"),
            "keep.E: choose another name, because keep.E_quantiles also has",
        ),
        (
            keeping("E", "E_quantile"),
            "keep.E_quantile: choose another name, because keep.E also has",
        ),
        (keeping("E", "E_0"), "keep.E: choose another name, because keep.E_0 has the name of one"),
        (
            keeping("E") | {"axes": {"E_error": {"cases": {"a": {"n": 3}}}}},
            "keep.E: choose another name, because axes.E_error also has E_error",
        ),
        ({"realisations": 0}, "realisations"),
        ({"realizations": 3}, "did you mean 'realisations'"),
    ],
)
def test_what_is_wrong_is_named(change, said):
    with pytest.raises(InputError) as error:
        parse_sweep(BASE | change)
    assert said in str(error.value)


def test_axes_of_what_is_not_there():
    spec = parse_sweep(BASE | {"axes": {"method.rtol": [1e-3]}})
    with pytest.raises(InputError, match=r"the spec has no \[method\] to vary"):
        spec.cell({"method.rtol": 1e-3})
    spec = parse_sweep(BASE | {"axes": {"system.K.scale": [1e-3]}})
    with pytest.raises(InputError, match=r"axes.system.K.scale: K is not a table"):
        spec.cell({"system.K.scale": 1e-3})


def test_values_from_the_scores():
    ginibre = {"family": "ginibre"}
    system = {"name": "SA", "beta": 1.0, "Q": ginibre, "K": ginibre}
    spec = parse_sweep(BASE | {"system": system | {"V": {"family": "scores", "scale": 0.5}}})
    heads = spec.cell({"beta": 1.0}).build().system.heads
    assert np.allclose(heads.V, 0.5 * np.asarray(heads.Q).T @ np.asarray(heads.K))
    only = {"name": "SA", "beta": 1.0, "K": ginibre, "V": {"family": "scores"}}
    heads = parse_sweep(BASE | {"system": only}).cell({"beta": 1.0}).build().system.heads
    assert (heads.V == heads.K).all()


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ({"V": {"family": "scores"}}, "scores need Q or K"),
        ({"K": 2.0, "V": {"family": "scores"}}, "K to be a constant matrix"),
        ({"K": {"family": "goe"}, "V": {"family": "scores", "sacle": 1.0}}, "sacle"),
    ],
)
def test_scores_that_are_not_there(system, said):
    spec = parse_sweep(BASE | {"system": {"name": "SA", "beta": 1.0} | system})
    with pytest.raises(InputError) as error:
        spec.cell({"beta": 1.0}).build()
    assert said in str(error.value)


def test_a_run_is_no_sweep(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('[system]\nname = "SA"\n[start]\nn = 4\nd = 2\n[times]\nstop = 1.0\n')
    with pytest.raises(InputError, match=r"axes: missing; keep: missing"):
        read_sweep(file)


def test_a_grid_that_nobody_could_compute_is_refused():
    many = {"start": 0.0, "stop": 1.0, "count": 100_000}
    with pytest.raises(InputError, match="10,000,000,000 cells are more than"):
        parse_sweep(BASE | {"axes": {"beta": many, "system.V": many}})
    with pytest.raises(InputError, match="20,000 combinations would each have to be compiled"):
        check(parse_sweep(BASE | {"axes": {"n": list(range(2, 20_002))}}))
