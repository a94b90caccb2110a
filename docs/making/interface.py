"""The public interface: docs/interface.md for readers, docs/interface.txt for the tests.

    python docs/making/interface.py --write

writes both from the code. Public is what the `__all__` of a module below lists; the test of the
interface compares the code with docs/interface.txt, so that no change of it goes unnoticed.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

DOCS = Path(__file__).parents[1]
PAGE, LIST = DOCS / "interface.md", DOCS / "interface.txt"

MODULES = (
    "attnflow",
    "attnflow.systems",
    "attnflow.simulation",
    "attnflow.initial",
    "attnflow.weights",
    "attnflow.weights.couplings",
    "attnflow.weights.frequencies",
    "attnflow.weights.graphs",
    "attnflow.observe",
    "attnflow.theory",
    "attnflow.theory.checks",
    "attnflow.theory.search",
    "attnflow.meanfield",
    "attnflow.meanfield.bbgky",
    "attnflow.models",
    "attnflow.sweep",
    "attnflow.figures",
    "attnflow.plot",
    "attnflow.plot.screen",
    "attnflow.report",
    "attnflow.spec",
    "attnflow.attention",
    "attnflow.spaces",
    "attnflow.errors",
)
"""The public modules, in the order in which a reader needs them."""

INTRODUCTION = """\
# The whole public interface

Every public name with what it takes and what it is, module by module. `attnflow` itself offers the
names of its modules that one needs most, so `af.SA` is `attnflow.systems.SA`. The
[reference](reference/attnflow.md) tells more of each, [the promise](promise.md) what being public
means. This page is made from the code by `python docs/making/interface.py --write`.

`array(n, d)` is an array of that shape; what takes one takes lists and NumPy arrays as well. `key`
is an integer or a JAX key.
"""


class Entry(NamedTuple):
    """A public name: the module that offers it, the address of its home, and what it is."""

    module: str
    name: str
    home: str
    value: Any

    @property
    def address(self) -> str:
        """The name with its module."""
        return f"{self.module}.{self.name}"


def entries() -> list[Entry]:
    """Every public name in the order of the modules; what two of them offer is at home in one."""
    offered = [(module, name, value) for module in MODULES for name, value in _offered(module)]
    homes: dict[int, tuple[tuple[bool, int], str]] = {}
    for module, name, value in offered:
        near = f"{getattr(value, '__module__', '')}.".startswith(f"{module}.")
        here = ((near, len(module)), f"{module}.{name}")
        homes[id(value)] = max(homes.get(id(value), here), here)
    return [Entry(module, name, homes[id(value)][1], value) for module, name, value in offered]


def _offered(module: str) -> list[tuple[str, Any]]:
    """What a module lists, classes last; nothing where it needs an extra that is missing."""
    try:
        found = import_module(module)
    except ValueError as error:
        if "is not installed" in str(error):
            return []
        raise
    named = [(name, getattr(found, name)) for name in found.__all__ if not name.startswith("_")]
    return sorted(named, key=lambda one: (inspect.isclass(one[1]), one[0].lower(), one[0]))


def parameters(value: Any) -> list[inspect.Parameter]:
    """What a function or a constructor takes."""
    try:
        found = list(inspect.signature(value).parameters.values())
    except ValueError:  # an exception of Python's own
        return []
    return [p for p in found if p.name != "self"]


def members(value: type) -> dict[str, Any]:
    """The public methods, properties and fields that a class has beyond the classes above it.

    What its constructor takes is not said again.
    """
    above = {name for base in value.__mro__[1:] for name in _own(base)}
    taken = {p.name for p in parameters(value)}
    found = _own(value)
    return {name: found[name] for name in sorted(found.keys() - above - taken)}


def _own(value: type) -> dict[str, Any]:
    kinds = (FunctionType, property, classmethod, staticmethod, functools.cached_property)
    fields = vars(value).get("__annotations__", {})
    found = dict.fromkeys(fields) | {n: m for n, m in vars(value).items() if isinstance(m, kinds)}
    return {name: member for name, member in found.items() if not name.startswith("_")}


def listed() -> list[str]:
    """The interface in lines: a name, its parameters, their kinds and defaults."""
    return [line for entry in entries() for line in _lines(entry)]


def _lines(entry: Entry) -> Iterator[str]:
    value = entry.value
    if entry.address != entry.home:
        yield f"{entry.address} = {entry.home}"
    elif inspect.ismodule(value):
        yield f"{entry.address}: module"
    elif inspect.isclass(value):
        yield f"{entry.address}({_taken(value)})"
        for name, member in members(value).items():
            yield f"{entry.address}.{_member(name, member)}"
    elif callable(value) and not _is_type(value):
        yield f"{entry.address}({_taken(value)})"
    else:
        yield f"{entry.address}: {'type' if _is_type(value) else type(value).__name__}"


def _is_type(value: Any) -> bool:
    return not inspect.isfunction(value) and hasattr(value, "__args__")


def _member(name: str, member: Any) -> str:
    inner = getattr(member, "__func__", member)
    return f"{name}({_taken(inner, method=True)})" if inspect.isfunction(inner) else name


def _taken(value: Any, method: bool = False, types: bool = False) -> str:
    """The parameters as one writes them in Python, with types for readers only."""
    taken = [p for p in parameters(value) if not (method and p.name == "cls")]
    found, before = [], None
    for p in taken:
        if before is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            found.append("/")
        starred = before in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        if p.kind is p.KEYWORD_ONLY and not starred:
            found.append("*")
        found.append(_parameter(p, types))
        before = p.kind
    return ", ".join(found)


def _parameter(p: inspect.Parameter, types: bool) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    kind = readable(p.annotation) if types and p.annotation is not p.empty else ""
    said = f"{stars}{p.name}" + (f": {kind}" if kind else "")
    if p.default is p.empty:
        return said
    return f"{said} = {_default(p.default)}" if kind else f"{said}={_default(p.default)}"


def _default(value: Any) -> str:
    if inspect.isclass(value) or inspect.isfunction(value):
        return "…" if value.__name__ == "<lambda>" else value.__name__
    said = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return "…" if " at 0x" in said or len(said) > 40 else said


def readable(annotation: Any) -> str:
    """A type in few words; nothing where it may be anything.

    >>> readable('Float[Array, "*batch n d"] | None')
    'array(…, n, d) | None'
    >>> readable('Float[ArrayLike, ""] | int'), readable("Callable[[float], Any]"), readable("Any")
    ('float', 'function', '')
    """
    said = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    if "Annotated[" in said:  # what pydantic asks of a field
        said = re.sub(r"^(?:typing\.)?(?:Annotated\[)?(\w+).*", r"\1", said)
    said = re.sub(r"ForwardRef\('(.*?)'\)", r"\1", said).strip("'\"")
    said = re.sub(r"^AbstractVar\[(.*)\]$", r"\1", said.replace("eqx.", ""))
    said = re.sub(r"\b\w+\[Array, \.\.\.\]", "array", said)
    said = re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", said)
    said = re.sub(r"""\b(\w+)\[(?:Array|ArrayLike|ndarray), ['"]([^'"]*)['"]\]""", _array, said)
    said = _innermost(r"\bCallable\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]", "function", said)
    said = re.sub(r"\bCallable\b", "function", said)
    said = re.sub(r"\bRandomKey\b|\bPRNGKeyArray\b", "key", said)
    said = re.sub(r"\b(?:ArrayLike|ndarray|Array)\b", "array", said)
    parts = _split(said)
    if "Any" in parts:
        return ""
    parts = [part for part in dict.fromkeys(parts) if not (part == "int" and "float" in parts)]
    return " | ".join(parts)


def _innermost(pattern: str, put: str, said: str) -> str:
    while (after := re.sub(pattern, put, said)) != said:
        said = after
    return said


def _array(found: re.Match[str]) -> str:
    kinds = {"Bool": "bool", "Int": "int", "UInt32": "int", "Key": "key", "Complex": "complex"}
    shape = found[2].split()
    if not shape:
        return kinds.get(found[1], "float")
    dims = ["…" if dim.startswith(("*", "...")) else dim for dim in shape]
    return f"array({', '.join(dims)})"


def _split(said: str) -> list[str]:
    """The members of a union, but not of one inside brackets."""
    parts, depth = [""], 0
    for letter in said:
        depth += (letter in "[(") - (letter in "])")
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def page() -> str:
    """The interface for readers."""
    parts = [INTRODUCTION]
    found = entries()
    for module in MODULES:
        here = [entry for entry in found if entry.module == module]
        if here:
            parts += [f"## {module}", *_section(module, here)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _section(module: str, here: list[Entry]) -> Iterator[str]:
    yield _first_line(import_module(module))
    elsewhere = [entry for entry in here if entry.address != entry.home]
    if elsewhere:
        names: dict[str, list[str]] = {}
        for entry in elsewhere:
            names.setdefault(entry.home.rpartition(".")[0], []).append(f"`{entry.name}`")
        yield "\n".join(f"- of `{home}`: {', '.join(said)}" for home, said in names.items())
    modules = [f"`{entry.name}`" for entry in here if inspect.ismodule(entry.value)]
    if modules:
        yield f"Modules: {', '.join(modules)}."
    own = [e for e in here if e.address == e.home and not inspect.ismodule(e.value)]
    yield "\n".join(map(_item, own))


def _item(entry: Entry) -> str:
    value = entry.value
    if not callable(value) or _is_type(value):
        said = _said_below(entry)
        return f"- `{entry.name}`: {said}" if said else f"- `{entry.name}`"
    said = f"- `{entry.name}({_taken(value, types=True)})`: {_first_line(value)}"
    if inspect.isclass(value) and (inner := members(value)):
        said += f" Has {', '.join(f'`{_member(*one)}`' for one in inner.items())}."
    return said


def _first_line(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "").partition("\n")[0]


def _said_below(entry: Entry) -> str:
    """The sentence that stands under a value where it is defined, in a file of its package."""
    said = re.compile(rf'^{entry.name}\b.*=.*(?:\n(?!\w).*)*?\n"""((?:.|\n)*?)"""', re.MULTILINE)
    file = Path(import_module(entry.module).__file__ or "")
    places = [file, *sorted(file.parent.glob("*.py"))] if file.name == "__init__.py" else [file]
    found = (said.search(place.read_text()) for place in places)
    return next((" ".join(one[1].split()) for one in found if one), "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write both files, or print the list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the page and the list")
    if parser.parse_args(arguments).write:
        PAGE.write_text(page())
        LIST.write_text("\n".join(listed()) + "\n")
    else:
        print("\n".join(listed()))


if __name__ == "__main__":
    main()
