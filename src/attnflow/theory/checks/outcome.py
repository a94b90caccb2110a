"""What came out of a check: its draws, and the verdict over all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from attnflow.retired import RenamedAttribute
from attnflow.theory.checks.base import Check, Draw
from attnflow.verdicts import Part, Quantity, Verdict

MIN_RESOLVED_SHARE = 0.75
"""At least this part of the draws must be resolved for a statement to hold."""


@dataclass(frozen=True)
class Outcome:
    """The draws of one check.

    Attributes:
        check: the check.
        draws: its draws.
        key: the key that they were drawn with.
        seconds: how long it took.
    """

    check: Check
    draws: tuple[Draw, ...]
    key: int
    seconds: float

    seed = RenamedAttribute("key")

    @property
    def counts(self) -> Counter[Verdict]:
        """How many draws hold, fail and are unresolved."""
        return Counter(draw.verdict for draw in self.draws)

    @property
    def verdict(self) -> Verdict:
        """One failed draw is enough to fail; too few resolved ones leave it unresolved."""
        counts = self.counts
        if counts["fails"]:
            return "fails"
        return (
            "holds"
            if counts["holds"] >= max(1, MIN_RESOLVED_SHARE * len(self.draws))
            else "unresolved"
        )

    @property
    def failed(self) -> tuple[Part, ...]:
        """What failed: the theorem, the equation (the run is wrong, or its reference), or both."""
        found = {quantity.part for draw in self.draws for quantity in draw.missed}
        return tuple(part for part in ("equation", "theorem") if part in found)

    @property
    def wrong(self) -> bool:
        """Whether something is not as it should be: a conjecture may fail, its runs may not."""
        if self.check.proven:
            return self.verdict != "holds"
        return "equation" in self.failed

    @property
    def said(self) -> str:
        """The verdict in words: what failed, or that every bound of the theorem is vacuous.

        Nothing is said to hold that is only a conjecture.
        """
        if self.verdict == "fails":
            return self._fails()
        word = {"holds": "seen"}.get(self.verdict) if not self.check.proven else None
        word = word or self.verdict
        bounds = [q for q in self.worst if q.part == "theorem"]
        vacuous = self.verdict == "holds" and all(q.vacuous for q in bounds)
        return f"{word} (vacuous bound)" if vacuous else word

    def _fails(self) -> str:
        if self.failed == ("theorem",):
            return "fails (the theorem)" if self.check.proven else "contradicted"
        if self.failed == ("equation",):
            return "fails (the equation, not the theorem)"
        return "fails (the equation and the theorem)" if self.failed else "fails"

    @property
    def worst(self) -> list[Quantity]:
        """Of each quantity the one with the smallest margin, over all draws that measured it."""
        found: dict[str, Quantity] = {}
        for draw in self.draws:
            for quantity in draw.quantities:
                if draw.unresolved and quantity.part == "theorem":
                    continue
                known = found.get(quantity.name)
                if known is None or not quantity.slack >= known.slack:
                    found[quantity.name] = quantity
        return list(found.values())

    def to_json(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        check = self.check
        return {
            "id": check.id,
            "source": check.source,
            "proven": check.proven,
            "hypothesis": check.hypothesis,
            "conclusion": check.conclusion,
            "settings": check.settings,
            "key": self.key,
            "verdict": self.verdict,
            "said": self.said,
            "counts": {v: self.counts[v] for v in ("holds", "fails", "unresolved")},
            "seconds": round(self.seconds, 3),
            "worst": [quantity.to_json() for quantity in self.worst],
            "draws": [draw.to_json() for draw in self.draws],
        }

    def __str__(self) -> str:
        """The verdict, and the worst of each quantity."""
        counts = self.counts
        lines = [
            f"{self.check.id} {self.check.source}: {self.said} "
            f"({counts['holds']} of {len(self.draws)} draws hold, {counts['fails']} fail, "
            f"{counts['unresolved']} unresolved)"
        ]
        lines += [f"  {q.name}: {q.value:.3g} {q.sense} {q.bound:.3g}" for q in self.worst]
        return "\n".join(lines)
