"""The Markdown report, for step summaries and comments on GitHub, GitLab and similar services.

Texts of agents and users are written as code, so that they cannot make a mention, a link, a table cell or a
tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice

from evaltui.core.compare.explain import summary
from evaltui.core.compare.matrix import Matrix, Row
from evaltui.core.compare.totals import Totals
from evaltui.core.cost.cost_lines import cost_lines
from evaltui.core.model.outcome import CaseResult
from evaltui.reports.console import counts_text
from evaltui.reports.details import MAX_WIDTH, case_details
from evaltui.reports.matrix_report import MatrixReport, baseline_lines
from evaltui.runs.report import RunReport
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number
from evaltui.text.lines import Line, draw
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible
from evaltui.views.comparison import comparison_lines
from evaltui.views.matrix import cell_line, matrix_facts, sum_rows
from evaltui.views.run import MAX_TAGS, failure_lines, outcome_span, run_facts
from evaltui.views.variant_verdict import verdict_lines

MARKER = "<!-- evaltui-report -->"
"""The first line, by which a job finds its earlier comment."""
# GitHub: 65,536 characters of a comment, 1 MiB of a step summary. A job may write something above.
MAX_BYTES = 64_000
_MAX_WHY = 200
# For the sentence about what is left out.
_RESERVE = 400
_SPECIAL_CHARACTERS = re.compile(r"[^A-Za-z0-9 ,;()=?%'\u0080-\U0010ffff]")


def markdown_report(report: RunReport) -> str:
    """The text of the report: the verdict, a table of cases that did not pass, changes from the baseline, and
    folded details. At most 64,000 bytes; the end tells what is omitted."""
    count = sum(not case.passes for case in report.summaries)
    not_run = sum(not case.runs for case in report.summaries)
    page = _Page()
    page.add(_head(report, count))
    shown = page.add_rows(_row(name, case) for name, case in _failing_cases(report))
    if lines := list(failure_lines(report.failures, MAX_WIDTH)):
        page.add_block(draw(lines[0], color=False), lines[1:], is_open=True)
    if report.tags:
        page.add(_tags(report.tags))
    if lines := list(cost_lines(report.spent, MAX_WIDTH)):
        page.add_block("Cost", lines)
    if report.comparison is not None:
        page.add_block("Comparison", list(comparison_lines(report.comparison, MAX_WIDTH)), is_open=True)
    detailed = 0
    for name, case in _failing_cases(report):
        # Nothing is known of the others: they come last, and did not run.
        if page.is_full or case.reason:
            break
        detailed += page.add_block(f"{outcome_span(case)[0]} {code(name)}", case_details(case, MAX_WIDTH))
    return page.text + _left_out_text(count, shown, count - not_run - detailed)


class _Page:
    """A page that takes pieces until it is full."""

    def __init__(self) -> None:
        self.text = ""
        self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for details of another case."""
        return self._size > MAX_BYTES - 2 * _RESERVE

    def add(self, piece: str) -> bool:
        """Adds a piece; returns False where there is no room."""
        size = len(piece.encode())
        if self._size + size > MAX_BYTES - _RESERVE:
            return False
        self.text += piece
        self._size += size
        return True

    def add_rows(self, rows: Iterable[str]) -> int:
        """Adds rows to a table and returns their number; half of the page stays free for details."""
        table, size = "| | case | why | time |\n|---|---|---|---:|\n", 0
        count = 0
        for row in rows:
            size += len(row.encode())
            if size > MAX_BYTES // 2:
                break
            table += row
            count += 1
        if count:
            self.add(f"{table}\n")
        return count

    def add_block(self, title: str, lines: Sequence[Line], *, is_open: bool = False) -> bool:
        """Adds folded lines under a title; returns False where there is no room."""
        text = "\n".join(escape(draw(line, color=False), quote=False) for line in lines)
        opened = " open" if is_open else ""
        return self.add(
            f"<details{opened}><summary>{title}</summary>\n\n<pre>\n{text}\n</pre>\n\n</details>\n\n"
        )


def _failing_cases(report: RunReport) -> Iterator[tuple[str, CaseResult]]:
    """The cases that did not pass, with the name of their set; cases that ran come first."""
    for has_run in (True, False):
        for eval_set, cases in report.by_set():
            for number, case in enumerate(cases.summaries):
                if not case.passes and bool(case.runs) is has_run:
                    yield f"{report.name_of(eval_set)}:{case.eval_id}", cases[number]


def _head(report: RunReport, not_passed: int) -> str:
    cases = report.summaries
    mark = glyph(report.status)[0]
    if not cases:
        verdicts = "no case run"
    elif not_passed:
        verdicts = f"{show_number(not_passed)} of {counted(len(cases), 'case')} did not pass"
    else:
        verdicts = f"{counted(len(cases), 'case')} passed"
        # Flaky cases may have passed.
        mark = mark if report.unscored else "✓"
    line = draw(counts_text(report.totals.by_status), color=False)
    facts = run_facts(report)
    took = f"in {facts['took'].text}" if "took" in facts else ""
    parts = [" ".join(filter(None, (line, took)))]
    shown = facts if report.uses_recordings else facts.keys() - {"calls"}
    parts += [f"pass rate {facts['pass rate'].text}"] if "pass rate" in facts else []
    parts += [facts[label].text for label in ("calls", "cost") if label in shown]
    text = " · ".join(filter(None, parts))
    named = [f"{label} {code(facts[label].text)}" for label in ("judge", "simulated user") if label in facts]
    text = " · ".join([text, *named])
    if "mean scores" in facts:
        text += f"\n\nmean scores {code(facts['mean scores'].text)}"
    notes = "".join(f"> {code(note)}\n\n" for note in report.notes)
    return f"{MARKER}\n## {mark} {verdicts} · {code(report.agent)}\n\n{text}\n\n{notes}"


def _row(name: str, case: CaseResult) -> str:
    took = show_duration(case.seconds if case.repeats else None)
    return f"| {outcome_span(case)[0]} | {code(name)} | {code(cut(summary(case), _MAX_WHY))} | {took} |\n"


def _tags(totals: Mapping[str, Totals]) -> str:
    rows = (
        f"| {code(f'#{tag}')} | {total.in_words} | {total.case_rate or UNKNOWN} |\n"
        for tag, total in islice(totals.items(), MAX_TAGS)
    )
    more = f"\nand {counted(len(totals) - MAX_TAGS, 'more tag')}\n" if len(totals) > MAX_TAGS else ""
    return f"| tag | passed | rate |\n|---|---:|---:|\n{''.join(rows)}{more}\n"


def code(text: str) -> str:
    """A text as inline code, without characters that Markdown, a table or HTML would interpret."""
    safe = _SPECIAL_CHARACTERS.sub(lambda match: f"&#{ord(match.group())};", visible(text))
    return f"<code>{safe}</code>" if safe else ""


def _left_out_text(cases: int, rows: int, without_details: int) -> str:
    parts = []
    if rows < cases:
        parts.append(f"{counted(cases - rows, 'more case')} did not pass")
    if without_details:
        parts.append(f"details of {counted(without_details, 'case')} left out")
    return f"… {', '.join(parts)}: the page is full. The HTML and JSON reports have all.\n" if parts else ""


def markdown_matrix(report: MatrixReport) -> str:
    """The text of a matrix report: a table of totals and a table of differing cases. At most 64,000 bytes;
    the end tells what is omitted."""
    matrix, verdicts = report.matrix, _verdicts(report)
    sums = _table(matrix, "", [_line(*row) for row in sum_rows(matrix).items()])
    text = f"{MARKER}\n{_matrix_head(report)}{sums}\n"
    rows = [row for row in matrix.rows if row.differs]
    if not rows:
        if not matrix.is_complete:
            return f"{text}No case differs so far.\n{verdicts}"
        if any(verdict is not None and verdict.undecided for verdict in matrix.verdicts):
            return f"{text}No case differs.\n{verdicts}"
        return f"{text}All cases came out the same in every variant.\n{verdicts}"
    shown: list[str] = []
    room = MAX_BYTES - _RESERVE - len(text.encode()) - len(verdicts.encode())
    for row in rows:
        line = _case(matrix, row)
        room -= len(line.encode())
        if room < 0:
            break
        shown.append(line)
    text += f"### {counted(len(rows), 'case differs', 'cases differ')}\n\n{_table(matrix, 'case', shown)}"
    if left := len(rows) - len(shown):
        text += f"\n… {counted(left, 'more case')}: the page is full. The CSV has all.\n"
    return text + verdicts


def _verdicts(report: MatrixReport) -> str:
    all_lines = (*baseline_lines(report), *verdict_lines(report.matrix))
    lines = "\n".join(code(draw(line, color=False)) for line in all_lines)
    return f"\n<pre>\n{lines}\n</pre>\n" if lines else ""


def _matrix_head(report: MatrixReport) -> str:
    matrix = report.matrix
    facts = matrix_facts(matrix, report.seconds)
    took = f" · in {facts['took']}" if "took" in facts else ""
    notes = "".join(f"> {code(note)}\n\n" for note in report.notes)
    if missing := facts.get("missing"):
        notes += f"> {code(missing) if matrix.not_run else missing} missing\n\n"
    return f"## Matrix · {code(report.agent)}\n\n{facts['size']}{took}\n\n{notes}"


def _table(matrix: Matrix, first: str, rows: Sequence[str]) -> str:
    places = range(len(matrix.columns))
    names = "".join(f" {code(matrix.name(place))} |" for place in places)
    return f"| {first} |{names}\n|---|{'---|' * len(places)}\n{''.join(rows)}"


def _case(matrix: Matrix, row: Row) -> str:
    texts = [draw(cell_line(cell), color=False) for cell in row.cells]
    return _line(code(f"{matrix.set_names[row.case.path]}:{row.case.eval_id}"), texts)


def _line(title: str, texts: Sequence[str]) -> str:
    return f"| {title} |{''.join(f' {text} |' for text in texts)}\n"
