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
    ...     def __init__(self, beta=1.0, *, K=None, V=None): ...
    >>> class Derived(Base):
    ...     @options_of(Base)
    ...     def __init__(self, beta=1.0, *, D, V=2.0, **options):
    ...         super().__init__(beta, V=V, **options)
    >>> print(inspect.signature(Derived))
    (beta=1.0, *, D, K=None, V=2.0)
    """
    given = inspect.signature(base.__init__).parameters.values()  # type: ignore[misc]
    keywords = [p for p in given if p.kind is p.KEYWORD_ONLY]

    def decorate(init: Init) -> Init:
        own = inspect.signature(init)
        inherited = {p.name: own.parameters.get(p.name, p) for p in keywords}
        new = [p for p in own.parameters.values() if p.name not in inherited]
        found: Any = init
        found.__signature__ = own.replace(
            parameters=[p for p in new if p.kind is not p.VAR_KEYWORD] + [*inherited.values()]
        )
        return init

    return decorate
