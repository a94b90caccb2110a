import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.attention import Causal, ExplicitMask, as_mask
from attnflow.errors import InputError


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2], [1, 3], [3, 4, 5]])
def test_causal_rows_see_themselves_and_those_before(rows):
    want = np.tril(np.ones((6, 6), bool))[rows, :4]
    np.testing.assert_array_equal(Causal().rows(jnp.array(rows), 4), want)


def test_given_rows_are_those_of_the_matrix():
    allowed = np.array([[True, False, True], [False, True, False], [True, True, False]])
    mask = ExplicitMask(jnp.asarray(allowed))
    np.testing.assert_array_equal(mask.rows(jnp.array([2, 0]), 3), allowed[[2, 0]])


def test_given_rows_beyond_the_last_repeat_it():
    mask = ExplicitMask(jnp.array([[True, False], [False, True]]))
    np.testing.assert_array_equal(mask.rows(jnp.array([1, 2, 7]), 2), [[False, True]] * 3)


def test_masks_and_nothing_are_themselves():
    mask = ExplicitMask(jnp.eye(2, dtype=bool))
    assert as_mask(mask) is mask
    assert as_mask(None) is None


def test_a_mask_by_its_name():
    assert isinstance(as_mask("causal"), Causal)


@pytest.mark.parametrize("matrix", [np.eye(3, dtype=bool), jnp.eye(3, dtype=bool), [[True]]])
def test_a_mask_from_a_matrix(matrix):
    np.testing.assert_array_equal(as_mask(matrix).allowed, matrix)


def test_a_traced_matrix_passes_unseen():
    nobody = jnp.zeros((2, 2), bool)
    np.testing.assert_array_equal(jax.jit(lambda m: as_mask(m).allowed)(nobody), nobody)


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(InputError, match="unknown mask 'casual': did you mean 'causal'"):
        as_mask("casual")


@pytest.mark.parametrize(
    "bad",
    [
        np.ones((2, 3), bool),
        np.ones(3, bool),
        np.ones((1, 2, 2), bool),
        np.ones((2, 2)),
        np.ones((2, 2), int),
        True,
    ],
    ids=lambda m: f"{np.shape(m)} {np.asarray(m).dtype}",
)
def test_a_mask_is_a_square_matrix_of_booleans(bad):
    with pytest.raises(InputError, match='mask must be "causal" or a square matrix of booleans'):
        as_mask(bad)


@pytest.mark.parametrize("bad", [{}, [[True], [True, False]]], ids=repr)
def test_a_mask_is_an_array(bad):
    with pytest.raises(InputError, match='mask must be "causal" or a matrix of booleans'):
        as_mask(bad)


def test_every_token_attends_to_somebody():
    allowed = np.eye(3, dtype=bool)
    allowed[1] = False
    with pytest.raises(InputError, match="mask lets token 1 attend to nobody"):
        as_mask(allowed)
