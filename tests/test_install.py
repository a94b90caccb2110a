"""The package as a stranger gets it: built, installed without extras, and run."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = ("run", "check", "search", "figures", "sweep", "model", "explore", "bench")
HEAVY = {"matplotlib", "pandas", "pydantic", "scipy", "xarray", "zarr", "typer", "rich", "PIL"}


def ran(*command, **options):
    """The exit code and all that was said, without the paths and options of these tests."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_TARGET"))}
    environment = kept | {"MPLBACKEND": "Agg", "COLUMNS": "300"} | options.pop("env", {})
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        check=False,
        **options,
    )
    return done.returncode, done.stdout


def test_import_is_light():
    """SciPy's parts, pictures, stores and commands are imported when they are needed."""
    code = (
        "import sys, attnflow\n"
        "loaded = {name for name in sys.modules if name.count('.') < 2}\n"
        "own = {'attnflow.theory', 'attnflow.models', 'attnflow.meanfield', 'attnflow.spec'}\n"
        f"heavy = {HEAVY!r} - {{'scipy'}} | {{'scipy.optimize', 'scipy.linalg', 'scipy.special'}}\n"
        "print(sorted(loaded & (heavy | own)), attnflow.theory.wendel(3, 2))\n"
    )
    assert ran(sys.executable, "-c", code, env=dict(os.environ)) == (0, "[] 0.75\n")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with an empty environment, a wheel and a source archive."""
    folder = tmp_path_factory.mktemp("built")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    code, said = ran(python, "-m", "pip", "install", "--quiet", "hatchling>=1.25,<2")
    assert code == 0, said
    code, said = ran(python, "-m", "hatchling", "build", "-d", folder / "dist", cwd=ROOT)
    assert code == 0, said
    return folder


@pytest.fixture(scope="module")
def attnflow(built, tmp_path_factory):
    """The installed command, in an empty folder."""
    [wheel] = (built / "dist").glob("*.whl")
    python = built / "venv" / "bin" / "python"
    code, said = ran(python, "-m", "pip", "install", "--quiet", wheel)
    assert code == 0, said
    work = tmp_path_factory.mktemp("work")
    cache = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}

    def called(*args):
        return ran(built / "venv" / "bin" / "attnflow", *args, cwd=work, env=cache)

    called.python, called.work = python, work
    return called


@pytest.mark.slow
def test_the_archives_are_whole(built):
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "attnflow").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"attnflow/explore/assets/explore.js", "attnflow/_version.py"} <= package
    [wheel] = (built / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == package
    [source] = (built / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    for file in ("pyproject.toml", "SECURITY.md", "CONTRIBUTING.md", ".ci/run", ".ci/lowest.py"):
        assert file in held
    for folder in ("src", "tests", "examples", "notebooks", "docs", "benchmarks"):
        wanted = {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / folder).rglob("*")
            if path.is_file()
            and path.suffix in {".py", ".toml", ".md", ".txt", ".json", ".npz"}
            and not {"__pycache__", "__marimo__"} & set(path.parts)
        }
        assert wanted <= held


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_extra(attnflow, command):
    code, said = attnflow(command, "--help")
    assert code == 0, said
    assert f"attnflow {command}" in said


@pytest.mark.slow
def test_it_runs_and_checks(attnflow):
    code, said = attnflow("run", "--out", "first.png")
    assert code == 0, said
    assert (attnflow.work / "first.png").stat().st_size > 50_000
    (attnflow.work / "first.png").unlink()
    code, said = attnflow("check", "T6.7", "T6.8")
    assert code == 0, said
    assert "2 of 2 statements hold" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("sweep", ROOT / "examples/sweeps/circle.toml", "--workers", "2"), "sweep"),
        (("sweep", ROOT / "examples/sweeps/circle.toml", "--scheduler", "tcp://no:1"), "sweep"),
        (("model", "albert-base-v2", "--text", ROOT / "examples/texts/clocks.txt"), "models"),
        (("model", ROOT / "tests/data/models/bert", "--text", ROOT / "README.md"), "models"),
        (("figures", "E-fig1", "S-albert"), "models"),
        (("explore",), "explore"),
    ],
)
def test_a_missing_extra_is_named_before_any_work(attnflow, command, extra):
    code, said = attnflow(*command)
    assert code == 2, said
    assert re.fullmatch(
        rf'error: .* need.*, which is not installed: pip install "attnflow\[{extra}\]"\.',
        said.strip(),
    )
    assert list(attnflow.work.iterdir()) == []


@pytest.mark.slow
def test_in_python_too(attnflow):
    code = (
        "import attnflow as af, numpy as np\n"
        "def plots(): import attnflow.plot.screen\n"
        "x = np.eye(3)\n"
        "works = plots, lambda: af.observe.wasserstein(x, x), lambda: af.models.load('a/b')\n"
        "for work in works:\n"
        "    try: work()\n"
        "    except af.InputError as error: print(error)\n"
    )
    _, said = ran(attnflow.python, "-c", code, cwd=attnflow.work)
    assert re.findall(r'pip install "attnflow\[(\w+)\]"\.\n', said) == [
        "explore",
        "transport",
        "models",
    ]
