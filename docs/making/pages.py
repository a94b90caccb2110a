"""Pages that are made from the code: one for each system, and the reference."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from attnflow.systems import SYSTEMS, System

RUNS = ("Adaptive", "Coarsening", "Filippov", "Fixed", "Layers", "Trajectory", "simulate", "solve")
ERRORS = ("IncompleteRun", "InputError", "Interrupted", "ModelError")

REFERENCE: dict[str, tuple[str, ...] | None] = {
    "attnflow": (*RUNS, *ERRORS),
    "attnflow.systems": ("SYSTEMS", "System", "Map", "Random", "Diffusive"),
    "attnflow.initial": None,
    "attnflow.weights": None,
    "attnflow.observe": None,
    "attnflow.theory": None,
    "attnflow.theory.checks": None,
    "attnflow.theory.search": None,
    "attnflow.meanfield": None,
    "attnflow.meanfield.bbgky": None,
    "attnflow.models": None,
    "attnflow.sweep": None,
    "attnflow.figures": None,
    "attnflow.plot": None,
    "attnflow.report": None,
    "attnflow.spec": None,
    "attnflow.attention": None,
    "attnflow.spaces": None,
}
"""The public packages, and which members are shown where others have a page of their own."""


def system_paths() -> Iterator[tuple[str, str]]:
    """Name and page of every system."""
    for name in SYSTEMS:
        yield name, f"systems/{name}.md"


def reference_paths() -> Iterator[tuple[str, str]]:
    """Name and page of every package of the reference."""
    for name in REFERENCE:
        yield name, f"reference/{name}.md"


def made(root: Path) -> Iterator[tuple[str, str]]:
    """Address and text of every page that is made."""
    yield "systems/index.md", _all_systems()
    for name, path in system_paths():
        yield path, _system_page(name, SYSTEMS[name], root)
    for name, path in reference_paths():
        yield path, _reference_page(name)


def examples(root: Path) -> dict[str, list[Path]]:
    """The specs in `examples/` by the system that they run."""
    found: dict[str, list[Path]] = {name: [] for name in SYSTEMS}
    for path in sorted((root / "examples").glob("*.toml")):
        found[tomllib.loads(path.read_text())["system"]["name"]].append(path)
    return found


def _all_systems() -> str:
    rows = [
        f"| [{name}]({name}.md) | `{_cell(system.equation)}` | {_cell(system.source)} |"
        for name, system in SYSTEMS.items()
    ]
    return "\n".join(
        [
            "# Systems",
            "",
            "A system is one class. Its state is one array whose rows are tokens, and every one of",
            "them runs with `simulate`, in specs, in sweeps and in batches. [E] is *The emergence",
            "of clusters in self-attention dynamics*, [P] *A mathematical perspective on",
            "Transformers*; theirs are the numbers of the equations.",
            "",
            "| system | equation | source |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _system_page(name: str, system: type[System], root: Path) -> str:
    return "\n\n".join(
        [
            f"# {name}",
            f'```text title="{system.source}"\n{system.equation}\n```',
            _families(name, root),
            f"::: {system.__module__}.{name}\n    options:\n      heading_level: 2",
            "## Runs to try",
            *(_example(path) for path in examples(root)[name]),
        ]
    )


def _families(name: str, root: Path) -> str:
    """A line that leads to the pages on its family, and to the guide."""
    pages = [
        f"[{path.read_text().splitlines()[0].lstrip('# ')}]({path.name})"
        for path in sorted((root / "docs" / "systems").glob("*.md"))
        if re.search(rf"`{name}\b", path.read_text())
    ]
    return "More: " + ", ".join([*pages, "[which system to take](../guide.md)"]) + "."


def _example(path: Path) -> str:
    """A spec with what its first lines say, its picture, and the command."""
    text = path.read_text()
    title = tomllib.loads(text).get("title", path.stem)
    said, rest = _opening(text)
    return "\n\n".join(
        [
            f"### {title}",
            said,
            f"![{title}](../images/systems/{path.stem}.png)",
            f"```bash\nattnflow run examples/{path.name}\n```",
            f'```toml title="examples/{path.name}"\n{rest.strip()}\n```',
        ]
    )


def _opening(text: str) -> tuple[str, str]:
    """The comment at the top of a spec, as a sentence, and the rest."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    return " ".join(line.lstrip("# ") for line in lines[:first]), "\n".join(lines[first:])


def _reference_page(name: str) -> str:
    shown = REFERENCE[name]
    members = "" if shown is None else f"\n      members: [{', '.join(shown)}]"
    text = f"# {name}\n\n::: {name}\n    options:\n      show_root_heading: false{members}\n"
    if name == "attnflow.systems":
        links = ", ".join(f"[{one}](../systems/{one}.md)" for one in SYSTEMS)
        text += f"\nEach system has a page of its own: {links}.\n"
    return text
