"""Figures of a matrix that its reports share."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from evaltui.core.compare.matrix import Matrix
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.spending import Cost
from evaltui.core.statistics.estimates import Interval, clustered_rate
from evaltui.text.figures import UNKNOWN, show_interval, show_p


def interval_of(matrix: Matrix, place: int) -> Interval | None:
    """Of the pass rate of a variant, clustered by case; None without a result."""
    cases = matrix.columns[place].cases.values()
    return clustered_rate([(case.passed, case.runs) for case in cases]).interval if cases else None


def interval_text(matrix: Matrix, place: int) -> str:
    """`74–90%`"""
    found = interval_of(matrix, place)
    return UNKNOWN if found is None else show_interval(*found)


def paired_text(matrix: Matrix, place: int) -> str:
    """`+7 −1, p = 0.07`: cases that pass here only, and in the base only."""
    paired = matrix.paired[place]
    if paired is None:
        return "base"
    return f"+{paired.better} −{paired.worse}, {show_p(paired.p)}" if paired.cases else UNKNOWN


def agent_cost(case: CaseSummary) -> Cost | None:
    """What the agent alone cost in all runs of a case; None where nobody knows. Judges are no variant's."""
    return case.costs.get("agent")


def cost_of_run(case: CaseSummary) -> tuple[str, ...]:
    """What the agent cost in a run of a case; nothing where it is not known."""
    cost = agent_cost(case)
    if cost is None or cost.usd is None:
        return ()
    return (replace(cost, usd=cost.usd / case.runs).short,)


def total_cost(matrix: Matrix, place: int) -> Cost | None:
    """What the agent cost in all cases; None where nobody knows of any."""
    cases = matrix.columns[place].cases.values()
    costs = [agent_cost(case) or Cost(unseen=case.runs) for case in cases]
    return reduce(Cost.__add__, costs) if any(map(agent_cost, cases)) else None


def cost_per_passed(matrix: Matrix, place: int) -> Cost | None:
    """The cost of all cases divided by those that passed; None where none did, or nobody knows."""
    cost, passed = total_cost(matrix, place), matrix.totals[place].passed_cases
    return replace(cost, usd=cost.usd / passed) if cost and cost.usd is not None and passed else None


def cost_per_passed_text(matrix: Matrix, place: int) -> str:
    cost = cost_per_passed(matrix, place)
    return UNKNOWN if cost is None else cost.short
