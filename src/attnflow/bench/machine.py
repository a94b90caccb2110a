"""The machine on which something was measured."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attnflow.checks import available_cores

PACKAGES = ("attnflow", "jax", "numpy", "torch", "pykeops")


@dataclass(frozen=True)
class Machine:
    """What a reader must know to judge a measurement.

    Attributes:
        processor: name of the processor.
        cores: number of cores available.
        memory_gib: memory in GiB; None if it is not known.
        system: the operating system.
        python: the version of Python.
        versions: the versions of the installed packages that were compared.
    """

    processor: str
    cores: int
    memory_gib: float | None
    system: str
    python: str
    versions: dict[str, str]

    def __str__(self) -> str:
        """One sentence."""
        memory = "" if self.memory_gib is None else f", {self.memory_gib:.0f} GiB"
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return (
            f"{self.processor}, {self.cores} cores{memory}, {self.system}, "
            f"Python {self.python}, {packages}"
        )


def this_machine() -> Machine:
    """The machine this runs on."""
    return Machine(
        processor=_processor(),
        cores=available_cores(),
        memory_gib=_memory(),
        system=platform.system(),
        python=platform.python_version(),
        versions={name: found for name in PACKAGES if (found := _version(name))},
    )


class OtherPrograms:
    """Measures how much of the machine other programs use from now on."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.before = _foreign_seconds()

    def cores(self) -> float | None:
        """How many cores they have used on average; None if the system does not tell."""
        after = _foreign_seconds()
        if after is None or self.before is None:
            return None
        return max(0.0, after - self.before) / (time.monotonic() - self.start)


def wait_for_quiet(cores: float, *, look: float = 2.0, limit: float = 300.0) -> None:
    """Wait until other programs use less of the machine.

    Args:
        cores: the number of cores that they may use.
        look: seconds over which their use is measured.
        limit: stop waiting after this many seconds.
    """
    end = time.monotonic() + limit
    while time.monotonic() < end:
        others = OtherPrograms()
        time.sleep(look)
        if (others.cores() or 0.0) < cores:
            return


def _foreign_seconds() -> float | None:
    """The processor time of everything but this process and its children.

    It includes what the host of a virtual machine gave to other machines.
    """
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, *_, stolen = ticks
    everybody = (user + nice + system + stolen) / os.sysconf("SC_CLK_TCK")
    return everybody - sum(os.times()[:4])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, OSError, ValueError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
