"""What holds for the field of every system: its symmetries, masses, tangents and precision."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import attnflow as af
from properties.strategies import (
    ANGLES,
    ATTENTION,
    BY_DISTANCE,
    DIAGONAL,
    JUMPING,
    ON_SPHERE,
    SHAPES,
    UNMASKED,
    WITHOUT_MASSES,
    always,
    cases,
    close,
    gaussian,
    moved,
    orders,
    permuted,
    rotated,
    rotations,
    turned,
    unit,
)

pytestmark = pytest.mark.slow

ALL = tuple(af.SYSTEMS)
MASKABLE = tuple(name for name in ATTENTION if name not in UNMASKED)
SOFT = ("SA", "USA", "PureAttention", "ConsensusAttention")
"""Where no token is deaf to another one: scores of unit tokens are at most β."""

FREE = tuple(name for name in BY_DISTANCE if name != "MeanShift")


def but(*names):
    return tuple(name for name in ALL if name not in names)


@always(cases(masked=(None, "given")), st.data())
def test_the_order_of_tokens_does_not_matter(case, data):
    order = data.draw(orders(len(case.x)))
    close(moved(permuted(case, order)), moved(case)[order])


@always(cases(SOFT, SHAPES[1:], kinds=["none"], masked=["causal"]), st.data())
def test_under_a_causal_mask_it_does(case, data):
    """Two tokens that change places no longer see what they saw."""
    i = data.draw(st.integers(0, 3))
    order = np.arange(5)
    order[[i, i + 1]] = i + 1, i
    case = case._replace(x=unit(data.draw(gaussian(5, 3).filter(_spread))))
    assert np.abs(moved(permuted(case, order)) - moved(case)[order]).max() > 1e-9


def _spread(x):
    return np.linalg.svd(x)[1].min() > 0.1 and np.abs(x[1:] - x[:-1]).max(axis=1).min() > 0.1


@always(cases(MASKABLE, SHAPES[1:], masked=["causal"]), st.data())
def test_under_a_causal_mask_a_token_does_not_see_those_behind(case, data):
    k = data.draw(st.integers(1, 4))
    behind = case.x[data.draw(orders(5))]
    other = case._replace(x=np.concatenate([case.x[:k], behind[k:]]))
    close(moved(other)[:k], moved(case)[:k])


@always(cases(but(*ANGLES, "Vicsek"), masked=(None, "causal", "given")), st.data())
def test_the_choice_of_axes_does_not_matter(case, data):
    d = case.x.shape[1] // (2 if case.name == "CuckerSmale" else 1)
    R = data.draw(rotations(d, axes=case.name in DIAGONAL))
    close(moved(rotated(case, R)), turned(moved(case), R))


@always(cases((*ANGLES, *FREE, "CuckerSmale")), st.floats(-8, 8))
def test_the_origin_does_not_matter(case, by):
    """Angles turned together, or places moved together, do what they did."""
    along = np.arange(case.x.shape[1]) < (case.x.shape[1] + 1) // 2
    move = by * (along if case.name == "CuckerSmale" else np.ones_like(along))
    there = moved(case._replace(x=case.x + move))
    moves = case.name == "HegselmannKrause"  # a map carries the origin along
    close(there, moved(case) + (move if moves else 0))


@always(cases(but(*WITHOUT_MASSES), masked=(None, "given")), st.data())
def test_equal_tokens_are_one_token_of_their_mass(case, data):
    n = len(case.x)
    labels = np.concatenate([np.arange(n), data.draw(orders(2 * n))[:n] % n])
    many = permuted(case, labels)
    masses = np.ones(2 * n) if many.masses is None else many.masses
    few = case._replace(masses=np.bincount(labels, masses, n))
    close(moved(many), moved(few)[labels])


@always(cases(but("Hardmax", *WITHOUT_MASSES), heavy=True), st.floats(0.01, 100))
def test_only_shares_of_the_mass_count(case, factor):
    close(moved(case._replace(masses=factor * case.masses)), moved(case))


@always(cases((*ON_SPHERE, "EllipsoidAttention"), masked=(None, "causal", "given")))
def test_velocities_are_tangents(case):
    v = moved(case)
    normal = case.x / case.arguments.get("D", 1.0) ** 2
    assert np.abs((normal * v).sum(axis=1)).max() <= 1e-12 * (1 + np.abs(v).max())


@always(cases(masked=(None, "causal", "given")))
def test_single_precision_stays_single_and_is_nearly_double(case):
    single = moved(case._replace(x=case.x.astype(np.float32)))
    assert single.dtype == np.float32
    assert np.isfinite(single).all()
    if case.name not in JUMPING and case.arguments.get("norm") != "layer":
        close(single, moved(case), 1e-3)


@always(cases(MASKABLE, masked=(None, "causal", "given")))
def test_weights_of_attention_sum_to_one(case):
    assume(case.name != "USA")
    m = None if case.masses is None else jnp.asarray(case.masses)
    A = np.asarray(case.system.attention(case.t, jnp.asarray(case.x), m))
    assert (A >= 0).all()
    close(A.sum(axis=-1), 1.0, 1e-12)
