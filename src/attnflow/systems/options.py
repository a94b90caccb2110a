"""Keyword arguments that a constructor takes over from the one above it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Init = TypeVar("Init", bound=Callable[..., None])


def options_of(base: type) -> Callable[[Init], Init]:
    """Write the keywords of `base` in place of `**options` in the signature of a constructor.

    So they are declared once, and help, specs and the page still see all of them.

    >>> class Base:
    ...     def __init__(self, beta=1.0, *, V=None): ...
    >>> class Derived(Base):
    ...     @options_of(Base)
    ...     def __init__(self, beta=1.0, *, D, **options):
    ...         super().__init__(beta, **options)
    >>> print(inspect.signature(Derived))
    (beta=1.0, *, D, V=None)
    """
    given = inspect.signature(base.__init__).parameters.values()  # type: ignore[misc]
    keywords = [p for p in given if p.kind is p.KEYWORD_ONLY]

    def decorate(init: Init) -> Init:
        own = inspect.signature(init)
        named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [p for p in keywords if p.name not in own.parameters]
        found: Any = init
        found.__signature__ = own.replace(parameters=[*named, *more])
        return init

    return decorate
