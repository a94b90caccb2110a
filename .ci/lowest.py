"""Print the oldest version that pyproject.toml promises of every dependency, for `pip -c`.

python .ci/lowest.py > lowest.txt && python -m pip install -c lowest.txt ".[all,dev]"
"""

import re
import tomllib
from pathlib import Path

LOWEST = re.compile(r"(?P<name>[\w.-]+)(\[[\w,]+\])?>=(?P<version>[\w.]+)")


def lowest(project: dict) -> list[str]:
    """A pin for each dependency, of the package and of its extras."""
    named = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        named += [one for one in extra if not one.startswith(project["name"])]
    pins = []
    for one in named:
        found = LOWEST.match(one)
        if found is None:
            raise SystemExit(f"pyproject.toml: {one} has no oldest version (>=).")
        pins.append(f"{found['name']}=={found['version']}")
    return pins


if __name__ == "__main__":
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    print("\n".join(lowest(tomllib.loads(text)["project"])))
