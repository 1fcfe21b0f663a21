"""Rows as eval cases: their messages as turns, with calls, responses and results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from evaltui.core.conversation.drafting import propose_eval_id
from evaltui.core.model.datasets import calls_of, turn_of
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import spoken_texts, text_content
from evaltui.core.model.json_values import indexed_objects, list_at
from evaltui.core.model.model_errors import validate_model
from evaltui.core.model.problems import JsonPath, likely_typos
from evaltui.core.model.tags import tag_problem, typed_tags
from evaltui.exchange.imported import (
    ImportedCase,
    ImportedCases,
    Json,
    NotTaken,
    Report,
    UnusableSourceError,
    with_unspecified,
)
from evaltui.exchange.row_files import Row, json_in, read_rows
from evaltui.exchange.row_mapping import RowMapping, propose, require_message, row_steps, row_value
from evaltui.text.figures import counted
from evaltui.text.values import did_you_mean, paragraphs, value_in_words
from evaltui.traces.layouts.messages import ROLES, messages_of, without_attachments
from evaltui.traces.layouts.operation import responses_in

_ARCHIVED = {"status": "ARCHIVED"}
_ANY_ARGS = {"arg": "*", "match": "ignore"}
# How the formats of messages say who speaks.
_OF_ROLES = {"role", "type", "kind", "author", "kwargs", "data"}
_OF_A_MESSAGE = [
    ("role",),
    ("content",),
    ("parts",),
    ("tool_calls", "toolCalls"),
    ("tool_call_id", "toolCallId"),
]
_OF_A_PART = [("type",), ("text",), ("name",), ("input",), ("content",), ("tool_use_id",)]
_OF_A_FUNCTION = [("name",), ("args",), ("response",)]
_CALLS = ("function_call", "functionCall", "tool_use", "tool_call")
# Lists beside what a message says.
_NOT_SAID = ("annotations", "logprobs", "tags")
_OF_MESSAGES = {"role", "content", "parts", "tool_calls", "messages", "kwargs", "data"}


def cases_of_rows(path: Path, chosen: RowMapping, last: RowMapping | None = None) -> ImportedCases:
    """The cases of a file of rows.

    Fields of `chosen` replace those of the mapping of the `last` import, else of the proposed one.
    Raises UnusableSourceError.
    """
    read = read_rows(path)
    if not read.rows:
        raise UnusableSourceError(f"{path}: has no rows")
    shape, proposed = propose(read.rows)
    mapping = (proposed if last is None else last).with_fields(chosen)
    require_message(mapping, read.rows, str(path))
    cases: dict[str, ImportedCase] = {}
    not_taken = list(read.not_taken)
    ids: set[str] = set()
    for row in read.rows:
        builder = _RowCase(row, mapping)
        imported = builder.case(ids)
        not_taken += builder.not_taken
        if imported is None:
            continue
        if (same := cases.get(imported.eval_id)) is not None:
            reason = f"the id {imported.eval_id!r} is that of {same.source}; give each row an id of its own"
            not_taken.append(NotTaken(row.source, (), reason))
            continue
        ids.add(imported.eval_id)
        cases[imported.eval_id] = imported
    if not cases:
        reason = not_taken[0].reason if not_taken else "no messages"
        raise UnusableSourceError(f"{path}: no row is a case: {reason}")
    return ImportedCases(list(cases.values()), not_taken, mapping.data, "" if last else shape)


def case_of_row(row: Row, mapping: RowMapping) -> Json | None:
    """The case of one row; None where it has no message."""
    imported = _RowCase(row, mapping).case(set())
    return imported.case if imported else None


class _RowCase:
    """The case of a row."""

    def __init__(self, row: Row, mapping: RowMapping) -> None:
        self._row = row
        self._mapping = mapping
        self.not_taken: list[NotTaken] = []

    def case(self, used_ids: set[str]) -> ImportedCase | None:
        """The case, with the id of the row or a proposed id; None for a row that makes no case."""
        if self._row.values.items() >= _ARCHIVED.items():
            self._leave_out((), "archived")
            return None
        answers = self._answers()
        contents = [*self._messages(), *self._user_messages(), *answers]
        name = "messages" if "messages" in self._mapping.paths else "user"
        turns = turns_of(contents, self._reporter(name))
        if not turns:
            self._leave_out((), "no message of the user")
            return None
        if not answers:
            self._expect_responses(turns)
        conversation = [turn_of(user, events) for user, events in turns]
        rules = self._expect_calls(conversation)
        eval_id = self._value("id")
        proposed = propose_eval_id("\n".join(spoken_texts(turns[0][:1])), used_ids)
        eval_id = proposed if eval_id in (None, "") else str(eval_id).strip()
        case: Json = {"eval_id": eval_id, "conversation": conversation}
        if state := self._state():
            case["session_input"] = {"app_name": "", "user_id": "", "state": state}
        case = with_unspecified(case)
        model, problems = validate_model(EvalCase, case)
        if model is None:
            self._leave_out((), f"a case cannot hold this: {problems[0]}")
            return None
        for path in self._mapping.unmapped(self._row.values):
            self._leave_out(path, "not mapped")
        return ImportedCase(case, self._row.source, self._tags(), rules)

    def _value(self, name: str) -> Any:
        return self._mapping.value(name, self._row.values)

    def _leave_out(self, path: JsonPath, reason: str) -> None:
        self.not_taken.append(NotTaken(self._row.source, path, reason))

    def _reporter(self, name: str) -> Report:
        place = self._mapping.place(name, self._row.values)
        return lambda path, reason: self._leave_out((*place, *path), reason)

    # Messages

    def _messages(self) -> list[Json]:
        return contents_of_messages(json_in(self._value("messages")), self._reporter("messages"))

    def _user_messages(self) -> list[Json]:
        """The messages in the field `user`: a user message for each text, or messages with own roles."""
        value = json_in(self._value("user"))
        if _are_messages(value):
            return contents_of_messages(value, self._reporter("user"))
        if isinstance(value, str) and self._row.is_csv:
            value = paragraphs(value)
        values = value if isinstance(value, list) else [value]
        if wrong := next((item for item in values if isinstance(item, dict)), None):
            self._reporter("user")(
                (), f"the message is {value_in_words(wrong)}; choose the text with --map user=PATH"
            )
            return []
        return [text_content("user", text) for item in values if (text := _text(item)).strip()]

    # Expectations

    def _answers(self) -> list[Json]:
        """The messages in the field `expected` after its last user message; empty without messages."""
        value = json_in(self._value("expected"))
        if not isinstance(value, dict | list) or not _are_messages(value):
            return []
        contents = contents_of_messages(value, self._reporter("expected"), "assistant")
        users = [number for number, content in enumerate(contents) if _is_of_user(content)]
        if len(users) > 1 and "messages" not in self._mapping.paths:
            self._reporter("expected")((), "messages before the last one of the user")
        return contents[users[-1] + 1 if users else 0 :]

    def _expect_responses(self, turns: Sequence[tuple[Json, list[Json]]]) -> None:
        """Adds the texts of the field `expected` to the events of the turns: of all turns, or of the last."""
        value = self._value("expected")
        if value in (None, [], {}) or (isinstance(value, str) and not value.strip()):
            return
        listed = json_in(value)
        if len(turns) > 1 and isinstance(listed, list) and len(listed) == len(turns):
            value = listed
        if not isinstance(value, dict | list):
            turns[-1][1].append(_event(text_content("model", _text(value))))
        elif isinstance(value, list) and len(value) == len(turns) and all(map(_is_text, value)):
            for (_, events), text in zip(turns, value, strict=True):
                events += [_event(text_content("model", text))] if text else []
        else:
            remedy = "choose the text with --map expected=PATH"
            self._reporter("expected")((), f"the expected response is {value_in_words(value)}; {remedy}")

    def _expect_calls(self, conversation: Sequence[Json]) -> list[Json]:
        """Adds the field `calls` to the turns; returns the rules for calls that are names only."""
        value = json_in(self._value("calls"))
        if value in (None, ""):
            return []
        report = self._reporter("calls")
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            report((), "not valid JSON")
            return []
        if isinstance(value, str):
            value = typed_tags(value)
        is_by_turn = isinstance(value, list) and any(item is None or isinstance(item, list) for item in value)
        by_turn = value if is_by_turn else [value]
        if is_by_turn and len(value) != len(conversation):
            listed = counted(len(value), "turn")
            report((), f"lists of calls for {listed}; the row has {len(conversation)}")
            return []
        turns = conversation if is_by_turn else conversation[-1:]
        rules: dict[str, Json] = {}
        for turn, calls in zip(turns, by_turn, strict=True):
            if calls is None:
                continue
            uses = list(_expected_calls(calls, rules, report))
            if uses or not calls:
                turn["intermediate_data"] = {"tool_uses": uses}
        for tool in sorted(rules.keys() & {call["name"] for call in _calls_with_args(conversation)}):
            rules[tool]["match"] = "subset"
            report((), f"further arguments of {tool} pass, as another expected call of it states none")
        return list(rules.values())

    def _state(self) -> Json | None:
        value = json_in(self._value("state"))
        if value is None or isinstance(value, dict):
            return value
        self._reporter("state")((), f"the state must be an object, is {value_in_words(value)}")
        return None

    def _tags(self) -> list[str]:
        tags: dict[str, None] = {}
        for path in self._mapping.paths.get("tag", ()):
            value = json_in(row_value(self._row.values, path))
            value = typed_tags(value) if isinstance(value, str) else value
            items = value if isinstance(value, list) else [value]
            for item in items:
                tag = _text(item)
                if problem := tag_problem(tag):
                    if item not in (None, ""):
                        self._leave_out(row_steps(self._row.values, path), f"the tag {tag!r} {problem}")
                else:
                    tags[tag] = None
        return list(tags)


def _expected_calls(value: Any, rules: dict[str, Json], report: Report) -> Iterator[Json]:
    """Calls as names or objects; for a name alone, a rule lets every argument differ."""
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(item, str) and item:
            rules.setdefault(item, {"tool": item, **_ANY_ARGS})
            yield {"name": item}
            continue
        tool = item.get("tool") if isinstance(item, dict) else None
        item = {**item, "name": tool} if isinstance(tool, str) and "name" not in item else item
        calls = list(map(_without_id, _read_call(item)))
        if not calls:
            report(
                (number,), f"a call must be a name or an object with name and args, is {value_in_words(item)}"
            )
        for call in calls:
            if "args" not in call:
                for name in _unread_members(item):
                    report((number, name), "not read as arguments, which must be args or arguments")
                rules.setdefault(call["name"], {"tool": call["name"], **_ANY_ARGS})
            yield call


# Messages as turns


def _unwrapped(item: Any) -> Any:
    """A message as its readers know it; of one that LangChain has stored, its members and its type."""
    if isinstance(item, dict) and isinstance(data := item.get("data"), dict):
        item = {**data, "type": item.get("type") or data.get("type")}
    if isinstance(item, dict) and "toolCalls" in item and "tool_calls" not in item:
        item = {("tool_calls" if name == "toolCalls" else name): value for name, value in item.items()}
    return item


def contents_of_messages(value: Any, report: Report, role: str = "user") -> list[Json]:
    """The contents of messages without system messages, thoughts and files, which are reported."""
    items = value.get("messages", value) if isinstance(value, dict) else value
    while isinstance(items, list) and len(items) == 1 and isinstance(items[0], list):
        items = items[0]
    items = items if isinstance(items, list) else [] if items is None else [items]
    contents = []
    has_roles = any(isinstance(item, dict) and item.keys() & _OF_ROLES for item in items)
    for number, item in enumerate(map(_unwrapped, items)):
        author = item.get("role") if isinstance(item, dict) else None
        if author is not None and not (isinstance(author, str) and author in ROLES):
            hint = did_you_mean(author, ROLES) if isinstance(author, str) else ""
            report((number, "role"), f"{author!r} is no known role{hint}")
            continue
        if has_roles and isinstance(item, dict) and not item.keys() & _OF_ROLES:
            report((number,), "a message without a role among others with one")
            continue
        read = without_attachments(messages_of([_without_unread_calls(item)], role))
        if not read:
            report((number,), f"not a message that can be read: {value_in_words(item)}")
            continue
        content = read[0]
        if content["role"] == "system":
            report((number,), "a system message: the agent has its own instruction")
            continue
        for path, reason in dict((*_unread_calls(item), *_misspelt(item))).items():
            report((number, *path), reason)
        for key in ("content", "parts") if isinstance(item, dict) else ():
            stated = item.get(key)
            is_read = any(part.keys() & {"text", "function_response"} for part in content["parts"])
            if stated not in (None, "", [], {}) and not isinstance(stated, list) and not is_read:
                report((number, key), f"not one that can be read: {value_in_words(stated)}")
        for part in _unread_parts(item, role):
            report((number, *part), "not a text, call or result that a case can hold")
        parts = [part for part in content["parts"] if not part.get("thought")]
        if len(parts) < len(content["parts"]):
            report((number,), "thoughts, which are not expected")
        contents += [{**content, "parts": parts}] if parts else []
    return contents


def _calls_with_args(conversation: Sequence[Json]) -> Iterator[Json]:
    for turn in conversation:
        data = turn.get("intermediate_data") or {}
        events = data.get("invocation_events") or ()
        for call in (*data.get("tool_uses", ()), *(call for e in events for call in calls_of(e["content"]))):
            if "args" in call:
                yield call


_NO_ARGS = ("name", "tool", "id", "type", "function", "index", "call_id")


def _unread_members(call: Json) -> Iterator[str]:
    """The members of a call without arguments that may have been meant as such."""
    function = call.get("function")
    for name, value in {**call, **(function if isinstance(function, dict) else {})}.items():
        if name not in _NO_ARGS and value not in (None, "", {}, []):
            yield name


def _read_call(call: Any) -> list[Json]:
    """A call of a message as calls of an expectation; empty for one that cannot be read."""
    messages = messages_of([{"role": "assistant", "tool_calls": [call]}]) or ()
    return [read for message in messages for read in calls_of(message)]


def _without_unread_calls(item: Any) -> Any:
    listed = item.get("tool_calls") if isinstance(item, dict) else None
    return {**item, "tool_calls": [*filter(_read_call, listed)]} if isinstance(listed, list) else item


def _without_args(call: Any) -> Iterator[str]:
    """The members of a call that is read without arguments, which may have been meant as such."""
    calls = _read_call(call)
    if calls and "args" not in calls[0] and isinstance(call, dict):
        yield from _unread_members(call)


def _unread_calls(item: Any) -> Iterator[tuple[JsonPath, str]]:
    """The parts of a message beside its content that are not expected, each with the reason."""
    if not isinstance(item, dict):
        return
    listed = item.get("tool_calls")
    if listed and not isinstance(listed, list):
        yield ("tool_calls",), f"must be a list, is {value_in_words(listed)}"
    for number, call in enumerate(listed if isinstance(listed, list) else ()):
        path = "tool_calls", number
        if not _read_call(call):
            yield path, "not a call that can be read"
        yield from (((*path, name), "not read as arguments") for name in _without_args(call))
    for key in ("content", "parts"):
        for number, part in indexed_objects(list_at(item, (key,))):
            name = next((name for name in _CALLS if name in (*part, part.get("type"))), "")
            call = part.get(name, part)
            if name:
                yield from (((key, number, name), "not read as arguments") for name in _without_args(call))
    for name, value in item.items():
        is_list = isinstance(value, list) and name not in (*_OF_MESSAGES, *_NOT_SAID)
        if value and (is_list or name in ("refusal", "invalid_tool_calls")):
            yield (name,), "not expected"


def _misspelt(item: Any) -> Iterator[tuple[JsonPath, str]]:
    """Keys of a message and of its parts that resemble those that are read."""
    if not isinstance(item, dict):
        return
    typos = [*likely_typos(item, _OF_A_MESSAGE)]
    for key in ("content", "parts"):
        for number, part in indexed_objects(list_at(item, (key,))):
            typos += likely_typos(part, _OF_A_PART, (key, number))
            for name, inner in part.items():
                if name.startswith("function") and isinstance(inner, dict):
                    typos += likely_typos(inner, _OF_A_FUNCTION, (key, number, name))
    yield from ((path, reason) for path, reason, *_ in typos)


def _unread_parts(item: Any, role: str) -> Iterator[JsonPath]:
    """The paths of the parts of a message that the reader of messages passes over."""
    if not isinstance(item, dict):
        return
    key = next((key for key in ("content", "parts") if isinstance(item.get(key), list)), "")
    for number, part in enumerate(item[key] if key else ()):
        alone = {"role": item.get("role") or item.get("type") or role, key: [part]}
        contents = without_attachments(messages_of([alone], role)) or []
        if not any(content["parts"] for content in contents) and part not in ("", {}, None):
            yield key, number


def turns_of(contents: Sequence[Json], report: Report) -> list[tuple[Json, list[Json]]]:
    """The user's message and the events after it, for each turn.

    Results get the names of their calls and stand in the order of these; ids are left out.
    """
    turns: list[tuple[Json, list[Json]]] = []
    names: dict[str, str] = {}
    for number, content in enumerate(contents):
        for call in calls_of(content):
            names[str(call.get("id"))] = call["name"]
        results = responses_in([content])
        for result in results:
            name = result.setdefault("name", names.get(str(result.get("id")), ""))
            if not name:
                report((number,), "a result of no call")
        parts = [part for part in content["parts"] if "function_response" not in part]
        if results and turns:
            shown = [part for part in content["parts"] if "function_response" in part]
            turns[-1][1].append(_event({**content, "parts": shown}))
        if _is_of_user(content):
            turns.append(({**content, "parts": parts}, []))
        elif turns and not results:
            turns[-1][1].append(_event(content))
        elif not turns:
            report((number,), "before the first message of the user")
    for number, (_, events) in enumerate(turns):
        answers = [event for event in events if spoken_texts([event["content"]])]
        if len(answers) > 1 and not any(calls_of(event["content"]) for event in events):
            report((), f"turn {number + 1} has several responses; the last one is expected")
        events[:] = _without_ids(events)
    return turns


def _without_ids(events: Sequence[Json]) -> list[Json]:
    """Events without the ids of calls; results in the order of their calls."""
    order = [str(call.get("id")) for event in events for call in calls_of(event["content"])]
    plain: list[Json] = []
    for is_result, group in groupby(events, key=lambda event: bool(responses_in([event["content"]]))):
        items = list(group)
        if is_result:
            items.sort(key=lambda event: _place(order, event))
        for event in items:
            parts = [
                {key: _without_id(value) if isinstance(value, dict) else value for key, value in part.items()}
                for part in event["content"]["parts"]
            ]
            plain.append({**event, "content": {**event["content"], "parts": parts}})
    return plain


def _place(order: Sequence[str], event: Json) -> int:
    call_id = str(responses_in([event["content"]])[0].get("id"))
    return order.index(call_id) if call_id in order else len(order)


def _without_id(call: Json) -> Json:
    return {name: value for name, value in call.items() if name != "id"}


def _are_messages(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(
        isinstance(item, list) or (isinstance(item, dict) and item.keys() & _OF_MESSAGES) for item in items
    )


def _is_of_user(content: Json) -> bool:
    """Whether a content is more than the results of calls."""
    return content["role"] == "user" and any("function_response" not in part for part in content["parts"])


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _event(content: Json) -> Json:
    return {"author": "model", "content": content}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
