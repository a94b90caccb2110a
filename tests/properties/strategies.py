"""Random systems with their states, in few shapes: a new shape compiles anew, a value does not.

A `Case` keeps the arguments of its system by name, so that a test can permute or rotate them and
build the system again.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import attnflow as af
from attnflow.weights.couplings import Harmonics
from tries import tries

always = partial(tries, 200, 10_000)
"""The decorator of every property: `@always(strategy, …)`."""

SHAPES = ((1, 1), (5, 3))
"""Numbers of tokens and dimensions, (n, d)."""

ON_SPHERE = ("SA", "USA", "SinkhornSA", "Transformer")
ON_ELLIPSOID = ("EllipsoidAttention", "PostNorm")
IN_SPACE = ("PureAttention", "RescaledAttention", "PreNorm", "SinkhornPure", "ConsensusAttention")
BLOCKS = ("Transformer", "PostNormTransformer", "PreNormTransformer")
ATTENTION = (*ON_SPHERE, *ON_ELLIPSOID, *IN_SPACE, *BLOCKS[1:])
OSCILLATORS = ("Kuramoto", "CircleCoupling")
ANGLES = ("AngularSA", "AngularUSA", *OSCILLATORS)
BY_DISTANCE = ("Krause", "HegselmannKrause", "MeanShift", "Aggregation")
FLOCKS = ("CuckerSmale", "Vicsek")
DIAGONAL = (*ON_ELLIPSOID, "PreNorm", *BLOCKS[1:], "CBO")
"""Systems that single out the axes: of all rotations, they bear permutations of coordinates."""

JUMPING = ("Hardmax", "Krause", "HegselmannKrause", "MeanShift", "Vicsek")
"""Systems whose field jumps: tokens are drawn so that no two of them tie."""

WITHOUT_MASSES = ("Vicsek",)
UNMASKED = ("RescaledAttention", "SinkhornSA", "SinkhornPure")
KINDS = ("none", "numbers", "matrices", "rectangular", "heads", "mixed")
"""How weights may be given."""


class Case(NamedTuple):
    """A system by name and arguments, a state of it, masses (or None) and a time."""

    name: str
    arguments: dict[str, Any]
    x: np.ndarray
    masses: np.ndarray | None
    t: float

    @property
    def system(self) -> af.System:
        arguments = dict(self.arguments)
        if isinstance(inner := arguments.get("system"), Case):
            arguments["system"] = inner.system
        if "h" in arguments:
            arguments["h"] = Harmonics(**arguments["h"])
        return af.SYSTEMS[self.name](**arguments)

    def having(self, **changes: Any) -> Case:
        """The case with other arguments of its system."""
        return self._replace(arguments=self.arguments | changes)


# ---------------------------------------------------------------------------------------------
# Numbers, tokens and masses
# ---------------------------------------------------------------------------------------------

keys = st.integers(0, 2**32 - 1)
betas = st.just(0.0) | st.floats(0, 4)
factors = st.floats(-2, 2)
times = st.floats(0, 1)


@st.composite
def gaussian(draw, *shape):
    return np.random.default_rng(draw(keys)).normal(size=shape)


def arrays(*shape):
    """Normal numbers, or such as hypothesis likes: zeros, repetitions, ones, tiny ones."""
    return gaussian(*shape) | hnp.arrays(float, shape, elements=st.floats(-2, 2, width=32))


def matrices(*shape):
    """Matrices of norm at most 1, or a stack of them."""
    return arrays(*shape).map(lambda W: W / np.maximum(1, np.linalg.norm(W, 2, (-2, -1), True)))


def unit(x):
    """Rows over their lengths; the first axis for those that have hardly any."""
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.where(lengths > 1e-6, x, np.eye(1, x.shape[-1])) / np.where(
        lengths > 1e-6, lengths, 1
    )


def masses(n):
    return gaussian(n).map(lambda m: 0.1 + np.abs(m))


@st.composite
def orders(draw, n):
    return np.random.default_rng(draw(keys)).permutation(n)


@st.composite
def rotations(draw, d, axes=False):
    """Orthogonal matrices; with `axes` only permutations of the coordinates."""
    if axes:
        return np.eye(d)[draw(orders(d))]
    return np.linalg.qr(draw(gaussian(d, d)))[0]


def states(name, n, d, arguments):
    """A state of the system of this name."""
    if name == "Noisy":
        inner = arguments["system"]
        return states(inner.name, n, d, inner.arguments)
    if name in ANGLES:
        return arrays(n, 1).map(lambda x: 2 * x)
    if name in FLOCKS:
        return gaussian(n, 3 if name == "Vicsek" else 2 * d)
    if name in JUMPING:
        return gaussian(n, d)
    if name in ON_ELLIPSOID:
        return arrays(n, d).map(lambda x: _on_ellipsoid(x, arguments["D"]))
    if name in ON_SPHERE or name in DIAGONAL:
        return arrays(n, d).map(unit)
    if name == "Aggregation":
        return gaussian(n, d)
    return arrays(n, d)


def _on_ellipsoid(x, D):
    x = unit(x)
    return x / np.linalg.norm(x / D, axis=-1, keepdims=True)


# ---------------------------------------------------------------------------------------------
# The arguments of every system
# ---------------------------------------------------------------------------------------------


@st.composite
def weights(draw, d, kind):
    """Q, K and V of one of the `KINDS`."""
    if kind == "none":
        return {}
    if kind == "numbers":
        return {"Q": draw(factors), "V": draw(factors)}
    if kind == "matrices":
        return {name: draw(matrices(d, d)) for name in "QKV"}
    if kind == "rectangular":
        return {name: draw(matrices(2, d)) for name in "QK"}
    if kind == "heads":
        return {name: draw(matrices(2, d, d)) for name in "QKV"}
    return {"Q": draw(matrices(d, d)), "V": draw(matrices(3, d, d))}


@st.composite
def masks(draw, n):
    """Matrices that let every token see somebody."""
    allowed = draw(hnp.arrays(bool, (n, n)))
    return allowed | np.eye(n, dtype=bool)[draw(orders(n))]


@st.composite
def diagonals(draw, d):
    return np.exp(draw(gaussian(d)) / 2)


@st.composite
def perceptron(draw, d, m=4):
    """The weights of a feed-forward layer."""
    return {
        "w": draw(matrices(d, m)),
        "a": draw(matrices(m, d)),
        "b": draw(arrays(m)),
        "c": draw(arrays(d)),
        "sigma": draw(st.sampled_from(["relu", "gelu", "tanh"])),
    }


@st.composite
def attention(draw, name, n, d, kind, mask):
    given = {"beta": draw(betas)} | draw(weights(d, kind))
    if name not in UNMASKED and mask is not None:
        given["mask"] = draw(masks(n)) if mask == "given" else mask
    if name in (*ON_ELLIPSOID, "PreNorm"):
        given["D"] = draw(diagonals(d))
    if name in BLOCKS:
        given |= draw(perceptron(d))
        if kind == "heads":
            given |= {"O": draw(matrices(2, d, d)), "b_Q": draw(arrays(2, d))}
            given |= {"b_K": draw(arrays(d)), "b_V": draw(arrays(2, d)), "b_O": draw(arrays(d))}
    if name in BLOCKS[1:]:
        given |= {"gain": draw(diagonals(d)), "shift": draw(arrays(d))}
        given["norm"] = draw(st.sampled_from(["rms", "layer"]))
    return given


@st.composite
def oscillators(draw, name, n):
    given = {"K": draw(factors), "omega": draw(arrays(n))}
    if name == "Kuramoto":
        return given | {"graph": draw(arrays(n, n))}
    return given | {"h": {"sin": draw(arrays(2)), "cos": draw(arrays(1))}}


lengths = st.floats(0.3, 2)
small = {
    "AngularSA": st.fixed_dictionaries({"beta": betas}),
    "AngularUSA": st.fixed_dictionaries({"beta": betas}),
    "Krause": st.fixed_dictionaries(
        {"phi": st.sampled_from(["gaussian", "indicator", "cauchy"]), "radius": lengths}
    ),
    "HegselmannKrause": st.fixed_dictionaries({"radius": lengths}),
    "MeanShift": st.fixed_dictionaries(
        {"bandwidth": lengths, "kernel": st.sampled_from(["gaussian", "flat"])}
    ),
    "Aggregation": st.fixed_dictionaries(
        {"W": st.sampled_from(["log", "quadratic", "morse", "power"])}
    ),
    "CuckerSmale": st.fixed_dictionaries({"K": factors, "b": st.floats(0, 1)}),
    "Vicsek": st.fixed_dictionaries({"eta": st.just(0.0), "radius": lengths, "speed": lengths}),
    "CBO": st.fixed_dictionaries(
        {
            "objective": st.sampled_from(["ackley", "rastrigin"]),
            "alpha": st.floats(0.1, 5),
            "sigma": st.floats(0, 1),
        }
    ),
}


@st.composite
def cases(draw, names=tuple(af.SYSTEMS), shapes=SHAPES, kinds=KINDS, masked=(None,), heavy=None):
    """Any of the named systems; `heavy` says whether tokens have masses, None leaves it open."""
    name, (n, d) = draw(st.sampled_from(names)), draw(st.sampled_from(shapes))
    kind, mask = draw(st.sampled_from(kinds)), draw(st.sampled_from(masked))
    if name == "Noisy":
        inner = draw(cases(("SA",), ((n, d),), (kind,), (mask,), heavy))
        given = {"system": inner, "sigma": draw(st.floats(0, 1))}
    elif name in ATTENTION:
        given = draw(attention(name, n, d, kind, mask))
    elif name == "Hardmax":
        single = kind if kind not in ("heads", "mixed") else "matrices"
        given = draw(weights(d, single))
    elif name == "ResNet":
        given = draw(perceptron(d))
    elif name in OSCILLATORS:
        given = draw(oscillators(name, n))
    else:
        given = draw(small[name])
    if name in WITHOUT_MASSES:
        heavy = False
    m = draw(masses(n)) if draw(st.booleans() if heavy is None else st.just(heavy)) else None
    return Case(name, given, draw(states(name, n, d, given)), m, draw(times))


# ---------------------------------------------------------------------------------------------
# The same case seen otherwise
# ---------------------------------------------------------------------------------------------

PAIRS = ("mask", "graph")
"""Arguments with an axis of tokens for who sees and one for who is seen."""


def permuted(case: Case, order) -> Case:
    """The case with the tokens that `order` lists: in another order, or some of them repeated."""
    changes: dict[str, Any] = {}
    for name, value in case.arguments.items():
        if name in PAIRS and not isinstance(value, str):
            changes[name] = value[order][:, order]
        elif name == "omega":
            changes[name] = value[order]
        elif isinstance(value, Case):
            changes[name] = permuted(value, order)
    m = None if case.masses is None else case.masses[order]
    return case.having(**changes)._replace(x=case.x[order], masses=m)


def rotated(case: Case, R) -> Case:
    """The case in other coordinates: tokens R x, and weights that do to them what they did."""
    changes = {name: _turned(name, case.arguments, R) for name in case.arguments}
    return case.having(**changes)._replace(x=turned(case.x, R))


def turned(x, R):
    """R x for every row; for rows (x, v) both."""
    d = len(R)
    return np.concatenate([x[..., i : i + d] @ R.T for i in range(0, x.shape[-1], d)], axis=-1)


def _turned(name, arguments, R):
    W = arguments[name]
    if isinstance(W, Case):
        return rotated(W, R)
    if not isinstance(W, np.ndarray) or name in ("b", "b_Q", "b_K", "mask"):
        return W
    if name == "b_V":
        return W if "O" in arguments else W @ R.T
    if name in ("D", "c", "b_O", "gain", "shift", "data"):
        return W @ R.T
    if name in ("w", "O"):
        return R @ W
    both = isinstance(arguments.get("Q"), np.ndarray) and isinstance(arguments.get("K"), np.ndarray)
    if name == "a" or (name in "QK" and both) or (name == "V" and "O" in arguments):
        return W @ R.T
    return R @ W @ R.T


# ---------------------------------------------------------------------------------------------
# What a system does with a state
# ---------------------------------------------------------------------------------------------


def moved(case: Case):
    """The velocity, or for a map in time the next layer; at tokens of a single run."""
    system, x = case.system, jnp.asarray(case.x)
    m = None if case.masses is None else jnp.asarray(case.masses)
    if isinstance(system, af.systems.Map):
        if system.random:
            system = system.with_key(af.randomness.as_key(0))
        if isinstance(system, (af.PostNorm, af.PostNormTransformer)):
            assume(all(lengths.min() > 1e-3 for lengths in _normalised(system, x, m)))
        return np.asarray(system.layer(1, x, 1.0, m))
    return np.asarray(system.velocity(case.t, x, m))


def _normalised(system, x, m):
    """The lengths of what a post-norm layer divides by its length: near 0 there is no direction."""
    y = x + system.drift(1.0, x, m)
    yield np.linalg.norm(y, axis=-1)
    if getattr(system, "feed_forward", None) is not None:
        y = system.norm(1.0, y, 0)
        yield np.linalg.norm(y + system.push(1.0, y), axis=-1)


def close(ours, theirs, tolerance=1e-9):
    """Equal up to the tolerance, in parts of the larger one of 1 and what there is."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    scale = 1 + np.abs(theirs).max(initial=0)
    far = np.abs(ours - theirs).max(initial=0)
    assert far <= tolerance * scale, f"differ by {far:.2e} of {scale:.2e}"
