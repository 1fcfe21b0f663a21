"""`evaltui run --estimate`: the expected cost and duration of a run, without agent and model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from math import fsum
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from evaltui.commands.job import completed_request
from evaltui.commands.output import (
    UsageError,
    agent_of,
    parse_targets,
    settings_of,
    write_result,
)
from evaltui.commands.variants import variants_of_options, with_variant
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.limits import Limit
from evaltui.core.model.spending import Spending, known_sum
from evaltui.runner.plan import RunPlan
from evaltui.runs.history import StoredRun, open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_kind import RunKind
from evaltui.runs.selection import RunRequest, select
from evaltui.runs.store import RunStore
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_money, show_number
from evaltui.text.lines import Line, wrap

# Logs that are looked through for the last run of a case, the newest first.
_MAX_LOGS = 50


@dataclass(frozen=True)
class CaseAverages:
    """Averages over the runs of a case, in which replayed calls count as calls; None is unknown."""

    calls: float | None
    tokens: float | None
    usd: float | None
    seconds: float | None
    models: Mapping[str, ModelRequests] = field(default_factory=dict)
    """Requests by model name."""


class ModelRequests(NamedTuple):
    """Average requests to a model in a run of a case."""

    calls: float
    tokens: float


@dataclass(frozen=True)
class LimitTime:
    """The time that a run needs because of a model limit."""

    limit: str
    """The limit, as on the command line."""
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of a run without replayed calls; None is unknown."""

    cases: int
    runs: int
    """Number of repeats of all cases."""
    unknown_cases: int
    """Number of cases that were never run; they count as the median of the others."""
    parallel: int
    calls: float | None
    tokens: float | None
    usd: float | None
    seconds: float | None
    """Estimated seconds, at least those of `at_limit`."""
    machines: int = 1
    at_limit: LimitTime | None = None
    """The limit that needs the most time; None for no limit, and where the requests are unknown."""
    at_most: bool = False
    """Whether cases may need fewer runs, so that each figure is an upper estimate."""


# Seconds of this machine's processor that scoring, logging and reporting a run of a small case take.
_EVALTUI_SECONDS = 0.004


def estimate(plan: RunPlan, store: RunStore, machines: int = 1) -> Estimate:
    """Estimates a run on a number of machines, each with `plan.settings.parallel` cases at once.

    Reads the last run of each case. Raises OSError.
    """
    runs: dict[CaseId, int] = {}
    for plan_of_set in plan.sets:
        for case in plan_of_set.case_ids:
            finished = plan.earlier.get(case, {})
            rule = plan.repeat_rule(plan_of_set, case)
            runs[case] = 0 if rule.is_over(finished) else rule.most - len(finished)
    averages = _last_averages(store, runs, plan)
    seconds = _sum(runs, averages, attrgetter("seconds"))
    if seconds is not None:
        longest = max((average.seconds or 0.0 for average in averages.values()), default=0.0)
        own = sum(runs.values()) * _EVALTUI_SECONDS
        seconds = max(seconds / (plan.settings.parallel * machines), longest, own)
    times_at_limits = (_time_at_limit(limit, runs, averages) for limit in plan.settings.limits)
    slowest = max(times_at_limits, key=attrgetter("seconds"), default=None)
    if slowest is not None and seconds is not None:
        seconds = max(seconds, slowest.seconds)
    return Estimate(
        cases=len(runs),
        runs=sum(runs.values()),
        unknown_cases=sum(case not in averages for case in runs),
        parallel=plan.settings.parallel * machines,
        machines=machines,
        calls=_sum(runs, averages, attrgetter("calls")),
        tokens=_sum(runs, averages, attrgetter("tokens")),
        usd=_sum(runs, averages, attrgetter("usd")),
        seconds=seconds,
        at_limit=slowest if slowest is not None and slowest.seconds else None,
        at_most=plan.settings.confidence is not None,
    )


def _time_at_limit(
    limit: Limit, runs: Mapping[CaseId, int], averages: Mapping[CaseId, CaseAverages]
) -> LimitTime:
    """The time that a limit adds; requests and tokens of one minute may be spent at once, and cases that were
    never run count as the others do."""
    measured = sum(number for case, number in runs.items() if case in averages)
    share = sum(runs.values()) / measured if measured else 0.0
    amounts = [
        (amounts.calls * runs[case], amounts.tokens * runs[case])
        for case, average in averages.items()
        for model, amounts in average.models.items()
        if limit.matches(model)
    ]
    calls, tokens = (
        (fsum(figures) * share for figures in zip(*amounts, strict=True)) if amounts else (0.0, 0.0)
    )
    minutes = [
        figure / most - 1 for figure, most in ((calls, limit.rpm), (tokens, limit.tpm)) if most is not None
    ]
    return LimitTime(str(limit), max(0.0, *minutes) * 60 if minutes else 0.0)


def _sum(
    runs: Mapping[CaseId, int],
    averages: Mapping[CaseId, CaseAverages],
    figure: Callable[[CaseAverages], float | None],
) -> float | None:
    """The sum of a figure over all runs; None where a case that was run lacks it, and where all do."""
    figures = {case: figure(average) for case, average in averages.items()}
    values = [value for value in figures.values() if value is not None]
    if not values or len(values) < len(figures):
        return None
    usual = median(values)
    return sum(
        (figures.get(case) or 0.0 if case in figures else usual) * number for case, number in runs.items()
    )


def _last_averages(store: RunStore, cases: Mapping[CaseId, int], plan: RunPlan) -> dict[CaseId, CaseAverages]:
    """The averages of each case that was run with the agent and variant of the plan; damaged logs are
    skipped."""
    kind = RunKind.of(plan.agent)
    averages: dict[CaseId, CaseAverages] = {}
    for path in list(reversed(store.files()))[:_MAX_LOGS]:
        if len(averages) == len(cases):
            break
        try:
            if RunFile(path).header.kind._replace(adk_verdicts=False) != kind:
                continue
            run = open_run(path)
            for case in cases.keys() & run.summary.results.keys() - averages.keys():
                averages[case] = _averages_in(run, case)
        except ValueError:
            continue
    return averages


def _averages_in(run: StoredRun, case: CaseId) -> CaseAverages:
    summary, spent = run.summary.cases[case], run.case(case).spent
    if spent is None or spent.unseen:
        return CaseAverages(None, None, None, summary.seconds)
    times = summary.runs
    calls = spent.calls + spent.replayed
    cost = spent.cost
    is_priced = cost.is_exact and (cost.saved_usd is not None or not spent.replayed)
    usd = known_sum(cost.usd, cost.saved_usd) if is_priced else None
    tokens = None if spent.unmetered else known_sum(spent.tokens.total, spent.saved_tokens.total)
    if not calls:
        usd, tokens = 0.0, 0
    return CaseAverages(
        calls / times,
        None if tokens is None else tokens / times,
        None if usd is None else usd / times,
        summary.seconds,
        _requests_of(spent, times),
    )


def _requests_of(spent: Spending, times: int) -> dict[str, ModelRequests]:
    requests: dict[str, ModelRequests] = {}
    for spending in spent.models:
        before = requests.get(spending.model, ModelRequests(0.0, 0.0))
        tokens = (spending.tokens + spending.saved_tokens).total or 0
        calls = before.calls + (spending.calls + spending.replayed) / times
        requests[spending.model] = ModelRequests(calls, before.tokens + tokens / times)
    return requests


def write_estimate(options: argparse.Namespace) -> int:
    """Raises UsageError, SelectionError, EvalSetError for what cannot be run."""
    targets = parse_targets(options.report, ("console", "json"))
    agent, settings = agent_of(options), settings_of(options)
    variants = variants_of_options(options, settings)
    if len(variants) > 1:
        raise UsageError("--estimate takes one --variant at a time")
    with with_variant(options, agent, variants[0] if variants else None) as address:
        request, sets = completed_request(options, RunRequest(address, settings=settings))
        selected = select(request, sets)
        try:
            estimated = estimate(selected.plan, request.store, options.machines or 1)
            write_result(
                targets,
                lambda: [json.dumps({"version": 1, "estimate": asdict(estimated)}, indent=2), "\n"],
                partial(_lines, estimated, selected.request.settings.record),
            )
        except OSError as error:
            raise UsageError(f"--estimate: {error}") from error
    return 0


def _lines(estimated: Estimate, record: str, width: int) -> Iterator[Line]:
    others = ": the median of the others" if estimated.unknown_cases < estimated.cases else ""
    never = f", {estimated.unknown_cases} never run{others}" if estimated.unknown_cases else ""
    calls = UNKNOWN if estimated.calls is None else counted(round(estimated.calls), "model call")
    replayed = "" if record == "off" else f"  recordings {record}: replayed calls cost nothing"
    tokens = None if estimated.tokens is None else round(estimated.tokens)
    most = "at most " if estimated.at_most else ""
    at_once = f"{show_number(estimated.parallel)} at once"
    where = f" on {counted(estimated.machines, 'machine')}" if estimated.machines > 1 else ""
    limited = ""
    if estimated.at_limit is not None:
        limited = (
            f", at least {show_duration(estimated.at_limit.seconds)} by --limit {estimated.at_limit.limit}"
        )
    rows = (
        ("cases", f"{estimated.cases}, {most}{counted(estimated.runs, 'run')}{never}"),
        ("calls", f"{most}{calls}{replayed}"),
        ("tokens", f"{most}{show_number(tokens)}"),
        ("cost", f"{most}{show_money(estimated.usd)}"),
        (
            "time",
            f"{most}{show_duration(estimated.seconds)}, {at_once}{where}{limited}",
        ),
    )
    for label, text in rows:
        yield from wrap([(f"{label:8}", "muted"), (text, "")], width)
