"""The README and the guide: their Python runs, their words and the code agree."""

import re
import tomllib
from pathlib import Path

import pytest

import attnflow as af
from attnflow.spec.read import parse_spec, parse_sweep
from attnflow.sweep.check import check
from attnflow.theory.checks import CHECKS
from attnflow.theory.search import QUESTIONS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "guide.md"]
THEORY = ROOT / "docs" / "theory.md"
SWEEPS = ROOT / "docs" / "sweeps.md"
OF_SYSTEMS = sorted((ROOT / "docs" / "systems").glob("*.md"))
MANY = [ROOT / "docs" / "meanfield.md", ROOT / "docs" / "many-tokens.md"]
LONGER = [PAGES[1], THEORY, SWEEPS, *MANY, *OF_SYSTEMS]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [PAGES[0], *(pytest.param(page, marks=pytest.mark.slow) for page in LONGER)],
    ids=lambda page: page.stem,
)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    assert names["af"] is af


def test_the_theory_page_names_every_check_question_and_observable():
    text = THEORY.read_text()
    for name in [*CHECKS, *QUESTIONS]:
        assert re.search(rf"[| ,]{re.escape(name)}[ ,|]", text), name
    classes = {name for name in af.observe.__all__ if name[0].isupper()}
    for name in set(af.observe.__all__) - classes - {"staircase"}:
        assert f"`{name}" in text, name
    for name in af.theory.__all__:
        if not name[0].isupper():
            assert f"`{name}" in text or f"theory.{name}" in text, name


def test_the_spec_of_the_guide_builds():
    [spec] = blocks(PAGES[1], "toml")
    assert parse_spec(tomllib.loads(spec)).build().x0.shape == (40, 2)


def test_the_sweep_of_the_page_can_run():
    [spec] = blocks(SWEEPS, "toml")
    assert set(check(parse_sweep(tomllib.loads(spec)))) == {"together", "clusters", "E"}


def test_every_system_is_in_readme_and_guide():
    for page in PAGES:
        for name in af.SYSTEMS:
            assert f"`{name}" in page.read_text()


def test_the_readme_gives_the_two_commands():
    text = PAGES[0].read_text()
    assert 'python -m pip install ".[all]" && attnflow run' in text
    assert 'python -m pip install -e ".[all,dev]" && pytest' in text
    assert "pytest" in (ROOT / ".ci" / "run").read_text()


def _prose(page):
    return re.sub(r"\[[EP]\]\([^)]*\)", "", page.read_text())


def test_links_lead_to_files():
    more = (
        ROOT / "CONTRIBUTING.md",
        ROOT / "docs" / "architecture.md",
        ROOT / "docs" / "models.md",
        *LONGER[1:],
    )
    for page in [*PAGES, *more]:
        for target in re.findall(r"\]\((?!http)([\w./-]+)\)", _prose(page)):
            assert (page.parent / target).exists(), target
