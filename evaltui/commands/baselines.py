"""The baseline of a run, and when a difference is a regression."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.commands.exit_codes import HAD_ERRORS, SOME_FAILED, exit_code
from evaltui.commands.output import UsageError, write_stderr
from evaltui.core.compare.run_comparison import Comparison, compare
from evaltui.core.compare.run_summary import CaseSummary, Circumstances, RunSummary
from evaltui.core.metrics.normal_config import normal_config
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import SelectionError
from evaltui.core.model.variants import Variant
from evaltui.core.statistics import ALPHA
from evaltui.project.folders import case_path
from evaltui.project.settings import secrets_of
from evaltui.runs.baselines import LaterRun, last_baseline
from evaltui.runs.history import find_run, open_run
from evaltui.runs.matrices import StoredMatrix, find_matrix
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore
from evaltui.text.figures import short_list, show_p

if TYPE_CHECKING:
    from evaltui.runs.selection import RunRequest, SelectedRun


@dataclass(frozen=True)
class Baseline:
    """The run to compare with."""

    run: RunSummary
    note: str
    """A remark on the run that `last` means, see `last_baseline`; "" for none."""


def baseline_of(options: argparse.Namespace, later: LaterRun) -> Baseline | None:
    """The run to compare with, None where none is named. Raises UsageError, SelectionError."""
    if options.baseline is None:
        for flag in ("fail_on_regression", "alpha"):
            if getattr(options, flag, None):
                raise UsageError(f"--{flag.replace('_', '-')} needs --baseline RUN to compare with")
        return None
    try:
        if options.baseline == "last":
            path, note = last_baseline(later, alpha_of(options))
        else:
            path, note = _path(options.baseline, later.store, later.variant), ""
        return Baseline(open_run(path).summary, note)
    except (SelectionError, UsageError):
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"--baseline: {error}") from error


def later_run(request: RunRequest) -> LaterRun:
    """The run of a request, as the one to compare with its baseline."""
    variant = request.agent.variant
    return LaterRun(
        request.store,
        {case_path(request.agent_dir, path): eval_ids for path, eval_ids in request.cases.items()},
        request.kind,
        variant.variant if variant else None,
        [request.resumes.path] if request.resumes else [],
        request.matrix,
    )


def settled_baseline(
    ref: str, store: RunStore, variants: Sequence[Variant], matrix: str, kind: RunKind
) -> str:
    """The id of the matrix or the path of the log that `--baseline` names; `last` stays.

    Raises UsageError, SelectionError where a variant has no baseline.
    """
    if ref == "last":
        for variant in variants:
            last_baseline(LaterRun(store, {}, kind, variant, matrix=matrix))
        return ref
    stored = find_matrix(store, ref)
    ref = stored.id if stored else str(find_run(store, ref))
    for variant in variants:
        _path(ref, store, variant)
    return ref


def _path(ref: str, store: RunStore, variant: Variant | None) -> Path:
    """The log of a run, or of the same variant in a matrix; without a variant, of the unchanged agent.

    Raises UsageError, SelectionError.
    """
    matrix = find_matrix(store, ref)
    return find_run(store, ref) if matrix is None else _of_variant(matrix, variant)


def _of_variant(matrix: StoredMatrix, variant: Variant | None) -> Path:
    """Raises UsageError."""
    same = [log for log in matrix.logs if variant is not None and log.name == variant.name]
    if variant is None or not (same or variant.changes):
        same = [log] if (log := matrix.unchanged) else []
    if not same:
        what = f"variant {variant.name}" if variant else "run of the agent as it is"
        names = short_list([log.name for log in matrix.logs])
        raise UsageError(f"--baseline: matrix {matrix.id} has no {what}. Name one of its runs: {names}")
    return same[0].path


def comparison_with(
    baseline: Baseline | None, run: RunSummary, options: argparse.Namespace
) -> Comparison | None:
    """The comparison of a run with its baseline; None without one."""
    return None if baseline is None else compare(baseline.run, run, alpha_of(options))


def alpha_of(options: argparse.Namespace) -> float:
    """The highest p value that counts as evidence of a regression."""
    alpha: float | None = options.alpha
    return ALPHA if alpha is None else alpha


def regression_exit_code(comparison: Comparison, command: str, *, is_shard: bool = False) -> int:
    """The exit code of `--fail-on-regression`.

    1 for regressions; 3 where the candidate is incomplete, a case has no verdict in either run, or no case is
    in both, which stderr says. A shard may have new cases only.
    """
    if comparison.regressions:
        return SOME_FAILED
    if comparison.compares_nothing and not is_shard:
        write_stderr(f"evaltui {command}: --fail-on-regression: {nothing_compared(comparison)}")
        return HAD_ERRORS
    return HAD_ERRORS if comparison.candidate.unfinished or comparison.lacks_verdicts else 0


def run_exit_code(
    options: argparse.Namespace,
    cases: Collection[CaseSummary],
    comparison: Comparison | None,
    unscored: Sequence[str],
    command: str,
    *,
    is_shard: bool = False,
) -> int:
    """The exit code of a run: that of its regressions with `--fail-on-regression`, else of its verdicts."""
    if comparison is not None and options.fail_on_regression:
        code = regression_exit_code(comparison, command, is_shard=is_shard)
    else:
        code = 0 if is_shard and not cases else exit_code(case.verdict for case in cases)
    return code or (HAD_ERRORS if unscored else 0)


def nothing_compared(comparison: Comparison) -> str:
    """Sentences on runs without a case in common."""
    return (
        f"no case has a result in both {comparison.base.title} and {comparison.candidate.title}, so no "
        "regression could be found. Name another base"
    )


def require_effect(base: RunSummary, selected: SelectedRun, alpha: float) -> None:
    """Raises UsageError where no number of failures could be a regression, as there are too few repeats in
    all shards together."""
    plan = selected.undivided or selected.plan
    cases = {
        case: CaseSummary(
            eval_set.eval_set_id,
            case.eval_id,
            Status.FAILED,
            plan.repeat_rule(eval_set, case).most,
            policy=str(plan.pass_if_of(eval_set)),
            path=case.path,
        )
        for eval_set in plan.sets
        for case in eval_set.case_ids
    }
    secrets = secrets_of(plan.agent_dir)
    configs = {
        eval_set.case_path: normal_config(secrets.masked(eval_set.config.scoring())) for eval_set in plan.sets
    }
    circumstances = Circumstances(configs=configs, adk_verdicts=plan.settings.adk_verdicts)
    comparison = compare(base, RunSummary("", cases, circumstances=circumstances), alpha)
    chances = {change.case: change.p for change in comparison.broken_without_evidence if change.p is not None}
    if not chances or comparison.regressions:
        return
    stored = {
        CaseId(eval_set.case_path, case.eval_id): case
        for eval_set in plan.sets
        for case in eval_set.stored_cases
    }
    # A failure of another expectation is a regression, however often the case is repeated.
    expects = {case: comparison.base.cases[case].expects for case in chances}
    if all(before in ("", stored[case].fingerprint) for case, before in expects.items()):
        lowest = show_p(min(chances.values()))
        raise UsageError(
            f"--fail-on-regression has no effect: even if every repeat failed, {lowest}, above "
            f"--alpha {alpha:g}. Raise --runs or --alpha, or name another --baseline"
        )
