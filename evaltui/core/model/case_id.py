"""The identity of a case, a case as a list shows it, and texts that are equal where cases are."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evaltui.core.model.json_values import field_of, spelling_in
from evaltui.core.model.old_formats import Json
from evaltui.core.model.problems import JsonPath, Problem, wrong_kind

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase


class CaseId(NamedTuple):
    """A case: the file that it is in, and its id there.

    `path` is as seen from the agent's folder, with `/` on every system, so that it is the same on another
    machine. Several files may have the same set id, which is a label only: it stands for the path where
    nobody knows the file, as in results of google-adk and of eval sets that were given as models.
    """

    path: str
    eval_id: str


class CaseOutline(NamedTuple):
    """A case as a list shows and searches it, and what is seen to be wrong with it without a model."""

    eval_id: str | None
    """None where it has none."""
    turns: int | None
    """How many there are; None where a user is simulated, so that nobody knows."""
    first_text: str = ""
    """The first part of what the user says first, or the starting prompt of a simulated user."""
    texts: tuple[str, ...] = ()
    """All of what the user says, by turn; of a simulated user the starting prompt."""
    tools: tuple[str, ...] = ()
    """The tools that calls are expected of, each once."""
    problems: tuple[Problem, ...] = ()
    """Paths are relative to the case."""


def required_field(
    data: Json, path: JsonPath, kind: type[str] | type[list[Any]], problems: list[Problem]
) -> Any:
    """The field that a path ends with, None where it is missing or of another kind, which is a problem."""
    key = spelling_in(str(path[-1]), data)
    value = data.get(key)
    if isinstance(value, kind):
        return value
    where = (*path[:-1], key)
    problems.append(wrong_kind(where, value, kind) if key in data else Problem.error(where, "missing"))
    return None


def outline_of(case: Any) -> CaseOutline:
    """The outline of a case as JSON data, whatever that is."""
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
    from evaltui.core.model.events import describe_response

    return [*texts, *map(describe_response, responses)]


def _parts(content: Any) -> list[dict[str, Any]]:
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def expected_calls(case: Any) -> dict[str, list[Any]]:
    """The arguments of each expected call of a case, by tool."""
    conversation = field_of(case, "conversation")
    return _calls(conversation if isinstance(conversation, list) else [])


def _calls(conversation: list[Any]) -> dict[str, list[Any]]:
    calls: dict[str, list[Any]] = {}
    for turn in conversation:
        intermediate = field_of(turn, "intermediate_data")
        uses, events = field_of(intermediate, "tool_uses"), field_of(intermediate, "invocation_events")
        turn_calls = list(uses) if isinstance(uses, list) else []
        for event in events if isinstance(events, list) else []:
            content = event.get("content") if isinstance(event, dict) else None
            turn_calls += [field_of(part, "function_call") for part in _parts(content)]
        for call in turn_calls:
            if isinstance(call, dict) and isinstance(name := call.get("name"), str):
                # Ten thousand cases share a few names.
                calls.setdefault(sys.intern(name), []).append(call.get("args"))
    return calls


# What an agent gets to see of a case; everything else says what is expected of it.
_INPUT_KEYS = ("session_input", "conversation_scenario")


def input_fingerprint(case: Any, stubs: Sequence[Any] = ()) -> str:
    """Fingerprint of what the agent gets of a case, which is JSON data in either spelling of keys, and of the
    tool results that the case stubs."""
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
    """The JSON text that a case's fingerprint is of."""
    data = case.model_dump(mode="json", exclude_defaults=True, exclude=_TIMES_AND_IDS)
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
