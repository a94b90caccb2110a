"""What the page asks of a system: its number, whether it has matrices, whether it is a map."""

from __future__ import annotations

from attnflow.systems import SYSTEMS
from attnflow.systems.presets import MATRIX, Preset

PRESETS: dict[str, Preset] = {
    name: system.preset for name, system in SYSTEMS.items() if system.preset is not None
}
"""The run that each system declares; `Noisy` has none, as it is any of the others with noise."""

NAMES = {
    "beta": "β",
    "radius": "Radius",
    "bandwidth": "Bandwidth",
    "eta": "Noise η",
    "alpha": "α",
}


def label_of(name: str) -> str:
    """What the number of a system is called; nothing where it has none.

    >>> label_of("SA"), label_of("Kuramoto"), label_of("Hardmax")
    ('β', 'K', '')
    """
    number = PRESETS[name].number
    return "" if number is None else NAMES.get(number, number)


def takes_matrices(name: str) -> bool:
    """Whether a system has Q, K and V to choose.

    >>> takes_matrices("SA"), takes_matrices("Kuramoto")
    (True, False)
    """
    return all(SYSTEMS[name].drawn.get(weight) is MATRIX for weight in ("Q", "K", "V"))


def is_map(name: str) -> bool:
    """Whether a system has layers alone, so that its times are whole numbers."""
    return SYSTEMS[name].dynamics == "map"
