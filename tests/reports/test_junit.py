import re
from dataclasses import replace
from xml.etree import ElementTree as ET

from example_runs import case, crashed, failed, flaky, mixed, passed, report
from hypothesis import example, given
from hypothesis import strategies as st

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.outcome import Call, ErrorInfo, MetricResult, Status, TurnResult
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.reports.junit import junit_report
from evaltui.runs.run_header import SelectedSet


def parsed(run):
    return ET.fromstring("".join(junit_report(run)).encode("utf-8"))


def element_of(run, name):
    return parsed(run).find(f".//testcase[@name='{name}']")


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
    sets = (
        SelectedSet("lights", "lights", (), file="lights.json", defaulted=("response_match_score",)),
        SelectedSet(
            "thermostat", "thermostat", (), file="t.json", config_path="test_config.json", defaulted=()
        ),
    )
    root = parsed(report(replace(passed(), eval_set_id="lights"), flaky(), sets=sets))
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
