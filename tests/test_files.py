"""Files and folders that are there whole or not at all, also where something is in the way."""

import errno
import os
from pathlib import Path

import pytest

from attnflow import files
from attnflow.errors import WriteError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def old(tmp_path):
    """A folder that was written before."""
    with files.atomic_write(tmp_path / "store") as place:
        place.mkdir()
        (place / "old").touch()
    return tmp_path / "store"


def write(path):
    with files.atomic_write(path) as place:
        place.mkdir()
        (place / "new").touch()


@pytest.fixture
def no_exchange(monkeypatch):
    """A system that cannot exchange two folders in one step."""
    monkeypatch.setattr(files, "_exchanged", lambda a, b: False)


@pytest.mark.usefixtures("no_exchange")
def test_a_folder_is_replaced_in_two_steps_where_one_is_not_to_be_had(old):
    write(old)
    assert names(old) == ["new"]
    assert names(old.parent) == ["store"]


@pytest.mark.usefixtures("no_exchange")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EACCES, "no")])
def test_between_the_two_steps_nothing_is_lost(old, error, monkeypatch):
    rename = Path.rename

    def fail(self, target):
        if self.name == "store" and self.parent.name.startswith(files.UNFINISHED):
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises((KeyboardInterrupt, WriteError)):
        write(old)
    assert names(old) == ["old"]
    assert names(old.parent) == ["store"]


def test_what_could_not_be_written_is_refused_and_nothing_is_left(tmp_path):
    with pytest.raises(WriteError, match="could not be written: File name too long"):
        files.require_writable(tmp_path / ("x" * 250))
    with pytest.raises(WriteError, match="could not be written: "):
        files.require_writable(tmp_path / "nowhere" / "a.txt")
    assert names(tmp_path) == []


def test_asking_whether_one_could_write_changes_nothing(old):
    before = os.stat(old)
    files.require_writable(old)
    files.require_writable(Path("/dev/stdout"))
    assert os.stat(old) == before
    assert names(old.parent) == ["store"]
