"""Old names: every row of the table in the changelog, and what the old name says today."""

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.explore.form import Form
from attnflow.spec.read import parse_spec
from command import call

ROOT = Path(__file__).parents[1]
I, D = np.eye(2), np.ones(2)
SPEC = {"system": {"name": "SA"}, "start": {"n": 8, "d": 3}, "times": {"stop": 5.0}}


def rows():
    """The first cells of the table of the migration."""
    text = (ROOT / "CHANGELOG.md").read_text().split("### From 0.1")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \| ", text, flags=re.M)
    return cells[2:]


def refused(call, *words, error=(TypeError, af.InputError)):
    """Whether a call ends in an error that has all of these words."""
    with pytest.raises(error) as raised:
        call()
    for word in words:
        assert word in str(raised.value), str(raised.value)


def _seeds():
    modules = ["initial", "observe", "spec", "meanfield", "meanfield.bbgky", "weights"]
    modules += ["weights.frequencies", "weights.graphs", "theory", "theory.checks", "theory.search"]
    draws = []
    for module in (importlib.import_module(f"attnflow.{name}") for name in modules):
        functions = filter(inspect.isfunction, map(module.__dict__.get, module.__all__))
        draws += [one for one in functions if "key" in inspect.signature(one).parameters]
    assert len(draws) > 25
    for draw in draws:
        refused(lambda draw=draw: draw(seed=0), "'seed'", "'key' now")
    assert "Redrawn() has no argument 'seed' any more: it is called 'key' now" in _outside(
        "import attnflow as af; af.weights.Redrawn(af.weights.ginibre, every=1.0, seed=0)"
    )


def _outside(code):
    """What a program says that fails, without the type checks of the tests."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    return done.stderr


def _package():
    said = _outside("from attnflow.simulate.methods import Fixed")
    assert "ImportError: attnflow.simulate is called attnflow.simulation now" in said
    assert callable(af.simulate)


def _by_position(*kinds):
    for kind in kinds:
        refused(lambda kind=kind: kind(I, I, I), "keyword", "Q=")


def _pure():
    _by_position(af.PureAttention, af.RescaledAttention, af.ConsensusAttention, af.SinkhornPure)


def _number():
    assert af.PureAttention(4.0).beta == 4
    assert af.PureAttention(Q=4.0).beta == 1


def _resnet():
    refused(lambda: af.ResNet(I, I, D, D), "keyword", "w=")


def _diagonal():
    for kind in (af.PostNorm, af.PreNorm, af.EllipsoidAttention):
        refused(lambda kind=kind: kind(1.0, D), "D=")


def _sigma():
    for kind in (af.PostNormTransformer, af.PreNormTransformer):
        assert inspect.signature(kind).parameters["sigma"].default == "relu"


def _hook(name, new, owner=None):
    system = af.SA(1.0) if owner is None else owner

    def asked():
        refused(lambda: getattr(system, name), f"{name} is called {new} now", error=AttributeError)

    return asked


def _overrides():
    for name in ("scores_held", "pairs", "precise", "drawing"):
        refused(lambda name=name: type("Mine", (af.System,), {name: lambda self: 0}), name)


def _method_hooks():
    for old, new in zip(
        ("pieces", "entered", "watched", "encodes", "limited"),
        ("solver_parts", "initial_state", "at_rest", "uses_encoding", "limits_steps"),
        strict=True,
    ):
        _hook(old, new, af.Fixed(0.1))()


def _solution():
    found = af.solve(af.SA(1.0), jnp.eye(2), jnp.array([0.0, 0.1]))
    for old in (lambda: found[1], lambda: [*found]):
        refused(old, "Solution", ".final")


def _coarsening():
    refused(lambda: af.Coarsening(eps=1e-6), "'eps'", "'tol' now")
    method = {"method": {"name": "Coarsening", "eps": 1e-6}}
    refused(lambda: parse_spec(SPEC | method).build_method(), "'eps'", "'tol' now")


def _modules(renamed):
    def asked():
        for module, names in renamed.items():
            inside = importlib.import_module(f"attnflow.{module}")
            for old, new in names.items():
                refused(
                    lambda inside=inside, old=old: getattr(inside, old),
                    f"{old} is called {new} now",
                    error=AttributeError,
                )

    return asked


def _told():
    folder = Path("nowhere")
    for given in (
        lambda: af.theory.check("T6.7", tell=print),
        lambda: af.sweep.run({}, folder, tell=print),
        lambda: af.figures.gallery([], "quick", folder, tell=print),
    ):
        refused(given, "'tell'", "'on_progress' now")


def _attributes():
    outcome = af.theory.checks.Outcome(af.theory.CHECKS["T6.7"], (), 0, 1.0)
    for value in (parse_spec(SPEC), outcome, af.theory.search.Record("C4.2", 0)):
        refused(lambda value=value: value.seed, "seed is called key now", error=AttributeError)
        assert value.key == 0


def _options():
    for command in (["check", "T6.7"], ["search", "C4.2"]):
        code, said = call(*command, "--seed", "3")
        assert code == 2
        assert "--seed" in said
        assert "called --key now" in said
        assert "--seed" not in call(command[0], "--help")[1]


def _specs():
    family = {"name": "SA", "V": {"family": "ginibre", "seed": 1}}
    for change in ({"seed": 1}, {"start": SPEC["start"] | {"seed": 1}}, {"system": family}):
        refused(lambda change=change: parse_spec(SPEC | change).build(), "'seed'", "'key' now")


def _records(folder):
    path = folder / "C4.2-3.json"
    record = af.theory.search.Record("C4.2", 3, runs=1)
    assert "seed" not in record.to_json()
    old = {("seed" if name == "key" else name): value for name, value in record.to_json().items()}
    path.write_text(json.dumps(old))
    refused(lambda: af.theory.search.Record.load(path), path.name, "'seed'", "'key'")


ROWS = {
    "`seed=` of every": _seeds,
    "the package `attnflow.simulate`": _package,
    "`PureAttention(Q, K, V)`": _pure,
    "`PureAttention(4.0)`": _number,
    "`Hardmax(Q, K, V)`": lambda: _by_position(af.Hardmax),
    "`ResNet(w, a, b, c)`": _resnet,
    "`PostNorm(beta, D)`": _diagonal,
    "`sigma` of": _sigma,
    "`attention.Given`": lambda: refused(
        lambda: af.attention.Given, "called ExplicitMask now", error=AttributeError
    ),
    "`attention.Sinkhorn": lambda: refused(
        lambda: af.attention.Sinkhorn(tolerance=1e-8), "'tolerance'", "'tol' now"
    ),
    "`System.scores_held": _hook("scores_held", "cost"),
    "`System.pairs": _hook("pairs", "cost"),
    "`System.precise": _hook("precise", "with_exact_sums"),
    "`System.drawing": _hook("drawing", "with_key"),
    "`Diffusive.diffuse": _hook("diffuse", "apply_noise", af.Noisy(af.SA(1.0), 0.1)),
    "a system of your own": _overrides,
    "`Method.scores_held": _hook("scores_held", "memory", af.Fixed(0.1)),
    "`Method.pieces": _method_hooks,
    "`solve(…)`": _solution,
    "`Coarsening(eps=)`": _coarsening,
    "`Noisy(…).beta`": _hook("beta", "inverse_temperature", af.Noisy(af.SA(1.0), 0.1)),
    "`attention.Spectral(tolerance=)`": lambda: refused(
        lambda: af.attention.Spectral(tolerance=1e-8), "'tolerance'", "'tol' now"
    ),
    "`.tolerance` of": _hook(
        "tolerance", "tol", af.theory.limit_geometry(None, None, np.diag([2.0, 1.0]))
    ),
    "`plot.Stage`": _modules(
        {"plot": {"Stage": "TokenView"}}
        | {"plot.screen": {"as_seen": "projected_states", "themed": "apply_theme"}}
    ),
    "`round_=` of": lambda: refused(
        lambda: af.plot.screen.tokens(D, I[None], round_=True), "'round_'", "'on_sphere' now"
    ),
    "`sweep.Tally`": _modules({"sweep": {"Tally": "SweepProgress"}}),
    "`figures.Written`": _modules({"figures": {"Written": "FigureRecord", "sized": "by_size"}}),
    "`bench.chosen`": _modules(
        {"bench": {"chosen": "select_rows", "undisturbed": "measure_undisturbed"}}
    ),
    "`tell=` of `theory.check`": _told,
    "`tell=` of `theory.search": lambda: refused(
        lambda: af.theory.search.search("C4.2", tell=print), "'tell'", "'on_candidate' now"
    ),
    "`.seed` of": _attributes,
    "`--seed` of": _options,
    "`seed = 0` in": _specs,
    '"seed" in the JSON': _records,
    "`seed=` in a link": lambda: refused(
        lambda: Form.from_address("?system=SA&seed=3"), "seed is called key now"
    ),
}
"""How each row of the table begins, and what is tried."""


@pytest.mark.parametrize("row", ROWS)
def test_an_old_name_gives_the_new_one(row, tmp_path):
    ROWS[row](*([tmp_path] if inspect.signature(ROWS[row]).parameters else []))


def test_every_row_of_the_table_is_tried():
    table = rows()
    assert len(table) == len(ROWS)
    for said, row in zip(table, ROWS, strict=True):
        assert re.match(re.escape(row), said), (said, row)
