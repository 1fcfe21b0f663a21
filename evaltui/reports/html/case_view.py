"""The data of a case for the templates of the HTML report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaltui.core.compare.explain import sentence
from evaltui.core.model.eval_set import Invocation, user_text
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status, TurnResult
from evaltui.core.trace.span_lines import (
    KIND_ROLES,
    TIMED_KINDS,
    Scale,
    TimeFact,
    span_body_line,
    span_tokens,
    time_facts,
    turn_message,
    turn_title,
)
from evaltui.core.trace.spans import Span, SpanTree, time_spent
from evaltui.reports.details import repeat_lines
from evaltui.text.figures import counted, show_duration
from evaltui.text.lines import Line
from evaltui.text.outcomes import ROW_MARKS
from evaltui.views.judged import JudgeFindings
from evaltui.views.result import (
    ErrorRow,
    InformationalRow,
    MetricRow,
    TurnRows,
    conversation_findings,
    error_rows,
    informational_rows,
    metric_rows,
    turn_rows,
)
from evaltui.views.rows import Row, made_call, state_rows

# The log has them all.
_MAX_ROWS = 1_000
# Cells: what is longer is wrapped by the browser.
_LINE_WIDTH = 10_000
_MAX_DEPTH = 6


@dataclass(frozen=True)
class SpanRow:
    """A span of a trace: kind, text, duration, and the place of its bar in percent of the case's time."""

    kind: str
    role: str
    depth: int
    what: Line
    mark: tuple[str, str]
    """The difference of a call from its expectation, as mark and role; `("", "")` for none."""
    tokens: str
    seconds: str
    begin: float
    width: float
    has_bar: bool


@dataclass(frozen=True)
class TurnTrace:
    """The spans of a turn."""

    title: str
    user: str
    seconds: str
    rows: tuple[SpanRow, ...]


@dataclass(frozen=True)
class TraceView:
    """The trace of one run of a case, with totals."""

    turns: tuple[TurnTrace, ...]
    spent: tuple[TimeFact, ...]
    tokens: str
    """The tokens, `2,412 tokens`; "" where none are reported."""
    left_out: str
    """The number of omitted spans, as text; "" for none."""


def trace_view(events: Sequence[Event], turns: Sequence[TurnResult]) -> TraceView | None:
    """The trace of a run of a case; None without events."""
    if not events:
        return None
    tree = SpanTree()
    tree.add(events)
    scale = Scale.of(tree.spans, tree.turns)
    has_times = any(turn.seconds for turn in tree.turns)
    views, room = [], _MAX_ROWS
    for turn in tree.turns:
        below = list(_spans_below(tree.spans, turn))
        shown = below[:room]
        room -= len(shown)
        rows = tuple(_row(span, scale, turns, has_times=has_times) for span in shown)
        views.append(
            TurnTrace(turn_title(turn), turn_message(turn), _duration(turn, has_times=has_times), rows)
        )
    left_out = len(tree.spans) - len(tree.turns) - (_MAX_ROWS - room)
    return TraceView(
        turns=tuple(views),
        spent=tuple(time_facts(time_spent(tree.spans), tree.unknown)),
        tokens=counted(tree.tokens, "token") if tree.tokens else "",
        left_out=counted(left_out, "more span") if left_out > 0 else "",
    )


def _spans_below(spans: Sequence[Span], turn: Span) -> Iterator[Span]:
    """The spans of a turn, each before the spans inside it."""
    stack = list(reversed(turn.children))
    while stack:
        span = spans[stack.pop()]
        yield span
        stack += reversed(span.children)


def _row(span: Span, scale: Scale, turns: Sequence[TurnResult], *, has_times: bool) -> SpanRow:
    whole = scale.end - scale.start
    timed = span.kind in TIMED_KINDS
    begin = 100 * (span.start - scale.start) / whole if whole else 0.0
    width = 100 * span.seconds / whole if whole else 0.0
    return SpanRow(
        kind=span.kind,
        role="error"
        if span.failed and span.kind in ("error", *TIMED_KINDS)
        else KIND_ROLES.get(span.kind, "muted"),
        depth=min(_MAX_DEPTH, span.depth - 1),
        what=span_body_line(span, _LINE_WIDTH),
        mark=_mark(span, turns),
        tokens=span_tokens(span),
        seconds=_duration(span, has_times=has_times) if timed else "",
        begin=round(min(max(begin, 0.0), 100.0), 1),
        width=round(min(max(width, 0.4), 100.0), 1),
        has_bar=timed and not span.is_open,
    )


def _duration(span: Span, *, has_times: bool) -> str:
    """The duration of a span; unknown for a span without end, and in a trace without times."""
    return show_duration(span.seconds if has_times and not span.is_open else None)


def _mark(span: Span, turns: Sequence[TurnResult]) -> tuple[str, str]:
    """The mark of the call of a span that is not as expected."""
    if span.call is None or span.turn is None or not 0 <= span.turn < len(turns):
        return "", ""
    diff = made_call(turns[span.turn], span.call)
    return ("", "") if diff is None or diff.op == "same" else ROW_MARKS[diff.op]


_WIDTH = 100


@dataclass(frozen=True)
class RepeatView:
    """The data of one run of a case."""

    title: str
    """The title, `Repeat 2 of 5`; "" for a single run."""
    status: Status
    seconds: str
    why: str
    metrics: Sequence[MetricRow]
    informational: Sequence[InformationalRow]
    turns: Sequence[TurnRows]
    whole: Sequence[JudgeFindings]
    """The findings of judges on the whole conversation."""
    ended: str
    """The end of a conversation with a simulated user; "" for other cases."""
    state: Sequence[Row]
    errors: Sequence[ErrorRow]
    trace: TraceView | None


@dataclass(frozen=True)
class CaseView:
    """The data of a case; `deciding` is the index of the repeat that decides its outcome, from 0."""

    why: str
    command: str
    """The command that runs the case again; "" where the agent's folder is unknown."""
    over_repeats: Sequence[Line]
    repeats: Sequence[RepeatView]
    deciding: int
    has_trace: bool


Events = Mapping[int, Sequence[Event]]
"""Events of a case by repeat, from 0."""


def case_view(case: CaseResult, events: Events, command: str) -> CaseView:
    """The data of a case; `events` are empty for a run that was not stored."""
    deciding = case.deciding_repeat
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
    """The first message of the user; "" where it is unknown."""
    simulated = next((turn.user for turn in case.turns if turn.user), "")
    actual = next((repeat.actual for repeat in case.repeats if repeat.actual), ())
    return simulated or _message(actual, 0)


def _message(actual: Sequence[Invocation], number: int) -> str:
    """The user's message in a turn, from 0; "" where the agent did not reach the turn."""
    return user_text(actual[number].user_content) if number < len(actual) else ""


def _repeat(
    result: CaseResult | RepeatResult,
    repeat: RepeatResult | None,
    number: int,
    count: int,
    trace: TraceView | None,
) -> RepeatView:
    actual = () if repeat is None else repeat.actual
    return RepeatView(
        title=f"Repeat {number + 1} of {count}" if count > 1 else "",
        status=result.status if repeat is None else repeat.status,
        seconds=show_duration(None if repeat is None else repeat.seconds or None),
        why=sentence(result) if count > 1 and result is repeat else "",
        metrics=metric_rows(result),
        informational=informational_rows(result),
        turns=[
            turn_rows(result, place, _message(actual, place), every_vote=True)
            for place in range(len(result.turns))
        ],
        whole=conversation_findings(result, every_vote=True),
        ended=result.stopped,
        state=list(state_rows(result.state)),
        errors=error_rows(result),
        trace=trace,
    )
