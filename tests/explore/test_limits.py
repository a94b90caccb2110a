import pytest

from attnflow.errors import InputError
from attnflow.explore import limits
from attnflow.explore.form import Form


def test_layers():
    for good in (1, 1.0, 12.5, limits.MAX_LAYERS):
        limits.check_layers(float(good))
    with pytest.raises(InputError, match="Until t: at most 400 layers are run here, but it is 401"):
        limits.check_layers(401.0)
    with pytest.raises(InputError, match=r"Until t: layers are counted .* but it is 0.5"):
        limits.check_layers(0.5)


def test_steps():
    limits.check_steps(limits.MAX_STEP * limits.MAX_STEPS)
    with pytest.raises(
        InputError, match="at most 100,000 here, so t goes to 5,000, but it is 5001"
    ):
        limits.check_steps(5001.0)


def test_sizes():
    limits.check_size(limits.MAX_ENTRIES // limits.FRAMES, 1, limits.FRAMES)
    with pytest.raises(InputError) as error:
        limits.check_size(limits.MAX_ENTRIES // limits.FRAMES + 1, 1, limits.FRAMES)
    assert str(error.value) == (
        "Tokens n: 24692 tokens in R^1 at 81 moments are 2,000,052 numbers; at most 2,000,000 "
        "are kept here. `attnflow run` has no such limit."
    )


def test_a_run_keeps_as_many_moments_as_were_counted():
    for form in (Form(n=4, until=7.9, method="layers"), Form(n=4), Form.preset("Vicsek")):
        times = form.build().build().ts
        counted = int(form.until) + 1 if form.layered else limits.FRAMES
        assert len(times) == counted


def test_what_is_beyond_is_refused_before_any_work(monkeypatch):
    def never(*_, **__):
        raise AssertionError("work was begun")

    monkeypatch.setattr("attnflow.initial.sphere", never)
    for fields in (
        {"n": limits.MAX_TOKENS + 1},
        {"n": 2000, "d": 64},
        {"until": limits.MAX_TIME * 2},
    ):
        with pytest.raises(InputError):
            Form.read(fields)
