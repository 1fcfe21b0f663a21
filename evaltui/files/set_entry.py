"""An eval set file as a list shows it, read without models."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.model.aliases import spelt
from evaltui.core.model.old_formats import Format, Json
from evaltui.core.model.problems import JsonPath, Problem, Severity
from evaltui.core.recording.responding import describe_response
from evaltui.files.eval_sets import read_set_data, set_name
from evaltui.files.json_text import locate
from evaltui.text.wording import in_words


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


@dataclass(frozen=True)
class SetEntry:
    """An eval set file. `origin` is the folder it was found in, as seen from the agent directory.

    `problems` are those that are seen without models: syntax and missing ids. A file that cannot be read as
    any format has format None and no cases.
    """

    path: Path
    eval_set_id: str
    name: str
    origin: str
    format: Format | None
    cases: tuple[CaseInfo, ...]
    problems: tuple[Problem, ...] = ()


def read_entry(path: Path, origin: str) -> SetEntry:
    """What a list shows of an eval set file; never raises for what is in the file."""
    read = read_set_data(path)
    data = read.data
    if data is None:
        return SetEntry(path, set_name(path), "", origin, read.format, (), read.problems)
    found: list[Problem] = []
    eval_set_id = _get(data, ("eval_set_id",), str, found)
    raw_cases = _get(data, ("eval_cases",), list, found) or []
    key = spelt("eval_cases", data)
    cases = tuple(case_info(raw, (key, index), found) for index, raw in enumerate(raw_cases))
    name = data.get("name")
    return SetEntry(
        path=path,
        eval_set_id=eval_set_id or set_name(path),
        name=name if isinstance(name, str) else "",
        origin=origin,
        format=read.format,
        cases=cases,
        problems=(*read.problems, *locate(found, read.text, str(path))),
    )


def _either(data: Any, name: str) -> tuple[str, Any]:
    """A field in either spelling: its key, and its value or None."""
    if not isinstance(data, dict):
        return name, None
    key = spelt(name, data)
    return key, data.get(key)


def _get(data: Json, path: JsonPath, kind: type[str] | type[list[Any]], problems: list[Problem]) -> Any:
    """The field that a path ends with, None where it is missing or of another kind, which is a problem."""
    key, value = _either(data, str(path[-1]))
    if isinstance(value, kind):
        return value
    wanted = "text" if kind is str else "a list"
    message = f"must be {wanted}, is {in_words(value)}" if key in data else "missing"
    problems.append(Problem(Severity.ERROR, (*path[:-1], key), message))
    return None


def case_info(raw: Any, path: JsonPath, problems: list[Problem]) -> CaseInfo:
    """What a list shows of a case; what is wrong with it is added to `problems`, its paths below `path`."""
    if not isinstance(raw, dict):
        problems.append(Problem(Severity.ERROR, path, f"must be an object, is {in_words(raw)}"))
        return CaseInfo("", 0)
    eval_id = _get(raw, (*path, "eval_id"), str, problems) or ""
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
