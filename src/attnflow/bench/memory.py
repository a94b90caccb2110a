"""The peak memory of one computation, measured in its own process.

`python -m attnflow.bench.memory NAME PROBLEM` prints how many bytes the contender NAME needed for
the problem (given as JSON), beyond what the process used before.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from attnflow.bench.contenders import OURS, Call, Contender, DriftProblem
from attnflow.bench.peers import PEERS

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def megabytes(contender: Contender, problem: DriftProblem) -> float | None:
    """The peak memory of a contender in a fresh process, beyond its tokens; None if it failed."""
    if not STATUS.exists():
        return None
    task = [contender.name, json.dumps(asdict(problem))]
    command = [sys.executable, "-m", "attnflow.bench.memory", *task]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stdout.split()[-1]) / 1e6 if done.returncode == 0 else None


def peak_bytes(call: Call) -> int:
    """The peak resident memory during a call, minus that before it, in bytes."""
    gc.collect()
    before = _resident("VmRSS")
    CLEAR.write_text("5")  # forget earlier peaks, such as that of compiling
    call()
    return _resident("VmHWM") - before


def _resident(field: str) -> int:
    [line] = [line for line in STATUS.read_text().splitlines() if line.startswith(field)]
    return int(line.split()[1]) * 1024


def main(name: str, problem: str) -> None:
    """Measure one contender in this process."""
    [contender] = [c for c in (*OURS, *PEERS) if c.name == name]
    task = DriftProblem(**json.loads(problem))
    print(peak_bytes(contender.prepare(task, task.tokens())))


if __name__ == "__main__":
    main(*sys.argv[1:])
