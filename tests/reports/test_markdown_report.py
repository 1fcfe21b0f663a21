"""The Markdown report: short enough for a comment, honest about what it leaves out, and without injection."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from example_runs import failed, passed, report
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_pages import HOSTILE, hostile_case

from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import RunSummary, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.reports.markdown_report import MAX_BYTES, markdown_report
from evaltui.text.values import visible

MARKDOWN = (
    "a | b | c",
    "`x` ``y`` ```z```",
    "@octocat #12 :tada: org/repo#3 me@example.com",
    "[x](javascript:alert(1)) ![x](http://evil.example/x.png) www.evil.example http://evil.example",
    "*a* _b_ ~~c~~ **d** __e__ \\| \\` <!-- x",
    "</code></pre></details>\n\n# heading\n\n- list\n\n| a |\n|---|",
)
TAGS = {
    "h2",
    "p",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "code",
    "details",
    "summary",
    "pre",
    "blockquote",
}


class Rendered(HTMLParser):
    """A page as GitHub shows it: its tags, and its texts outside of code."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.prose, self.code = "", ""
        self._inside = 0
        html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(text)
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._inside += tag in ("code", "pre")

    def handle_endtag(self, tag):
        self._inside -= tag in ("code", "pre")

    def handle_data(self, data):
        if self._inside:
            self.code += data
        else:
            self.prose += data


@given(st.text(st.characters(codec=None), min_size=1, max_size=40))
@example(MARKDOWN[0])
@example(MARKDOWN[2])
@example(MARKDOWN[3])
@example(MARKDOWN[5])
@example(HOSTILE[0])
def test_no_text_of_others_is_read_as_markdown(text):
    page = markdown_report(report(hostile_case(text, f"x{text}"), agent=text, notes=(text,)))
    page.encode()
    found = Rendered(page)
    assert set(found.tags) <= TAGS
    assert found.tags.count("tr") == 2
    assert found.tags.count("details") == 1
    # What makes mentions, links of issues and emoji stands in code, where it does not count.
    assert not re.search("[@#:`]", found.prose)
    assert visible(text) in found.code


def test_a_run_without_cases_has_not_passed():
    assert "## – no case run" in markdown_report(report())


@pytest.mark.parametrize("number", [30, 1_500])
def test_it_is_short_enough_for_a_comment_and_says_what_is_left_out(number):
    run = report(*(failed(f"case_{n}") for n in range(number)))
    page = markdown_report(run)
    assert len(page.encode()) <= MAX_BYTES
    found = Rendered(page)
    # The first block has the reasons of the failures.
    rows, details = found.tags.count("tr") - 1, found.tags.count("details") - 1
    assert 0 < details <= rows <= number
    if rows < number:
        assert f"{number - rows:,} more cases did not pass" in found.prose
    if details < number:
        assert f"details of {number - details:,} cases left out" in found.prose
    # It is filled, not cut to be safe.
    assert number < 1_000 or len(page.encode()) > MAX_BYTES - 4_000


def test_one_huge_case_does_not_push_the_others_out():
    one = failed("huge")
    huge = replace(one, turns=one.turns * 400)
    found = Rendered(markdown_report(report(huge, failed("small"))))
    assert found.tags.count("tr") == 3
    assert "small" in found.code
    assert found.tags.count("details") >= 1


def test_what_changed_since_the_baseline():
    before, after = passed("night"), failed("night")
    sides = [
        RunSummary(name, {CaseId("thermostat", "night"): summarize(one)})
        for name, one in (("old", before), ("new", after))
    ]
    page = markdown_report(report(after, comparison=compare(*sides)))
    assert "compared with old (1 case, 1 pass)" in page
    assert re.search(r"\n  broken +night +✓ → ✗", page)
