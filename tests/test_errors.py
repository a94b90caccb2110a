import pickle

import pytest

import attnflow as af
from attnflow.errors import (
    IncompleteRun,
    InputError,
    Interrupted,
    ModelError,
    NotConverged,
    WriteError,
    unknown,
)
from attnflow.spec import read_spec


def test_input_error_is_a_value_error():
    assert issubclass(InputError, ValueError)


def test_interrupted_stops_like_ctrl_c():
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)


@pytest.mark.parametrize("error", [IncompleteRun, Interrupted])
def test_a_stopped_run_keeps_what_it_has(error):
    kept = object()
    stopped = error("stopped at t = 2.5", time=2.5, trajectory=kept)
    assert str(stopped) == "stopped at t = 2.5"
    assert stopped.time == 2.5
    assert stopped.trajectory is kept


@pytest.mark.parametrize(
    ("name", "nearest"), [("casual", "causal"), ("SOFTMAX", "softmax"), ("sofmax", "softmax")]
)
def test_unknown_suggests_the_nearest(name, nearest):
    error = unknown("kind", name, {"softmax", "causal"})
    assert isinstance(error, InputError)
    assert f"unknown kind '{name}': did you mean '{nearest}'?" in str(error)


def test_unknown_keeps_the_spelling_of_what_is_known():
    assert "did you mean 'RescaledAttention'?" in str(
        unknown("system", "rescaledattention", ["SA", "RescaledAttention"])
    )


def test_unknown_lists_all_when_none_is_near():
    message = str(unknown("kind", "zzz", ["softmax", "causal"]))
    assert message == "unknown kind 'zzz'. Known: causal, softmax"


def test_unknown_takes_what_is_not_even_a_string():
    assert str(unknown("kind", 3, ["softmax"])) == "unknown kind 3. Known: softmax"


def test_a_sentence_that_quotes_a_whole_file_keeps_its_ends():
    said = str(InputError(f"beta must be a number, not {[0] * 10_000!r}: take 1."))
    assert said.startswith("beta must be a number, not [0")
    assert said.endswith("0]: take 1.")
    assert len(said) < 2000


@pytest.mark.parametrize("kind", [IncompleteRun, Interrupted])
def test_a_run_that_ended_early_travels_between_processes(kind):
    sent = pickle.loads(pickle.dumps(kind("too stiff", time=3.0, trajectory=[1.0])))
    assert type(sent) is kind
    assert (str(sent), sent.time, sent.trajectory) == ("too stiff", 3.0, [1.0])


def test_an_error_that_is_found_at_a_place_keeps_its_parts():
    error = NotConverged("no end after 5 sweeps", where="beta", remedy="take a smaller beta")
    there = error.at("run.toml", "system")
    assert type(there) is NotConverged
    assert there.where == ("run.toml", "system", "beta")
    assert there.reason == "no end after 5 sweeps"
    assert there.remedy == "take a smaller beta"
    said = "run.toml: system: beta: no end after 5 sweeps: take a smaller beta."
    assert str(there) == said
    assert str(ModelError.of(error, "a", "b")) == "a: b: " + str(error)
    assert str(error) == "beta: no end after 5 sweeps: take a smaller beta."


@pytest.mark.parametrize("kind", [InputError, NotConverged, ModelError, WriteError])
def test_an_input_error_travels_between_processes_with_its_parts(kind):
    pytest.importorskip("distributed")  # It changes how exceptions are pickled.
    sent = kind("too large", where=("a", "b"), remedy="take less")
    back = pickle.loads(pickle.dumps(sent))
    assert type(back) is kind
    assert str(back) == str(sent) == "a: b: too large: take less."
    assert (back.where, back.reason, back.remedy) == (("a", "b"), "too large", "take less")


def test_a_long_reason_is_whole_in_what_is_made_of_it():
    error = InputError("x" * 10_000)
    assert error.at("beta").reason == "x" * 10_000
    assert len(str(error.at("beta"))) < 2000


def test_a_stopped_run_says_why_and_what_to_do():
    stopped = IncompleteRun("too stiff", time=1.0, trajectory=None, remedy="use Fixed(dt)")
    whole = "too stiff. Use Fixed(dt). What was reached is in this error's .trajectory."
    assert str(stopped) == whole
    back = pickle.loads(pickle.dumps(stopped))
    assert (str(back), back.reason, back.remedy) == (whole, "too stiff", "use Fixed(dt)")


def test_a_run_that_cannot_go_on_has_its_reason_and_its_remedy():
    x0 = af.initial.sphere(n=4, d=3, key=0)
    with pytest.raises(IncompleteRun) as caught:
        af.simulate(af.SA(4.0), x0, [0.0, 10.0], method=af.Adaptive(max_steps=5))
    error = caught.value
    assert "used up its 5 steps" in error.reason
    assert error.remedy == "raise max_steps, use a looser rtol, or stop earlier"


def test_a_field_of_a_spec_is_data_of_its_error(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[system]\nname = "SA"\nbta = 1\n[start]\nn = 2\nd = 2\n[times]\nstop = 1\n')
    with pytest.raises(InputError) as caught:
        read_spec(path).build()
    assert caught.value.where == ("system.bta",)
    assert caught.value.reason.startswith("unknown parameter of SA 'bta': did you mean 'beta'?")
    path.write_text(path.read_text().replace("stop", "spacing = 'even'\nstop"))
    with pytest.raises(InputError) as caught:
        read_spec(path)
    assert caught.value.where == (str(path), "times.spacing")
    assert caught.value.reason == "unknown value 'even'. Known: linear, log"
