"""Cases by outcome, time and cost of their last results."""

from pathlib import Path

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.outcome import CaseResult, InvocationScore, MetricResult, RepeatResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.workbench.cases.case_list import line_of, tree_rows
from evaltui.workbench.cases.navigation import CaseOrder, sort_cases
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
        return sort_cases(eval_set, numbers, order, lambda case: OUTCOMES.get(case.eval_id))

    rows = tree_rows([SET], None, (), {CaseId(PATH, "dear")}, ordered)
    selections = [row.selection for row in rows]
    assert tuple(one.eval_id for one in selections[1:] if one.turn is None) == expected
    assert [line_of(rows, one) for one in selections] == list(range(len(rows)))
    dear = line_of(rows, Selection(PATH, "dear"))
    assert line_of(rows, Selection(PATH, "dear", 0)) == dear + 1
    assert line_of(rows, Selection(PATH, "slow", 0)) is None


def listed(path, *turns):
    cases = tuple(listed_case(f"{path}{number}", count) for number, count in enumerate(turns))
    return EvalSetFile(Path(path), path, path, "", "", "eval set", cases)


SETS = listed("a", 1, 2, None), listed("b"), listed("c"), listed("d", 1)


@pytest.mark.parametrize(
    ("matching", "folded", "lines"),
    [
        (None, (), "a a0 a1 a1.0 a1.1 a2 - b c - d d0"),
        (None, ("a", "d"), "a b c d"),
        (None, ("d",), "a a0 a1 a1.0 a1.1 a2 - b c d"),
        ({"a": [2], "d": [0]}, ("a",), "a a2 - d d0"),
        ({"a": [1]}, (), "a a1 a1.0 a1.1"),
        ({}, (), ""),
    ],
)
def test_sets_cases_and_turns_are_lines(matching, folded, lines):
    rows = tree_rows(SETS, matching, folded, {CaseId("a", "a1"), CaseId("a", "a2")})
    names = []
    for row in rows:
        name = "-" if row is None else row.eval_set.path.name if row.case is None else row.selection.eval_id
        names.append(name if row is None or row.turn is None else f"{name}.{row.turn}")
    assert " ".join(names) == lines
