"""Every system of the table, built from its example, so that none is left out."""

import tomllib
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp

from attnflow.spec.read import parse_spec


def _examples():
    """For each system the first example in the order of names."""
    found = {}
    for path in sorted(Path(__file__).parents[1].glob("examples/*.toml")):
        spec = tomllib.loads(path.read_text())
        found.setdefault(spec["system"]["name"], spec)
    return found


EXAMPLES = _examples()


@cache
def built(name):
    """The system with a key where it draws, and its start."""
    run = parse_spec(EXAMPLES[name]).build()
    system = run.system.with_key(jax.random.key(0)) if run.system.random else run.system
    return system, jnp.asarray(run.x0)
