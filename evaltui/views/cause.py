"""The differences of a result in order, and a short cause of its outcome.

No models are imported, so that a screen can move between differences before it shows a result. Statuses are
compared as texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evaltui.core.compare.turn_verdicts import metric_info, response_op
from evaltui.core.model.errors import ErrorKind
from evaltui.text.figures import counted, show_number, show_score
from evaltui.views.difference import DifferenceAt

if TYPE_CHECKING:
    from evaltui.core.compare.judged import Finding
    from evaltui.core.model.eval_set import EvalCase
    from evaltui.core.model.outcome import CaseResult

# What the reason of a metric says where its judge cannot be asked.
_JUDGE_PROBLEM = re.compile(r"judge|API_KEY")
_OPS = {"missing": "missing", "extra": "unexpected"}


def cause_text(result: CaseResult) -> str:
    """The cause of an outcome in a few words: `out of order`, `1 call missing`, `response 0.12`, `3/5 flaky`;
    "" for a passed case."""
    if result.status == "PASSED":
        return ""
    if result.status == "FLAKY":
        return f"{result.passed_repeats}/{len(result.repeats)} flaky"
    if result.error is not None:
        if result.error.is_no_key:
            return "no API key"
        if result.error.kind is ErrorKind.HOST_LOST:
            return "process ended"
        if result.error.kind is ErrorKind.RATE_LIMIT:
            return "rate limit"
        limit = re.search(r"within (\S+ s)\b", result.error.message)
        if "Timeout" not in result.error.type:
            return result.error.type
        return f"timeout {limit[1]}" if limit else "timeout"
    if result.status == "NOT_EVALUATED":
        reasons = [metric.reason for metric in result.metrics if metric.status == result.status]
        return "no judge" if any(_JUDGE_PROBLEM.search(reason) for reason in reasons) else "not evaluated"
    failed = [metric for metric in result.metrics if metric.status == result.status]
    ops = [call.op for turn in result.turns if turn.checks_calls for call in turn.calls if call.op != "same"]
    if ops and any(metric_info(metric.name).call_differences for metric in failed):
        return _calls_summary(ops, sum(at.kind in ("argument", "call") for at in differences_of(result)))
    metric = next(iter(failed), None)
    if metric is None or metric.score is None:
        return ""
    if metric.name == "final_session_state":
        return "final state"
    name = "response" if "response" in metric.name else metric.name.split("_")[0]
    return f"{name} {show_score(metric.score)}"


def _calls_summary(ops: Sequence[str], differences: int) -> str:
    kinds = set(ops)
    if kinds == {"moved"}:
        return "out of order"
    if len(kinds) == 1 and ops[0] in _OPS:
        return f"1 call {_OPS[ops[0]]}" if ops == ["missing"] else f"{show_number(len(ops))} {_OPS[ops[0]]}"
    return counted(differences, "difference")


def differences_of(result: CaseResult) -> Iterator[DifferenceAt]:
    """The differences of a result: those in each turn, then failed judgements by metric, then the final
    state."""
    from evaltui.core.compare.judged import findings
    from evaltui.views.rows import compared_rows, state_rows

    for number in range(len(result.turns)):
        yield from (row.at for row in compared_rows(result, number) if row.at)
    for metric in result.metrics:
        if metric.status != "INFORMATIONAL":
            yield from (place_of(finding) for finding in findings(metric) if finding.needs_attention)
    yield from (row.at for row in state_rows(result.state) if row.at)


def place_of(finding: Finding) -> DifferenceAt:
    return DifferenceAt("judgement", finding.turn, finding=(finding.metric, finding.number))


def actual_call_index(result: CaseResult, at: DifferenceAt) -> int | None:
    """The index, among the actual calls of its turn, of the call with a difference; None without a call."""
    if at.turn is None or at.row is None:
        return None
    rows = result.turns[at.turn].calls
    return sum(row.actual is not None for row in rows[: at.row]) if rows[at.row].actual else None


def expected_call_index(result: CaseResult, case: EvalCase, at: DifferenceAt) -> int | None:
    """The index, among the expected calls of its turn, of the call with a difference; None without a call."""
    from evaltui.core.model.outcome import calls_of

    if at.turn is None or at.row is None or at.turn >= len(case.conversation or ()):
        return None
    rows = result.turns[at.turn].calls
    expected = rows[at.row].expected
    if expected is None:
        return None
    # Rows are in the order in which calls were made, and the same call may be expected twice.
    before = sum(row.expected == expected for row in rows[: at.row])
    calls = calls_of((case.conversation or [])[at.turn].intermediate_data)
    equal = [number for number, call in enumerate(calls) if call == expected]
    return equal[before] if before < len(equal) else None


def judged_row(result: CaseResult, case: EvalCase, at: DifferenceAt) -> tuple[str | int, ...]:
    """The row of the case that a judgement is about: a rubric, an expected answer, else the turn."""
    turn = at.turn or 0
    if at.finding is None:
        return ("turn", turn)
    name, number = at.finding
    if metric_info(name).judged_item == "answer":
        return ("turn", turn, "answer", 0)
    metric = next(metric for metric in result.metrics if metric.name == name)
    rubric_id = metric.per_invocation[turn].judgements[number].id
    of_turn = (case.conversation or [])[turn : turn + 1]
    holders = [
        (("rubric",), case.rubrics),
        *((("turn", turn, "rubric"), invocation.rubrics) for invocation in of_turn),
    ]
    for row, rubrics in holders:
        for place, rubric in enumerate(rubrics or ()):
            if rubric.rubric_id == rubric_id:
                return (*row, place)
    return ("turn", turn)


def judging_metric(result: CaseResult, at: DifferenceAt) -> str | None:
    """The metric that a difference lowers, a failed one if possible; None for an argument and for the final
    state."""
    if at.finding is not None:
        return at.finding[0]
    names = [metric.name for metric in sorted(result.metrics, key=lambda metric: metric.status != "FAILED")]
    compared = {"call": "calls", "text": "texts", "answer": "response"}.get(at.kind)
    return next((name for name in names if metric_info(name).compares == compared), None)


def failing_differences(result: CaseResult) -> list[DifferenceAt]:
    """The differences that are not within a threshold; all differences where there is no other."""
    every = list(differences_of(result))
    failing = [at for at in every if at.kind != "answer" or response_op(result, at.turn or 0) == "changed"]
    return failing or every
