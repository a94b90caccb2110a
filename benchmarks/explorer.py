"""How quick `attnflow explore` is, seen from a real browser: a new β, and a moment of the slider.

    python benchmarks/explorer.py

needs the extras `explore` and `dev`, and Chromium (its path in CHROMIUM, if it is not on the PATH).
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from playwright.sync_api import Page, sync_playwright

GL = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

TURN = """async (betas) => {
    const field = document.getElementById("flow-number");
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    const took = [];
    for (const beta of betas) {
        const before = window.attnflowDrawTimes.length;
        const begun = performance.now();
        set.call(field, beta);
        field.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((done) => {
            const look = () =>
                window.attnflowDrawTimes.length > before ? done() : requestAnimationFrame(look);
            look();
        });
        took.push(performance.now() - begun);
        await new Promise((done) => setTimeout(done, 2000));
    }
    return took;
}"""
"""Milliseconds from a new β in the field to the first moment of its run on the screen."""


def moments(page: Page, address: str) -> list[float]:
    """Milliseconds that the moments of a run take when they are gone through."""
    page.goto(address)
    page.wait_for_function("window.attnflowDrawTimes.length > 0", timeout=120_000)
    page.wait_for_timeout(3000)
    page.evaluate("window.attnflowDrawTimes.length = 0")
    page.focus("#flow-moment [role=slider]")
    for _ in range(40):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(60)
    return list(page.evaluate("window.attnflowDrawTimes"))


def told(name: str, took: list[float]) -> None:
    """One line of the table."""
    print(
        f"{name}: median {statistics.median(took):.0f} ms, {min(took):.0f} to {max(took):.0f} ms, "
        f"{len(took)} times"
    )


def main() -> None:
    """Serve, look, and tell."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "attnflow", "explore", folder]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found is not None
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=GL)
            page = browser.new_context(reduced_motion="reduce").new_page()
            page.goto(found[0])
            page.wait_for_function("window.attnflowDrawTimes.length > 0", timeout=120_000)
            page.wait_for_timeout(3000)
            told("a new β, n = 200 on S²", page.evaluate(TURN, [5, 6, 3, 7, 2, 8, 4, 9, 1]))
            told("a moment, n = 500 on S²", moments(page, found[0] + "?n=500"))
            told("a moment, n = 500 on the circle", moments(page, found[0] + "?n=500&d=2"))
            browser.close()
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
