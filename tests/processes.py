"""Commands as processes of their own, which tests stop, kill and look at."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

ATTNFLOW = ("-m", "attnflow")


def often(few, many):
    """The counts of a repeated attack: a few in `slow`, many in `overnight`."""
    marks = ((few, pytest.mark.slow), (many, pytest.mark.overnight))
    return [pytest.param(count, marks=mark) for count, mark in marks]


def start(folder, *arguments, program=ATTNFLOW):
    """A command that runs in a folder, in a process group of its own, with a cache beside it."""
    environment = os.environ | {"COLUMNS": "500", "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, seconds=300):
    """The exit code, and what was said with all white space as single blanks."""
    said, _ = process.communicate(timeout=seconds)
    return process.returncode, re.sub(r"\s+", " ", said)


def kill(process):
    """SIGKILL, and wait until nothing of its group is left; what it had said."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not alive(process.pid))
    return process.stdout.read()


def wait_until(condition, process=None, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        assert process is None or process.poll() is None, f"it ended: {finish(process)}"
        time.sleep(0.02)


def alive(group):
    """Whether a process of the group still lives."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
