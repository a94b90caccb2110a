"""Old names: for one version each raises an error that gives the new one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

FIELDS = {"seed": "key", "eps": "tol"}
"""Old names of fields in specs."""

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


def keywords_only(how: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse by position what is given by name now; `how` says how it is written.

    >>> @keywords_only("weights are keywords, as in draw(1, Q=2)")
    ... def draw(beta, *, Q=None): ...
    >>> draw(1, 2)
    Traceback (most recent call last):
    TypeError: draw() takes 1 argument by position, not 2: weights are keywords, as in draw(1, Q=2).
    """

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        name = fn.__qualname__.removesuffix(".__init__")
        places = [p for p in inspect.signature(fn).parameters.values() if p.kind < p.VAR_POSITIONAL]
        method = bool(places) and places[0].name == "self"
        count = len(places) - method

        @functools.wraps(fn)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = len(args) - method
            if given > count:
                owner = type(args[0]).__name__ if method else name
                word = "argument" if count == 1 else "arguments"
                raise TypeError(f"{owner}() takes {count} {word} by position, not {given}: {how}.")
            return fn(*args, **kwargs)

        return checked

    return decorate


class RenamedAttribute:
    """An attribute that a class had: whoever asks for it is told its new name.

    >>> class Run:
    ...     seed = RenamedAttribute("key")
    >>> Run().seed
    Traceback (most recent call last):
    AttributeError: Run.seed is called key now.
    """

    def __init__(self, new: str):
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.old = owner.__name__, name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"{self.owner}.{self.old} is called {self.new} now.")


def refuse_renamed(cls: type) -> None:
    """Refuse a class that overrides what a class above it has renamed: nobody would call it.

    >>> class Run:
    ...     seed = RenamedAttribute("key")
    >>> class Mine(Run):
    ...     seed = 3
    >>> refuse_renamed(Mine)
    Traceback (most recent call last):
    TypeError: Mine has a 'seed', which Run calls 'key' now.
    """
    for base in cls.__mro__[1:]:
        for name, old in vars(base).items():
            if isinstance(old, RenamedAttribute) and name in vars(cls):
                raise TypeError(
                    f"{cls.__name__} has a {name!r}, which {base.__name__} calls {old.new!r} now."
                )
