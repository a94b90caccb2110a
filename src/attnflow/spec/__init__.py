"""TOML ↔ runs: what a spec may say, and the system, start, times and method that it names."""

from attnflow.spec.model import RunSpec
from attnflow.spec.read import default_spec, read_spec
from attnflow.spec.write import write_spec

__all__ = ["RunSpec", "default_spec", "read_spec", "write_spec"]
