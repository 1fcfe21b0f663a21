"""What the agent and the processes that it starts have printed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from evaltui.core.model.case_id import CaseId

MOST_LINES = 20_000
# A program can print megabytes without a line break.
LONGEST_LINE = 10_000
MOST_CHARACTERS = 8_000_000


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line that the agent has printed."""

    run: int
    """The number of the run; 0 for a conversation."""
    source: str
    """`stdout` or `stderr`"""
    text: str
    case: CaseId | None = None
    """The case; None where several ran and any may have printed it."""
    cut: int = 0
    """How many characters of the line were left out."""


class Console:
    """The last lines printed; of the first ones only how many were `dropped`.

    `total` counts all of them, `unread` those that came since they were last looked at.
    """

    def __init__(self) -> None:
        self._lines: deque[PrintedLine] = deque()
        self._characters = 0
        self._seen = 0
        self.total = 0

    def add(self, run: int, source: str, text: str, case: CaseId | None) -> None:
        line = PrintedLine(run, source, text[:LONGEST_LINE], case, max(0, len(text) - LONGEST_LINE))
        self._lines.append(line)
        self._characters += len(line.text)
        self.total += 1
        while len(self._lines) > MOST_LINES or self._characters > MOST_CHARACTERS:
            self._characters -= len(self._lines.popleft().text)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, number: int) -> PrintedLine:
        return self._lines[number]

    def __iter__(self) -> Iterator[PrintedLine]:
        return iter(self._lines)

    @property
    def dropped(self) -> int:
        return self.total - len(self._lines)

    @property
    def unread(self) -> int:
        return self.total - self._seen

    def mark_seen(self) -> None:
        """Everything printed so far has been seen."""
        self._seen = self.total
