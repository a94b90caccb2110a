"""Pictures: every kind of space gives one, tokens are drawn where they are."""

from dataclasses import replace

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow.plot import TokenView, animate, overview, style
from attnflow.plot.runs import chosen_moments
from attnflow.report import summarise

RUNS = {
    "circle": (af.SA(4.0), af.initial.sphere(n=8, d=2, key=0)),
    "sphere": (af.SA(4.0), af.initial.sphere(n=8, d=3, key=0)),
    "line": (af.RescaledAttention(), af.initial.cube(n=8, d=1, key=0)),
    "plane": (af.RescaledAttention(), af.initial.cube(n=8, d=2, key=0)),
    "space": (af.RescaledAttention(), af.initial.cube(n=8, d=3, key=0)),
    "PCA": (af.SA(4.0), af.initial.sphere(n=8, d=6, key=0)),
}


def small_run(system, x0):
    """Twelve layers, one by one: nothing to compile."""
    xs = [x0]
    for k in range(11):
        xs.append(system.layer(k, xs[-1], 0.35))
    ts = np.linspace(0, 4, 12)
    return af.Trajectory(
        ts=jnp.asarray(ts),
        xs=jnp.stack(xs),
        final=xs[-1],
        masses=None,
        steps=jnp.asarray(11),
        rejected=jnp.asarray(0),
        system=system,
        method=af.Layers(0.35),
    )


@pytest.fixture(scope="module", params=RUNS)
def run(request):
    traj = small_run(*RUNS[request.param])
    return traj, summarise(traj)


def test_every_space_has_a_picture(run, tmp_path):
    traj, report = run
    figure = overview(traj, report, title="A run", path=tmp_path / "run.png")
    pixels = np.asarray(Image.open(tmp_path / "run.png").convert("L"))
    assert pixels.shape[1] > 1500
    assert 0.01 < (pixels < 250).mean() < 0.6
    panels = figure.axes[: len(chosen_moments(report))]
    assert all(len(ax.collections[-1].get_offsets()) == 8 for ax in panels)


def test_tokens_are_drawn_where_they_are():
    x = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    flat, near = TokenView(x, True).project(x[0])
    assert np.array_equal(flat, x[0])
    assert np.array_equal(near, [1, 1])
    sphere = np.asarray(af.initial.sphere(n=20, d=3, key=0))
    view = TokenView(sphere[None], True)
    flat, near = view.project(sphere)
    assert np.allclose(np.sum(flat**2, axis=1) + near**2, 1)
    assert np.allclose(view.frame @ view.frame.T, np.eye(3))
    assert np.linalg.det(view.frame) == pytest.approx(1)


def test_pca_shows_the_widest_directions():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 500, 5)) * np.array([1, 9, 1, 4, 1])
    flat = TokenView(x, False).project(x[0])[0]
    assert flat.std(axis=0) == pytest.approx([9, 4], rel=0.1)
    assert flat.min(axis=0) == pytest.approx(-flat.max(axis=0))  # in the middle of the picture


def title_of_last(run, report):
    return overview(run, report).axes[len(chosen_moments(report)) - 1].get_title()


def test_a_cloud_has_no_number_of_clusters_in_its_titles():
    traj = small_run(*RUNS["plane"])
    report = summarise(traj)
    cloud = replace(report, clusters=[8] * len(report.clusters))
    assert "cluster" not in title_of_last(traj, cloud)
    assert "cluster" in title_of_last(traj, replace(cloud, clusters=[*cloud.clusters[:-1], 7]))


def test_oscillators_have_their_order_in_titles():
    traj = small_run(af.Kuramoto(1.0), af.initial.angles(8, key=0))
    report = summarise(traj)
    assert title_of_last(traj, report).endswith(f"$r = {report.order[-1]:.2f}$")


def test_arrays_are_left_out_of_the_title():
    traj = small_run(af.RescaledAttention(V=np.diag([1.0, 0.5])), RUNS["plane"][1])
    assert overview(traj, summarise(traj)).get_suptitle().startswith("RescaledAttention(beta=1), ")


def test_rescaled_attention_in_space_has_its_hull():
    """Two collections are tokens and trails; facets and the edges before and behind are more."""
    sizes = {}
    for name in ("space", "plane"):
        traj = small_run(*RUNS[name])
        sizes[name] = len(overview(traj, summarise(traj)).axes[0].collections)
    assert sizes == {"space": 5, "plane": 2}


def test_four_moments_from_start_to_end(run):
    _, report = run
    moments = chosen_moments(report)
    assert moments[0] == 0
    assert moments[-1] == len(report.times) - 1
    assert len(moments) == 4
    assert moments == sorted(set(moments))


def test_the_film_moves(tmp_path):
    traj = small_run(*RUNS["sphere"])
    path = animate(traj, summarise(traj), path=tmp_path / "run.gif")
    film = Image.open(path)
    assert film.n_frames == 12
    first = np.asarray(film.convert("L"), dtype=int)
    film.seek(11)
    last = np.asarray(film.convert("L"), dtype=int)
    assert (np.abs(first - last) > 40).sum() > 100


def test_the_style_is_left_behind():
    before = matplotlib.rcParams["font.family"]
    with style():
        assert matplotlib.rcParams["font.family"] == ["STIXGeneral"]
    assert matplotlib.rcParams["font.family"] == before
