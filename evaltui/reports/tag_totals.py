"""What the cases of a run come to by their tags."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.compare.totals import Totals, totals_of
from evaltui.core.model.outcome import Status
from evaltui.reports.model import RunReport
from evaltui.text.figures import UNKNOWN, counted
from evaltui.text.lines import Line, cells, cut
from evaltui.text.outcomes import ROLES
from evaltui.text.plots import bar
from evaltui.text.values import visible

# Tags may be as many as tickets.
MOST_TAGS = 40
_BAR = 10


def tag_totals(report: RunReport) -> dict[str, Totals]:
    """What the cases with each tag add up to, sorted by tag; empty where no case has one."""
    found: dict[str, list[CaseSummary]] = {}
    tags = {eval_set.path: eval_set.tags for eval_set in report.sets}
    for case in report.summaries:
        for tag in tags[case.id.path].get(case.eval_id, ()):
            found.setdefault(tag, []).append(case)
    return {tag: totals_of(found[tag]) for tag in sorted(found)}


def tag_lines(report: RunReport, width: int) -> Iterator[Line]:
    """A line for each tag: how many of its cases passed."""
    tags = tag_totals(report)
    totals = [*tags.values()][:MOST_TAGS]
    names = [visible(f"#{tag}") for tag in [*tags][:MOST_TAGS]]
    widest = min(max((cells([(name, "")]) for name in names), default=0), width // 3)
    figures = [f"{one.in_words} passed" for one in totals]
    shown = [str(one.case_rate or UNKNOWN) for one in totals]
    column, of_rates = (max(map(len, texts), default=0) for texts in (figures, shown))
    for one, name, figure, rate in zip(totals, names, figures, shown, strict=True):
        role = ROLES[Status.PASSED if one.passed == one.cases + one.open_cases else Status.FAILED]
        short = cut([(name, "")], widest)
        yield [
            ("tag  ", "muted"),
            *short,
            (" " * (widest - cells(short)), ""),
            (f"  {figure:>{column}}  {rate:<{of_rates}}  ", ""),
            *(bar(one.case_rate.rate, _BAR, role) if one.case_rate else ()),
        ]
    if len(tags) > MOST_TAGS:
        yield [(f"     and {counted(len(tags) - MOST_TAGS, 'more tag')}", "muted")]
