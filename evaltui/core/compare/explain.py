"""Reasons for the outcome of a case, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from evaltui.core.compare.judged import Finding, findings_in, was_judged
from evaltui.core.metrics.metric import threshold_hint
from evaltui.core.metrics.registry import info_of
from evaltui.core.model.outcome import (
    ArgDiff,
    CallDiff,
    CallOp,
    CaseResult,
    ErrorInfo,
    MetricResult,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.text.figures import counted, ordinal, show_number, show_scores
from evaltui.text.lines import Line, Span, draw
from evaltui.text.syntax import JSON
from evaltui.text.values import cut, show_change, show_value, type_change, type_names, visible

MAX_REASONS = 3
MAX_MESSAGE = 200
_MAX_SUBJECT = 80
# The index of an item in the path of an argument.
_ITEM = re.compile(r"\[\d+\]")

_WORST_FIRST: tuple[CallOp, ...] = ("changed", "missing", "extra", "moved")
_STATE_METRIC = "final_session_state"

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Reason:
    """One reason for an outcome."""

    text: Line
    """The reason with values as JSON."""
    short: str
    """The reason in a few words."""
    turn: int | None = None
    """The turn, from 1; None for the whole case."""
    general: str = ""
    """The reason without values, which other cases may share; "" for `short`."""


def sentence(result: CaseResult | RepeatResult) -> str:
    """The reasons of `reason_line` as plain text."""
    return draw(reason_line(result), color=False)


def reason_line(result: CaseResult | RepeatResult) -> Line:
    """The first three reasons for an outcome and the number of others, without a full stop.

    For a passed case, the differences that rules allow; empty for a case that passed its only metric.
    """
    if result.status is Status.PASSED:
        metrics = [metric for metric in result.metrics if metric.status is not Status.INFORMATIONAL]
        passed = sum(metric.status is Status.PASSED for metric in metrics)
        of_metrics = f"{passed}/{counted(len(metrics), 'metric')} passed" if len(metrics) > 1 else ""
        repeats = ""
        if isinstance(result, CaseResult) and (result.decision or result.is_partly_evaluated):
            repeats = _repeats_text(result)
        text = "; ".join(filter(None, (repeats, of_metrics, summary(result))))
        return [(text, "")] if text else []
    shown, more = first_reasons(result)
    reasons = _join_by_turn([(reason.turn, reason.text) for reason in shown], more, result)
    if not isinstance(result, CaseResult) or (result.decision is None and len(result.repeats) < 2):
        return reasons
    return [(_repeats_text(result), ""), *([(": ", ""), *reasons] if reasons else [])]


def policy_in_words(case: CaseResult) -> str:
    """The policy that decides over repeats, `policy majority met`, or the decision of a sequential test; and
    how many repeats have no verdict: `policy all undecided, 1 not evaluated`."""
    if case.decision is not None:
        policy = case.decision.in_words
    else:
        is_open = case.is_partly_evaluated and case.status is Status.NOT_EVALUATED
        word = "met" if case.policy_met else "undecided" if is_open else "not met"
        policy = f"policy {case.policy} {word}"
    if not case.is_partly_evaluated:
        return policy
    unjudged = len(case.repeats) - case.evaluated_repeats
    return f"{policy}, {show_number(unjudged)} not evaluated"


def _repeats_text(case: CaseResult) -> str:
    passed = f"{case.passed_repeats}/{counted(len(case.repeats), 'repeat')} passed"
    return f"{passed}, {policy_in_words(case)}"


def summary(result: CaseResult | RepeatResult) -> str:
    """The reasons for an outcome, short enough for a list; "" for a case that passed without rules.

    The number of passed repeats is left out, because lists have a column for it.
    """
    if result.status is Status.PASSED:
        allowed, more = _first_items(allowed_by_rules(result))
        rules = f"allowed by rules: {', '.join([*allowed, *_more_text(more)])}" if allowed else ""
        if isinstance(result, CaseResult) and result.is_partly_evaluated:
            return ": ".join(filter(None, (policy_in_words(result), rules)))
        return rules
    shown, more = first_reasons(result)
    shorts: list[tuple[int | None, Line]] = [(reason.turn, [(reason.short, "")]) for reason in shown]
    text = draw(_join_by_turn(shorts, more, result), color=False)
    if isinstance(result, CaseResult) and result.decision and result.decision.answer == "undecided":
        return ": ".join(filter(None, ("undecided", text)))
    if isinstance(result, CaseResult) and (result.status is Status.FLAKY or result.is_partly_evaluated):
        return f"{policy_in_words(result)}: {text}"
    return text


def _join_by_turn(
    texts: Sequence[tuple[int | None, Line]], more: int, result: CaseResult | RepeatResult
) -> Line:
    """Reasons joined by turn: `turn 1: a; b; turn 2: c; 2 more`."""
    parts: list[Line] = []
    last: int | None = None
    for turn, text in texts:
        is_named = turn and turn != last and len(result.turns) > 1
        parts.append([*([(f"turn {turn}: ", "bold")] if is_named else []), *text])
        last = turn
    rest: list[Line] = [[(text, "")] for text in _more_text(more)]
    return list(_join_lines([*parts, *rest]))


def _more_text(count: int) -> list[str]:
    return [f"{show_number(count)} more"] if count else []


def first_reasons(result: CaseResult | RepeatResult) -> tuple[list[Reason], int]:
    """The first three reasons for an outcome other than passed, and the number of other reasons."""
    return _first_items(list(_reasons(result)))


def general_reason(result: CaseResult | RepeatResult) -> str:
    """The first reason for an outcome, without values: `set_light: argument level differs`."""
    first = next(_reasons(result), None)
    return "" if first is None else first.general or first.short


def describe_call(diff: CallDiff) -> str:
    """A row of aligned calls in words: `set_temperature: degrees is "19" (string), expected 19`."""
    return draw(_call_text(call_name(diff), diff), color=False)


def call_note(diff: CallDiff) -> str:
    """The reason why a call without a partner differs: `out of order, expected 2nd`; "" for other calls."""
    if diff.op == "moved":
        return "out of order" if diff.place is None else f"out of order, expected {ordinal(diff.place + 1)}"
    return {"extra": "unexpected call", "missing": "missing"}.get(diff.op, "")


def allowed_by_rules(result: CaseResult | RepeatResult) -> list[str]:
    """The arguments whose differences rules allow: `degrees of set_temperature`."""
    names = {
        f"{visible(arg.path) or 'args'} of {call_name(diff)}": None
        for turn in result.turns
        if turn.checks_calls
        for diff in turn.calls
        for arg in diff.args
        if arg.rule
    }
    return list(names)


def call_name(diff: CallDiff) -> str:
    """The tool name of a row."""
    call = diff.actual or diff.expected
    return visible(call.name) if call else ""


def call_args(diff: CallDiff) -> str:
    """The arguments of a row with equal sides, or with one side: `location "Kitchen", degrees 19`."""
    call = diff.actual or diff.expected
    return args_in_words(call.args if call else None)


def args_in_words(args: Mapping[str, Any] | None) -> str:
    """Arguments as text: `location "Kitchen", degrees 19`."""
    return ", ".join(f"{visible(name)} {show_value(value)}" for name, value in (args or {}).items())


def _first_items(items: list[_Item]) -> tuple[list[_Item], int]:
    """The first three items and the number of others; all four of four, because a note would take the same
    space."""
    count = MAX_REASONS if len(items) > MAX_REASONS + 1 else len(items)
    return items[:count], len(items) - count


def _reasons(result: CaseResult | RepeatResult) -> Iterator[Reason]:
    if isinstance(result, CaseResult) and result.reason:
        yield _plain_reason(result.reason)
        return
    failed = [metric for metric in result.metrics if metric.status is Status.FAILED]
    about_calls = [metric for metric in failed if info_of(metric.name).call_differences]
    about_answers = [
        metric for metric in failed if info_of(metric.name).compares == "response" and not was_judged(metric)
    ]
    about_state = [metric for metric in failed if metric.name == _STATE_METRIC]
    about_findings = [metric for metric in failed if was_judged(metric)]
    calls = list(_call_reasons(about_calls, result.turns))
    answers = [reason for metric in about_answers for reason in _answer_reasons(metric, result.turns)]
    judged = {metric.name: list(_judged_reasons(metric, result.turns)) for metric in about_findings}
    explained = [
        *(about_calls if calls else ()),
        *(about_answers if answers else ()),
        *(about_state if result.state else ()),
        *(metric for metric in about_findings if judged[metric.name]),
    ]
    findings = [reason for reasons in judged.values() for reason in reasons]

    if result.error:
        turn = result.error.turn
        crash, error = crash_text(result.error), _error_kind(result.error)
        yield Reason([(crash, "")], crash, None if turn is None else turn + 1, error)
    of_turns = [*calls, *answers, *(reason for reason in findings if reason.turn)]
    yield from sorted(of_turns, key=lambda reason: reason.turn or 0)
    yield from (reason for reason in findings if not reason.turn)
    yield from map(_state_reason, result.state)
    yield from (_metric_reason(metric) for metric in failed if metric not in explained)
    yield from _error_reasons([metric for metric in result.metrics if metric.status is Status.ERROR])
    if not result.error:
        # An agent that raised is the reason why nothing could be evaluated.
        missing = [metric for metric in result.metrics if metric.status is Status.NOT_EVALUATED]
        # Without any verdict, those that may be left out are the reason, too.
        is_undecided = result.status is Status.NOT_EVALUATED and all(metric.is_optional for metric in missing)
        yield from (_metric_reason(metric) for metric in missing if is_undecided or not metric.is_optional)
        if all(metric.status is Status.INFORMATIONAL for metric in result.metrics):
            hints = (hint for metric in result.metrics if (hint := threshold_hint(metric)))
            yield _plain_reason(next(hints, "no metric evaluated"))


def _call_reasons(metrics: Sequence[MetricResult], turns: Sequence[TurnResult]) -> Iterator[Reason]:
    """Reasons in the calls of each turn; those after the first `MAX_REASONS` are only counted and have no
    text."""
    for index, turn in enumerate(turns):
        if not turn.checks_calls:
            continue
        names = Counter(map(call_name, turn.calls))
        minded = {
            op
            for metric in metrics
            if _may_fail_in(metric, index, turns)
            for op in info_of(metric.name).call_differences
        }
        calls = [
            diff for op in sorted(minded, key=_WORST_FIRST.index) for diff in turn.calls if diff.op == op
        ]
        for number, diff in enumerate(calls):
            text = _call_text(_name_among(names, diff), diff) if number <= MAX_REASONS else []
            yield Reason(text, draw(text, color=False), index + 1, _call_kind(diff))


def _answer_reasons(metric: MetricResult, turns: Sequence[TurnResult]) -> Iterator[Reason]:
    if len(metric.per_invocation) != len(turns):
        return
    for index, turn in enumerate(turns):
        if not _may_fail_in(metric, index, turns):
            continue
        needs = show_scores(metric.per_invocation[index].score, metric.threshold)
        text = f"response {needs}" if turn.response.actual else turn.without_response
        yield Reason([(text, "")], text, index + 1, _score_kind(metric) if turn.response.actual else "")


def _judged_reasons(metric: MetricResult, turns: Sequence[TurnResult]) -> Iterator[Reason]:
    """The negative findings of a judge in failed turns."""
    whole = info_of(metric.name).whole_conversation
    failed = [number for number, turn in enumerate(metric.per_invocation) if turn.status is Status.FAILED]
    for number in failed or range(len(metric.per_invocation)):
        at = None if whole else number + 1
        findings = findings_in(metric, number)
        if number in failed and not findings:
            name, why = visible(metric.name), _because(metric.per_invocation[number].reason)
            yield Reason([(f"{name} failed{why}", "")], f"{name}{why}", at, _score_kind(metric))
        for finding in findings:
            if finding.good is False:
                what, votes = _finding_text(finding, metric), _votes_text(finding)
                text = f"{what}{votes}{_because(finding.why)}"
                yield Reason([(text, "")], what, at, _finding_kind(finding, metric))


def _because(text: str) -> str:
    """A rationale as an appendix, `: the reason`, without its full stop; "" for none."""
    shown = visible(" ".join(text.split())).rstrip(".")
    return f": {cut(shown, MAX_MESSAGE)}" if shown else ""


def _votes_text(finding: Finding) -> str:
    return f" ({finding.votes_in_words})" if finding.votes_in_words else ""


def _finding_text(finding: Finding, metric: MetricResult) -> str:
    """A finding in words: `rubric polite: no`."""
    match finding.subject:
        case "rubric":
            return f"rubric {finding.name}: no"
        case "sentence":
            label = "" if finding.word in ("no", "unsupported") else f" ({finding.word})"
            return f"not supported{label}: {_quoted_subject(finding)}"
        case "answer":
            return "response does not match the expected one"
        case "user":
            return f"simulated user leaves its scenario: {_quoted_subject(finding)}"
        case _:
            figure = show_scores(finding.judgement.score, metric.threshold)
            return f"{visible(metric.name)} {figure}"


def _finding_kind(finding: Finding, metric: MetricResult) -> str:
    """A judge's finding without its quotation and its score."""
    match finding.subject:
        case "rubric" | "answer":
            return f"{visible(metric.name)}: {_finding_text(finding, metric)}"
        case "sentence":
            return f"{visible(metric.name)}: sentence not supported"
        case "user":
            return f"{visible(metric.name)}: simulated user leaves its scenario"
        case _:
            return _score_kind(metric)


def _score_kind(metric: MetricResult) -> str:
    return f"{visible(metric.name)} {'above' if metric.lower_is_better else 'below'} threshold"


def _error_kind(error: ErrorInfo) -> str:
    """An error without its message: `tools.py:41: NameError`."""
    return ": ".join(visible(text) for text in (error.where, error.type) if text)


def _call_kind(diff: CallDiff) -> str:
    """A call that differs without its values; of several arguments the first."""
    arg = next((arg for arg in diff.args if arg.op != "same"), None)
    if diff.op != "changed" or arg is None:
        return draw(_call_text(call_name(diff), diff), color=False)
    path = visible(_ITEM.sub("[*]", arg.path)) or "args"
    if arg.op != "changed":
        return f"{call_name(diff)}: {'missing' if arg.op == 'missing' else 'unexpected'} argument {path}"
    types = type_names(arg.expected, arg.actual)
    kind = f"({types[1]}, expected {types[0]})" if types else "differs"
    return f"{call_name(diff)}: argument {path} {kind}"


def _quoted_subject(finding: Finding) -> str:
    return f'"{cut(visible(" ".join(finding.judgement.subject.split())), _MAX_SUBJECT)}"'


def _may_fail_in(metric: MetricResult, index: int, turns: Sequence[TurnResult]) -> bool:
    """Whether a turn may be the reason why a metric failed; metrics without turn scores do not tell."""
    scored = metric.per_invocation
    return len(scored) != len(turns) or scored[index].status is Status.FAILED


def _plain_reason(text: str) -> Reason:
    return Reason([(text, "")], text, None)


def _name_among(names: Mapping[str, int], diff: CallDiff) -> str:
    """The tool name, with arguments where several calls of the turn have this name."""
    name = call_name(diff)
    args = call_args(diff) if names[name] > 1 and diff.op != "changed" else ""
    return f"{name} ({args})" if args else name


def _call_text(name: str, diff: CallDiff) -> Line:
    match diff.op:
        case "same":
            return [(f"{name} as expected", "")]
        case "moved":
            return [(f"{name} out of order", "")]
        case "missing":
            return [(f"missing call {name}", "")]
        case "extra":
            return [(f"unexpected call {name}", "")]
        case "changed":
            shown, more = _first_items([arg for arg in diff.args if arg.op != "same"])
            texts = [*map(_arg_text, shown), *([(text, "")] for text in _more_text(more))]
            return [(f"{name}: ", ""), *_join_lines(texts)]


def _join_lines(texts: Sequence[Line]) -> Iterator[Span]:
    for number, text in enumerate(texts):
        yield from [("; ", ""), *text] if number else text


def _arg_text(arg: ArgDiff) -> Line:
    path: Span = (visible(arg.path) or "args", "key")
    match arg.op:
        case "missing":
            return [("missing ", ""), path]
        case "extra":
            return [("unexpected ", ""), path, (" ", ""), (show_value(arg.actual), JSON)]
        case _:
            return [path, *_difference_line(arg.expected, arg.actual)]


def _difference_line(expected: Any, actual: Any) -> Line:
    """The difference of two values: ` is "19" (string), expected 19`."""
    before, after = show_change(expected, actual)
    kind = type_change(expected, actual)
    return [
        (" is ", ""),
        (after, JSON),
        (f" ({kind}), expected " if kind else ", expected ", ""),
        (before, JSON),
    ]


def _state_reason(diff: StateDiff) -> Reason:
    text: Line = [
        ("final state ", ""),
        (visible(diff.path), "key"),
        *_difference_line(diff.expected, diff.actual),
    ]
    return Reason(text, draw(text, color=False), general=f"final state {visible(diff.path)} differs")


def _error_reasons(metrics: Sequence[MetricResult]) -> Iterator[Reason]:
    """Reasons of metrics with an error; metrics that fail for the same cause share a reason."""
    unjudged: dict[tuple[str, str], list[str]] = {}
    for metric in metrics:
        if metric.judge is None:
            yield _metric_reason(metric)
        else:
            cause = visible(metric.judge.model), _judge_error(metric)
            unjudged.setdefault(cause, []).append(visible(metric.name))
    for (judge, why), (name, *others) in unjudged.items():
        more = f" and {counted(len(others), 'more metric')}" if others else ""
        text = f"{name}{more} not judged by {judge}: {why}"
        yield Reason([(text, "")], f"{name}{more}: {why}", general=f"{name} not judged")


def _judge_error(metric: MetricResult) -> str:
    """The error of a judged metric in words: that of its first turn without a verdict, else its own."""
    if any(turn.status is Status.ERROR and turn.reason for turn in metric.per_invocation):
        return metric_reason(replace(metric, reason=""))
    return error_text(metric.error) if metric.error else metric_reason(metric)


def _metric_reason(metric: MetricResult) -> Reason:
    name = visible(metric.name)
    if metric.status is Status.ERROR and metric.error:
        why = f"{name}: {error_text(metric.error)}"
        return Reason([(why, "")], why, general=f"{name}: {_error_kind(metric.error)}")
    if metric.status is Status.FAILED:
        text = short = f"{name} {show_scores(metric.score, metric.threshold, metric.lower_is_better)}"
        general = _score_kind(metric)
    else:
        text, short = f"{name} not evaluated", name
        general = text
    why = metric_reason(metric)
    return Reason(
        [(f"{text}: {why}" if why else text, "")], f"{short}: {why}" if why else text, general=general
    )


def metric_reason(metric: MetricResult) -> str:
    """The reason of a metric's verdict in one line: that of the case, else that of its first turn with this
    status."""
    per_turn = (turn.reason for turn in metric.per_invocation if turn.status is metric.status and turn.reason)
    return cut(visible((metric.reason or next(per_turn, "")).strip()), MAX_MESSAGE)


def error_text(error: ErrorInfo) -> str:
    """An error in one line: `agent.py:12: NameError: name 'tols' is not defined`."""
    message = next((line.strip() for line in error.message.splitlines() if line.strip()), "")
    shown = cut(visible(message), MAX_MESSAGE)
    return str(replace(error, type=visible(error.type), message=shown, where=visible(error.where)))


def crash_text(error: ErrorInfo) -> str:
    """The error that ended a case: `no response within 30 s (tools.py:41 in wait). Raise --timeout or fix the
    tool`."""
    message = error.message.partition("\n")[0]
    if error.type != "TimeoutError" or not message.startswith("no response within"):
        return error_text(error)
    place = f" ({visible(error.where)})" if error.where else ""
    return f"{visible(message)}{place}. Raise --timeout or fix the tool"
