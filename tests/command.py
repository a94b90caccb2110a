"""The command line as a function: `call("run", "spec.toml")`."""

import re

from threadpoolctl import threadpool_info
from typer.testing import CliRunner

from attnflow.cli import app


def invoke(*args):
    """What came of a command: its exit code, output and exception."""
    return CliRunner().invoke(app, [str(a) for a in args])


def call(*args):
    """The exit code, and what was said with all white space as single blanks."""
    result = invoke(*args)
    return result.exit_code, re.sub(r"\s+", " ", result.output)


def threads_of_blas():
    """The threads of each BLAS that is loaded; other libraries may have what they like."""
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
