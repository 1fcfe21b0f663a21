"""The first paint of an HTML report of 1,000 cases, 100 of which failed, and of an empty page as large.

`python tests/benchmarks/page_paint.py` prints both, in seconds, as JSON: from the start of the navigation
to the first text on screen, in Chromium, the median of several loads in turns.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from evaltui.reports.html.page import html_report

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS), str(TESTS / "reports")]

_LOADS = 9
# Waited for in the page: what Playwright waits with is text that the policy does not let run twice.
_PAINT = """() => new Promise((resolve) => new PerformanceObserver((paints) => {
    for (const paint of paints.getEntriesByName("first-contentful-paint")) resolve(paint.startTime / 1000);
}).observe({type: "paint", buffered: true}))"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        from environments import browser_path
        from report_pages import many

        report, empty = Path(folder, "report.html"), Path(folder, "empty.html")
        report.write_text("".join(html_report(many(1_000, 100))), encoding="utf-8")
        size = report.stat().st_size
        # One line to paint, and as many bytes to read.
        data = f'<script type="text/plain">{"x" * size}</script>'
        empty.write_text(f"<!doctype html><title>empty</title><p>One line</p>{data}", encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        loads = [(_first_paint(browser, report), _first_paint(browser, empty)) for _ in range(_LOADS + 1)][1:]
        ours, theirs = (statistics.median(side) for side in zip(*loads, strict=True))
        browser.close()
    print(json.dumps({"ours": ours, "theirs": theirs, "megabytes": size / 1024 / 1024}))


def _first_paint(browser: Browser, page_file: Path) -> float:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(page_file.as_uri())
    seconds: float = page.evaluate(_PAINT)
    page.close()
    return seconds


if __name__ == "__main__":
    main()
