"""docs/gallery.md: the figures of the papers, as the recipes made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from claims import number, plain, size, table

OPENING = """\
# Gallery

Every picture was made by a recipe of attnflow, from a fixed key, with one command:

```bash
attnflow figures all --size {size} --out figures
```

`attnflow figures NAME` makes one of them, as PNG, PDF and the numbers behind it as JSON. Below each
stands what must be seen in it, what was measured, and its size: those of quick size were not yet
made in the paper's.
"""


def page(figures: Sequence[dict[str, Any]], missing: Sequence[str]) -> str:
    """The whole page. Figures that are `missing` are named."""
    sizes = Counter(row["size"] for row in figures).most_common(1)
    opening = OPENING.format(size=sizes[0][0] if sizes else "quick")
    parts = [opening, *map(_entry, figures)]
    if missing:
        parts.append(f"Not in the gallery yet: {', '.join(missing)}.\n")
    return "\n".join(parts)


def _entry(row: dict[str, Any]) -> str:
    name = row["name"]
    rows = [
        (
            plain(q["name"]),
            number(q["measured"]),
            f"{q['sense']} {number(q['bound'])}",
            "seen" if q["holds"] else "**not seen**",
        )
        for q in row["seen"]
    ]
    made = size(row)
    film = f"[A film of it](images/figures/{name}.gif). " if f"{name}.gif" in row["files"] else ""
    return "\n".join(
        [
            f"## {name}",
            "",
            f"![{name}: {_alternative(row['shows'])}](images/figures/{name}.png)",
            "",
            f"{plain(row['source'])}. {plain(row['shows'])}",
            "",
            table(("what", "measured", "bound", ""), rows),
            f"{film}*{made[0].upper()}{made[1:]}.*",
            "",
        ]
    )


def _alternative(text: str) -> str:
    """Words for those who cannot see the picture: signs that end a link are left out."""
    return text.replace("[", "").replace("]", "").replace("<", "‹").replace(">", "›")
