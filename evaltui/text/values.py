"""Values and texts from elsewhere: safe for terminals and JSON readers, cut to size, named in sentences."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

MAX_VALUE = 48

# What a terminal would obey, reorder or not show, and what no XML or UTF-8 may hold.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
# What runners of GitHub, Azure and TeamCity obey in a log: a line that begins with `::`, the rest anywhere.
_COMMAND = re.compile(r"^[^\S\n]*(?=::)|#(?=#(?:vso|teamcity)?\[)", re.MULTILINE)
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def type_change(expected: Any, actual: Any) -> str:
    """The JSON type of `actual` where it is another than that of `expected`; "" else, and for null."""
    kind = _json_type(actual)
    return "" if actual is None or expected is None or kind == _json_type(expected) else kind


def type_names(expected: Any, actual: Any) -> tuple[str, str] | None:
    """The JSON types of two values, `integer` and `string`; None for two of one type, and beside null."""
    if not type_change(expected, actual):
        return None
    before, after = (
        "integer" if isinstance(value, int) and not isinstance(value, bool) else _json_type(value)
        for value in (expected, actual)
    )
    return before, after


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "number", float: "number", dict: "object", list: "list"}
    return names.get(type(value), type(value).__name__)


def show_value(value: Any, limit: int = MAX_VALUE) -> str:
    """A value as JSON on one line, fit for any terminal, cut to `limit` characters with `…`."""
    return _cut_json(_json(value), limit)


def show_change(expected: Any, actual: Any, limit: int = MAX_VALUE) -> tuple[str, str]:
    """Two values that differ, each as by `show_value`, cut such that the first difference can be seen."""
    before, after = _json(expected), _json(actual)
    common = next(
        (n for n, (mine, theirs) in enumerate(zip(before, after, strict=False)) if mine != theirs),
        min(len(before), len(after)),
    )
    start = common - limit // 4
    if start > 1 and max(len(before), len(after)) > limit:
        before, after = f"…{before[start:]}", f"…{after[start:]}"
    return _cut_json(before, limit), _cut_json(after, limit)


def _json(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False, default=repr))


def visible(text: str) -> str:
    """A text on one line, its control and invisible characters spelled out: `\\n`, `\\x1b`, `\\u202e`."""
    return _INVISIBLE.sub(_escape, text)


def visible_lines(text: str) -> list[str]:
    """The lines of a text, each as by `visible`, tabs as four spaces."""
    return [visible(line.removesuffix("\r").replace("\t", "    ")) for line in text.split("\n")]


def visible_block(text: str) -> str:
    """A text on as many lines as it has, each as by `visible_lines`."""
    return "\n".join(visible_lines(text))


def visible_text(text: str) -> str:
    """A text to be pasted elsewhere: lines and tabs stay, other control and invisible characters are spelled
    out as in JSON, so that JSON stays JSON."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return "\n".join("\t".join(_spelt_out(part) for part in line.split("\t")) for line in lines)


def without_commands(text: str) -> str:
    """A text in which CI services find no workflow commands: `\\::error::…`, `#\\#vso[…`."""
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda match: f"{match.group()}\\", text)


def _spelt_out(text: str) -> str:
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _SHORT_ESCAPES.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, the last one `…` where some were left out."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _cut_json(text: str, limit: int) -> str:
    closing = '"' if text.startswith('"') and len(text) > limit else ""
    return cut(text, limit - len(closing)) + closing


def valid_json(value: Any) -> Any:
    """The same data with what JSON has no word for replaced: NaN and infinities by null, the rest by text."""
    return json.loads(valid_json_text(value))


_STRICT = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


def valid_json_text(value: Any) -> str:
    """The data of `valid_json` in one line of text."""
    try:
        # Nearly all data is valid, and the encoder finds that out far faster than a walk in Python.
        text = _STRICT.encode(value)
        text.encode()
    except (ValueError, TypeError):
        return json.dumps(_valid(value), ensure_ascii=False)
    return text


def _valid(value: Any) -> Any:
    if isinstance(value, dict):
        return {valid_text(str(key)): _valid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return valid_text(value)
    return value if isinstance(value, int | float | None) else repr(value)


def valid_text(text: str) -> str:
    """Lone surrogates become U+FFFD: they can be escaped in JSON, but strict readers refuse them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_LONGEST_QUOTE = 40


def paragraphs(text: str) -> list[str]:
    """The parts of a text between blank lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    groups = groupby(lines, key=lambda line: bool(line.strip()))
    return ["\n".join(group) for has_text, group in groups if has_text]


def in_words(value: Any) -> str:
    """A JSON value as it is named in a sentence: `the number 5`, `the string "abc"`, `an object`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string {show_value(value, _LONGEST_QUOTE)}"
        case dict():
            return "an object"
        case _:
            return "a list"


def nearest(word: str, words: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known word that was probably meant; `likeness` from 0 (anything) to 1 (the same)."""
    import difflib

    hits = difflib.get_close_matches(word, list(words), n=1, cutoff=likeness)
    return hits[0] if hits else None


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """`. Did you mean set_light?`, to end a sentence about an unknown word; "" where none is near."""
    hit = nearest(word, words)
    return f". Did you mean {visible(hit)}?" if hit else ""
