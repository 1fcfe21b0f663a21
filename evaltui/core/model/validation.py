"""Problems in the data of an eval set, as sentences at their places.

Errors are what google-adk 2.13 refuses, and ids and keys that are used twice. Warnings are what it takes
without a word although it cannot work as meant. Paths are as the data spells them (snake_case or camelCase).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from evaltui.core.model.content import Content, FunctionCall
from evaltui.core.model.datasets import OWN_KEY, UNSPECIFIED
from evaltui.core.model.eval_set import (
    EvalCase,
    EvalSet,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    SessionInput,
    tool_calls,
)
from evaltui.core.model.json_values import camel, list_at, path_as_spelt, spelt
from evaltui.core.model.model_errors import spellings, validate_model
from evaltui.core.model.problems import (
    JsonPath,
    LintRule,
    Problem,
    given_twice,
    has_error,
    likely_typos,
    merge_ignored,
    unknown_keys,
)
from evaltui.core.model.stored_cases import eval_ids_of
from evaltui.text.values import in_words

_SPEAKER_ROLES = (None, "user", "model")
_EVENT_ROLES = (*_SPEAKER_ROLES, "function", "tool")


def validate_eval_set(data: Any) -> tuple[EvalSet | None, list[Problem]]:
    """Parsed JSON of the EvalSet schema as a model, None where there is an error; and every problem."""
    if not isinstance(data, dict):
        return None, [_not_a_set(data)]
    cases_key = spelt("eval_cases", data)
    raw_cases = list_at(data, (cases_key,))
    eval_set, problems = _validate_head(data)
    cases: list[EvalCase] = []
    for index, raw in enumerate(raw_cases):
        case, case_problems = validate_case(raw)
        problems += _below((cases_key, index), case_problems)
        if case is not None:
            cases.append(case)
    problems = merge_ignored([*problems, *_duplicate_ids(raw_cases, cases_key)])
    if eval_set is None or has_error(problems):
        return None, problems
    eval_set.eval_cases = cases
    return eval_set, problems


def validate_set_level(data: Any) -> tuple[EvalSet | None, list[Problem]]:
    """Validates as `validate_eval_set`, but of the cases only their ids; the set has no cases."""
    if not isinstance(data, dict):
        return None, [_not_a_set(data)]
    eval_set, problems = _validate_head(data)
    cases_key = spelt("eval_cases", data)
    return eval_set, [*problems, *_duplicate_ids(list_at(data, (cases_key,)), cases_key)]


def validate_case(data: Any) -> tuple[EvalCase | None, list[Problem]]:
    """One case of an eval set as a model, None where there is an error; paths are relative to the case."""
    typos = list(_case_typos(data))
    case, errors = validate_model(EvalCase, data)
    if case is None:
        return None, errors + typos
    warnings = [replace(problem, path=path_as_spelt(problem.path, data)) for problem in case_warnings(case)]
    return case, typos + warnings


def case_warnings(case: EvalCase) -> list[Problem]:
    """Problems that keep a case from ever passing although ADK reads it; snake_case paths relative to the
    case."""
    if case.conversation == []:
        return [Problem.warning(("conversation",), "empty; nothing to run", rule=LintRule.NOTHING_TO_RUN)]
    problems: list[Problem] = []
    calls: list[FunctionCall] = []
    if OWN_KEY in (case.model_extra or {}) and case.checks_unspecified:
        problems.append(Problem.warning((OWN_KEY,), f"ignored: only {json.dumps(UNSPECIFIED)} is supported"))
    for number, turn in enumerate(case.conversation or []):
        path = ("conversation", number)
        # A call that waits for the user has its response in a later turn.
        calls += _calls(turn)
        problems += _unknown_role(turn.user_content, (*path, "user_content"), _SPEAKER_ROLES)
        problems += _unknown_role(turn.final_response, (*path, "final_response"), _SPEAKER_ROLES)
        problems += _below(path, _intermediate_warnings(turn, calls))
    return problems


# The level of the set


def _not_a_set(data: Any) -> Problem:
    return Problem.error(
        (),
        f"must be an object with eval_set_id and eval_cases, is {in_words(data)}",
        rule=LintRule.NOT_AN_EVAL_SET,
    )


def _validate_head(data: dict[str, Any]) -> tuple[EvalSet | None, list[Problem]]:
    # ADK reads only the snake_case keys here, so where both are given the other ones must not win.
    twice = {camel(name) for name in EvalSet.model_fields if name in data and camel(name) != name}
    head = {key: value for key, value in data.items() if key not in twice}
    cases_key = spelt("eval_cases", data)
    if isinstance(head.get(cases_key), list):
        head[cases_key] = []
    eval_set, problems = validate_model(EvalSet, head)
    return eval_set, [*problems, *_set_warnings(data)]


def _set_warnings(data: dict[str, Any]) -> Iterator[Problem]:
    yield from unknown_keys(data, spellings(EvalSet))
    for name in EvalSet.model_fields:
        other = camel(name)
        if other != name and other in data:
            if name in data:
                yield given_twice((other,), name)
            else:
                only = f"ADK reads only {name} here"
                yield Problem.warning((other,), only, rule=LintRule.UNKNOWN_KEY)
    if data.get(key := spelt("eval_cases", data)) == []:
        yield Problem.warning((key,), "empty; nothing to run", rule=LintRule.NOTHING_TO_RUN)


def _duplicate_ids(raw_cases: Sequence[Any], cases_key: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, eval_id in enumerate(eval_ids_of(raw_cases)):
        if eval_id is not None and first.setdefault(eval_id, index) != index:
            where = f"{cases_key}[{first[eval_id]}]"
            key = spelt("eval_id", raw_cases[index])
            yield Problem.error(
                (cases_key, index, key),
                f"duplicate id {eval_id!r}; {where} has it too",
                rule=LintRule.DUPLICATE_ID,
            )


# Warnings inside a case


def _case_typos(case: Any) -> Iterator[Problem]:
    """Unknown keys where ADK keeps or drops them without a word; of recorded events only likely mistakes."""
    of_case = (
        {key: value for key, value in case.items() if key != OWN_KEY} if isinstance(case, dict) else case
    )
    yield from _open_keys(EvalCase, of_case, (), unknown_keys)
    yield from _open_keys(SessionInput, *_child(case, (), "session_input"), unknown_keys)
    for turn, turn_path in _items(*_child(case, (), "conversation")):
        intermediate = _child(turn, turn_path, "intermediate_data")
        for event, event_path in _items(*_child(*intermediate, "invocation_events")):
            yield from _open_keys(InvocationEvent, event, event_path, likely_typos)


def _open_keys(
    model: type[BaseModel],
    data: Any,
    path: JsonPath,
    unknown: Callable[[Mapping[str, Any], Iterable[Sequence[str]], JsonPath], Iterator[Problem]],
) -> Iterator[Problem]:
    if not isinstance(data, dict):
        return
    yield from unknown(data, spellings(model), path)
    for name in model.model_fields:
        if camel(name) != name and name in data and camel(name) in data:
            yield given_twice((*path, name), camel(name))


def _child(data: Any, path: JsonPath, name: str) -> tuple[Any, JsonPath]:
    if not isinstance(data, dict):
        return None, path
    key = spelt(name, data)
    return data.get(key), (*path, key)


def _items(data: Any, path: JsonPath) -> Iterator[tuple[Any, JsonPath]]:
    for index, item in enumerate(data if isinstance(data, list) else []):
        yield item, (*path, index)


def _unknown_role(
    content: Content | None, path: JsonPath, roles: tuple[str | None, ...]
) -> Iterator[Problem]:
    if content is not None and content.role not in roles:
        names = ", ".join(name for name in roles if name)
        yield Problem.warning(
            (*path, "role"), f"unknown role {content.role!r}; ADK knows {names}", rule=LintRule.UNKNOWN_ROLE
        )


def _calls(turn: Invocation) -> list[FunctionCall]:
    """The calls of a turn, one that ends the turn included."""
    parts = (turn.final_response.parts or []) if turn.final_response else []
    return [
        *tool_calls(turn.intermediate_data),
        *(part.function_call for part in parts if part.function_call),
    ]


def _intermediate_warnings(turn: Invocation, calls: Sequence[FunctionCall]) -> Iterator[Problem]:
    """`calls` are those of this turn and of those before."""
    data = turn.intermediate_data
    ids = {call.id for call in calls if call.id}
    names = {call.name for call in calls}
    for path, response in _responses(data):
        if response.id and response.id not in ids:
            no_call = f"no expected call has id {response.id!r}, here or in an earlier turn"
            yield Problem.warning(path, f"orphan tool response: {no_call}", rule=LintRule.ORPHAN_RESPONSE)
        elif not response.id and response.name not in names:
            no_call = f"no expected call is {response.name!r}, here or in an earlier turn"
            yield Problem.warning(path, f"orphan tool response: {no_call}", rule=LintRule.ORPHAN_RESPONSE)
    if isinstance(data, InvocationEvents):
        for index, event in enumerate(data.invocation_events):
            where = ("intermediate_data", "invocation_events", index, "content")
            yield from _unknown_role(event.content, where, _EVENT_ROLES)


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


def _below(path: JsonPath, problems: Iterable[Problem]) -> list[Problem]:
    return [replace(problem, path=(*path, *problem.path)) for problem in problems]
