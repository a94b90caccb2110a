"""What all commands share: the terminal, errors in one sentence, output files, the cache."""

from __future__ import annotations

import _thread
import errno
import re
import shutil
import signal
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

console = Console(highlight=False)
error_console = Console(highlight=False, stderr=True)
"""For errors and warnings."""

STOP_CODES = (130, 143)
"""Exit codes of a command that was stopped by Ctrl-C and by SIGTERM."""

_received: list[int] = []


def check_output(path: Path | None, suffixes: set[str] | None = None) -> None:
    """Raise, before any work, if a file could not be written or has the wrong ending."""
    from attnflow.errors import InputError

    if path is None:
        return
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: the file name must end in {' or '.join(sorted(suffixes))}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file.")
    check_place(path)


def check_place(path: Path | None) -> None:
    """Raise if a file or folder could not be created."""
    from attnflow.errors import InputError
    from attnflow.files import require_writable

    if path is None:
        return
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.absolute().parent}.")
    require_writable(path)


def renamed_option(new: str) -> Any:
    """An option by its old name, of which nobody is told until it is used."""

    def refuse(value: str | None) -> None:
        if value is not None:
            raise typer.BadParameter(f"it is called {new} now.")

    return typer.Option(hidden=True, callback=refuse)


def bold(path: Any) -> str:
    """A path in bold, with its brackets escaped."""
    return f"[bold]{escape(str(path))}[/]"


class Guard:
    """Ends a command with one sentence after a wrong input, an error of the system, or a stop.

    The exit code is 2 for errors, 130 for Ctrl-C and 143 for SIGTERM, which clusters send to jobs
    that run for too long.
    """

    def __enter__(self) -> None:
        _received.clear()
        self.before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self.before[number] = signal.signal(number, _stop)
        self.hook, sys.unraisablehook = sys.unraisablehook, self._ignored

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from attnflow.errors import InputError

        for number, handler in self.before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self.hook
        if isinstance(error, KeyboardInterrupt):
            _print_error("[bold red]stopped[/]; what was finished is kept.")
            raise typer.Exit(stop_code()) from None
        if isinstance(error, OSError) and error.strerror and error.errno != errno.EPIPE:
            named = "" if error.filename is None else f"{error.filename}: "
            error = InputError(f"{named}{error.strerror}.")
        if isinstance(error, InputError):
            _print_error(f"[bold red]error:[/] {escape(str(error))}")
            raise typer.Exit(2) from None

    def _ignored(self, unraisable: Any) -> None:
        """Stop a moment later: Python ignores exceptions in finalisers and callbacks."""
        if unraisable.exc_type is KeyboardInterrupt and _received:
            threading.Timer(0.05, _resend, _received[-1:]).start()
        else:
            self.hook(unraisable)


def _print_error(words: str) -> None:
    with suppress(OSError):  # the terminal may be gone
        error_console.print(words, soft_wrap=True)


def _resend(number: Any) -> None:
    """Send a signal to the main thread, and wake it if the system can."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(number)


def _stop(number: int, frame: Any) -> None:
    _received.append(number)
    raise KeyboardInterrupt


def stop_code() -> int:
    """The exit code of a command that was stopped: 143 after SIGTERM, 130 after Ctrl-C."""
    return STOP_CODES[signal.SIGTERM in _received]


def mend_cache() -> None:
    """Empty the cache of compiled programs when JAX warns about it.

    A killed process or a full disk can leave a truncated entry. JAX never replaces an entry, so it
    would warn and compile again every time.
    """
    import jax

    from attnflow.compilation import DAMAGE, cache_folder

    folder = cache_folder()
    if folder is None or jax.config.values["jax_compilation_cache_dir"] != str(folder):
        return
    warnings.filterwarnings("always", message=DAMAGE)
    show = warnings.showwarning

    def look(message: Any, *about: Any, **more: Any) -> None:
        if not re.match(DAMAGE, str(message)):
            show(message, *about, **more)
            return
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)

    warnings.showwarning = look
