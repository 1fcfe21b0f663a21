"""What a run will take, by what the last run of each of its cases took. No model is asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from statistics import median
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.limits import Limit
from evaltui.core.model.spending import Spending
from evaltui.runner.plan import RunPlan
from evaltui.runs.history import KeptRun, open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore

# Logs that are looked through for the last run of a case, the newest first.
_MOST_LOGS = 50


@dataclass(frozen=True)
class Taken:
    """What a run of a case took on average, replayed calls as if they were asked; None is unknown."""

    calls: float | None
    tokens: float | None
    usd: float | None
    seconds: float | None
    models: Mapping[str, Asked] = field(default_factory=dict)
    """By the model's name."""


class Asked(NamedTuple):
    """What a model was asked in a run of a case, on average."""

    calls: float
    tokens: float


@dataclass(frozen=True)
class AtLimit:
    """The time that a limit of models takes by itself."""

    limit: str
    """As on the command line."""
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """What a run will take if no call is replayed; None is unknown."""

    cases: int
    runs: int
    """Of all cases together."""
    unknown_cases: int
    """Cases that were never run: they count as the median of the others."""
    parallel: int
    calls: float | None
    tokens: float | None
    usd: float | None
    seconds: float | None
    """No less than `at_limit` has."""
    machines: int = 1
    at_limit: AtLimit | None = None
    """The limit that takes longest; None where none is set, or what is asked is not known."""
    at_most: bool = False
    """Whether cases may need fewer runs, so that each figure is the highest that is likely."""


# Seconds of this machine's processor that scoring, logging and reporting a run of a small case take.
_OWN_SECONDS = 0.004


def estimate(plan: RunPlan, store: RunStore, machines: int = 1) -> Estimate:
    """On so many machines, each of which runs `plan.settings.parallel` cases at once.

    Reads the last run of each case. Raises OSError.
    """
    runs: dict[CaseId, int] = {}
    for one in plan.sets:
        for case in one.case_ids:
            known = plan.known.get(case, {})
            rule = plan.repeat_rule(one, case)
            runs[case] = 0 if rule.is_over(known) else rule.most - len(known)
    taken = _last_taken(store, runs, plan)
    seconds = _sum(runs, taken, lambda one: one.seconds)
    if seconds is not None:
        longest = max((one.seconds for one in taken.values() if one.seconds), default=0.0)
        own = sum(runs.values()) * _OWN_SECONDS
        seconds = max(seconds / (plan.settings.parallel * machines), longest, own)
    slowest = max((_at(limit, runs, taken) for limit in plan.settings.limits), key=_seconds, default=None)
    if slowest is not None and seconds is not None:
        seconds = max(seconds, slowest.seconds)
    return Estimate(
        cases=len(runs),
        runs=sum(runs.values()),
        unknown_cases=sum(case not in taken for case in runs),
        parallel=plan.settings.parallel * machines,
        machines=machines,
        calls=_sum(runs, taken, lambda one: one.calls),
        tokens=_sum(runs, taken, lambda one: one.tokens),
        usd=_sum(runs, taken, lambda one: one.usd),
        seconds=seconds,
        at_limit=slowest if slowest is not None and slowest.seconds else None,
        at_most=plan.settings.confidence is not None,
    )


def _seconds(one: AtLimit) -> float:
    return one.seconds


def _at(limit: Limit, runs: Mapping[CaseId, int], taken: Mapping[CaseId, Taken]) -> AtLimit:
    """A minute's worth of calls and tokens may be spent at once; cases that were never run count as the
    others do."""
    known = sum(number for case, number in runs.items() if case in taken)
    share = sum(runs.values()) / known if known else 0.0
    asked = [
        (asked.calls * runs[case], asked.tokens * runs[case])
        for case, one in taken.items()
        for model, asked in one.models.items()
        if limit.matches(model)
    ]
    calls, tokens = (fsum(figures) * share for figures in zip(*asked, strict=True)) if asked else (0.0, 0.0)
    minutes = [
        figure / most - 1 for figure, most in ((calls, limit.rpm), (tokens, limit.tpm)) if most is not None
    ]
    return AtLimit(str(limit), max(0.0, *minutes) * 60 if minutes else 0.0)


def _sum(
    runs: Mapping[CaseId, int], taken: Mapping[CaseId, Taken], figure: Callable[[Taken], float | None]
) -> float | None:
    """Of all runs; None where it is not known of a case that was run, or of none."""
    known = {case: figure(one) for case, one in taken.items()}
    values = [value for value in known.values() if value is not None]
    if not values or len(values) < len(known):
        return None
    usual = median(values)
    return sum((known.get(case) or 0.0 if case in known else usual) * number for case, number in runs.items())


def _last_taken(store: RunStore, cases: Mapping[CaseId, int], plan: RunPlan) -> dict[CaseId, Taken]:
    """Of each case that was run with the agent and variant of the plan; what is damaged is passed over."""
    kind = RunKind.of(plan.agent)
    found: dict[CaseId, Taken] = {}
    for path in list(reversed(store.files()))[:_MOST_LOGS]:
        if len(found) == len(cases):
            break
        try:
            if RunFile(path).header.kind._replace(adk_verdicts=False) != kind:
                continue
            run = open_run(path)
            for case in cases.keys() & run.summary.results.keys() - found.keys():
                found[case] = _taken(run, case)
        except ValueError:
            continue
    return found


def _taken(run: KeptRun, case: CaseId) -> Taken:
    summary, spent = run.summary.cases[case], run.case(case).spent
    if spent is None or spent.unseen:
        return Taken(None, None, None, summary.seconds)
    times = summary.runs
    calls = spent.calls + spent.replayed
    cost = spent.cost
    is_priced = cost.is_exact and (cost.saved_usd is not None or not spent.replayed)
    usd = _total((cost.usd, cost.saved_usd)) if is_priced else None
    tokens = None if spent.unmetered else _total((spent.tokens.total, spent.saved_tokens.total))
    if not calls:
        usd, tokens = 0.0, 0.0
    return Taken(
        calls / times,
        None if tokens is None else tokens / times,
        None if usd is None else usd / times,
        summary.seconds,
        _asked(spent, times),
    )


def _asked(spent: Spending, times: int) -> dict[str, Asked]:
    found: dict[str, Asked] = {}
    for one in spent.models:
        before = found.get(one.model, Asked(0.0, 0.0))
        tokens = (one.tokens + one.saved_tokens).total or 0
        calls = before.calls + (one.calls + one.replayed) / times
        found[one.model] = Asked(calls, before.tokens + tokens / times)
    return found


def _total(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
