"""What the words of this project need beyond Markdown: places in papers, and doctests."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

PLACE = r"\[([EPS])\]\(([^)\s]*)\)"
BEFORE_LINKS, BEFORE_FENCES = 165, 30


class Place(InlineProcessor):
    """`[P](7.1)` is equation (7.1) of [P], and no link."""

    def handleMatch(self, m, data):
        place = Element("span", {"class": "place"})
        place.text = f"[{m[1]}]\u2060({m[2]})"
        return place, m.start(0), m.end(0)


class Doctests(Preprocessor):
    """Lines with `>>>` are Python, and no quotation in a quotation in a quotation."""

    def run(self, lines: list[str]) -> list[str]:
        return list(_fenced(lines))


def _fenced(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if line.startswith(">>> ") and not inside:
            inside = True
            yield "```pycon"
        elif inside and not line.strip():
            inside = False
            yield "```"
        yield line
    if inside:
        yield "```"


class Papers(Extension):
    """Both of them; and `<x, y>` is an inner product: no page holds HTML."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(Place(PLACE, md), "place", BEFORE_LINKS)
        md.preprocessors.register(Doctests(md), "doctests", BEFORE_FENCES)
        md.inlinePatterns.deregister("html")
        md.preprocessors.deregister("html_block")
