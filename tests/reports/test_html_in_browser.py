"""The HTML report in a real browser: filter, keys, links, themes; with hostile texts, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import browser_path
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright
from report_pages import HOSTILE, hostile, judged, many

from evaltui.reports.html import bodies as pages
from evaltui.reports.html.page import html_report

# Of so many cases so many failed, and more than so many are data: 200 are the limit of users.
CASES, FAILING, MOST_CASES = 60, 50, 40
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
LAST = "thermostat:case_00059"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = browser_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("reports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "MAX_CASES", MOST_CASES)
        _write_reports(folder)
    return {path.stem: path.as_uri() for path in folder.iterdir()}


def _write_reports(folder: Path) -> None:
    for name, run in {"judged": judged(), "many": many(CASES, FAILING), "hostile": hostile()}.items():
        (folder / f"{name}.html").write_text("".join(html_report(run)), encoding="utf-8")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must not complain, ask for anything, or open a dialog."""
    page = browser.new_page(viewport=DESK, color_scheme="dark")
    page.set_default_timeout(10_000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda request: None if is_ours(request.url) else complaints.append(request.url))
    yield page
    page.close()
    assert complaints == []


def is_ours(url: str) -> bool:
    return url.startswith(("file:", "data:,", "blob:"))


def shown(page: Page):
    return page.locator("details.case:not([hidden])")


def test_the_filter_goes_by_outcome_and_by_text(page, urls):
    page.goto(urls["many"])
    expect(shown(page)).to_have_count(CASES)
    page.locator("[data-status=PASSED][aria-pressed]").click()
    expect(shown(page)).to_have_count(CASES - FAILING)
    expect(page.locator("#shown")).to_have_text(f"{CASES - FAILING} of {CASES}")
    page.locator("[data-status=FAILED][aria-pressed]").click()
    expect(shown(page)).to_have_count(CASES)
    page.locator("[data-status=PASSED][aria-pressed]").click()
    page.fill("#search", "00012 thermo")
    expect(shown(page)).to_have_count(1)
    page.fill("#search", "no such case")
    expect(page.locator("#none")).to_be_visible()
    page.locator("#clear").click()
    expect(shown(page)).to_have_count(CASES)
    expect(page.locator("#shown")).to_have_text("")


def test_a_case_opens_also_where_it_is_data_and_the_address_is_its_link(page, urls):
    page.goto(urls["many"])
    data = page.locator(".body[data-at]")
    assert data.count() == CASES - MOST_CASES
    for name in ("case_00059", "case_00049"):
        body = page.locator(f"[id='thermostat:{name}']")
        page.locator(f".case:has([id='thermostat:{name}']) .id").click()
        expect(body.locator("h4").first).to_be_visible()
        assert page.evaluate("decodeURIComponent(location.hash)") == f"#thermostat:{name}"
    expect(body.get_by_text("unexpected call", exact=True)).to_be_visible()
    expect(body.get_by_text("hello 49").first).to_be_visible()
    body.locator("details.trace > summary").click()
    expect(body.get_by_text("612 → 38")).to_be_visible()
    assert data.count() == CASES - MOST_CASES - 2


def test_a_link_opens_its_case_wherever_it_is(page, urls):
    page.goto(f"{urls['many']}#{LAST}")
    body = page.locator(f"[id='{LAST}']")
    expect(body.get_by_text("hello 59").first).to_be_visible()
    expect(body).to_be_in_viewport()
    # A link that is followed on the page, to a case that the filter hides.
    page.fill("#search", "59")
    page.evaluate("location.hash = '#thermostat:case_00003'")
    expect(page.locator("[id='thermostat:case_00003'] .verdict")).to_be_in_viewport()


def current(page: Page) -> str:
    return page.locator(".case.current .id").inner_text()


def test_the_keys(page, urls):
    page.goto(urls["judged"])
    for key, case in {"j": "night", "k": "night", "J": "night"}.items():
        page.keyboard.press(key)
        assert current(page) == case
    page.keyboard.press("j")
    assert current(page) == "turn_off_bedroom"
    body = page.locator(".case.current .body")
    page.keyboard.press("Enter")
    expect(body).to_be_visible()
    page.keyboard.press("Enter")
    expect(body).to_be_hidden()
    page.keyboard.press("k")
    here = page.locator(".here")
    page.keyboard.press("n")
    expect(here).to_contain_text("It is warm.")
    page.keyboard.press("n")
    expect(here).to_contain_text("rubric_based_final_response_quality_v1")
    for _ in range(3):
        page.keyboard.press("n")
    # The next case that did not pass, and its first difference.
    expect(here).to_contain_text("string, expected integer")
    assert current(page) == "thermostat_night"
    page.keyboard.press("N")
    expect(here).to_contain_text("final_response_match_v2")
    page.keyboard.press("/")
    page.keyboard.type("jkn?")
    expect(page.locator("#search")).to_have_value("jkn?")
    page.keyboard.press("Escape")
    expect(page.locator("#search")).to_have_value("")
    expect(page.locator("#search")).not_to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_text("Next, previous difference")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()


def test_n_goes_through_cases_that_are_data(page, urls):
    page.goto(urls["many"])
    page.fill("#search", "00049")
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    expect(page.locator(".here")).to_contain_text("string, expected integer")
    expect(page.locator(".here")).to_be_in_viewport()


def ground(page: Page) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def test_dark_and_light_as_the_system_has_it_or_as_chosen(page, urls):
    page.goto(urls["judged"])
    dark = ground(page)
    page.emulate_media(color_scheme="light")
    light = ground(page)
    assert dark != light
    page.locator("#theme").click()
    assert ground(page) == dark
    page.reload()
    assert ground(page) == dark
    page.locator("#theme").click()
    assert ground(page) == light
    page.emulate_media(media="print", color_scheme="dark")
    page.locator("html[data-theme]").evaluate("root => root.dataset.theme = 'dark'")
    assert ground(page) == light


def test_it_can_be_read_without_scripts(browser, urls):
    context = browser.new_context(java_script_enabled=False, viewport=DESK)
    page = context.new_page()
    page.goto(urls["judged"])
    expect(page.locator("#tools")).to_be_hidden()
    expect(page.get_by_text("Says please and thank you").first).to_be_visible()
    page.get_by_text("away_for_a_week", exact=True).click()
    expect(page.get_by_text("TimeoutError: no response within 30 s")).to_be_visible()
    page.goto(f"{urls['judged']}#thermostat:thermostat_night")
    expect(page.get_by_text("string, expected integer").first).to_be_visible()
    page.goto(urls["many"])
    page.locator(".id").last.click()
    expect(page.locator(".body").last).to_contain_text("Turn on JavaScript")
    context.close()


def test_printed_what_did_not_pass_is_open(page, urls):
    page.goto(urls["judged"])
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.case[open]").count() == 5
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.case[open]").count() == 1
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("name", ["judged", "hostile"])
def test_a_phone_scrolls_in_one_direction_only(page, urls, name):
    page.set_viewport_size(PHONE)
    page.goto(urls[name])
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_hostile_texts_do_not_run(page, urls):
    page.goto(urls["hostile"])
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    for _ in HOSTILE:
        page.keyboard.press("n")
    page.fill("#search", HOSTILE[1])
    expect(shown(page)).to_have_count(1)
    expect(shown(page).get_by_text(HOSTILE[1]).first).to_be_visible()
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.images.length") == 0


def test_the_policy_stops_what_gets_in_all_the_same(browser, urls):
    page = browser.new_page()
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto(urls["judged"])
    # Waited for in the page: what Playwright waits with is text that the policy does not let run twice.
    page.evaluate(
        """() => new Promise((resolve) => {
            window.stopped = [];
            addEventListener("securitypolicyviolation", (event) => {
                stopped.push(event.effectiveDirective);
                if (new Set(stopped).size >= 5) resolve();
            });
            const script = document.createElement("script");
            script.textContent = "window.pwned = 1";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", `<img src="x" onerror="window.pwned = 1">
                <img src="http://127.0.0.1:9/leak"><b onclick="window.pwned = 1" id="evil">x</b>
                <form action="http://127.0.0.1:9/"><button id="send">x</button></form>`);
            fetch("http://127.0.0.1:9/leak").catch(() => {});
            document.getElementById("evil").click();
            document.getElementById("send").click();
        })"""
    )
    assert {"script-src-elem", "script-src-attr", "img-src", "connect-src", "form-action"} <= set(
        page.evaluate("stopped")
    )
    assert page.evaluate("window.pwned") is None
    assert {one.failure for one in asked if not is_ours(one.url)} <= {"csp"}
    page.close()
