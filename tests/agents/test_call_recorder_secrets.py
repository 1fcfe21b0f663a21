"""Recordings hold no secret, and replay in whatever environment they are replayed."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime

import pytest

from evaltui.agents.call_recorder import CallRecorder, CaseRecording, ToolOutcome
from evaltui.core.model.modes import modes_of
from evaltui.core.recordings.entry import JsonRequest, Shared, ToolCall, entry_from_json, fingerprints
from evaltui.core.secrets import Secrets


def says(text, role="user"):
    return {"role": role, "parts": [{"text": text}]}


def recorder(mode, told, environment, lines=(), stubs=()):
    lines = [entry_from_json(line) for line in lines]
    entries = [line for line in lines if not isinstance(line, Shared)]
    shared = [line for line in lines if isinstance(line, Shared)]
    recorded = CaseRecording("one", 0, "x.jsonl", modes_of(mode, None, {}), entries, shared, stubs)
    return CallRecorder(recorded, told.append, Secrets(environment))


def converse(recorder, answers=()):
    """Two turns, the second of which repeats what the model said in the first one."""
    heard = []
    contents = [says("my id is customer_id_7")]
    for number in range(2):
        asked = JsonRequest("m", list(contents), instruction="keep customer_id_7 in mind", config={"t": 0})
        exchange = recorder.model_call(asked, "agent")
        exchange.check()
        if exchange.is_replayed:
            (answer,) = exchange.responses
        else:
            answer = answers[number]
            exchange.keep([answer], None, "")
        heard.append(answer["content"]["parts"][0]["text"])
        contents += [answer["content"], says("and then?")]
    return heard


ANSWERS = [{"content": says(f"{n}: customer_id_7", "model")} for n in (1, 2)]


def recorded(environment):
    told = []
    assert converse(recorder("record", told, environment), ANSWERS) == [
        "1: customer_id_7",
        "2: customer_id_7",
    ]
    return [line for one in told for line in (*one["shared"], one["entry"])]


@pytest.mark.parametrize(
    "environment", [{}, {"PRIMARY_KEY": "customer_id_7"}, {"OTHER_KEY": "customer_id_7"}]
)
def test_a_replay_needs_no_environment(environment):
    lines = recorded({"PRIMARY_KEY": "customer_id_7"})
    assert "customer_id_7" not in json.dumps(lines)
    assert converse(recorder("replay", [], environment, lines)) == ["1: <PRIMARY_KEY>", "2: <PRIMARY_KEY>"]


def test_another_request_is_still_another_one():
    lines = recorded({"PRIMARY_KEY": "customer_id_7"})
    replay = recorder("replay", [], {"PRIMARY_KEY": "customer_id_7"}, lines)
    exchange = replay.model_call(JsonRequest("m", [says("my id is customer_id_8")], config={"t": 0}), "agent")
    assert exchange.missed is not None


def test_another_value_of_the_same_variable_asks_the_same():
    told = []
    asked = JsonRequest("m", [says("hi")], instruction="use correct horse")
    recorder("record", told, {"SHOP_KEY": "correct horse"}).model_call(asked).keep(
        [says("yes", "model")], None, ""
    )
    replay = recorder("replay", [], {"SHOP_KEY": "battery staple"}, [told[0]["entry"]])
    assert replay.model_call(JsonRequest("m", [says("hi")], instruction="use battery staple")).is_replayed


def test_recordings_of_earlier_versions_replay_where_they_did():
    environment = {"PRIMARY_KEY": "customer_id_7"}
    now = datetime.now().astimezone()
    asked = JsonRequest("m", [says("my id is customer_id_7")], instruction="x")
    masked = fingerprints(JsonRequest(**Secrets(environment).without(asdict(asked))), now)
    line = {"kind": "model", "case": "one", "repeat": 0, "turn": 0, "model": "m", "key": masked.key}
    line |= {"contents": " ".join(masked.contents), "responses": [says("yes", "model")]}
    assert recorder("replay", [], environment, [line]).model_call(asked).is_replayed


def test_calls_of_tools_are_known_with_secrets_and_without():
    environment = {"PRIMARY_KEY": "customer_id_7"}
    told = []
    exchange = recorder("record", told, environment).tool_call("find", {"id": "customer_id_7"})
    exchange.keep(ToolOutcome({"found": "customer_id_7"}))
    line = told[0]["entry"]
    assert "customer_id_7" not in json.dumps(line)
    for args, values in [({"id": "<PRIMARY_KEY>"}, {}), ({"id": "customer_id_7"}, environment)]:
        exchange = recorder("replay", [], values, [line]).tool_call("find", args)
        exchange.check()
        assert exchange.recorded.result == {"found": "<PRIMARY_KEY>"}
    of_case = ToolCall("one", 0, 0, "find", {"id": "customer_id_7"}, result={"found": 1})
    exchange = recorder("replay", [], environment, stubs=[of_case]).tool_call("find", {"id": "customer_id_7"})
    exchange.check()
    assert exchange.recorded.result == {"found": 1}


@pytest.mark.parametrize("value", [float("nan"), [float("-inf")]])
def test_a_number_that_a_replay_would_return_as_a_text_is_not_recorded(value):
    told = []
    recorder("record", told, {}).tool_call("ratio", {}).keep(ToolOutcome(result={"ratio": value}))
    recorder("record", told, {}).model_call(JsonRequest("m", [])).keep([{"ratio": value}], None, "")
    assert [line["note"].partition(" is ")[2] for line in told] == [
        "not recorded: NaN and Infinity are no numbers of JSON"
    ] * 2
