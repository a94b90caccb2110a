"""The command line as a function: `call("run", "spec.toml")`."""

import re

from typer.testing import CliRunner

from attnflow.cli import app


def call(*args):
    """The exit code, and what was said with all white space as single blanks."""
    result = CliRunner().invoke(app, [str(a) for a in args])
    return result.exit_code, re.sub(r"\s+", " ", result.output)
