"""Pictures need no backend and no screen, and leave the user's matplotlib as it was."""

import os
import subprocess
import sys
import threading

import matplotlib as mpl
import numpy as np

from attnflow.plot.style import RC, style

LOOK = """
import sys
import matplotlib

def settings():
    return {name: matplotlib.rcParams._get(name) for name in matplotlib.rcParams}

before = settings()
import attnflow, attnflow.bench, attnflow.bench.plot, attnflow.cli, attnflow.figures, attnflow.plot
import attnflow.explore, attnflow.plot.model, attnflow.plot.screen
assert settings() == before, "imported"
assert "matplotlib.pyplot" not in sys.modules, "pyplot was imported"
"""

DRAW = """
import numpy as np
import attnflow as af
from attnflow.report import summarise

ts = np.linspace(0.0, 2.0, 5)
traj = af.simulate(af.SA(4.0), af.initial.sphere(n=4, d=3, key=0), ts)
report = summarise(traj)
attnflow.plot.overview(traj, report, path="run.png")
attnflow.plot.animate(traj, report, path="run.gif")
assert settings() == before, "drawn"
matplotlib.use("svg")
attnflow.plot.overview(traj, report, path="run.pdf")
assert matplotlib.get_backend() == "svg", "the user's choice"
"""


def ran(code, folder):
    """A script in a process without a screen and without a word about backends."""
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_and_drawing_leaves_matplotlib_as_it_was(tmp_path):
    ran(LOOK + DRAW, tmp_path)
    for name, first in {"png": b"\x89PNG", "pdf": b"%PDF", "gif": b"GIF8"}.items():
        assert (tmp_path / f"run.{name}").read_bytes().startswith(first)


def test_threads_that_draw_leave_the_settings_as_they_were():
    """One that begins first and ends first would leave the other's settings behind."""
    before, entered, wrong = mpl.rcParams["font.size"], threading.Event(), []

    def draw(waits):
        with style():
            entered.set()
            threading.Event().wait(waits)
            if mpl.rcParams["axes.spines.top"] is not RC["axes.spines.top"]:
                wrong.append(waits)

    threads = [threading.Thread(target=draw, args=(waits,)) for waits in (0.1, 0.3)]
    threads[0].start()
    assert entered.wait(5.0)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert mpl.rcParams["font.size"] == before != RC["font.size"]
    assert np.all(mpl.rcParams["axes.spines.top"])
