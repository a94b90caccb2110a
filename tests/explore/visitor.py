"""What a visitor does and sees on the page."""

import re

from attnflow import simulate
from attnflow.explore.form import Form


def settled(page, part, word):
    """Wait until a view says a word and its pictures are at rest; returns what it says."""
    page.wait_for_function(
        "([id, word]) => (document.getElementById(id)?.innerText || '').includes(word)",
        arg=[f"{part}-message", word],
    )
    return page.inner_text(f"#{part}-message")


def turn(page, part, *keys):
    """Press keys on the slider, and wait until Plotly knows of it; returns what is said there."""
    page.focus(f"#{part}-moment [role=slider]")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(900)
    return page.inner_text(f"#{part}-time-label")


def drawn(page, plot):
    """Wait until a plot has data."""
    page.wait_for_function(
        "id => document.querySelector(`#${id} .js-plotly-plot`)?.data?.length > 0", arg=plot
    )
    page.wait_for_timeout(300)


def data(page, plot, trace=-1):
    """The numbers of a trace of a plot, as Plotly holds them."""
    return page.evaluate(
        """([id, trace]) => {
            const found = document.querySelector(`#${id} .js-plotly-plot`).data.at(trace);
            const plain = (a) => a && (ArrayBuffer.isView(a) ? [...a] : a._inputArray ?? a);
            return Object.fromEntries(["x", "y", "z", "text"].map((k) => [k, plain(found[k])]));
        }""",
        [plot, trace],
    )


def fill(page, name, text):
    """Type something in a field, and leave it."""
    page.fill(f"#{name}", str(text))
    page.press(f"#{name}", "Tab")


def choose(page, name, word):
    """Choose a word of a list."""
    page.click(f"#{name}")
    page.get_by_role("option", name=word, exact=True).click()


def query(page):
    """The fields in the address."""
    return dict(re.findall(r"[?&]([^=]+)=([^&]*)", page.url))


def expected(address):
    """The states of the run that an address names, computed here."""
    run = Form.from_address(address.removeprefix("/")).build().build()
    return simulate(run.system, run.x0, run.ts, method=run.method, key=run.key)
