"""Glyphs of reports and screens, and their replacements in a terminal that has only ASCII."""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache

from rich.cells import cell_len

from evaltui.text.lines import Line, Span

SPARKS = "▁▂▃▄▅▆▇█"
BAR, HALF_BAR, EMPTY_BAR, THRESHOLD = "━╸─│"

ASCII: Mapping[str, str] = {
    # Outcomes
    "✓": "+",
    "✗": "x",
    "≈": "~",
    "–": "-",
    "○": "o",
    "◐": "*",
    "◓": "*",
    "◑": "*",
    "◒": "*",
    # How calls and values differ
    "≠": "!=",
    "−": "-",
    "↕": "^v",
    "≃": "~r",
    # What happens
    "→": "->",
    "←": "<-",
    "Δ": "d",
    "⇄": "<>",
    "⇒": "=>",
    "↳": ">",
    "⇣": "v",
    # Rows
    "▾": "v",
    "▸": ">",
    "▶": ">",
    "▌": "|",
    "▋": "|",
    "●": "*",
    "◆": "#",
    "▲": "^",
    "▼": "v",
    # Bars and plots
    "━": "=",
    "╸": "-",
    "╺": "-",
    "─": "-",
    "│": "|",
    **dict(zip(SPARKS, "_.--==##", strict=True)),
    "▏": "|",
    # Frames
    **dict.fromkeys("╭╮╰╯├┤┬┴┼└┘┌┐", "+"),
    # Between words
    "·": ".",
    "•": "*",
    "‹": "<",
    "›": ">",
    "↑": "^",
    "↓": "v",
    "…": "~",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "±": "+-",
    "—": "-",
}
_ONE_CELL_GLYPHS = str.maketrans({glyph: form for glyph, form in ASCII.items() if len(form) == 1})
_WIDE_GLYPH_OR_GAP = re.compile("|".join(glyph for glyph, form in ASCII.items() if len(form) > 1) + "|  +")


@cache
def ascii_only() -> bool:
    """Whether the user asks for ASCII with EVALTUI_ASCII=1, or the terminal has no UTF-8."""
    if setting := os.environ.get("EVALTUI_ASCII"):
        return setting != "0"
    return _terminal_encoding() != "utf-8"


def _terminal_encoding() -> str:
    return codecs.lookup(sys.__stdout__.encoding if sys.__stdout__ else "utf-8").name


def _question_marks(error: UnicodeError) -> tuple[str, int]:
    """Question marks in the width of a text that the terminal cannot show, so that columns stay aligned."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "?" * cell_len(error.object[error.start : error.end]), error.end


codecs.register_error("evaltui.question_marks", _question_marks)


def line_for_terminal(line: Sequence[Span]) -> Line:
    """The line with only such characters as the terminal can show."""
    if not ascii_only():
        return list(line)
    drawn, encoding = in_ascii(line), _terminal_encoding()
    if encoding == "utf-8":
        return drawn
    return [(text.encode(encoding, "evaltui.question_marks").decode(encoding), role) for text, role in drawn]


def text_for_terminal(text: str) -> str:
    """A text with only such characters as the terminal can show."""
    return "".join(part for part, _ in line_for_terminal([(text, "")]))


def in_ascii(line: Sequence[Span]) -> Line:
    """The line with ASCII in place of glyphs. Wider replacements shorten the next gap, so that columns stay
    aligned."""
    wider = 0

    def instead(match: re.Match[str]) -> str:
        nonlocal wider
        matched = match.group()
        if matched in ASCII:
            wider += len(ASCII[matched]) - 1
            return ASCII[matched]
        blanks = max(1, len(matched) - wider)
        wider -= len(matched) - blanks
        return " " * blanks

    return [(_WIDE_GLYPH_OR_GAP.sub(instead, text.translate(_ONE_CELL_GLYPHS)), role) for text, role in line]
