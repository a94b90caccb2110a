"""Random weights of each row of Table 1 meet its hypotheses, computed here from scratch."""

import jax
import numpy as np
import pytest

from attnflow.theory import triples

KEYS = [jax.random.key(key) for key in range(20)]


@pytest.mark.parametrize("d", [2, 5])
def test_scores_are_symmetric_and_positive(d):
    for key in KEYS:
        Q, K = triples.positive_scores(d, key)
        form = np.asarray(Q.T @ K)
        np.testing.assert_allclose(form, form.T, atol=1e-12)
        values = np.linalg.eigvalsh((form + form.T) / 2)
        assert 0.5 - 1e-9 <= values.min() <= values.max() <= 2 + 1e-9


@pytest.mark.parametrize(("d", "growing"), [(2, None), (4, None), (4, 2), (3, 3)])
def test_good_triples_are_good(d, growing):
    for key in KEYS:
        Q, K, V = (np.asarray(W) for W in triples.hyperplanes(d, key, growing))
        values, vectors = np.linalg.eig(V)
        order = np.argsort(-np.abs(values))
        assert values[order[0]] == pytest.approx(1)
        assert np.abs(values[order[1:]]).max() <= triples.MAX_OTHER_MODULUS + 1e-9
        phi = np.real(vectors[:, order[0]])
        assert (Q @ phi) @ (K @ phi) > 0.4
        if growing is not None:
            assert (values.real > 0).sum() == growing


def test_paranormal_triples_act_as_the_identity_on_f():
    for key in KEYS:
        Q, K, V = (np.asarray(W) for W in triples.subspace(4, 2, key))
        moduli = np.sort(np.abs(np.linalg.eigvals(V)))
        np.testing.assert_allclose(moduli[2:], 1, atol=1e-9)
        assert moduli[1] == pytest.approx(0.5)
        assert np.linalg.matrix_rank(V - np.eye(4), tol=1e-9) == 2
        np.testing.assert_allclose(Q.T @ K, (Q.T @ K).T, atol=1e-12)


@pytest.mark.parametrize("name", ["polytope", "hyperplanes", "subspace"])
def test_an_integer_is_the_key_of_that_number(name):
    more = {"multiplicity": 2} if name == "subspace" else {}
    ours, theirs = (getattr(triples, name)(d=3, key=key, **more) for key in (5, jax.random.key(5)))
    for a, b in zip(ours, theirs, strict=True):
        assert np.array_equal(a, b)
