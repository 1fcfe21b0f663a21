"""A case as the report shows it: plain data that its template writes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaltui.core.compare.explain import sentence, summary
from evaltui.core.compare.judged import (
    finding_rows,
    findings_in,
    judge_line,
    judged_as_a_whole,
    judged_head,
    judged_in,
)
from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.core.model.eval_set import Invocation, user_text
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import (
    WORST_FIRST,
    CaseResult,
    ErrorInfo,
    Expectation,
    MetricResult,
    RepeatResult,
    Status,
)
from evaltui.core.model.text_diff import NO_TEXTS
from evaltui.reports.details import repeat_lines
from evaltui.reports.html.call_rows import (
    Row,
    Rows,
    call_rows,
    made_rows,
    response_row,
    rows_before,
    shown_text,
    state_rows,
)
from evaltui.reports.html.trace_rows import TraceView, trace_view
from evaltui.text.figures import UNKNOWN, counted, score_figures, show_duration, show_number, show_score
from evaltui.text.lines import Line
from evaltui.text.outcomes import GLYPHS, ROLES, WORDS, glyph
from evaltui.text.syntax import code

_WIDTH = 100
_NEEDS = {True: "≤", False: "≥"}
_EXPECTATIONS: Mapping[Expectation, str] = {
    "these calls": "",
    "no calls": "no calls expected",
    "unspecified": "calls unspecified (scored as no calls)",
    "not checked": "calls not checked",
    "unknown": "calls unknown: the agent does not send them",
    "context": "context turn, not scored",
    "simulated": "simulated user",
}


@dataclass(frozen=True)
class Verdict:
    """A status as it is drawn."""

    status: str

    @property
    def glyph(self) -> str:
        return GLYPHS[self.status]

    @property
    def role(self) -> str:
        return ROLES[self.status]

    @property
    def word(self) -> str:
        return WORDS[self.status]


@dataclass(frozen=True)
class MetricView:
    """A metric that passes or fails a case. `score` and `threshold` are percents of its range for the bar,
    None where there is nothing to draw."""

    name: str
    verdict: Verdict
    figure: str
    needs: str
    """`≥ 0.80`; "" without a threshold."""
    score: float | None
    threshold: float | None
    why: str
    """Why it did not pass; "" where it did, and where its turns say so."""
    judge: str
    """`judged by gemini-2.5-pro, 4 of 5 answered`; "" without a judge."""


@dataclass(frozen=True)
class JudgedView:
    """What a judge says: the verdict, and below it every rubric, sentence or vote with its reason."""

    head: Line
    rows: tuple[Line, ...]
    failed: bool
    """Whether it speaks against the case."""


@dataclass(frozen=True)
class TurnView:
    """A turn: what the user wrote, the calls, the response, what judges say."""

    number: int
    """From 1."""
    verdict: Verdict | None
    user: str
    facts: tuple[str, ...]
    """`2/3 calls`, `response 0.93`."""
    groups: tuple[Rows, ...]
    before: tuple[Row, ...]
    """The texts before the response, beside the expected ones."""
    response: Row | None
    unscored: tuple[tuple[str, str], ...]
    """Author and text of thoughts, and of texts before the response that have no row."""
    judged: tuple[JudgedView, ...]
    two_sided: bool
    """Whether something is expected of it."""


@dataclass(frozen=True)
class ErrorView:
    """An error with the traceback, its lines in colour."""

    title: str
    kind: str
    """`timeout`, `agent`; "" where nobody knows."""
    where: str
    traceback: tuple[Line, ...]


@dataclass(frozen=True)
class RepeatView:
    """One run of a case."""

    title: str
    """`Run 2 of 5`; "" where there is but one."""
    verdict: Verdict
    seconds: str
    why: str
    metrics: tuple[MetricView, ...]
    informational: tuple[str, ...]
    turns: tuple[TurnView, ...]
    whole: tuple[JudgedView, ...]
    """What judges say of the conversation as one."""
    ended: str
    """What ended the conversation with a simulated user; "" for other cases."""
    state: tuple[Row, ...]
    errors: tuple[ErrorView, ...]
    trace: TraceView | None


@dataclass(frozen=True)
class CaseView:
    """All of a case. `deciding` is the number of the repeat whose verdict counts, from 0."""

    why: str
    command: str
    """That runs the case again; "" where nobody knows the agent's folder."""
    over_repeats: tuple[Line, ...]
    repeats: tuple[RepeatView, ...]
    deciding: int
    has_trace: bool


Events = Mapping[int, Sequence[Event]]
"""What happened in a case, by repeat from 0."""


def case_view(case: CaseResult, events: Events, command: str) -> CaseView:
    """`events` are empty where the run was not stored."""
    deciding = _deciding(case)
    repeats: list[CaseResult | RepeatResult] = list(case.repeats) or [case]
    # A case says the same as the repeat that decides, and does where a repeat has no details.
    repeats[deciding] = case
    actual = [repeat.actual for repeat in case.repeats] or [()]
    seconds: list[float | None] = [repeat.seconds for repeat in case.repeats]
    views = []
    for number, repeat in enumerate(repeats):
        title = f"Run {number + 1} of {len(repeats)}" if len(repeats) > 1 else ""
        trace = trace_view(events.get(number, ()), repeat.turns)
        views.append(
            _repeat(repeat, actual[number], title, show_duration(seconds[number] if seconds else None), trace)
        )
    return CaseView(
        why=sentence(case),
        command=command,
        over_repeats=tuple(repeat_lines(case, _WIDTH)),
        repeats=tuple(views),
        deciding=deciding,
        has_trace=bool(events),
    )


def _deciding(case: CaseResult) -> int:
    places = [WORST_FIRST.index(one.status) for one in case.repeats if one.status in WORST_FIRST]
    return places.index(min(places)) if places and len(places) == len(case.repeats) else 0


def row_summary(case: CaseResult) -> str:
    """Why a case came out as it did, in as few words as its row has room for."""
    return summary(case)


def first_user_text(case: CaseResult) -> str:
    """The first message of the user; "" where it is not known."""
    simulated = next((turn.user for turn in case.turns if turn.user), "")
    actual = next((repeat.actual for repeat in case.repeats if repeat.actual), ())
    return simulated or (user_text(actual[0].user_content) if actual else "")


def _repeat(
    result: CaseResult | RepeatResult,
    actual: Sequence[Invocation],
    title: str,
    seconds: str,
    trace: TraceView | None,
) -> RepeatView:
    status = result.status
    if isinstance(result, CaseResult) and result.repeats:
        status = result.repeats[_deciding(result)].status
    errors = [result.error, *(metric.error for metric in result.metrics)]
    return RepeatView(
        title=title,
        verdict=Verdict(status),
        seconds=seconds,
        why=sentence(result) if title and not isinstance(result, CaseResult) else "",
        metrics=tuple(_metric(one) for one in result.metrics if one.status is not Status.INFORMATIONAL),
        informational=tuple(
            f"{one.name} {show_number(one.score)}"
            for one in result.metrics
            if one.status is Status.INFORMATIONAL and one.score is not None
        ),
        turns=tuple(_turn(result, actual, number) for number in range(len(result.turns))),
        whole=tuple(
            _judged(metric, turn)
            for metric in judged_as_a_whole(result.metrics)
            for turn in range(len(metric.per_invocation))
            if metric.per_invocation[turn].judgements
        ),
        ended=result.stopped,
        state=state_rows(result.state),
        errors=tuple(_error(one) for one in dict.fromkeys(errors) if one is not None),
        trace=trace,
    )


def _metric(metric: MetricResult) -> MetricView:
    figure, needed = show_score(metric.score), ""
    if metric.score is not None:
        figure, needed = score_figures(metric.score, metric.threshold)
    drawn = metric.score is not None and 0 <= metric.score <= 1
    threshold = metric.threshold
    return MetricView(
        name=metric.name,
        verdict=Verdict(metric.status),
        figure=figure if metric.score is not None else UNKNOWN,
        needs=f"{_NEEDS[metric.lower_is_better]} {needed}" if needed else "",
        score=round(100 * metric.score, 1) if drawn and metric.score is not None else None,
        threshold=round(100 * threshold, 1) if threshold is not None and 0 < threshold < 1 else None,
        why="" if metric.status in (Status.PASSED, Status.FAILED) or metric.error else metric.reason,
        judge=judge_line(metric.judge) if metric.judge is not None else "",
    )


def _turn(result: CaseResult | RepeatResult, actual: Sequence[Invocation], number: int) -> TurnView:
    turn = result.turns[number]
    status = turn_status(result, number)
    said = user_text(actual[number].user_content) if number < len(actual) else ""
    is_simulated = turn.expectation == "simulated"
    aligned = {row.actual for row in turn.intermediate}
    groups = call_rows(turn.calls, checked=turn.checks_calls)
    if is_simulated:
        groups = iter([made_rows(turn.calls)] if turn.calls else [])
    return TurnView(
        number=number + 1,
        verdict=Verdict(status) if status else None,
        user=shown_text(turn.user or said),
        facts=tuple(_facts(result, number)),
        groups=tuple(groups),
        before=tuple(rows_before(result, number)),
        response=response_row(result, number),
        unscored=tuple(
            (before.author, shown_text(before.text))
            for before in turn.unscored
            if before.author in NO_TEXTS or before.text not in aligned
        ),
        judged=tuple(_judged(metric, number) for metric in judged_in(result.metrics, number)),
        two_sided=not is_simulated,
    )


def _facts(result: CaseResult | RepeatResult, number: int) -> Iterator[str]:
    turn = result.turns[number]
    if expectation := _EXPECTATIONS[turn.expectation]:
        yield expectation
    if turn.checks_calls and turn.calls:
        same = sum(diff.op == "same" for diff in turn.calls)
        yield f"{same}/{counted(len(turn.calls), 'call')}"
    if turn.response.score is not None:
        yield f"response {show_score(turn.response.score)}"
    for metric in result.metrics:
        if metric.name == "invocation_duration_v1" and number < len(metric.per_invocation):
            yield show_duration(metric.per_invocation[number].score)


def _judged(metric: MetricResult, turn: int) -> JudgedView:
    scored, found = metric.per_invocation[turn], findings_in(metric, turn)
    rows: list[Line] = [
        [*head, *text] for some in finding_rows(found, every_vote=True) for head, text in some
    ]
    if not found and scored.reason:
        rows.append([(scored.reason, "muted")])
    failed = scored.status in (Status.FAILED, Status.ERROR)
    return JudgedView(judged_head(metric, scored, found), tuple(rows), failed)


def _error(error: ErrorInfo) -> ErrorView:
    title = f"{error.type}: {error.message}" if error.message else error.type
    lines = code(error.traceback.rstrip("\n"), "pytb") if error.traceback.strip() else ()
    return ErrorView(shown_text(title), error.kind or "", error.where, tuple(lines))


def status_line(case: CaseResult) -> Line:
    """`✗ 3/5`: the verdict, and of several runs how many passed."""
    mark, role = glyph(case.status)
    several = f" {case.passed_repeats}/{len(case.repeats)}" if len(case.repeats) > 1 else ""
    return [(f"{mark}{several}", role)]
