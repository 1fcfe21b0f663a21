"""The list of cases on the HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evaltui.core.compare.explain import summary
from evaltui.core.compare.run_comparison import CaseChange
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.cost.cost_lines import may_cost
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult
from evaltui.reports.html.case_view import first_user_text
from evaltui.reports.html.painting import Verdict
from evaltui.runs.report import RunReport
from evaltui.runs.run_header import SelectedSet
from evaltui.text.figures import counted, show_duration
from evaltui.text.lines import Span
from evaltui.text.outcomes import COUNTED_STATUSES
from evaltui.text.values import cut, visible
from evaltui.views.run import config_text, outcome_span

# Cases of a run of which all are listed. A browser takes ten times as long for twice as many.
MAX_ROWS = 5_000
_MAX_WHY_LENGTH, _MAX_USER_LENGTH = 160, 80


@dataclass(frozen=True)
class CaseRow:
    """A case in the list, as text."""

    anchor: str
    """The target of a link to the case, `orders:late_order`; unique in the page."""
    eval_id: str
    status: str
    word: str
    outcome: Span
    why: str
    user: str
    seconds: str
    cost: str
    """The cost, `$0.0042`; "" where no model call cost anything."""
    change: str
    """The change from the baseline, `broken`; "" for none."""
    is_regression: bool
    needs_attention: bool
    tags: tuple[str, ...]


@dataclass(frozen=True)
class ListedSet:
    """An eval set with its listed cases."""

    name: str
    eval_set: SelectedSet
    counts: tuple[tuple[Verdict, int], ...]
    """Numbers of cases by status, for all cases of the set."""
    left_out: str
    """A sentence with the number of unlisted cases; "" where all are listed."""
    cases: Sequence[CaseResult]
    summaries: tuple[CaseSummary, ...]
    """The summaries of `cases`, in the same order."""
    anchors: tuple[str, ...]

    @property
    def config(self) -> str:
        return f"config {config_text(self.eval_set)}"


@dataclass(frozen=True)
class Changes:
    """The changes of cases from the baseline."""

    by_case: Mapping[CaseId, CaseChange] = field(default_factory=dict)
    regressions: Collection[CaseId] = frozenset()

    @classmethod
    def of(cls, report: RunReport) -> Changes:
        if report.comparison is None:
            return cls()
        changes = {change.case: change for change in report.comparison.cases}
        return cls(changes, {change.case for change in report.comparison.regressions})

    def chips(self, sets: Sequence[ListedSet]) -> tuple[tuple[str, int], ...]:
        """The numbers of regressions and of fixed cases among the listed ones, with their labels."""
        shown = [
            self.by_case[summary.id]
            for listed in sets
            for summary in listed.summaries
            if summary.id in self.by_case
        ]
        kinds = Counter(change.kind for change in shown)
        regressions = sum(change.case in self.regressions for change in shown)
        chips = (("regression", regressions), *((kind, kinds[kind]) for kind in ("fixed", "new")))
        return tuple((name, number) for name, number in chips if number)


def listed_sets(report: RunReport) -> tuple[ListedSet, ...]:
    """The listed cases of each set: all, but in a large run those that did not pass, as many as a browser can
    show."""
    anchors_in_use: set[str] = set()
    is_large = len(report.summaries) > MAX_ROWS
    room = MAX_ROWS
    sets = []
    for eval_set, cases in report.by_set():
        name, summaries = report.name_of(eval_set), tuple(cases.summaries)
        counts = status_counts(Counter(summary.status.value for summary in summaries))
        left_out = ""
        if is_large:
            not_passed = [number for number, summary in enumerate(summaries) if not summary.passes]
            numbers = not_passed[:room]
            room -= len(numbers)
            left_out = _left_out_text(len(summaries) - len(not_passed), len(not_passed) - len(numbers))
            cases, summaries = cases.only(numbers), tuple(summaries[number] for number in numbers)
        anchors = tuple(_anchor(f"{name}:{summary.eval_id}", anchors_in_use) for summary in summaries)
        sets.append(ListedSet(name, eval_set, counts, left_out, cases, summaries, anchors))
    return tuple(sets)


def _left_out_text(passed: int, others: int) -> str:
    parts = [counted(passed, "passed case")] if passed else []
    parts += [f"{counted(others, 'case')} that did not pass"] if others else []
    return f"Not listed: {' and '.join(parts)}. The CSV and JSON reports have all cases." if parts else ""


def _anchor(name: str, in_use: set[str]) -> str:
    plain = visible(name)
    anchor, number = plain, 2
    while anchor in in_use:
        anchor, number = f"{plain}~{number}", number + 1
    in_use.add(anchor)
    return anchor


def status_counts(counts: Mapping[str, int]) -> tuple[tuple[Verdict, int], ...]:
    return tuple((Verdict(status), counts[status]) for status in COUNTED_STATUSES if counts.get(status))


def rows(listed: ListedSet, changes: Changes) -> Iterator[CaseRow]:
    """The cases of a set, one at a time."""
    for anchor, case in zip(listed.anchors, listed.cases, strict=True):
        change = changes.by_case.get(case.id)
        yield CaseRow(
            anchor=anchor,
            eval_id=case.eval_id,
            status=case.status.value,
            word=Verdict(case.status.value).word,
            outcome=outcome_span(case),
            why=cut(visible(summary(case)), _MAX_WHY_LENGTH),
            user=cut(" ".join(first_user_text(case).split()), _MAX_USER_LENGTH),
            seconds=show_duration(case.seconds or None),
            cost=case.spent.cost.short if case.spent and may_cost(case.spent) else "",
            change=change.kind if change and change.kind != "unchanged" else "",
            is_regression=case.id in changes.regressions,
            needs_attention=not case.passed,
            tags=listed.eval_set.tags.get(case.eval_id, ()),
        )
