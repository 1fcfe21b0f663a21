"""The conversations in the traces that a command is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from evaltui.commands.output import UsageError
from evaltui.text.figures import short_list
from evaltui.traces.conversations import Conversations, conversations_in
from evaltui.traces.reading import read_files
from evaltui.traces.span import Recorded, UnreadableTraceError


def conversations_of(recorded: Iterable[Recorded], attributes: Sequence[str] = ()) -> Conversations:
    """The conversations in recorded spans. Raises UsageError for a file that cannot be read."""
    try:
        return conversations_in(recorded, attributes)
    except (OSError, UnreadableTraceError) as error:
        raise UsageError(str(error)) from error


def some_conversations(paths: Sequence[Path]) -> Conversations:
    """The conversations and scenarios in files. Raises UsageError where there are none, or a file cannot be
    read."""
    read = conversations_of(read_files(paths))
    if not read.scenarios:
        require_some(read, [str(path) for path in paths])
    return read


def require_some(read: Conversations, named: Sequence[str]) -> None:
    """Raises UsageError where there is no conversation; `named` are the searched places."""
    if not read.conversations:
        hint = "; `evaltui import FILE --into SET` makes cases of its scenarios" if read.scenarios else ""
        raise UsageError(
            "\n".join((f"no conversation of an agent in {short_list(named)}{hint}", *read.warnings))
        )
