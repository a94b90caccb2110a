"""The theorems of the papers, measured: `check("T3.1")` and `attnflow check`."""

from __future__ import annotations

import time
from collections.abc import Callable

from attnflow.randomness import as_key
from attnflow.retired import renamed_arguments
from attnflow.theory.checks.base import Check, Draw, FlowCheck, Trial
from attnflow.theory.checks.consensus import (
    AnyBeta,
    CausalCollapse,
    Hemisphere,
    LargeBeta,
    NearlyUniform,
    SmallBeta,
    Uniform,
)
from attnflow.theory.checks.gradient import EnergyExtremes, EnergyGrowth, GradientFlow
from attnflow.theory.checks.hyperplanes import (
    Codimension,
    DualCoordinates,
    Hyperplanes,
    PolytopeTimesSubspace,
)
from attnflow.theory.checks.layers import DiscreteLayers
from attnflow.theory.checks.measures import Dobrushin, SharpMinima
from attnflow.theory.checks.orthogonal import (
    CommonCosine,
    Concentration,
    LipschitzFlow,
    Symmetries,
    Transition,
)
from attnflow.theory.checks.outcome import Outcome
from attnflow.theory.checks.polytope import Distances, Origin, Polytope
from attnflow.theory.checks.probability import Ginibre, Wendel
from attnflow.theory.checks.scalar import Leaders
from attnflow.theory.inputs import look_up
from attnflow.verdicts import Quantity, Verdict

__all__ = [
    "CHECKS",
    "Check",
    "Draw",
    "FlowCheck",
    "Outcome",
    "Quantity",
    "Trial",
    "Verdict",
    "check",
    "find",
]

CHECKS: dict[str, Check] = {
    row.id: row
    for row in (
        Leaders(),
        Distances(),
        Polytope(),
        Origin(),
        Hyperplanes(),
        DualCoordinates(),
        PolytopeTimesSubspace(),
        Codimension(),
        DiscreteLayers(),
        Dobrushin(),
        EnergyExtremes(),
        EnergyGrowth(),
        GradientFlow(),
        Uniform(),
        NearlyUniform(),
        SmallBeta(),
        LargeBeta(),
        AnyBeta(),
        Hemisphere(),
        Wendel(),
        CommonCosine(),
        Concentration(),
        Transition(),
        LipschitzFlow(),
        SharpMinima(),
        Symmetries(),
        CausalCollapse(),
        Ginibre(),
    )
}
"""The checks by id, in the order of the papers."""


def find(name: str) -> Check:
    """The check of an id or of an alias, in any case.

    >>> find("l3.7").id
    '3.6'
    """
    return look_up("check", name, CHECKS.values())


@renamed_arguments(seed="key", tell="on_progress")
def check(
    id: str, *, key: int = 0, on_progress: Callable[[float], object] = lambda part: None
) -> Outcome:
    """Draw starts and weights that meet the hypothesis of a theorem, run, measure the conclusion.

    Args:
        id: the id of a theorem or an alias of it, such as "T3.1"; `CHECKS` has them all.
        key: an integer; by default 0. The same key gives the same draws.
        on_progress: called again and again with the part of the draws that is done, from 0 to 1.

    >>> outcome = check("T6.8")
    >>> outcome.verdict, outcome.worst[0].name
    ('holds', 'max |<x_i,x_j> − γ_β|')
    """
    row = find(id)
    as_key(key)
    begin = time.perf_counter()
    trials = list(row.trials(key))
    draws: list[Draw] = []
    for done, trial in enumerate(trials):
        on_progress(done / len(trials))
        draws += row.draws(trial)
    return Outcome(row, tuple(draws), key, time.perf_counter() - begin)
