r"""Rules that allow a difference, proposed from its two values.

A regex keeps the common parts of both texts: dates, times and uuids become their formats, other digits `\d+`,
other words `\w+`. Between the common start and end of dissimilar texts it has `.+`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from evaltui.core.matching.pairing import common_ends
from evaltui.core.matching.rules import exact_decimal, lets_pass, match_in_words
from evaltui.core.model.arg_rule import ALL_ARGS, ANY_INDEX, ArgPath, ArgRule, arg_path_text
from evaltui.core.model.json_values import ABSENT, is_number
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.regexes import SlowRegexError


@dataclass(frozen=True)
class Proposal:
    """A match value of a rule, `"ignore"` or `{"regex": ...}`, with a description."""

    match: Any
    words: str


def proposals(expected: Any, actual: Any) -> list[Proposal]:
    """The matches under which two different values count as equal, the most specific first.

    ABSENT stands for a side without the argument.
    """
    return [
        Proposal(match, match_in_words(match))
        for match in _candidates(expected, actual)
        if _passes(match, expected, actual)
    ]


def arg_paths(path: JsonPath) -> list[str]:
    """The possible `arg` paths of a rule for a difference: its own path, with any index, then each path
    around it."""
    anywhere: ArgPath = tuple(ANY_INDEX if isinstance(step, int) else step for step in path)
    around = [anywhere[:length] for length in range(len(path) - 1, 0, -1)]
    return list(dict.fromkeys(arg_path_text(place) for place in (path, anywhere, *around))) + (
        [ALL_ARGS] if path else []
    )


def _passes(match: Any, expected: Any, actual: Any) -> bool:
    try:
        rule = ArgRule.model_validate({"tool": "any", "arg": ALL_ARGS, "match": match})
    except ValidationError:
        # A tolerance may be beyond all numbers.
        return False
    try:
        return lets_pass(rule.match, expected, actual)
    except SlowRegexError:
        return False


def _candidates(expected: Any, actual: Any) -> Iterator[Any]:
    if expected is not ABSENT and actual is not ABSENT:
        yield {"any_of": [expected, actual]}
        yield "case_insensitive"
        if is_number(expected) and is_number(actual):
            yield {"approx": {"abs": _tolerance(expected, actual)}}
        yield "subset"
        if regex := _regex(expected, actual):
            yield {"regex": regex}
        yield "type"
    yield "ignore"


def _tolerance(expected: float, actual: float) -> float:
    """The difference of two numbers rounded up to 1, 2 or 5 with zeros: 0.3 to 0.5, 1733 to 2000."""
    difference = abs(exact_decimal(expected) - exact_decimal(actual))
    unit = Decimal(1).scaleb(difference.adjusted())
    tolerance = next(step * unit for step in (1, 2, 5, 10) if step * unit >= difference)
    return int(tolerance) if tolerance == int(tolerance) else float(tolerance)


# Regular expressions

_FORMS = {
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "datetime": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?",
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d(:\d\d(\.\d+)?)?",
    "digits": r"\d+",
}
_KNOWN_FORMS = "|".join(
    rf"(?P<{kind}>(?<![^\W_]){form}(?![^\W_]))" for kind, form in _FORMS.items() if kind != "digits"
)
# Digits and letters apart: `order17` and `order8` have `order` in common.
_FINE_TOKENS = re.compile(rf"{_KNOWN_FORMS}|(?P<digits>\d+)|(?P<other>[^\W\d_]+|.)", re.DOTALL)
# Digits and letters together: `a1f` and `07c` are words.
_COARSE_TOKENS = re.compile(
    rf"{_KNOWN_FORMS}|(?P<digits>\d+(?![^\W_]))|(?P<word>[^\W_]+)|(?P<other>.)", re.DOTALL
)
_SPECIAL_CHARACTERS = re.compile(r"[\\.^$*+?{}\[\]|()]")
# Less in common says nothing.
_MIN_COMMON = 3


def _regex(expected: Any, actual: Any) -> str | None:
    """A regex that both values match; None for values without common parts."""
    if is_number(expected) and is_number(actual):
        return None
    before, after = _as_text(expected), _as_text(actual)
    if before is None or after is None:
        return None
    return _regex_by_parts(before, after) or _regex_by_ends(before, after)


def _as_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return json.dumps(value) if is_number(value) else None


def _regex_by_parts(before: str, after: str) -> str | None:
    for tokens in (_FINE_TOKENS, _COARSE_TOKENS):
        if (regex := _generalise(_parts(tokens, before), _parts(tokens, after))) is not None:
            return regex
    return None


def _parts(tokens: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    """The parts of a text, each with its kind."""
    return [(str(match.lastgroup), match[0]) for match in tokens.finditer(text)]


def _generalise(before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]) -> str | None:
    """A regex for two lists of parts; None for lists of different structure."""
    if len(before) != len(after):
        return None
    regex = ""
    # With underscores between words, where a `\w+` ends would be tried out in every way.
    word = r"[^\W_]+" if ("other", "_") in before else r"\w+"
    for (kind, mine), (other_kind, theirs) in zip(before, after, strict=True):
        if mine == theirs:
            regex += _escape(mine)
            continue
        if {kind, other_kind} == {"digits", "word"}:
            kind = other_kind = "word"
        if kind != other_kind or kind == "other":
            return None
        regex += word if kind == "word" else _FORMS[kind]
    return regex


def _regex_by_ends(before: str, after: str) -> str | None:
    head, tail = common_ends(before, after)
    if head + tail < _MIN_COMMON:
        return None
    start, end = before[:head], before[len(before) - tail :]
    inner = [text[head : len(text) - tail] for text in (before, after)]
    between = ".+" if all(inner) else ".*"
    lines = "(?s)" if any("\n" in text for text in inner) else ""
    return f"{lines}{_escape(start)}{between}{_escape(end)}"


def _escape(text: str) -> str:
    return _SPECIAL_CHARACTERS.sub(r"\\\g<0>", text)
