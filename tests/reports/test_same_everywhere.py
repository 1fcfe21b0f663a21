"""What a result says has the same colours, words and numbers in the console, in HTML and on the screen."""

import re
from dataclasses import replace

import pytest
from example_runs import failed, report

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.reports.console import render_console
from evaltui.reports.html.page import html_report
from evaltui.text.lines import draw
from evaltui.tui.result.case_result import ShownCase, write_case_result
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef
from tests.eval_data import make_case
from tests.golden.html_text import text_of_html


def informational(name, *turns):
    scores = tuple(InvocationScore(score, Status.INFORMATIONAL) for score in turns)
    return MetricResult(name, sum(turns) / len(turns), None, Status.INFORMATIONAL, per_invocation=scores)


MEASURED = (
    informational("tool_call_count_v1", 1.0, 2.0),
    informational("token_usage_v1", 400.0, 812.0),
    informational("invocation_duration_v1", 1.0, 1.5),
)
CASE = failed()
CASE = replace(
    CASE,
    metrics=(*CASE.metrics, *MEASURED),
    repeats=tuple(replace(one, metrics=(*one.metrics, *MEASURED)) for one in CASE.repeats),
)


def on_screen(width):
    stored = StoredCase(make_case(CASE.eval_id))
    outcome = CaseOutcome(ResultInMemory.of(CASE), RunRef(1), stored, EvalConfig())
    page = Page(width, 180)
    write_case_result(page, ShownCase(outcome, messages={}))
    return "\n".join(" ".join(draw(line, color=False).split()) for line in page.lines)


TEXTS = {
    "console": lambda: "".join(render_console(report(CASE), color=False, width=100)),
    "html": lambda: text_of_html("".join(html_report(report(CASE)))),
    "screen": lambda: on_screen(140),
}


@pytest.mark.parametrize("medium", TEXTS)
def test_a_difference_and_a_sum_read_alike(medium):
    text = " ".join(TEXTS[medium]().split())
    for words in ("string, expected integer", "unexpected call", "0.77 < 0.80", "1/3 calls", "not scored"):
        assert words in text
    assert re.search(r"tool calls 3\W", text)
    assert re.search(r"tokens 1,212\W", text)
    assert "2.5 s" in text


def test_what_is_expected_is_green_and_what_came_instead_is_red():
    text = "".join(render_console(report(CASE), color=True, width=100))
    assert '\x1b[32m19\x1b[0m\x1b[2m  →  \x1b[0m\x1b[31m"19"\x1b[0m' in text
    assert "\x1b[32m[-now-]\x1b[0m" in text
    assert "\x1b[31m {+set to+}\x1b[0m" in text
