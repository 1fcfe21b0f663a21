"""The JSON in what a judge answers: fenced or not, with prose around it, with a comma too many.

A judge quotes what it judges, and the agent that is judged may have written what looks like a verdict. So a
value that does not parse is never looked into, a value in the middle of a sentence is a quotation, and a key
that an object has twice is a contradiction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evaltui.core.metrics.judges.judge import Schema


def _object(**properties: Schema) -> Schema:
    names = list(properties)
    return {"type": "OBJECT", "properties": properties, "required": names, "property_ordering": names}


def _list(items: Schema) -> Schema:
    return {"type": "ARRAY", "items": items}


def _one_of(*words: str) -> Schema:
    return {"type": "STRING", "enum": list(words)}


_TEXT: Schema = {"type": "STRING"}
_TEXT_OR_NULL: Schema = {"type": "STRING", "nullable": True}
_YES_OR_NO: Schema = {"type": "BOOLEAN"}

VALIDITY = _object(reasoning=_TEXT, is_the_agent_response_valid=_one_of("valid", "invalid"))
FULFILMENT = _object(
    rubrics=_list(_object(id=_TEXT, rationale=_TEXT, verdict=_one_of("yes", "no", "unknown")))
)
RATING = _object(**{"for": _list(_TEXT), "against": _list(_TEXT)}, reason=_TEXT, score={"type": "NUMBER"})
SENTENCES = _object(
    sentences=_list(
        _object(
            sentence={"type": "INTEGER"},
            reason=_TEXT,
            supporting=_TEXT_OR_NULL,
            contradicting=_TEXT_OR_NULL,
            label=_one_of("supported", "unsupported", "contradictory", "disputed", "not_applicable"),
        )
    )
)
SIMULATED_USER = _object(
    criteria=_list(_object(name=_TEXT, reason=_TEXT, passes=_YES_OR_NO)), reason=_TEXT, is_valid=_YES_OR_NO
)


_START = re.compile(r"""\{(?=\s*(?:["'}]|\w+\s*:|\Z))|\[(?=\s*[\[\]{"'\-\dtfnNI])""")
# Where JSON was meant: `{x}` and `[see there]` are prose.
_JSON_START = re.compile(
    r"""\{\s*(?:["']|\w+\s*:|\Z) | \[[\s\[]*["'{] | \[\s*(?:-?\d[\d.eE+-]*|null|true|false)\s*,""", re.VERBOSE
)
_STRING_OR_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*+"?)|,(?=\s*[}\]])', re.DOTALL)
# Stands for a value in the text around it.
_MARK = "\0"
_VALUES_ALONE = re.compile(rf"(?:[\s`*,;.{_MARK}]|json)*", re.IGNORECASE)
_NOTHING_ELSE = re.compile(r"(?:[\s`]|json)*", re.IGNORECASE)


@dataclass(frozen=True)
class JudgeAnswer:
    """What a judge answers, taken apart."""

    values: tuple[Any, ...] = ()
    """The objects and lists on lines of their own, in order; none where one of all does not parse."""
    prose: str = ""
    """What stands around them, values in the middle of a sentence included."""
    contradiction: str = ""
    """Why the JSON says two things at once; "" where it does not."""

    def objects_with(self, key: str) -> list[dict[str, Any]]:
        """The objects that have a key, at any depth, in order."""
        return [found for value in self.values for found in objects_with(key, value)]


def read_json(text: str) -> JudgeAnswer:
    """Takes an answer apart. Nothing in it counts where something that begins as JSON does not parse."""
    text = text.replace(_MARK, " ")
    try:
        found = list(_values(text))
    except _TwiceError as twice:
        return JudgeAnswer(contradiction=f"{twice} is there twice in one object")
    except ValueError:
        return JudgeAnswer()
    values: list[Any] = []
    prose: list[str] = []
    marked, numbers = _marked(text, found), iter(found)
    for line in marked.split("\n"):
        here = [next(numbers) for _ in range(line.count(_MARK))]
        if here and _VALUES_ALONE.fullmatch(line):
            values += [value for value, _, _ in here]
            continue
        for _, start, end in here:
            line = line.replace(_MARK, text[start:end], 1)
        if not _NOTHING_ELSE.fullmatch(line):
            prose.append(line)
    return JudgeAnswer(tuple(values), "\n".join(prose))


def objects_with(key: str, value: Any) -> Iterator[dict[str, Any]]:
    """The objects in a JSON value, itself included, that have a key."""
    if isinstance(value, dict):
        if key in value:
            yield value
        inside: Any = value.values()
    else:
        inside = value if isinstance(value, list) else ()
    for part in inside:
        yield from objects_with(key, part)


class _TwiceError(Exception):
    """A key that one object has twice."""


def _unambiguous(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        names = [name for name, _ in members]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return made


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unambiguous)

_Placed = tuple[Any, int, int]


def _values(text: str) -> Iterator[_Placed]:
    """Every object and list that is not part of another one, with its place.

    Raises ValueError where one does not parse, _TwiceError where one has a key twice.
    """
    # Each comma gives way to a blank, so places in both texts are the same.
    repaired = _STRING_OR_LAST_COMMA.sub(lambda match: match.group(1) or " ", text)
    position = 0
    while start := _START.search(text, position):
        begins = start.start()
        try:
            value, position = _value_at(begins, text, repaired)
        except RecursionError:
            raise ValueError("nested too deep") from None
        except ValueError:
            if _JSON_START.match(text, begins):
                raise
            position = begins + 1
        else:
            yield value, begins, position


def _value_at(start: int, text: str, repaired: str) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except ValueError:
        return _DECODER.raw_decode(repaired, start)


def _marked(text: str, found: list[_Placed]) -> str:
    pieces, position = [], 0
    for _, start, end in found:
        pieces += [text[position:start], _MARK]
        position = end
    return "".join([*pieces, text[position:]])
