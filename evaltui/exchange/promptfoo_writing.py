"""Eval cases as tests of promptfoo, and the parts that its tests have no place for.

Source: promptfoo 0.123.1.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaltui.core.model.arg_rule import ArgRule, parse_arg_path
from evaltui.core.model.config import BaseCriterion, EvalConfig
from evaltui.core.model.datasets import OWN_KEY, UNSPECIFIED
from evaltui.core.model.json_values import ABSENT, field_of, side_by_side
from evaltui.core.model.problems import JsonPath
from evaltui.documents.dataset_meaning import meaning_of_case, names_at, parts_of, path_in
from evaltui.exchange.imported import Json, UnusableSourceError
from evaltui.exchange.promptfoo import cases_of_suite
from evaltui.exchange.promptfoo_assertions import RESPONSE_RUBRIC
from evaltui.exchange.row_writing import events_of_turn, text_of_content
from evaltui.text.figures import counted

PROVIDER = "echo"
"""The provider of a written suite, which repeats its prompt: the user replaces it."""
_TRAJECTORY, _RESPONSE = "tool_trajectory_avg_score", "response_match_score"
_MODES = {"EXACT": "exact", "IN_ORDER": "in_order"}
_RUBRICS = "rubric_based_final_response_quality_v1"
_WRITTEN_METRICS = {_TRAJECTORY, _RESPONSE, _RUBRICS}


def suite_of(set_id: str, cases: Sequence[Json], config: EvalConfig) -> Json:
    """A set as a config of promptfoo: a test for each turn, those of a case with one `conversationId`."""
    tests = [
        _test(case, number, config, set_id)
        for case in cases
        for number in range(len(field_of(case, "conversation") or []))
    ]
    return {"description": set_id, "prompts": ["{{prompt}}"], "providers": [PROVIDER], "tests": tests}


def lost_in_suite(suite: Json, case: Json) -> Iterator[tuple[JsonPath, str]]:
    """The parts of a case that its tests do not give when they are imported, each with the reason.

    `suite` has the tests of this case alone.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "suite.json"
        path.write_text(json.dumps(suite), encoding="utf-8")
        try:
            (imported,) = cases_of_suite(path).cases
        except (UnusableSourceError, ValueError):
            yield (), "no test can hold it: it has no message of the user"
            return
    read = imported.case
    paths: dict[JsonPath, None] = {}
    for where, before, after in side_by_side(meaning_of_case(case), meaning_of_case(read)):
        if before is ABSENT or after is ABSENT or before != after:
            paths[path_in(case, names_at(where))] = None
    yield from ((where, "a test has no place for it") for where in paths)
    if case.get(OWN_KEY) != UNSPECIFIED and read.get(OWN_KEY) == UNSPECIFIED:
        yield (OWN_KEY,), "absent responses and calls, which the case checks, are not checked after an import"


def lost_settings(config: EvalConfig, set_id: str) -> Iterator[str]:
    """The criteria, checks and rules of a config that tests have no place for, as sentences."""
    names = {*config.criteria, *config.evaltui.criteria}
    if others := sorted(names - _WRITTEN_METRICS):
        yield f"criteria {', '.join(others)}: left out; add assertions of your own"
    if rubrics := _options(config.criteria.get(_RUBRICS)).get("rubrics"):
        yield f"criteria {_RUBRICS}: {counted(len(rubrics), 'rubric')} left out: write them into turns"
    answers = [rule for rule in config.evaltui.answers if rule.set in (None, set_id)]
    if any(rule.numbers for rule in answers):
        yield 'evaltui.answers: "numbers" left out: no assertion compares numbers'
    if any(rule.agent for rule in answers):
        yield 'evaltui.answers: "agent" left out: a test has no agents'
    if any(rule.contains or rule.not_contains for rule in answers):
        yield "evaltui.answers: texts inside of words count, too, in icontains-all and not-icontains"
    rules = [rule for rule in config.evaltui.rules if rule.set in (None, set_id)]
    if others := sorted({_kind_of(rule) for rule in rules if not _is_written(rule)}):
        yield f"evaltui.rules: {', '.join(others)} left out: promptfoo compares these arguments by value"
    for name in ("thoughts", "outputs"):
        if getattr(config.evaltui, name) == "score":
            yield f'evaltui.{name}: "score" left out: promptfoo compares what its provider returns'
    if any(mark.set == set_id for mark in config.evaltui.turns):
        yield "evaltui.turns: marks left out: a test checks its turn"


def _kind_of(rule: ArgRule) -> str:
    return rule.match if isinstance(rule.match, str) else next(iter(rule.match.model_fields_set))


def _is_written(rule: ArgRule) -> bool:
    """Whether `trajectory:tool-args-match` has the rule: some of all arguments, or an ignored one."""
    steps = parse_arg_path(rule.arg)
    return (rule.match == "subset" and not steps) or (rule.match == "ignore" and len(steps) == 1)


def _test(case: Json, number: int, config: EvalConfig, set_id: str) -> Json:
    turns = field_of(case, "conversation")
    turn, eval_id = turns[number], str(field_of(case, "eval_id"))
    test: Json = {
        "description": eval_id,
        "vars": {"prompt": text_of_content(field_of(turn, "user_content"))},
        "assert": [
            *_call_assertions(turn, config, (set_id, eval_id)),
            *_response_assertions(turn, config),
            *_answer_assertions(config, set_id, eval_id, number),
            *_rubric_assertions(turn),
        ],
    }
    return test | ({"metadata": {"conversationId": eval_id}} if len(turns) > 1 else {})


def _call_assertions(turn: Json, config: EvalConfig, case: tuple[str, str]) -> Iterator[Json]:
    if _TRAJECTORY not in config.criteria:
        return
    calls = [part for event in events_of_turn(turn) for kind, part in parts_of(event) if kind == "call"]
    names = [str(call.get("name")) for call in calls]
    options = _options(config.criteria[_TRAJECTORY])
    if mode := _MODES.get(str(options.get("match_type", "EXACT"))):
        if names:
            yield {"type": "trajectory:tool-sequence", "value": {"mode": mode, "steps": names}}
    else:
        for name, count in Counter(names).items():
            yield {"type": "trajectory:tool-used", "value": {"name": name, "min": count}}
    for call in () if options.get("ignore_args") else calls:
        yield {
            "type": "trajectory:tool-args-match",
            "value": {"name": call.get("name"), "args": call["args"] or {}, **_matching(call, config, case)},
        }


def _matching(call: Json, config: EvalConfig, case: tuple[str, str]) -> Json:
    """How the arguments of a call are compared, by the rules for its tool."""
    rules = [
        rule
        for rule in config.evaltui.rules
        if rule.tool == call.get("name") and rule.set in (None, case[0]) and rule.case in (None, case[1])
    ]
    if any(rule.match == "subset" and rule.arg == "*" for rule in rules):
        return {"mode": "partial"}
    ignored = [
        str(parse_arg_path(rule.arg)[0]) for rule in rules if rule.match == "ignore" and _is_written(rule)
    ]
    return {"mode": "exact", **({"ignore": ignored} if ignored else {})}


def _response_assertions(turn: Json, config: EvalConfig) -> Iterator[Json]:
    text = text_of_content(field_of(turn, "final_response"))
    criterion = config.criteria.get(_RESPONSE)
    if text and criterion is not None:
        threshold = criterion.threshold if isinstance(criterion, BaseCriterion) else criterion
        yield {"type": "rouge-n", "value": text, "threshold": threshold}


def _answer_assertions(config: EvalConfig, set_id: str, eval_id: str, number: int) -> Iterator[Json]:
    for rule in config.answer_rules(set_id, eval_id):
        if rule.turn not in (None, number):
            continue
        if rule.contains:
            yield {"type": "icontains-all", "value": rule.contains}
        yield from ({"type": "not-icontains", "value": text} for text in rule.not_contains or ())
        if rule.regex is not None:
            yield {"type": "regex", "value": rule.regex}
        if rule.json_schema is not None:
            yield {"type": "is-json", "value": rule.json_schema}


def _rubric_assertions(turn: Json) -> Iterator[Json]:
    for rubric in field_of(turn, "rubrics") or []:
        text = field_of(field_of(rubric, "rubric_content") or {}, "text_property")
        if text and field_of(rubric, "type") in (None, RESPONSE_RUBRIC):
            yield {"type": "llm-rubric", "value": text}


def _options(criterion: Any) -> Mapping[str, Any]:
    return (criterion.model_extra or {}) if isinstance(criterion, BaseCriterion) else {}
