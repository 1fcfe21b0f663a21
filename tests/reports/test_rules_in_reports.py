"""Reports say which differences rules let pass."""

from dataclasses import replace

from example_runs import case, failed, report, trajectory_metric

from evaltui.core.compare.diff import align_calls
from evaltui.core.matching.rules import rules_of_case
from evaltui.core.model.arg_rule import ArgRule
from evaltui.core.model.outcome import Call, Status, TurnResult
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.reports.console import render_console
from evaltui.reports.json_report import case_result_json

RULES = rules_of_case([ArgRule(tool="set_temperature", arg="degrees", match="type")], "thermostat", "x")


def turn(location):
    expected = Call("set_temperature", {"location": "Kitchen", "degrees": 19})
    actual = Call("set_temperature", {"location": location, "degrees": "20"})
    calls = align_calls([expected], [actual], rules=RULES)
    return TurnResult("these calls", calls, ResponseDiff("Done.", "Done."))


def by_rule():
    metrics = (trajectory_metric(Status.PASSED),)
    return case("warm_kitchen", Status.PASSED, metrics=metrics, turns=(turn("Kitchen"),))


def test_the_details_name_the_rule_beside_what_differs():
    other = replace(failed(), metrics=(trajectory_metric(Status.FAILED),), turns=(turn("Hall"),), state=())
    lines = "".join(render_console(report(other), color=False, width=80)).splitlines()
    (named,) = (line for line in lines if "rule: type" in line)
    assert named.split() == ["≃", "degrees", "19", "→", '"20"', "allowed", "by", "rule:", "type"]
    assert len(named) <= 80
    assert any(line.split()[:2] == ["≠", "location"] for line in lines)


def test_the_json_report_has_the_rule():
    (call,) = case_result_json(by_rule())["turns"][0]["calls"]
    assert call["op"] == "same"
    assert [(arg["path"], arg["op"], arg["rule"]) for arg in call["args"]] == [
        ("location", "same", None),
        ("degrees", "same", "type"),
    ]
