import numpy as np
from matplotlib.figure import Figure

from attnflow.plot.times import Plateau, draw_plateaus, plateaus

TIMES = np.array([0.0, 1.0, 2.0, 20.0, 30.0, 1000.0])
COUNTS = np.array([9, 4, 3, 3, 2, 1])


def test_short_stretches_are_no_plateaus():
    assert plateaus(TIMES, COUNTS) == [Plateau(2.0, 30.0, 3), Plateau(30.0, 1000.0, 2)]
    assert plateaus(TIMES, COUNTS, decades=1.3) == [Plateau(30.0, 1000.0, 2)]


def test_plateaus_are_named_in_the_middle_of_a_log_axis():
    ax = Figure().subplots()
    ax.set(xscale="log", xlim=(1, 1000))
    draw_plateaus(ax, plateaus(TIMES, COUNTS))
    assert [text.get_text() for text in ax.texts] == ["3 clusters", "2 clusters"]
    assert np.allclose([text.get_position()[0] for text in ax.texts], np.sqrt([60, 30_000]))
    assert [line.get_xdata()[0] for line in ax.lines] == [30.0, 1000.0]
