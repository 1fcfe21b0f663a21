"""Texts in reports for people: wrapped, cut in the middle, with marks around what differs."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.text.lines import Line, Span, wrap_behind
from evaltui.text.values import visible_block
from evaltui.text.word_diff import MARKS, WordOp

_MAX_SAME_TEXT = 160
_MAX_TEXT = 800


def wrapped(indent: int, spans: Sequence[Span], width: int, first: Sequence[Span] = ()) -> list[Line]:
    """Text behind a margin; `first` stands in the margin of the first line and must fill it."""
    return wrap_behind(first or [(" " * indent, "")], spans, width, least=20)


def plain(text: str, style: str = "") -> list[Span]:
    return [(shown(text), style)]


def shown(text: str, limit: int = _MAX_TEXT) -> str:
    """A text of several lines, its middle left out where it is long."""
    if len(text) > limit:
        text = f"{text[: limit // 2]} … {text[-limit // 2 :]}"
    return visible_block(text)


def marked(parts: Sequence[tuple[WordOp, str]]) -> list[Span]:
    """`The kitchen is [-now -]set to 19 °C.`"""
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
