"""TOML ↔ runs: specs, and the systems, starts, times and methods that they describe."""

from attnflow.spec.model import RunSpec
from attnflow.spec.read import default_spec, parse_spec, parse_sweep, read_spec, read_sweep
from attnflow.spec.sweep import SweepSpec
from attnflow.spec.write import given, toml_of, write_spec

__all__ = [
    "RunSpec",
    "SweepSpec",
    "default_spec",
    "given",
    "parse_spec",
    "parse_sweep",
    "read_spec",
    "read_sweep",
    "toml_of",
    "write_spec",
]
