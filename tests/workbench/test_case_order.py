"""Cases by outcome, time and cost of their last results."""

from pathlib import Path

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.outcome import CaseResult, InvocationScore, MetricResult, RepeatResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.workbench.cases.case_list import TreeRows
from evaltui.workbench.cases.navigation import CaseOrder, in_order
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef, Selection
from tests.listed_cases import listed_case

IDS = ("quick", "slow", "never_run", "dear")
PATH = "lights.evalset.json"
SET = EvalSetFile(Path(PATH), PATH, "lights", "", "", "eval set", tuple(listed_case(one, 1) for one in IDS))


def outcome(status, seconds, tokens):
    turn = InvocationScore(tokens, Status.INFORMATIONAL)
    usage = MetricResult("token_usage_v1", tokens, None, Status.INFORMATIONAL, per_invocation=(turn,))
    repeat = RepeatResult(status, (usage,), seconds=seconds)
    case = StoredCase.of(EvalCase(eval_id="", conversation=[]))
    return CaseOutcome(
        ResultInMemory.of(CaseResult("", status, repeats=(repeat,))), RunRef(1), case, EvalConfig()
    )


OUTCOMES = {
    "quick": outcome(Status.PASSED, 1.0, None),
    "slow": outcome(Status.ERROR, 9.0, 10.0),
    "dear": outcome(Status.FAILED, 2.0, 500.0),
}


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (CaseOrder.FILE, IDS),
        (CaseOrder.OUTCOME, ("dear", "slow", "quick", "never_run")),
        (CaseOrder.TIME, ("slow", "dear", "quick", "never_run")),
        (CaseOrder.COST, ("dear", "slow", "quick", "never_run")),
    ],
)
def test_cases_are_listed_in_order_and_found_again(order, expected):
    def ordered(eval_set, numbers):
        return in_order(eval_set, numbers, order, lambda case: OUTCOMES.get(case.eval_id))

    rows = TreeRows([SET], None, (), {CaseId(PATH, "dear")}, ordered)
    cases = [rows.selection(line) for line in range(1, rows.count)]
    assert tuple(one.eval_id for one in cases if one.turn is None) == expected
    assert [rows.line_of(one) for one in cases] == list(range(1, rows.count))
    assert rows.line_of(Selection(PATH, "dear", 0)) == rows.line_of(Selection(PATH, "dear")) + 1
