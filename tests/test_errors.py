import pickle

import pytest

from attnflow.errors import IncompleteRun, InputError, Interrupted, unknown


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
