"""Glyphs for terminals that have ASCII only: each becomes one character, so no line changes its width."""

from __future__ import annotations

import codecs
import os
import sys
from functools import cache

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
