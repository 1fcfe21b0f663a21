"""Rules of the `evaltui` block for arguments that may differ.

Rules only allow more differences: equal arguments are always the same. The matches:

- `ignore`: any value, also on one side only; all other matches need a value on both sides.

- `regex`: the whole actual value matches, a text or a number as in JSON. The regexes of one scoring share a
time limit of a few seconds: a slower one allows nothing, and a metric that needs it is an error.

- `approx`: two numbers that differ by at most `abs`, or `rel` times the expected one.

- `any_of`: the actual value equals one of these.

- `type`: two values of one JSON type, or a number and a text of a number.

- `subset`: the actual object or list has all members of the expected one, perhaps more; the order of list
items is free.

- `case_insensitive`: two texts that differ in case only, in any Unicode normal form: `ß` equals `SS`.

Of several rules for a place, only the most specific one applies: for this case of this set, for cases with
this id, for this set, for all; then the longest path, the fewest `[*]`, and the last in the config. A rule
for `filter` applies to all of `filter` except parts with their own rule.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from evaltui.core.conversation.waiting import CONFIRMATION, CREDENTIAL, INPUT
from evaltui.core.model.arg_rule import (
    ALL_ARGS,
    ANY_INDEX,
    Approx,
    ArgPath,
    ArgRule,
    Match,
    MatchBy,
    covers,
    parse_arg_path,
)
from evaltui.core.model.json_values import (
    ABSENT,
    equal,
    hashable_value,
    is_number,
    side_by_side,
    value_at,
    without_places,
)
from evaltui.core.model.problems import JsonPath, format_path
from evaltui.core.model.regexes import PATIENCE, Patience, SlowRegexError
from evaltui.text.values import show_value, visible

Args = dict[str, Any] | None


@dataclass(frozen=True)
class _RankedRule:
    """A rule with its rank; of two rules the one with the higher rank applies."""

    rule: ArgRule
    path: ArgPath
    rank: tuple[int, int, int, int]

    @property
    def number(self) -> int:
        """Its index in the config."""
        return self.rank[-1]


class SlowRuleError(Exception):
    """A rule cannot be decided because its regex takes too long."""

    def __init__(self, config: str, ranked: _RankedRule, slow: SlowRegexError) -> None:
        place = format_path(("evaltui", "rules", ranked.number, "match", "regex"))
        super().__init__(
            f"{config}: {place}: {visible(str(slow))} takes longer than {PATIENCE:g} s on an argument of "
            f"{ranked.rule.tool}. Avoid nested repeats"
        )


@dataclass(frozen=True)
class ToolRules:
    """The rules for the arguments of one tool in one case.

    `patience` is the time left for their regexes. A regex that takes longer does not match, or raises
    SlowRuleError where `config`, the name of their file, is given.
    """

    ranked: tuple[_RankedRule, ...]
    patience: Patience = field(default_factory=Patience)
    config: str | None = None

    def match(self, expected: Args, actual: Args) -> bool:
        """Whether the arguments of two calls are equal, or differ as the rules allow."""
        return all(
            self.passing(expected, actual, path) is not None
            for path, mine, theirs in arg_places(expected, actual)
            if not equal(mine, theirs)
        )

    def unruled(self, args: Args) -> Hashable:
        """The arguments without rules, as a key: calls with different keys never `match`."""
        values = args or {}
        return hashable_value(
            without_places(
                values, {place for ranked in self.ranked for place in reached_places(ranked.path, values)}
            )
        )

    def passing(self, expected: Args, actual: Args, path: JsonPath) -> ArgRule | None:
        """The rule that allows the difference at a place of `side_by_side`; None for none."""
        own = max(
            (ranked for ranked in self.ranked if covers(ranked.path, path)),
            key=lambda ranked: ranked.rank,
            default=None,
        )
        if own is None:
            return None
        place = path[: len(own.path)]
        mine, theirs = (value_at(args or {}, place, ABSENT) for args in (expected, actual))
        others = set(self._overruled_places(own, place, mine, theirs))
        # Where the whole place is one difference, what is inside is not among the differences.
        if path == place and not all(
            self.passing(expected, actual, place + inner)
            or equal(value_at(mine, inner, ABSENT), value_at(theirs, inner, ABSENT))
            for inner in others
        ):
            return None
        sides = without_places(mine, others), without_places(theirs, others)
        try:
            return own.rule if lets_pass(own.rule.match, *sides, others, self.patience) else None
        except SlowRegexError as slow:
            if self.config is None:
                return None
            raise SlowRuleError(self.config, own, slow) from None

    def _overruled_places(
        self, own: _RankedRule, place: JsonPath, mine: Any, theirs: Any
    ) -> Iterator[JsonPath]:
        """The places inside a rule's place, relative to it, to which a more specific rule applies."""
        for ranked in self.ranked:
            if (
                ranked.rank > own.rank
                and len(ranked.path) > len(place)
                and covers(ranked.path[: len(place)], place)
            ):
                inner = ranked.path[len(place) :]
                yield from reached_places(inner, mine)
                yield from reached_places(inner, theirs)


CaseRules = Mapping[str, ToolRules]
NO_RULES: CaseRules = MappingProxyType({})


def rules_of_case(rules: Iterable[ArgRule], eval_set_id: str, eval_id: str) -> CaseRules:
    """The rules that apply in a case, by tool."""
    by_tool: dict[str, list[_RankedRule]] = {}
    for number, rule in enumerate(rules):
        if rule.set in (None, eval_set_id) and rule.case in (None, eval_id):
            path = parse_arg_path(rule.arg)
            scope = 2 * (rule.case is not None) + (rule.set is not None)
            rank = scope, len(path), -path.count(ANY_INDEX), number
            by_tool.setdefault(rule.tool, []).append(_RankedRule(rule, path, rank))
    patience = Patience()
    return {tool: ToolRules(tuple(ranked), patience) for tool, ranked in by_tool.items()} or NO_RULES


def with_patience(rules: CaseRules, config: str | None = None) -> CaseRules:
    """The rules for one scoring, with a new time limit for regexes; for `config` see `ToolRules`."""
    patience = Patience()
    return {tool: replace(own, patience=patience, config=config) for tool, own in rules.items()} or NO_RULES


# Ids that google-adk makes anew for each request to a person. `adk eval` compares them.
REQUEST_ID_RULES = tuple(
    ArgRule(tool=tool, arg=arg, match="ignore")
    for tool, arg in (
        (CONFIRMATION, "originalFunctionCall.id"),
        (INPUT, "interruptId"),
        (CREDENTIAL, "functionCallId"),
    )
)


def same_args(name: str, expected: Args, actual: Args, rules: CaseRules) -> bool:
    return expected == actual or (name in rules and rules[name].match(expected, actual))


def call_keys(name: str, args: Args, rules: CaseRules) -> tuple[Hashable, Hashable]:
    """Two keys to compare calls: calls with different first keys differ, calls with equal second keys are
    equal."""
    exact = name, hashable_value(args)
    return ((name, rules[name].unruled(args)) if name in rules else exact), exact


def arg_places(expected: Args, actual: Args) -> Iterator[tuple[JsonPath, Any, Any]]:
    """The differing places as by `side_by_side`; missing and empty arguments differ as a whole if both sides
    have no arguments."""
    if not expected and not actual:
        yield (), expected, actual
    else:
        yield from side_by_side(expected or {}, actual or {})


def reached_places(path: ArgPath, value: Any, place: JsonPath = ()) -> Iterator[JsonPath]:
    """The existing places in a value for a path."""
    if not path:
        yield place
        return
    step, *rest = path
    if step is ANY_INDEX:
        steps: Iterable[str | int] = range(len(value)) if isinstance(value, list) else ()
    else:
        steps = () if value_at(value, (step,), ABSENT) is ABSENT else (step,)
    for key in steps:
        yield from reached_places(tuple(rest), value_at(value, (key,), ABSENT), (*place, key))


# Two values


def lets_pass(
    how: Match,
    expected: Any,
    actual: Any,
    left_out: Collection[JsonPath] = (),
    patience: Patience | None = None,
) -> bool:
    """Whether two values are equal by a match; ABSENT stands for a missing value.

    `left_out` are places that were removed from both values before. Raises SlowRegexError.
    """
    if how == "ignore" or equal(expected, actual):
        return True
    if expected is ABSENT or actual is ABSENT:
        return False
    match how:
        case "type":
            return _same_type(expected, actual)
        case "subset":
            return _is_within(expected, actual)
        case "case_insensitive":
            texts = isinstance(expected, str) and isinstance(actual, str)
            return texts and _fold_case(expected) == _fold_case(actual)
        case MatchBy(regex=str(regex)):
            return _has_form(regex, actual, patience or Patience())
        case MatchBy(approx=Approx() as approx):
            return _is_near(approx, expected, actual)
        case MatchBy(any_of=list(values)):
            return any(equal(without_places(value, left_out), actual) for value in values)
    return False


def exact_decimal(number: float) -> Decimal:
    """The exact decimal of a number as written: 0.1 is a tenth."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def _fold_case(text: str) -> str:
    """A text folded for comparison without case, in one Unicode normal form."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFC", folded)


def _has_form(regex: str, actual: Any, patience: Patience) -> bool:
    text = actual if isinstance(actual, str) else json.dumps(actual) if is_number(actual) else None
    return text is not None and patience.matches(regex, text)


def _is_near(approx: Approx, expected: Any, actual: Any) -> bool:
    if not (is_number(expected) and is_number(actual)):
        return False
    far = abs(exact_decimal(expected) - exact_decimal(actual))
    by_share = exact_decimal(approx.rel or 0) * abs(exact_decimal(expected))
    return far <= max(exact_decimal(approx.abs or 0), by_share)


def _same_type(expected: Any, actual: Any) -> bool:
    if is_number(expected) or is_number(actual):
        return _spells_number(expected) and _spells_number(actual)
    kinds = (bool, str, list, dict)
    return any(isinstance(expected, kind) and isinstance(actual, kind) for kind in kinds)


def _spells_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value.strip()) is not None
    return is_number(value)


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _is_within(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(key in actual and _is_within(value, actual[key]) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        rest = list(actual)
        for item in expected:
            if item not in rest:
                return False
            rest.remove(item)
        return True
    return equal(expected, actual)


# In words


def match_data(match: Match) -> Any:
    """A match as in the config."""
    return match if isinstance(match, str) else match.model_dump(mode="json", exclude_unset=True)


def match_in_words(data: Any) -> str:
    r"""A match of the config in words: `ignore`, `regex \d+`, `± 0.5`, `one of 19, "19"`; an invalid match as
    JSON."""
    match data:
        case str():
            return visible(data.replace("_", " "))
        case {"regex": str(regex), **others} if not others:
            return f"regex {visible(regex)}"
        case {"approx": dict(approx), **others} if approx and not others:
            return f"± {' or '.join(_tolerance(key, value) for key, value in approx.items())}"
        case {"any_of": list(values), **others} if not others:
            return f"one of {', '.join(map(show_value, values))}"
    return show_value(data)


def _tolerance(key: Any, value: Any) -> str:
    if not is_number(value):
        return show_value(value)
    return f"{value * 100:g} %" if key == "rel" else f"{exact_decimal(value).normalize():f}"


def rule_in_words(rule: ArgRule, path: JsonPath) -> str:
    """A rule in words for the difference that it allows: `ignore`, `ignore, for items[*]`."""
    words = match_in_words(match_data(rule.match))
    if rule.arg == format_path(path):
        return words
    return f"{words}, for {'all arguments' if rule.arg == ALL_ARGS else visible(rule.arg)}"
