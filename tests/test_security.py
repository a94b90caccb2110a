"""What SECURITY.md promises: nothing in a file is run, and the page is for its own visitors."""

import ast
import json
import os
import pickle
import shutil
from pathlib import Path

import pytest

import attnflow as af
from attnflow import sweep
from attnflow.errors import InputError
from attnflow.explore import create_app, limits
from attnflow.explore.safety import HEADERS
from attnflow.stores import require_plain
from command import call
from small_sweep import spec

SOURCE = Path(__file__).parents[1] / "src"
MODULES = {
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "yaml",
    "code",
}
CALLS = {"eval", "exec", "compile", "__import__", "read_pickle", "getoutput", "getstatusoutput"}
OF_OS = {"system", "popen"}
HOSTILE = """
import pickle as p, os
from marshal import loads
from os import system
eval("1")
builtins.exec("1")
os.system("ls")
os.execv("/bin/ls", [])
subprocess.run("ls", shell=True)
subprocess.run("ls", **options)
np.load("x", allow_pickle=True)
torch.load("x")
importlib.import_module(name)
"""


def dangers(tree):
    """The lines of a module that could run what a file or a visitor says."""
    return sorted({node.lineno for node in ast.walk(tree) if _dangerous(node)})


def _dangerous(node):
    if isinstance(node, ast.Import):
        return any(name.name.split(".")[0] in MODULES for name in node.names)
    if isinstance(node, ast.ImportFrom):
        names = {name.name for name in node.names}
        return (node.module or "").split(".")[0] in MODULES or (
            node.module == "os" and any(_of_os(name) for name in names)
        )
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    owner, _, name = called.rpartition(".")
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    off = [ast.unparse(keywords[key]) for key in ("shell", "allow_pickle") if key in keywords]
    return (
        (name in CALLS and owner in ("", "builtins", "subprocess", "pandas", "pd"))
        or (owner == "os" and _of_os(name))
        or called in ("torch.load", "yaml.load")
        or any(value != "False" for value in off)
        or (owner == "subprocess" and None in keywords)
        or (name == "import_module" and not _known_module(node))
    )


def _of_os(name):
    return name in OF_OS or name.startswith(("exec", "spawn", "posix_spawn"))


def _known_module(node):
    """Modules are imported by names that stand in the source, not in a file."""
    said = ast.unparse(node.args[0])
    return said in {"package", "f'attnflow.{name}'", "PACKAGE.replace('-', '_')"}


def test_dangers_are_found():
    lines = [k for k, line in enumerate(HOSTILE.splitlines(), 1) if line]
    assert dangers(ast.parse(HOSTILE)) == lines


def test_nothing_in_the_source_runs_what_a_file_says():
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 300
    found = {
        str(file.relative_to(SOURCE)): lines
        for file in files
        if (lines := dangers(ast.parse(file.read_text(encoding="utf-8"))))
    }
    assert found == {}


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


OLD_FORMAT = {
    "zarr_format": 2,
    "node_type": "array",
    "shape": [1],
    "chunks": [1],
    "dtype": "|O",
    "compressor": None,
    "fill_value": None,
    "order": "C",
    "filters": [{"id": "vlen-bytes"}, {"id": "pickle", "protocol": 5}],
    "attributes": {"_ARRAY_DIMENSIONS": ["bomb"]},
}


@pytest.fixture
def armed(tmp_path, monkeypatch):
    """A store of a sweep with a pickle in it, which numcodecs is ready to open."""
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    store = tmp_path / "store.zarr"
    sweep.run(spec(), store)
    described = json.loads((store / "zarr.json").read_text())
    described["consolidated_metadata"]["metadata"]["E"] = OLD_FORMAT
    (store / "zarr.json").write_text(json.dumps(described))
    shutil.rmtree(store / "E")
    (store / "E").mkdir()
    (store / "E" / ".zarray").write_text(json.dumps(OLD_FORMAT))
    (store / "E" / "0").write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    return store


def test_a_store_with_a_pickle_is_not_opened(armed, tmp_path):
    for opened in (sweep.load, sweep.status, lambda path: sweep.run(spec(), path)):
        with pytest.raises(InputError, match="it is no Zarr store of numbers and words alone"):
            opened(armed)
    code, said = call("sweep", "--status", armed)
    assert code == 2
    assert "is not opened" in said
    assert not (tmp_path / "exploded").exists()


def test_the_pickle_is_alive(armed, tmp_path):
    """Whoever unpacks it sets it off, as some versions of Zarr do."""
    pickle.loads((armed / "E" / "0").read_bytes())
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("codec", ["pickle", "numcodecs.pickle", "sharding_indexed", None, 3])
def test_a_trajectory_with_another_codec_is_not_opened(codec, tmp_path):
    x0 = af.initial.sphere(3, 2, key=0)
    path = af.simulate(af.SA(1.0), x0, [0.0, 0.1]).save(tmp_path / "run.zarr")
    require_plain(path)
    file = path / "x" / "zarr.json"
    described = json.loads(file.read_text())
    file.write_text(json.dumps(described | {"codecs": [{"name": codec}]}))
    with pytest.raises(InputError, match="it is no Zarr store of numbers and words alone"):
        af.Trajectory.load(path)


LAYOUT = "/_dash-layout"
UPDATE = "/_dash-update-component"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    return create_app(tmp_path_factory.mktemp("folder")).server


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "LOCALHOST:8050", "[::1]:8050"])
def test_the_page_answers_under_its_own_names(app, host):
    assert app.test_client().get(LAYOUT, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8050", "localhost.evil.example", "[::1", ""]
)
def test_a_name_that_was_pointed_here_is_refused(app, host):
    answer = app.test_client().get(LAYOUT, headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "visitor" not in answer.text


def test_where_others_are_let_in_any_name_will_do(tmp_path):
    client = create_app(tmp_path, host="0.0.0.0").server.test_client()
    assert client.get(LAYOUT, headers={"Host": "machine.example:8050"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": ""}, 415),
    ],
)
def test_a_page_elsewhere_starts_nothing(app, headers, status):
    given = {"Content-Type": "application/json", **headers}
    answer = app.test_client().post(UPDATE, data="{}", headers=given)
    assert answer.status_code == status


def test_the_page_itself_is_heard(app):
    answer = app.test_client().post(
        UPDATE,
        json={
            "output": "..part.children...shown-url.data..",
            "outputs": [
                {"id": "part", "property": "children"},
                {"id": "shown-url", "property": "data"},
            ],
            "inputs": [
                {"id": "url", "property": "pathname", "value": "/nowhere"},
                {"id": "url", "property": "search", "value": ""},
            ],
            "state": [{"id": "shown-url", "property": "data"}],
            "changedPropIds": ["url.pathname"],
        },
        headers={"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"},
    )
    assert answer.status_code == 200
    assert "There is no page" in answer.text


@pytest.mark.parametrize("path", ["/", LAYOUT, "/assets/explore.js", "/assets/none.js", "/nowhere"])
def test_every_answer_has_its_headers(app, path):
    headers = app.test_client().get(path).headers
    assert {name: headers[name] for name in HEADERS} == HEADERS
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert "'unsafe-inline'" not in policy["script-src"]
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
    assert not any("http" in allowed or "*" in allowed for allowed in policy.values())
    assert headers["Cache-Control"] in (
        ("no-cache",) if path.endswith("explore.js") else ("no-store",)
    )


def test_refusals_have_the_headers_too(app):
    client = app.test_client()
    for answer in (
        client.post(UPDATE, data="{}", headers={"Content-Type": "text/plain"}),
        client.get("/", headers={"Host": "evil.example"}),
        client.post(UPDATE, json={"a": "b" * limits.MAX_REQUEST_BYTES}),
    ):
        assert answer.status_code in (403, 413, 415)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    "path", ["/assets/../app.py", "/assets/%2e%2e/app.py", "/assets//etc/passwd"]
)
def test_assets_are_assets_alone(app, path):
    answer = app.test_client().get(path)
    assert "def create_app" not in answer.text
    assert "root:" not in answer.text
