"""A result as it is shown: metrics, turns, judgements, state and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaltui.core.compare.explain import error_text
from evaltui.core.compare.judged import (
    conversation_metrics,
    findings,
    judged_metrics,
    was_judged,
)
from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.core.metrics.registry import info_of
from evaltui.core.model.outcome import (
    CaseResult,
    ErrorInfo,
    Expectation,
    MetricResult,
    RepeatResult,
    Status,
    TurnResult,
)
from evaltui.text.figures import counted, score_figures, show_duration, show_number, show_score, show_scores
from evaltui.text.outcomes import CALLS_NOT_CHECKED, CONTEXT_TURN, WORDS
from evaltui.text.values import visible
from evaltui.views.judged import JudgeFindings, judge_findings, judge_line
from evaltui.views.rows import Group, Row, call_rows, score_of, scored_response, text_rows

Result = CaseResult | RepeatResult

_GRAVE_STATUSES = (Status.FAILED, Status.ERROR)
_DURATION_METRIC = "invocation_duration_v1"
_EXPECTATIONS: Mapping[Expectation, str] = {
    "these calls": "",
    "no calls": "no calls expected",
    "unspecified": "calls unspecified (scored as no calls)",
    "not checked": CALLS_NOT_CHECKED,
    "unknown": "calls unknown",
    "context": CONTEXT_TURN,
    "simulated": "simulated user",
}


# Metrics


@dataclass(frozen=True)
class MetricRow:
    """A metric that passes or fails a case."""

    name: str
    status: Status
    score: float | None
    threshold: float | None
    scores: str
    """Score and threshold, `0.62 < 0.80`; the word for its status where it has no score."""
    figure: str
    """The score, `0.62`; as `scores` without a score."""
    needs: str
    """The threshold, `≥ 0.80`; "" without a score or a threshold."""
    why: str
    """The reason for its status; "" for a passed metric, and where judgements give the reason for each turn.
    """
    judge: str
    """The judge, `judged by gemini-2.5-pro, 4 of 5 answered`; "" without a judge."""


def gating_metrics(result: Result) -> list[MetricResult]:
    """The metrics that pass or fail a case."""
    return [metric for metric in result.metrics if metric.status is not Status.INFORMATIONAL]


def metric_rows(result: Result) -> list[MetricRow]:
    return [_metric_row(metric) for metric in gating_metrics(result)]


def metric_reason(metric: MetricResult) -> str:
    """Why a metric has its result, in words; "" where it gives no reason."""
    return error_text(metric.error) if metric.error else visible(metric.reason)


def _metric_row(metric: MetricResult) -> MetricRow:
    figure, needs = WORDS[metric.status], ""
    scores = figure
    if metric.score is not None and metric.status is not Status.ERROR:
        figure, threshold = score_figures(metric.score, metric.threshold)
        scores = show_scores(metric.score, metric.threshold, metric.lower_is_better)
        needs = f"{'≤' if metric.lower_is_better else '≥'} {threshold}" if threshold else ""
    why = metric_reason(metric)
    if metric.status is Status.PASSED or (metric.status is Status.FAILED and was_judged(metric)):
        why = ""
    judge = judge_line(metric.judge) if metric.judge is not None else ""
    return MetricRow(
        visible(metric.name), metric.status, metric.score, metric.threshold, scores, figure, needs, why, judge
    )


@dataclass(frozen=True)
class InformationalRow:
    """A metric without a verdict: a sum over turns for calls, tokens and time, else the score."""

    metric: MetricResult
    name: str
    """Name of the metric, in words for a sum: `tool calls`."""
    figure: str

    @property
    def is_time(self) -> bool:
        return self.metric.name == _DURATION_METRIC


def informational_rows(result: Result) -> list[InformationalRow]:
    metrics = (metric for metric in result.metrics if metric.status is Status.INFORMATIONAL)
    return [
        InformationalRow(
            metric, info_of(metric.name).summed_as or visible(metric.name), _sum_in_words(metric)
        )
        for metric in metrics
        if metric.score is not None
    ]


def _sum_in_words(metric: MetricResult) -> str:
    turns = [turn.score for turn in metric.per_invocation if turn.score is not None]
    figure = sum(turns) if info_of(metric.name).summed_as and turns else metric.score
    return show_duration(figure) if metric.name == _DURATION_METRIC else show_number(figure)


# Turns


@dataclass(frozen=True)
class TurnRows:
    """A turn as rows: the user's message, the calls, the texts, and findings of judges."""

    number: int
    """Its index, from 0."""
    status: str | None
    """The verdict on the turn; None where no metric gives one."""
    user: str
    facts: Sequence[str]
    """Short facts: `2/3 calls`, `response 0.93`, `1.2 s`."""
    calls: Sequence[Group]
    texts: Sequence[Row]
    """The texts besides the response."""
    response: Row | None
    judged: Sequence[JudgeFindings]
    two_sided: bool
    """Whether the turn has expectations."""


def turn_rows(result: Result, number: int, message: str, *, every_vote: bool) -> TurnRows:
    """The rows of a turn, from 0. `message` is the user's message in the case; a simulated user's message
    replaces it."""
    turn = result.turns[number]
    return TurnRows(
        number=number,
        status=turn_status(result, number),
        user=turn.user or message,
        facts=tuple(turn_facts(result, number)),
        calls=tuple(call_rows(turn, number)),
        texts=tuple(text_rows(result, number)),
        response=scored_response(result, number),
        judged=[
            judge_findings(metric, number, every_vote=every_vote)
            for metric in judged_metrics(result.metrics, number)
        ],
        two_sided=turn.expectation != "simulated",
    )


def turn_facts(result: Result, number: int) -> Iterator[str]:
    """Short facts about a turn, from 0: `2/3 calls`, `response 0.93`, `1.2 s`."""
    turn = result.turns[number]
    yield from expectation_facts(turn)
    if turn.response.score is not None:
        yield f"response {show_score(turn.response.score)}"
    seconds = score_of(result, _DURATION_METRIC, number)[0]
    if seconds is not None:
        yield show_duration(seconds)


def expectation_facts(turn: TurnResult) -> Iterator[str]:
    """The expectation of calls in words, and the number of matches: `no calls expected`, `2/3 calls`."""
    if expectation := _EXPECTATIONS[turn.expectation]:
        yield expectation
    if turn.expectation == "these calls" or (turn.checks_calls and turn.calls):
        same = sum(diff.op == "same" for diff in turn.calls)
        yield f"{same}/{counted(len(turn.calls), 'call')}"


def detailed_turns(result: Result) -> set[int]:
    """The turns to show in detail: those that a metric failed or a judge left open; without such a turn,
    those with differences. After an error, the first of these; none where the agent gave no answer."""
    failed = {
        number
        for metric in result.metrics
        if len(metric.per_invocation) == len(result.turns) and not info_of(metric.name).whole_conversation
        for number, scored in enumerate(metric.per_invocation)
        if metric.status in _GRAVE_STATUSES and scored.status in _GRAVE_STATUSES
    }
    if in_detail := failed | _unjudged_turns(result):
        return in_detail
    differing = [
        number
        for number, turn in enumerate(result.turns)
        if turn.checks_calls and any(diff.op != "same" for diff in turn.calls)
    ]
    if result.error:
        repeats = result.repeats if isinstance(result, CaseResult) else (result,)
        return set(differing[:1]) if any(repeat.actual for repeat in repeats) else set()
    return set(differing)


def _unjudged_turns(result: Result) -> set[int]:
    """The turns that a judge left open, so that its metric has no verdict."""
    return {
        finding.turn
        for metric in result.metrics
        if metric.status is Status.NOT_EVALUATED and not info_of(metric.name).whole_conversation
        for finding in findings(metric)
        if finding.judgement.score is None
    }


def conversation_findings(result: Result, *, every_vote: bool) -> list[JudgeFindings]:
    """The findings of judges on the whole conversation."""
    return [
        judge_findings(metric, turn, every_vote=every_vote)
        for metric in conversation_metrics(result.metrics)
        for turn in range(len(metric.per_invocation))
        if metric.per_invocation[turn].judgements
    ]


# Errors


@dataclass(frozen=True)
class ErrorRow:
    """An error of a result; equal errors are listed once."""

    error: ErrorInfo
    title: str
    """The source of the error: `safety_v1, rubric not judged`; "" for the error that ended the case."""


def error_rows(result: Result) -> list[ErrorRow]:
    """The error that ended the case, then those of metrics; an error that several metrics share is listed
    once."""
    by_error: dict[ErrorInfo, list[MetricResult]] = {}
    for metric in result.metrics:
        if metric.error and metric.error != result.error:
            by_error.setdefault(metric.error, []).append(metric)
    rows = [ErrorRow(result.error, "")] if result.error else []
    for error, metrics in by_error.items():
        what = "raised" if metrics[0].judge is None else "not judged"
        rows.append(ErrorRow(error, f"{', '.join(visible(metric.name) for metric in metrics)} {what}"))
    return rows
