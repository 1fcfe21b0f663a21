"""Why a case came out as it did, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

from evaltui.core.compare.judged import Finding, findings_in, over_conversation, was_judged
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
from evaltui.text.values import cut, scores, show_change, show_value, type_change, visible

MAX_REASONS = 3
MAX_MESSAGE = 200
_MAX_SUBJECT = 80

# Order and further calls matter to some match types only.
_WORST_FIRST: tuple[CallOp, ...] = ("changed", "missing", "extra", "moved")
# Call metrics by what each of them minds: the differences themselves say more than a score.
_MINDS: dict[str, tuple[CallOp, ...]] = {
    "tool_trajectory_avg_score": _WORST_FIRST,
    "trajectory_recall": ("changed", "missing"),
    "trajectory_precision": ("changed", "extra"),
}
_ANSWER_METRIC = "response_match_score"
_STATE_METRIC = "final_session_state"

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class _Reason:
    """The same thing said in a sentence and in a few words.

    `turn` counts from 1, None for the whole case. So does `within`, which is None, too, where the text names
    the turn itself.
    """

    text: str
    short: str
    turn: int | None = None
    within: int | None = None


def sentence(result: CaseResult | RepeatResult) -> str:
    """Why, in one sentence without a full stop: the first three reasons, and how many more there are.

    Of a case that passed, what rules let pass; "" where there is nothing to say, as for one that passed its
    only metric.
    """
    if result.status is Status.PASSED:
        passed = [metric for metric in result.metrics if metric.status is Status.PASSED]
        by_rule = _by_rule(result)
        return "; ".join(
            [
                *([f"all {len(passed)} metrics passed"] if len(passed) > 1 else []),
                *([f"rules let pass {_enumeration(by_rule)}"] if by_rule else []),
            ]
        )
    shown, more = _first(list(_reasons(result)))
    parts: list[str] = []
    for turn, group in groupby(shown, key=lambda reason: reason.within):
        texts = [reason.text for reason in group]
        place = f"in turn {turn} " if turn and len(result.turns) > 1 else ""
        parts += [place + _enumeration(texts)] if turn else texts
    reasons = "; ".join(parts) + (f", and {more} more" if more else "")
    if not isinstance(result, CaseResult) or len(result.repeats) < 2:
        return reasons
    return f"{result.passed_repeats} of {len(result.repeats)} runs passed, policy {result.policy}: {reasons}"


def summary(result: CaseResult | RepeatResult) -> str:
    """The same in as few words as a line of a list has room for; "" for a case that passed without rules.

    How many runs passed is left to the line, which has a column for it.
    """
    if result.status is Status.PASSED:
        by_rule = _by_rule(result)
        return f"by rule: {'; '.join(by_rule)}" if by_rule else ""
    shown, more = _first(list(_reasons(result)))
    parts = [
        (f"turn {turn}: " if turn and len(result.turns) > 1 else "")
        + "; ".join(reason.short for reason in group)
        for turn, group in groupby(shown, key=lambda reason: reason.turn)
    ]
    reasons = "; ".join(parts) + (f"; {more} more" if more else "")
    if isinstance(result, CaseResult) and result.status is Status.FLAKY:
        return f"{'meets' if result.policy_met else 'fails'} policy {result.policy}: {reasons}"
    return reasons


def describe_call(diff: CallDiff) -> str:
    """One row of an aligned trajectory: `set_temperature degrees "19" (string) instead of 19`."""
    return _call_in_short(call_name(diff), diff)


def _by_rule(result: CaseResult | RepeatResult) -> list[str]:
    """The arguments whose differences rules let pass: the first ones, and how many more."""
    names = {
        f"{visible(arg.path) or 'args'} of {call_name(diff)}": None
        for turn in result.turns
        if turn.checks_calls
        for diff in turn.calls
        for arg in diff.args
        if arg.rule
    }
    shown, more = _first(list(names))
    return [*shown, *([f"{more} more"] if more else [])]


def _call_in_short(name: str, diff: CallDiff) -> str:
    if diff.op == "changed":
        shown, more = _cut_args(diff)
        return f"{name} " + ", ".join([*map(_short_arg, shown), *([f"{more} more"] if more else [])])
    return {
        "same": f"{name} as expected",
        "moved": f"{name} at another place",
        "missing": f"{name} is missing",
        "extra": f"{name} is extra",
    }[diff.op]


def call_name(diff: CallDiff) -> str:
    """The name that both sides of a row share."""
    call = diff.actual or diff.expected
    return visible(call.name) if call else ""


def call_args(diff: CallDiff) -> str:
    """The arguments of a row whose sides do not differ, or has only one: `location "Kitchen", degrees 19`."""
    call = diff.actual or diff.expected
    args = (call.args if call else None) or {}
    return ", ".join(f"{visible(name)} {show_value(value)}" for name, value in args.items())


def _cut_args(diff: CallDiff) -> tuple[list[ArgDiff], int]:
    return _first([arg for arg in diff.args if arg.op != "same"])


def _first(items: list[_Item]) -> tuple[list[_Item], int]:
    """The first three and how many are left out; "and 1 more" would take the room of the fourth itself."""
    count = MAX_REASONS if len(items) > MAX_REASONS + 1 else len(items)
    return items[:count], len(items) - count


def _reasons(result: CaseResult | RepeatResult) -> Iterator[_Reason]:
    failed = [metric for metric in result.metrics if metric.status is Status.FAILED]
    about_calls = [metric for metric in failed if metric.name in _MINDS]
    about_answers = [metric for metric in failed if metric.name == _ANSWER_METRIC]
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
    found = [reason for reasons in judged.values() for reason in reasons]

    if result.error:
        yield _same(error_text(result.error))
    of_turns = [*calls, *answers, *(reason for reason in found if reason.turn)]
    yield from sorted(of_turns, key=lambda reason: reason.turn or 0)
    yield from (reason for reason in found if not reason.turn)
    yield from (_same(_state_text(diff)) for diff in result.state)
    yield from (_metric_reason(metric) for metric in failed if metric not in explained)
    yield from _error_reasons([metric for metric in result.metrics if metric.status is Status.ERROR])
    if not result.error:
        # An agent that raised is the reason why nothing could be evaluated.
        missing = [metric for metric in result.metrics if metric.status is Status.NOT_EVALUATED]
        yield from (_metric_reason(metric) for metric in missing if not metric.is_optional)
        if all(metric.status is Status.INFORMATIONAL for metric in result.metrics):
            yield _same("no metric was evaluated")


def _call_reasons(metrics: Sequence[MetricResult], turns: Sequence[TurnResult]) -> Iterator[_Reason]:
    for index, turn in enumerate(turns):
        if not turn.checks_calls:
            continue
        minded = {op for metric in metrics if _failed_in(metric, index, turns) for op in _MINDS[metric.name]}
        for op in sorted(minded, key=_WORST_FIRST.index):
            for diff in turn.calls:
                if diff.op == op:
                    name = _name_in(turn, diff)
                    texts = _call_text(name, diff), _call_in_short(name, diff)
                    yield _Reason(*texts, turn=index + 1, within=index + 1)


def _answer_reasons(metric: MetricResult, turns: Sequence[TurnResult]) -> Iterator[_Reason]:
    if len(metric.per_invocation) != len(turns):
        return
    for index, turn in enumerate(turns):
        if not _failed_in(metric, index, turns):
            continue
        answer = f"the answer of turn {index + 1}" if len(turns) > 1 else "the answer"
        if turn.response.actual:
            needs = scores(metric.per_invocation[index].score, metric.threshold)
            yield _Reason(f"{answer} scores {needs}", f"answer {needs}", index + 1)
        else:
            yield _Reason(f"{answer} has no text", "answer has no text", index + 1)


def _judged_reasons(metric: MetricResult, turns: Sequence[TurnResult]) -> Iterator[_Reason]:
    """What the judge found to be wrong in the turns that failed."""
    whole = over_conversation(metric.name)
    failed = [number for number, turn in enumerate(metric.per_invocation) if turn.status is Status.FAILED]
    for number in failed or range(len(metric.per_invocation)):
        place = f"turn {number + 1}" if len(turns) > 1 and not whole else ""
        at = None if whole else number + 1
        found = findings_in(metric, number)
        if number in failed and not found:
            name, why = visible(metric.name), _why(metric.per_invocation[number].reason)
            yield _Reason(f"{name} failed{f' in {place}' if place else ''}{why}", f"{name}{why}", at)
        for finding in found:
            if finding.good is False:
                what, short = _finding_text(finding, metric, place)
                yield _Reason(what + _why(finding.why), short, at)


def _why(text: str) -> str:
    """`: the reason`, without the full stop of a sentence; "" where none is given."""
    shown = visible(" ".join(text.split())).rstrip(".")
    return f": {cut(shown, MAX_MESSAGE)}" if shown else ""


def _finding_text(finding: Finding, metric: MetricResult, turn: str) -> tuple[str, str]:
    """`rubric polite: no in turn 2 (4 of 5 votes)`, and the same in short; `turn` is "" where it is clear."""
    within, of_turn = (f" in {turn}", f" of {turn}") if turn else ("", "")
    votes = f" ({finding.votes_in_words})" if finding.votes_in_words else ""
    match finding.subject:
        case "rubric":
            return f"rubric {finding.name}: no{within}{votes}", f"rubric {finding.name}: no"
        case "sentence":
            subject = cut(visible(" ".join(finding.judgement.subject.split())), _MAX_SUBJECT)
            label = "" if finding.word in ("no", "unsupported") else f" ({finding.word})"
            return f'sentence not supported{within}: "{subject}"{label}', f'not supported{label}: "{subject}"'
        case "answer":
            agree = "not to agree with the expected one"
            return f"the judge found the answer{of_turn} {agree}{votes}", "answer does not agree"
        case "user":
            subject = cut(visible(" ".join(finding.judgement.subject.split())), _MAX_SUBJECT)
            user = f"the simulated user does not keep to its scenario{within}{votes}"
            return f'{user}: "{subject}"', "the simulated user leaves its scenario"
        case _:
            figure = scores(finding.judgement.score, metric.threshold)
            return f"{visible(metric.name)} is {figure}{within}", f"{visible(metric.name)} {figure}"


def _failed_in(metric: MetricResult, index: int, turns: Sequence[TurnResult]) -> bool:
    """Whether a failed metric may have failed because of this turn; it does not always say which."""
    scored = metric.per_invocation
    return len(scored) != len(turns) or scored[index].status is Status.FAILED


def _same(text: str) -> _Reason:
    return _Reason(text, text)


def _name_in(turn: TurnResult, diff: CallDiff) -> str:
    """The name, with the arguments where other calls of the turn have it, too."""
    name = call_name(diff)
    ambiguous = sum(call_name(other) == name for other in turn.calls) > 1
    args = call_args(diff) if ambiguous and diff.op != "changed" else ""
    return f"{name} ({args})" if args else name


def _call_text(name: str, diff: CallDiff) -> str:
    if diff.op == "changed":
        shown, more = _cut_args(diff)
        others = [f"{more} more differences"] if more else []
        return f"{name} was called " + _enumeration([*map(_arg_text, shown), *others])
    return {
        "same": f"{name} was called as expected",
        "moved": f"{name} was called at another place than expected",
        "missing": f"{name} was not called",
        "extra": f"{name} was called although nothing expects it",
    }[diff.op]


def _arg_text(arg: ArgDiff) -> str:
    path = visible(arg.path) or "args"
    if arg.op == "missing":
        return f"without {path}"
    if arg.op == "extra":
        return f"with the extra {path} {show_value(arg.actual)}"
    return f"with {path} {_instead(arg.expected, arg.actual)}"


def _short_arg(arg: ArgDiff) -> str:
    path = visible(arg.path) or "args"
    if arg.op == "missing":
        return f"{path} is missing"
    if arg.op == "extra":
        return f"{path} {show_value(arg.actual)} is extra"
    return f"{path} {_instead(arg.expected, arg.actual)}"


def _instead(expected: Any, actual: Any) -> str:
    before, after = show_change(expected, actual)
    kind = type_change(expected, actual)
    return f"{after} ({kind}) instead of {before}" if kind else f"{after} instead of {before}"


def _state_text(diff: StateDiff) -> str:
    before, after = show_change(diff.expected, diff.actual)
    return f"{visible(diff.path)} of the final state is {after} instead of {before}"


def _error_reasons(metrics: Sequence[MetricResult]) -> Iterator[_Reason]:
    """What keeps several metrics from being judged is told once: it is one judge that does not answer."""
    unjudged: dict[tuple[str, str], list[str]] = {}
    for metric in metrics:
        if metric.judge is None:
            yield _metric_reason(metric)
        else:
            cause = visible(metric.judge.model), _judge_error(metric)
            unjudged.setdefault(cause, []).append(visible(metric.name))
    for (judge, why), (name, *others) in unjudged.items():
        more = f" and {len(others)} more {'metrics' if len(others) > 1 else 'metric'}" if others else ""
        yield _Reason(f"{name}{more} could not be judged by {judge}: {why}", f"{name}{more}: {why}")


def _judge_error(metric: MetricResult) -> str:
    """What the first turn without a verdict says of it."""
    if any(turn.status is Status.ERROR and turn.reason for turn in metric.per_invocation):
        return metric_reason(replace(metric, reason=""))
    return error_text(metric.error) if metric.error else metric_reason(metric)


def _metric_reason(metric: MetricResult) -> _Reason:
    name = visible(metric.name)
    if metric.status is Status.ERROR and metric.error:
        why = error_text(metric.error)
        return _Reason(f"{name} raised {why}", f"{name}: {why}")
    if metric.status is Status.FAILED:
        text = short = f"{name} is {scores(metric.score, metric.threshold, metric.lower_is_better)}"
    else:
        text, short = f"{name} could not be evaluated", name
    why = metric_reason(metric)
    return _Reason(f"{text}: {why}", f"{short}: {why}") if why else _same(text)


def metric_reason(metric: MetricResult) -> str:
    """What a metric says of its verdict, on one line: of the case, else of the first turn that shares it."""
    per_turn = (turn.reason for turn in metric.per_invocation if turn.status is metric.status and turn.reason)
    return cut(visible((metric.reason or next(per_turn, "")).strip()), MAX_MESSAGE)


def error_text(error: ErrorInfo) -> str:
    """Type, first line of the message and place: `TimeoutError: no answer in 30 s (tools.py:41 in wait)`."""
    message = next((line.strip() for line in error.message.splitlines() if line.strip()), "")
    return str(ErrorInfo(visible(error.type), cut(visible(message), MAX_MESSAGE), where=visible(error.where)))


def _enumeration(parts: Sequence[str]) -> str:
    """`a`, `a, and b`, `a, b, and c`; with semicolons where the parts have commas of their own."""
    if any(", " in part for part in parts):
        return "; ".join(parts)
    return ", and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
