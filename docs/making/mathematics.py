"""LaTeX to SVG while the site is built: a formula looks the same everywhere and loads nothing."""

from __future__ import annotations

import html as entities
import re

import ziamath

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)

SIZE, EM = 17, 16
"""The size of letters in units of the picture, and how many of them are the size of text."""

ziamath.config.svg2 = False  # glyphs as plain paths: names would clash on a page


def drawn(html: str) -> str:
    """A page with every formula that arithmatex marked as a picture."""
    return FORMULA.sub(_formula, html)


def _formula(found: re.Match[str]) -> str:
    tag, inline, latex = found[1], found[2] == "(", entities.unescape(found[3]).strip()
    formula = ziamath.Latex(latex, size=SIZE, inline=inline, color="currentColor")
    picture = re.sub(
        r'width="([\d.]+)" height="([\d.]+)"',
        lambda size: _attributes(*map(float, size.groups()), formula.getyofst(), latex),
        formula.svg(),
        count=1,
    )
    return f'<{tag} class="formula">{picture}</{tag}>'


def _attributes(width: float, height: float, below: float, latex: str) -> str:
    """Sizes in ems, so that formulas grow with the text, and words for those who cannot see it."""
    style = f"width:{width / EM:.3f}em;height:{height / EM:.3f}em;vertical-align:{below / EM:.3f}em"
    return f'role="img" aria-label="{entities.escape(latex)}" style="{style}"'
