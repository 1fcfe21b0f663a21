"""What the cases of a run come to by their tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaltui.core.compare.rates import rate_over_cases
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import Status
from evaltui.core.statistics.estimates import Rate
from evaltui.reports.model import RunReport
from evaltui.text.figures import UNKNOWN, counted, show_number
from evaltui.text.lines import Line, cells, cut
from evaltui.text.outcomes import ROLES
from evaltui.text.plots import bar
from evaltui.text.values import visible

# Tags may be as many as tickets.
MOST_TAGS = 40
_BAR = 10


@dataclass(frozen=True)
class TagTotal:
    """The cases with a tag."""

    tag: str
    cases: tuple[CaseSummary, ...]

    @property
    def passed(self) -> int:
        """How many passed, flaky ones as their policy decides."""
        return sum(case.passes for case in self.cases)

    @property
    def in_words(self) -> str:
        """`7 of 12`"""
        return f"{show_number(self.passed)} of {show_number(len(self.cases))}"

    @property
    def rate(self) -> Rate | None:
        """Of the cases that were evaluated; None where none was."""
        return rate_over_cases(self.cases)


def tag_totals(report: RunReport) -> list[TagTotal]:
    """The tags of the cases, sorted; none where no case has one."""
    found: dict[str, list[CaseSummary]] = {}
    tags = {eval_set.path: eval_set.tags for eval_set in report.sets}
    for case in report.summaries:
        for tag in tags[case.id.path].get(case.eval_id, ()):
            found.setdefault(tag, []).append(case)
    return [TagTotal(tag, tuple(found[tag])) for tag in sorted(found)]


def tag_lines(report: RunReport, width: int) -> Iterator[Line]:
    """A line for each tag: how many of its cases passed."""
    totals = tag_totals(report)
    names = [visible(f"#{one.tag}") for one in totals[:MOST_TAGS]]
    widest = min(max((cells([(name, "")]) for name in names), default=0), width // 3)
    figures = [f"{one.in_words} passed" for one in totals[:MOST_TAGS]]
    shown = [str(one.rate or UNKNOWN) for one in totals[:MOST_TAGS]]
    column, of_rates = (max(map(len, texts), default=0) for texts in (figures, shown))
    for one, name, figure, rate in zip(totals, names, figures, shown, strict=False):
        role = ROLES[Status.PASSED if one.passed == len(one.cases) else Status.FAILED]
        short = cut([(name, "")], widest)
        yield [
            ("tag  ", "muted"),
            *short,
            (" " * (widest - cells(short)), ""),
            (f"  {figure:>{column}}  {rate:<{of_rates}}  ", ""),
            *(bar(one.rate.rate, _BAR, role) if one.rate else ()),
        ]
    if len(totals) > MOST_TAGS:
        yield [(f"     and {counted(len(totals) - MOST_TAGS, 'more tag')}", "muted")]
