"""What a view shows, as the query of its address: a link reproduces it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, ConfigDict, ValidationError

from attnflow.errors import InputError
from attnflow.records import refusal
from attnflow.retired import FIELDS

View = TypeVar("View", bound="Address")

MAX_FIELDS = 64
"""Fields of an address."""


class Address(BaseModel):
    """The fields of a view. Those that have their defaults are not in the address.

    >>> class View(Address):
    ...     n: int = 3
    >>> View(n=5).address(), View.from_address("?n=7&theme=dark").n
    ('?n=5', 7)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: ClassVar[Mapping[str, str]] = {}
    """What the fields are called on the page."""

    def check(self) -> None:
        """Raise an error that says what does not go together, if something does not."""

    @classmethod
    def label(cls, name: str, fields: Mapping[str, Any]) -> str:
        """What a field is called on the page, beside the others."""
        return cls.labels.get(name, name)

    @classmethod
    def read(cls: type[View], fields: dict[str, Any]) -> View:
        """The view with these fields, or an error that says which one is wrong and why."""
        for name, value in fields.items():
            if value is None:
                raise InputError(f"{cls.label(name, fields)}: empty{cls._asked(name)}.")
        try:
            view = cls.model_validate(fields)
        except ValidationError as error:
            first = error.errors()[0]
            name, said = cls.label(str(first["loc"][0]), fields), str(first["input"])[:40]
            raise InputError(f"{refusal(first)}, but it is {said!r}.", where=name) from None
        view.check()
        return view

    @classmethod
    def from_address(cls: type[View], query: str) -> View:
        """The view in the query of an address; what it does not know there is left alone."""
        try:
            said = parse_qsl(
                query.removeprefix("?"), keep_blank_values=True, max_num_fields=MAX_FIELDS
            )
        except ValueError:
            raise InputError(f"the address has more than {MAX_FIELDS} fields.") from None
        fields = dict(said)
        for old, new in FIELDS.items():
            if old in fields and new in cls.model_fields:
                raise InputError(f"the link is of an earlier version: {old} is called {new} now.")
        return cls.read({name: text for name, text in fields.items() if name in cls.model_fields})

    @classmethod
    def _asked(cls, name: str) -> str:
        """The bounds of a number. A browser sends nothing for one that is beyond them."""
        field = cls.model_fields.get(name)
        words = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
        bounds = [
            f" {word} {getattr(bound, kind):,.10g}".replace("-", "−")
            for kind, word in words.items()
            for bound in (field.metadata if field else ())
            if getattr(bound, kind, None) is not None
        ]
        kind = "whole number" if field and field.annotation is int else "number"
        return f", or no {kind}{''.join(bounds)}" if bounds else ""

    def address(self) -> str:
        """The query of an address that reproduces this view."""
        said = self.model_dump(exclude_defaults=True)
        return f"?{urlencode(said)}" if said else ""
