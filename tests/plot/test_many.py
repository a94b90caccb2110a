"""Pictures of many tokens: what is drawn is what was given."""

import numpy as np

from attnflow.meanfield import MeanFieldRun
from attnflow.meanfield.bbgky import Comparison, TwoPoint
from attnflow.plot import closure_diagram, convergence_diagram


def test_the_convergence_diagram_draws_means_and_bounds(tmp_path):
    w1 = np.array([[[0.2, 0.3], [0.4, 0.5]], [[0.02, 0.03], [0.02, 0.05]]])
    run = MeanFieldRun(
        np.array([0.0, 1.0]), np.array([10, 1000]), w1, np.array([0.0, 2.0]), np.ones((2, 4))
    )
    figure = convergence_diagram({"SA": run}, tmp_path / "a.png")
    [axes] = figure.axes
    drawn = {line.get_linestyle() + line.get_marker(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["-o"], [0.4, 0.04])
    np.testing.assert_allclose(drawn["--None"], np.exp(2.0) * np.array([0.3, 0.02]))
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_the_closure_diagram_draws_laws_and_errors(tmp_path):
    ts, flat = np.array([0.0, 1.0, 2.0]), np.full((3, 8), 1 / (2 * np.pi))
    sampled = TwoPoint(4.0, 8, 100, ts, flat, flat / 10, 0 * flat, flat)
    found = Comparison(ts, 3 * flat, np.array([0.0, 0.1, 0.2]), ts)
    figure = closure_diagram(sampled, {"chaos": found}, [0.1, 1.9], tmp_path / "b.png")
    first, second, errors = figure.axes
    assert first.get_title() == "$t = 0$"
    assert second.get_title() == "$t = 2$"
    np.testing.assert_allclose(second.lines[1].get_ydata(), 3)
    np.testing.assert_allclose(second.lines[0].get_ydata(), 1)
    np.testing.assert_allclose(errors.lines[0].get_ydata(), [0, 10, 20])
