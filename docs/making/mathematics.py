"""LaTeX to MathML while the site is built: nothing has to be loaded to read a formula."""

from __future__ import annotations

import html as entities
import re

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL
)


def drawn(html: str) -> str:
    """A page with every formula that arithmatex marked as MathML."""
    return FORMULA.sub(_formula, html)


def _formula(found: re.Match[str]) -> str:
    display = "block" if found[2] == "[" else "inline"
    return convert(entities.unescape(found[3]).strip(), display=display)
