"""What all commands share: the terminal, errors in one sentence, output files, the cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

console = Console(highlight=False)


def check_output(path: Path | None, suffixes: set[str] | None = None) -> None:
    """Refuse an output file, before any work, that could not be written or has a wrong ending."""
    from attnflow.errors import InputError

    if path is None:
        return
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: the file's name must end in {' or '.join(sorted(suffixes))}.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.absolute().parent}.")


class Guard:
    """Turns errors of input into one sentence and exit code 2."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from attnflow.errors import InputError

        if isinstance(error, InputError):
            console.print("[bold red]error:[/]", end=" ")
            console.print(str(error), markup=False, soft_wrap=True)
            raise typer.Exit(2) from None


def keep_compiled_code() -> None:
    """Keep what JAX compiles on disk, so that the second run of a command starts at once."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(Path(base) / "attnflow" / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
