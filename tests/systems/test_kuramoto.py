"""What is known of oscillators: synchrony, Lorentzian frequencies, two of them, random graphs."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import attnflow as af
from attnflow.weights import frequencies, graphs
from attnflow.weights.couplings import Harmonics

FINE = af.Fixed(0.05)


def order(t, x):
    return af.observe.order_parameter(jnp.concatenate([jnp.cos(x), jnp.sin(x)], axis=-1))


def ott_antonsen(K, width, r0, ts):
    """`r' = (K/2 − Δ) r − (K/2) r³`, solved: what r does for n → ∞ from a wrapped Lorentzian."""
    limit = 1 - 2 * width / K
    return np.sqrt(limit / (1 + (limit / r0**2 - 1) * np.exp(-(K - 2 * width) * ts)))


@pytest.mark.parametrize("K", [0.8, 2.0])
def test_lorentzian_frequencies_give_the_order_of_the_mean_field(K):
    n, width, r0 = 10_000, 0.5, 0.1
    # A lattice: phases independent of the frequencies, without the noise of a draw.
    levels = np.mod(np.arange(1, n + 1) * (np.sqrt(5) - 1) / 2, 1)
    theta = 2 * np.arctan((1 - r0) / (1 + r0) * np.tan(np.pi * (levels - 0.5)))
    system = af.Kuramoto(K, frequencies.lorentzian(n, width, even=True))
    ts = np.linspace(0, 30, 31)
    r = af.simulate(system, theta[:, None], ts, method=FINE, save=order).xs
    assert np.abs(r - ott_antonsen(K, width, r0, ts)).max() < 0.01
    limit = np.sqrt(max(0, 1 - 2 * width / K))
    assert float(r[-5:].mean()) == pytest.approx(limit, abs=5e-3)


@pytest.mark.slow
def test_order_appears_at_the_critical_coupling():
    n, width = 10_000, 0.5
    omega = frequencies.lorentzian(n, width, even=True)
    theta, ts = af.initial.angles(n, key=0), np.linspace(0, 60, 61)
    for K, tolerance in ((0.5, 0.02), (1.5, 0.02), (3.0, 0.01), (6.0, 0.01)):
        r = af.simulate(af.Kuramoto(K, omega), theta, ts, method=FINE, save=order).xs[-20:]
        assert float(r.mean()) == pytest.approx(np.sqrt(max(0, 1 - 2 * width / K)), abs=tolerance)


@pytest.mark.parametrize("arc", [3.1, 2 * np.pi], ids=["half circle", "anywhere"])
def test_equal_frequencies_synchronise(arc):
    x0 = af.initial.angles(n=10, arc=arc, key=1, batch=20)
    ts = np.linspace(0, 60, 13)
    run = af.simulate(af.Kuramoto(2.0, 0.3), x0, ts, method=FINE)
    assert np.asarray(order(0.0, run.final)).min() > 1 - 1e-9
    if arc < np.pi:
        # They meet at their mean, which turns at the common frequency, and no arc ever grows.
        assert np.abs(run.final - (x0.mean(axis=1, keepdims=True) + 0.3 * 60)).max() < 1e-9
        assert (np.diff(np.ptp(run.xs, axis=2)[..., 0], axis=1) <= 1e-12).all()


def test_two_oscillators_lock_at_the_sine_of_their_detuning():
    K, detuning = 2.0, 1.2
    system = af.Kuramoto(K, np.array([0.0, detuning]))
    run = af.simulate(system, np.array([[0.0], [1.0]]), [0.0, 10.0, 20.0, 21.0], method=FINE)
    apart = run.xs[:, 1, 0] - run.xs[:, 0, 0]
    assert np.allclose(np.sin(apart[2:]), detuning / K, atol=1e-8)
    assert np.cos(apart[-1]) > 0
    assert np.allclose(run.xs[3] - run.xs[2], detuning / 2, atol=1e-8)


def test_two_oscillators_slip_a_turn_in_the_time_of_the_integral():
    K, detuning = 2.0, 2.5
    period = 2 * np.pi / np.sqrt(detuning**2 - K**2)
    system = af.Kuramoto(K, np.array([0.0, detuning]))
    run = af.simulate(system, np.array([[0.0], [1.0]]), np.arange(4) * period, method=FINE)
    apart = run.xs[:, 1, 0] - run.xs[:, 0, 0]
    assert np.allclose(np.diff(apart), 2 * np.pi, atol=1e-4)


def test_two_harmonics_make_two_clusters_opposite_each_other():
    system = af.CircleCoupling(Harmonics(sin=[0.0, 1.0], cos=[0.0]), K=1.0)
    x0 = af.initial.angles(n=12, key=2)
    final = af.simulate(system, x0, [0.0, 40.0, 41.0], method=FINE).final
    assert af.observe.clusters(system.positions(final), 1e-6).count == 2
    assert np.abs(np.sin(final - final[0])).max() < 1e-9


def test_a_lag_turns_the_synchronous_state():
    lag, K = 0.4, 1.5
    h = Harmonics(sin=[np.cos(lag), 0.0], cos=[-np.sin(lag)])
    x0 = af.initial.angles(n=12, arc=2.0, key=2)
    run = af.simulate(af.CircleCoupling(h, K), x0, [0.0, 30.0, 31.0], method=FINE)
    assert np.allclose(run.xs[2] - run.xs[1], -K * np.sin(lag), atol=1e-9)


# ---------------------------------------------------------------------------------------------
# Random graphs
# ---------------------------------------------------------------------------------------------

NODES = 64
THRESHOLD = np.log(NODES) / NODES


def on_a_graph(p, key):
    """Components of a graph, their order parameters, and that of all, after a long time."""
    graph = graphs.erdos_renyi(NODES, p, key=key)
    count, labels = connected_components(np.asarray(graph))
    system = af.Kuramoto(float(NODES), graph=graph)
    x0 = af.initial.angles(NODES, key=key)
    final = np.asarray(af.simulate(system, x0, [0.0, 100.0], method=af.Fixed(0.08)).final)
    orders = [float(order(0.0, jnp.asarray(final[labels == k]))) for k in range(count)]
    return count, np.array(orders), float(order(0.0, jnp.asarray(final)))


def test_connected_graphs_synchronise_and_components_do_so_each_for_itself():
    seen = set()
    for factor in (1.0, 1.5):
        for key in range(4):
            count, orders, whole = on_a_graph(factor * THRESHOLD, key)
            seen.add(count == 1)
            assert orders.min() > 1 - 1e-6
            assert whole > 1 - 1e-6 if count == 1 else whole < 0.999
    assert seen == {True, False}


@pytest.mark.slow
def test_the_threshold_of_connection_is_where_it_should_be():
    connected = {}
    for factor in (1.0, 2.0):
        draws = [on_a_graph(factor * THRESHOLD, key) for key in range(100, 140)]
        connected[factor] = np.mean([count == 1 for count, _, _ in draws])
        assert np.mean([orders.min() > 1 - 1e-6 for _, orders, _ in draws]) >= 0.95
        assert not any(whole > 1 - 1e-6 for count, _, whole in draws if count > 1)
    # P(connected) → e^{−1} at the threshold.
    assert abs(connected[1.0] - np.exp(-1)) < 0.2
    assert connected[2.0] > 0.9
