"""Changes of responses and tool calls that an eval set should notice: a negation, a call missing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from evaltui.core.gaps.cells import Cell, Tools, cells_of_argument, cells_of_call
from evaltui.core.metrics.answer_rules import has_text, names_in, plain, with_other_units
from evaltui.core.metrics.response_match import same_words
from evaltui.core.model.content import FunctionCall
from evaltui.core.model.json_values import ABSENT, equal, value_at, values_in
from evaltui.core.model.problems import JsonPath, format_path
from evaltui.core.model.renaming import TRANSFER
from evaltui.core.model.tool_schema import member_schema
from evaltui.text.values import show_value

EMPTIED = "answer emptied"
NEGATED = "answer negated"
CUT = "answer cut"
NUMBER = "another number"
DATE = "another date or time"
UNIT = "another unit"
NAME = "another name"
PROMISE = "an invented promise"

"""Kinds that are made of English words."""
# Others that change no word change nothing but punctuation and white space.
_OF_SYMBOLS = (EMPTIED, UNIT)

_PROMISE = " I have also refunded you 100 dollars."
_NAMES = ("Avery", "Morgan")
_MIN_WORDS = 4
_MIN_LETTERS = 8
# A number that is no part of an id, a date or a time.
_NUMBER = re.compile(r"(?<![\w.,:/])(?<!\w-)(?P<first>\d+)(?:[.,]\d+)*(?![\w:/-]|[.,]\d)")
_DATE = re.compile(r"(?<![\w-])\d{4}-\d\d-(?P<last>\d\d)(?![\w-])")
_TIME = re.compile(r"(?<![\w:])\d\d?:(?P<last>\d\d)(?![\w:])")
_VERB = re.compile(r"\b(?:is|are|was|were|will|can|could|should|must|has|have|had)\b(?!n't)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_NOT = re.compile(r"\bnot ", re.IGNORECASE)
_ENGLISH = re.compile(
    r"\b(?:the|is|are|was|were|you|your|it|and|of|with|for|to|from|this|that|will|have|has|not|on|at|i)\b",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"\b(?:de|het|een|en|van|uit|der|die|das|und|ist|ein|eine|nicht|auf|im|le|la|les|et|est|un|une|du|des|pas|el"
    r"|los|las|y|es|una|por|que|il|lo|gli|e|che|di|per|non|att|det|är|och|ett|på|og|til|ikke|er|o|os|um|uma|não)\b",
    re.IGNORECASE,
)


class AnswerChange(NamedTuple):
    """A response after a change."""

    kind: str
    text: str


@lru_cache(maxsize=64)
def is_english(text: str) -> bool:
    """Whether a text has more English function words than those of other languages."""
    return len(_ENGLISH.findall(text)) > len(_OTHER.findall(text))


def answer_changes(text: str) -> Iterator[AnswerChange]:
    """The changes of a response, in order; those of words only of an English one."""
    changes = [
        AnswerChange(EMPTIED, ""),
        *(AnswerChange(CUT, short) for short in _cut(text)),
        *(AnswerChange(NUMBER, changed) for changed in _replaced(text, _NUMBER, "first")),
        *(AnswerChange(DATE, changed) for changed in _replaced(text, _DATE, "last")),
        *(AnswerChange(DATE, changed) for changed in _replaced(text, _TIME, "last")),
        *(AnswerChange(UNIT, changed) for changed in with_other_units(text)),
    ]
    if is_english(text):
        changes += [AnswerChange(NEGATED, changed) for changed in _negated(text)]
        changes += [AnswerChange(NAME, changed) for changed in _renamed(text)]
        changes += [AnswerChange(PROMISE, text.rstrip() + _PROMISE)]
    return (
        change
        for change in changes
        if plain(change.text) != plain(text)
        and (change.kind in _OF_SYMBOLS or not same_words(change.text, text))
    )


def with_number(text: str, number: int | float) -> tuple[str, int | float] | None:
    """The response with a number one further from zero, and that number; None if the response lacks it."""
    for match in _NUMBER.finditer(text):
        written = match[0].replace(",", "")
        is_negative = text[: match.start()].endswith("-")
        if written in (str(abs(number)), f"{abs(number):g}") and is_negative == (number < 0):
            other = _next(match, "first")
            changed = f"{text[: match.start()]}{other}{text[match.end() :]}"
            return changed, number - 1 if is_negative else number + 1
    return None


def without_values(text: str, values: Iterable[object]) -> str:
    """The response without the sentences that have one of these values; "" where none is left."""
    words = [str(value) for value in values if value not in ("", None) and not isinstance(value, bool)]
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    sentences = (text[start:end].strip() for start, end in pairwise(ends))
    rest = (item for item in sentences if item and not any(has_text(item, value) for value in words))
    return " ".join(rest)


def _cut(text: str) -> Iterator[str]:
    words = text.split()
    if len(words) >= _MIN_WORDS:
        yield " ".join(words[: len(words) // 2])
    elif len(words) == 1 and len(text) >= _MIN_LETTERS and not text.isascii():
        # Of a script without spaces.
        yield text[: len(text) // 2]


def _replaced(text: str, pattern: re.Pattern[str], group: str) -> Iterator[str]:
    for match in pattern.finditer(text):
        yield f"{text[: match.start()]}{_next(match, group)}{text[match.end() :]}"


def _next(match: re.Match[str], group: str) -> str:
    """The number, date or time one after that of a match; the last of a month or hour is followed by its
    first."""
    digits, whole, start = match[group], match[0], match.start(group) - match.start()
    most = 0 if group == "first" else 28 if "-" in whole else 59
    number = int(digits) + 1
    if most and number > most:
        number = 1
    return f"{whole[:start]}{number:0{len(digits)}}{whole[start + len(digits) :]}"


def _negated(text: str) -> Iterator[str]:
    """The first negation taken out, else the first statement negated; a question is none."""
    if match := _NOT.search(text):
        yield text[: match.start()] + text[match.end() :]
        return
    for match in _VERB.finditer(text):
        end = _SENTENCE_END.search(text, match.end())
        if end is None or end[0] != "?":
            yield f"{text[: match.end()]} not{text[match.end() :]}"
            return


def _renamed(text: str) -> Iterator[str]:
    for name in names_in(text):
        # A word in capitals is stressed, or a status.
        if name.isalpha() and name.isupper():
            continue
        other = next(other for other in _NAMES if other not in name)
        yield text.replace(name, other, 1)


DROPPED = "call dropped"
REPEATED = "call repeated"
SWAPPED = "calls swapped"
OTHER_TOOL = "another tool"
CHANGED = "argument changed"
ARGUMENT_DROPPED = "argument dropped"
ADDED = "argument added"
OTHER_TYPE = "argument of another type"

Calls = Sequence[FunctionCall]


@dataclass(frozen=True, slots=True)
class CallChange:
    """The calls of a turn after a change."""

    kind: str
    before: str
    """The changed part, short; "" for nothing."""
    after: str
    calls: Calls
    cells: Sequence[Cell]
    """The cells of coverage that the change is about."""


def call_changes(
    calls: Calls,
    tools: Tools,
    *,
    targets: frozenset[int],
    is_same: Callable[[FunctionCall, FunctionCall], bool],
) -> Iterator[CallChange]:
    """The changes of those calls of a turn that are `targets`, by their places from 0.

    A change after which a call `is_same` as before is none, nor is the declared default of an absent
    argument.
    """

    def is_equal(call: FunctionCall, other: FunctionCall) -> bool:
        if is_same(call, other):
            return True
        first, second = (_without_defaults(either, tools) for either in (call, other))
        return (first.name, first.args) == (second.name, second.args) or is_same(first, second)

    for place in sorted(targets):
        call = calls[place]
        before, rest = [*calls[:place]], [*calls[place + 1 :]]
        shown, cells = in_short(call), cells_of_call(call, tools)
        yield CallChange(DROPPED, shown, "", [*before, *rest], cells)
        yield CallChange(REPEATED, shown, f"{shown} twice", [*calls[: place + 1], *calls[place:]], cells)
        if other := _other_tool(call.name or "", tools):
            renamed = call.model_copy(update={"name": other})
            yield CallChange(OTHER_TOOL, call.name or "", other, [*before, renamed, *rest], cells[:1])
        for kind, path, args in _argument_changes(call, tools):
            changed = call.model_copy(update={"args": args})
            if not is_equal(call, changed):
                shown, after = (_argument(call.name, path, some) for some in (call.args or {}, args))
                yield CallChange(
                    kind,
                    shown,
                    after,
                    [*before, changed, *rest],
                    cells_of_argument(call, str(path[0]), tools),
                )
    for first, second in pairwise(range(len(calls))):
        if {first, second} <= targets and not is_equal(calls[first], calls[second]):
            swapped = [*calls[:first], calls[second], calls[first], *calls[second + 1 :]]
            left, right = (in_short(calls[place]) for place in (first, second))
            yield CallChange(SWAPPED, f"{left}, {right}", f"{right}, {left}", swapped, ())


def in_short(call: FunctionCall) -> str:
    """`set_light {"location": "Bedroom"}`"""
    return f"{call.name} {show_value(call.args)}" if call.args else call.name or ""


def _argument(tool: str | None, path: JsonPath, args: dict[str, Any]) -> str:
    value = value_at(args, path, ABSENT)
    return "" if value is ABSENT else f"{tool} {format_path(path)} {show_value(value)}"


def _other_tool(name: str, tools: Tools) -> str:
    """The tool after this one; "" where there is no other."""
    names = sorted({*tools, name} - {TRANSFER} if name != TRANSFER else {*tools, name})
    other = names[(names.index(name) + 1) % len(names)]
    return "" if other == name else other


def _argument_changes(call: FunctionCall, tools: Tools) -> Iterator[tuple[str, JsonPath, dict[str, Any]]]:
    """The kind and the place of each change of an argument, and all arguments after it."""
    args = call.args or {}
    tool = tools.get(call.name or "")
    properties: Mapping[str, Any] = tool.properties if tool else {}
    for name, value in args.items():
        for path, leaf in leaves(value, (name,)):
            schema = properties.get(name)
            for step in path[1:]:
                schema = member_schema(schema, step)
            yield CHANGED, path, with_leaf(args, path, other_value(leaf, schema))
        if (other := _other_type(value)) is not ABSENT:
            yield OTHER_TYPE, (name,), {**args, name: other}
        yield ARGUMENT_DROPPED, (name,), {key: item for key, item in args.items() if key != name}
    added = next((name for name in properties if name not in args), "extra")
    schema = properties.get(added)
    default = _default(schema)
    yield ADDED, (added,), {**args, added: other_value(None if default is ABSENT else default, schema)}


def _without_defaults(call: FunctionCall, tools: Tools) -> FunctionCall:
    """The call without arguments that have the value that its tool declares for absent ones."""
    tool = tools.get(call.name or "")
    if tool is None:
        return call
    args = {
        name: value
        for name, value in (call.args or {}).items()
        if not equal(_default(tool.properties.get(name)), value)
    }
    return call.model_copy(update={"args": args})


def _default(schema: Any) -> Any:
    """The declared value of an absent argument; ABSENT for none."""
    return schema.get("default", ABSENT) if isinstance(schema, Mapping) else ABSENT


def leaves(value: Any, path: JsonPath) -> Iterator[tuple[JsonPath, Any]]:
    """The values inside a value that have none inside, by their paths."""
    for place, item in values_in(value, path):
        if not (item and isinstance(item, dict | list)):
            yield place, item


def with_leaf(value: Any, path: JsonPath, leaf: Any) -> Any:
    """A copy of a value with another one at a path."""
    if not path:
        return leaf
    step, rest = path[0], path[1:]
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[step] = with_leaf(value[step], rest, leaf)
    return copy


def other_value(value: Any, schema: Any = None) -> Any:
    """A value of the same type that is not equal, one of the schema's choices where it has some."""
    choices = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(choices, list) and (others := [choice for choice in choices if choice != value]):
        return others[0]
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1 if value + 1 != value else value / 2
        case str():
            return f"{value} other" if value else "other"
        case [] | {}:
            return ["other"] if isinstance(value, list) else {"other": True}
        case dict() | list():
            path, leaf = next(leaves(value, ()))
            return with_leaf(value, path, other_value(leaf))
    return "other"


def _other_type(value: Any) -> Any:
    """The value as another JSON type, as a model would confuse them; ABSENT for null."""
    match value:
        case None:
            return ABSENT
        case str():
            return int(value) if value.isdecimal() and value.isascii() and len(value) < 20 else [value]
    return json.dumps(value, ensure_ascii=False)
