"""A public name that was renamed says what it is called now."""

import importlib

import numpy as np
import pytest

RENAMED = [
    ("attnflow.bench", "chosen", "select_rows"),
    ("attnflow.bench", "undisturbed", "measure_undisturbed"),
    ("attnflow.figures", "Written", "FigureRecord"),
    ("attnflow.figures", "sized", "by_size"),
    ("attnflow.plot", "Stage", "TokenView"),
    ("attnflow.plot.screen", "as_seen", "projected_states"),
    ("attnflow.plot.screen", "themed", "apply_theme"),
    ("attnflow.sweep", "Tally", "SweepProgress"),
]


@pytest.mark.parametrize(("module", "old", "new"), RENAMED)
def test_an_old_name_gives_the_new_one(module, old, new):
    found = importlib.import_module(module)
    assert hasattr(found, new)
    with pytest.raises(AttributeError, match=rf"{module}\.{old} is called {new} now"):
        getattr(found, old)


def test_an_old_argument_gives_the_new_one():
    screen = importlib.import_module("attnflow.plot.screen")
    for make in (screen.start_of_tokens, lambda xs, **rest: screen.tokens([0.0], xs, **rest)):
        with pytest.raises(TypeError, match="'on_sphere' now"):
            make(np.zeros((1, 2, 2)), round_=True)
