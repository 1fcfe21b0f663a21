"""Values and texts from outside: safe for terminals and JSON readers, cut to size, described in sentences."""

from __future__ import annotations

import difflib
import json
import math
import re
import unicodedata
from collections.abc import Iterable
from itertools import groupby, takewhile
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
    """The JSON type of `actual` if it differs from that of `expected`; "" for the same type, and for null."""
    kind = _json_type(actual)
    return "" if actual is None or expected is None or kind == _json_type(expected) else kind


def type_names(expected: Any, actual: Any) -> tuple[str, str] | None:
    """The JSON types of two values, such as `integer` and `string`; None where they are equal or one value is
    null."""
    if not type_change(expected, actual):
        return None
    before, after = (
        "integer" if isinstance(value, int) and not isinstance(value, bool) else _json_type(value)
        for value in (expected, actual)
    )
    return before, after


def common_length(items: Iterable[Any], others: Iterable[Any]) -> int:
    """Number of equal items at the beginning of two lists."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(items, others, strict=False)))


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "number", float: "number", dict: "object", list: "list"}
    return names.get(type(value), type(value).__name__)


def show_value(value: Any, limit: int = MAX_VALUE) -> str:
    """A value as JSON on one line, fit for any terminal, cut to `limit` characters with `…`."""
    return _cut_json(_json_text(value), limit)


def show_change(expected: Any, actual: Any, limit: int = MAX_VALUE) -> tuple[str, str]:
    """Two different values, each as by `show_value`, cut so that their first difference is visible."""
    before, after = told_apart(_json_text(expected), _json_text(actual))
    common = next(
        (n for n, (mine, theirs) in enumerate(zip(before, after, strict=False)) if mine != theirs),
        min(len(before), len(after)),
    )
    start = common - limit // 4
    if start > 1 and max(len(before), len(after)) > limit:
        before, after = f"…{before[start:]}", f"…{after[start:]}"
    return _cut_json(before, limit), _cut_json(after, limit)


def told_apart(text: str, other: str) -> tuple[str, str]:
    """Two texts; where they differ and look alike (`é` as one letter or as two, kinds of spaces), with
    escapes for all but ASCII: `caf\\u00e9`, `cafe\\u0301`."""
    if text == other or _appearance(text) != _appearance(other):
        return text, other
    return _ascii(text), _ascii(other)


def _appearance(text: str) -> str:
    return re.sub(r"[^\S\n]", " ", unicodedata.normalize("NFC", text))


def _ascii(text: str) -> str:
    return re.sub(r"[^\x00-\x7f]", lambda match: json.dumps(match.group())[1:-1], text)


def _json_text(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False, default=repr))


def visible(text: str) -> str:
    """A text in one line, with escapes for control and invisible characters: `\\n`, `\\x1b`, `\\u202e`."""
    return _INVISIBLE.sub(_escape, text)


def visible_lines(text: str) -> list[str]:
    """The lines of a text, each as by `visible`; a tab becomes four spaces."""
    return [visible(line.removesuffix("\r").replace("\t", "    ")) for line in text.split("\n")]


def visible_block(text: str) -> str:
    """A text of several lines, each as by `visible_lines`."""
    return "\n".join(visible_lines(text))


# A spreadsheet takes text that begins with one of these for a formula.
_FORMULA = tuple("=+-@＝＋－＠")


def guarded_cell(text: str) -> str:
    """The text of a cell in CSV: text that a spreadsheet would run as a formula gets a leading apostrophe,
    also where it has one already, so that `unguarded_cell` gives it back."""
    return f"'{text}" if _is_formula(text) else text


def unguarded_cell(text: str) -> str:
    """The text that `guarded_cell` was given."""
    return text[1:] if text.startswith("'") and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    return text.lstrip("'").lstrip().startswith(_FORMULA)


def visible_text(text: str) -> str:
    """A text for the clipboard: line ends and tabs stay, other control and invisible characters become JSON
    escapes."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return "\n".join("\t".join(_spell_out_invisible(part) for part in line.split("\t")) for line in lines)


def without_commands(text: str) -> str:
    """A text in which workflow commands of CI services are disabled: `\\::error::…`, `#\\#vso[…`."""
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda match: f"{match.group()}\\", text)


def _spell_out_invisible(text: str) -> str:
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _SHORT_ESCAPES.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def cut(text: str, limit: int) -> str:
    """The text cut to at most `limit` characters, with `…` at the end where it is cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _cut_json(text: str, limit: int) -> str:
    closing = '"' if text.startswith('"') and len(text) > limit else ""
    return cut(text, limit - len(closing)) + closing


def valid_json(value: Any) -> Any:
    """The data with replacements for values that JSON does not have: null for NaN and infinities, text for
    others."""
    return json.loads(valid_json_text(value))


_STRICT = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


def valid_json_text(value: Any) -> str:
    """JSON text of the data in one line, with the replacements of `valid_json`."""
    try:
        # Nearly all data is valid, and the encoder finds that out far faster than a walk in Python.
        text = _STRICT.encode(value)
        text.encode()
    except (ValueError, TypeError):
        return json.dumps(_replace_invalid(value), ensure_ascii=False)
    return text


def _replace_invalid(value: Any) -> Any:
    if isinstance(value, dict):
        return {valid_text(str(key)): _replace_invalid(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_invalid(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return valid_text(value)
    return value if isinstance(value, int | float | None) else repr(value)


def finite_json(value: Any) -> Any:
    """The data with texts for the numbers that JSON does not have: `NaN`, `Infinity`, `-Infinity`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: finite_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(item) for item in value]
    return value


def valid_text(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which strict JSON readers refuse."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_MAX_QUOTE = 40


def paragraphs(text: str) -> list[str]:
    """The parts of a text between blank lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    groups = groupby(lines, key=lambda line: bool(line.strip()))
    return ["\n".join(group) for has_text, group in groups if has_text]


def value_in_words(value: Any) -> str:
    """A description of a JSON value for a sentence: `the number 5`, `the string "abc"`, `an object`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string {show_value(value, _MAX_QUOTE)}"
        case dict():
            return "an object"
        case _:
            return "a list"


def nearest_word(word: str, words: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The most similar of several words; None where none is similar. `likeness` is the required similarity
    from 0 to 1."""
    hits = difflib.get_close_matches(word, list(words), n=1, cutoff=likeness)
    return hits[0] if hits else None


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """A question with the most similar word, to end a sentence: `. Did you mean set_light?`; "" without a
    similar word."""
    hit = nearest_word(word, words)
    return f". Did you mean {visible(hit)}?" if hit else ""
