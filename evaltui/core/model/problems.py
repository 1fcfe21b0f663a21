"""A problem in user data: how bad, where, and what, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

JsonPath = tuple[str | int, ...]


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Problem:
    """One thing wrong at a place."""

    severity: Severity
    path: JsonPath
    message: str
    """A sentence, without the place."""
    line: int | None = None
    """Counted from 1; None where the text is not at hand."""
    file: str | None = None

    @classmethod
    def error(
        cls, path: JsonPath, message: str, *, line: int | None = None, file: str | None = None
    ) -> Problem:
        return cls(Severity.ERROR, path, message, line, file)

    @classmethod
    def warning(cls, path: JsonPath, message: str, *, file: str | None = None) -> Problem:
        return cls(Severity.WARNING, path, message, file=file)

    def __str__(self) -> str:
        where = format_path(self.path)
        sentence = f"{where}: {self.message}" if where else self.message
        return f"{sentence}; line {self.line}" if self.line else sentence


class EvalSetError(ValueError):
    """An eval set or config that cannot be used, with every problem found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(_in_file(problem) for problem in self.problems))


def _in_file(problem: Problem) -> str:
    return f"{problem.file}: {problem}" if problem.file else str(problem)


_PLAIN_KEY = re.compile(r"[^\W\d][\w:-]*")


def format_path(path: JsonPath) -> str:
    """`("eval_cases", 2, "conversation", 0)` as `eval_cases[2].conversation[0]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text
