"""Reading a judge's answer: its verdicts, if it has nothing else.

A judge may quote the agent, correct itself or refuse beside a verdict, which no pattern recognizes reliably.
So an answer with other text than JSON and a preamble has no verdict.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from evaltui.core.model.judgement import Vote
from evaltui.text.values import cut, visible

Schema = dict[str, Any]
"""The format of answers, as Gemini's `response_schema`."""

REASON_KEYS = ("reasoning", "rationale", "reason", "explanation")
FIELD = re.compile(
    r"^[ \t*_#•-]*(ID|Property|Rubric|Evidence|Rationale|Verdict)[*_ ]*:[*_]*(.*)$",
    re.MULTILINE | re.IGNORECASE,
)
"""Pattern of a line such as `Verdict: yes`."""

_MAX_QUOTE_LENGTH = 80
_QUOTATION = "(quotes its prompt)"
EXPLAINING_KEYS = frozenset(
    (*REASON_KEYS, "confidence", "evidence", "property", "rubric", "rubric_id", "text")
)
"""Names that models use in place of those in the form, and that decide nothing."""

_UNICODE_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?</\1>", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_PUNCTUATION = re.compile(r"[\s`~*_#:;.,!\ufeff-]+")
_PHRASES = re.compile(
    r"\b(?:(?:my|json) (?:answer|response|output)"
    r"|(?:analysis|assessment|evaluation|judge?ment|rating|verdict) of the "
    r"(?:(?:agent|ai agent|assistant|simulated user) s )?(?:final )?(?:answer|conversation|message|response)"
    r"|i hope this helps|let me know if you need anything else)\b"
)
_PREAMBLE_WORDS = (
    "a am analysis as assessment below certainly course decision each evaluation evaluations final following "
    "for format here i in is it json judgement judgment m my object of ok okay overall rating requested "
    "result results rubric rubrics s score sentence sentences structured sure the this verdict verdicts your"
)
_PREAMBLE = frozenset(_PREAMBLE_WORDS.split())


class NoVerdictError(Exception):
    """An answer has no verdict; `vote` has the reason."""

    def __init__(self, vote: Vote) -> None:
        super().__init__(vote.problem)
        self.vote = vote


def unreadable_vote(text: str) -> Vote:
    """The vote for an unreadable answer, with its beginning."""
    beginning = quote(text) if text.strip() else "empty"
    return Vote(None, problem=f"unreadable judge response: {beginning}")


def contradiction_vote(labels: Iterable[str], rationale: str = "") -> Vote:
    """The vote for an answer with contradictory labels."""
    both = " and ".join(dict.fromkeys(labels))
    return Vote(None, rationale, both, f"the judge contradicts itself: {both}")


def quote(value: Any) -> str:
    """The beginning of a judge's text, in quotes."""
    return repr(cut(visible(str(value).strip()), _MAX_QUOTE_LENGTH))


def verdict_objects(text: str, key: str, schema: Schema) -> list[dict[str, Any]]:
    """The objects of an answer with a verdict under `key`, in order; `schema` is the format of an answer.

    An answer may be one or several such objects, or a list of them. Raises NoVerdictError for any other
    answer.
    """
    answer = read_json(text)
    if not answer.values:
        raise NoVerdictError(unreadable_vote(text))
    if not is_preamble(answer.prose):
        raise NoVerdictError(Vote(None, problem=f"text beside the verdict: {quote(answer.prose)}"))
    members = schema["properties"]
    lists = {} if key in members else members
    names = members if key in members else next(iter(members.values()))["items"]["properties"]
    values: list[Any] = list(answer.values)
    accepted: list[dict[str, Any]] = []
    while values:
        match values.pop(0):
            case list() as items:
                values = items + values
            case dict() as entry if key in entry:
                if others := sorted(entry.keys() - {*names, *EXPLAINING_KEYS}):
                    raise NoVerdictError(
                        Vote(None, problem=f"unexpected key {quote(others[0])} beside {key}")
                    )
                if _has_key(key, list(entry.values())):
                    raise NoVerdictError(contradiction_vote([f"{key} is there twice"]))
                accepted.append(entry)
            case dict() as wrapper if wrapper and wrapper.keys() <= lists.keys():
                values = [*wrapper.values(), *values]
            case _:
                raise NoVerdictError(unreadable_vote(text))
    return accepted


def is_preamble(prose: str) -> bool:
    """Whether a text is only a preamble without verdict or quotation: `Here is my evaluation:`, the fence of
    a block."""
    plain = _PUNCTUATION.sub(" ", _APOSTROPHE.sub(" ", prose)).casefold()
    return _PREAMBLE.issuperset(_PHRASES.sub(" ", plain).split())


def without_quotations(text: str, prompt: str) -> str:
    """The answer with marks in JSON, and in lines up to a verdict, that are also in the prompt."""
    squeezed_prompt, text = _squeeze(prompt), _without_thoughts(text)
    try:
        values = [(start, end) for _, start, end in _values(text)]
    except (ValueError, _DuplicateKeyError):
        return text
    for places in (values, list(_line_blocks(text))):
        quoted = [(start, end) for start, end in places if _squeeze(text[start:end]) in squeezed_prompt]
        for start, end in reversed(quoted):
            text = text[:start] + _QUOTATION + text[end:]
        if quoted:
            break
    return text


def number_in(value: Any) -> float | None:
    """The number that a judge gave, also in quotes; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    # Python takes more for a number: `1_000`, `nan`, digits of other scripts.
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _without_thoughts(text: str) -> str:
    thoughts = _THOUGHTS.match(text)
    return text[thoughts.end() :] if thoughts else text


def _line_blocks(text: str) -> Iterator[tuple[int, int]]:
    """The places of line blocks that end with a verdict, each from the first field after the previous
    verdict."""
    start: int | None = None
    for field in FIELD.finditer(text):
        start = field.start() if start is None else start
        if field[1].lower() == "verdict":
            yield start, field.end()
            start = None


def _squeeze(text: str) -> str:
    """A text without blanks and escapes, to compare plain text with the same text inside JSON."""
    text = _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    # Two escapes may be the halves of one character.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return re.sub(r"\\+[nrt]|[\s\\]+", "", text).casefold()


# Where an object or a list may begin.
_START = re.compile(r"""\{(?=\s*(?:["'}]|\w+\s*:|\Z))|\[(?=\s*[\[\]{"'\-\dtfnNI])""")
# Where JSON was meant: `{x}` and `[see there]` are prose.
_JSON_START = re.compile(
    r"""\{\s*(?:["']|\w+\s*:|\Z) | \[[\s\[]*["'{] | \[\s*(?:-?\d[\d.eE+-]*|null|true|false)\s*,""", re.VERBOSE
)
_STRING_OR_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*+"?)|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True)
class JudgeAnswer:
    """The JSON values of a judge's answer, and the text around them."""

    values: tuple[Any, ...] = ()
    """The objects and lists in order; empty if any of them is invalid."""
    prose: str = ""


def read_json(text: str) -> JudgeAnswer:
    """Reads the JSON values of an answer, without the thoughts at its start.

    There are no values if any of them is invalid. Raises NoVerdictError for an object with a duplicate key.
    """
    text = _without_thoughts(text)
    try:
        placed = list(_values(text))
    except _DuplicateKeyError as twice:
        raise NoVerdictError(contradiction_vote([f"{twice} is there twice in one object"])) from None
    except ValueError:
        return JudgeAnswer()
    pieces, position = [], 0
    for _, start, end in placed:
        pieces.append(text[position:start])
        position = end
    pieces.append(text[position:])
    return JudgeAnswer(tuple(value for value, _, _ in placed), " ".join(" ".join(pieces).split()))


def _has_key(key: str, value: Any) -> bool:
    """Whether an object in a JSON value has a key, at any depth."""
    values = [value]
    while values:
        match values.pop():
            case dict() as members:
                if key in members:
                    return True
                values += members.values()
            case list() as items:
                values += items
    return False


class _DuplicateKeyError(Exception):
    """An object has a key twice."""


def _unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        names = [name for name, _ in members]
        raise _DuplicateKeyError(next(name for name in names if names.count(name) > 1))
    return made


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique_members)

_Placed = tuple[Any, int, int]


def _values(text: str) -> Iterator[_Placed]:
    """The outermost objects and lists with their places.

    Raises ValueError for an invalid one, _DuplicateKeyError for a duplicate key.
    """
    # Each comma gives way to a blank, so places in both texts are the same.
    repaired = _STRING_OR_LAST_COMMA.sub(lambda match: match.group(1) or " ", text)
    position = 0
    while start := _START.search(text, position):
        opening = start.start()
        try:
            value, position = _value_at(opening, text, repaired)
        except RecursionError:
            raise ValueError("nested too deep") from None
        except ValueError:
            if _JSON_START.match(text, opening):
                raise
            position = opening + 1
        else:
            yield value, opening, position


def _value_at(start: int, text: str, repaired: str) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except ValueError:
        return _DECODER.raw_decode(repaired, start)
