import tomllib

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.errors import InputError
from attnflow.explore import limits
from attnflow.explore.form import (
    FAMILIES,
    METHODS,
    PRESETS,
    RANDOM,
    STARTS,
    Form,
    is_map,
    takes_matrices,
    typed_matrix,
    unused,
)
from attnflow.explore.frames import run_flow
from attnflow.spec import RunSpec, toml_of
from attnflow.systems import SYSTEMS

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def forms(draw):
    """Any form that is not refused: every field, where sizes go together."""
    system = draw(st.sampled_from(sorted(PRESETS)))
    method = draw(st.sampled_from(METHODS))
    layered = method == "layers" or is_map(system)
    moments = limits.MAX_LAYERS + 1 if layered else limits.FRAMES
    d = draw(st.integers(1, limits.MAX_DIMENSIONS))
    known = FAMILIES if takes_matrices(system) else ("identity",)
    families = draw(st.tuples(*2 * [st.sampled_from(known)]))
    noise = draw(st.floats(0, limits.MAX_NOISE))
    fixed = method == "fixed" or noise > 0 or system == "CBO"
    latest = limits.MAX_STEP * limits.MAX_STEPS if fixed else limits.MAX_TIME
    until = st.floats(1, limits.MAX_LAYERS) if layered else st.floats(1e-3, latest)
    return Form(
        system=system,
        method=method,
        number=draw(st.floats(-1e4, 1e4)),
        d=d,
        n=draw(st.integers(1, min(limits.MAX_TOKENS, limits.MAX_ENTRIES // (d * moments)))),
        until=draw(until),
        heads=draw(st.integers(1, limits.MAX_HEADS if set(families) & set(RANDOM) else 1)),
        scores=families[0],
        values=families[1],
        scores_typed=draw(WORDS),
        values_typed=draw(WORDS),
        start=draw(st.sampled_from((*STARTS, "angles", "ellipsoid"))),
        noise=noise,
        key=draw(st.integers(0, 2**31 - 1)),
    )


@settings(deadline=None)
@given(forms())
def test_an_address_gives_the_form_again(form):
    assert Form.from_address(form.address()) == form
    assert Form.read(form.model_dump()) == form


def same_run(one, other):
    """Whether two specs make the same system, start, times, method and key."""
    made = [spec.build() for spec in (one, other)]
    leaves = [jax.tree.leaves((run.system, run.x0, run.ts, run.method)) for run in made]
    assert [str(run.system) for run in made] == [str(made[0].system)] * 2
    assert str(made[0].method) == str(made[1].method)
    assert len(leaves[0]) == len(leaves[1])
    return all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_run_and_so_is_its_spec(name):
    form = Form.preset(name).model_copy(update={"n": 6})
    spec = form.build()
    again = RunSpec.model_validate(tomllib.loads(toml_of(form.spec())))
    assert again == spec
    assert same_run(again, spec)
    assert Form.from_address(form.address()) == form


def test_every_system_has_a_preset():
    assert set(PRESETS) == set(SYSTEMS) - {"Noisy"}


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["SA", "USA", "PureAttention", "RescaledAttention", "SinkhornSA"]),
    st.sampled_from([*RANDOM, "minus identity", "typed"]),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.5]),
    st.integers(0, 2**31 - 1),
    st.sampled_from(STARTS),
)
def test_a_spec_gives_the_run_again(system, family, heads, noise, key, start):
    heads = heads if family in RANDOM else 1
    form = Form.read(
        Form.preset(system).model_dump()
        | {"n": 2, "d": 2, "values": family, "heads": heads, "noise": noise, "key": key}
        | {"values_typed": "1 0.5; -0.25, 1e-3", "start": start}
    )
    again = RunSpec.model_validate(tomllib.loads(toml_of(form.spec())))
    assert again == form.build()
    try:
        form.build().build()
    except InputError:
        return  # not every start goes with every system
    assert same_run(again, form.build())


def test_a_spec_runs_to_the_same_numbers():
    form = Form(n=6, until=2.0, values="goe", key=3, method="fixed")
    again = RunSpec.model_validate(tomllib.loads(toml_of(form.spec())))
    one, two = (run_flow(spec, lambda part: None) for spec in (form.build(), again))
    np.testing.assert_array_equal(one.trajectory.xs, two.trajectory.xs)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n": 0}, "Tokens n: input should be greater than or equal to 1"),
        ({"n": 2001}, "Tokens n: input should be less than or equal to 2000"),
        ({"d": 65}, "Dimension d: input should be less than or equal to 64"),
        ({"heads": 17}, "Heads: input should be less than or equal to 16"),
        ({"heads": 4, "values": "minus identity"}, "Heads: 4 equal heads are one with 4 times"),
        ({"until": 0}, "Until t: input should be greater than 0"),
        ({"until": 2e6}, "Until t: input should be less than or equal to 1000000"),
        ({"number": float("nan")}, "β: input should be a finite number"),
        ({"number": float("inf")}, "β: input should be a finite number"),
        ({"noise": -1}, "Noise σ: input should be greater than or equal to 0"),
        ({"noise": 11}, "Noise σ: input should be less than or equal to 10"),
        ({"key": -1}, "Key: input should be greater than or equal to 0"),
        ({"key": 2**31}, "Key: input should be less than 2147483648"),
        ({"n": 2.5}, "Tokens n: input should be a valid integer"),
        ({"n": None}, "Tokens n: empty, or no whole number from 1 to 2,000."),
        ({"number": None}, "β: empty, or no number from −10,000 to 10,000."),
        ({"number": None, "system": "Krause"}, "Radius: empty"),
        ({"until": None}, "Until t: empty, or no number above 0 to 1,000,000."),
        ({"system": "Kuramoto", "values": "goe"}, "V: Kuramoto has no matrices to choose"),
        ({"system": "CBO", "scores": "typed"}, "QᵀK: CBO has no matrices to choose"),
        ({"system": "ResNet", "heads": 2}, "Heads: ResNet has no matrices to choose"),
        ({"method": "fixed", "until": 5001}, "Until t: fixed steps, which noise needs too"),
        ({"noise": 0.1, "until": 5001}, "Until t: fixed steps, which noise needs too"),
        ({"system": "S A"}, "System: unknown system 'S A'"),
        ({"system": "Noisy"}, "System: unknown system 'Noisy'"),
        ({"scores": "uniform"}, "QᵀK: input should be 'identity'"),
        ({"start": "nowhere"}, "Start: input should be 'sphere'"),
        ({"method": "guess"}, "Method: input should be 'adaptive'"),
        (
            {"scores_typed": "1" * 20_001},
            "QᵀK, typed: rows of numbers: string should have at most 20000",
        ),
        ({"method": "layers", "until": 401}, "Until t: at most 400 layers are run here"),
        ({"system": "Vicsek", "until": 0.5}, "Until t: layers are counted by whole numbers"),
        (
            {"n": 2000, "d": 64},
            "Tokens n: 2000 tokens in R^64 at 81 moments are 10,368,000 numbers",
        ),
        (
            {"n": 2000, "d": 3, "method": "layers", "until": 400},
            "Tokens n: 2000 tokens in R^3 at 401",
        ),
    ],
)
def test_what_is_refused_and_why(fields, said):
    with pytest.raises(InputError) as error:
        Form.read(fields)
    assert str(error.value).startswith(said)


@settings(deadline=None)
@given(st.integers(1, 4), st.data())
def test_a_typed_matrix(d, data):
    rows = data.draw(st.lists(st.lists(NUMBERS, min_size=d, max_size=d), min_size=d, max_size=d))
    between = data.draw(st.sampled_from([" ", ",", ", ", "\t", "  "]))
    lines = data.draw(st.sampled_from([";", "\n", " ; ", "\r\n", ";\n"]))
    text = lines.join(between.join(map(repr, row)) for row in rows)
    assert typed_matrix(text, d, "V") == rows


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_a_matrix_or_a_sentence(text):
    try:
        found = typed_matrix(text, 2, "V")
    except InputError:
        return
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "V: must have 2 rows of 2 numbers, because d = 2."),
        ("1 2; 3", "V: must have 2 rows of 2 numbers"),
        ("1 2; 3 4; 5 6", "V: must have 2 rows of 2 numbers"),
        ("1 0; 0 one", "V: only numbers can be typed here, not 'one'."),
        ("1 0; 0 1+1", "V: only numbers can be typed here, not '1+1'."),
        ("1 0; 0 __import__('os')", "V: only numbers can be typed here, not \"__import__('os')\"."),
        ("1 0; 0 nan", "V: only numbers can be typed here, not 'nan'."),
        ("inf 0; 0 1", "V: only numbers can be typed here, not 'inf'."),
        ("1_0 0; 0 1", "V: only numbers can be typed here, not '1_0'."),
        ("1 0; 0 0x10", "V: only numbers can be typed here, not '0x10'."),
        ("1 0; 0 1e999", "V: all numbers must be finite."),
        ("1 0; 0 " + "x" * 10_000, f"V: only numbers can be typed here, not '{'x' * 40}'."),
    ],
)
def test_what_is_no_matrix(text, said):
    with pytest.raises(InputError) as error:
        typed_matrix(text, 2, "V")
    assert str(error.value).startswith(said)


def test_a_typed_matrix_is_what_runs():
    form = Form(d=2, n=5, values="typed", values_typed="0 1; -1 0", scores="typed")
    form = form.model_copy(update={"scores_typed": "2 0; 0 3"})
    system = form.build().build().system
    np.testing.assert_array_equal(system.heads.V, [[0, 1], [-1, 0]])
    np.testing.assert_array_equal(system.heads.K, [[2, 0], [0, 3]])
    with pytest.raises(InputError, match="QᵀK: must have 2 rows"):
        form.model_copy(update={"scores_typed": "2"}).build()


def test_a_typed_minus_may_be_the_printed_one():
    assert typed_matrix("−1 0; 0 1e−3", 2, "V") == [[-1.0, 0.0], [0.0, 1e-3]]


@pytest.mark.parametrize("start", ["circle", "angles"])
def test_a_start_that_settles_d_settles_it_for_matrices_too(start):
    width = {"circle": 2, "angles": 1}[start]
    rows = "; ".join(["1 0"[: 2 * width - 1]] * width)
    form = Form.read({"start": start, "d": 3, "n": 5, "values": "typed", "values_typed": rows})
    assert len(form.spec()["system"]["V"]) == width
    assert "d" in unused("SA", start)


@pytest.mark.parametrize("until", [1.0, 12.0, 100.0, 4000.0])
@pytest.mark.parametrize("how", [{"method": "fixed"}, {"noise": 0.3}])
def test_a_fixed_step_is_short_and_fits_between_the_moments(until, how):
    dt = Form.read({"until": until, **how}).spec()["method"]["dt"]
    assert dt <= limits.MAX_STEP
    steps = until / (limits.FRAMES - 1) / dt
    assert steps == pytest.approx(round(steps))
    assert steps >= 8


def test_fields_are_hidden_where_they_say_nothing():
    assert unused("SA", "sphere") == set()
    assert unused("Aggregation", "cube") == {"number", "scores", "values", "heads"}
    assert sum("heads" in unused(name, PRESETS[name].start) for name in PRESETS) == 12


def test_aggregation_goes_on_after_collisions():
    form = Form.preset("Aggregation")
    frames = run_flow(form.build(), lambda part: None)
    assert frames.ended == ""
    assert frames.report.times[-1] == form.until
