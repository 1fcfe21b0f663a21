"""Writing to standard output, whatever it is."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from evaltui.text.lines import Line


def write_stdout(text: str) -> None:
    _write(text, sys.stdout)


def write_stderr(line: str) -> None:
    """Say something beside what is written to standard output; where nobody listens, nobody is told."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def write_lines(lines: Iterable[Line], *, to_stderr: bool = False) -> None:
    """Lines of styled text, coloured where a person is watching.

    Raises BrokenPipeError where nobody reads standard output any more.
    """
    from evaltui.text.lines import draw

    stream = sys.stderr if to_stderr else sys.stdout
    color = colored(stream)
    text = "".join(f"{draw(line, color=color)}\n" for line in lines)
    try:
        _write(text, stream)
    except OSError:
        # What is said beside it may go unheard.
        if not to_stderr:
            raise


def _write(text: str, stream: TextIO) -> None:
    try:
        # The terminal's encoding may lack a glyph: better a replacement than a traceback after a long run.
        stream.buffer.write(text.encode(stream.encoding or "utf-8", "replace"))
        stream.buffer.flush()
    except OSError as error:
        # A terminal that is gone is one more reader that has left.
        if error.errno == errno.EIO:
            raise BrokenPipeError(error.errno, error.strerror) from error
        raise


def colored(stream: TextIO | None = None) -> bool:
    """Whether a stream, standard output, is a terminal whose user has not asked for no colour."""
    return (stream or sys.stdout).isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """The cells of a line: those of the terminal; 80 where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
