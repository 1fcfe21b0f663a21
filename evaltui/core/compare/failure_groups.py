"""The failures of a run, grouped by their reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer

from evaltui.core.compare.explain import general_reason
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, Status

_AS_OBJECTS = PlainSerializer(
    lambda cases: [case._asdict() for case in cases], return_type=list[dict[str, str]]
)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Cases that failed, or ended with an error, for one reason."""

    reason: str
    """The first reason of each without its values: `set_light: argument level differs`."""
    cases: Annotated[tuple[CaseId, ...], _AS_OBJECTS]
    """The cases in their order in the run."""


def failure_groups(results: Iterable[tuple[CaseId, CaseResult]]) -> tuple[FailureGroup, ...]:
    """Groups of the cases that failed or had an error, the largest first, equally large ones in the order of
    their first case."""
    by_reason: dict[str, list[CaseId]] = {}
    for case, result in results:
        if result.verdict in (Status.FAILED, Status.ERROR):
            by_reason.setdefault(general_reason(result), []).append(case)
    groups = (FailureGroup(reason, tuple(cases)) for reason, cases in by_reason.items())
    return tuple(sorted(groups, key=lambda group: -len(group.cases)))
