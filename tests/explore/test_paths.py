import contextlib
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnflow.errors import InputError
from attnflow.explore import paths


@pytest.fixture
def tree(tmp_path):
    """A folder beside another: a store and a model, outside and at several places inside."""

    def store(path):
        (path / "blocks").mkdir(parents=True)
        (path / "zarr.json").write_text("{}")

    def model(path):
        path.mkdir(parents=True)
        (path / "config.json").write_text("{}")
        (path / "model.safetensors").write_text("")

    inside = tmp_path / "inside"
    for make, kind in ((store, "store"), (model, "model")):
        make(tmp_path / "outside" / kind)
        make(inside / kind)
        make(inside / "a" / "b" / "c" / f"deep-{kind}")
        make(inside / "a" / "b" / "c" / "d" / f"deeper-{kind}")
        make(inside / ".hidden" / kind)
        make(inside / kind / "within")
    (inside / "run" / "zarr.json").parent.mkdir()
    (inside / "run" / "zarr.json").write_text("{}")
    (inside / "settings").mkdir()
    (inside / "settings" / "config.json").write_text("{}")
    (inside / "link").symlink_to(tmp_path / "outside", target_is_directory=True)
    (inside / "near").symlink_to(inside / "a", target_is_directory=True)
    (inside / "circle").symlink_to(inside / "circle")
    return inside


def test_stores_and_models_are_found(tree):
    """Not those behind links, in hidden folders, too deep, or within another."""
    assert paths.stores(tree) == ["a/b/c/deep-store", "store"]
    assert paths.models(tree) == ["a/b/c/deep-model", "model"]


def test_the_folder_itself(tree):
    assert paths.stores(tree / "store") == ["."]
    assert paths.inside(tree / "store", ".") == (tree / "store").resolve()


def test_what_is_found_is_inside(tree):
    for name in (*paths.stores(tree), *paths.models(tree)):
        assert tree.resolve() in paths.inside(tree, name).parents


@pytest.mark.parametrize(
    "name", ["", ".", "store", "a/../store", "./a//b", "not/there", "near/b", ".hidden/store"]
)
def test_inside(tree, name):
    assert tree.resolve() in (paths.inside(tree, name), *paths.inside(tree, name).parents)


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "../outside/store",
        "a/../../outside",
        "/etc",
        "/etc/passwd",
        "//etc",
        "link",
        "link/store",
        "near/../../outside",
        "../inside-too",
    ],
)
def test_outside(tree, name):
    (tree.parent / "inside-too").mkdir()
    with pytest.raises(InputError, match="is not inside the folder"):
        paths.inside(tree, name)


@pytest.mark.parametrize("name", ["a\0b", "circle/a"])
def test_what_is_no_path(tree, name):
    """Newer Pythons leave a circle of links as it is."""
    with contextlib.suppress(InputError):
        assert paths.inside(tree, name) == tree.resolve() / name


@settings(deadline=None)
@given(st.lists(st.sampled_from(["..", "a", "b", "link", "near", "store", "/", ".", "\0", "å"])))
def test_no_name_leads_out(tmp_path_factory, parts):
    root = tmp_path_factory.getbasetemp() / "names"
    (root / "a" / "b").mkdir(parents=True, exist_ok=True)
    if not (root / "link").is_symlink():
        (root / "link").symlink_to(root.parent)
    for name in ("/".join(parts), os.sep + os.sep.join(parts)):
        try:
            path = paths.inside(root, name)
        except InputError:
            continue
        assert os.path.commonpath([root.resolve(), path.resolve()]) == str(root.resolve())


def test_a_folder_without_end_is_looked_at_in_part(tmp_path, monkeypatch):
    for k in range(20):
        (tmp_path / f"{k:02}").mkdir()
    (tmp_path / "99" / "blocks").mkdir(parents=True)
    (tmp_path / "99" / "zarr.json").write_text("{}")
    assert paths.stores(tmp_path) == ["99"]
    monkeypatch.setattr(paths, "MAX_FOLDERS", 10)
    assert paths.stores(tmp_path) == []
