"""`python -m attnflow` is the command `attnflow`."""

from attnflow.cli import run_command

if __name__ == "__main__":
    run_command()
