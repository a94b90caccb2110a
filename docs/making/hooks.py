"""What mkdocs calls while it builds the site: made pages, files from beside docs/, mathematics."""

from __future__ import annotations

from pathlib import Path

import mathematics
import outside
import pages
from references import Papers
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]


def on_config(config):
    """Read `[P](7.1)` as a place in a paper, and let the made pages into the navigation."""
    config.markdown_extensions.append(Papers())
    for section in config.nav:
        if "Systems" in section:
            section["Systems"][1:1] = [{name: path} for name, path in pages.system_paths()]
        if "Reference" in section:
            section["Reference"] = [{name: path} for name, path in pages.reference_paths()]
    return config


def on_files(files: Files, config) -> Files:
    """Add what pages link to beside docs/, and the pages that are made from the code."""
    for path in outside.published(ROOT):
        name = str(path.relative_to(ROOT))
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for path, text in pages.made(ROOT):
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page, **kwargs) -> str:
    """Lead links between docs/ and its neighbours to where these are in the site."""
    return outside.relinked(markdown, page.file.src_uri, ROOT)


def on_page_content(html: str, **kwargs) -> str:
    """Write formulas as MathML, which browsers draw by themselves."""
    return mathematics.drawn(html)
