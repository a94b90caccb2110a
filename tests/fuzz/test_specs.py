"""Specs with anything in them: each is refused with a sentence, or it can be run."""

import pytest
from hypothesis import strategies as st

from attnflow.simulation import inputs, simulate
from attnflow.spec import parse_sweep, read_spec, read_sweep
from attnflow.spec.read import parse_spec
from attnflow.sweep.check import check
from fuzz import documents
from fuzz.mutations import anything, mutated, mutated_bytes
from fuzz.verdict import refused
from tries import tries

RUNS, SWEEPS = documents.runs(), documents.sweeps()
FILES = [path.read_bytes() for path in sorted(documents.EXAMPLES.rglob("*.toml"))]


def checked(data):
    """All that happens before a run starts."""
    run = parse_spec(data).build()
    inputs.check_run(run.system, run.x0, run.ts, run.method)
    return run


def run_it(data):
    run = checked(data)
    simulate(run.system, run.x0, run.ts, method=run.method, key=run.key)


@pytest.mark.parametrize("data", RUNS, ids=lambda data: data["system"]["name"])
def test_what_the_attacks_begin_from_is_right(data):
    assert refused(checked, data) is None


def test_what_the_attacks_on_sweeps_begin_from_is_right():
    for data in SWEEPS:
        assert refused(lambda data: check(parse_sweep(data)), data) is None


@tries(200, 10_000, data=mutated(RUNS, documents.values, documents.names))
def test_a_changed_spec(data):
    refused(checked, data)


@tries(200, 10_000, data=documents.composed())
def test_a_spec_of_many_parts(data):
    refused(checked, data)


@pytest.mark.slow
@tries(20, 1000, data=documents.composed())
def test_what_passes_the_checks_runs(data):
    refused(run_it, data)


@tries(200, 10_000, data=mutated(SWEEPS, documents.values, documents.names))
def test_a_changed_sweep(data):
    refused(lambda data: check(parse_sweep(data)), data)


@tries(200, 10_000, data=anything)
def test_no_spec_at_all(data):
    assert refused(parse_spec, data)
    assert refused(parse_sweep, data)


@tries(200, 10_000, data=mutated_bytes(FILES) | st.binary(max_size=64))
def test_a_file_of_broken_bytes(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "spec.toml"
    path.write_bytes(data)
    for read in (read_spec, read_sweep):
        said = refused(read, path)
        assert said is None or str(path) in said
