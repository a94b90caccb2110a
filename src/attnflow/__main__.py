"""`python -m attnflow` is the command `attnflow`."""

from attnflow.cli import app

app()
