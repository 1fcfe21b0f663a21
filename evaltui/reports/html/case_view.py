"""A case as the report shows it: what its template writes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaltui.core.compare.explain import sentence
from evaltui.core.model.eval_set import Invocation, user_text
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.reports.details import repeat_lines
from evaltui.reports.html.trace_rows import TraceView, trace_view
from evaltui.text.figures import show_duration
from evaltui.text.lines import Line
from evaltui.views.judged import Judged
from evaltui.views.repeats import worst_repeat
from evaltui.views.result import (
    ErrorRow,
    InformationalRow,
    MetricRow,
    TurnRows,
    error_rows,
    informational_rows,
    metric_rows,
    turn_rows,
    whole_conversation,
)
from evaltui.views.rows import Row, state_rows

_WIDTH = 100


@dataclass(frozen=True)
class RepeatView:
    """One run of a case."""

    title: str
    """`Repeat 2 of 5`; "" where there is but one."""
    status: Status
    seconds: str
    why: str
    metrics: Sequence[MetricRow]
    informational: Sequence[InformationalRow]
    turns: Sequence[TurnRows]
    whole: Sequence[Judged]
    """The judges' findings on the whole conversation."""
    ended: str
    """How the conversation with a simulated user ended; "" for other cases."""
    state: Sequence[Row]
    errors: Sequence[ErrorRow]
    trace: TraceView | None


@dataclass(frozen=True)
class CaseView:
    """All of a case. `deciding` is the number of the repeat whose verdict counts, from 0."""

    why: str
    command: str
    """The command that runs the case again; "" where the agent's folder is unknown."""
    over_repeats: Sequence[Line]
    repeats: Sequence[RepeatView]
    deciding: int
    has_trace: bool


Events = Mapping[int, Sequence[Event]]
"""The events of a case by repeat, from 0."""


def case_view(case: CaseResult, events: Events, command: str) -> CaseView:
    """`events` are empty where the run was not stored."""
    deciding = worst_repeat(case)
    views = []
    for number, repeat in enumerate(case.repeats or [None]):
        # A case says the same as the repeat that decides, and does where a repeat has no details.
        result = case if repeat is None or number == deciding else repeat
        trace = trace_view(events.get(number, ()), result.turns)
        views.append(_repeat(result, repeat, number, len(case.repeats), trace))
    return CaseView(
        why=sentence(case),
        command=command,
        over_repeats=repeat_lines(case, _WIDTH),
        repeats=views,
        deciding=deciding,
        has_trace=bool(events),
    )


def first_user_text(case: CaseResult) -> str:
    """The first message of the user; "" where it is not known."""
    simulated = next((turn.user for turn in case.turns if turn.user), "")
    actual = next((repeat.actual for repeat in case.repeats if repeat.actual), ())
    return simulated or _message(actual, 0)


def _message(actual: Sequence[Invocation], number: int) -> str:
    """The user's message in a turn, from 0; "" where the agent did not come so far."""
    return user_text(actual[number].user_content) if number < len(actual) else ""


def _repeat(
    result: CaseResult | RepeatResult,
    repeat: RepeatResult | None,
    number: int,
    count: int,
    trace: TraceView | None,
) -> RepeatView:
    actual = repeat.actual if repeat else ()
    return RepeatView(
        title=f"Repeat {number + 1} of {count}" if count > 1 else "",
        status=repeat.status if repeat else result.status,
        seconds=show_duration(repeat.seconds if repeat else None),
        why=sentence(result) if count > 1 and result is repeat else "",
        metrics=metric_rows(result),
        informational=informational_rows(result),
        turns=[
            turn_rows(result, place, _message(actual, place), every_vote=True)
            for place in range(len(result.turns))
        ],
        whole=whole_conversation(result, every_vote=True),
        ended=result.stopped,
        state=list(state_rows(result.state)),
        errors=error_rows(result),
        trace=trace,
    )
