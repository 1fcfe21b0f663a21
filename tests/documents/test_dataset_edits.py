"""An EvaluationDataset is edited in its own words: what an edit does not concern stays to the byte."""

from __future__ import annotations

import copy
import json
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui.documents.case_file import Change
from evaltui.documents.dataset import dataset_of
from evaltui.documents.edits import Duplicate, Edit, EditError, Insert, Move, Put, Remove
from evaltui.documents.formats import read_case_file

Json = dict[str, Any]

texts = st.text('abc äé\n"', min_size=1, max_size=8)
values = st.one_of(st.integers(0, 9), texts, st.booleans(), st.lists(st.integers(0, 3), max_size=2))
arguments = st.dictionaries(st.sampled_from(["to", "when"]), values, max_size=2)
# Keys that the format does not know, on whatever has room for them.
unknown = st.dictionaries(st.sampled_from(["x_note", "x_id"]), values, max_size=1)


def content(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


@st.composite
def events_of_agents(draw: Any, *, answers: bool) -> list[Json]:
    events = []
    for name in draw(st.lists(st.sampled_from(["find", "book"]), max_size=2)):
        call = content("model", {"function_call": {"name": name, "args": draw(arguments)}})
        response = content("user", {"function_response": {"name": name, "response": {"n": draw(values)}}})
        events += [
            {"author": "desk", "content": call, **draw(unknown)},
            {"author": "desk", "content": response, **draw(unknown)},
        ]
    if answers or (events and draw(st.booleans())):
        events.append({"author": "desk", "content": content("model", {"text": draw(texts)}), **draw(unknown)})
    return events


@st.composite
def dataset_cases(draw: Any, eval_case_id: str) -> Json:
    case: Json = {"eval_case_id": eval_case_id, **draw(unknown)}
    user = content("user", {"text": draw(texts)})
    form = draw(st.sampled_from(["prompt", "history", "events", "scenario"]))
    if form == "scenario":
        case["user_scenario"] = {"starting_prompt": draw(texts), "conversation_plan": draw(texts)}
    elif form == "events":
        turns = []
        for _ in range(draw(st.integers(1, 3))):
            message: Json | None = {
                "author": "user",
                "content": content("user", {"text": draw(texts)}),
                **draw(unknown),
            }
            events = draw(events_of_agents(answers=False))
            if draw(st.booleans()):
                state = {"author": "desk", "state_delta": {"seen": draw(values)}, "x_note": "kept"}
                events.insert(draw(st.integers(0, len(events))), state)
            if draw(st.booleans()):
                # As in Google's own example: what agents do may be a turn of its own.
                turns.append({"turn_index": len(turns), "events": [message]})
                message = None
            events = [message, *events] if message else events
            turns.append({"turn_index": len(turns), "events": events, **draw(unknown)})
        if draw(st.booleans()):
            turns[0]["events"].insert(0, {"author": "user", "state_delta": {"city": draw(values)}})
        case["agent_data"] = {"agents": {"desk": {"agent_id": "desk"}}, "turns": turns}
    else:
        if form == "history":
            message = {"author": "user", "content": content("user", {"text": draw(texts)}), **draw(unknown)}
            case["conversation_history"] = [message, *draw(events_of_agents(answers=True))]
        case["prompt"] = draw(st.sampled_from([user, draw(texts)]))
    if form != "scenario" and draw(st.booleans()):
        case["reference"] = {"response": content("model", {"text": draw(texts)}), **draw(unknown)}
    if form in ("prompt", "history") and draw(st.booleans()):
        steps = [{"function_call": {"name": "find", "args": draw(arguments)}} for _ in range(2)]
        case["reference_trajectory"] = [content("model", step) for step in steps]
    if draw(st.booleans()):
        rubric = {"rubric_id": "r1", "content": {"property": {"description": draw(texts)}}, **draw(unknown)}
        broken = [{"rubric_id": "r0"}] if draw(st.booleans()) else []
        case["rubric_groups"] = {"own": {"rubrics": [rubric, *broken]}}
    if draw(st.booleans()):
        case["session_inputs"] = {"app_name": "desk", "user_id": "u", "state": {"n": draw(texts)}}
    return case


@st.composite
def datasets(draw: Any) -> str:
    cases = [draw(dataset_cases(f"case {index}")) for index in range(draw(st.integers(1, 3)))]
    data = {"eval_cases": cases, **draw(unknown)}
    return json.dumps(data, indent=draw(st.sampled_from([2, 4, "\t"])), ensure_ascii=draw(st.booleans()))


@st.composite
def edits(draw: Any, case: Json) -> Edit:
    """An edit of a case, with the path in the case."""
    new = draw(texts)
    turns = len(case.get("conversation") or [])
    if not turns or draw(st.integers(0, 3)) == 0:
        rubrics = [{"rubric_id": "r2", "rubric_content": {"text_property": new}}]
        return draw(
            st.sampled_from(
                [
                    Put(("eval_id",), new),
                    Put(("rubrics",), case.get("rubrics", []) + rubrics),
                    Put(("rubrics",), rubrics),
                    Put(("session_input",), {"app_name": "desk", "user_id": "u", "state": {"city": 7}}),
                    Put(("final_session_state",), {"city": 1}),
                ]
            )
        )
    number = draw(st.integers(0, turns - 1))
    at = ("conversation", number)
    call = {"name": "cancel", "args": draw(arguments)}
    return draw(
        st.sampled_from(
            [
                Put((*at, "user_content", "parts", 0, "text"), new),
                Put((*at, "final_response"), content("model", {"text": new})),
                Put((*at, "intermediate_data"), {"tool_uses": [call]}),
                Put((*at, "intermediate_data"), {"tool_uses": []}),
                Put((*at, "rubrics"), [{"rubric_id": "r"}]),
                Remove(at),
                Insert(("conversation",), number, {"user_content": content("user", {"text": new})}),
                Insert(
                    ("conversation",),
                    turns,
                    {
                        "user_content": content("user", {"text": new}),
                        "final_response": content("model", {"text": new}),
                    },
                ),
            ]
        )
    )


def said(case: Json) -> Json:
    """What a case says, whichever shape its calls have."""
    turns = []
    for turn in case.get("conversation") or []:
        data = turn.get("intermediate_data")
        events = [
            part for event in (data or {}).get("invocation_events", []) for part in event["content"]["parts"]
        ]
        calls = [part["function_call"] for part in events if "function_call" in part]
        calls += (data or {}).get("tool_uses", [])
        plain = [(call["name"], call["args"]) for call in calls] if data is not None else None
        answer = (turn.get("final_response") or {}).get("parts")
        results = [part["function_response"]["response"] for part in events if "function_response" in part]
        turns.append((turn["user_content"]["parts"], plain, results, answer, turn.get("rubrics")))
    rest = {name: case.get(name) for name in ("eval_id", "rubrics", "final_session_state")}
    state = (case.get("session_input") or {}).get("state") or {}
    return {"turns": turns, "state": state, "scenario": case.get("conversation_scenario"), **rest}


def applied(case: Json, edit: Edit) -> Json:
    case = copy.deepcopy(case)
    holder: Any = case
    *way, last = edit.path if not isinstance(edit, Insert) else (*edit.path, edit.index)
    for step in way:
        holder = holder[step]
    if isinstance(edit, Insert):
        holder.insert(edit.index, edit.value)
    elif isinstance(edit, Remove):
        del holder[last]
    else:
        holder[last] = edit.value  # type: ignore[union-attr]
    return case


def notes(value: Any) -> list[Any]:
    """All members that the format does not know."""
    if isinstance(value, dict):
        own = [(key, item) for key, item in value.items() if key.startswith("x_")]
        return own + [note for item in value.values() for note in notes(item)]
    return [note for item in value for note in notes(item)] if isinstance(value, list) else []


def is_valid(text: str) -> bool:
    """Whether Google's own model reads it."""
    from agentplatform._genai.types import EvaluationDataset

    try:
        EvaluationDataset.model_validate_json(text)
    except ValueError:
        return False
    return True


REFUSED = ("final_session_state", "rubrics")


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_an_edit_says_what_was_asked_and_leaves_the_rest(data):
    text = data.draw(datasets())
    before = read_case_file(text)
    number = data.draw(st.integers(0, len(before.chunks) - 1))
    case = before.cases[number].value
    edit = data.draw(edits(case))
    wanted = applied(case, edit)
    in_set: Any = copy.copy(edit)
    object.__setattr__(in_set, "path", ("eval_cases", number, *edit.path))
    try:
        after = before.edited([in_set])
    except EditError:
        can_hold = edit.path[-1] not in REFUSED or edit.path == ("rubrics",)
        calls_nothing = isinstance(edit, Put) and edit.value == {"tool_uses": []}
        assert not can_hold or calls_nothing or not wanted.get("conversation"), edit
        return
    assert said(after.cases[number].value) == said(wanted)
    assert [case.text for case in before.cases[:number]] == [case.text for case in after.cases[:number]]
    assert [case.text for case in before.cases[number + 1 :]] == [
        case.text for case in after.cases[number + 1 :]
    ]
    if not isinstance(edit, Remove) and edit.path[-1] not in ("rubrics", "intermediate_data"):
        assert sorted(map(repr, notes(json.loads(text)))) == sorted(map(repr, notes(json.loads(after.text))))
    # A text that is changed in its place is one hunk.
    if isinstance(edit, Put) and edit.path[-1] == "text":
        opcodes = SequenceMatcher(
            None, text.splitlines(), after.text.splitlines(), autojunk=False
        ).get_opcodes()
        assert sum(op != "equal" for op, *_ in opcodes) <= 1
    assert Change.between(before, after).inverse.applied(after).text == text
    assert before.read(after.text).text == after.text
    # Google's own model refuses most keys that it does not know, and a text as a prompt.
    if is_valid(text):
        assert is_valid(after.text)


def test_cases_are_added_moved_copied_and_removed():
    case = {"eval_case_id": "a", "prompt": "hi", "x": 1}
    document = read_case_file(json.dumps({"eval_cases": [case, {"prompt": "b"}, {"prompt": "c"}]}))
    assert [one.eval_id for one in document.cases] == ["a", "case_2", "case_3"]
    new = {"eval_id": "new", "conversation": [{"user_content": content("user", {"text": "q"})}]}
    in_list = ("eval_cases",)
    document = document.edited(
        [Insert(in_list, 0, new), Duplicate(in_list, 1), Put((*in_list, 2, "eval_id"), "copy")]
    )
    document = document.edited([Move(in_list, 0, 2), Remove((*in_list, 3))])
    assert json.loads(document.text) == {
        "eval_cases": [
            case,
            case | {"eval_case_id": "copy"},
            {"eval_case_id": "new", "prompt": content("user", {"text": "q"})},
            {"prompt": "c"},
        ]
    }


LIMITS = [
    ({}, Put(("final_session_state",), {"a": 1}), "the state after the last turn"),
    (
        {},
        Put(("conversation", 0, "rubrics"), [{"rubric_id": "r"}]),
        "rubrics of a single turn",
    ),
    ({}, Remove(("conversation", 0)), "a case without a message of the user"),
    (
        {
            "agent_data": {
                "turns": [{"events": [{"author": "desk", "content": {"parts": [{"text": "ran"}]}}]}]
            }
        },
        Put(("conversation", 0, "user_content", "parts", 0, "text"), "other"),
        "the case holds the events of a run",
    ),
]


@pytest.mark.parametrize(("more", "edit", "reason"), LIMITS)
def test_what_the_format_cannot_hold_is_refused(more, edit, reason):
    case = {"eval_case_id": "a", "prompt": content("user", {"text": "hi"}), **more}
    document = read_case_file(json.dumps({"eval_cases": [case]}))
    object.__setattr__(edit, "path", ("eval_cases", 0, *edit.path))
    with pytest.raises(EditError, match=reason):
        document.edited([edit])


def test_of_a_recorded_case_expectations_are_edited():
    run = {"turns": [{"events": [{"author": "desk", "content": content("model", {"text": "ran"})}]}]}
    case = {"eval_case_id": "a", "prompt": content("user", {"text": "hi"}), "agent_data": run}
    document = read_case_file(json.dumps({"eval_cases": [case]}))
    answer = content("model", {"text": "right"})
    after = document.edited([Put(("eval_cases", 0, "conversation", 0, "final_response"), answer)])
    assert json.loads(after.text)["eval_cases"] == [case | {"reference": {"response": answer}}]


def test_problems_have_the_lines_of_the_dataset():
    text = json.dumps(
        {"eval_cases": [{"eval_case_id": "a", "prompt": "hi", "reference": {"response": "x"}}]}, indent=1
    )
    document = read_case_file(text)
    line = document.line_of(("eval_cases", 0, "conversation", 0, "final_response", "parts", 0))
    assert '"response": "x"' in text.splitlines()[line - 1]


def test_an_exported_case_is_edited_with_all_that_evaltui_keeps_of_it():
    turns = [{"user_content": content("user", {"text": text}), "rubrics": []} for text in "abc"]
    rubric = {"rubric_id": "r", "rubric_content": {"text_property": "kind"}}
    turns[1] |= {"rubrics": [rubric], "invocation_id": "i"}
    case = {"eval_id": "a", "conversation": turns, "final_session_state": {"n": 1}}
    written, _ = dataset_of({"eval_set_id": "s", "eval_cases": [case], "description": "d"}, "s")
    at = ("eval_cases", 0)
    document = read_case_file(json.dumps(written, indent=2)).edited(
        [
            Remove((*at, "conversation", 0)),
            Put((*at, "final_session_state", "n"), 2),
            Put((*at, "conversation", 0, "rubrics", 0, "rubric_content", "text_property"), "brief"),
        ]
    )
    edited = {**rubric, "rubric_content": {"text_property": "brief"}}
    kept = {"conversation": {"0": {"invocation_id": "i", "rubrics": [edited]}}}
    own = json.loads(document.text)["eval_cases"][0]["evaltui"]
    assert own == {
        "unspecified": "checked",
        "case": {**kept, "final_session_state": {"n": 2}},
        "set": {"description": "d"},
    }
