"""Pages that are made from the code: one for each system, and the reference."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from interface import MODULES

from attnflow.simulation.methods import Method
from attnflow.systems import SYSTEMS, System

REFERENCE = MODULES
"""Each public module has a page."""


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
    names = shown()
    for package, path in reference_paths():
        yield path, _reference_page(package, names[package])


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
            f"::: {_address(system, '')}\n    options:\n      members: {_own(system)}",
            "## Runs to try",
            *(_example(path) for path in examples(root)[name]),
        ]
    )


def _own(system: type[System]) -> list[str] | str:
    """The methods that only this system has, as others are the same for all of them."""
    inherited = {name for base in system.__mro__[1:] for name in vars(base)}
    own = [
        name
        for name, value in vars(system).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in inherited
    ]
    return own or "false"


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


def public(package: str) -> dict[str, Any]:
    """What a package offers, by name, classes last."""
    module = import_module(package)
    found = {name: getattr(module, name) for name in module.__all__}
    return dict(sorted(found.items(), key=lambda item: (inspect.isclass(item[1]), item[0].lower())))


def shown() -> dict[str, dict[str, str]]:
    """Every public name with the address of its definition, by package, each only once.

    A name stands with the package that holds it, and not again with one above or beside.
    """
    seen: set[str | int] = {_address(system, "") for system in SYSTEMS.values()}
    found: dict[str, dict[str, str]] = {}
    for package in sorted(REFERENCE, key=lambda name: -name.count(".")):
        found[package] = {}
        for name, value in public(package).items():
            address = _address(value, f"{package}.{name}")
            elsewhere = _home(address) not in ("", package) or {address, id(value)} & seen
            if inspect.ismodule(value) or name.startswith("_") or elsewhere:
                continue
            seen |= {address, id(value)}
            found[package][name] = address
    return found


def _address(value: Any, otherwise: str) -> str:
    """Where a class or a function is defined; other values are where they are offered."""
    if inspect.isclass(value) or inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return otherwise


def _home(address: str) -> str:
    """The package of the reference, below attnflow itself, in which an address lies."""
    homes = [name for name in REFERENCE[1:] if address.startswith(f"{name}.")]
    return max(homes, key=len, default="")


def _directive(address: str, value: Any) -> str:
    """What shows a definition. How a method advances a run is told in the architecture."""
    inner = inspect.isclass(value) and issubclass(value, Method)
    return f"::: {address}" + ("\n    options:\n      members: false" if inner else "")


def _reference_page(package: str, names: dict[str, str]) -> str:
    module = import_module(package)
    parts = [f"# {package}", inspect.cleandoc(module.__doc__ or "")]
    parts += [_directive(address, getattr(module, name)) for name, address in names.items()]
    if package == "attnflow.systems":
        links = ", ".join(f"[{one}](../systems/{one}.md)" for one in SYSTEMS)
        parts.append(f"## One by one\n\nEach system has a page of its own: {links}.")
    return "\n\n".join(parts) + "\n"
