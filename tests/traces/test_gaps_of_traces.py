"""`evaltui gaps` on scored traces: the same changes in every layout, and what a trace leaves unknown."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("opentelemetry.proto")

from test_trace_layouts import ANSWER, ARGS, LAYOUTS, QUESTION, SPOKEN, span
from written_traces import attributes_of

from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn, write_eval_set

CRITERIA = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
CALLS = [{"name": "weather", "args": ARGS}]
UNDECLARED = "tools not declared: coverage has those that were called or expected"


def otlp(spans):
    """The spans, then the log records that are written during them."""
    written = [
        {
            "traceId": item.trace_id,
            "spanId": item.span_id,
            "parentSpanId": item.parent_id,
            "name": item.name,
            "startTimeUnixNano": str(item.start),
            "endTimeUnixNano": str(item.end),
            "attributes": attributes_of(item.attributes),
            "events": [
                {"name": event.name, "attributes": attributes_of(event.attributes)}
                for event in item.events
                if event.body is None
            ],
        }
        for item in spans
    ]
    logs = [
        {
            "traceId": item.trace_id,
            "spanId": item.span_id,
            "timeUnixNano": str(item.start),
            "eventName": event.name,
            "body": {"kvlistValue": {"values": attributes_of(event.body)}},
        }
        for item in spans
        for event in item.events
        if event.body is not None
    ]
    yield {"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}
    yield {"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]}


@pytest.fixture
def gaps(tmp_path, monkeypatch, capsys):
    """The report on the case of the layouts, which these spans are scored by."""
    monkeypatch.chdir(tmp_path)

    def report(spans, criteria=CRITERIA, calls=CALLS, code=0, cases=()):
        (tmp_path / "t.json").write_text("\n".join(map(json.dumps, otlp(spans))))
        case = make_case("rome", make_turn(QUESTION, ANSWER, calls))
        write_eval_set(tmp_path, "weather", case, *({**case, **other} for other in cases))
        (tmp_path / "test_config.json").write_text(json.dumps({"criteria": criteria}))
        assert call("score", "t.json", "--sets", "weather.evalset.json", "--home", ".") == code
        assert call("gaps", ".", "--report", "json=gaps.json") == 0
        return json.loads((tmp_path / "gaps.json").read_text())

    return report


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_every_layout_has_the_same_changes(gaps, layout):
    report = gaps(layout())
    kinds = {row["kind"]: (row["noticed"], row["changes"]) for row in report["kinds"]}
    assert kinds == {
        "call dropped": (1, 1),
        "call repeated": (1, 1),
        "argument changed": (1, 1),
        "argument dropped": (1, 1),
        "argument added": (1, 1),
        "argument of another type": (1, 1),
        "answer emptied": (1, 1),
        "answer cut": (1, 1),
        "answer negated": (0, 1),
        "another name": (0, 1),
        "an invented promise": (1, 1),
    }
    assert [(item["eval_id"], item["reason"]) for item in report["not_counted"]] == [("", UNDECLARED)]


def test_calls_that_a_trace_does_not_tell_are_said_to_be_unknown(gaps):
    outputs = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}])
    spans = [span(1, 0, {"openinference.span.kind": "AGENT", **SPOKEN, "gen_ai.output.messages": outputs})]
    report = gaps(spans, {"response_match_score": 0.8}, None)
    assert {row["subject"] for row in report["kinds"]} == {"answers"}
    assert [(item["turn"], item["reason"]) for item in report["not_counted"]] == [(1, "calls unknown")]


def test_keys_of_a_state_that_a_trace_does_not_tell_are_not_counted_as_never_reached(gaps):
    spans = []
    for number, name in enumerate(("rome", "stateful"), 1):
        for item in LAYOUTS[0]():
            of = {"gen_ai.conversation.id": name, "evaltui.eval.case.id": name}
            attributes = {**item.attributes, **of}
            spans.append(replace(item, trace_id=str(number) * 32, attributes=attributes))
    stateful = {"eval_id": "stateful", "final_session_state": {"city": "Rome"}}
    report = gaps(spans, code=3, cases=[stateful])
    assert "tool" in (kinds := {cell["kind"] for cell in report["coverage"]})
    assert "state key" not in kinds
