"""Old names: for one version each raises an error that gives the new one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed_arguments(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse arguments by their old names: `renamed_arguments(old="new")`.

    >>> @renamed_arguments(seed="key")
    ... def draw(*, key): ...
    >>> draw(seed=0)
    Traceback (most recent call last):
    TypeError: draw() has no argument 'seed' any more: it is called 'key' now.
    """

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        name = fn.__qualname__.removesuffix(".__init__")

        @functools.wraps(fn)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                raise TypeError(
                    f"{name}() has no argument {old!r} any more: it is called {names[old]!r} now."
                )
            return fn(*args, **kwargs)

        return checked

    return decorate


def renamed_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module in which names were renamed: `{"old": "new"}`.

    >>> renamed_names("attnflow", {"Given": "ExplicitMask"})("Given")
    Traceback (most recent call last):
    AttributeError: attnflow.Given is called ExplicitMask now.
    """

    def missing(name: str) -> Any:
        if name in names:
            raise AttributeError(f"{module}.{name} is called {names[name]} now.")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return missing


class RenamedAttribute:
    """An attribute that was renamed: `old = RenamedAttribute("new")` in the body of a class.

    >>> class Result:
    ...     tolerance = RenamedAttribute("tol")
    >>> Result().tolerance
    Traceback (most recent call last):
    AttributeError: Result.tolerance is called tol now.
    """

    def __init__(self, new: str):
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(f"{owner.__name__}.{self.old} is called {self.new} now.")
