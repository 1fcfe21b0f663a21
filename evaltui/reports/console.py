"""The console reports of a run and of a matrix: a line for each case, details, and totals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from rich.cells import cell_len

from evaltui.core.compare.explain import summary
from evaltui.core.compare.matrix import Matrix, Row
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.cost.cost_lines import cost_lines, may_cost
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.variants import Variant
from evaltui.project.run_settings import RunSettings
from evaltui.reports.details import MAX_WIDTH, case_details, repeat_lines
from evaltui.reports.matrix_report import MatrixReport, baseline_lines
from evaltui.runs.report import ReportedCases, RunReport
from evaltui.runs.run_header import SelectedSet
from evaltui.text.columns import Column, Table
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_score
from evaltui.text.lines import Line, cells, cut, draw, pad, wrap
from evaltui.text.outcomes import ROLES, WORDS, count_text, glyph
from evaltui.text.values import cut as limited
from evaltui.text.values import visible
from evaltui.views.comparison import comparison_lines
from evaltui.views.matrix import cell_line, change_text, matrix_facts, sum_rows
from evaltui.views.run import Fact, config_text, failure_lines, run_facts, tag_lines
from evaltui.views.variant_verdict import verdict_lines

_MIN_WIDTH = 40
# Below it, why a case did not pass has too little room.
_WIDTH_OF_COSTS = 80
# Cases of a set of which those that passed are listed, too.
_MAX_LISTED = 1000
_COUNTED_STATUSES = (Status.PASSED, Status.FAILED, Status.ERROR, Status.NOT_EVALUATED, Status.FLAKY)


def render_console(report: RunReport, *, color: bool, width: int) -> Iterator[str]:
    """The lines of the report for `width` cells, at least 40; only paths and tracebacks may be longer."""
    return (f"{draw(line, color=color)}\n" for line in _report_lines(report, max(width, _MIN_WIDTH)))


def _report_lines(report: RunReport, width: int) -> Iterator[Line]:
    facts = run_facts(report)
    if "python" in facts:
        yield from wrap([("python  ", "muted"), (visible(facts["python"].text), "muted")], width)
    yield from _settings_line(report.settings, width)
    seen: dict[bytes, str] = {}
    for eval_set, cases in report.by_set():
        summaries = tuple(cases.summaries)
        yield cut(_set_header(eval_set, summaries, report), width)
        yield [(f"config  {config_text(eval_set)}", "muted")]
        listed = _listed_cases(cases, summaries)
        yield from case_lines(listed, width)
        if len(listed) < len(cases):
            yield [(f"  {_unlisted_text(summaries)} not listed", "muted")]
        yield []
        yield from _all_details(eval_set.eval_set_id, listed, width, seen)
    if failures := list(failure_lines(report.failures, width)):
        yield from [*failures, []]
    if report.comparison is not None:
        yield from comparison_lines(report.comparison, width)
        yield []
    if tags := list(tag_lines(report, width)):
        yield from [*tags, []]
    for note in report.notes:
        yield from wrap(note_line(note), width)
    for label in ("pass rate", "mean scores", "judge", "simulated user"):
        if label in facts:
            yield from wrap([(f"{label}  ", "muted"), (visible(facts[label].text), "")], width)
    yield from cost_lines(report.spent, width)
    yield from _sum_lines(report, facts, width)


# Other lines of the report show these.
_SETTINGS_ELSEWHERE = ("parallel", "record", "results-dir")


def _settings_line(settings: RunSettings, width: int) -> Iterator[Line]:
    """The settings that differ from the defaults, for a project with settings."""
    defaults = RunSettings().to_json()
    chosen = [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.to_json().items()
        if value != defaults[name] and name not in _SETTINGS_ELSEWHERE
    ]
    limits = [(f"limits  {visible('; '.join(map(str, settings.limits)))}", "muted")]
    if settings.limits:
        yield from wrap(limits, width)
    if settings.file is not None and chosen:
        yield from wrap([("settings  ", "muted"), (visible(", ".join(chosen)), "muted")], width)


def _listed_cases(cases: ReportedCases, summaries: Sequence[CaseSummary]) -> Sequence[CaseResult]:
    """The listed cases: all of them, but for a large set only those that ran and did not pass."""
    if len(cases) <= _MAX_LISTED:
        # Gone through several times.
        return tuple(cases)
    numbers = [
        number
        for number, summary in enumerate(summaries)
        if summary.runs and summary.status is not Status.PASSED
    ]
    return cases.only(numbers)


def _unlisted_text(summaries: Sequence[CaseSummary]) -> str:
    passed = sum(summary.status is Status.PASSED for summary in summaries)
    not_run = sum(not summary.runs for summary in summaries)
    parts = [counted(passed, "passed case")] if passed else []
    parts += [f"{counted(not_run, 'case')} that did not run"] if not_run else []
    return " and ".join(parts)


def _set_header(eval_set: SelectedSet, summaries: Sequence[CaseSummary], report: RunReport) -> Line:
    number = counted(len(summaries), "case")
    # A run that was ended has done fewer.
    repeats = ((eval_set.config or {}).get("evaltui") or {}).get("repeats") or {}
    most, runs = "", report.settings.runs or repeats.get("runs", 1)
    if eval_set.conversations is not None:
        # Conversations of traces are the repeats, as many as there are of each case.
        runs, most = 1, "at most " if any(case.runs > 1 for case in summaries) else ""
    for case in summaries:
        runs = max(runs, case.runs)
        most = "at most " if case.decision else most
    each = f"{most}{counted(runs, 'run')} each"
    recordings = f"recordings {report.settings.record}, " if report.uses_recordings else ""
    return [
        (visible(report.name_of(eval_set)), "bold"),
        (f" ({number}, {each}, {recordings}{report.settings.parallel} at once)", ""),
    ]


@dataclass(frozen=True, slots=True)
class _Row:
    """The line of a case, in parts."""

    status: Status
    eval_id: str
    figure: str
    cost: str
    is_costly: bool
    """Whether a model call of the case cost something."""
    why: Line


def case_lines(cases: Iterable[CaseResult], width: int) -> Iterator[Line]:
    """A line for each case: its outcome with a short reason."""
    rows = [_make_row(case, width) for case in cases]
    ids = max((cell_len(row.eval_id) for row in rows), default=0)
    ids = min(ids, width // 3)
    column = max((len(row.figure) for row in rows), default=0)
    has_costs = width >= _WIDTH_OF_COSTS and any(row.is_costly for row in rows)
    costs = max((len(row.cost) for row in rows), default=0)
    for row in rows:
        line: Line = [
            glyph(row.status),
            (f" {pad(row.eval_id, ids)}  {row.figure:>{column}}  ", ""),
            (f"{row.cost:>{costs}}  " if has_costs else "", "muted"),
            *row.why,
        ]
        yield cut(line, width)


def _make_row(case: CaseResult, width: int) -> _Row:
    spent = case.spent
    return _Row(
        case.status,
        visible(case.eval_id),
        _figure(case),
        UNKNOWN if spent is None else spent.cost.short,
        may_cost(spent),
        # Of a hundred thousand cases, all that they say would be too much.
        cut([(summary(case), "")], width),
    )


def _figure(case: CaseResult) -> str:
    if case.status is Status.FLAKY:
        return f"{case.passed_repeats}/{len(case.repeats)} {WORDS[case.status]}"
    if case.decision is not None or case.is_partly_evaluated:
        return f"{case.passed_repeats}/{len(case.repeats)}"
    if case.status is Status.ERROR:
        return "error"
    deciding = (metric.score for metric in case.metrics if metric.status is case.status)
    score = next(deciding, None)
    return show_score(score)


@dataclass(slots=True)
class _Details:
    """The details of a case, and other cases with the same details."""

    number: int
    lines: Sequence[Line] | None
    """The lines; None where they are made again later, because those of many cases need too much memory."""
    others: list[str]


def _all_details(
    set_id: str, cases: Sequence[CaseResult], width: int, seen: dict[bytes, str]
) -> Iterator[Line]:
    """The details of every case that did not pass.

    Details that several cases share, such as an agent error, are written once. A flaky case that its policy
    lets pass gets the lines about its repeats. `seen` has the details of earlier sets, each with its first
    case.
    """
    by_text: dict[bytes, _Details] = {}
    for number, case in enumerate(cases):
        if case.status is not Status.PASSED and not case.reason:
            lines = _details(case, width)
            text = "\n".join(draw(line, color=False) for line in lines)
            key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            if (same := by_text.get(key)) is None:
                by_text[key] = _Details(number, lines if len(by_text) < _MAX_LISTED else None, [])
            else:
                same.others.append(visible(case.eval_id))
    for key, group in by_text.items():
        first = cases[group.number]
        yield _rule_line(first, width)
        if key in seen:
            yield cut([("  ", ""), (f"as {seen[key]}", "")], width)
        else:
            seen[key] = visible(f"{set_id} › {first.eval_id}")
            yield from group.lines or _details(first, width)
        if group.others:
            yield []
            also = [(f"also {', '.join(group.others)}", "")]
            yield from ([("  ", ""), *line] for line in wrap(also, width - 2))
        yield []


def _details(case: CaseResult, width: int) -> list[Line]:
    return repeat_lines(case, min(width, MAX_WIDTH)) if case.passed else case_details(case, width)


def _rule_line(case: CaseResult, width: int) -> Line:
    head: Line = [
        ("── ", "muted"),
        glyph(case.status),
        (f" {visible(case.eval_id)} ", "bold"),
    ]
    return cut([*head, ("─" * (min(width, MAX_WIDTH) - cells(head)), "muted")], width)


def note_line(note: str) -> Line:
    return [("note  ", "warning"), (visible(note), "")]


def counts_text(by_status: Mapping[str, int]) -> Line:
    """The counts of cases by status: `4 passed, 1 error`; "" for none."""
    line: Line = []
    for status in _COUNTED_STATUSES:
        if number := by_status.get(status):
            line += [(", ", "")] if line else []
            line.append((count_text(status, number), ROLES[status]))
    return line


def _sum_lines(report: RunReport, facts: Mapping[str, Fact], width: int) -> Iterator[Line]:
    line = counts_text(report.totals.by_status) or [("no case run", "warning")]
    if report.error_kinds:
        named = ", ".join(f"{number} {kind}" for kind, number in report.error_kinds.items())
        line.append((f" ({named})", ""))
    if "took" in facts:
        line.append((f" in {facts['took'].text}", ""))
    if waits := [case.throttled for case in report.summaries if case.throttled]:
        each = " per case" if len(report.summaries) > 1 else ""
        line.append((f", throttled {show_duration(sum(waits) / len(waits))}{each}", ""))
    if "recordings" in facts:
        line.append((f" · {facts['calls'].text}", ""))
    log: Line = [(f"log {visible(facts['log'].text)}", "muted")] if "log" in facts else []
    if log and cells(line) + 3 + cells(log) <= width:
        yield [*line, (" · ", "muted"), *log]
    else:
        yield from wrap(line, width)
        yield from [log] if log else []


# From so many cases on, only those are shown that differ.
_MANY_CASES = 40
_GAP = 2
_MIN_CELLS = 12
_MAX_TITLE = 32


def render_matrix(report: MatrixReport, *, color: bool, width: int) -> str:
    """The text of the report for `width` cells, at least 40; variants that do not fit are in further
    tables."""
    width = max(width, _MIN_WIDTH)
    return "".join(f"{draw(line, color=color)}\n" for line in _report(report, width))


def _report(report: MatrixReport, width: int) -> Iterator[Line]:
    matrix = report.matrix
    head: Line = [(f"matrix {visible(report.id)}", "bold")]
    facts = matrix_facts(matrix, report.seconds)
    yield [*head, (f" ({facts['size']})", "")]
    yield from _variants(report, width)
    yield []
    rows, alike = _shown_rows(matrix)
    for columns in _blocks(matrix, rows, width):
        yield from _table(matrix, rows, columns)
        yield []
    if alike:
        yield [(f"{counted(alike, 'case')} alike in all variants not shown; csv and json have all", "muted")]
    for line in baseline_lines(report):
        yield from wrap(line, width)
    for note in report.notes:
        yield from wrap(note_line(note), width)
    if "missing" in facts:
        yield from wrap([(f"{visible(facts['missing'])} missing", "warning")], width)
    for verdict in verdict_lines(matrix):
        yield from wrap(verdict, width)
    if "took" in facts:
        yield [(f"in {facts['took']}", "muted")]


def _variants(report: MatrixReport, width: int) -> Iterator[Line]:
    """The changes of each variant, as reported by its host, else as configured."""
    names = [visible(report.matrix.name(place)) for place in range(len(report.matrix.columns))]
    longest = max(map(cell_len, names))
    for name, run, done, log in zip(names, report.matrix.columns, report.changes, report.logs, strict=True):
        changes = ", ".join(_change(**change) for change in done) or variant_text(run.variant)
        lines = [*wrap([(visible(changes), "")], width - longest - _GAP)]
        if log is not None:
            lines += wrap([(f"log {visible(log)}", "muted")], width - longest - _GAP)
        for number, line in enumerate(lines):
            yield [(pad("" if number else name, longest + _GAP), "bold"), *line]


def _change(what: str, old: str, new: str) -> str:
    return f"{what} {limited(old, _MAX_TITLE)} → {limited(new, _MAX_TITLE)}" if old else f"{what} {new}"


def variant_text(variant: Variant | None) -> str:
    """The changes of a variant: `model=gemini-2.5-pro, config.temperature=0`; a note for a variant without
    changes."""
    if variant is None or not variant.changes:
        return "the agent as it is"
    return ", ".join(f"{change.key}={change_text(change)}" for change in variant.changes)


def _shown_rows(matrix: Matrix) -> tuple[list[Row], int]:
    """The rows of the table, and the number of omitted rows without differences."""
    if len(matrix.rows) <= _MANY_CASES:
        return list(matrix.rows), 0
    rows = [row for row in matrix.rows if row.differs]
    return rows, len(matrix.rows) - len(rows)


# The cells of a line of the table: of its title, then of each variant.
_Cells = Sequence[Line]


def _blocks(matrix: Matrix, rows: Sequence[Row], width: int) -> Iterator[list[Column[_Cells]]]:
    """The columns of each table, as many as fit in the width; the titles come first."""
    names = [cell_len(visible(row.case.eval_id)) + 2 for row in rows]
    first = min(max([*names, *map(len, sum_rows(matrix))]), width // 3)
    titles: Column[_Cells] = Column("", itemgetter(0), first, gap=0)
    left, block = width - first, [titles]
    for place in range(len(matrix.columns)):
        texts = [visible(matrix.name(place)), *(texts[place] for texts in sum_rows(matrix).values())]
        widths = [*map(cell_len, texts), *(cells(cell_line(row.cells[place])) for row in rows)]
        needed = min(max(_MIN_CELLS, *widths), width - first - _GAP)
        if len(block) > 1 and needed + _GAP > left:
            yield block
            left, block = width - first, [titles]
        block.append(Column("", itemgetter(place + 1), needed))
        left -= needed + _GAP
    yield block


def _table(matrix: Matrix, rows: Sequence[Row], columns: Sequence[Column[_Cells]]) -> Iterator[Line]:
    table = Table(columns, (), 0)
    places = range(len(matrix.columns))
    yield table.line([[], *([(visible(matrix.name(place)), "bold")] for place in places)])
    label = ""
    for row in rows:
        if row.case.path != label:
            label = row.case.path
            yield [(visible(matrix.set_names[label]), "bold")]
        title: Line = [(f"  {visible(row.case.eval_id)}", "")]
        yield table.line([title, *map(cell_line, row.cells)])
    yield [("─" * sum(column.min_width + column.gap for column in columns), "muted")]
    for text, texts in sum_rows(matrix).items():
        yield table.line([[(text, "muted")], *([(figure, "")] for figure in texts)])
