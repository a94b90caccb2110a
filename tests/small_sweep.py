"""A small sweep for tests, and the bytes of a store."""

from pathlib import Path

from attnflow.spec import parse_sweep

TOML = """
key = {key}
realisations = 512
[system]
name = "SA"
[start]
name = "sphere"
n = 8
d = 2
[times]
stop = 6.0
count = 13
[method]
name = "Fixed"
dt = {dt}
[axes]
beta = {{ start = 0.5, stop = 6.0, count = {count} }}
[keep]
together = {{ observable = "pairs_clustered", delta = 0.01 }}
E = {{ observable = "energy", quantiles = [0.1, 0.9] }}
"""


def toml(key=0, count=12, dt=0.1):
    """The text of a spec with `count` blocks."""
    return TOML.format(key=key, count=count, dt=dt)


def spec(**changes):
    """A grid of four cells with two realisations each, which compiles and runs fast."""
    data = {
        "system": {"name": "SA"},
        "start": {"name": "sphere", "n": 4, "d": 2},
        "times": {"stop": 2.0, "count": 3},
        "method": {"name": "Fixed", "dt": 0.5},
        "realisations": 2,
        "axes": {"beta": [0.5, 1.0, 2.0, 4.0]},
        "keep": {"E": {"observable": "energy"}},
    }
    return parse_sweep(data | changes)


def contents(store):
    """Every file of a store that is not about the moment: name to bytes."""
    root = Path(store)
    files = (f for f in root.rglob("*") if f.is_file() and f.name != "lock")
    return {str(f.relative_to(root)): f.read_bytes() for f in files}


def records(store):
    """When each block was written: name to (inode, time)."""
    files = (Path(store) / "blocks").glob("[0-9]*.json")
    return {f.name: (f.stat().st_ino, f.stat().st_mtime_ns) for f in files}
