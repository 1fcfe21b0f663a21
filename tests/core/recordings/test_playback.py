from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from eval_data import make_case, make_turn

from evaltui.agents.call_recorder import Playback
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Event
from evaltui.core.model.judgement import JudgedBy
from evaltui.core.model.modes import Modes, modes_of
from evaltui.core.model.outcome import MetricResult, RepeatResult, Status
from evaltui.core.recordings.entry import (
    JsonRequest,
    ModelCall,
    Shared,
    ToolCall,
    entry_from_json,
    entry_to_json,
    fingerprints,
    line_text,
    new_contents,
    shared_lines,
)
from evaltui.core.recordings.given import stubs_of_case
from evaltui.core.trace.model_calls import CallCounts
from evaltui.runner.run_recordings import merged

NOON = datetime(2026, 9, 10, 12, 0, tzinfo=UTC)


def says(text, role="user"):
    return {"role": role, "parts": [{"text": text}]}


def asked(*texts, **fields):
    given = {"model": "gemini", "instruction": "Be kind."} | fields
    return JsonRequest(contents=[says(text) for text in texts], **given)


def recorded(request, answer="hi", **fields):
    """An entry and the lines that it refers to."""
    prints = fingerprints(request, NOON)
    given = {"case": "one", "repeat": 0, "turn": 0} | fields
    entry = ModelCall(
        model=request.model,
        key=prints.key,
        contents=" ".join(prints.contents),
        instruction=prints.instruction if request.instruction else "",
        tools=prints.tools if request.tools else "",
        config=prints.request.config,
        said=new_contents(prints, ()),
        responses=[{"parts": [{"text": answer}]}],
        **given,
    )
    return entry, shared_lines(prints)


def playback(*requests):
    pairs = [recorded(request, str(number)) for number, request in enumerate(requests)]
    shared = {line.id: line for _, lines in pairs for line in lines}
    return Playback([entry for entry, _ in pairs], shared)


def test_the_same_request_gets_its_answers_in_order_and_then_none():
    played = playback(asked("a"), asked("b"), asked("a"))
    again = fingerprints(asked("a"), NOON)
    assert [played.model_call(again, errors=True) for _ in range(3)] == [0, 2, None]
    assert played.why_no_answer(again, "") == "recorded 2 times, now requested once more"


def test_an_answer_that_was_an_error_is_taken_in_a_replay_only():
    entry, lines = recorded(asked("a"), error={"type": "builtins:OSError", "message": "down"})
    prints = fingerprints(asked("a"), NOON)
    assert Playback([entry], {line.id: line for line in lines}).model_call(prints, errors=False) is None
    assert Playback([entry], {}).model_call(prints, errors=True) == 0


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        (
            asked("a", "b", instruction="Be brief."),
            'the system instruction is "Be brief.", was "Be kind."',
        ),
        (asked("a", "b", model="pro"), "model is pro, was gemini"),
        (asked("a", "b", tools=[{"name": "search"}]), "tools: new search"),
        (asked("a", "b", config={"temperature": 1}), "temperature is new"),
        (asked("a", "c"), 'content 2 is "user: c", was "user: b"'),
        (asked("a", "b", "c"), 'content 3 is new: "user: c"'),
        (asked("a"), 'content 2 is missing: "user: b"'),
    ],
)
def test_a_miss_names_what_differs_from_the_nearest_recording(now, difference):
    played = playback(asked("something", "else", "altogether", instruction="Sing."), asked("a", "b"))
    assert played.why_no_answer(fingerprints(now, NOON), "") == difference


def test_a_difference_behind_the_beginning_that_is_kept_is_told_as_such():
    long = "x" * 200
    played = playback(asked(long + "a"))
    why = played.why_no_answer(fingerprints(asked(long + "b"), NOON), "")
    assert why.startswith("content 1 starts like the recorded one")


def test_changed_settings_and_tools_are_named():
    before = asked(
        "a", tools=[{"name": "x", "v": 1}, {"name": "gone"}], config={"temperature": 0.5, "top_k": 3}
    )
    now = asked("a", tools=[{"name": "x", "v": 2}, {"name": "more"}], config={"temperature": 0.7, "top_k": 3})
    assert playback(before).why_no_answer(fingerprints(now, NOON), "") == (
        "tools: new more; gone gone; declaration changed x; temperature is 0.7, was 0.5"
    )


def test_nothing_recorded_is_told_as_such():
    assert playback().why_no_answer(fingerprints(asked("a"), NOON), "") == (
        "no model call recorded for this repeat"
    )


def call(args, result=None, **fields):
    return ToolCall(
        **({"case": "one", "repeat": 0, "turn": 0, "tool": "find"} | fields), args=args, result=result
    )


def test_calls_of_tools_are_told_apart_by_their_arguments():
    played = Playback([call({"a": 1, "b": 2}, 1), call({"b": 3}, 2)], {})
    assert played.tool_call("find", {"b": 2, "a": 1}) == 0
    assert played.tool_call("find", {"b": 2, "a": 1}) is None
    assert played.tool_call("other", {"b": 3}) is None
    assert played.tool_call("find", {"b": 3}) == 1
    assert played.why_no_result("find", {"b": 4}) == 'recorded are calls with {"a": 1, "b": 2}, {"b": 3}'
    assert played.why_no_result("find", {"b": 3}) == "this call was recorded once, now made once more"


ENTRIES = [
    recorded(asked("a"))[0],
    recorded(asked("a", config={"t": 1}), agent="x", error={"type": "a:B", "message": ""})[0],
    call({"a": [1, {}]}, {"result": "ü\u2028\ud800"}),
    call({}, None, state={"n": 1}, removed=("m",), actions={"escalate": True}),
    Shared("ab", text="Be kind."),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_entries_survive_being_written(entry):
    line = line_text(entry)
    assert "\n" not in line
    line.encode("utf-8")
    assert line.splitlines() == [line]
    assert entry_from_json(json.loads(line)) == entry
    assert next(iter(entry_to_json(entry))) == "kind"


@pytest.mark.parametrize(
    "data",
    [
        None,
        3,
        {},
        {"kind": "other"},
        {"kind": "tool"},
        entry_to_json(ENTRIES[0]) | {"repeat": "0"},
        entry_to_json(ENTRIES[0]) | {"of a later version": 1},
    ],
)
def test_what_is_no_entry_is_refused(data):
    with pytest.raises(ValueError):
        entry_from_json(data)


def test_contents_are_described_once():
    prints = fingerprints(asked("a", "b", "a"), NOON)
    said = new_contents(prints, ())
    assert list(said.values()) == ["user: a", "user: b"]
    assert new_contents(prints, said) == {}


AUTO = modes_of("auto", None, {})
A, B, C = (recorded(asked(text), turn=turn)[0] for turn, text in enumerate("abc"))


def test_a_whole_run_replaces_what_was_recorded():
    assert merged([A, B], [A, C], AUTO, complete=True) == [A, C]
    assert merged([A, B], [], AUTO, complete=True) == []


def test_a_broken_off_run_replaces_only_what_it_had_answered():
    fresh = recorded(asked("a"), "another")[0]
    assert merged([A, B], [fresh], AUTO, complete=False) == [fresh, B]


def test_an_answer_is_not_given_up_for_an_error():
    failed = recorded(asked("a"), error={"type": "builtins:OSError", "message": "down"})[0]
    assert merged([A, B], [failed], AUTO, complete=False) == [A, B]
    assert merged([B], [failed], AUTO, complete=False) == [failed, B]
    assert merged([A], [failed, B], AUTO, complete=True) == [failed, B]


def test_the_same_answers_in_another_order_change_nothing():
    one, other = call({"n": 1}, 1), call({"n": 2}, 2)
    assert merged([one, other], [other, one], AUTO, complete=True) == [one, other]


def test_what_is_not_recorded_stays():
    find, other = call({}, 1), call({}, 1, tool="other")
    only_find = modes_of("off", "live", {"find": "record"})
    assert merged([A, find, other], [], only_find, complete=True) == [A, other]


def test_what_a_stubbed_tool_took_is_not_there_twice():
    find = call({}, 1)
    modes = modes_of("auto", None, {"find": "stub"})
    assert merged([A, find], [A, find], modes, complete=True) == [A, find]
    assert merged([A, find, B], [A, find], modes, complete=True) == [A, find]


@pytest.mark.parametrize(
    ("models", "tools", "by_tool", "expected"),
    [
        ("off", None, {}, Modes("off", "live")),
        ("auto", None, {"x": "live"}, Modes("auto", "record", {"x": "live"})),
        ("record", "stub", {}, Modes("record", "stub")),
        ("replay", None, {"x": "record", "y": "live"}, Modes("replay", "stub", {"x": "stub", "y": "live"})),
        ("replay", "record", {}, Modes("replay", "stub")),
    ],
)
def test_tools_follow_the_models_unless_told_otherwise(models, tools, by_tool, expected):
    assert modes_of(models, tools, by_tool) == expected


def test_a_replay_writes_nothing_and_off_does_nothing():
    assert not modes_of("replay", "record", {"x": "record"}).writes
    assert modes_of("off", None, {"x": "live"}).is_off
    assert not modes_of("off", None, {"x": "stub"}).is_off
    assert modes_of("off", None, {"x": "record"}).writes


def case(intermediate):
    return EvalCase.model_validate(make_case("one", make_turn("hi", intermediate_data=intermediate)))


def test_a_case_stubs_its_calls_by_id_and_else_by_name():
    by_name = case(
        {
            "tool_uses": [{"name": "f", "args": {"n": 1}}, {"name": "g"}, {"name": "f", "args": {"n": 2}}],
            "tool_responses": [
                {"name": "f", "response": {"r": 1}},
                {"name": "f", "response": {"r": 2}},
                {"name": "h", "response": {}},
            ],
        }
    )
    assert [(stub.tool, stub.args, stub.result) for stub in stubs_of_case(by_name)] == [
        ("f", {"n": 1}, {"r": 1}),
        ("f", {"n": 2}, {"r": 2}),
    ]
    by_id = case(
        {
            "invocation_events": [
                {"author": "a", "content": {"parts": [
                    {"function_call": {"id": "1", "name": "f", "args": {"n": 1}}},
                    {"function_call": {"id": "2", "name": "f", "args": {"n": 2}}},
                ]}},
                {"author": "a", "content": {"parts": [
                    {"function_response": {"id": "2", "name": "f", "response": {"r": 2}}},
                ]}},
            ]
        }
    )  # fmt: skip
    assert [(stub.args, stub.result) for stub in stubs_of_case(by_id)] == [({"n": 2}, {"r": 2})]


def test_calls_are_counted_by_where_answers_came_from():
    counts = CallCounts()
    for data in (
        {"model": "gemini"},
        {"model": "gemini", "replayed": True},
        {"model": "scripted (stand-in)"},
    ):
        counts.on_event(Event("model_request", data=data))
    counts.on_event(Event("model_request", data={"model": "gemini", "missed": True}))
    counts.on_event(Event("tool_result", data={"stubbed": "case"}))
    assert str(counts) == "1 live model call, 1 replayed, 1 tool call stubbed"


def test_calls_of_judges_are_counted_by_themselves():
    judges = (JudgedBy("j", "p/1", asked=5, answered=4, replayed=2), JudgedBy("j", "q/1", asked=1, unasked=1))
    metrics = tuple(MetricResult("m", None, None, Status.PASSED, judge=judge) for judge in judges)
    counts = CallCounts()
    counts.on_result(RepeatResult(Status.PASSED, (*metrics, MetricResult("n", 1.0, 1.0, Status.PASSED))))
    counts.on_event(Event("tool_result", data={"stubbed": "case"}))
    assert str(counts) == (
        "0 live model calls, 0 replayed, 3 live judge calls, 2 replayed, 1 tool call stubbed"
    )


def test_a_response_without_its_value_is_no_stub():
    uses = [{"name": "find", "args": {}}, {"name": "look", "args": {}}]
    responses = [{"name": "find"}, {"name": "look", "response": {}}]
    turn = {"user_content": {}, "intermediate_data": {"tool_uses": uses, "tool_responses": responses}}
    case = EvalCase.model_validate(make_case("a", turn))
    assert [(stub.tool, stub.result) for stub in stubs_of_case(case)] == [("look", {})]
