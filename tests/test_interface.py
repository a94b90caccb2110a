"""The public interface: it is what docs/interface.txt lists, it is explained, and it is typed."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attnflow as af

ROOT = Path(__file__).parents[1]
AGAIN = "python docs/making/interface.py --write"

MISTAKES = """\
import attnflow as af
af.simulat
af.initial.sphere(n=3, d=2, seed=0)
af.observe.clusters(af.initial.circle(3), toll=1e-3)
af.simulate(af.SA(1.0), af.initial.circle(3), [0.0, 1.0], metod=af.Fixed(0.1))
af.EllipsoidAttention(beta="x", D=[1.0])
af.SA(beta="x")
af.SA(1.0, W=2.0)
"""


@pytest.fixture(scope="module")
def making():
    """The script that writes the page and the list."""
    sys.path.insert(0, str(ROOT / "docs" / "making"))
    try:
        import interface

        yield interface
    finally:
        sys.path.remove(str(ROOT / "docs" / "making"))
        sys.modules.pop("interface", None)


def _here(making, lines):
    """The lines of the modules that can be imported: others need an extra that is missing."""
    offered = {entry.module for entry in making.entries()}
    missing = [f"{module}." for module in making.MODULES if module not in offered]
    return [line for line in lines if not line.startswith(tuple(missing))]


def test_the_interface_is_the_stored_list(making):
    stored = _here(making, (ROOT / "docs" / "interface.txt").read_text().splitlines())
    live = making.listed()
    gone, new = sorted(set(stored) - set(live)), sorted(set(live) - set(stored))
    assert stored == live, f"gone: {gone}; new: {new}. If that is meant: {AGAIN}"


def test_the_page_is_made_from_the_code():
    """In a process of its own: the tests' type checks change how annotations are written."""
    code = "import interface; print(interface.PAGE.read_text() == interface.page())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "docs" / "making",
        env=_environment(),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n", f"{AGAIN}\n{done.stderr}"


def test_every_module_that_is_offered_is_public(making):
    for entry in making.entries():
        if inspect.ismodule(entry.value):
            assert entry.value.__name__ in making.MODULES
            assert entry.value.__name__ == entry.address


def test_a_change_would_be_seen(making, monkeypatch):
    before = making.listed()
    monkeypatch.setattr(af.initial, "circle", lambda n, *, radius=1.0: n)
    assert "attnflow.initial.circle(n, *, radius=1)" in set(making.listed()) - set(before)
    assert "attnflow.initial.circle(n, *, dtype=float)" in before


def _explained(value):
    """The names under `Args:` or `Attributes:` in a docstring, or in one of the classes above."""
    above = value.__mro__ if inspect.isclass(value) else (value,)
    texts = [inspect.cleandoc(doc) for one in above if (doc := vars(one).get("__doc__"))]
    if inspect.isfunction(value):
        texts = [inspect.getdoc(value) or ""]
    found = set()
    for text in texts:
        for section in re.findall(r"^(?:Args|Attributes):\n((?:[ ]+.*\n?|\n)*)", text, re.M):
            indent = re.match(" *", section)[0]
            for names in re.findall(rf"^{indent}(\w[\w*, ]*)(?: \([^)]*\))?:", section, re.M):
                found |= {name.strip("* ") for name in names.split(",")}
    return found


def unexplained(making):
    """Public functions and classes of more than two parameters, with those that nobody explains."""
    found = {}
    for entry in making.entries():
        value = entry.value
        if entry.address != entry.home or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        taken = [p.name for p in making.parameters(value)]
        missing = [name for name in taken if name not in _explained(value)]
        if len(taken) > 2 and missing:
            found[entry.address] = missing
    return found


def test_arguments_are_explained(making):
    missing = unexplained(making)
    said = "\n".join(f"{name}: {', '.join(names)}" for name, names in missing.items())
    assert not missing, f"{len(missing)} names lack arguments in an Args: section:\n{said}"


def test_explanations_are_found():
    def plain(a, b, c):
        """What.

        Args:
            a: one thing,
                with more: of it.
            b, c: two.

        Returns:
            d: nothing.
        """

    assert _explained(plain) == {"a", "b", "c"}
    assert {"beta", "Q", "K", "V"} <= _explained(af.SA)


IMPORT = """\
import sys
import jax
from jax import monitoring

compiled = []
monitoring.register_event_duration_secs_listener(lambda event, *a, **k: compiled.append(event))
before = dict(jax.config.values)
import attnflow as af

after = dict(jax.config.values)
print({name: value for name, value in after.items() if before[name] != value})
print("matplotlib" in sys.modules)
import matplotlib

backend = matplotlib.rcParams._get("backend")
for module in af.__all__:
    getattr(af, module)
print(matplotlib.rcParams._get("backend") is backend)
print(dict(jax.config.values) == after, compiled)
jax.jit(lambda x: x + 1)(1.0)
print(any("compile" in event for event in compiled))
"""


def _environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "MPL"))}
    return kept | {"PYTHONPATH": str(ROOT / "src")} | more


def _imported(**environment):
    done = subprocess.run(
        [sys.executable, "-c", IMPORT],
        env=_environment(**environment),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_importing_switches_to_64_bits_and_names_a_folder(tmp_path):
    """Nothing is compiled, not even by the modules that are imported later."""
    changes, *rest = _imported(ATTNFLOW_CACHE=str(tmp_path))
    changes = ast.literal_eval(changes)
    folder = Path(changes.pop("jax_compilation_cache_dir"))
    assert folder.parent == tmp_path
    assert changes.pop("jax_enable_x64") is True
    assert all(name.startswith("jax_persistent_cache_min") for name in changes)
    assert rest == ["False", "True", "True []", "True"]
    assert len(list(folder.glob("*-cache"))) == 1, "the program that was compiled last"


def test_it_can_be_told_not_to():
    assert _imported(JAX_ENABLE_X64="0", ATTNFLOW_CACHE="off")[0] == "{}"
