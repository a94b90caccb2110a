"""`Config`: the fields of a `config.json`, each checked when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnflow import records
from attnflow.errors import InputError, ModelError

MAX_CONFIG_NUMBER = 2**31
"""Numbers in a config must be below this."""

REQUIRED: Any = object()
"""Marks a field without a default."""


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file, or an error that names the file."""
    try:
        table = records.read_json(path)
    except InputError as error:
        raise ModelError.of(error) from None
    if not isinstance(table, dict):
        raise ModelError(f"{path} must hold a table of fields, not {type(table).__name__}.")
    return table


class Config:
    """The fields of a `config.json` by name. Methods take older names of a field as well.

    >>> config = Config(Path("config.json"), {"n_embd": 12, "eps": 1e-5})
    >>> config.count("hidden_size", "n_embd"), config.number("eps"), config.flag("bias", False)
    (12, 1e-05, False)
    """

    def __init__(self, path: Path, fields: dict[str, Any]):
        self.path = path
        self.fields = fields

    @classmethod
    def read(cls, path: Path) -> Config:
        """The config in a file."""
        return cls(path, read_json(path))

    def value(self, *names: str, default: Any = REQUIRED) -> Any:
        """The field, under whichever of its names is present and not null.

        Args:
            *names: the field's name, then its older names.
            default: returned if the field is missing. Without a default that is an error.
        """
        there = {name: self.fields[name] for name in names if self.fields.get(name) is not None}
        if not there and default is REQUIRED:
            raise ModelError(f"{self.path} lacks the field {names[0]!r}.")
        first, *others = there.items() or [("", default)]
        for name, value in others:
            if value != first[1]:
                raise ModelError(
                    f"{self.path}: {first[0]} is {first[1]!r:.80} and {name} is {value!r:.80}, but "
                    "these are two names of one field: give one of them."
                )
        return first[1]

    def count(self, *names: str, default: Any = REQUIRED, least: int = 1) -> int:
        """A whole number.

        Args:
            *names: the field's name, then its older names.
            default: used if the field is missing. Without a default that is an error.
            least: the smallest number allowed.
        """
        value = self.value(*names, default=default)
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not least <= value < MAX_CONFIG_NUMBER
        ):
            self.refuse(names[0], f"a whole number from {least} to {MAX_CONFIG_NUMBER}", value)
        return value

    def number(self, *names: str, default: Any = REQUIRED) -> float:
        """A finite number above 0."""
        value = self.value(*names, default=default)
        real = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not real or not 0 < value < MAX_CONFIG_NUMBER:
            self.refuse(names[0], "a finite number above 0", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.value(name, default=default)
        if not isinstance(value, bool):
            self.refuse(name, "true or false", value)
        return value

    def word(self, *names: str, default: Any = REQUIRED) -> str:
        """A string."""
        value = self.value(*names, default=default)
        if not isinstance(value, str):
            self.refuse(names[0], "a word", value)
        return value

    def table(self, *names: str) -> Config:
        """A nested table; empty if the field is missing."""
        value = self.value(*names, default={})
        if not isinstance(value, dict):
            self.refuse(names[0], "a table", value)
        return Config(self.path, value)

    def require(self, name: str, expected: Any, default: Any, why: str) -> None:
        """Raise unless a field has the expected value.

        Args:
            name: the field.
            expected: the only value allowed.
            default: the value if the field is missing.
            why: the reason, as it ends the error message.
        """
        value = self.value(name, default=default)
        if value != expected:
            raise ModelError(f"{self.path}: {name} is {value!r}, but {why}.")

    def heads(self, d: int, *names: str) -> int:
        """The number of heads, which divides d."""
        H = self.count(*names)
        if d % H:
            raise ModelError(
                f"{self.path}: the {d} entries of a token cannot be split into {H} heads."
            )
        return H

    def refuse(self, name: str, right: str, value: Any) -> None:
        """Raise the error for a field with a wrong value.

        Args:
            name: the field.
            right: what would be right, as it follows "must be".
            value: what the field is.
        """
        raise ModelError(f"{self.path}: {name} must be {right}, not {value!r:.80}.")


ACTIVATION_NAMES = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
"""Names of nonlinearities in configs, and what `weights.ACTIVATIONS` calls them."""


def activation(config: Config, *names: str, default: Any = REQUIRED) -> str:
    """The nonlinearity of a config, under its name in `weights.ACTIVATIONS`.

    Args:
        config: the config.
        *names: the field's name, then its older names.
        default: used if the field is missing. Without a default that is an error.

    >>> activation(Config(Path("config.json"), {"act": "gelu_new"}), "act")
    'gelu_tanh'
    """
    word = config.word(*names, default=default)
    if word not in ACTIVATION_NAMES:
        config.refuse(names[0], f"one of {', '.join(ACTIVATION_NAMES)}", word)
    return ACTIVATION_NAMES[word]
