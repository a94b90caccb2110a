"""A spec that is written builds the same run again, to the last digit."""

import tomllib
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import initial, weights
from attnflow.attention import Blocked, Mask
from attnflow.errors import InputError
from attnflow.simulation import Method
from attnflow.spaces import Sphere
from attnflow.spec import toml_of, write_spec
from attnflow.spec.read import parse_spec
from attnflow.systems import System
from attnflow.systems.cbo import OBJECTIVES
from attnflow.systems.potentials import POTENTIALS, Potential

SYSTEMS = [
    af.SA(4.0),
    af.USA(1.5, V=-1.0),
    af.SA(2.0, Q=weights.ginibre(3, key=0), K=weights.ginibre(3, key=1)),
    af.RescaledAttention(V=weights.goe(3, key=2)),
    af.SA(1.0, V=weights.ginibre(3, heads=2, key=3)),
    af.SA(4.0, mask="causal"),
    af.PureAttention(V=-1.0, mask=np.eye(5, dtype=bool) | np.eye(5, k=1, dtype=bool)),
    af.SA(4.0, backend="blocked"),
    af.EllipsoidAttention(2.0, D=np.ones(3)),
    af.PreNorm(2.0, D=np.array([1.5, 1 / 3, 0.7]), mask="causal"),
    af.PostNorm(2.0, D=np.array([1.5, 1 / 3, 0.7])),
]
METHODS = [None, af.Adaptive(rtol=1e-6), af.Layers(dt=0.5), af.Coarsening(tol=1e-7)]


class Window(Mask):
    """A token sees itself and the one before."""

    tokens = None

    def rows(self, i, n):
        back = i[:, None] - jnp.arange(n)
        return (back >= 0) & (back <= 1)


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_it_comes_back(system, method):
    x0 = initial.sphere(n=5, d=3, key=4)
    ts = [0.0, 0.5, 10.0]
    text = write_spec(system, x0, ts, method, title='a "quoted" title')
    spec = parse_spec(tomllib.loads(text))
    run = spec.build()
    assert spec.title == 'a "quoted" title'
    assert type(run.system) is type(system)
    assert eqx.tree_equal(run.system, system)
    np.testing.assert_array_equal(run.x0, x0)
    np.testing.assert_array_equal(run.ts, ts)
    assert eqx.tree_equal(run.method, method)


EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.toml"))
REDRAWN = {"multihead", "post-norm-transformer"}


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.stem not in REDRAWN], ids=lambda path: path.stem
)
def test_the_run_of_every_example_comes_back(path):
    """Every system, with tokens, weights and frequencies that were drawn; but redrawn weights."""
    spec = tomllib.loads(path.read_text())
    run = parse_spec(spec).build()
    text = write_spec(run.system, run.x0, run.ts, run.method, key=spec.get("key", 0))
    again = parse_spec(tomllib.loads(text)).build()
    assert eqx.tree_equal(again.system, run.system)
    np.testing.assert_array_equal(again.x0, run.x0)
    np.testing.assert_array_equal(again.ts, run.ts)
    assert eqx.tree_equal((again.method, again.key), (run.method, run.key))


def test_every_system_has_an_example():
    assert {tomllib.loads(path.read_text())["system"]["name"] for path in EXAMPLES} == set(
        af.SYSTEMS
    )


def test_precision_comes_back():
    x0 = initial.sphere(n=5, d=3, key=4, dtype=np.float32)
    run = parse_spec(tomllib.loads(write_spec(af.SA(4.0), x0, [0.0, 1.0]))).build()
    assert run.x0.dtype == np.float32
    np.testing.assert_array_equal(run.x0, x0)


def test_what_a_spec_cannot_hold_is_refused():
    x0 = initial.sphere(n=5, d=3, key=4)
    turning = af.SA(1.0, V=lambda t: np.eye(3))
    with pytest.raises(InputError, match="V is a function of time"):
        write_spec(turning, x0, [0.0, 1.0])

    with pytest.raises(InputError, match="backend is Blocked"):
        write_spec(af.SA(1.0, backend=Blocked(block=7)), x0, [0.0, 1.0])
    with pytest.raises(InputError, match="mask is Window"):
        write_spec(af.SA(1.0, mask=Window()), x0, [0.0, 1.0])

    class Mine(af.SA):
        pass

    with pytest.raises(InputError, match="Mine is not in the table"):
        write_spec(Mine(1.0), x0, [0.0, 1.0])


def rastrigin(x):
    """Another one than the library's: its minimum is at 1."""
    return ((x - 1) ** 2).sum()


class Log(Potential):
    """Another one than the library's: it repels."""

    def of_square(self, s):
        return -jnp.log(s)


class SA(System):
    """Another one than the library's: nothing moves."""

    equation = "x' = 0"
    source = "nowhere"
    noise_obstacle = None
    space: Sphere = Sphere()

    def velocity(self, t, x, masses=None):
        return jnp.zeros_like(x)


class Fixed(Method):
    """Another one than the library's."""

    def solver_parts(self, system, masses, ts, y):
        raise NotImplementedError

    def steps_limit(self, ts):
        return 1

    stages = 1


class Exponential(eqx.Module):
    """Another one than the library's."""

    beta: float

    def __call__(self, theta):
        return jnp.sin(theta)


@pytest.mark.parametrize(
    ("system", "method", "said"),
    [
        (af.CBO(rastrigin), None, "objective is a function of a point"),
        (af.Aggregation(Log()), None, "W is a function of a vector"),
        (af.Krause(jnp.exp), None, "phi is a function of distance"),
        (af.CircleCoupling(Exponential(1.0), K=1.0), None, "h is a function of an angle"),
        (af.Transformer(w=1.0, sigma=jnp.tanh), None, "sigma is a function of a number"),
        (af.SA(1.0, Q=weights.PerLayer(np.ones((2, 3, 3)))), None, "Q is a function of time"),
        (af.Noisy(SA(1.0), 0.1), None, "SA is not in the table of systems"),
        (SA(1.0), None, "SA is not in the table of systems"),
        (af.SA(1.0), Fixed(), "Fixed is not in the table of methods"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_only_shares_its_name_with_the_librarys_is_refused(system, method, said):
    with pytest.raises(InputError, match=said):
        write_spec(system, np.ones((2, 3)), [0.0, 1.0], method)


def test_the_librarys_own_functions_are_written_by_name():
    for system in (af.CBO(OBJECTIVES["ackley"]), af.Aggregation(POTENTIALS["morse"](C=3.0))):
        text = write_spec(system, np.ones((2, 3)), [0.0, 1.0])
        again = parse_spec(tomllib.loads(text)).build().system
        assert eqx.tree_equal(again, system)


@pytest.mark.parametrize(
    ("x0", "ts", "said"),
    [
        (np.ones((2, 5, 3)), [0.0, 1.0], r"its shape is \(2, 5, 3\): write a spec for each start"),
        (np.ones(3), [0.0, 1.0], r"its shape is \(3,\)"),
        (np.full((2, 3), np.nan), [0.0, 1.0], "x0"),
        (np.ones((2, 3)), [0.0, np.inf], "ts"),
    ],
)
def test_a_run_that_would_not_be_read_is_not_written(x0, ts, said):
    with pytest.raises(InputError, match=said):
        write_spec(af.SA(1.0), x0, ts)


def test_a_run_that_would_be_read_as_another_is_not_written(monkeypatch):
    """Whatever a system forgets to tell: here its values."""
    system = af.SA(2.0, V=-1.0)
    monkeypatch.setattr(af.SA, "parameters", lambda self: {"beta": self.beta})
    with pytest.raises(InputError, match="a spec cannot hold SA, which would be read as SA"):
        write_spec(system, np.ones((2, 3)), [0.0, 1.0])


def test_the_key_of_a_run_is_no_part_of_its_spec():
    noisy = af.Noisy(af.SA(2.0), 0.1)
    x0, ts = np.eye(3), [0.0, 1.0]
    assert write_spec(noisy.with_key(jax.random.key(1)), x0, ts) == write_spec(noisy, x0, ts)


def test_every_number_of_a_table_comes_back_to_the_last_digit():
    numbers = [np.inf, -np.inf, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, 1e16, 1e22]
    fields = {
        "title": '[\n    1,\n] "and" so on',
        "system": {"rows": np.array([numbers, numbers]), "one": np.float64(0.1), "n": np.int64(3)},
        "keep": {"a b": {"observable": "energy", "quantiles": [0.1, 0.9]}},
    }
    text = toml_of(fields)
    read = tomllib.loads(text)
    assert read["title"] == fields["title"]
    np.testing.assert_array_equal(read["system"].pop("rows"), fields["system"]["rows"])
    assert np.signbit(tomllib.loads(text)["system"]["rows"][0][3])
    assert read["system"] == {"one": 0.1, "n": 3}
    assert read["keep"] == fields["keep"]
    assert np.isnan(tomllib.loads(toml_of({"x": float("nan")}))["x"])


def test_a_token_has_a_line_of_its_own():
    text = write_spec(af.SA(1.0), np.eye(3), [0.0, 1.0])
    assert "tokens = [\n    [1.0, 0.0, 0.0],\n    [0.0, 1.0, 0.0],\n" in text
    assert "values = [0.0, 1.0]\n" in text
