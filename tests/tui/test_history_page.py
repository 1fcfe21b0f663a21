"""What earlier runs say of a case, on its page."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from evaltui.core.compare.run_summary import CaseSummary, Circumstances, RunSummary
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.runs.history import CaseHistory, CasePoint
from evaltui.text.figures import show_clock
from evaltui.text.lines import draw
from evaltui.tui.result.case_result import ShownCase, write_case_result
from evaltui.tui.widgets.writer import Folding, Page
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef

KEY = ("lights", "off")
P, F = Status.PASSED, Status.FAILED


def point(number, status, files=None, name=""):
    summary = CaseSummary(
        *KEY, status, passed=int(status is P), policy_met=status is P, scores={"rouge": number / 10}
    )
    circumstances = Circumstances(files=files or {"agent.py": "1"})
    run = RunSummary(f"run-{number}", {KEY: summary}, circumstances=circumstances)
    return CasePoint(at(number), summary, run, Path(f"run-{number}.sqlite"), number, name)


def at(day):
    return datetime(2026, 1, day, 12, tzinfo=UTC)


def clock(day):
    return show_clock(at(day), datetime.now(UTC))


def past(*points):
    return CaseHistory(KEY, points)


def lines(status, known, width=110, **shown):
    case = EvalCase.model_validate({"eval_id": "off", "conversation": []})
    result = CaseResult("off", status, eval_set_id="lights", repeats=(RepeatResult(status),))
    page = Page(width)
    scored = CaseOutcome(ResultInMemory.of(result), RunRef(1), StoredCase.of(case), EvalConfig.default())
    write_case_result(page, ShownCase(scored, known, **shown))
    return [draw(line, color=False) for line in page.lines]


def test_bars_when_it_last_passed_and_what_changed_since():
    known = past(point(1, P), point(10, P, name="baseline"), point(3, F), point(2, F, {"agent.py": "2"}))
    shown = lines(F, known)
    (strip,) = (line for line in shown if "▂█▃▂" in line)
    assert "last ✓ run 10 baseline" in shown[shown.index(strip) - 1]
    (row,) = (line for line in shown if line.startswith("▸ History"))
    assert row.split("   ")[1:3] == ["last passed run 10 baseline", "since then agent: agent.py"]
    assert row.endswith("4 runs")


def test_open_it_has_a_row_for_each_run_and_what_changed_in_it():
    known = past(point(1, P), point(10, P, name="baseline"), point(2, F, {"agent.py": "2"}))
    shown = lines(F, known, folding=Folding(toggled=frozenset({"history"})))
    first = next(number for number, line in enumerate(shown) if line.startswith("▾ History"))
    assert [" ".join(line.split()) for line in shown[first + 1 :]] == [
        f"✗ run 2 {clock(2)} rouge 0.20 agent: agent.py",
        f"✓ run 10 baseline {clock(10)} rouge 1.00",
        f"✓ run 1 {clock(1)} rouge 0.10",
    ]


def test_a_case_that_passes_by_now_is_not_one_that_never_passed():
    shown = lines(P, past(point(1, F)))
    assert not any("never passed" in line for line in shown)


@pytest.mark.parametrize("status", [P, F])
@pytest.mark.parametrize("width", [30, 78, 110])
def test_what_is_below_does_not_move_when_the_history_comes(status, width):
    known = past(point(1, P), *(point(2, F, {f"a_{n}.py": "2" for n in range(9)}) for _ in range(19)))
    before = lines(status, None, width)
    assert before[-1].startswith("▸ History")
    assert len(lines(status, known, width)) == len(before) == len(lines(status, past(), width))


def test_a_renamed_case_without_runs_is_not_said_to_have_never_passed():
    shown = lines(F, past())
    assert any(line.startswith("▸ History") and "no run with this id" in line for line in shown)
    assert not any("never passed" in line for line in shown)
