"""`attnflow model` on a small random BERT: its page, its numbers, and what it refuses."""

import importlib
import json

import pytest
from threadpoolctl import threadpool_limits

from attnflow.errors import InputError
from checkpoints import HERE
from command import call, threads_of_blas

BERT = HERE / "bert"


@pytest.fixture
def text(folder):
    path = folder / "cat.txt"
    path.write_text("the cat sat on the mat and the cat saw a mat")
    return path


def test_a_page_and_its_numbers(folder, text):
    code, said = call("model", BERT, "--text", text, "--json", "cat.json", "--dtype", "float64")
    assert code == 0, said
    assert "wrote attnflow-model.html" in said
    assert "3 layers, texts of 14 tokens" in said
    page = (folder / "attnflow-model.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    told = json.loads((folder / "cat.json").read_text(encoding="utf-8"))
    assert told["layers"] == 3
    assert told["texts"][0]["tokens"][1:4] == ["the", "cat", "sat"]
    for row in told["predictions"]:
        assert row["seen"].split()[0] in said


def test_threads_of_blas_do_not_wait_for_each_other(text, monkeypatch):
    threads = []

    def survey(*args, **options):
        threads.extend(threads_of_blas())
        raise InputError("That is enough.")

    monkeypatch.setattr(importlib.import_module("attnflow.models.survey"), "survey", survey)
    with threadpool_limits(2, "blas"):
        call("model", BERT, "--text", text)
    assert set(threads) == {1}


def test_help_has_an_example():
    code, said = call("model", "--help")
    assert code == 0
    assert "attnflow model albert-xlarge-v2 --text" in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((BERT, "--text", "none.txt"), "none.txt: there is no such file"),
        ((BERT, "--text", "empty.txt"), "empty.txt is empty"),
        ((BERT, "--text", "bytes.txt"), "bytes.txt is not UTF-8 text"),
        ((BERT, "--text", "large.txt"), "a text may have at most 1,048,576"),
        ((BERT, "--text", "long.txt"), "takes at most 20"),
        ((BERT, "--text", "cat.txt", "--out", "page.pdf"), "must end in .html"),
        ((BERT, "--text", "cat.txt", "--json", "no/cat.json"), "there is no folder"),
        ((BERT, "--text", "cat.txt", "--depth", "9"), "depth must be at most 3"),
        ((BERT, "--text", "cat.txt", "--dtype", "int8"), "dtype must be"),
        ((BERT, "--text", "cat.txt", "--delta", "0"), "delta must be"),
        (("no/such/folder/here", "--text", "cat.txt"), "neither a folder here nor a name"),
    ],
)
def test_errors_are_sentences(args, said, folder, text):
    (folder / "empty.txt").write_text(" \n")
    (folder / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    (folder / "large.txt").write_text("a" * (2**20 + 1))
    (folder / "long.txt").write_text("cat " * 40)
    code, output = call("model", *args)
    assert code == 2, output
    assert "error:" in output
    assert said in output
    assert not (folder / "attnflow-model.html").exists()


def test_a_text_is_asked_for(folder):
    code, said = call("model", BERT)
    assert code == 2
    assert "--text" in said
