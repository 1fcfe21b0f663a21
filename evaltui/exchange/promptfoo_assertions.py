"""Assertions of promptfoo as expectations of a turn: expected response, calls, rules and rubrics.

Source: promptfoo 0.123.1. A text that names a tool there is a pattern with `*` and `?`.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from evaltui.core.model.arg_rule import arg_path_text
from evaltui.core.model.json_schemas import check_schema
from evaltui.core.model.json_values import values_in
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.regexes import check_regex
from evaltui.documents.json_text import parse
from evaltui.exchange.imported import Json, Report

FILE = "file://"
MATCH_TYPES = ("ANY_ORDER", "IN_ORDER", "EXACT")
"""Match types, the weakest first."""
RESPONSE_RUBRIC, CONVERSATION_RUBRIC = "FINAL_RESPONSE_QUALITY", "TRAJECTORY_QUALITY"
_METRICS = {
    RESPONSE_RUBRIC: "rubric_based_final_response_quality_v1",
    CONVERSATION_RUBRIC: "rubric_based_multi_turn_trajectory_quality_v1",
}
_PATTERN = re.compile(r"[*?]")


@dataclass(frozen=True)
class Requirement:
    """A value that a criterion of the set should have, by one assertion."""

    value: Any
    source: str
    """File, or file and line, of the assertion."""
    path: JsonPath


@dataclass(frozen=True)
class ComparedArgs:
    """Stated arguments of an expected call, by one assertion."""

    tool: str
    is_exact: bool
    """Whether further arguments fail."""
    names: Collection[str]
    """The stated arguments."""
    ignored: Collection[str]
    """Arguments that may differ, where the others are compared in full."""
    source: str
    path: JsonPath


@dataclass
class Expectations:
    """Expectations of a turn, added to by each of its assertions."""

    response: str | None = None
    calls: list[Json] = field(default_factory=list)
    """Expected calls; those without `args` are names only."""
    compared: list[ComparedArgs] = field(default_factory=list)
    answers: list[Json] = field(default_factory=list)
    """Checks of the answer, without its turn."""
    rubrics: list[tuple[str, str]] = field(default_factory=list)
    """Types of rubrics, with their texts."""
    match_types: list[Requirement] = field(default_factory=list)
    thresholds: dict[str, list[Requirement]] = field(default_factory=dict)
    """Values by metric."""
    weaker: list[tuple[JsonPath, str]] = field(default_factory=list)
    """Parts of assertions that are less strict here, each with the reason."""

    def require(self, metric: str, value: Any, assertion: _Assertion) -> None:
        self.thresholds.setdefault(metric, []).append(assertion.requires(value))

    def limit(self, metric: str) -> float:
        """The least upper limit of a metric that the turn has."""
        return min(float(requirement.value) for requirement in self.thresholds[metric])


class _NotTakenError(Exception):
    """The reason why an assertion is not taken, as a clause."""


@dataclass(frozen=True)
class _Assertion:
    value: Any
    threshold: Any
    source: str
    path: JsonPath

    def requires(self, value: Any) -> Requirement:
        return Requirement(value, self.source, self.path)


_Handler = Callable[[Expectations, _Assertion], None]


def _equals(turn: Expectations, assertion: _Assertion) -> None:
    _respond(turn, assertion)
    turn.answers.append({"regex": rf"\A{_literal(str(assertion.value))}\Z"})


def _alike(turn: Expectations, assertion: _Assertion) -> None:
    _respond(turn, assertion)
    threshold = 0.75 if assertion.threshold is None else _number(assertion.threshold)
    turn.require("response_match_score", threshold, assertion)


def _respond(turn: Expectations, assertion: _Assertion) -> None:
    if not isinstance(assertion.value, str | int | float) or isinstance(assertion.value, bool):
        raise _NotTakenError("the expected response must be a text")
    if turn.response is not None and turn.response != str(assertion.value):
        raise _NotTakenError("the turn has another expected response already")
    turn.response = str(assertion.value)


def _check(make: Callable[[list[str]], Json], *, with_commas: bool = False) -> _Handler:
    """The handler of an assertion with a text, or several, that the answer is checked for.

    `with_commas` where a text is a list with commas, as promptfoo reads it.
    """

    def handle(turn: Expectations, assertion: _Assertion) -> None:
        values = assertion.value if isinstance(assertion.value, list) else [assertion.value]
        if with_commas and isinstance(assertion.value, str):
            values = [text.strip() for text in next(csv.reader([assertion.value], skipinitialspace=True), [])]
        if not values or not all(isinstance(value, str | int | float) and str(value) for value in values):
            raise _NotTakenError("must have a text, or a list of texts")
        turn.answers.append(make([str(value) for value in values]))

    return handle


def _each_of(values: list[str]) -> Json:
    """A check for all texts, with regard to case."""
    if len(values) == 1:
        return {"regex": _literal(values[0])}
    return {"regex": "".join(rf"(?=[\s\S]*{_literal(value)})" for value in values)}


def _literal(text: str) -> str:
    """A regular expression for a text."""
    return re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text)


def _in_any_case(make: Callable[[list[str]], Json]) -> Callable[[list[str]], Json]:
    """A check without regard to case; like promptfoo's, it finds texts inside of words."""
    return lambda values: {"regex": f"(?i){make(values)['regex']}"}


def _some_of(values: list[str]) -> Json:
    return {"regex": _any_of(values)}


def _none_of(values: list[str]) -> Json:
    return {"regex": rf"\A(?![\s\S]*(?:{_any_of(values)}))"}


def _any_of(values: list[str]) -> str:
    return "|".join(map(_literal, values))


def _regex(turn: Expectations, assertion: _Assertion) -> None:
    try:
        check_regex(assertion.value)
    except (TypeError, ValueError) as error:
        raise _NotTakenError(f"a regular expression that Python does not read: {error}") from error
    turn.answers.append({"regex": assertion.value})


def _is_json(turn: Expectations, assertion: _Assertion) -> None:
    schema = assertion.value
    schema = parse(schema) if isinstance(schema, str) and schema else schema
    if schema not in (None, "") and not isinstance(schema, dict):
        raise _NotTakenError("the value must be a JSON Schema")
    try:
        check_schema(schema or {})
    except ValueError as error:
        raise _NotTakenError(f"the schema {error}") from error
    if any(isinstance(part, dict) and isinstance(part.get("format"), str) for _, part in values_in(schema)):
        turn.weaker.append(((*assertion.path, "value"), "format is not checked"))
    turn.answers.append({"json_schema": schema or {}})


def _rubric(turn: Expectations, assertion: _Assertion) -> None:
    texts = assertion.value if isinstance(assertion.value, list) else [assertion.value]
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise _NotTakenError("the rubric must be a text")
    for text in texts:
        _add_rubric(turn, RESPONSE_RUBRIC, text.strip(), assertion)


def _facts(turn: Expectations, assertion: _Assertion) -> None:
    if not isinstance(assertion.value, str):
        raise _NotTakenError("the facts must be a text")
    text = f"The response does not contradict this: {assertion.value.strip()}"
    _add_rubric(turn, RESPONSE_RUBRIC, text, assertion)


def _relevance(turn: Expectations, assertion: _Assertion) -> None:
    _add_rubric(turn, RESPONSE_RUBRIC, "The response answers the message of the user.", assertion)


def _goal(turn: Expectations, assertion: _Assertion) -> None:
    value = assertion.value
    goal = value.get("goal") if isinstance(value, dict) else value
    if not isinstance(goal, str) or not goal.strip():
        raise _NotTakenError("the goal must be a text")
    _add_rubric(turn, CONVERSATION_RUBRIC, f"The agent reaches this goal: {goal.strip()}", assertion)


def _add_rubric(turn: Expectations, kind: str, text: str, assertion: _Assertion) -> None:
    if assertion.threshold not in (None, 1):
        turn.weaker.append(((*assertion.path, "threshold"), "a rubric is fulfilled or not"))
    turn.rubrics.append((kind, text))
    turn.require(_METRICS[kind], 1.0, assertion)


def _sequence(turn: Expectations, assertion: _Assertion) -> None:
    value = assertion.value
    steps, mode = (
        (value.get("steps"), value.get("mode", "in_order"))
        if isinstance(value, dict)
        else (value, "in_order")
    )
    if not isinstance(steps, list) or not steps or mode not in ("in_order", "exact"):
        raise _NotTakenError("must be a list of tools, or an object with steps and mode in_order or exact")
    if turn.calls:
        raise _NotTakenError("the turn has another sequence of calls already")
    turn.calls += [{"name": _tool(step)} for step in steps]
    turn.match_types.append(assertion.requires("EXACT" if mode == "exact" else "IN_ORDER"))


def _args_match(turn: Expectations, assertion: _Assertion) -> None:
    value = assertion.value
    args = value.get("args", value.get("arguments")) if isinstance(value, dict) else None
    if not isinstance(args, dict):
        raise _NotTakenError("must be an object with name and args")
    if value.get("defaults"):
        raise _NotTakenError("defaults of arguments have no counterpart")
    tool, mode, ignore = _tool(value), value.get("mode", "partial"), value.get("ignore") or []
    if mode not in ("partial", "exact"):
        raise _NotTakenError("mode must be partial or exact")
    patterns = ignore if isinstance(ignore, list) else [ignore]
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise _NotTakenError("ignore must be a list of names")
    exact = [pattern for pattern in patterns if not _PATTERN.search(pattern)]
    if mode == "exact" and len(exact) < len(patterns):
        raise _NotTakenError("ignored arguments must be named without * and ?")
    call = next((call for call in turn.calls if call["name"] == tool and "args" not in call), None)
    if call is None:
        turn.calls.append(call := {"name": tool})
        turn.match_types.append(assertion.requires("ANY_ORDER"))
    call["args"] = {
        name: arg for name, arg in args.items() if not any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    is_exact = mode == "exact"
    ignored = exact if is_exact else ()
    turn.compared.append(
        ComparedArgs(tool, is_exact, call["args"], ignored, assertion.source, assertion.path)
    )
    if not is_exact and any(isinstance(arg, list) for _, arg in values_in(args)):
        turn.weaker.append((assertion.path, "lists may have further items, in any order (rule `subset`)"))


def rules_of_case(turns: Sequence[Expectations], weaker: Callable[[ComparedArgs, str], None]) -> list[Json]:
    """The rules for arguments in a case, whose calls of a tool share them.

    Arguments of calls that are names only may differ in full. `weaker` takes the assertions that rules for
    others make less strict, each with the reason.
    """
    names = {call["name"] for turn in turns for call in turn.calls if "args" not in call}
    compared = [args for turn in turns for args in turn.compared]
    parts = {args.tool for args in compared if not args.is_exact} | names
    rules = [
        {"tool": args.tool, "arg": arg_path_text((name,)), "match": "ignore"}
        for args in compared
        for name in args.ignored
    ]
    stated = {args.tool for args in compared}
    rules += (
        {"tool": tool, "arg": "*", "match": "subset" if tool in stated else "ignore"}
        for tool in sorted(parts)
    )
    for args in compared:
        if args.is_exact and args.tool in parts:
            weaker(args, f"further arguments of {args.tool} pass, as those of another expected call of it")
        for other in compared:
            freed = set(other.ignored) - set(args.ignored) if other.tool == args.tool else set()
            for name in sorted(freed if args.is_exact else freed & set(args.names)):
                weaker(args, f"{name} of {args.tool} is not compared: another assertion ignores it")
    return [rule for number, rule in enumerate(rules) if rule not in rules[:number]]


def _used(turn: Expectations, assertion: _Assertion) -> None:
    value = assertion.value
    if isinstance(value, dict):
        if value.get("max") is not None:
            raise _NotTakenError("a greatest number of calls has no counterpart")
        minimum = value.get("min", 1)
        if not isinstance(minimum, int) or isinstance(minimum, bool) or minimum < 1:
            raise _NotTakenError("min must be a number of calls, 1 or more")
        tools = [_tool(value)] * minimum
    else:
        tools = [_tool(tool) for tool in (value if isinstance(value, list) else [value])]
    if not tools:
        raise _NotTakenError("must name a tool")
    missing = Counter(tools) - Counter(call["name"] for call in turn.calls)
    if missing:
        turn.calls += [{"name": tool} for tool in missing.elements()]
        turn.match_types.append(assertion.requires("ANY_ORDER"))


def _tool(value: Any) -> str:
    name = (value.get("pattern") or value.get("name")) if isinstance(value, dict) else value
    if not isinstance(name, str) or not name:
        raise _NotTakenError("must name a tool")
    if _PATTERN.search(name):
        raise _NotTakenError(f"{name!r} is a pattern; name one tool")
    if isinstance(value, dict) and value.get("type", "tool") not in ("tool", ["tool"]):
        raise _NotTakenError("only calls of tools are expected")
    return name


def _cost(turn: Expectations, assertion: _Assertion) -> None:
    turn.require("cost_usd", _number(assertion.threshold), assertion)


def _latency(turn: Expectations, assertion: _Assertion) -> None:
    turn.require("seconds", _number(assertion.threshold) / 1000, assertion)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _NotTakenError("the threshold must be a number")
    return value


ASSERTIONS: Mapping[str, tuple[_Handler, str]] = {
    "trajectory:tool-sequence": (_sequence, "expected calls, match type IN_ORDER or EXACT"),
    "trajectory:tool-args-match": (_args_match, "expected call with arguments, rule `subset` or `ignore`"),
    "trajectory:tool-used": (_used, "expected calls with any arguments, match type ANY_ORDER"),
    "equals": (_equals, "expected response, `answers`: `regex`"),
    "similar": (_alike, "expected response, `response_match_score` with the threshold"),
    "rouge-n": (_alike, "expected response, `response_match_score` with the threshold"),
    "contains": (_check(_each_of), "`answers`: `regex`"),
    "contains-all": (_check(_each_of, with_commas=True), "`answers`: `regex`"),
    "contains-any": (_check(_some_of, with_commas=True), "`answers`: `regex`"),
    "starts-with": (_check(lambda values: {"regex": rf"\A(?:{_any_of(values)})"}), "`answers`: `regex`"),
    "regex": (_regex, "`answers`: `regex`"),
    "not-contains": (_check(_none_of), "`answers`: `regex`"),
    "icontains": (_check(_in_any_case(_each_of)), "`answers`: `regex`"),
    "icontains-all": (_check(_in_any_case(_each_of), with_commas=True), "`answers`: `regex`"),
    "icontains-any": (_check(_in_any_case(_some_of), with_commas=True), "`answers`: `regex`"),
    "not-icontains": (_check(_in_any_case(_none_of)), "`answers`: `regex`"),
    "is-json": (_is_json, "`answers`: `json_schema`"),
    "llm-rubric": (_rubric, "rubric of the response"),
    "g-eval": (_rubric, "rubric of the response"),
    "model-graded-closedqa": (_rubric, "rubric of the response"),
    "factuality": (_facts, "rubric of the response"),
    "model-graded-factuality": (_facts, "rubric of the response"),
    "answer-relevance": (_relevance, "rubric of the response"),
    "trajectory:goal-success": (_goal, "rubric of the conversation"),
    "cost": (_cost, "`cost_usd`, where each test has one"),
    "latency": (_latency, "`seconds`, where each test has one"),
}
"""Assertions that are taken, with their counterparts; they are applied in this order."""
_CODE = "code, which is not run; write a metric function, see `evaltui help criteria`"
REASONS: Mapping[str, str] = {
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), _CODE),
    "trajectory:step-count": "no criterion for the number of calls",
}
"""Reasons why assertions are not taken."""
NO_COUNTERPART = "no counterpart in an eval set"
_READ = ("type", "value", "threshold")
_READ_OF_VALUES = {
    "trajectory:tool-sequence": ("steps", "mode"),
    "trajectory:tool-args-match": (
        *("name", "pattern", "type", "args", "arguments", "defaults", "mode", "ignore"),
    ),
    "trajectory:tool-used": ("name", "pattern", "type", "min", "max"),
    "trajectory:goal-success": ("goal",),
}


def expectations_of(source: str, assertions: Sequence[tuple[JsonPath, Any]], report: Report) -> Expectations:
    """The expectations of a turn by its assertions, which come with their paths in the `source`."""
    turn = Expectations()
    order = list(ASSERTIONS)
    flat = [item for path, assertion in assertions for item in _flat(path, assertion, report)]
    for path, assertion in sorted(
        flat, key=lambda item: order.index(t) if (t := item[1]["type"]) in order else 0
    ):
        kind = assertion["type"]
        handler, _ = ASSERTIONS.get(kind, (None, ""))
        if handler is None:
            reason = NO_COUNTERPART if kind.startswith("not-") else REASONS.get(kind, NO_COUNTERPART)
            report(path, f"{kind}: {reason}")
            continue
        if isinstance(value := assertion.get("value"), str) and value.startswith(FILE):
            report((*path, "value"), "in a file; write it into the assertion")
            continue
        try:
            handler(turn, _Assertion(assertion.get("value"), assertion.get("threshold"), source, path))
        except _NotTakenError as error:
            report(path, f"{kind}: {error}")
            continue
        for name in assertion:
            is_usual = assertion[name] in (None, "", {}) or (name, assertion[name]) == ("weight", 1)
            if name not in _READ and not is_usual:
                report((*path, name), NO_COUNTERPART)
        if isinstance(value, dict) and kind in _READ_OF_VALUES:
            for name in value.keys() - {*_READ_OF_VALUES[kind]}:
                report((*path, "value", name), NO_COUNTERPART)
    for where, reason in turn.weaker:
        report(where, reason)
    return turn


def _flat(path: JsonPath, assertion: Any, report: Report) -> Iterator[tuple[JsonPath, Json]]:
    """An assertion, or those of a set of assertions."""
    if not isinstance(assertion, dict) or not isinstance(assertion.get("type"), str):
        report(path, "not an assertion: it has no type")
    elif assertion["type"] == "assert-set":
        for name in assertion.keys() - {"type", "assert"}:
            report((*path, name), NO_COUNTERPART)
        inner = assertion.get("assert")
        if not isinstance(inner, list):
            report(path, "a set of assertions without a list of them")
        for number, item in enumerate(inner if isinstance(inner, list) else []):
            yield from _flat((*path, "assert", number), item, report)
    else:
        yield path, assertion
