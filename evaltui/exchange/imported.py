"""Cases that are made of a file of another tool, and the parts of the file that are in no case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaltui.core.model.datasets import OWN_KEY, UNSPECIFIED
from evaltui.core.model.problems import JsonPath, format_path
from evaltui.text.figures import counted

Json = dict[str, Any]
Report = Callable[[JsonPath, str], None]
"""Takes a path and a reason for each part that is not in a case."""


@dataclass(frozen=True)
class NotTaken:
    """A part of a file that is in no case."""

    source: str
    """File, with the line where it has lines: `rows.csv:3`."""
    path: JsonPath
    """Path in its row or suite."""
    reason: str
    """Reason, and the remedy if there is one, as a clause."""

    @property
    def place(self) -> str:
        """File, line and path."""
        return ": ".join(filter(None, (self.source, format_path(self.path))))


class UnusableSourceError(ValueError):
    """A file of which no cases can be made: a sentence with the file and, where it is known, the line."""


@dataclass(frozen=True)
class ImportedCase:
    """An eval case with its entries in the config of its set."""

    case: Json
    source: str
    """File and line, or path, that the case is made of."""
    tags: Sequence[str] = ()
    rules: Sequence[Json] = ()
    """Rules for arguments, without set and case."""
    answers: Sequence[Json] = ()
    """Checks of answers, each with its turn, without set and case."""

    @property
    def eval_id(self) -> str:
        return str(self.case["eval_id"])


@dataclass(frozen=True)
class ImportedCases:
    """The cases of a file, with unique ids, and the parts of the file that are not in them."""

    cases: Sequence[ImportedCase]
    not_taken: Sequence[NotTaken] = ()
    mapping: Mapping[str, Any] = field(default_factory=dict)
    """Paths of rows by field; empty for a suite."""
    shape: str = ""
    """Name of the tool whose rows these are; "" where the mapping is the user's."""
    criteria: Mapping[str, Any] = field(default_factory=dict)
    """Criteria that the file asks for, by metric."""


def not_taken_lines(parts: Iterable[NotTaken]) -> Iterator[str]:
    """A line for each path and reason, with its first place and the number of its rows."""
    groups: dict[tuple[str, str], list[NotTaken]] = {}
    for part in parts:
        groups.setdefault((_without_indices(part.path), part.reason), []).append(part)
    for (_, reason), group in groups.items():
        first = group[0]
        sources = len({part.source for part in group})
        yield f"{first.place}: not taken: {reason}" + (
            f" (in {counted(sources, 'row')})" if sources > 1 else ""
        )


def _without_indices(path: JsonPath) -> str:
    return format_path(tuple("*" if isinstance(step, int) else step for step in path))


def with_unspecified(case: Json) -> Json:
    """A case in which absent responses and calls of turns are not checked."""
    is_stated = all("final_response" in turn and "intermediate_data" in turn for turn in case["conversation"])
    return case if is_stated else case | {OWN_KEY: UNSPECIFIED}
