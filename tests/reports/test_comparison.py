import re
from dataclasses import replace

import pytest
from example_runs import json_of, passed, report, strictly_read
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from evaltui.core.compare.run_comparison import compare
from evaltui.core.compare.run_summary import CaseSummary, Circumstances, RunSummary
from evaltui.core.model.outcome import Status
from evaltui.reports.console import render_console
from evaltui.reports.json_report import comparison_json
from evaltui.text.json_pieces import json_pieces
from evaltui.text.lines import draw
from evaltui.tui.compare.page import Columns, change_line, write_change
from evaltui.tui.widgets.writer import Page
from evaltui.views.comparison import comparison_lines

P, F, FLAKY = Status.PASSED, Status.FAILED, Status.FLAKY


def summary(eval_id, status, **fields):
    stable = {"passed": int(status is P), "policy_met": status is P}
    return CaseSummary("lights", eval_id, status, **{**stable, **fields})


def run(name, *cases, **circumstances):
    return RunSummary(
        name,
        {case.id: case for case in cases},
        whole=frozenset({"lights"}),
        circumstances=Circumstances(**circumstances),
    )


BASE = run(
    "the first",
    summary("movie_mode", P, scores={"tool_trajectory_avg_score": 1.0, "m": 0.5}, seconds=1.0, tokens=100.0),
    summary("kitchen", F, seconds=2.0, tokens=300.0),
    summary("hello", P, scores={"response_match_score": 0.95}),
    summary("bye", P, scores={"response_match_score": 0.951}),
    summary("old", P),
    summary("edited", P, expects="a"),
    summary("wavers", P, runs=5, passed=5),
    files={"prompts.py": "1"},
)
CANDIDATE = run(
    "the second",
    summary("movie_mode", F, scores={"tool_trajectory_avg_score": 0.5, "m": 0.5}, seconds=1.1, tokens=180.0),
    summary("kitchen", P, seconds=4.0, tokens=310.0),
    summary("hello", P, scores={"response_match_score": 0.82}),
    summary("bye", P, scores={"response_match_score": 0.95}),
    summary("fresh", F),
    summary("edited", F, expects="b"),
    summary("wavers", FLAKY, runs=5, passed=3, policy_met=True),
    files={"prompts.py": "2"},
)


def lines(comparison, width=100, *, color=False):
    return [draw(line, color=color) for line in comparison_lines(comparison, width)]


def test_every_case_that_changed_has_a_line():
    assert lines(compare(BASE, CANDIDATE)) == [
        "compared with the first (7 cases, 6 pass)",
        "  between them  agent: prompts.py",
        "  broken   movie_mode  ✓ → ✗  tool_trajectory_avg_score 1.00 → 0.50; tokens 100 → 180",
        "  fixed    kitchen     ✗ → ✓  2 s → 4 s",
        "  flaky    wavers      ✓ 5/5 → ≈ 3/5",
        "  changed  edited      ✓ → ✗  case changed",
        "  new      fresh       ✗",
        "  gone     old         ✓",
        "  score    hello       ✓ → ✓  response_match_score 0.95 → 0.82",
        "  1 broken, 1 fixed, 1 flaky, 1 expectation changed, 1 new, 1 gone, 2 unchanged",
        "  better on 1, worse on 1 of 5 cases: p = 1 (exact McNemar test)",
        "  time 3 s → 5.1 s (+70%) of 2/6 cases, tokens 400 → 490 (+22%) of 2/6 cases, of the cases in both",
    ]


def test_reports_and_the_screen_name_the_score_that_moved_most():
    scores = {"first": 1.0, "second": 1.0}
    base = run("y", summary("hello", P, scores=scores))
    comparison = compare(base, run("x", summary("hello", F, scores={"first": 0.9, "second": 0.2})))
    moved = [("second ", "muted"), ("1.00", ""), (" → ", "muted"), ("0.20", "bold")]
    report = list(comparison_lines(comparison, 100))[1]
    page = Page(100)
    write_change(page, comparison.cases[0])
    for line in (report, page.lines[-1]):
        start = line.index(moved[0])
        assert line[start : start + 4] == moved
        assert draw(line, color=False).endswith("first 1.00 → 0.90")
    screen = change_line(comparison.cases[0], "hello", "", Columns.for_width(140, 5, tokens=False), 140)
    assert "1.00 → 0.20  second" in draw(screen, color=False)


def test_a_case_of_several_sets_has_its_set_in_front():
    other = replace(summary("movie_mode", F), eval_set_id="heat")
    both = run("x", summary("movie_mode", F), other)
    assert lines(
        compare(run("y", summary("movie_mode", P), replace(other, status=P, policy_met=True)), both)
    )[1:3] == ["  broken   lights:movie_mode  ✓ → ✗", "  broken   heat:movie_mode    ✓ → ✗"]


def test_nothing_to_compare():
    assert lines(compare(run("x"), run("y"))) == [
        "compared with x (0 cases, 0 pass)",
        "  no case in either run",
    ]


def test_long_lists_are_cut():
    many = [f"case_{number}" for number in range(40)]
    base = run("x", *(summary(name, P) for name in many))
    text = lines(compare(base, run("y", *(summary(name, F) for name in many))))
    assert len(text) == 34
    assert text[-3:] == [
        "           and 10 more",
        "  40 broken",
        "  better on 0, worse on 40 of 40 cases: p < 0.001 (exact McNemar test)",
    ]


def test_a_run_with_a_baseline_tells_of_both():
    compared = report(passed(), comparison=compare(BASE, CANDIDATE))
    text = "".join(render_console(compared, color=False, width=100))
    assert "\ncompared with the first (7 cases, 6 pass)\n" in text
    assert text.index("compared with") < text.index("1 passed in 6.2 s")
    assert json_of(compared)["comparison"]["totals"]["broken"] == 1
    assert json_of(report(passed()))["comparison"] is None


hostile = st.text(st.sampled_from(list("ab \n\t\x00\x1b[31m\x9b日é\u202e\ud800")), min_size=1, max_size=30)


@given(hostile, hostile, hostile, st.integers(40, 130), st.booleans())
def test_texts_of_others_do_no_harm(name, other, metric, width, color):
    base = run(
        name, summary(name, P, scores={metric: 1.0}), summary(other, F, expects="1"), files={name: "1"}
    )
    now = run(other, summary(name, F, scores={metric: 0.0}), files={other: "1"}, model=metric)
    comparison = compare(base, now)
    text = "\n".join(lines(comparison, width, color=color))
    assert not re.search("[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text)
    if not color:
        assert all(cell_len(line) <= width for line in text.splitlines())
    assert strictly_read(json_pieces(comparison_json(comparison)))["cases"]


@pytest.mark.parametrize("width", [40, 60])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(cell_len, lines(compare(BASE, CANDIDATE), width))) <= width
