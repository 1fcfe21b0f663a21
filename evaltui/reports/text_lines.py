"""Texts in reports for people: wrapped, cut in the middle, one beside the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaltui.text.lines import Line, Span, wrap_behind
from evaltui.text.values import visible_block
from evaltui.text.word_diff import MARKS, WordOp, much_in_common, words

_MAX_SAME_TEXT = 160
_MAX_TEXT = 800


def wrapped(indent: int, spans: Sequence[Span], width: int, first: Sequence[Span] = ()) -> list[Line]:
    """Text behind a margin; `first` stands in the margin of the first line and must fill it."""
    return wrap_behind(first or [(" " * indent, "")], spans, width, least=20)


def changed_text(expected: str, actual: str, indent: int, width: int, head: Sequence[Span]) -> Iterator[Line]:
    """Two texts word for word where they have much in common, else one below the other."""
    parts = words(expected, actual)
    if much_in_common(parts):
        yield from wrapped(indent, _marked(parts), width, head)
    else:
        yield from wrapped(indent, [("[-", "error"), *plain(expected, "error"), ("-]", "error")], width, head)
        yield from wrapped(indent, [("{+", "success"), *plain(actual, "success"), ("+}", "success")], width)


def plain(text: str, style: str = "") -> list[Span]:
    return [(shown(text), style)]


def shown(text: str, limit: int = _MAX_TEXT) -> str:
    """A text of several lines, its middle left out where it is long."""
    if len(text) > limit:
        text = f"{text[: limit // 2]} … {text[-limit // 2 :]}"
    return visible_block(text)


def _marked(parts: Sequence[tuple[WordOp, str]]) -> list[Span]:
    spans: list[Span] = []
    before: WordOp = "same"
    for op, text in parts:
        start, end, style = MARKS[op]
        # In the text they touch; for the eye they are two words.
        gap = " " if op == "added" and before == "removed" else ""
        limit = _MAX_SAME_TEXT if op == "same" else _MAX_TEXT
        spans.append((f"{gap}{start}{shown(text, limit)}{end}", style))
        before = op
    return spans
