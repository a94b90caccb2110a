"""The frequencies of rotary positions, as configs describe them."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.errors import ModelError
from attnflow.models.config import Config
from attnflow.weights import rotary_frequencies

THETA = 1e4
KINDS = ("default", "linear", "llama3")


def frequencies(config: Config, k: int) -> Float[Array, " p"]:
    """The k/2 frequencies for heads of k rows: plain, slowed down, or Llama 3's mix of both."""
    rope = _described(config)
    theta = rope.number("rope_theta", default=config.value("rope_theta", default=THETA))
    omega = rotary_frequencies(k, theta)
    config.require("partial_rotary_factor", 1.0, 1.0, "all rows of a head must be rotated")
    rope.require("partial_rotary_factor", 1.0, 1.0, "all rows of a head must be rotated")
    kind = rope.word("rope_type", default=rope.value("type", default="default"))
    if kind == "default":
        return omega
    if kind == "linear":
        return omega / rope.number("factor")
    if kind == "llama3":
        return _slowed(rope, config, omega)
    rope.refuse("rope_type", f"one of {', '.join(KINDS)}", kind)
    return omega


def _described(config: Config) -> Config:
    """The table of rotary positions: `rope_scaling` unless it is empty, else `rope_parameters`.

    This is the rule of `transformers`, which never mixes the two tables.
    """
    older, newer = config.table("rope_scaling"), config.table("rope_parameters")
    rope = older if older.fields else newer
    for name, value in rope.fields.items():
        if isinstance(value, dict):
            raise ModelError(
                f"{config.path}: rope_parameters has a table for {name}, but all layers must share "
                "the same frequencies."
            )
    return rope


def _slowed(rope: Config, config: Config, omega: Float[Array, " p"]) -> Float[Array, " p"]:
    """Slow frequencies divided by `factor`, fast ones unchanged, a linear mix in between.

    A wave that turns `turns` times over the length of the first training texts is slow below
    `low_freq_factor` turns and fast above `high_freq_factor`.
    """
    factor = rope.number("factor")
    low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
    if not low < high:
        rope.refuse("high_freq_factor", f"above low_freq_factor, {low:g},", high)
    turns = _first_length(rope, config) * omega / (2 * jnp.pi)
    fast = jnp.clip((turns - low) / (high - low), 0, 1)
    return fast * omega + (1 - fast) * omega / factor


def _first_length(rope: Config, config: Config) -> int:
    """The length of the first training texts, from the config, else from the table of rope.

    `transformers` looks in this order too. If neither says, it is the largest length.
    """
    name = "original_max_position_embeddings"
    places = (place for place in (config, rope) if place.value(name, default=None) is not None)
    said = next(places, None)
    return config.count("max_position_embeddings") if said is None else said.count(name)
