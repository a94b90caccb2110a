"""The page in a real browser: from click to picture, by link, by keyboard, on a phone."""

import io

import numpy as np
import pytest
from PIL import Image

from explore.visitor import choose, data, drawn, expected, fill, query, settled, turn

pytestmark = pytest.mark.slow

SMALL = "/?n=24&d=3&until=4.0"
VIEWS = {
    "flow": ("/", "became", "flow-tokens"),
    "rescaled": (
        "/?system=RescaledAttention&start=cube&number=1&n=40&until=10",
        "became",
        "flow-tokens",
    ),
    "phase": ("/phase", "SA, n = 16", "diagram"),
    "theorem": ("/theorems?id=T6.8", "It holds", "example"),
    "model": ("/model", "layers", "model-tokens"),
}
PARTS = {
    "flow": "flow",
    "rescaled": "flow",
    "phase": "phase",
    "theorem": "theorem",
    "model": "model",
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_each_part_draws_its_picture(visit, screenshots, view, theme):
    address, word, plot = VIEWS[view]
    page = visit(address)
    settled(page, PARTS[view], word)
    drawn(page, plot)
    if page.query_selector(f"#{PARTS[view]}-play"):
        turn(page, PARTS[view], "End")
    if theme == "dark":
        page.click("#theme-switch")
    page.wait_for_timeout(1500)
    page.screenshot(path=screenshots / f"{view}-{theme}.png", full_page=True)
    pixels = np.asarray(
        Image.open(io.BytesIO(page.locator(f"#{plot}").screenshot())).convert("RGB")
    )
    paper = (255, 255, 255) if theme == "light" else (0x16, 0x18, 0x1D)
    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    assert tuple(pixels[1, 1]) == paper
    assert len(colours) > 30, "an empty plot has its paper and its axes alone"
    assert counts.max() < 0.999 * counts.sum()


def test_tokens_are_where_the_run_has_them(visit):
    page = visit(SMALL)
    settled(page, "flow", "became")
    drawn(page, "flow-tokens")
    run = expected(SMALL)
    assert turn(page, "flow", "End").startswith("t = 4,")
    seen = data(page, "flow-tokens")
    np.testing.assert_allclose(np.stack([seen[k] for k in "xyz"], 1), run.final, atol=1e-4)
    assert turn(page, "flow", "Home").startswith("t = 0,")
    seen = data(page, "flow-tokens")
    np.testing.assert_allclose(np.stack([seen[k] for k in "xyz"], 1), run.xs[0], atol=1e-4)
    assert turn(page, "flow", *["ArrowRight"] * 20).startswith("t = 1,")
    seen = data(page, "flow-tokens")
    np.testing.assert_allclose(np.stack([seen[k] for k in "xyz"], 1), run.xs[20], atol=1e-4)
    overlaps = np.asarray(run.xs[20]) @ np.asarray(run.xs[20]).T
    density, _ = np.histogram(overlaps[np.triu_indices(24, 1)], 40, (-1, 1), density=True)
    np.testing.assert_allclose(data(page, "flow-overlaps")["y"], density, atol=2e-3)


def test_a_run_plays_until_it_is_paused(visit):
    page = visit("/?n=12&d=2&until=4.0", motion="no-preference")
    settled(page, "flow", "became")
    page.wait_for_function(
        "document.getElementById('flow-time-label').innerText.startsWith('t = 0.2')"
    )
    page.click("#flow-play")
    page.wait_for_function("document.getElementById('flow-play').innerText === 'Play'")
    page.wait_for_timeout(300)
    at = page.inner_text("#flow-time-label")
    page.wait_for_timeout(600)
    assert page.inner_text("#flow-time-label") == at
    assert not at.startswith("t = 4,")


def test_a_new_beta_runs_at_once_and_its_link_restores_it(visit):
    page = visit(SMALL)
    settled(page, "flow", "became")
    drawn(page, "flow-tokens")
    turn(page, "flow", "End")
    before = data(page, "flow-tokens")["x"]
    fill(page, "flow-number", 9)
    page.wait_for_url("**number=9*")
    page.wait_for_function(
        "document.getElementById('flow-time-label').innerText.startsWith('t = 0,')"
    )
    turn(page, "flow", "End")
    after = data(page, "flow-tokens")["x"]
    assert np.abs(np.subtract(before, after)).max() > 0.01
    again = visit("/" + page.url.split("/")[-1])
    settled(again, "flow", "became")
    drawn(again, "flow-tokens")
    turn(again, "flow", "End")
    assert data(again, "flow-tokens")["x"] == after
    assert again.input_value("#flow-number") == "9"


def test_the_way_back_shows_the_views_that_were_there(visit):
    page = visit(SMALL)
    settled(page, "flow", "24 tokens")
    fill(page, "flow-n", 12)
    page.click("#flow-run")
    settled(page, "flow", "12 tokens")
    page.go_back()
    page.wait_for_function("document.getElementById('flow-n').value === '24'")
    settled(page, "flow", "24 tokens")
    assert page.url.endswith(SMALL)
    page.go_forward()
    settled(page, "flow", "12 tokens")
    assert page.input_value("#flow-n") == "12"
    page.click("a.to-part >> text=Theorems")
    page.wait_for_selector("#theorem-run")
    page.click("a.to-part >> text=Flow")
    settled(page, "flow", "12 tokens")


def test_news_of_another_run_does_not_stop_the_clock(visit):
    """As a late answer would bring it."""
    page = visit("/?n=500&d=3&until=20.0")
    page.wait_for_selector("#flow-progress:not(.hidden)")
    late = {
        "job": "another",
        "message": "late",
        "progress": "1",
        "over": True,
        "finished": "another",
    }
    page.evaluate("late => window.dash_clientside.set_props('flow-status', { data: late })", late)
    settled(page, "flow", "500 tokens")
    drawn(page, "flow-tokens")


def test_a_new_beta_while_others_run_is_what_is_shown_in_the_end(visit):
    page = visit("/?n=100&d=3&until=10.0")
    page.wait_for_selector("#flow-run")
    for k, beta in enumerate((1, 2, 3, 5, 7)):
        fill(page, "flow-number", beta)
        page.wait_for_timeout(150 * (k + 1))
    fill(page, "flow-n", 30)
    page.click("#flow-run")
    settled(page, "flow", "30 tokens")
    assert (query(page)["number"], query(page)["n"]) == ("7.0", "30")


def test_the_speed_counts_while_it_plays(visit):
    page = visit("/?n=6&d=2&until=4.0", motion="no-preference")
    settled(page, "flow", "became")
    choose(page, "flow-speed", "½×")
    page.wait_for_function("document.getElementById('flow-play').innerText === 'Play'")
    begun = page.evaluate("performance.now()")
    page.click("#flow-play")
    page.wait_for_timeout(500)
    choose(page, "flow-speed", "4×")
    page.wait_for_function("document.getElementById('flow-play').innerText === 'Play'")
    assert page.evaluate("performance.now()") - begun < 80 * 160


def test_choosing_a_system_shows_its_equation_and_names_its_number(visit):
    page = visit(SMALL)
    choose(page, "flow-system", "Kuramoto")
    page.wait_for_function("document.getElementById('label-flow-number').innerText === 'K'")
    assert "θ_i'" in page.inner_text("#equation")
    settled(page, "flow", "200 tokens")
    assert query(page)["system"] == "Kuramoto"
    page.wait_for_selector("#box-flow-attention.hidden", state="attached")
    assert page.inner_text("#caption-flow-energy") == "Order parameter r along time"
    for name in ("d", "scores", "values", "heads"):
        assert not page.is_visible(f"#row-flow-{name}")
    choose(page, "flow-system", "SA")
    page.wait_for_selector("#row-flow-d")
    assert page.is_visible("#row-flow-scores")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/?system=SB", "SB"),
        ("/?n=5000", "Tokens n: input should be less than or equal to 2000"),
        ("/?n=2000&d=64", "at most 2,000,000 are kept here"),
        ("/?values=typed&d=2&values_typed=__import__('os')", "only numbers can be typed here"),
        ("/?values=typed&d=2&values_typed=1 2 3", "must have 2 rows of 2 numbers"),
        ("/phase?least=5&most=1", "must be above β from"),
        ("/phase?store=../../etc", "is not inside the folder"),
        ("/theorems?id=T9.9", "T9.9"),
        ("/model?folder=../..", "is not inside the folder"),
        ("/nowhere", "There is no page /nowhere here"),
    ],
)
def test_bad_input_is_told(visit, address, said):
    page = visit(address)
    page.wait_for_function("said => document.body.innerText.includes(said)", arg=said)
    assert "Traceback" not in page.content()


def test_long_work_shows_progress_and_can_be_cancelled(visit):
    page = visit("/?n=2000&d=3&until=5000.0&method=fixed")
    page.wait_for_selector("#flow-progress:not(.hidden)")
    page.wait_for_function("document.getElementById('flow-progress').value > 0")
    page.click("#flow-cancel")
    settled(page, "flow", "ancelled")
    page.wait_for_selector("#flow-progress.hidden", state="attached")
    fill(page, "flow-n", 24)
    fill(page, "flow-until", 4)
    choose(page, "flow-method", "adaptive")
    page.click("#flow-run")
    settled(page, "flow", "24 tokens")


def test_a_place_of_a_phase_diagram_opens_its_run(visit):
    page = visit("/phase?store=done.zarr")
    page.wait_for_selector("#diagram .heatmaplayer image")
    page.wait_for_timeout(500)
    box = page.locator("#diagram .nsewdrag").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.9)
    page.wait_for_selector("#flow-run")
    settled(page, "flow", "4 tokens")
    asked = query(page)
    assert (asked["n"], asked["d"], asked["number"]) == ("4", "2", "0.5")


def test_another_key_of_a_theorem(visit):
    page = visit("/theorems?id=3.6")
    settled(page, "theorem", "It holds")
    first = page.inner_text("#measured table")
    page.click("#another")
    page.wait_for_url("**key=1*")
    page.wait_for_function(
        "first => (document.querySelector('#measured table')?.innerText ?? first) !== first",
        arg=first,
    )
    assert "within" in page.inner_text("#measured")


def test_words_of_a_model_and_another_layer_of_heads(visit):
    page = visit("/model?text=the cat saw a mat")
    settled(page, "model", "layers")
    drawn(page, "model-tokens")
    assert data(page, "model-tokens")["text"][1:4] == ["the", "cat", "saw"]
    before = data(page, "model-spectra", 0)["x"]
    fill(page, "model-layer", 2)
    page.wait_for_timeout(2500)
    assert data(page, "model-spectra", 0)["x"] != before


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_all_of_it(visit, screenshots, view):
    address, word, plot = VIEWS[view]
    page = visit(address, width=400)
    settled(page, PARTS[view], word)
    drawn(page, plot)
    page.screenshot(path=screenshots / f"{view}-phone.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator(f"#{plot}").bounding_box()["width"] > 300


@pytest.mark.parametrize("view", VIEWS)
def test_everything_that_one_can_use_has_a_name(visit, view):
    page = visit(VIEWS[view][0])
    settled(page, PARTS[view], VIEWS[view][1])
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, textarea, button, a, summary, [role]")]
            .filter((e) => !(e.labels?.length || e.ariaLabel || e.innerText?.trim()
                             || e.ariaLabelledByElements?.some((by) => by.innerText.trim())))
            .filter((e) => e.offsetParent && !e.closest(".modebar"))
            .filter((e) => e.tabIndex >= 0 && e.getAttribute("aria-hidden") !== "true")
            .map((e) => e.outerHTML.slice(0, 200))"""
    )
    assert nameless == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_list_is_read_with_its_label(visit, view):
    page = visit(VIEWS[view][0])
    page.wait_for_selector(".dash-dropdown")
    for box in page.locator(".dash-dropdown").all():
        label = page.inner_text(f"#label-{box.get_attribute('id')}")
        named = page.get_by_role("button", name=f"{label} ", include_hidden=True)
        assert box.get_attribute("id") in [one.get_attribute("id") for one in named.all()]
        target = box.locator("xpath=..").locator(".dash-dropdown-focus-target")
        assert target.get_attribute("aria-hidden") is None
        assert target.get_attribute("aria-labelledby").startswith(
            f"label-{box.get_attribute('id')}"
        )
    assert page.locator("h1").count() == 1
    assert page.get_attribute("html", "lang") == "en"


def test_by_keyboard_alone(visit):
    page = visit(SMALL)
    settled(page, "flow", "became")
    page.focus("#flow-key")
    page.keyboard.press("Control+a")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    page.wait_for_url("**key=7*")
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"flow-run", "flow-cancel", "flow-play", "flow-save-png", "theme-switch"} <= reached
