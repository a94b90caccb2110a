"""What mkdocs calls while it builds the site: made pages, files from beside docs/, mathematics."""

from __future__ import annotations

import re
from pathlib import Path

import mathematics
import outside
import pages
from mkdocs.structure.files import File, Files
from references import Papers

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"<code>[^<]*</code>")


def on_config(config):
    """Read `[P](7.1)` as a place in a paper, and let the made pages into the navigation."""
    config.markdown_extensions.append(Papers())
    for section in config.nav:
        if "Systems" in section:
            section["Systems"][1:1] = [{name: path} for name, path in pages.system_paths()]
        if "Reference" in section:
            section["Reference"] += [{name: path} for name, path in pages.reference_paths()]
    return config


def on_files(files: Files, config) -> Files:
    """Add what pages link to beside docs/, and the pages that are made from the code."""
    for name, path in outside.published(ROOT):
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for path, text in pages.made(ROOT):
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page, **kwargs) -> str:
    """Lead links between docs/ and its neighbours to where these are in the site."""
    return outside.relinked(markdown, page.file.src_uri, ROOT)


def on_page_content(html: str, **kwargs) -> str:
    """Draw formulas, and take the backslash off the bars that GitHub wants in code in tables."""
    return CODE.sub(lambda code: code[0].replace(r"\|", "|"), mathematics.drawn(html))
