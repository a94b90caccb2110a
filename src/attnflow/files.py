"""Files that are there whole or not at all, and locks that the system takes back from the dead."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from attnflow.errors import InputError, WriteError

try:
    import fcntl
except ImportError:  # on Windows, where a second writer is not noticed
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".unfinished-"
MAX_WAIT_SECONDS = 60.0
"""So many seconds one waits for another process that writes the same file."""

LOCK_TRY_SECONDS = 0.5
"""So many seconds one tries for a lock, as whoever looks may hold it for a moment."""

RENAME_EXCHANGE = 2  # a flag of renameat2


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A place to write a file or a folder; what is there when the block ends becomes `path`.

    Until then, and if the block fails or the process dies, what was at `path` before stays there.
    The place is inside `.unfinished-<name>`, which the next writer of the same path clears away;
    two at once take turns. A full disk is told as a `WriteError`. A link is followed, and what is
    no file (`/dev/stdout`, a pipe) is written to directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "a.txt")) as place:
    ...         _ = place.write_text("all of it")
    ...     Path(folder, "a.txt").read_text()
    'all of it'
    """
    target = path.resolve() if path.is_symlink() else path
    with _told(path):
        if _is_stream(path):
            yield path
            return
        with _scratch(target) as scratch:
            yield scratch / path.name
            _publish(scratch / path.name, target, scratch / "before")


def require_writable(path: Path) -> None:
    """Refuse, before any work, a path at which `atomic_write` could write nothing."""
    target = path.resolve() if path.is_symlink() else path
    with _told(path):
        if not _is_stream(path):
            with _scratch(target):
                pass


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """A refusal of the system as a sentence that names the path."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise WriteError(f"{why}.", where=f"{path} could not be written") from error


def atomic_write_text(path: Path, text: str) -> None:
    """Write a text so that whoever reads the file sees all of it, or what was there before."""
    with atomic_write(path) as place:
        place.write_text(text, encoding="utf-8")


def restore(path: Path) -> None:
    """Put back a folder that a writer had moved aside when it died."""
    before = _scratch_of(path) / "before"
    if before.exists() and not path.exists():
        with suppress(OSError):
            before.rename(path)


def clear_unfinished(folder: Path) -> None:
    """Remove what writers that died have left in a folder; nobody else may be writing there."""
    for left in folder.glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def file_lock(path: Path, refusal: str) -> Iterator[None]:
    """Hold the lock file `path`; who comes second is refused, and told who has it.

    The lock ends with the process, however it ends: a file that is left behind locks nobody out.
    """
    try:
        file = path.open("a+b", buffering=0)
    except OSError as error:
        raise WriteError(f"{error.strerror}.", where=f"{path} could not be written") from error
    with file:
        if not locked(file.fileno(), exclusive=True, seconds=LOCK_TRY_SECONDS):
            file.seek(0)
            holder = file.read().decode(errors="replace").strip()
            raise InputError(f"{refusal} ({holder or 'it gave no name'}).")
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        with suppress(OSError):  # who holds it is for people: a full disk may leave it out
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}, since {since}\n".encode())
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds a lock file; looking needs no right to write."""
    try:
        with path.open() as file:
            return not locked(file.fileno(), exclusive=False)
    except (FileNotFoundError, IsADirectoryError):
        return False


def locked(descriptor: int, *, exclusive: bool, seconds: float = 0.0) -> bool:
    """Try to lock an open file until it is closed; where there are no locks, all succeed."""
    if fcntl is None:
        return True
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                return True  # a file system without locks
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)


def _is_stream(path: Path) -> bool:
    known = path.exists() and not (path.is_file() or path.is_dir())
    return known or path.absolute().parent == Path("/dev")


def _scratch_of(path: Path) -> Path:
    path = path.absolute()
    return path.with_name(f"{UNFINISHED}{path.name}")


@contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """An empty folder beside a path, of this process alone."""
    scratch = _scratch_of(path)
    descriptor = _own(scratch, path)
    try:
        restore(path)
        for left in scratch.iterdir():
            _remove(left)
        yield scratch
    finally:
        restore(path)
        shutil.rmtree(scratch, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _own(scratch: Path, path: Path) -> int | None:
    """Make a folder and lock it; another process may remove it as long as it is not locked."""
    end = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        with suppress(FileExistsError):  # exist_ok would raise it where the folder is just removed
            scratch.mkdir()
        if fcntl is None:
            return None
        with suppress(FileNotFoundError):
            descriptor = os.open(scratch, os.O_RDONLY)
            with suppress(FileNotFoundError):
                mine = locked(descriptor, exclusive=True, seconds=LOCK_TRY_SECONDS)
                if mine and os.path.samestat(os.fstat(descriptor), scratch.stat()):
                    return descriptor
            os.close(descriptor)
        if time.monotonic() >= end:
            why = f"another process has been writing it for {MAX_WAIT_SECONDS:g} s."
            raise WriteError(why, where=str(path))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _publish(place: Path, path: Path, before: Path) -> None:
    """Give a file or a folder its name; a folder that has it already is moved aside."""
    if not place.exists():
        return
    if not (place.is_dir() and path.is_dir()):
        place.replace(path)
    elif not _exchanged(place, path):
        path.rename(before)
        place.rename(path)


def _exchanged(a: Path, b: Path) -> bool:
    """Exchange two folders in one step, where the system can."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    here = -100  # AT_FDCWD
    return rename is not None and rename(here, bytes(a), here, bytes(b), RENAME_EXCHANGE) == 0
