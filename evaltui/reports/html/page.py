"""The page: what ran, the list of cases, and those cases that need no script to be read."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from evaltui.core.compare.comparison_lines import comparison_lines
from evaltui.core.compare.run_comparison import CaseChange
from evaltui.core.cost.cost_lines import estimate, is_worth_telling, model_lines
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.reports.html.case_view import (
    Verdict,
    case_view,
    first_user_text,
    row_summary,
    status_line,
)
from evaltui.reports.html.templates import environment, markup, own_text, policy
from evaltui.reports.model import RunReport, verdict
from evaltui.reports.tag_totals import tag_totals
from evaltui.runs.sets import SetInfo
from evaltui.text.figures import counted, show_duration
from evaltui.text.lines import Line
from evaltui.text.outcomes import COUNTED
from evaltui.text.values import cut, visible

# Cases that are HTML, those that did not pass first; the others are data that is read when they are opened.
MOST_CASES = 200
# Characters of HTML up to which further cases are HTML: any, and those that passed.
_MOST_CHARACTERS, _MOST_OF_PASSED = 1_450_000, 1_000_000
# Cases of one piece of data.
_IN_A_BLOCK = 50
_LONGEST_WHY, _LONGEST_USER = 160, 80
_COMPARISON_WIDTH = 100


@dataclass(frozen=True)
class CaseRow:
    """A case in the list."""

    anchor: str
    """What a link to it names, `orders:late_order`; another one for each case."""
    eval_id: str
    status: str
    word: str
    line: Line
    why: str
    user: str
    seconds: str
    cost: str
    """`$0.0042`; "" where no model was asked that costs something."""
    change: str
    """How it differs from the baseline, `broken`; "" where it does not."""
    is_regression: bool
    needs_attention: bool
    tags: tuple[str, ...]


@dataclass(frozen=True)
class SetRows:
    """An eval set and its cases."""

    name: str
    config: str
    path: str
    counts: tuple[tuple[Verdict, int], ...]
    rows: tuple[CaseRow, ...]


def html_report(report: RunReport) -> str:
    """One file: styles, script and data are part of it, and its policy forbids everything else."""
    sets = _sets(report)
    bodies = _Bodies(report)
    rows = {
        row.anchor: case
        for one, cases in zip(sets, _cases(report), strict=True)
        for row, case in zip(one.rows, cases, strict=True)
    }
    bodies.write(rows)
    script, style = own_text("report.js"), own_text("report.css")
    counts = Counter(case.status for case in report.result.cases)
    page: str = (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            title=_title(report),
            verdict=Verdict(report.result.status),
            facts=dict(_facts(report)),
            counts=_counts(counts),
            changes=_changes(report),
            costs=_costs(report),
            comparison=_comparison(report),
            tags=tag_totals(report),
            sets=sets,
            bodies=bodies.html,
            places=bodies.places,
            blocks=bodies.blocks,
            opened=next((row.anchor for one in sets for row in one.rows if row.needs_attention), ""),
            script=markup(script),
            style=markup(style),
            policy=policy(style, script),
        )
    )
    return page


class _Bodies:
    """What is seen of cases when they are open: HTML by anchor, or a place in the data."""

    def __init__(self, report: RunReport) -> None:
        self._report = report
        self._template = environment().get_template("case.html.j2")
        self._names = {info.known_as: report.name_of(info) for info in report.sets}
        self.html: dict[str, Any] = {}
        self.places: dict[str, str] = {}
        """`2.17`: the number of a block, and of a case in it."""
        self.blocks: list[str] = []

    def write(self, cases: Mapping[str, CaseResult]) -> None:
        first = sorted(cases, key=lambda anchor: not _needs_attention(cases[anchor]))
        written, waiting = 0, []
        for anchor in first:
            body = self._body(cases[anchor])
            most = _MOST_CHARACTERS if _needs_attention(cases[anchor]) else _MOST_OF_PASSED
            if len(self.html) < MOST_CASES and written + len(body) <= most:
                self.html[anchor] = markup(body)
                written += len(body)
            else:
                waiting.append((anchor, body))
                if len(waiting) == _IN_A_BLOCK:
                    self._close(waiting)
                    waiting = []
        if waiting:
            self._close(waiting)

    def _close(self, waiting: Sequence[tuple[str, str]]) -> None:
        for number, (anchor, _) in enumerate(waiting):
            self.places[anchor] = f"{len(self.blocks)}.{number}"
        text = json.dumps([body for _, body in waiting])
        # Without the time: the same run makes the same report.
        self.blocks.append(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode())

    def _body(self, case: CaseResult) -> str:
        events = self._report.events(case.id)
        view = case_view(case, events, self._command(case))
        body: str = self._template.render(case=view)
        return body

    def _command(self, case: CaseResult) -> str:
        address = self._report.address
        # A comma would divide the id.
        if not address or "," in case.eval_id:
            return ""
        name = case.eval_set_id
        if Counter(self._names.values())[name] != 1:
            name = case.path
        return f"evaltui run {address} {shlex.quote(visible(f'{name}:{case.eval_id}'))}"


def _sets(report: RunReport) -> tuple[SetRows, ...]:
    changes = {one.case: one for one in report.comparison.cases} if report.comparison else {}
    taken: set[str] = set()
    regressions = {one.case for one in report.comparison.regressions} if report.comparison else set()
    return tuple(
        SetRows(
            name=report.name_of(info),
            config=_config(info),
            path=str(info.path),
            counts=_counts(Counter(case.status for case in cases)),
            rows=tuple(_row(case, info, report.name_of(info), changes, regressions, taken) for case in cases),
        )
        for info, cases in report.by_set()
    )


def _cases(report: RunReport) -> list[Sequence[CaseResult]]:
    return [cases for _, cases in report.by_set()]


def _row(
    case: CaseResult,
    info: SetInfo,
    set_name: str,
    changes: Mapping[CaseId, CaseChange],
    regressions: Collection[CaseId],
    taken: set[str],
) -> CaseRow:
    change = changes.get(case.id)
    return CaseRow(
        anchor=_anchor(f"{set_name}:{case.eval_id}", taken),
        eval_id=case.eval_id,
        status=case.status.value,
        word=Verdict(case.status.value).word,
        line=status_line(case),
        why=cut(visible(row_summary(case)), _LONGEST_WHY),
        user=cut(" ".join(first_user_text(case).split()), _LONGEST_USER),
        seconds=show_duration(sum(repeat.seconds for repeat in case.repeats) if case.repeats else None),
        cost=case.spent.cost.short if case.spent and is_worth_telling(case.spent) else "",
        change=change.kind if change and change.kind != "unchanged" else "",
        is_regression=case.id in regressions,
        needs_attention=_needs_attention(case),
        tags=info.tags.get(case.eval_id, ()),
    )


def _needs_attention(case: CaseResult) -> bool:
    return verdict(case) is not Status.PASSED


def _anchor(name: str, taken: set[str]) -> str:
    wanted = visible(name)
    anchor, number = wanted, 2
    while anchor in taken:
        anchor, number = f"{wanted}~{number}", number + 1
    taken.add(anchor)
    return anchor


def _counts(counts: Mapping[Status, int]) -> tuple[tuple[Verdict, int], ...]:
    known = {status.value: number for status, number in counts.items()}
    return tuple((Verdict(status), known[status]) for status in COUNTED if known.get(status))


def _changes(report: RunReport) -> tuple[tuple[str, int], ...]:
    """The chips of a comparison: regressions, and what was fixed."""
    if report.comparison is None:
        return ()
    shown = {case.id for case in report.result.cases}
    kinds = Counter(one.kind for one in report.comparison.cases if one.case in shown)
    regressions = sum(one.case in shown for one in report.comparison.regressions)
    chips = (("regression", regressions), *((kind, kinds[kind]) for kind in ("fixed", "new")))
    return tuple((name, number) for name, number in chips if number)


def _comparison(report: RunReport) -> list[Line]:
    return [] if report.comparison is None else list(comparison_lines(report.comparison, _COMPARISON_WIDTH))


def _costs(report: RunReport) -> list[Line]:
    """A line for each payer and model; the sum is among the facts."""
    return list(model_lines(report.spent, _COMPARISON_WIDTH))


def _title(report: RunReport) -> str:
    cases = report.result.cases
    passed = sum(verdict(case) is Status.PASSED for case in cases)
    return f"{passed}/{counted(len(cases), 'case')} passed · {report.agent}"


def _facts(report: RunReport) -> Iterator[tuple[str, str]]:
    """What ran, and how, as label and text."""
    yield "started", report.started.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if report.seconds is not None:
        yield "took", show_duration(report.seconds)
    if found := report.rates:
        yield "pass rate", found.in_words
        if found.scores_in_words:
            yield "mean scores", found.scores_in_words
    if report.model:
        yield "model", report.model
    if report.python:
        yield "python", report.python
    if report.uses_recordings:
        yield "recordings", report.record
    if any(vars(report.calls).values()):
        yield "calls", str(report.calls)
    spent = report.spent
    if spent is not None and is_worth_telling(spent):
        yield "cost", ", ".join(filter(None, [str(spent.cost), estimate(spent)]))
    if report.log:
        yield "log", report.log


def _config(info: SetInfo) -> str:
    if not info.knows_file:
        return "config as in the run log"
    if info.config_path is not None:
        return f"config {info.config_path}"
    defaults = ", ".join(info.defaulted)
    return f"config defaults: {defaults}" if defaults else ""
