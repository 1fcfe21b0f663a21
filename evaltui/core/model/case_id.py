"""The identity of a case, its outline for lists, and fingerprints of cases."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evaltui.core.model.events import Json, describe_response
from evaltui.core.model.json_values import field_of, indexed_objects, list_or_empty, spelling_in
from evaltui.core.model.problems import JsonPath, Problem, wrong_kind

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase


class CaseId(NamedTuple):
    """The identity of a case: its file and its id.

    `path` is relative to the agent's folder, with `/` on every system, so that it is the same on every
    machine. Several files may have the same set id. Where the file is unknown, as in results of google-adk
    and for sets given as models, `path` is the set id.
    """

    path: str
    eval_id: str


class CaseOutline(NamedTuple):
    """A case as a list shows and searches it, with problems that can be found without a model."""

    eval_id: str | None
    """The id; None for a case without one."""
    turns: int | None
    """Number of turns; None for a simulated user."""
    first_text: str = ""
    """The first part of the first user message, or the starting prompt of a simulated user."""
    texts: tuple[str, ...] = ()
    """The user's messages by turn; for a simulated user, the starting prompt."""
    tools: tuple[str, ...] = ()
    """The names of expected tools, each once."""
    problems: tuple[Problem, ...] = ()
    """Problems, with paths relative to the case."""


def required_field(
    data: Json, path: JsonPath, kind: type[str] | type[list[Any]], problems: list[Problem]
) -> Any:
    """The field at the end of a path; None, and an added problem, for a missing field or another type."""
    key = spelling_in(str(path[-1]), data)
    value = data.get(key)
    if isinstance(value, kind):
        return value
    where = (*path[:-1], key)
    problems.append(wrong_kind(where, value, kind) if key in data else Problem.error(where, "missing"))
    return None


def outline_of(case: Any) -> CaseOutline:
    """The outline of a case as JSON data, valid or not."""
    if not isinstance(case, dict):
        return CaseOutline(None, 0, problems=(wrong_kind((), case, dict),))
    id_problems: list[Problem] = []
    eval_id = required_field(case, ("eval_id",), str, id_problems)
    problems = tuple(id_problems)
    conversation = field_of(case, "conversation")
    if isinstance(conversation, list):
        texts = [_texts(field_of(turn, "user_content")) for turn in conversation]
        first = texts[0][0] if texts and texts[0] else ""
        by_turn = tuple(map("\n".join, texts))
        return CaseOutline(eval_id, len(conversation), first, by_turn, tuple(_calls(conversation)), problems)
    scenario = field_of(case, "conversation_scenario")
    if isinstance(scenario, dict):
        prompt = field_of(scenario, "starting_prompt")
        prompts = (prompt,) if isinstance(prompt, str) else ()
        return CaseOutline(eval_id, None, "".join(prompts), prompts, (), problems)
    return CaseOutline(eval_id, 0, problems=problems)


def _texts(content: Any) -> list[str]:
    parts = _parts(content)
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    responses = [response for part in parts if (response := field_of(part, "function_response"))]
    if not responses:
        return texts

    return [*texts, *map(describe_response, responses)]


def _parts(content: Any) -> list[dict[str, Any]]:
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def expected_calls(case: Any) -> dict[str, list[Any]]:
    """The arguments of each expected call of a case, by tool."""
    return _calls(list_or_empty(field_of(case, "conversation")))


def _calls(conversation: list[Any]) -> dict[str, list[Any]]:
    calls: dict[str, list[Any]] = {}
    for turn in conversation:
        intermediate = field_of(turn, "intermediate_data")
        turn_calls = [*list_or_empty(field_of(intermediate, "tool_uses"))]
        for _, event in indexed_objects(list_or_empty(field_of(intermediate, "invocation_events"))):
            turn_calls += [field_of(part, "function_call") for part in _parts(event.get("content"))]
        for call in turn_calls:
            if isinstance(call, dict) and isinstance(name := call.get("name"), str):
                # Ten thousand cases share a few names.
                calls.setdefault(sys.intern(name), []).append(call.get("args"))
    return calls


# What an agent gets to see of a case; everything else says what is expected of it.
_INPUT_KEYS = ("session_input", "conversation_scenario")


def input_fingerprint(case: Any, stubs: Sequence[Any] = ()) -> str:
    """Fingerprint of the agent's input: the parts of a case (JSON data in either spelling of keys) and
    stubbed tool results."""
    inputs: dict[str, Any] = {name: field_of(case, name) for name in _INPUT_KEYS}
    turns = field_of(case, "conversation")
    inputs["said"] = [field_of(turn, "user_content") for turn in turns] if isinstance(turns, list) else None
    if stubs:
        inputs["stubs"] = stubs
    return fingerprint(json.dumps(inputs, sort_keys=True, separators=(",", ":")))


_TIMES_AND_IDS: dict[str, Any] = {
    "creation_timestamp": True,
    "conversation": {
        "__all__": {"invocation_id", "creation_timestamp", "duration", "model_duration", "tool_duration"}
    },
}


def case_fingerprint(case: EvalCase) -> str:
    """Fingerprint of all data of a case: the user's messages, the expectations, and the session's first
    state.

    How its file spells keys, and when it was written, makes no difference.
    """
    return fingerprint(case_text(case))


def case_text(case: EvalCase) -> str:
    """The JSON text of which a case's fingerprint is made."""
    data = case.model_dump(mode="json", exclude_defaults=True, exclude=_TIMES_AND_IDS)
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
