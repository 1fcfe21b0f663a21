"""Writing to standard output, whatever it is, and refusals of what was asked for in the wrong way."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from evaltui.files.folders import agents_in, may_be_agent

if TYPE_CHECKING:
    from evaltui.text.lines import Line


def write_stdout(text: str) -> None:
    _write(text, sys.stdout)


def write_stderr(*lines: str) -> None:
    """Lines beside what is written to standard output; dropped where nobody reads standard error."""
    with contextlib.suppress(OSError):
        print(*lines, sep="\n", file=sys.stderr, flush=True)


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


# Exit codes.
WRONG_USE = 2
HAD_ERRORS = 3


class UsageError(ValueError):
    """The command was called in a way that cannot work; one sentence."""


def complain(command: str, problem: object) -> int:
    """Say what was wrong with the call, line by line; returns the exit code for it."""
    for line in str(problem).splitlines():
        write_stderr(f"evaltui {command}: {line}")
    return WRONG_USE


def require_one_agent(agent_dir: Path) -> None:
    """Raises UsageError for what does not exist, and for a folder that is no agent, naming those it holds."""
    if not agent_dir.exists():
        raise UsageError(f"{agent_dir} does not exist")
    agents = [str(agent_dir / name) for name in agents_in(agent_dir)]
    if len(agents) == 1:
        raise UsageError(f"{agent_dir} is a folder above the agent; name the agent itself: {agents[0]}")
    if agents:
        raise UsageError(f"{agent_dir} holds several agents: {', '.join(agents)}; name one of them")
    if not may_be_agent(agent_dir):
        raise UsageError(f"{agent_dir} holds no agent: it has no agent.py, __init__.py or root_agent.yaml")
