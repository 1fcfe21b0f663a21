"""The table of runs, its plot and one run in full, as text."""

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evaltui.core.compare.totals import Totals
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import Cost
from evaltui.runs.listing import FailedCase, RunRow, run_differences
from evaltui.runs.run_header import SelectedSet
from evaltui.text.lines import cells, draw
from evaltui.tui.runs.page import RunPlot, pass_rate, write_plot, write_run_preview, write_side
from evaltui.tui.widgets.writer import Page
from evaltui.views.run import ListedRun, run_line, run_table
from evaltui.workbench.runs.run_list import RunDetails

NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)
CONFIG = {"criteria": {"tool_trajectory_avg_score": 1.0, "final_response_match_v2": {"threshold": 0.8}}}
SETS = (
    SelectedSet("a", "in", tuple("abcdefghi"), CONFIG, whole=True),
    SelectedSet("b", "out", tuple("abcdefg"), CONFIG, whole=True),
)


@pytest.fixture(autouse=True)
def greenwich(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def adding_up(row, **fields):
    """The run with other totals."""
    return replace(row, totals=replace(row.totals, **fields))


def run(number, ago, passed, failed=0, error=0, flaky=0, **fields):
    counts = Counter(PASSED=passed, FAILED=failed, ERROR=error, FLAKY=flaky)
    row = RunRow(
        Path(f"{number}.sqlite"),
        NOW - ago,
        number,
        status=Status.FAILED if failed else Status.PASSED,
        totals=Totals(+counts),
        selected=16,
        sets=SETS,
        seconds=14.5,
    )
    return replace(row, **fields)


LAST = run(18, timedelta(seconds=12), 7, 5, 1, 1, files={"agent.py": "2"}, model="gemini-2.5-flash")
BASE = run(
    15,
    timedelta(minutes=11),
    16,
    names=("baseline",),
    files={"agent.py": "1"},
    totals=Totals({"PASSED": 16}, tokens=12_431.0, total_cost=Cost(0.0042, unpriced=1)),
)
GOING = run(19, timedelta(seconds=7), 3, 1, status=None, ending="going on", seconds=None)
CUT = run(14, timedelta(hours=3), 2, status=None, ending="interrupted", seconds=None)
# Some cases were not evaluated, all ran.
WHOLE = adding_up(LAST, counts=Counter(PASSED=7, FAILED=7, NOT_EVALUATED=2))
OF_ADK = replace(
    adding_up(BASE, total_cost=None), path=Path("x.evalset_result.json"), number=None, names=(), seconds=None
)
ROWS = [GOING, LAST, BASE, CUT, OF_ADK]


def table(width, rows=ROWS):
    columns = run_table([ListedRun(row, NOW) for row in rows], width)
    lines = [columns.head(), *(run_line(ListedRun(row, NOW, ("agent.py",)), columns) for row in rows)]
    assert all(cells(line) <= width for line in lines)
    return [draw(line, color=False) for line in lines]


def test_a_table_with_heads():
    shown = table(105)
    assert [line[:22] for line in shown[:3]] == [
        "  run   when          ",
        "◐ 19    7 s ago       ",
        "✗ 18    12 s ago      ",
    ]
    assert [line[22:] for line in shown] == [
        "name      what      ✓  ✗  !  ≈  pass rate             time      cost  changed",
        "          in, out   3  1  0  0  4/16                  0:07         —  agent.py",
        "          in, out   7  5  1  1  7/16                14.5 s         —  agent.py",
        "baseline  in, out  16  0  0  0  100% (81–100%)      14.5 s  $0.0042+  agent.py",
        "          in, out   2  0  0  0  2/16              2/16 run         —  agent.py",
        "          in, out  16  0  0  0  100% (81–100%)           —         —  agent.py",
    ]


def test_a_pass_rate_has_its_interval_and_a_bar_where_there_is_room():
    assert " 50% (27–73%)       14.5 s" in table(92, [WHOLE])[1]
    assert [line.partition("≈" if "≈" in line else " 1  ")[2] for line in table(114)[:3]] == [
        "  pass rate                      time      cost  changed",
        "0  0  4/16           ━━──────        0:07         —  agent.py",
        "1  7/16           ━━━╸────      14.5 s         —  agent.py",
    ]
    assert "0  0   50% (27–73%)  ━━━━────      14.5 s" in table(114, [WHOLE])[1]
    assert table(77, [adding_up(WHOLE, total_cost=Cost(0.5))])[1].endswith(
        "50% (27–73%)       14.5 s    $0.500"
    )
    assert (
        "  0/16              0/16 run"
        in table(77, [adding_up(CUT, counts=Counter(), total_cost=Cost(0.5))])[1]
    )


def test_cases_that_are_not_evaluated_lower_no_rate():
    unknown = adding_up(LAST, counts=Counter(PASSED=4, FAILED=4, NOT_EVALUATED=8))
    assert " 50% (22–78%)" in table(105, [unknown])[1]
    nothing = adding_up(LAST, counts=Counter(NOT_EVALUATED=8))
    assert "%" not in table(105, [nothing])[1]


@pytest.mark.parametrize("width", [60, 75, 92, 105, 150, 240])
def test_columns_that_do_not_fit_are_left_out(width):
    shown = table(width)
    assert shown[2].startswith("✗ 18    12 s ago")
    assert ("cost" in shown[0]) == (width >= 75)
    # At 75, the name and the cost leave no room for it.
    assert ("what" in shown[0]) == (width != 75)
    assert ("pass rate" in shown[0]) == (width >= 105)
    assert ("changed since previous run" in shown[0]) == (width >= 150)


def test_a_run_that_cannot_be_read_says_why():
    broken = RunRow(Path("b.sqlite"), NOW, 3, problem="b.sqlite is damaged")
    assert table(75, [broken])[1] == "! 3     0 s ago       unreadable: b.sqlite is damaged"


def test_a_plot_with_the_base_and_what_the_current_run_came_to():
    page, last = Page(104, 104), adding_up(LAST, counts=Counter(PASSED=8, FAILED=8))
    write_plot(page, 9, [last, BASE, CUT], last, BASE)
    shown = [draw(line, color=False) for line in page.lines]
    assert shown[0].split() == ["100%", "███", "run", "18"]
    # 2 of 16 cases passed before the interruption.
    assert shown[7].split() == ["0%", "───", "███", "███"]
    assert shown[1].endswith("50% (28–72%)   8/16 passed")
    assert shown[3].endswith("base ● run 15 baseline  100%")
    assert shown[4].endswith("−50 pts to the base")
    assert shown[6].endswith("best 100%  run 15 baseline")
    assert shown[8].index("●") == shown[0].index("███") + 1
    page = Page(104, 104)
    write_plot(page, 9, [WHOLE], WHOLE, None)
    assert draw(page.lines[1], color=False).endswith("7/14 passed, 2 not evaluated")
    page = Page(76)
    write_plot(page, 5, [LAST, BASE], LAST, None)
    assert [draw(line, color=False) for line in page.lines] == [
        "100% ███",
        "     ███",
        "     ███ ───",
        "  0% ███",
        "",
    ]
    empty = Page(76)
    write_plot(empty, 5, [adding_up(GOING, counts={})], None, None)
    assert not list(empty.lines)


def test_a_plot_of_costs_and_times_has_gaps_where_they_are_not_known():
    dear, cheap = (
        adding_up(LAST, total_cost=Cost(usd=0.04)),
        adding_up(BASE, total_cost=Cost(usd=0.02), p50=3.0),
    )
    partly = adding_up(CUT, total_cost=Cost(usd=0.01, unpriced=2))
    page = Page(104, 104)
    write_plot(page, 5, [dear, partly, cheap], dear, cheap, RunPlot.COST)
    shown = [draw(line, color=False) for line in page.lines]
    assert shown[0].startswith("$0.040         ███")
    assert shown[3].startswith("     0 ███     ███")
    assert shown[1].endswith("$0.040   cost")
    assert shown[3].endswith("base ● run 15 baseline  $0.020")
    page = Page(76)
    write_plot(page, 3, [dear, cheap], dear, None, RunPlot.LATENCY)
    assert [draw(line, color=False).rstrip() for line in page.lines] == ["3 s ███", "  0 ███", ""]
    page = Page(76)
    write_plot(page, 5, [dear], dear, None, RunPlot.LATENCY)
    assert [draw(line, color=False) for line in page.lines] == ["Time of a case of no run is known"]


@pytest.mark.parametrize("base", [replace(BASE, sets=SETS[:1]), CUT, BASE])
def test_a_base_of_other_cases_or_other_verdicts_is_not_subtracted(base):
    page = Page(104, 104)
    write_plot(page, 9, [WHOLE, BASE], WHOLE, base)
    assert draw(page.lines[4], color=False).endswith("other cases than the base")


def side(row, failed, height=30):
    page = Page(44)
    write_side(page, row, None if failed is None else RunDetails(tuple(failed)), height)
    return [draw(line, color=False) for line in page.lines]


def test_beside_the_table_is_what_failed_and_by_what_it_was_scored():
    failed = [FailedCase("night", Status.FAILED, "response 0.12 < 0.80")]
    assert side(replace(LAST, changed=("agent.py",)), failed) == [
        "○ 2 cases did not run",
        "7 cases did not pass",
        "✗ night",
        "  response 0.12 < 0.80",
        "and 6 more",
        "",
        "  log         18",
        "  cases       14 of 16 cases  in, out",
        "  model       gemini-2.5-flash",
        "  config",
        "    tool_trajectory_avg_score          1.00",
        "    final_response_match_v2            0.80",
        "  stale       agent.py changed after this",
        "              run",
    ]
    assert side(BASE, ())[0] == "✓ All cases passed"
    assert "  tokens      12,431" in side(BASE, ())
    assert side(LAST, None)[0] == "Reading the run…"
    assert side(adding_up(GOING, counts={}), ())[0] == "No result yet"
    broken = RunRow(Path("b.sqlite"), NOW, 3, problem="b.sqlite is damaged")
    assert side(broken, None) == ["  log         b", "  problem     b.sqlite is damaged"]


def test_cases_that_did_not_run_are_no_cases_that_passed():
    assert side(CUT, ())[0] == "○ 14 cases did not run"
    assert not any("passed" in line for line in side(CUT, ()))
    page = Page(100)
    write_run_preview(page, CUT, RunDetails(), NOW, 20)
    assert draw(page.lines[1], color=False).startswith("✓ 2  ○ 14  ")
    page = Page(104, 104)
    write_plot(page, 9, [CUT], CUT, None)
    shown = [*(draw(line, color=False) for line in page.lines), table(114, [CUT])[1]]
    assert shown[1].endswith("2/16 passed, 14 not run")
    assert not any("100%" in line for line in shown[1:])


def test_failures_give_room_to_what_the_run_was():
    failed = [FailedCase(f"case {number}", Status.FAILED, "why " * 30) for number in range(9)]
    shown = side(LAST, failed, 16)
    assert len(shown) <= 16
    assert shown[-1].endswith("0.80")


def test_what_changed_between_two_runs():
    assert run_differences(BASE, LAST) == ("agent.py",)
    assert run_differences(replace(BASE, model="other"), LAST) == ("agent.py", "model")
    other = (replace(SETS[0], config={"criteria": {}}), replace(SETS[1], config=None))
    assert run_differences(replace(LAST, sets=other), LAST) == ("config",)
    assert run_differences(replace(BASE, files={}), LAST) == ()
    # The agent wrote it itself in one of them.
    noted = replace(LAST, files={**LAST.files, "notes.txt": "1"}, own_data=frozenset({"notes.txt"}))
    assert run_differences(BASE, noted) == ("agent.py",)


@pytest.mark.parametrize(
    ("counts", "mark"),
    [({"PASSED": 14, "ERROR": 2}, "!"), ({"PASSED": 16}, "✓"), ({"PASSED": 13, "ERROR": 2}, "–")],
)
def test_a_run_that_was_ended_after_its_last_case_has_a_verdict(counts, mark):
    ended = adding_up(CUT, counts=Counter(counts))
    listed = ListedRun(ended, NOW)
    line = draw(run_line(listed, run_table([listed], 120)), color=False)
    assert line.startswith(mark)


def test_a_run_has_the_pass_rate_of_its_reports_where_a_flaky_case_passes_by_its_policy():
    met = adding_up(run(19, timedelta(seconds=12), 8, flaky=2, selected=10), flaky_passed=2)
    page = Page(100)
    write_run_preview(page, met, RunDetails(), NOW, 20)
    shown = "\n".join(draw(line, color=False) for line in page.lines)
    assert "100%" in shown
    assert "All cases passed" in shown
    assert (pass_rate(met), pass_rate(adding_up(met, flaky_passed=1))) == (1.0, 0.9)
