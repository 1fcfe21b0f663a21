"""The report for other programs, as JSON. Its keys are a promise: they may grow in number, never change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter

from evaltui.core.compare.rates import Rate, Rates, case_rate
from evaltui.core.compare.repeats import TrajectoryGroup, pass_rates, trajectory_groups
from evaltui.core.compare.run_comparison import KINDS, CaseChange, Comparison, Total, what_changed
from evaltui.core.compare.run_summary import CaseSummary, RunSummary
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.eval_set import dump
from evaltui.core.model.judgement import Judgement
from evaltui.core.model.outcome import (
    Call,
    CallDiff,
    CaseResult,
    ErrorInfo,
    InvocationScore,
    MetricResult,
    RepeatResult,
    Status,
    TurnResult,
)
from evaltui.core.model.spending import Cost, Spending
from evaltui.core.statistics.estimates import Estimate
from evaltui.reports.model import RunReport, count
from evaltui.reports.tag_totals import tag_totals
from evaltui.runs.sets import SetInfo
from evaltui.text.json_pieces import json_pieces
from evaltui.text.values import valid_json

VERSION = 1

Json = dict[str, Any]

_SPENDING = TypeAdapter(Spending)
_COST = TypeAdapter(Cost)


def json_report(report: RunReport) -> Iterator[str]:
    """The text of the report, one case at a time, which any JSON reader takes: no NaN or infinity (null
    instead), no lone surrogate."""
    head: Json = valid_json(
        {
            "version": VERSION,
            "status": report.result.status.value,
            "agent": report.agent,
            "started": _utc(report.started),
            "seconds": None if report.seconds is None else round(report.seconds, 3),
            "totals": _totals(report.summaries),
            "rates": _rates(report.rates),
            "tags": {one.tag: {**_totals(one.cases), "rate": _rate(one.rate)} for one in tag_totals(report)},
            "record": report.record,
            "model_calls": {"live": report.calls.live, "replayed": report.calls.replayed},
            "judge_calls": {"live": report.calls.judge_live, "replayed": report.calls.judge_replayed},
            "stubbed_tool_calls": report.calls.stubbed_tools,
            "spent": _spent(report.spent),
            "log": report.log,
            "notes": report.notes,
            "preflight": [_check(check) for check in report.checks],
            "sets": [_set(one) for one in report.sets],
        }
    )
    compared = comparison_json(report.comparison) if report.comparison else None
    tags = {info.known_as: info.tags for info in report.sets}
    cases = (case_result_json(case, tags[case.id.path].get(case.eval_id, ())) for case in report.result.cases)
    return json_pieces({**head, "comparison": compared, "cases": cases})


def _totals(cases: Sequence[CaseSummary]) -> Json:
    return {
        "cases": len(cases),
        "passed": count(cases, Status.PASSED),
        "failed": count(cases, Status.FAILED),
        "error": count(cases, Status.ERROR),
        "not_evaluated": count(cases, Status.NOT_EVALUATED),
        "flaky": count(cases, Status.FLAKY),
    }


def case_result_json(case: CaseResult, tags: Sequence[str] | None = None) -> Json:
    """One case as it stands in the report; without `tags` where nobody knows them."""
    document: Json = valid_json(
        {
            "eval_set_id": case.eval_set_id,
            "path": case.path,
            "eval_id": case.eval_id,
            **({} if tags is None else {"tags": list(tags)}),
            "status": case.status.value,
            "policy": {"pass_if": case.policy, "met": case.policy_met},
            **({} if case.decision is None else {"decision": case.decision.to_json()}),
            **({"reason": case.reason} if case.reason else {}),
            "rate": _rate(case_rate(case)),
            **_over_repeats(case),
            "error": _error(case.error),
            "metrics": [_metric(metric) for metric in case.metrics],
            "repeats": [_repeat(repeat) for repeat in case.repeats],
            "turns": [_turn(turn) for turn in case.turns],
            "state": [_fields(diff, "path", "expected", "actual") for diff in case.state],
            "spent": _spent(case.spent),
            **_stopped(case),
        }
    )
    return document


def _spent(spent: Spending | None) -> Json | None:
    return None if spent is None else _SPENDING.dump_python(spent)


def _fields(of: object, *names: str) -> Json:
    """Fields that are in the report under their own names."""
    return {name: getattr(of, name) for name in names}


def _set(info: SetInfo) -> Json:
    return {
        "eval_set_id": info.eval_set_id,
        "path": str(info.path),
        "config": {
            "path": None if info.config_path is None else str(info.config_path),
            "effective": info.effective,
            "defaulted": info.defaulted,
            **({} if info.passed_over is None else {"not_used": str(info.passed_over)}),
        },
    }


def _error(error: ErrorInfo | None) -> Json | None:
    return None if error is None else _fields(error, "type", "message", "traceback", "where", "kind")


def _metric(metric: MetricResult) -> Json:
    return {
        "name": metric.name,
        "score": metric.score,
        "threshold": metric.threshold,
        "status": metric.status.value,
        "reason": metric.reason,
        "error": _error(metric.error),
        "details": metric.details,
        **_judge(metric),
        "per_turn": [_score(turn) for turn in metric.per_invocation],
    }


def _judge(metric: MetricResult) -> Json:
    """Who judged; metrics that nobody has to judge do without the key."""
    if metric.judge is None:
        return {}
    return {"judge": _fields(metric.judge, "model", "prompt", "asked", "answered", "replayed", "unasked")}


def _score(turn: InvocationScore) -> Json:
    entry: Json = {"score": turn.score, "status": turn.status.value, "reason": turn.reason}
    if turn.judgements:
        entry["judgements"] = [_judgement(judgement) for judgement in turn.judgements]
    return entry


def _judgement(judgement: Judgement) -> Json:
    return {
        **_fields(judgement, "id", "subject", "score", "rationale"),
        "evidence": [{"kind": kind, "text": text} for kind, text in judgement.evidence],
        "votes": [
            _fields(vote, "score", "label", "rationale") | {"problem": vote.problem or None}
            for vote in judgement.votes
        ],
    }


def _over_repeats(case: CaseResult) -> Json:
    """What several runs say together; of one there is nothing to say."""
    several = len(case.repeats) > 1
    return {
        "pass_rates": [
            {"k": rate.k, "pass_at_k": rate.at_least_one, "pass_hat_k": rate.all}
            for rate in (pass_rates(case) if several else ())
        ],
        "trajectories": [_trajectory(group) for group in (trajectory_groups(case) if several else ())],
    }


def _trajectory(group: TrajectoryGroup) -> Json:
    """Runs that made the same calls, turn by turn; `repeats` are their numbers from 0."""
    return {
        "repeats": group.repeats,
        "status": group.status.value,
        "calls": [[_call(call) for call in calls] for calls in group.calls],
    }


def _repeat(repeat: RepeatResult) -> Json:
    return {
        "status": repeat.status.value,
        "error": _error(repeat.error),
        "metrics": [_metric(metric) for metric in repeat.metrics],
        "actual": [dump(invocation) for invocation in repeat.actual],
        "seconds": round(repeat.seconds, 3),
        **({"throttled": round(repeat.throttled, 3)} if repeat.throttled else {}),
        "spent": _spent(repeat.spent),
        **_stopped(repeat),
    }


def _stopped(result: CaseResult | RepeatResult) -> Json:
    """What ended a conversation with a simulated user; the other cases do without the key."""
    return {"stopped": result.stopped} if result.stopped else {}


def _turn(turn: TurnResult) -> Json:
    return {
        "expectation": turn.expectation,
        "calls": [_call_diff(diff) for diff in turn.calls],
        "response": _fields(turn.response, "expected", "actual", "score"),
        "unscored": [{"author": author, "text": text} for author, text in turn.unscored],
        "intermediate": [_fields(row, "author", "expected", "actual", "score") for row in turn.intermediate],
        **({"user": turn.user} if turn.user else {}),
    }


def _call_diff(diff: CallDiff) -> Json:
    return {
        "op": diff.op,
        "expected": _call(diff.expected),
        "actual": _call(diff.actual),
        "args": [
            _fields(arg, "path", "op", "expected", "actual") | {"rule": arg.rule or None} for arg in diff.args
        ],
    }


def _call(call: Call | None) -> Json | None:
    return None if call is None else _fields(call, "name", "args")


def _check(check: MetricCheck) -> Json:
    return {
        "metric": check.metric,
        "status": check.readiness.value,
        **_fields(check, "why", "fix", "optional", "sets", "cases"),
        "without": [{"eval_set_id": set_id, "eval_id": eval_id} for set_id, eval_id in check.without],
    }


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def comparison_json(comparison: Comparison) -> Json:
    """Every case, unchanged ones too, which are made one by one. The keys are a promise, like those of the
    report."""
    document: Json = valid_json(
        {
            "base": _compared_run(comparison.base),
            "candidate": _compared_run(comparison.candidate),
            "changed": what_changed(comparison.base, comparison.candidate),
            "totals": {kind.replace(" ", "_"): len(comparison.of(kind)) for kind in KINDS},
            "regressions": len(comparison.regressions),
            "alpha": comparison.alpha,
            "paired": _fields(comparison.paired, "better", "worse", "cases", "repeated", "p"),
            "seconds": _total(comparison.seconds),
            "tokens": _total(comparison.tokens),
            "usd": _total(comparison.usd),
        }
    )
    return {**document, "cases": (valid_json(_change(change, comparison)) for change in comparison.cases)}


def _compared_run(run: RunSummary) -> Json:
    passing = sum(case.passes for case in run.cases.values())
    return {"id": run.id, "cases": len(run.cases), "passing": passing, "unfinished": len(run.unfinished)}


def _rates(found: Rates | None) -> Json | None:
    if found is None:
        return None
    runs = found.runs and {"passed": found.passed_runs, "of": found.all_runs, **_estimate(found.runs)}
    return {
        "cases": _rate(found.cases),
        "runs": runs,
        "scores": {name: _estimate(one) for name, one in found.scores.items()},
    }


def _rate(rate: Rate | None) -> Json | None:
    if rate is None:
        return None
    low, high = rate.interval
    return {"passed": rate.passed, "of": rate.of, "rate": rate.share, "low": low, "high": high}


def _estimate(one: Estimate) -> Json:
    low, high = one.interval or (None, None)
    return {
        "mean": one.mean,
        "cases": one.cases,
        "standard_error": one.standard_error,
        "low": low,
        "high": high,
    }


def _total(total: Total | None) -> Json | None:
    return None if total is None else _fields(total, "base", "candidate")


def _change(change: CaseChange, comparison: Comparison) -> Json:
    return {
        "eval_set_id": change.eval_set_id,
        "path": change.case.path,
        "eval_id": change.case.eval_id,
        "change": change.kind.replace(" ", "_"),
        "regression": comparison.is_regression(change),
        "p": change.p,
        "reasons": change.reasons,
        "base": _summary(change.base),
        "candidate": _summary(change.candidate),
        "scores": [score._asdict() for score in change.scores],
    }


def _summary(summary: CaseSummary | None) -> Json | None:
    if summary is None:
        return None
    numbers = _fields(summary, "passes", "runs", "passed", "seconds", "tokens")
    cost = None if summary.cost is None else _COST.dump_python(summary.cost)
    return {"status": summary.status.value, **numbers, "cost": cost}
