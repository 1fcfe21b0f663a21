"""Cases scored by rules: what passes, what is said of it, and that ADK's verdicts know no rules."""

from __future__ import annotations

from typing import Any

import pytest
from eval_data import make_case, make_turn

from evaltui import CaseResult, EvalCase, EvalConfig, Invocation, Status, score_case
from evaltui.core.compare.explain import summary

EXPECTED = {"customer_id": "C-1", "query": "late", "as_of": "2026-01-01"}
MADE = {"customer_id": "C-1", "query": "overdue", "as_of": "2026-03-09"}
RULES = [
    {"tool": "find_orders", "arg": "query", "match": "ignore"},
    {
        "tool": "find_orders",
        "arg": "as_of",
        "match": {"regex": r"\d{4}-\d\d-\d\d"},
        "set": "s",
        "case": "late",
    },
]


def turn(args: dict[str, Any]) -> dict[str, Any]:
    call = {"name": "find_orders", "args": args}
    return make_turn("what is late?", "order 7", calls=[call])


async def score(made: dict[str, Any], rules: list[dict[str, Any]], **more: Any) -> CaseResult:
    case = EvalCase.model_validate(make_case(more.pop("eval_id", "late"), turn(EXPECTED)))
    config = {
        "criteria": {"tool_trajectory_avg_score": 1.0},
        "evaltui": {"rules": rules, **more.pop("block", {})},
    }
    actual = [Invocation.model_validate(turn(made))]
    return await score_case(case, actual, EvalConfig.model_validate(config), eval_set_id="s", **more)


async def test_the_verdicts_of_adk_know_no_rules():
    result = await score(MADE, RULES, adk_verdicts=True)
    assert result.status is Status.FAILED
    assert [arg.rule for arg in result.turns[0].calls[0].args] == ["", "", ""]


@pytest.mark.parametrize("mode", ["skip", "context"])
async def test_turns_that_are_not_checked_need_no_rules(mode):
    marks = [{"set": "s", "case": "late", "turn": 0, "mode": mode}]
    result = await score(MADE, RULES, block={"turns": marks, "criteria": {}})
    assert "allowed by rules" not in summary(result)
