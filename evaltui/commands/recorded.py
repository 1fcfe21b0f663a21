"""The conversations in the traces that a command is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from evaltui.commands.output import UsageError
from evaltui.text.figures import some_of
from evaltui.traces.found import FoundConversations, found_conversations
from evaltui.traces.reading import read_files
from evaltui.traces.span import Recorded, UnreadableTraceError


@contextmanager
def conversations_of(
    recorded: Iterable[Recorded], attributes: Sequence[str] = ()
) -> Iterator[FoundConversations]:
    """The conversations in recorded spans. Raises UsageError for a file that cannot be read."""
    with ExitStack() as stack:
        try:
            read = stack.enter_context(found_conversations(recorded, attributes))
        except (OSError, UnreadableTraceError) as error:
            raise UsageError(str(error)) from error
        yield read


@contextmanager
def some_conversations(paths: Sequence[Path], attributes: Sequence[str] = ()) -> Iterator[FoundConversations]:
    """The conversations in files. Raises UsageError where there are none, or a file cannot be read."""
    with conversations_of(read_files(paths), attributes) as read:
        require_some(read, [str(path) for path in paths])
        yield read


def require_some(read: FoundConversations, named: Sequence[str]) -> None:
    """Raises UsageError where there is no conversation; `named` are the searched places."""
    if not read.conversations:
        raise UsageError("\n".join((f"no conversation of an agent in {some_of(named)}", *read.warnings)))
