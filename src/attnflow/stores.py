"""Zarr stores: written as xarray opens them best, opened only where nothing in them can run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnflow.checks import require_memory
from attnflow.errors import InputError, first_line
from attnflow.records import read_json

if TYPE_CHECKING:
    import xarray
    from zarr.codecs import ZstdCodec

CODECS = {"bytes", "vlen-utf8", "transpose", "zstd", "blosc", "gzip", "crc32c"}
"""What may unpack an array. Zarr knows others, and one that its format 2 takes is pickle."""


def write_dataset(data: xarray.Dataset, path: Path) -> None:
    """Write a store that `xarray.open_zarr` reads without a warning."""
    how = {name: {"compressors": compressor()} for name in data.variables}
    data.to_zarr(path, mode="w", consolidated=False, zarr_format=3, encoding=how)
    consolidate(path)


def compressor() -> ZstdCodec:
    """What packs an array: with a sum, so that bytes that have changed are noticed."""
    from zarr.codecs import ZstdCodec

    return ZstdCodec(checksum=True)


def consolidate(path: Path) -> None:
    """Say in one place what all arrays of a store are: xarray warns where it is not said."""
    import zarr

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Consolidated metadata", category=UserWarning)
        zarr.consolidate_metadata(path)


def open_dataset(path: Path, whole: bool) -> xarray.Dataset:
    """The dataset of a plain Zarr store, read at once (`whole`) or when it is looked at."""
    import xarray
    import zarr

    require_plain(path)
    plainly: dict[str, Any] = {"use_consolidated": False}  # what is looked at is what is read
    with readable(path):
        arrays = [array for _, array in zarr.open_group(path, mode="r", **plainly).arrays()]
        size = sum(array.nbytes for array in arrays if whole or array.ndim == 1)
        require_memory(2 * size, f"{path}, as it describes itself,", "it may be damaged")
        data = xarray.open_zarr(path, consolidated=False)
        return data.load() if whole else data


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """While a store is read: what cannot be unpacked is told in a sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # zarr and its codecs raise nothing narrower
        raise damaged(path, error) from None


def damaged(path: Path | str, error: Exception) -> InputError:
    """The error for a store that cannot be read, with the first line of why."""
    return InputError(first_line(error), where=f"{path} is damaged and cannot be read")


def require_plain(path: Path) -> None:
    """Refuse a store that is not of Zarr's format 3, or has an array that other codecs unpack.

    Looked at are the store, its arrays, and what it says of them in one place.
    """
    try:
        files = [path / "zarr.json", *sorted(path.glob("*/zarr.json"))]
        plain = all(_plain(read_json(file)) for file in files)
    except InputError as error:
        raise error.at(f"{path} is no whole Zarr store") from None
    if not plain:
        raise InputError(f"{path} is not opened: it is no Zarr store of numbers and words alone.")


def _plain(node: Any) -> bool:
    """Whether all metadata in a table, at any depth, are of format 3 with known codecs."""
    if isinstance(node, list):
        return all(_plain(one) for one in node)
    if not isinstance(node, dict):
        return True
    if node.get("zarr_format", 3) != 3 or {"filters", "compressor"} & set(node):
        return False
    if "node_type" in node and node["node_type"] == "array" and not _known(node.get("codecs")):
        return False
    return all(_plain(one) for key, one in node.items() if key != "attributes")


def _known(codecs: Any) -> bool:
    return isinstance(codecs, list) and all(
        isinstance(codec, dict) and str(codec.get("name")) in CODECS for codec in codecs
    )
