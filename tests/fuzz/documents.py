"""Valid specs of every system, start, method and family: what the attacks on specs begin from."""

import inspect
import tomllib
from pathlib import Path

from hypothesis import strategies as st

from attnflow.initial import STARTS
from attnflow.simulation import METHODS
from attnflow.spec import RunSpec, SweepSpec
from attnflow.spec.model import Times
from attnflow.sweep.observables import known
from attnflow.systems import SYSTEMS
from attnflow.weights import FAMILIES
from attnflow.weights.couplings import COUPLINGS
from attnflow.weights.frequencies import FREQUENCIES
from attnflow.weights.graphs import GRAPHS
from fuzz.mutations import anything, moments, real, whole, words

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLES = (SYSTEMS, STARTS, METHODS, FAMILIES, COUPLINGS, FREQUENCIES, GRAPHS, known())


def examples(folder=EXAMPLES):
    """The examples, with few tokens and few times."""
    found = [tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.toml"))]
    return [_small(spec) for spec in found]


def _small(spec):
    start, times = spec["start"], spec["times"]
    if "n" in start:
        start["n"] = 4
    if start.get("d", 0) > 16:
        start["d"] = 3
    if "first" not in times:
        times["count"] = 3
    if spec["system"]["name"] == "Kuramoto" and "omega" in spec["system"]:
        spec["system"]["omega"]["even"] = False
    return spec


def _run(**parts):
    usual = {
        "key": 1,
        "system": {"name": "SA", "beta": 4.0},
        "start": {"name": "sphere", "n": 4, "d": 3},
        "times": {"stop": 1.0, "count": 3},
    }
    return usual | parts


def runs():
    """A spec of every system, start, method and family of weights, and of each way to say times."""
    sizes = {"n": 3, "d": 3}
    starts = [
        {"name": name} | {k: v for k, v in sizes.items() if k in inspect.signature(f).parameters}
        for name, f in STARTS.items()
    ]
    methods = [{"name": name, "dt": 0.5} for name in ("Fixed", "Layers")]
    methods += [{"name": name} for name in ("Adaptive", "Coarsening")]
    needed = {"spectrum": {"eigenvalues": [1.0, "0.5+1j", "0.5-1j"], "symmetric": False}}
    needed["paranormal"] = {"multiplicity": 1}
    families = [{"family": name} | needed.get(name, {}) for name in FAMILIES if name != "bias"]
    times = [
        {"values": [0.0, 0.5, 1.0]},
        {"stop": 1.0, "first": 0.1, "count": 4, "spacing": "log"},
    ]
    return [
        *examples(),
        *(_run(system={"name": "PureAttention"}, start=start) for start in starts),
        *(_run(method=method) for method in methods),
        *(_run(system={"name": "SA", "beta": 1.0, "V": family}) for family in families),
        *(_run(system={"name": "SA", "beta": 1.0, "Q": f | {"every": 0.5}}) for f in families),
        *(_run(times=each) for each in times),
        _run(dtype="float32", title="a run"),
        _run(system={"name": "SA", "beta": 1.0, "K": families[1], "V": {"family": "scores"}}),
    ]


def sweeps():
    """A spec with axes of each kind and every observable that is kept by some example."""
    kept = {"E": {"observable": "energy", "quantiles": [0.1, 0.9]}}
    tiny = _run(realisations=2, keep=kept)
    cases = {"cases": {"a": {"system.V": 1.0}, "b": {"system.V": {"family": "goe"}}}}
    method = {"name": "Fixed", "dt": 0.5}
    observables = ["pairs_clustered", "cluster_count", "hull_vertices", "mean_entropy", "diameter"]
    return [
        *examples(EXAMPLES / "sweeps"),
        tiny | {"axes": {"beta": [1.0, 2.0], "n": [2, 3]}},
        tiny | {"axes": {"beta": {"start": 1, "stop": 9, "count": 3, "spacing": "log"}}},
        tiny | {"axes": {"V": cases}},
        tiny | {"axes": {"method.dt": [0.5, 0.25]}, "method": method},
        tiny | {"axes": {}, "keep": {name: {"observable": name} for name in observables}},
    ]


def known_names():
    """Every name that some spec may hold: fields, parameters, and what they may be called."""
    fields = {*RunSpec.model_fields, *SweepSpec.model_fields, *Times.model_fields}
    fields |= {"cases", "observable", "quantiles", "family", "every", "system.beta", "start.n"}
    for table in TABLES:
        fields |= set(table)
        for make in table.values():
            fields |= set(inspect.signature(make).parameters)
    return sorted(fields)


names = st.sampled_from(known_names()) | words
tables = st.dictionaries(names, anything | names, max_size=3)
families = st.builds(
    lambda family, rest: {"family": family, **rest},
    st.sampled_from([name for table in TABLES[3:7] for name in table]),
    tables,
)
values = anything | names | families | tables | moments
"""What may stand in a spec, right or wrong."""


@st.composite
def composed(draw):
    """A spec of any system, start and method, each with parameters that it knows."""
    spec = _run(start=draw(_starts), system=draw(_called(SYSTEMS)))
    if draw(st.booleans()):
        spec["method"] = draw(_called(METHODS))
    return spec


@st.composite
def _called(draw, table, **given):
    """A table with a name, and values for some of the parameters of what it names."""
    name = draw(st.sampled_from(sorted(table)))
    parameters = inspect.signature(table[name]).parameters
    needed = [k for k, p in parameters.items() if p.default is p.empty]
    others = [k for k, p in parameters.items() if p.default is not p.empty and k not in _SUPPLIED]
    chosen = needed + draw(st.lists(st.sampled_from(others), max_size=2) if others else st.just([]))
    drawn = {k: draw(_matrices if k in _WEIGHTS else _plausible) for k in chosen if k not in given}
    return {"name": name} | drawn | {k: v for k, v in given.items() if k in parameters}


_SUPPLIED = ("key", "dtype", "batch")
_WEIGHTS = {field for system in SYSTEMS.values() for field in system.drawn} - {"h"} | {"D", "data"}
_row = st.lists(st.sampled_from([0.0, 1.0, -0.5, 2.0]), min_size=3, max_size=3)
_matrices = st.one_of(_row, st.lists(_row, min_size=3, max_size=3), families, real, anything)
_plausible = st.one_of(
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from(["causal", "log", "gaussian", "tanh", "rastrigin", "rms", "euler", "first"]),
    st.sampled_from(["dense", "blocked", "spectral"]),
    _matrices,
    st.builds(lambda name: {"name": name, "beta": 1.0}, st.sampled_from(sorted(SYSTEMS))),
    whole,
    anything,
)
"""Most of them right somewhere."""

_starts = st.one_of(
    st.sampled_from([{"name": name, "n": 3, "d": 3} for name in ("sphere", "cube")]),
    st.just({"name": "angles", "n": 3}),
    _called(STARTS, n=3, d=3),
    _called(STARTS),
)
