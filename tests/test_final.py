"""Classes are abstract or final: none that can be made an object has a subclass.

A subclass of a concrete class passes for it wherever a type is asked, and is answered with what
holds for its parent.
"""

import importlib
import inspect
import pkgutil

from pydantic import BaseModel

import attnflow


def classes():
    """Every class that the package defines."""
    found = set()
    for module in pkgutil.walk_packages(attnflow.__path__, "attnflow."):
        if not module.name.endswith(("__main__", ".simulate")):  # a command, and an old name
            for value in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(value) and value.__module__.startswith("attnflow"):
                    found.add(value)
    return found


def test_no_concrete_class_has_a_subclass():
    """But for errors, of which a caller catches all kinds as one, and for records of fields."""
    known = classes()
    assert len(known) > 100
    extended = {
        parent.__qualname__: child.__qualname__
        for child in known
        for parent in child.__bases__
        if parent in known
        and not inspect.isabstract(parent)
        and not issubclass(parent, BaseException | BaseModel)
    }
    assert extended == {}
