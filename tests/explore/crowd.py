"""Many visitors at once, each with runs of its own that can be told from those of all others."""

import random
import threading
import time
from collections import Counter

import numpy as np

from attnflow import simulate
from attnflow.explore.form import Form
from explore.clients import Page

SIZES = (12, 18, 24, 30)
"""Few, as each is compiled."""


def form_of(client, k):
    """The k-th run of a client: no other has its key and its β."""
    n = SIZES[(client + k) % len(SIZES)]
    return Form(n=n, key=1000 * client + k, number=1 + 0.2 * client + 0.01 * k, until=6.0)


class Visitor(threading.Thread):
    """Starts runs until the time is over: some it cancels, some it replaces, some it watches."""

    def __init__(self, address, client, until, first=0):
        super().__init__(daemon=True)
        self.page = Page(address)
        self.client, self.until, self.k = client, until, first
        self.count, self.results, self.trouble = Counter(), [], []
        self.choose = random.Random(client)

    def run(self):
        try:
            while time.monotonic() < self.until or not self.count["started"]:
                self.once()
        except Exception as error:
            self.trouble.append(f"client {self.client}: {error!r}")

    def once(self):
        """One run, from its start to its end."""
        form = form_of(self.client, self.k)
        self.k += 1
        self.page.fill("flow", n=form.n, key=form.key, until=form.until, number=form.number)
        said = self.page.press("flow-run")
        self.count["started"] += 1
        if said != "Running …":
            self.trouble.append(f"client {self.client} was told {said!r}")
        if (what := self.choose.random()) < 0.6:
            for _ in range(self.choose.randrange(4)):
                time.sleep(0.15)
                self.page.tick()
            self.count["cancelled" if what < 0.4 else "replaced"] += 1
            if what < 0.4:
                self.page.press("flow-cancel")
            return
        said = self.page.wait(seconds=300)
        if "clusters became" in said:
            self.count["completed"] += 1
            self.results.append((form, self.page.frames))
        else:
            self.trouble.append(f"client {self.client} was told {said!r}")


class Crowd:
    """Visitors that come together and go together."""

    def __init__(self, address, clients, seconds, first=0):
        until = time.monotonic() + seconds
        self.visitors = [Visitor(address, k, until, first) for k in range(clients)]
        for visitor in self.visitors:
            visitor.start()
        for visitor in self.visitors:
            visitor.join(seconds + 600)

    @property
    def count(self):
        return sum((visitor.count for visitor in self.visitors), Counter())

    @property
    def trouble(self):
        late = [f"client {v.client} hangs" for v in self.visitors if v.is_alive()]
        return sum((visitor.trouble for visitor in self.visitors), late)

    @property
    def said(self):
        """All that the server said, as text."""
        return "\n".join(text for visitor in self.visitors for text in visitor.page.said)

    def wrong(self):
        """Those results that are not what was asked for, against a run of our own."""
        return [
            f"{form} ended with an error of {error}"
            for visitor in self.visitors
            for form, frames in visitor.results
            if (error := error_of(form, frames)) > 1e-4
        ]


def error_of(form, frames):
    """The largest difference of the tokens that a page was sent from those of a direct run."""
    run = form.build().build()
    flow = simulate(run.system, run.x0, run.ts, method=run.method)
    seen, xs = np.array(frames["positions"]), np.moveaxis(np.asarray(flow.xs), 2, 1)
    return np.abs(seen - xs).max() if seen.shape == xs.shape else np.inf
