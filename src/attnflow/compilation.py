"""What JAX has compiled, kept on disk, so that the next process begins at once.

`import attnflow` names the folder, unless the user has given JAX one already. The environment
variable `ATTNFLOW_CACHE` is another folder, or `off`.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import jax

SETTING = "ATTNFLOW_CACHE"
"""The environment variable."""

DAMAGE = "Error (reading|writing) persistent compilation cache entry"
"""How JAX begins to warn of an entry that is damaged or cannot be written."""

OFF = ("off", "0", "no", "false")

MAX_BYTES = 2**29
"""A folder that has grown larger loses its oldest files until it is half as large."""

DAY = 86_400.0
"""Seconds between two looks at its size: it may have ten thousands of files."""


def cache_folder() -> Path | None:
    """The folder for this kind of processor, None where the cache is switched off.

    A home folder may serve several kinds of machine, and compiled code runs on one only.
    """
    chosen = os.environ.get(SETTING, "")
    if chosen.lower() in OFF:
        return None
    try:
        place = Path(chosen).expanduser().absolute() if chosen else _user_caches()
    except (OSError, RuntimeError):  # a user without a home, or no folder to be in
        return None
    base = place if chosen else place / "attnflow" / "compiled"
    return base / hashlib.sha256(_processor().encode()).hexdigest()[:12]


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles, where nobody has told it where to and the folder is ours."""
    folder = cache_folder()
    if folder is None or jax.config.values["jax_compilation_cache_dir"]:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return
        _bound(folder)
    except OSError:
        return
    # A program that another process is just writing, or that was cut off, is compiled again.
    warnings.filterwarnings("ignore", message=DAMAGE)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _user_caches() -> Path:
    """Where programs of this user keep what can be made again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32" and "LOCALAPPDATA" in os.environ:
        return Path(os.environ["LOCALAPPDATA"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _processor() -> str:
    """The architecture and what the processor can do, as far as the system tells."""
    with suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith(("flags", "Features")):
                return f"{platform.machine()} {line}"
    return f"{platform.machine()} {platform.processor()}"


def _bound(folder: Path) -> None:
    """Once a day, remove the oldest files of a folder that has grown too large."""
    looked = folder / "looked"
    if looked.exists() and time.time() - looked.stat().st_mtime < DAY:
        return
    looked.touch()
    with os.scandir(folder) as entries:
        files = [(entry.stat(), entry.path) for entry in entries if entry.is_file()]
    size = sum(stat.st_size for stat, _ in files)
    if size <= MAX_BYTES:
        return
    for stat, path in sorted(files, key=lambda file: file[0].st_mtime):
        with suppress(OSError):  # another process may have removed it
            os.remove(path)
        size -= stat.st_size
        if size <= MAX_BYTES // 2:
            return
