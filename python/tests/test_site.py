"""The site of the documentation, as `make site` has built it, in a browser without a network."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from browsers import IS_THERE

SITE = Path(__file__).parents[2] / "target" / "site"
REQUIRED = os.environ.get("GRAVEN_SITE") == "required"

pytestmark = [
    pytest.mark.skipif(not (REQUIRED or (SITE / "index.html").exists()), reason="make site"),
    pytest.mark.skipif(not REQUIRED and not IS_THERE, reason="no browser"),
]


@pytest.fixture
def page(browser):
    """A page that asks for nothing but files of the site."""
    elsewhere, errors = [], []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("request", lambda request: elsewhere.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert not [url for url in elsewhere if not url.startswith(("file:", "data:", "blob:"))]
    assert not errors


def opened(page, name):
    page.goto((SITE / name).as_uri())


def pages():
    every = (path for path in SITE.rglob("*.html") if "rust" not in path.parts)
    return sorted(path for path in every if path.name != "404.html")  # a server's, at its root


def test_search_finds_what_pages_say_without_a_network(page):
    opened(page, "index.html")
    page.keyboard.press("/")
    page.keyboard.type("torn-bit-never-flips")
    page.wait_for_selector(".md-search-result__item a")
    found = page.eval_on_selector_all(".md-search-result__item a", "all => all.map(a => a.href)")
    assert any("reference/designs.html" in url for url in found)


def test_no_page_takes_anything_from_the_network():
    for path in pages():
        text = path.read_text(encoding="utf-8")
        taken = re.findall(r"<(?:script|img|link)[^>]*(?:src|href)=\"(https?:[^\"]*)\"", text)
        assert not taken, path


def test_every_link_leads_to_something():
    for path in pages():
        text = path.read_text(encoding="utf-8")
        for link in re.findall(r"<a[^>]*href=\"([^\"#?]+)[^\"]*\"", text):
            if not re.match(r"\w+:", link):
                assert (path.parent / link).exists(), (path, link)


@pytest.mark.parametrize(
    ("name", "heading", "text"),
    [
        ("index.html", "Graven", "A crash laboratory lets power fail"),
        ("tutorials/start.html", "Five minutes", "graven run --design silo"),
        ("reference/command-line.html", "graven adversary", "--schedules"),
        ("reference/python.html", "compare", "Runs"),
        ("reference/designs.html", "silo-literal", "silo.log_buffer_entries"),
        ("reference/statistics.html", "Transactions", "throughput_tx_per_s"),
        ("reference/parameters.html", "pm", "pm.write_ns"),
        ("reference/litmus.html", "silo/undo-order", "begin"),
        ("rust/graven/index.html", "Crate", "graven"),
    ],
)
def test_pages_have_what_they_are_for(page, name, heading, text):
    opened(page, name)
    headings = page.eval_on_selector_all("h1, h2, h3", "all => all.map(h => h.textContent)")
    assert any(heading in each for each in headings)
    assert text in page.inner_text("body")


def test_a_file_that_a_page_links_to_is_shown(page):
    opened(page, "explanation/architecture.html")
    with page.expect_navigation():
        page.click("a[href*='source/crates/base/src/memory/image.rs']")
    assert "pub struct Image" in page.inner_text("body")


def test_a_phone_shows_the_menu_and_no_page_is_wider(browser):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    for name in (
        "index.html",
        "tutorials/start.html",
        "results/claims.html",
        "reference/designs.html",
    ):
        opened(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.is_visible(".md-header label[for='__drawer']")
    page.close()


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("index.html", 390, "light"),
        ("tutorials/start.html", 1280, "light"),
        ("tutorials/start.html", 390, "dark"),
        ("guides/designs.html", 1280, "dark"),
    ],
)
def test_pages_can_be_read_by_everyone(browser, name, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened(page, name)
    page.wait_for_function("document.querySelector('.md-search').ariaLabel")
    # Tables whose columns need no words have none.
    found = Axe().run(page, options={"rules": {"empty-table-header": {"enabled": False}}})
    page.close()
    assert found.violations_count == 0, found.generate_report()
