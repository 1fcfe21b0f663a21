"""Cases scored by rules: what passes, what is said of it, and that ADK's verdicts know no rules."""

from __future__ import annotations

from typing import Any

import pytest

from evaltui import CaseResult, EvalCase, EvalConfig, Invocation, Status, score_case
from evaltui.core.compare.explain import sentence, summary

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
    return {
        "user_content": {"role": "user", "parts": [{"text": "what is late?"}]},
        "final_response": {"role": "model", "parts": [{"text": "order 7"}]},
        "intermediate_data": {"tool_uses": [call]},
    }


async def score(made: dict[str, Any], rules: list[dict[str, Any]], **more: Any) -> CaseResult:
    case = EvalCase.model_validate({"eval_id": more.pop("eval_id", "late"), "conversation": [turn(EXPECTED)]})
    config = {
        "criteria": {"tool_trajectory_avg_score": 1.0},
        "evaltui": {"rules": rules, **more.pop("block", {})},
    }
    actual = [Invocation.model_validate(turn(made))]
    return await score_case(case, actual, EvalConfig.model_validate(config), eval_set_id="s", **more)


async def test_volatile_arguments_pass_by_rules_and_nothing_else_does():
    before = await score(MADE, [])
    assert before.status is Status.FAILED
    (row,) = before.turns[0].calls
    assert [arg.path for arg in row.args if arg.op != "same"] == ["query", "as_of"]

    after = await score(MADE, RULES)
    assert after.status is Status.PASSED
    (row,) = after.turns[0].calls
    assert [(arg.path, arg.op, arg.rule) for arg in row.args] == [
        ("customer_id", "same", ""),
        ("query", "same", "ignore"),
        ("as_of", "same", r"regex \d{4}-\d\d-\d\d"),
    ]
    for other in ({"customer_id": "C-2"}, {"as_of": "soon"}):
        assert (await score(MADE | other, RULES)).status is Status.FAILED


async def test_a_rule_of_another_case_does_not_count():
    assert (await score(MADE, RULES, eval_id="early")).status is Status.FAILED


async def test_the_verdicts_of_adk_know_no_rules():
    result = await score(MADE, RULES, adk_verdicts=True)
    assert result.status is Status.FAILED
    assert [arg.rule for arg in result.turns[0].calls[0].args] == ["", "", ""]


async def test_a_pass_by_rules_says_so():
    result = await score(MADE, RULES)
    assert sentence(result) == "allowed by rules: query of find_orders, as_of of find_orders"
    assert summary(result) == sentence(result)
    same = await score(EXPECTED, RULES)
    assert (sentence(same), summary(same)) == ("", "")


async def test_a_failure_is_told_without_what_rules_let_pass():
    result = await score(MADE | {"customer_id": "C-2"}, RULES)
    assert sentence(result) == 'find_orders: customer_id is "C-2", expected "C-1"'


@pytest.mark.parametrize("mode", ["skip", "context"])
async def test_turns_that_are_not_checked_need_no_rules(mode):
    marks = [{"set": "s", "case": "late", "turn": 0, "mode": mode}]
    result = await score(MADE, RULES, block={"turns": marks, "criteria": {}})
    assert "allowed by rules" not in summary(result)
