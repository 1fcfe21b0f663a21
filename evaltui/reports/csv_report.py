"""The CSV report, for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache

from evaltui.core.compare.explain import crash_text
from evaltui.core.compare.judged import Finding, findings_in
from evaltui.core.compare.matrix import Cell, Row
from evaltui.core.compare.run_summary import CaseSummary, summarize
from evaltui.core.model.eval_set import Invocation, user_text
from evaltui.core.model.outcome import (
    Call,
    CaseResult,
    InvocationScore,
    MetricResult,
    RepeatResult,
    TurnResult,
    calls_of,
)
from evaltui.core.model.spending import Spending
from evaltui.reports.console import variant_text
from evaltui.reports.matrix_report import MatrixReport
from evaltui.runs.report import RunReport
from evaltui.text.values import guarded_cell, visible_block
from evaltui.views.judged import answers_text

# Those up to actual_tool_calls are the columns of the CSV file that google-adk's AgentEvaluator writes.
COLUMNS = (
    "eval_set_id",
    "eval_id",
    "metric_name",
    "threshold",
    "score",
    "eval_status",
    "prompt",
    "expected_response",
    "actual_response",
    "expected_tool_calls",
    "actual_tool_calls",
    "repeat",
    "turn",
    "reason",
    "metric_score",
    "metric_status",
    "case_status",
    "judge",
    "judged",
    "path",
    "error_kind",
    "tags",
    "case_pass_rate",
    "case_pass_rate_low",
    "case_pass_rate_high",
    "cost_usd",
    "unpriced_calls",
    "input_tokens",
    "cached_tokens",
    "thought_tokens",
    "output_tokens",
    "decision",
    "simulated_user",
)

_Row = dict[str, str | float | None]


def csv_report(report: RunReport) -> Iterator[str]:
    """The text of the report in pieces, one case at a time: a row for each turn and metric of every repeat.

    Repeats and turns count from 1. A metric without turn scores has one row without a turn; a repeat without
    metrics has one row without a metric; a case that did not run has one row without a repeat. `score` and
    `eval_status` are those of the turn; the last columns have those of the metric. `judged` has a line for
    each judgement of the turn. The cost of a repeat is in its first row only, so that the column can be
    summed. `decision` is that of `--confidence`, empty for a fixed number of runs; `simulated_user` has the
    model that played the user. Text that a spreadsheet
    would run as a formula gets a leading apostrophe; control characters are escaped.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for eval_set, cases in report.by_set():
        for case in cases:
            tags = " ".join(eval_set.tags.get(case.eval_id, ()))
            for row in _case_rows(case, report.expected(case.id)):
                row["tags"] = tags
                writer.writerow([cell_text(row.get(column)) for column in COLUMNS])
            yield _take_text(file)
    yield _take_text(file)


def _take_text(file: io.StringIO) -> str:
    """The text written since the last call."""
    text = file.getvalue()
    file.seek(0)
    file.truncate()
    return text


def cell_text(value: str | float | None) -> str | float | None:
    """The value of a cell; text that a spreadsheet would run as a formula gets a leading apostrophe."""
    return _safe_text(value) if value and isinstance(value, str) else value


# The rows of a case have most texts in common.
@lru_cache(100)
def _safe_text(value: str) -> str:
    return guarded_cell(visible_block(value))


def _round_score(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _case_rows(case: CaseResult, expected: Sequence[Invocation]) -> Iterator[_Row]:
    of_case: _Row = {
        "eval_set_id": case.eval_set_id,
        "eval_id": case.eval_id,
        "case_status": case.status.value,
        "path": case.path,
    }
    if case.reason:
        yield of_case | {"eval_status": case.status.value, "reason": case.reason}
    rate = case.rate
    low, high = rate.interval if rate else (None, None)
    for number, repeat in enumerate(case.repeats, start=1):
        head = of_case | {
            "repeat": number,
            "case_pass_rate": _round_score(rate.rate if rate else None),
            "case_pass_rate_low": _round_score(low),
            "case_pass_rate_high": _round_score(high),
            "decision": case.decision.answer if case.decision else None,
            "simulated_user": ", ".join(repeat.spent.models_of("simulated user")) if repeat.spent else None,
        }
        cost = _cost_cells(repeat.spent)
        for row in _repeat_rows(repeat, expected):
            yield head | row | cost
            cost = {}


def _cost_cells(spent: Spending | None) -> _Row:
    """The cost of the model calls of a repeat; empty where it is unknown."""
    if spent is None:
        return {}
    tokens = spent.tokens
    return {
        "cost_usd": None if spent.usd is None else round(spent.usd, 12),
        "unpriced_calls": spent.cost.unpriced,
        "input_tokens": tokens.input,
        "cached_tokens": tokens.cached,
        "thought_tokens": tokens.thoughts,
        "output_tokens": tokens.output,
    }


def _repeat_rows(repeat: RepeatResult, expected: Sequence[Invocation]) -> Iterator[_Row]:
    if not repeat.metrics:
        reason, kind = (crash_text(repeat.error), repeat.error.kind) if repeat.error else ("", None)
        yield {"eval_status": repeat.status.value, "reason": reason, "error_kind": kind}
    for metric in repeat.metrics:
        head: _Row = {
            "metric_name": metric.name,
            "threshold": metric.threshold,
            "metric_score": metric.score,
            "metric_status": metric.status.value,
            "error_kind": metric.error.kind if metric.error else None,
        }
        if metric.judge is not None:
            head["judge"] = f"{metric.judge.model}, {answers_text(metric.judge)}"
        if not metric.per_invocation or len(metric.per_invocation) != len(repeat.turns):
            yield head | _metric_cells(metric)
            continue
        for index, scored in enumerate(metric.per_invocation):
            expected_turn = expected[index] if index < len(expected) else None
            actual = repeat.actual[index] if index < len(repeat.actual) else None
            row = head | _turn_cells(index + 1, scored, repeat.turns[index], expected_turn, actual)
            if scored.judgements:
                row["judged"] = "\n".join(map(_finding_text, findings_in(metric, index)))
            yield row


def _metric_cells(metric: MetricResult) -> _Row:
    reason = str(metric.error) if metric.error else metric.reason
    return {"score": metric.score, "eval_status": metric.status.value, "reason": reason}


def _turn_cells(
    number: int,
    scored: InvocationScore,
    turn: TurnResult,
    expected: Invocation | None,
    actual: Invocation | None,
) -> _Row:
    either = expected or actual
    return {
        "turn": number,
        "score": scored.score,
        "eval_status": scored.status.value,
        "reason": scored.reason,
        "prompt": user_text(either.user_content) if either else "",
        "expected_response": turn.response.expected,
        "actual_response": turn.response.actual,
        "expected_tool_calls": _calls_text(expected),
        "actual_tool_calls": _calls_text(actual),
    }


def _finding_text(finding: Finding) -> str:
    """A finding as text: `polite: no 1/5 (It shouts.)`."""
    parts = [f"{finding.name}:", finding.word, finding.tally, f"({finding.why})" if finding.why else ""]
    return " ".join(part for part in parts if part)


def _calls_text(invocation: Invocation | None) -> str:
    """The calls of a turn, one per line: `set_device({"id": "lamp", "on": false})`."""
    return "\n".join(map(_call, calls_of(invocation.intermediate_data))) if invocation else ""


def _call(call: Call) -> str:
    args = "" if call.args is None else json.dumps(call.args, ensure_ascii=False, default=repr)
    return f"{call.name}({args})"


MATRIX_COLUMNS = (
    "matrix",
    "variant",
    "changes",
    "eval_set_id",
    "eval_id",
    "status",
    "runs",
    "passed_runs",
    "score",
    "seconds",
    "tokens",
    "usd",
    "direction",
    "path",
    "unpriced_calls",
)


def matrix_csv(report: MatrixReport) -> str:
    """The text of a matrix report; text that a spreadsheet would run as a formula gets a leading
    apostrophe."""
    file = io.StringIO()
    writer = csv.DictWriter(file, MATRIX_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in report.matrix.rows:
        for values in _rows(report, row):
            writer.writerow({column: cell_text(value) for column, value in values.items()})
    return file.getvalue()


def _rows(report: MatrixReport, row: Row) -> Iterator[_Row]:
    matrix = report.matrix
    of_case: _Row = {
        "matrix": report.id,
        "eval_set_id": row.eval_set_id,
        "eval_id": row.case.eval_id,
        "path": row.case.path,
    }
    for place, cell in enumerate(row.cells):
        run = matrix.columns[place]
        of_variant: _Row = {"variant": matrix.name(place), "changes": variant_text(run.variant)}
        yield of_case | of_variant | _case_cells(run.cases.get(row.case), cell)
    for name in matrix.not_run:
        not_run = summarize(CaseResult.not_run(row.case, row.eval_set_id))
        yield of_case | {"variant": name} | _case_cells(not_run, Cell(None))


def _case_cells(case: CaseSummary | None, cell: Cell) -> _Row:
    """The figures of a case in a variant; empty for a case that was not selected."""
    if case is None:
        return {}
    cost = case.costs.get("agent")
    return {
        "status": case.status.value,
        "runs": case.runs,
        "passed_runs": case.passed,
        "score": cell.score,
        "seconds": case.seconds,
        "tokens": case.tokens,
        "usd": cost.usd if cost else None,
        "unpriced_calls": cost.unpriced if cost else None,
        "direction": cell.direction,
    }
