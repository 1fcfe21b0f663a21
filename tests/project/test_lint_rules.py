"""Each rule of lint is declared once, with its checks; rules that name what is not there are warnings."""

import asyncio
import json

import pytest
from eval_data import make_case, make_turn, write_eval_set

from evaltui import EvalSetError, evaluate
from evaltui.core.model.problems import CHECKS, RULES, LintRule, Severity
from evaltui.project.lint import lint, lint_rules


def write(folder, rules, **cases):
    """A set of cases that each expect a call of one tool, and a config with rules."""
    (folder / "agent.py").touch()
    turns = [make_turn("hi", calls=[{"name": tool}]) for tool in cases.values()]
    write_eval_set(
        folder, "orders", *(make_case(eval_id, turn) for eval_id, turn in zip(cases, turns, strict=True))
    )
    config = folder / "test_config.json"
    config.write_text(json.dumps({"criteria": {"safety_v1": 1}, "evaltui": {"rules": rules}}, indent=1))
    return config


def rule(tool, **scope):
    return {"tool": tool, "arg": "query", "match": "ignore", **scope}


def test_rules_that_dangle(tmp_path):
    rules = [
        rule("find"),
        rule("fimd"),
        rule("find", set="order"),
        rule("find", set="orders", case="lat"),
        rule("pay", case="late"),
        {**rule("find"), "match": "type"},
    ]
    config = write(tmp_path, rules, late="find", early="pay")
    problems = lint([config])
    assert {problem.severity for problem in problems} == {Severity.WARNING}
    assert sorted(problem.sentence for problem in problems) == [
        "evaltui.rules[0]: never applies: rules[5] covers the same argument",
        "evaltui.rules[1].tool: no expected call of 'fimd'. Did you mean find?",
        "evaltui.rules[2].set: no eval set 'order' beside this config. Did you mean orders?",
        "evaltui.rules[3].case: no case 'lat' in orders. Did you mean late?",
        "evaltui.rules[4].tool: no expected call of 'pay'",
        "evaltui.rules[5].arg: no expected call of find has 'query'",
    ]
    lines = config.read_text().splitlines()
    assert {lines[problem.line - 1].strip(" ,") for problem in problems} == {
        "{",
        '"arg": "query"',
        '"tool": "fimd"',
        '"set": "order"',
        '"case": "lat"',
        '"tool": "pay"',
    }


def test_a_set_that_cannot_be_read_may_have_the_tool(tmp_path):
    config = write(tmp_path, [rule("fimd")], late="find")
    (tmp_path / "broken.evalset.json").write_text("{")
    assert lint([config]) == []


@pytest.mark.parametrize("blocks", [False, True])
def test_a_new_rule_is_a_row_with_its_check(tmp_path, monkeypatch, blocks):
    monkeypatch.setitem(CHECKS, "case", {**CHECKS["case"]})
    monkeypatch.setitem(RULES, "shouted-id", None)

    @LintRule("shouted-id", "A case has an id in capitals", blocks=blocks).checks("case")
    def shouted(case):
        if case.eval_id.isupper():
            yield ("eval_id",), "in capitals"

    (tmp_path / "agent.py").write_text("def root_agent(message, session):\n    return 'hi'\n")
    config = tmp_path / "test_config.json"
    config.write_text('{"criteria": {"response_match_score": 0.5}}')
    path = write_eval_set(tmp_path, "orders", make_case("LATE", make_turn("hi", "hi")))

    assert "shouted-id" in {rule.id for rule in lint_rules()}
    (problem,) = lint([path])
    assert (problem.rule.id, problem.line is not None) == ("shouted-id", True)
    assert problem.severity is (Severity.ERROR if blocks else Severity.WARNING)
    run = evaluate(tmp_path, [path])
    if blocks:
        with pytest.raises(EvalSetError, match="in capitals"):
            asyncio.run(run)
    else:
        assert asyncio.run(run).cases[0].eval_id == "LATE"
