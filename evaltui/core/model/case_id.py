"""The identity of a case, and a case as a list shows it, read without models."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

from evaltui.core.model.aliases import spelt
from evaltui.core.model.events import describe_response
from evaltui.core.model.old_formats import Json
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.text.wording import in_words


class CaseId(NamedTuple):
    """A case: the file that it is in, and its id there.

    `path` is as seen from the agent's folder, with `/` on every system, so that it is the same on another
    machine. Several files may have the same set id, which is a label only: it stands for the path where
    nobody knows the file, as in results of google-adk and of eval sets that were given as models.
    """

    path: str
    eval_id: str


@dataclass(frozen=True)
class CaseInfo:
    """A case as a list shows and searches it.

    `turns` is None where a user is simulated, so that nobody knows. `first_text` is the first part of what
    the user says first, `texts` are all of it, by turn; of a simulated user both are the starting prompt.
    `tools` are those that calls are expected of, each once.
    """

    eval_id: str
    turns: int | None
    first_text: str = ""
    texts: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


def _either(data: Any, name: str) -> tuple[str, Any]:
    """A field in either spelling: its key, and its value or None."""
    if not isinstance(data, dict):
        return name, None
    key = spelt(name, data)
    return key, data.get(key)


def required_field(
    data: Json, path: JsonPath, kind: type[str] | type[list[Any]], problems: list[Problem]
) -> Any:
    """The field that a path ends with, None where it is missing or of another kind, which is a problem."""
    key, value = _either(data, str(path[-1]))
    if isinstance(value, kind):
        return value
    wanted = "text" if kind is str else "a list"
    message = f"must be {wanted}, is {in_words(value)}" if key in data else "missing"
    problems.append(Problem.error((*path[:-1], key), message))
    return None


def case_info(raw: Any, path: JsonPath, problems: list[Problem]) -> CaseInfo:
    """What a list shows of a case; what is wrong with it is added to `problems`, its paths below `path`."""
    if not isinstance(raw, dict):
        problems.append(Problem.error(path, f"must be an object, is {in_words(raw)}"))
        return CaseInfo("", 0)
    eval_id = required_field(raw, (*path, "eval_id"), str, problems) or ""
    _, conversation = _either(raw, "conversation")
    if isinstance(conversation, list):
        said = [_texts(_either(turn, "user_content")[1]) for turn in conversation]
        first = said[0][0] if said and said[0] else ""
        return CaseInfo(eval_id, len(conversation), first, tuple(map("\n".join, said)), _tools(conversation))
    _, scenario = _either(raw, "conversation_scenario")
    if isinstance(scenario, dict):
        _, prompt = _either(scenario, "starting_prompt")
        return CaseInfo(eval_id, None, *((prompt, (prompt,)) if isinstance(prompt, str) else ()))
    return CaseInfo(eval_id, 0)


def _texts(content: Any) -> list[str]:
    parts = _parts(content)
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    responses = [response for part in parts if (response := _either(part, "function_response")[1])]
    return [*texts, *map(describe_response, responses)] if responses else texts


def _parts(content: Any) -> list[dict[str, Any]]:
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _tools(conversation: list[Any]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for turn in conversation:
        _, intermediate = _either(turn, "intermediate_data")
        _, calls = _either(intermediate, "tool_uses")
        _, events = _either(intermediate, "invocation_events")
        found = list(calls) if isinstance(calls, list) else []
        for event in events if isinstance(events, list) else []:
            content = event.get("content") if isinstance(event, dict) else None
            found += [_either(part, "function_call")[1] for part in _parts(content)]
        for call in found:
            if isinstance(call, dict) and isinstance(name := call.get("name"), str):
                # Ten thousand cases share a few names.
                names[sys.intern(name)] = None
    return tuple(names)
