"""When arguments of calls that differ count as the same: the rules of the `evaltui` block.

A rule only ever lets more pass: equal arguments are the same whatever it says. What it says of two values:

- `ignore`: anything, also an argument that one side does not have; all others need a value on both sides.
- `regex`: the whole actual value, a text or a number as JSON writes it, matches. The regexes of one scoring
  have a few seconds together: what takes longer lets nothing pass, and a metric that needs it is an error.
- `approx`: both are numbers, at most `abs` or `rel` times the expected one apart.
- `any_of`: the actual value equals one of these.
- `type`: both are of the same JSON type, or a number and a text that spells one.
- `subset`: all that an expected object or list has is in the actual one, which may have more; the order of
  list items is free.
- `case_insensitive`: two texts that differ in upper and lower case at most, however Unicode writes them:
  `é` is one letter or two, `ß` is `SS`.

Of several rules for a place the most specific one holds, alone: one for this case of this set before one for
cases of this id, for this set, for everything; of these the one with the longer path, then the one with fewer
`[*]`, then the later one. So a rule for `filter` holds for all of `filter` but what has a rule of its own.
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
    """A rule, and how specific it is: of two the greater one holds."""

    rule: ArgRule
    path: ArgPath
    rank: tuple[int, int, int, int]

    @property
    def number(self) -> int:
        """Its place in the config, from 0."""
        return self.rank[-1]


class SlowRuleError(Exception):
    """A rule that cannot be decided: its regex takes too long."""

    def __init__(self, config: str, ranked: _RankedRule, slow: SlowRegexError) -> None:
        place = format_path(("evaltui", "rules", ranked.number, "match", "regex"))
        super().__init__(
            f"{config}: {place}: {visible(str(slow))} takes longer than {PATIENCE:g} s on an argument of "
            f"{ranked.rule.tool}. Avoid nested repeats"
        )


@dataclass(frozen=True)
class ToolRules:
    """The rules for the arguments of one tool in one case.

    `patience` is what their regexes have left. What takes longer is no match, or with `config`, the name of
    the file that they are from, a SlowRuleError.
    """

    ranked: tuple[_RankedRule, ...]
    patience: Patience = field(default_factory=Patience)
    config: str | None = None

    def match(self, expected: Args, actual: Args) -> bool:
        """Whether the arguments of two calls are the same, by the rules where they are not equal."""
        return all(
            self.passing(expected, actual, path) is not None
            for path, mine, theirs in arg_places(expected, actual)
            if not equal(mine, theirs)
        )

    def unruled(self, args: Args) -> Hashable:
        """The arguments that no rule is for, as a key: calls that differ in it never `match`."""
        values = args or {}
        return hashable_value(
            without_places(
                values, {place for ranked in self.ranked for place in _reached_places(ranked.path, values)}
            )
        )

    def passing(self, expected: Args, actual: Args, path: JsonPath) -> ArgRule | None:
        """The rule that lets the difference at a place of two calls' arguments pass, None where none does.

        The place is one that `side_by_side` gives.
        """
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
        """The places inside a rule's place, seen from there, that a more specific rule holds for."""
        for ranked in self.ranked:
            if (
                ranked.rank > own.rank
                and len(ranked.path) > len(place)
                and covers(ranked.path[: len(place)], place)
            ):
                inner = ranked.path[len(place) :]
                yield from _reached_places(inner, mine)
                yield from _reached_places(inner, theirs)


CaseRules = Mapping[str, ToolRules]
NO_RULES: CaseRules = MappingProxyType({})


def rules_of_case(rules: Iterable[ArgRule], eval_set_id: str, eval_id: str) -> CaseRules:
    """The rules that hold in a case, by tool."""
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
    """The rules for one scoring: their regexes have new patience. For `config` see `ToolRules`."""
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
    """Two keys to compare calls: different first keys mean different calls, equal second keys equal calls."""
    exact = name, hashable_value(args)
    return ((name, rules[name].unruled(args)) if name in rules else exact), exact


def arg_places(expected: Args, actual: Args) -> Iterator[tuple[JsonPath, Any, Any]]:
    """The differing places as `side_by_side`; missing and empty arguments differ as a whole where neither
    side has any."""
    if not expected and not actual:
        yield (), expected, actual
    else:
        yield from side_by_side(expected or {}, actual or {})


def _reached_places(path: ArgPath, value: Any, place: JsonPath = ()) -> Iterator[JsonPath]:
    """The places in a value that a path names."""
    if not path:
        yield place
        return
    step, *rest = path
    if step is ANY_INDEX:
        steps: Iterable[str | int] = range(len(value)) if isinstance(value, list) else ()
    else:
        steps = () if value_at(value, (step,), ABSENT) is ABSENT else (step,)
    for key in steps:
        yield from _reached_places(tuple(rest), value_at(value, (key,), ABSENT), (*place, key))


# Two values


def lets_pass(
    how: Match,
    expected: Any,
    actual: Any,
    left_out: Collection[JsonPath] = (),
    patience: Patience | None = None,
) -> bool:
    """Whether two values are the same by this match; a side that has none is ABSENT.

    `left_out` are places that have been taken out of both already. Raises SlowRegexError.
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


def is_number(value: Any) -> bool:
    """Whether it is a number that has a size: no boolean, not NaN, not infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def exact_decimal(number: float) -> Decimal:
    """A number as it is written: 0.1 is a tenth."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def _fold_case(text: str) -> str:
    """A text as Unicode compares it without case and without regard to how its letters are composed."""
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
    """A match as it is written in the config."""
    return match if isinstance(match, str) else match.model_dump(mode="json", exclude_unset=True)


def match_in_words(data: Any) -> str:
    r"""A match as the config has it, in a few words: `ignore`, `regex \d+`, `± 0.5`, `one of 19, "19"`.

    What is no match is shown as it is.
    """
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
    """A rule as it is shown beside the difference that it lets pass: `ignore`, `ignore, for items[*]`."""
    words = match_in_words(match_data(rule.match))
    if rule.arg == format_path(path):
        return words
    return f"{words}, for {'all arguments' if rule.arg == ALL_ARGS else visible(rule.arg)}"
