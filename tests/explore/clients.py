"""The page without a browser: what a visitor does, as the requests that Dash's renderer makes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SECONDS = 120
"""How long an answer is waited for."""


class Refused(Exception):
    """An answer of the server that is none: its status, and what it says."""


def fetch(url, data=None):
    """The status, headers and text of an answer."""
    headers = {} if data is None else {"Content-Type": "application/json"}
    body = None if data is None else json.dumps(data).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), None, SECONDS) as a:
            return a.status, a.headers, a.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def ids_of(output):
    """The ids and properties in the name that Dash gives the outputs of a callback."""
    several = output.startswith("..")
    names = output.strip(".").split("...") if several else [output]
    ids = [dict(zip(("id", "property"), name.split(".", 1), strict=True)) for name in names]
    return ids if several else ids[0]


class Page:
    """One visitor's page: its properties by "id.property", and what is done when one changes."""

    def __init__(self, address, path="/", search=""):
        self.address = address.rstrip("/")
        self.values = {}
        self.said = []
        self._keep(self._get("/_dash-layout"))
        rows = self._get("/_dash-dependencies")
        self.callbacks = [row for row in rows if row["clientside_function"] is None]
        self.parts = [
            row["inputs"][0]["id"].removesuffix("-status")
            for row in rows
            if (row["clientside_function"] or {}).get("function_name") == "jobStatus"
        ]
        self.change({"url.pathname": path, "url.search": search})

    @property
    def visitor(self):
        return self.values["visitor.data"]

    def fill(self, part, **fields):
        """Put values into the fields of a form, one after the other."""
        for name, value in fields.items():
            self.change({f"{part}-{name}.value": value})

    def press(self, button):
        """Click a button, and return what the page then says."""
        self.change({f"{button}.n_clicks": (self.values.get(f"{button}.n_clicks") or 0) + 1})
        return self.values.get(f"{button.split('-')[0]}-message.children")

    def tick(self, part="flow"):
        """Let the clock of a part strike, if it goes; whether it still goes then."""
        if not self.values.get(f"{part}-timer.disabled"):
            count = (self.values.get(f"{part}-timer.n_intervals") or 0) + 1
            self.change({f"{part}-timer.n_intervals": count})
        return not self.values.get(f"{part}-timer.disabled")

    def wait(self, part="flow", seconds=120.0, pause=0.15):
        """Watch until the work is over, and return what the page says then."""
        until = time.monotonic() + seconds
        while self.tick(part):
            if time.monotonic() > until:
                raise TimeoutError(f"{part} still runs after {seconds} s: {self.message(part)}")
            time.sleep(pause)
        return self.message(part)

    def message(self, part="flow"):
        return self.values.get(f"{part}-message.children")

    @property
    def frames(self):
        """What the flow view was sent for its slider."""
        [found] = [v for k, v in self.values.items() if k in ("frames.data", "flow-frames.data")]
        return found

    def change(self, changes):
        """Change properties, and call what depends on them, and what depends on that."""
        self.values |= changes
        for row in self.callbacks:
            inputs = [f"{one['id']}.{one['property']}" for one in row["inputs"]]
            changed = [name for name in inputs if name in changes]
            if changed and all(self._there(one) for one in (*row["inputs"], *row["state"])):
                self.change(self._call(row, changed))
        for part in self.parts:
            if {f"{part}-status.data", f"{part}-job.data"} & set(changes):
                self.change(self._heard(part))

    def _heard(self, part):
        """What `jobStatus` of explore.js does."""
        job, status = (self.values.get(f"{part}-{name}.data") for name in ("job", "status"))
        if not job or not status or status["job"] != job:
            return {f"{part}-timer.disabled": not job}
        heard = {
            f"{part}-message.children": status["message"],
            f"{part}-progress.value": status["progress"],
            f"{part}-progress.className": "hidden" if status["over"] else "",
            f"{part}-timer.disabled": status["over"],
        }
        return heard | ({f"{part}-finished.data": status["finished"]} if status["finished"] else {})

    def _there(self, one):
        return any(name.startswith(f"{one['id']}.") for name in self.values)

    def _call(self, row, changed):
        """What a callback gives: new values by their names."""

        def valued(ones):
            found = []
            for one in ones:
                entry = {"id": one["id"], "property": one["property"]}
                value = self.values.get(f"{one['id']}.{one['property']}")
                found.append(entry if value is None else entry | {"value": value})
            return found

        answer = self.post(
            {
                "output": row["output"],
                "outputs": ids_of(row["output"]),
                "inputs": valued(row["inputs"]),
                "state": valued(row["state"]),
                "changedPropIds": changed,
                "parsedChangedPropsIds": changed,
            }
        )
        given = {}
        said = [*answer.get("response", {}).items(), *answer.get("sideUpdate", {}).items()]
        for id_, properties in said:
            for name, value in properties.items():
                given[f"{id_}.{name.split('@')[0]}"] = value
                self._keep(value)
        return given

    def post(self, data):
        """What the server answers to a call, which may be nothing."""
        status, _, text = fetch(f"{self.address}/_dash-update-component", data)
        self.said.append(text if status != 200 else text[:2000])
        if status not in (200, 204):
            raise Refused(f"{status}: {text[:300]}")
        return json.loads(text) if text else {}

    def _get(self, path):
        status, _, text = fetch(self.address + path)
        if status != 200:
            raise Refused(f"{status}: {text[:300]}")
        return json.loads(text)

    def _keep(self, tree):
        """The properties of all components in a layout."""
        if isinstance(tree, list):
            for one in tree:
                self._keep(one)
        elif isinstance(tree, dict) and "namespace" in tree:
            props = tree["props"]
            if "id" in props:
                self.values |= {f"{props['id']}.{name}": value for name, value in props.items()}
            self._keep(props.get("children"))


class Server:
    """`attnflow explore` as a process of its own."""

    def __init__(self, folder, *args, seconds=120.0):
        source = Path(__file__).parents[2] / "src"
        environment = os.environ | {"PYTHONPATH": str(source), "PYTHONUNBUFFERED": "1"}
        self.log = Path(folder) / "server.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "attnflow", "explore", str(folder), *map(str, args)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
            )
        until = time.monotonic() + seconds
        while not (found := re.search(r"http://\S+/", self.said())):
            if self.process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"the server did not start: {self.said()}")
            time.sleep(0.1)
        self.address = found[0]

    def said(self):
        return self.log.read_text()

    def status(self, name):
        """A line of /proc/…/status, as a number: VmRSS in kB, Threads …"""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1])

    @property
    def resident(self):
        """Megabytes of memory."""
        return self.status("VmRSS") / 1024

    @property
    def cpu(self):
        """Seconds of all cores that were used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def interrupt(self, seconds=60.0):
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(seconds)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
