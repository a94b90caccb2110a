"""Every contender computes the same velocity, and says so when it cannot."""

import subprocess
import sys

import numpy as np
import pytest

import reference
from attnflow.bench import contenders, peers
from attnflow.bench.contenders import BLOCKED, OURS, DriftProblem, Scaled
from attnflow.bench.peers import KEOPS, PEERS, SDPA
from attnflow.errors import InputError

SINGLE = DriftProblem(n=70, d=3, beta=4.0, dtype="float64")
EXACT = {"float64": 1e-13, "float32": 3e-6}


def velocity(x, beta):
    """The definition, from the tests' own implementation."""
    one = [np.eye(x.shape[1])]
    return reference.sphere_velocity(x, one, one, one, beta)


def answer(contender, problem):
    if contender.missing():
        pytest.skip(f"{contender.name}: {contender.missing()}")
    x = problem.tokens()
    return x, np.asarray(contender.prepare(problem, x)())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("contender", [*OURS, *PEERS], ids=lambda c: c.name)
def test_contenders_compute_the_velocity(contender, dtype):
    problem = DriftProblem(n=70, d=3, beta=4.0, dtype=dtype)
    x, found = answer(contender, problem)
    assert found.dtype == dtype
    assert found.shape == (1, 70, 3)
    exact = velocity(x[0].astype(float), 4.0)
    assert np.abs(exact).max() > 0.1
    assert np.abs(found[0] - exact).max() < EXACT[dtype]
    assert problem.error(x, found) < EXACT[dtype]


@pytest.mark.parametrize(
    "contender", [c for c in (*OURS, *PEERS) if c is not KEOPS], ids=lambda c: c.name
)
def test_contenders_compute_replicates(contender):
    problem = DriftProblem(n=9, d=3, beta=2.0, dtype="float64", replicates=5)
    x, found = answer(contender, problem)
    assert found.shape == (5, 9, 3)
    for r in range(5):
        assert np.abs(found[r] - velocity(x[r], 2.0)).max() < EXACT["float64"]
    assert problem.error(x, found) < EXACT["float64"]


def test_keops_says_that_it_takes_no_replicates():
    several = DriftProblem(n=9, d=3, beta=2.0, dtype="float64", replicates=5)
    with pytest.raises(InputError, match="only with a single system"):
        KEOPS.prepare(several, several.tokens())


def test_a_wrong_answer_shows():
    x, found = answer(BLOCKED, SINGLE)
    assert SINGLE.error(x, found) < 1e-14
    assert SINGLE.error(x, 1.001 * found) > 1e-5
    assert SINGLE.error(x, np.zeros_like(found)) > 0.1


def test_scaling_plays_a_smaller_problem():
    scaled = Scaled(BLOCKED, limit=30)
    assert scaled.problem_for(SINGLE).n == 30
    assert Scaled(BLOCKED, limit=100).problem_for(SINGLE) == SINGLE
    _, found = answer(scaled, scaled.problem_for(SINGLE))
    assert found.shape == (1, 30, 3)


def test_what_is_not_there_is_said_to_be_missing(monkeypatch):
    assert BLOCKED.missing() is None
    monkeypatch.setattr(contenders, "find_spec", lambda name: None)
    assert SDPA.missing() == "not installed"
    assert KEOPS.missing() == "not installed"
    monkeypatch.setattr(contenders, "find_spec", lambda name: object())
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    assert SDPA.missing() is None
    assert KEOPS.missing() == "no C++ compiler"


def test_the_library_imports_no_peer():
    code = (
        "import sys, attnflow, attnflow.cli; assert 'attnflow.bench' not in sys.modules; "
        "import attnflow.bench, attnflow.bench.plot; "
        "print([name for name in ('torch', 'pykeops') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]"]
