"""The lines that pytest prints for a case that did not pass."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from evaltui.core.compare.explain import sentence
from evaltui.core.model.outcome import CaseResult
from evaltui.reports.details import MAX_WIDTH, case_details
from evaltui.text.lines import Line, draw


class NoResultError(Exception):
    """The run is over, and there is no result of a case; the message says why."""


class CaseFailedError(Exception):
    """The agent did something else than the case expects."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(sentence(result))
        self.result = result


class CaseUndecidedError(Exception):
    """It is not known whether a case passes: the agent failed, or a metric could not be computed."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(sentence(result))
        self.result = result


class _Writer(Protocol):
    """The part of pytest's terminal writer that is used here."""

    hasmarkup: bool

    def line(self, s: str = "") -> None: ...


@dataclass(frozen=True)
class Place:
    """Where pytest, and whoever reads its reports, says that a test failed."""

    path: str
    lineno: int
    """From 1."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


@dataclass(frozen=True)
class FailureLines:
    """The lines that `evaltui run` prints of the case, in the form that pytest takes as a failure."""

    lines: tuple[Line, ...]
    reprcrash: Place

    @classmethod
    def of(cls, result: CaseResult, path: Path, line: int) -> FailureLines:
        """The lines for a case that begins on a line of a file, from 1."""
        return cls(_case_lines(result), Place(str(path), line, sentence(result)))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FailureLines:
        """The lines that a worker of pytest-xdist has sent."""
        lines = tuple([(text, role) for text, role in line] for line in data["lines"])
        return cls(lines, Place(data["path"], data["lineno"], data["message"]))

    def to_json(self) -> dict[str, Any]:
        place = self.reprcrash
        lines = [[list(span) for span in line] for line in self.lines]
        return {"lines": lines, "path": place.path, "lineno": place.lineno, "message": place.message}

    def toterminal(self, tw: _Writer) -> None:
        for line in self.lines:
            tw.line(draw(line, color=tw.hasmarkup))
        tw.line("")
        tw.line(f"{self.reprcrash.path}:{self.reprcrash.lineno}")

    def __str__(self) -> str:
        return "\n".join(draw(line, color=False) for line in self.lines)


def details(result: CaseResult) -> str:
    """The lines that `evaltui run` prints of a case, as text."""
    return "\n".join(draw(line, color=False) for line in _case_lines(result))


def _case_lines(result: CaseResult) -> tuple[Line, ...]:
    return tuple(case_details(result, min(shutil.get_terminal_size().columns, MAX_WIDTH)))
