"""Lines of toned text to what the terminal shows.

A line is a list of `(text, tone)`; a tone says what a text means, the stylesheet says how that looks. Texts
are drawn as they are: nothing in them is markup.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence
from functools import cache

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from evaltui.text.lines import Span, cut

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


TONES = ("green", "red", "yellow", "dim", "bold", "accent", "key", "string", "number")


def tone_classes() -> set[str]:
    """The component classes of a widget that draws lines."""
    return {f"tone-{tone}" for tone in TONES}


def paint(widget: Widget, line: Sequence[Span], width: int, *also: str) -> Strip:
    """A line as a strip of exactly `width` cells, cut with `…` where it is longer.

    `also` are component classes that lie under the tones, such as that of a selected row.
    """
    base = widget.get_visual_style(*also).rich_style

    def style(tone: str) -> RichStyle:
        return widget.get_visual_style(*also, f"tone-{tone}").rich_style if tone else base

    spans = cut(list(line), width)
    segments = [Segment(fit_for_terminal(text), style(tone)) for text, tone in spans if text]
    return Strip(segments).adjust_cell_length(width, base)


def content(widget: Widget, line: Sequence[Span]) -> Content:
    """A line for a widget of Textual's that takes contents, in the tones of that widget."""
    return Content.assemble(
        *(
            (fit_for_terminal(text), widget.get_visual_style(f"tone-{tone}", partial=True) if tone else "")
            for text, tone in line
        )
    )
