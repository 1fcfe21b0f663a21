"""Writing to standard output, whatever it is."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaltui.reports.lines import Line


def write_stdout(text: str) -> None:
    # The terminal's encoding may lack a glyph: better a replacement than a traceback after a long run.
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "replace"))
    sys.stdout.buffer.flush()


def write_lines(lines: Iterable[Line]) -> None:
    """Lines of styled text, coloured where a person is watching."""
    from evaltui.reports.lines import draw

    color = colored()
    write_stdout("".join(f"{draw(line, color=color)}\n" for line in lines))


def colored() -> bool:
    """Whether standard output is a terminal whose user has not asked for no colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """The cells of a line: those of the terminal; 80 where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
