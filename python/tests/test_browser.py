"""Reports in a real browser: at a desk, on a phone, on paper.

Needs Playwright and Chromium (`make browser` installs the first, the system's packages the second).
Without them these tests are skipped, unless the environment says `GRAVEN_BROWSER=required`.
"""

from __future__ import annotations

import functools
import itertools
import os

import pytest
from browsers import IS_THERE
from conftest import HERE, python

SIZES = {"desk": (1280, 900), "phone": (390, 844)}

if os.environ.get("GRAVEN_BROWSER") != "required":
    pytestmark = pytest.mark.skipif(not IS_THERE, reason="Playwright and Chromium are not there")


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The pages of all papers and of a comparison."""
    folder = tmp_path_factory.mktemp("reports")
    call = functools.partial(python, HERE / "engine_hook.py")
    for arguments in (["reproduce", "all", "--out", "."], ["compare", "--threads", "1,4"]):
        done = call(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
    sets = ("a.json", "b.json")
    for name, time in zip(sets, ("100", "300"), strict=True):
        slow = ("--set", f"pm.write_ns={time}", "--no-report", "--out", name)
        assert call("compare", "--threads", "4", *slow, cwd=folder).returncode == 0
    assert call("diff", *sets, "--report", "changes.html", cwd=folder).returncode == 0
    return {
        "changes": folder / "changes.html",
        "paper": folder / "full" / "silo.html",
        "index": folder / "full" / "index.html",
        "compare": folder / "report.html",
    }


@pytest.fixture(params=SIZES)
def size(request):
    return request.param


@pytest.fixture(params=["paper", "index", "compare", "changes"])
def page(request, browser, reports, size):
    """A page that is open, with what it complained of and asked for."""
    width, height = SIZES[size]
    opened = browser.new_page(viewport={"width": width, "height": height})
    opened.said, opened.asked = [], []
    opened.on("console", lambda message: opened.said.append(message.text))
    opened.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.on("request", lambda asked: opened.asked.append(asked.url))
    opened.goto(reports[request.param].as_uri())
    opened.kind = request.param
    yield opened
    opened.close()


def test_it_loads_nothing_and_complains_of_nothing(page):
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in page.asked if url.startswith("file:")]) == 1


def test_the_page_is_as_wide_as_the_screen(page):
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0


def test_one_drawing_of_each_chart_is_shown(page, size):
    shown = {
        kind: page.locator(f"figure svg.{kind}:visible").count() for kind in ("wide", "narrow")
    }
    charts = page.locator("figure svg.wide").count()
    assert (
        shown
        == {"desk": {"wide": charts, "narrow": 0}, "phone": {"wide": 0, "narrow": charts}}[size]
    )
    assert charts > 0 or page.kind in ("index", "changes")


TEXT_OUTSIDE = """
svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                         box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
  }).map(text => text.textContent);
}
"""


def test_no_label_leaves_its_drawing(page):
    for svg in page.locator("figure svg:visible").element_handles():
        assert svg.evaluate(TEXT_OUTSIDE) == []


OVERLAPS = """
svg => {
  const texts = [...svg.querySelectorAll("[id*='ytick'] text, [id*='xtick'] text")];
  const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()]);
  const found = [];
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 2 && high > 2) found.push(`${a} / ${b}`);
  }));
  return found;
}
"""


def test_labels_of_axes_do_not_overlap(page):
    for svg in page.locator("figure svg:visible").element_handles():
        assert svg.evaluate(OVERLAPS) == []


CONTRAST = """
() => {
  const parse = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = colour => {
    const [r, g, b] = parse(colour).slice(0, 3).map(v => {
      const s = v / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return getComputedStyle(at).backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const element of document.querySelectorAll("body *:not(svg):not(svg *)")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.closest("[aria-hidden=true]") || !element.getClientRects().length) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push([contrast.toFixed(2), element.textContent.trim().slice(0, 40)]);
  }
  return found;
}
"""


def test_text_can_be_read(page):
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate(CONTRAST) == []


def test_headings_are_in_order_and_identifiers_are_unique(page):
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), levels
    names = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(names) == len(set(names))
    broken = page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')]"
        ".filter(a => !document.getElementById(a.hash.slice(1))).map(a => a.hash)"
    )
    assert broken == []


def test_what_scrolls_can_be_reached_by_keyboard(page):
    unreachable = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(e => e.tabIndex !== 0 || "
        "!e.getAttribute('aria-label')).length"
    )
    assert unreachable == 0


def test_claims_are_filtered_by_verdict(page):
    if page.kind != "paper":
        pytest.skip("claims are in the reports of papers")
    rows = page.locator(".claims.all tbody tr")
    everything = rows.count()
    assert page.locator(".claims.all tbody tr:visible").count() == everything > 5
    page.locator("#show-contradicted").check()
    shown = page.locator(".claims.all tbody tr:visible")
    assert 0 < shown.count() < everything
    assert {text.strip() for text in shown.locator(".badge").all_inner_texts()} == {"contradicted"}
    page.locator("#show-all").check()
    assert page.locator(".claims.all tbody tr:visible").count() == everything


def test_on_paper_nothing_is_cut_off(page):
    if page.viewport_size["width"] < 1000:
        pytest.skip("paper is as wide as a desk")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 760, "height": 1000})
    cut = page.evaluate(
        "[...document.querySelectorAll('figure svg, h1, h2, p, pre')].filter(e => "
        "e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
        ".map(e => e.tagName)"
    )
    assert cut == []
    assert page.pdf(format="A4", print_background=True).startswith(b"%PDF")


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture(params=["paper", "index", "compare", "changes"])
def in_scheme(request, browser, reports, size, scheme):
    """A page in the light or in the dark."""
    width, height = SIZES[size]
    opened = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    opened.goto(reports[request.param].as_uri())
    yield opened
    opened.close()


def test_an_accessibility_check_finds_nothing(in_scheme):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(in_scheme)
    assert found.violations_count == 0, found.generate_report()


def test_in_the_dark_text_of_drawings_is_light(in_scheme, scheme):
    colours = in_scheme.eval_on_selector_all(
        "figure svg text", "all => [...new Set(all.map(text => getComputedStyle(text).fill))]"
    )
    for colour in colours:
        red, green, blue = (int(part) for part in colour[4:-1].split(","))
        assert (red + green + blue > 384) == (scheme == "dark"), colour


def test_a_click_on_a_heading_sorts_a_table(browser, reports):
    page = browser.new_page()
    page.goto(reports["compare"].as_uri())
    table = page.locator("table.numbers").first
    column = "trs => trs.map(tr => Number(tr.cells[1].textContent))"
    head = table.locator("thead th").nth(1)
    head.locator("button").click()
    rising = table.locator("tbody tr").evaluate_all(column)
    assert rising == sorted(rising)
    assert len(rising) > 2
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert table.locator("tbody tr").evaluate_all(column) == sorted(rising, reverse=True)
    page.close()


def test_keys_of_the_configuration_are_found(browser, reports):
    page = browser.new_page()
    page.goto(reports["compare"].as_uri())
    every = page.locator("table.settings tbody tr").count()
    page.get_by_label("Find a key").fill("write_ns")
    shown = page.locator("table.settings tbody tr:not([hidden]) th").all_text_contents()
    assert 0 < len(shown) < every
    assert all("write_ns" in key for key in shown)
    page.get_by_label("Find a key").fill("")
    assert page.locator("table.settings tbody tr:not([hidden])").count() == every
    page.close()


def test_a_phone_shows_the_verdict_of_each_claim(browser, reports):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(reports["paper"].as_uri())
    rows = page.locator("table.claims.all tbody tr").count()
    badges = page.locator("table.claims.all .beside .badge:visible")
    assert badges.count() == rows > 0
    boxes = [badge.bounding_box() for badge in badges.all()]
    assert all(box["x"] + box["width"] <= 390 for box in boxes)
    page.close()


def test_panels_of_lines_have_one_scale(browser, reports):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(reports["compare"].as_uri())
    labels = page.eval_on_selector_all(
        "section[aria-labelledby='h-scaling'] svg.wide [id*='matplotlib.axis_']",
        "all => all.filter(axis => axis.id.split('_').pop() % 2 === 0)"
        ".map(axis => [...axis.querySelectorAll('text')].map(t => t.textContent).join())"
        ".filter(labels => labels)",
    )
    assert len(labels) > 1
    assert len(set(labels)) == 1
    page.close()


@pytest.mark.parametrize("at", SIZES)
def test_a_bar_leads_to_the_page_of_its_simulation_and_back(browser, reports, at):
    from axe_playwright_python.sync_playwright import Axe

    width, height = SIZES[at]
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(reports["compare"].as_uri())
    page.locator("[data-simulation]:visible").first.click()
    shown = page.locator(".simulation:visible")
    shown.locator("table.statistics").first.wait_for()
    assert shown.count() == 1
    assert page.locator("header h1").is_hidden()
    rows = shown.locator("table.statistics tbody tr:visible")
    every = rows.count()
    shown.get_by_label("Filter statistics").fill("cycles")
    assert 0 < rows.count() < every
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    shown.locator("a.back").click()
    page.locator("header h1").wait_for()
    assert page.locator(".simulation:visible").count() == 0
    page.close()
