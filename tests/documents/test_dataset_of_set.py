"""An eval set as an EvaluationDataset, and back: nothing is lost that is not listed."""

from __future__ import annotations

import copy
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui.core.model.content import Content
from evaltui.core.model.datasets import from_dataset, without_original
from evaltui.core.model.eval_set import (
    EvalCase,
    Invocation,
    intermediate_texts,
    tool_calls,
    tool_responses,
)
from evaltui.core.model.json_values import camel
from evaltui.documents.dataset import dataset_of

Json = dict[str, Any]
NOT_CHECKED = {"unspecified": "not checked"}

texts = st.text('abc äé\n"', min_size=1, max_size=6)
values = st.one_of(
    st.integers(0, 9), texts, st.booleans(), st.none(), st.lists(st.integers(0, 3), max_size=2)
)
objects = st.dictionaries(st.sampled_from(["to", "when", "n"]), values, max_size=2)
ids = st.sampled_from([{}, {"id": "c1"}])
authors = st.sampled_from(["desk", "clerk"])
flags = st.booleans()


def content(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


def part(draw: Any, kind: str) -> Json:
    name = draw(st.sampled_from(["find", "book"]))
    if kind == "call":
        return {"function_call": {"name": name, "args": draw(objects), **draw(ids)}}
    if kind == "response":
        return {"function_response": {"name": name, "response": draw(objects), **draw(ids)}}
    return {"text": draw(texts)} | ({"thought": True} if kind == "thought" else {})


KINDS = st.sampled_from(["call", "response", "text", "thought"])


@st.composite
def intermediate(draw: Any) -> Json:
    if draw(flags):
        count = st.integers(0, 2)
        return {
            "tool_uses": [part(draw, "call")["function_call"] for _ in range(draw(count))],
            "tool_responses": [part(draw, "response")["function_response"] for _ in range(draw(count))],
            "intermediate_responses": [[draw(authors), [part(draw, "text")]] for _ in range(draw(count))],
        }
    events = []
    for kinds in draw(st.lists(st.lists(KINDS, min_size=1, max_size=2), max_size=3)):
        event: Json = {"author": draw(authors), "content": content("model", *(part(draw, k) for k in kinds))}
        events.append(event | ({"model_version": "m-1"} if draw(flags) else {}))
    return {"invocation_events": events}


def rubric(draw: Any, name: str) -> Json:
    kinds = [None, "TOOL_USE_QUALITY", "FINAL_RESPONSE_QUALITY", "OWN"]
    more = {"type": draw(st.sampled_from(kinds)), "description": draw(st.sampled_from([None, "for people"]))}
    stated = {key: value for key, value in more.items() if value}
    return {"rubric_id": name, "rubric_content": {"text_property": draw(texts)}} | stated


@st.composite
def turns(draw: Any, number: int) -> Json:
    turn: Json = {"user_content": content("user", {"text": draw(texts)})}
    if draw(flags):
        turn["final_response"] = content("model", *(part(draw, k) for k in draw(st.lists(KINDS, max_size=2))))
    if draw(flags):
        turn["intermediate_data"] = draw(intermediate())
    if draw(flags):
        details = {"invocation_id": "i1", "creation_timestamp": 1.5, "app_details": {"agent_details": {}}}
        turn |= details | {"rubrics": [rubric(draw, f"of {number}")]}
    return turn


@st.composite
def eval_cases(draw: Any, eval_id: str) -> Json:
    case: Json = {"eval_id": eval_id}
    if draw(st.integers(0, 4)):
        case["conversation"] = [draw(turns(number)) for number in range(draw(st.integers(1, 3)))]
    else:
        case["conversation_scenario"] = {"starting_prompt": draw(texts), "conversation_plan": draw(texts)}
        if draw(flags):
            case["conversation_scenario"]["user_persona"] = "EXPERT"
    if draw(flags):
        state = {"session_id": "s"} if draw(flags) else {}
        case["session_input"] = {"app_name": "desk", "user_id": "u", "state": draw(objects), **state}
    if draw(flags):
        case["rubrics"] = [rubric(draw, f"r{n}") for n in range(draw(st.integers(1, 4)))]
    if draw(flags):
        case |= {"final_session_state": draw(objects), "creation_timestamp": 2.5}
    for name in draw(st.sampled_from([(), ("context",), ("prompt", "x_note")])):
        case[name] = draw(values)
    if draw(flags):
        case["evaltui"] = draw(st.sampled_from([NOT_CHECKED, {"other": 1}]))
    return case


@st.composite
def eval_sets(draw: Any) -> Json:
    cases = [draw(eval_cases(f"case {number}")) for number in range(draw(st.integers(1, 3)))]
    data: Json = {"eval_set_id": draw(st.sampled_from(["desk", "other"])), "eval_cases": cases}
    more = {"name": draw(texts), "description": "d", "creation_timestamp": 3.5, "x_note": "set"}
    data |= {name: value for name, value in more.items() if draw(flags)}
    return in_camel(data) if draw(st.integers(0, 3)) == 0 else data


def in_camel(data: Any) -> Any:
    """The same in the other spelling, but for what is the user's own."""
    if isinstance(data, list):
        return [in_camel(item) for item in data]
    own = ("args", "response", "state", "final_session_state", "evaltui", "context", "prompt", "x_note")
    if not isinstance(data, dict):
        return data
    return {
        (key if key == "x_note" else camel(key)): value if key in own else in_camel(value)
        for key, value in data.items()
    }


Path = tuple[str, ...]


def members(case: Json) -> dict[Path, Any]:
    """The members of an eval case by path, as google-adk's model has them."""
    model = EvalCase.model_validate(copy.deepcopy(case))
    data = model.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    turns = list(enumerate(data.pop("conversation", None) or []))
    flat = {("conversation", str(number), name): turn[name] for number, turn in turns for name in turn}
    for name in ("session_input", "conversation_scenario"):
        flat |= {(name, key): value for key, value in data.pop(name, {}).items()}
    for item in data.pop("rubrics", []):
        flat |= {("rubrics", item["rubric_id"], key): value for key, value in item.items()}
    return flat | {(name,): value for name, value in data.items()}


def turns_of(case: Json) -> list[Json]:
    return [{snake(key): value for key, value in turn.items()} for turn in case.get("conversation") or []]


def differing(before: Json, after: Json) -> set[Path]:
    first, second = members(before), members(after)
    stated = ({"final_response", "intermediate_data"} <= turn.keys() for turn in turns_of(before))
    if all(stated) and second.get(("evaltui",)) == NOT_CHECKED:
        # It is for turns that do not state something.
        first.setdefault(("evaltui",), NOT_CHECKED)
    paths = {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)}
    return {
        path
        for path in paths
        if path[-1] != "intermediate_data" or not same_lists(first.get(path), second.get(path))
    }


def same_lists(before: Any, after: Any) -> bool:
    """Whether lists of calls, responses and texts came back as events, which have an order besides."""
    if before is None or after is None or "invocation_events" in before:
        return False
    turns = [Invocation(user_content=Content(parts=[]), intermediate_data=data) for data in (before, after)]
    first, second = (
        (
            tool_calls(turn.intermediate_data),
            # Each belongs to a call, by its id or name.
            sorted(map(repr, tool_responses(turn.intermediate_data))),
            intermediate_texts(turn.intermediate_data),
        )
        for turn in turns
    )
    return first == second


def listed(path: Any, case: Json) -> Path:
    names = [snake(step) if isinstance(step, str) else step for step in path]
    if names[0] == "rubrics" and len(names) > 1:
        item = case["rubrics"][names[1]]
        names[1] = item.get("rubric_id") or item["rubricId"]
    return tuple(map(str, names))


def snake(name: str) -> str:
    return re.sub("(?<=[a-z])([A-Z])", lambda match: "_" + match[1].lower(), name)


def mapped(case: Any) -> Json:
    """What Google's converter has a mapping for, of a case of its model: messages in any shape."""
    data = case.model_dump(mode="json", exclude_none=True)
    events = [event for turn in data.get("agent_data", {}).get("turns", []) for event in turn["events"]]
    messages = [event["content"] for event in [*data.get("conversation_history", []), *events]]
    if "prompt" in data:
        messages.append(data["prompt"])
    names = ("eval_case_id", "user_scenario", "reference_trajectory", "rubric_groups", "context")
    state = {"state": {}} if "session_inputs" in data else {}
    return {name: data.get(name) or None for name in names} | {
        "messages": sorted(repr(part) for message in messages for part in message.get("parts", [])),
        "reference": data.get("reference", {}).get("response", {}).get("parts") or None,
        "session_inputs": state | data.get("session_inputs", {}),
    }


@pytest.fixture(scope="module")
def google() -> SimpleNamespace:
    """Takes seconds to import, which every process of the tests would pay at the top."""
    from agentplatform._genai._evals_data_converters import AdkEvalSetConverter
    from agentplatform._genai.types import EvaluationDataset

    return SimpleNamespace(convert=AdkEvalSetConverter().convert, read=EvaluationDataset.model_validate_json)


@settings(max_examples=100, deadline=None)
@given(eval_set=eval_sets())
def test_googles_converter_maps_alike(google, eval_set):
    for case in eval_set.get("eval_cases") or eval_set["evalCases"]:
        # Ours stay rubrics of their turn, under the key of evaltui.
        if conversation := case.get("conversation"):
            conversation[-1].pop("rubrics", None)
    theirs = google.convert(copy.deepcopy(eval_set)).eval_cases
    ours = google.read(json.dumps(dataset_of(eval_set, "desk")[0])).eval_cases
    assert list(map(mapped, ours)) == list(map(mapped, theirs))


@settings(max_examples=500, deadline=None)
@given(eval_set=eval_sets())
def test_a_set_comes_back_but_for_what_is_listed(google, eval_set):
    dataset, problems = dataset_of(eval_set, "desk")
    cases = eval_set.get("eval_cases") or eval_set["evalCases"]
    google.read(json.dumps(dataset))
    back, wrong = from_dataset(json.loads(json.dumps(dataset)), "desk")
    assert not wrong
    back["eval_cases"] = [without_original(case) for case in back["eval_cases"]]
    of_cases: list[set[Path]] = [set() for _ in cases]
    of_set: set[Path] = set()
    for problem in problems:
        if problem.path[0] in ("eval_cases", "evalCases"):
            number = int(problem.path[1])
            of_cases[number].add(listed(problem.path[2:], cases[number]))
        else:
            of_set.add(listed(problem.path, {}))
    assert of_cases == [differing(*pair) for pair in zip(cases, back["eval_cases"], strict=True)]
    before, after = ({snake(key): value for key, value in data.items()} for data in (eval_set, back))
    names = before.keys() | after.keys() - {"name"} - {"eval_cases"}
    assert of_set == {(name,) for name in names - {"eval_cases"} if before.get(name) != after.get(name)}


HI = {"user_content": content("user", {"text": "hi"})}
OF_USER = {"author": "user", "content": content("user", {"text": "and"})}


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"conversation": []}, "no message of the user"),
        ({"conversation": [{"user_content": {"role": "user"}}]}, "must have a content with parts"),
        (
            {"conversation": [HI | {"intermediate_data": {"invocation_events": [OF_USER]}}, HI]},
            "an event of the user within a turn",
        ),
    ],
)
def test_a_case_that_a_dataset_cannot_hold_is_left_out(case, reason):
    eval_set = {"eval_set_id": "a", "eval_cases": [{"eval_id": "odd", **case}], "description": "d"}
    dataset, problems = dataset_of(eval_set, "a")
    assert dataset == {"eval_cases": []}
    assert [(problem.path, reason in problem.message) for problem in problems] == [
        (("eval_cases", 0), True),
        (("description",), False),
    ]
