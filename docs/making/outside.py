"""Files beside docs/ that its pages link to, and how links find them in the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

PUBLISHED = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "benchmarks/results.json",
    "examples/*.toml",
    "examples/sweeps/*.toml",
    "notebooks/*.py",
)
RENAMED = {"benchmarks/README.md": "benchmarks/measuring.md"}
"""A README would be the front page of its section."""

COMMENT = re.compile(r"<!--.*?-->\n?", flags=re.DOTALL)
LINK = re.compile(r"(?<!\[[EPS])\]\((?!https?:|#|mailto:)([^)#\s]+)")


def published(root: Path) -> Iterator[tuple[str, Path]]:
    """Address and file of what the site has besides the files in docs/."""
    for pattern in PUBLISHED:
        for path in sorted(root.glob(pattern)):
            name = path.relative_to(root).as_posix()
            yield RENAMED.get(name, name), path


def relinked(markdown: str, page: str, root: Path) -> str:
    """A page with its links to files as they are in the site, where docs/ is the top.

    Comments, which mark where numbers are put, are left out. `page` is its address in the site,
    which for pages of docs/ leaves `docs/` out.
    """
    at_home = (root / "docs" / page).exists()
    folder = posixpath.dirname(f"docs/{page}" if at_home else page)

    def lead(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1]))
        if not (root / target).exists():
            return found[0]
        address = RENAMED.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(address, posixpath.dirname(page) or '.')}"

    return LINK.sub(lead, COMMENT.sub("", markdown))
