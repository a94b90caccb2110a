"""Specs: what they build, and what a wrong one is told."""

from pathlib import Path

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InputError
from attnflow.simulation import inputs
from attnflow.spec import default_spec, read_spec
from attnflow.spec.read import parse_spec

GOOD = {
    "system": {"name": "SA", "beta": 4.0},
    "start": {"name": "sphere", "n": 8, "d": 3},
    "times": {"stop": 5.0, "count": 6},
}


def changed(path, value):
    """GOOD with the field at a dotted path set."""
    data = {k: dict(v) if isinstance(v, dict) else v for k, v in GOOD.items()}
    *parents, last = path.split(".")
    at = data
    for parent in parents:
        at = at.setdefault(parent, {})
    at[last] = value
    return data


def test_a_spec_is_the_call_that_it_describes():
    run = parse_spec(GOOD).build()
    assert repr(run.system) == "SA(beta=4)"
    assert run.x0.shape == (8, 3)
    assert np.array_equal(run.ts, np.linspace(0, 5, 6))
    assert run.method is None


def test_the_key_decides_every_draw():
    V = {"family": "ginibre"}
    first, again, other = (
        parse_spec(changed("system.V", V) | {"key": s}).build() for s in (1, 1, 2)
    )
    assert np.array_equal(first.x0, again.x0)
    assert np.array_equal(first.system.heads.V, again.system.heads.V)
    assert not np.allclose(first.x0, other.x0)
    assert not np.allclose(first.system.heads.V, other.system.heads.V)


def test_weights_in_all_their_forms():
    V = parse_spec(changed("system.V", -1.0)).build().system.heads.V
    assert V.shape == ()
    V = parse_spec(changed("system.V", [[1, 0, 0], [0, 2, 0], [0, 0, 3]])).build().system.heads.V
    assert np.array_equal(V, np.diag([1, 2, 3]))
    table = {"family": "spectrum", "eigenvalues": ["0.5+1j", "0.5-1j", 1.0], "symmetric": False}
    V = parse_spec(changed("system.V", table)).build().system.heads.V
    assert np.allclose(np.sort(np.linalg.eigvals(V).real), [0.5, 0.5, 1.0])
    heads = parse_spec(changed("system.V", {"family": "goe", "heads": 4})).build().system.heads
    assert heads.count == 4
    system = parse_spec(changed("system.V", {"family": "ginibre", "every": 0.5})).build().system
    assert system.breaks.periods == (0.5,)
    assert np.allclose(system.heads.V(0.1), system.heads.V(0.4))


def test_times_in_all_their_forms():
    assert np.array_equal(parse_spec(GOOD | {"times": {"values": [0, 1, 4]}}).build().ts, [0, 1, 4])
    ts = (
        parse_spec(GOOD | {"times": {"stop": 100.0, "first": 0.1, "count": 5, "spacing": "log"}})
        .build()
        .ts
    )
    assert np.allclose(ts, [0, 0.1, 1, 10, 100])


def test_methods_and_tokens():
    run = parse_spec(GOOD | {"method": {"name": "Layers", "dt": 0.5}}).build()
    assert repr(run.method) == "Layers(dt=0.5)"
    run = parse_spec(GOOD | {"start": {"tokens": [[1, 0], [0, 1]]}, "dtype": "float32"}).build()
    assert run.x0.dtype == np.float32
    assert np.array_equal(run.x0, np.eye(2))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("system.name", "SAA", r"system\.name: unknown system 'SAA': did you mean 'SA'"),
        ("system.bta", 1.0, r"system\.bta: .*did you mean 'beta'"),
        ("system.beta", float("nan"), r"system: beta must be finite"),
        ("system.beta", "hot", "system: .*beta"),
        ("system.mask", "casual", r"system: unknown mask 'casual': did you mean 'causal'"),
        ("system.V", {"family": "ginbre"}, r"system\.V\.name.*did you mean 'ginibre'"),
        ("system.V", {"family": "ginibre", "sale": 2}, r"system\.V\.sale: .*did you mean 'scale'"),
        ("system.V", "big", r"system\.V: must be a number, a list of rows, or a table"),
        ("system.V", [[1.0], [1.0, 2.0]], r"system\.V: must be a list of rows"),
        ("system.V", {"family": "spectrum", "eigenvalues": ["x"]}, r"system\.V\.eigenvalues"),
        ("system.V", {"family": "ginibre", "every": -1}, r"system\.V: every"),
        ("start.name", "spere", r"start\.name: unknown start 'spere': did you mean 'sphere'"),
        ("start.m", 3, r"start\.m: unknown parameter of sphere"),
        ("start.n", -3, "start: n must be a whole number"),
        ("start.n", 2.5, "start: n must be a whole number"),
        ("times.stop", -1.0, r"times\.stop: .*greater than 0"),
        ("times.spacing", "lg", r"times\.spacing: unknown value 'lg': did you mean 'log'"),
        ("times.cont", 3, r"times\.cont: unknown field 'cont': did you mean 'count'"),
        ("times.values", [0.0, 1.0], r"times: give either stop"),
        ("sytem", {}, r"sytem: unknown field 'sytem': did you mean 'system'"),
        ("key", "one", "key: .*integer"),
        ("dtype", "float16", r"dtype: unknown value 'float16': did you mean 'float"),
        ("method", {"name": "Adaptve"}, r"method\.name: .*did you mean 'Adaptive'"),
        ("method", {"name": "Fixed"}, r"method\.dt: missing"),
        ("method", {"name": "Fixed", "dt": -1}, "method: dt must be"),
    ],
)
def test_a_wrong_field_is_named_with_the_nearest_right_value(path, value, said, untyped):
    with pytest.raises(af.InputError, match=said):
        parse_spec(changed(path, value)).build()


def test_missing_parts_are_named():
    with pytest.raises(af.InputError, match="system: missing"):
        parse_spec({k: v for k, v in GOOD.items() if k != "system"})
    with pytest.raises(af.InputError, match=r"start\.n: missing, but sphere needs it"):
        parse_spec(GOOD | {"start": {"d": 3}}).build()


def test_files_that_are_not_what_they_claim(tmp_path):
    with pytest.raises(af.InputError, match="no such file"):
        read_spec(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("system = {")
    with pytest.raises(af.InputError, match=r"broken\.toml: not valid TOML"):
        read_spec(broken)
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(af.InputError, match="cannot be read as text"):
        read_spec(broken)
    with pytest.raises(af.InputError, match="cannot be read"):
        read_spec(tmp_path)


def test_the_default_is_a_metastable_run_on_the_sphere():
    run = default_spec().build()
    assert repr(run.system) == "SA(beta=9)"
    assert run.x0.shape == (64, 3)


EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=[p.stem for p in EXAMPLES])
def test_examples_build_and_start(path):
    run = read_spec(path).build()
    x0 = inputs.check_start(run.system, run.x0)
    inputs.check_method(run.method, run.system, x0, run.ts)
    system = run.system.with_key(run.key)
    moved = system.layer(0, x0, 0.1)
    assert np.isfinite(moved).all()
    assert np.abs(moved - x0).max() > 1e-6


def test_there_are_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("key", 2**63, "key"),
        ("system.beta", 10**400, "beta must be a number"),
        ("system.V", 10**400, "system.V: must be a list of rows of numbers"),
        ("system.Q", {"family": "ginibre", "every": [0.5]}, "every must be a finite number"),
        ("system.V", {"family": "ginibre", "rows": 10**12}, "a weight of shape"),
        ("system.V", {"family": "identity", "d": 10**12}, "a weight of shape"),
        ("system.V", {"family": "bias", "d": 10**12}, "a weight of shape"),
        (
            "system",
            {"name": "PostNorm", "beta": 1.0, "D": ["x"]},
            "system.D: must be a list of rows of numbers",
        ),
        ("system", {"name": "PostNorm", "beta": 1.0, "D": 1.0}, "system.D: must be a list"),
        ("system", {"name": "Vicsek", "eta": [0.1]}, "eta must be a single real number"),
        ("start", {"name": "circle", "n": 10**12}, "a start of shape"),
        ("start.n", 10**400, "n must be a whole number below 2^63"),
        ("method", {"name": "Layers", "dt": [1.0]}, "dt must be a finite number above 0"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_made(path, value, said, untyped):
    with pytest.raises(af.InputError) as caught:
        parse_spec(changed(path, value)).build()
    assert said in str(caught.value)


@pytest.mark.parametrize("digits", ["1" * 5000, "0x" + "f" * 5000, "-0x" + "f" * 3000])
def test_a_number_that_is_too_long_is_refused(digits, tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(f'key = {digits}\n[system]\nname = "SA"\n')
    with pytest.raises(InputError, match=r"spec\.toml: (not valid TOML|the spec: a whole number)"):
        read_spec(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file here")
def test_a_file_without_end_is_not_read_to_its_end():
    with pytest.raises(InputError, match="larger than 16 MiB"):
        read_spec("/dev/zero")


def test_a_spec_that_is_too_deep_is_refused(tmp_path):
    """Dotted names are no recursion for the reader of TOML, but they are for whoever shows them."""
    deep = "system." * 3000 + "name"
    (tmp_path / "deep.toml").write_text(f'{deep} = "SA"')
    with pytest.raises(af.InputError, match="nested more than 64 deep"):
        read_spec(tmp_path / "deep.toml")
