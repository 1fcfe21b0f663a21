"""Lines of `(text, role)` to what the terminal shows.

A role says what a text means, the theme how that looks. Texts are drawn as they are: nothing in them is
markup.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence
from functools import cache, lru_cache

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.content import Content
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from evaltui.text.lines import Span, cut
from evaltui.tui.theme import palette

_INSTEAD = str.maketrans("✓✗≈–○◐●·━─│▌█▏▾▸›→←↑↓↕↳…×▁▂▃▄▅▆▇", "+x~-o**.=-||#|v>>><^v%>~x_.:-=+*")


def fit_for_terminal(text: str) -> str:
    """The text with the glyphs that the terminal has."""
    return text.translate(_INSTEAD) if _ascii_only() else text


@cache
def _ascii_only() -> bool:
    """Whether the user asks for ASCII with EVALTUI_ASCII=1, or the locale has no UTF-8."""
    if asked := os.environ.get("EVALTUI_ASCII"):
        return asked != "0"
    return codecs.lookup(sys.__stdout__.encoding if sys.__stdout__ else "utf-8").name != "utf-8"


def paint(widget: Widget, line: Sequence[Span], width: int, row: str = "") -> Strip:
    """A line as a strip of exactly `width` cells, cut with `…` where it is longer.

    `row` is the role of the whole line, which lies under those of its texts; `current` is that of the row
    with the cursor.
    """
    if row == "current":
        row = "sel" if widget.has_focus else "sel-blur"
    styles = palette(widget.app)
    base = widget.visual_style + styles.style(row)
    segments = [
        Segment(fit_for_terminal(text), _rich_style(base, styles.style(_on_row(role, row))))
        for text, role in cut(list(line), width)
        if text
    ]
    return Strip(segments).adjust_cell_length(width, base.rich_style)


@lru_cache(maxsize=4096)
def _rich_style(base: Style, style: Style) -> RichStyle:
    return (base + style).rich_style


def _on_row(role: str, row: str) -> str:
    """What is faint could not be read on a current row."""
    return role.replace("faint", "muted") if row.startswith("sel") else role


def content(widget: Widget, line: Sequence[Span]) -> Content:
    """A line for a widget of Textual's that takes contents."""
    styles = palette(widget.app)
    return Content.assemble(*((fit_for_terminal(text), styles.style(role)) for text, role in line))
