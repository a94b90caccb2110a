"""Which figures see which mistake: `python tests/killed_figures.py kills.json` tries all of them.

    python tests/killed_figures.py figures.json                    # several hours
    python tests/killed_figures.py figures.json "β/2" "−β"         # some mistakes
    python tests/killed_figures.py --only E-fig3 figures.json      # some figures

What is in the file already is kept, so that it can be stopped and started again. It has the form
of tests/killed.py: for each mistake what each figure said, None where it was still "seen".
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import matplotlib

from attnflow.figures import find
from attnflow.plot.style import style
from attnflow.sweep.engine import computer
from mutants import mutated

RESCALED = [
    *("E-fig1", "E-fig3", "E-fig4", "E-fig5", "E-fig6", "E-fig7a", "E-fig7b", "E-fig8", "E-fig11"),
    *("E-fig13", "E-fig14", "E-table1", "E-qk", "P-hardmax", "S-scaling"),
]
PURE = ["S-multihead", "S-master"]
SPHERE = [
    *("P-fig2", "P-fig3", "P-fig4", "P-fig5", "P-gamma", "P-energy", "P-meanfield", "P-noise"),
    *("S-albert", "S-collapse"),
]
SOFTMAX = [*RESCALED, *PURE, *SPHERE]
ANGLES = ["P-bbgky"]
FLOWS = [*SOFTMAX, *ANGLES]
"""Figures that simulate, by the equation. P-repulsive is not among them: it minimises an energy,
and its flow only brings starts near to a minimum."""


def _but(figures: list[str], *others: str) -> list[str]:
    return [name for name in figures if name not in others]


CONCERNS: dict[str, list[str]] = {
    "swap Q and K": ["E-fig7b", "E-table1", "E-qk", "P-fig5", "S-albert"],
    "transpose V": ["E-fig6", "E-fig13", "E-fig14", "E-table1", "P-fig5", "S-multihead"],
    "ignore Q and K": ["E-fig4", "E-fig7b", "E-table1", "E-qk", "P-fig5", "S-multihead"],
    "wrong sign of V": SOFTMAX,
    "mean over heads": ["S-multihead"],
    "first head alone": ["S-multihead"],
    "ignore β": _but(SOFTMAX, "S-master", "S-multihead", "P-gamma"),
    "β/2": FLOWS,
    "−β": FLOWS,
    "uniform attention": FLOWS,
    "drop the normaliser": SOFTMAX,
    "ignore masses": ["S-scaling", "S-multihead"],
    "frozen attention": _but(SOFTMAX, "P-fig3", "P-noise"),
    "drop the projection": _but(SPHERE, "P-fig5", "P-noise"),
    "tokens do not move": FLOWS,
    "order too low": _but(FLOWS, "P-fig3", "P-fig5", "P-noise"),
}
"""The figures whose run each mistake changes. Layers project nothing, and where a figure shows
what noise or a tolerance of 1e-3 leaves, a step of lower order does not show."""

FOUND: dict[str, list[str]] = {
    "S-collapse": ["tokens do not move", "wrong sign of V", "β/2"],
    "E-fig3": ["tokens do not move", "uniform attention"],
    "E-fig4": ["tokens do not move", "uniform attention"],
    "E-fig11": ["tokens do not move", "uniform attention"],
    "E-fig1": ["uniform attention", "−β"],
    "S-multihead": ["β/2"],
}
"""Mistakes of which figures once said "seen"."""


def seen(figure: str) -> str | None:
    """What a figure of quick size says of a mistake, or None where it does not see it.

    Compiled sweeps are thrown away: they would still be right.
    """
    computer.cache_clear()
    try:
        with style():
            picture = find(figure).make("quick")
    except Exception as error:
        return f"stops: {type(error).__name__}"
    finally:
        computer.cache_clear()
    missed = [quantity.name for quantity in picture.seen if not quantity.holds]
    second = ["SciPy" in name or "plain" in name for name in missed]
    equation, others = any(second), not all(second)
    if equation and others:
        return "fails (the equation and the theorem)"
    if missed:
        return "fails (the equation, not the theorem)" if equation else "fails (the theorem)"
    return None


def main(arguments: list[str] | None = None) -> None:
    """Try mistakes on the figures that they concern, and keep what each said."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="where the outcomes are kept, as JSON")
    parser.add_argument("names", nargs="*", default=list(CONCERNS), help="mistakes; all without")
    parser.add_argument("--only", nargs="*", help="figures; all that are concerned without")
    given = parser.parse_args(arguments)
    matplotlib.use("Agg")
    for name in given.names:
        found = json.loads(given.file.read_text()) if given.file.exists() else {}
        wanted = [f for f in CONCERNS[name] if f not in found.get(name, {})]
        for figure in (f for f in wanted if given.only is None or f in given.only):
            begin = time.perf_counter()
            with mutated(name):
                said = seen(figure)
            print(f"{name}, {figure}: {said} ({time.perf_counter() - begin:.0f} s)", flush=True)
            found = json.loads(given.file.read_text()) if given.file.exists() else {}
            found.setdefault(name, {})[figure] = said
            given.file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
