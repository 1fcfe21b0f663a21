import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from example_runs import case, crashed, failed, flaky, mixed, passed, report
from hypothesis import example, given
from hypothesis import strategies as st

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.outcome import Call, ErrorInfo, MetricResult, Status, TurnResult
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.reports.junit import junit_report
from evaltui.runs.sets import SetInfo


def parsed(run):
    return ET.fromstring("".join(junit_report(run)).encode("utf-8"))


def element_of(run, name):
    return parsed(run).find(f".//testcase[@name='{name}']")


def counts(element):
    return {name: int(element.get(name)) for name in ("tests", "failures", "errors", "skipped")}


def test_one_of_each_verdict():
    suite = parsed(report(passed(), failed(), crashed())).find("testsuite")
    assert counts(suite) == {"tests": 3, "failures": 1, "errors": 1, "skipped": 0}
    assert suite.get("name") == "thermostat"
    assert suite.get("timestamp") == "2026-01-02T03:04:05"


def test_the_counts_are_those_of_the_elements():
    root = parsed(mixed())
    assert counts(root) == counts(root.find("testsuite"))
    assert counts(root) == {
        "tests": len(root.findall(".//testcase")),
        "failures": len(root.findall(".//failure")),
        "errors": len(root.findall(".//error")),
        "skipped": 0,
    }


def test_a_passed_case_is_bare():
    element = element_of(mixed(), "turn_off_bedroom")
    assert (element.get("classname"), element.get("time"), list(element)) == ("thermostat", "1.500", [])


def test_a_failure_says_why_and_holds_the_details():
    (failure,) = element_of(mixed(), "thermostat_night")
    assert failure.tag == "failure"
    assert failure.get("message").startswith("turn 2: set_temperature: degrees is")
    assert "    ≠ set_temperature\n" in failure.text
    assert "The kitchen is [-now-] {+set to+} 19 °C." in failure.text


def test_errors_and_what_could_not_be_evaluated():
    (error,) = element_of(mixed(), "away_for_a_week")
    assert (error.tag, error.get("type")) == ("error", "timeout")
    assert "line 41, in wait_for_boiler" in error.text
    (error,) = element_of(mixed(), "judged")
    assert (error.tag, error.get("type")) == ("error", "NOT_EVALUATED")
    assert error.get("message") == "safety_v1 not evaluated: needs Vertex AI"


def test_a_flaky_case_goes_by_its_policy():
    (failure,) = element_of(mixed(), "movie_mode")
    assert failure.tag == "failure"
    assert failure.get("message").startswith("3/5 repeats passed, policy all")
    (output,) = element_of(mixed(), "movie_night")
    assert output.tag == "system-out"
    assert output.text.startswith("3/5 repeats passed, policy majority")
    assert element_of(mixed(), "movie_night").get("time") == "2.500"


def test_a_failure_beside_an_error_is_a_failure_that_lists_the_error():
    judge = MetricResult(
        "judge", None, 0.5, Status.ERROR, error=ErrorInfo("RuntimeError", "judge 500", "trace", kind=None)
    )
    both = case("both", Status.FAILED, metrics=(judge, *failed().metrics), turns=failed().turns)
    (failure,) = element_of(report(both), "both")
    assert failure.tag == "failure"
    assert "RuntimeError: judge 500" in failure.text


def test_each_set_is_a_suite_and_names_its_config():
    infos = (
        SetInfo("lights", Path("lights.json"), None, {}, ("response_match_score",)),
        SetInfo("thermostat", Path("t.json"), Path("test_config.json"), {}),
    )
    root = parsed(report(replace(passed(), eval_set_id="lights"), flaky(), sets=infos))
    found = [
        {one.get("name"): one.get("value") for one in suite.iter("property")}
        for suite in root.iter("testsuite")
    ]
    assert found == [
        {"eval_set": "lights.json", "config": "defaults", "defaulted": "response_match_score"},
        {"eval_set": "t.json", "config": "test_config.json", "defaulted": ""},
    ]


any_text = st.text(st.characters(codec=None), max_size=20)


@given(any_text, any_text)
@example("\ud800\x00]]>", "\uffff\x1b")
def test_any_text_makes_valid_xml(text, other):
    calls = align_calls([Call(text, {text: other})], [Call(other, None)])
    turn = TurnResult("these calls", calls, ResponseDiff(text, other), ((text, other),))
    metric = MetricResult(text, 0.0, 1.0, Status.FAILED, reason=other)
    odd = case(
        text,
        Status.FAILED,
        metrics=(metric,),
        turns=(turn,),
        error=ErrorInfo(text, other, text, other, kind=None),
    )
    run = report(odd, crashed(other), flaky(text, met=True), agent=text)
    xml = "".join(junit_report(run))
    assert len(parsed(run).findall(".//testcase")) == 3
    assert not re.search("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", xml)
