"""Problems in the data of an eval set, as sentences with paths.

Errors: anything that google-adk 2.13 refuses, duplicate ids and keys, and misspelt keys of cases. Warnings:
anything else that it accepts silently but that has no effect. Paths have the spelling of the data (snake_case
or camelCase).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from evaltui.core.model.content import Content, FunctionCall
from evaltui.core.model.datasets import OWN_KEY, UNSPECIFIED, without_original
from evaltui.core.model.eval_set import (
    EvalCase,
    EvalSet,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    SessionInput,
    UserBehavior,
    UserPersona,
    tool_calls,
)
from evaltui.core.model.json_values import (
    list_at,
    list_or_empty,
    spelled_path,
    spelling_in,
    spelling_pairs,
)
from evaltui.core.model.model_errors import spellings, validate_model
from evaltui.core.model.problems import (
    DUPLICATE_ID,
    DUPLICATE_KEY,
    IGNORED_VALUE,
    INVALID_VALUE,
    NOT_AN_EVAL_SET,
    NOTHING_TO_RUN,
    UNKNOWN_KEY,
    Finding,
    JsonPath,
    LintRule,
    Problem,
    duplicate_key_text,
    has_error,
    likely_typos,
    merge_ignored,
    problems_of,
    unknown_keys,
)
from evaltui.core.model.stored_cases import eval_ids_of
from evaltui.text.values import value_in_words

_SPEAKER_ROLES = (None, "user", "model")
_EVENT_ROLES = (*_SPEAKER_ROLES, "function", "tool")

UNKNOWN_ROLE = LintRule("unknown-role", "A content has a role that ADK does not know", blocks=False)
ORPHAN_RESPONSE = LintRule("orphan-response", "A tool response has no call", blocks=False)


def validate_eval_set(data: Any) -> tuple[EvalSet | None, list[Problem]]:
    """The eval set in parsed JSON, None for errors; and all problems."""
    eval_set, problems = validate_set_level(data)
    if not isinstance(data, dict):
        return None, problems
    cases_key = spelling_in("eval_cases", data)
    cases: list[EvalCase] = []
    for index, raw in enumerate(list_at(data, (cases_key,))):
        case, case_problems = validate_case(raw)
        problems += [replace(problem, path=(cases_key, index, *problem.path)) for problem in case_problems]
        if case is not None:
            cases.append(case)
    problems = merge_ignored(problems)
    if eval_set is None or has_error(problems):
        return None, problems
    eval_set.eval_cases = cases
    return eval_set, problems


def validate_set_level(data: Any) -> tuple[EvalSet | None, list[Problem]]:
    """Validates as `validate_eval_set`, but checks only the ids of cases; the returned set has no cases."""
    if not isinstance(data, dict):
        message = f"must be an object with eval_set_id and eval_cases, is {value_in_words(data)}"
        return None, [NOT_AN_EVAL_SET.at((), message)]
    # ADK reads only the snake_case keys here, so where both are given the other ones must not win.
    twice = {other for name, other in other_spellings(EvalSet) if name in data}
    head = {key: value for key, value in data.items() if key not in twice}
    cases_key = spelling_in("eval_cases", data)
    if isinstance(head.get(cases_key), list):
        head[cases_key] = []
    eval_set, problems = validate_model(EvalSet, head)
    return eval_set, [*problems, *problems_of("set", data)]


def validate_case(data: Any) -> tuple[EvalCase | None, list[Problem]]:
    """A case in parsed JSON, None for errors; and its problems, with paths relative to the case."""
    in_data = problems_of("case data", data)
    case, errors = validate_model(EvalCase, data)
    if case is None:
        return None, errors + in_data
    warnings = [replace(problem, path=spelled_path(problem.path, data)) for problem in case_warnings(case)]
    return case, in_data + warnings


def case_warnings(case: EvalCase) -> list[Problem]:
    """Problems because of which a case can never pass although ADK reads it; snake_case paths relative to the
    case."""
    return problems_of("case", case)


# Checks of a set's data, but for its cases


@UNKNOWN_KEY.checks("set")
def _unknown_keys_of_set(data: dict[str, Any]) -> Iterator[Finding]:
    yield from unknown_keys(data, spellings(EvalSet))
    for name, other in other_spellings(EvalSet):
        if other in data and name not in data:
            yield (other,), f"ADK reads only {name} here"


@DUPLICATE_KEY.checks("set")
def _duplicate_keys_of_set(data: dict[str, Any]) -> Iterator[Finding]:
    for name, other in other_spellings(EvalSet):
        if other in data and name in data:
            yield (other,), duplicate_key_text(name)


@NOTHING_TO_RUN.checks("set")
def _no_cases(data: dict[str, Any]) -> Iterator[Finding]:
    if data.get(key := spelling_in("eval_cases", data)) == []:
        yield (key,), "empty; nothing to run"


@DUPLICATE_ID.checks("set")
def _duplicate_ids(data: dict[str, Any]) -> Iterator[Finding]:
    cases_key = spelling_in("eval_cases", data)
    cases = list_at(data, (cases_key,))
    first: dict[str, int] = {}
    for index, eval_id in enumerate(eval_ids_of(cases)):
        if eval_id is not None and first.setdefault(eval_id, index) != index:
            where = f"{cases_key}[{first[eval_id]}]"
            key = spelling_in("eval_id", cases[index])
            yield (cases_key, index, key), f"duplicate id {eval_id!r}; {where} has it too"


# Checks of a case's data


# The fields of an event of google-adk 2.13 that an eval set does not use: people paste whole events.
_OF_EVENTS = (
    "actions avg_logprobs branch cache_metadata citation_metadata custom_metadata environment_id error_code "
    "error_message finish_reason go_away id input_transcription interaction_id interaction_status "
    "interrupted invocation_id isolation_scope live_session_id live_session_resumption_update "
    "logprobs_result long_running_tool_ids node_info output output_transcription partial timestamp "
    "turn_complete turn_complete_reason voice_activity"
)


@INVALID_VALUE.checks("case data")
def _misspelt_keys(data: Any) -> Iterator[Finding]:
    """Keys that ADK ignores: the case would start, or be checked, otherwise than it says."""
    for model, values, path in _open_objects(data):
        # Programs write events, with more of such names in each release.
        fields = [("author",), ("content",)] if model is InvocationEvent else spellings(model)
        # Another last word makes another name: `session_id` is no `session_input`.
        yield from likely_typos(values, fields, path, likeness=0.85)


@UNKNOWN_KEY.checks("case data")
def _unknown_keys_of_case(data: Any) -> Iterator[Finding]:
    """Unknown keys that ADK silently keeps or drops."""
    misspelt = [*_misspelt_keys(data)]
    for model, values, path in _open_objects(data):
        own = {key: value for key, value in values.items() if key != OWN_KEY or model is not EvalCase}
        others = spelling_pairs(_OF_EVENTS.split()) if model is InvocationEvent else []
        yield from unknown_keys(own, [*spellings(model), *others], path, misspelt)


@DUPLICATE_KEY.checks("case data")
def _duplicate_keys_of_case(data: Any) -> Iterator[Finding]:
    for model, values, path in _open_objects(data):
        for name, other in other_spellings(model):
            if name in values and other in values:
                yield (*path, name), duplicate_key_text(other)


@IGNORED_VALUE.checks("case data")
def _uncompared_attachments(data: Any) -> Iterator[Finding]:
    for turn, turn_path in _items(*_child(data, (), "conversation")):
        response = _child(turn, turn_path, "final_response")
        for part, path in _items(*_child(*response, "parts")):
            for name in ("inline_data", "file_data"):
                value, place = _child(part, path, name)
                if value is not None:
                    yield place, "not compared: built-in metrics read the texts of a response"


def _open_objects(case: Any) -> Iterator[tuple[type[BaseModel], dict[str, Any], JsonPath]]:
    """The objects of a case in which ADK accepts any key, with their models and paths."""
    objects: list[tuple[type[BaseModel], Any, JsonPath]] = [
        (EvalCase, case, ()),
        (SessionInput, *_child(case, (), "session_input")),
    ]
    persona = _child(*_child(case, (), "conversation_scenario"), "user_persona")
    objects.append((UserPersona, *persona))
    objects += [(UserBehavior, *behavior) for behavior in _items(*_child(*persona, "behaviors"))]
    for turn, turn_path in _items(*_child(case, (), "conversation")):
        intermediate = _child(turn, turn_path, "intermediate_data")
        events = _items(*_child(*intermediate, "invocation_events"))
        objects += [(InvocationEvent, event, event_path) for event, event_path in events]
    return ((model, values, path) for model, values, path in objects if isinstance(values, dict))


def other_spellings(model: type[BaseModel]) -> list[tuple[str, str]]:
    """The fields of a model whose camelCase name differs, with that name."""
    return [(name, other) for name, other in spelling_pairs(model.model_fields) if other != name]


def _child(data: Any, path: JsonPath, name: str) -> tuple[Any, JsonPath]:
    if not isinstance(data, dict):
        return None, path
    key = spelling_in(name, data)
    return data.get(key), (*path, key)


def _items(data: Any, path: JsonPath) -> Iterator[tuple[Any, JsonPath]]:
    for index, item in enumerate(list_or_empty(data)):
        yield item, (*path, index)


# Checks of a case


@NOTHING_TO_RUN.checks("case")
def _no_turns(case: EvalCase) -> Iterator[Finding]:
    if case.conversation == []:
        yield ("conversation",), "empty; nothing to run"


@IGNORED_VALUE.checks("case")
def _unsupported_checks(case: EvalCase) -> Iterator[Finding]:
    own = without_original(case.model_extra or {}).get(OWN_KEY)
    if case.conversation != [] and own and case.checks_unspecified:
        yield (OWN_KEY,), f"ignored: only {json.dumps(UNSPECIFIED)} is supported"


@UNKNOWN_ROLE.checks("case")
def _unknown_roles(case: EvalCase) -> Iterator[Finding]:
    for number, turn in enumerate(case.conversation or []):
        path = ("conversation", number)
        contents: list[tuple[Content | None, JsonPath, tuple[str | None, ...]]] = [
            (turn.user_content, ("user_content",), _SPEAKER_ROLES),
            (turn.final_response, ("final_response",), _SPEAKER_ROLES),
        ]
        if isinstance(data := turn.intermediate_data, InvocationEvents):
            contents += [
                (event.content, ("intermediate_data", "invocation_events", index, "content"), _EVENT_ROLES)
                for index, event in enumerate(data.invocation_events)
            ]
        for content, below, roles in contents:
            if content is not None and content.role not in roles:
                names = ", ".join(name for name in roles if name)
                yield (*path, *below, "role"), f"unknown role {content.role!r}; ADK knows {names}"


@ORPHAN_RESPONSE.checks("case")
def _orphan_responses(case: EvalCase) -> Iterator[Finding]:
    # A call that waits for the user has its response in a later turn.
    ids, names = set[str | None](), set[str | None]()
    for number, turn in enumerate(case.conversation or []):
        calls = _calls(turn)
        ids |= {call.id for call in calls if call.id}
        names |= {call.name for call in calls}
        for path, response in _responses(turn.intermediate_data):
            has_call = response.id in ids if response.id else response.name in names
            if not has_call:
                call = f"has id {response.id!r}" if response.id else f"is {response.name!r}"
                no_call = f"orphan tool response: no expected call {call}, here or in an earlier turn"
                yield ("conversation", number, *path), no_call


def _calls(turn: Invocation) -> list[FunctionCall]:
    """The calls of a turn, including calls that end the turn."""
    parts = (turn.final_response.parts or []) if turn.final_response else []
    return [
        *tool_calls(turn.intermediate_data),
        *(part.function_call for part in parts if part.function_call),
    ]


def _responses(data: IntermediateData | InvocationEvents | None) -> Iterator[tuple[JsonPath, Any]]:
    if isinstance(data, IntermediateData):
        for index, response in enumerate(data.tool_responses):
            yield ("intermediate_data", "tool_responses", index), response
    elif isinstance(data, InvocationEvents):
        for index, event in enumerate(data.invocation_events):
            for number, part in enumerate((event.content.parts or []) if event.content else []):
                if part.function_response:
                    steps = ("invocation_events", index, "content", "parts", number, "function_response")
                    yield ("intermediate_data", *steps), part.function_response
