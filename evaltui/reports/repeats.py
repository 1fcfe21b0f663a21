"""Repeats of a case, as lines."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.compare.repeats import TrajectoryGroup, in_words, pass_rates, trajectory_groups
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.text.lines import Line, cut
from evaltui.text.outcomes import ROLES, glyph

# More kinds of trajectories than this are noise.
_MOST_GROUPS = 8


def repeat_lines(case: CaseResult, width: int) -> list[Line]:
    """How each run came out, what that says of the next ones, and which calls they made; nothing for one."""
    if len(case.repeats) < 2:
        return []
    return [cut(line, width) for line in (*_runs(case), *_rates(case), *_trajectories(case))]


def _runs(case: CaseResult) -> Iterator[Line]:
    glyphs = [glyph(repeat.status) for repeat in case.repeats]
    flaky = f" {case.status.value}" if case.status is Status.FLAKY else ""
    meets = "meets" if case.policy_met else "fails"
    figure = f"  {case.passed_repeats}/{len(case.repeats)}{flaky}, {meets} policy {case.policy}"
    yield [("  runs    ", ""), *glyphs, (figure, ROLES[case.status])]
    yield [("          the gravest one is shown below", "muted")]


def _rates(case: CaseResult) -> Iterator[Line]:
    rates = pass_rates(case)
    yield [("  k       ", "muted"), ("".join(f"{rate.k:<6}" for rate in rates), "muted")]
    yield [("  pass@k  ", ""), ("".join(f"{rate.at_least_one:<6.2f}" for rate in rates), "")]
    yield [("  pass^k  ", ""), ("".join(f"{rate.all:<6.2f}" for rate in rates), "")]


def _trajectories(case: CaseResult) -> Iterator[Line]:
    groups = trajectory_groups(case)
    if len(groups) == 1:
        yield [("  calls   the same in every run", "")]
        return
    yield [(f"  calls   {len(groups)} different trajectories", "")]
    for group in groups[:_MOST_GROUPS]:
        yield [*_group_head(group), (in_words(group.calls), "")]
    if len(groups) > _MOST_GROUPS:
        yield [(f"          and {len(groups) - _MOST_GROUPS} more", "muted")]


def _group_head(group: TrajectoryGroup) -> Line:
    glyphs = [glyph(status) for status in dict.fromkeys(group.statuses)]
    return [(f"    {len(group.repeats):>3}×  ", ""), *glyphs, (" " * (3 - len(glyphs)), "")]
