"""The site: it builds without a warning, nothing in it leads nowhere, and it has all its pages."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
MAKING = ROOT / "docs" / "making"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra docs is not installed"),
]


class Links(HTMLParser):
    """What a page links to and loads, and the places in it that can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places.update(value for key in ("id", "name") if (value := given.get(key)))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for key in ("src", "href"):
            if tag in ("img", "script", "link") and given.get(key):
                self.loaded.append(given[key])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "site"
    environment = os.environ | {
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONPATH": str(ROOT / "src"),
    }
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}


@pytest.fixture(scope="module")
def making():
    sys.path.insert(0, str(MAKING))
    try:
        import pages as made

        yield made
    finally:
        sys.path.remove(str(MAKING))


def test_no_link_is_dead(site, pages):
    dead = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            known = pages[target].places if target in pages else set()
            if not target.exists() or (target in pages and place and place not in known):
                dead.append((str(path.relative_to(site)), link))
    assert not dead, dead


def test_nothing_is_loaded_from_elsewhere(pages):
    for path, page in pages.items():
        canonical = [link for link in page.loaded if urlsplit(link).scheme not in ("", "data")]
        assert not canonical, (path, canonical)


def test_every_system_has_its_page_with_a_picture(site, making):
    for name, system in making.SYSTEMS.items():
        text = (site / "systems" / f"{name}.html").read_text()
        assert system.source in text.replace("\u2060", "")
        assert f"examples/{making.examples(ROOT)[name][0].name}" in text
        assert "images/systems/" in text


def test_every_public_name_has_its_place(site, pages, making):
    for package, names in making.shown().items():
        page = pages[site / "reference" / f"{package}.html"]
        missing = {address for address in names.values() if address not in page.places}
        assert not missing, missing
    documented = {address for names in making.shown().values() for address in names.values()}
    for package in making.REFERENCE:
        for value in making.public(package).values():
            address = making._address(value, "")
            if address.startswith("attnflow.") and value not in making.SYSTEMS.values():
                assert address in documented, address


def test_every_package_and_module_is_in_the_reference(making):
    inner = {
        "bench",
        "cli",
        "explore",
        "model_report",
    }  # commands
    inner |= {
        "checks",
        "compilation",
        "extras",
        "files",
        "retired",
        "simulate",
    }  # beside the house; an old name
    inner |= {"randomness", "records", "signals", "stores", "verdicts"}
    source = ROOT / "src" / "attnflow"
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    modules = {path.stem for path in source.glob("*.py") if not path.stem.startswith("_")}
    assert (packages | modules) - inner <= {name.split(".")[-1] for name in making.REFERENCE}


def test_formulas_are_drawn_and_sets_and_inner_products_kept(site):
    text = (site / "ten-minutes.html").read_text()
    assert text.count('<div class="formula"><svg') == 4
    assert "arithmatex" not in text
    reference = (site / "reference" / "attnflow.observe.html").read_text()
    assert "The distinct values of &lt;x_i, x_j&gt;, increasing" in reference
    assert "at most three values {a, 0, b}" in (site / "claims.html").read_text()
