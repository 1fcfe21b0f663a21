"""The rows of the criteria, and the details of the current one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from textual import events
from textual.message import Message

from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import show_score, some_of
from evaltui.text.lines import Line, pad, wrap_behind
from evaltui.text.outcomes import glyph
from evaltui.text.values import show_value, visible
from evaltui.tui.pages.writer import Page
from evaltui.tui.screens.prompt import moves
from evaltui.tui.widgets.lines import CursorLines
from evaltui.workbench.criteria import Criteria, Section
from evaltui.workbench.criteria_rows import (
    MetricRow,
    OptionRow,
    ReferenceRow,
    Row,
    RubricRow,
    SettingRow,
    Trial,
)

# From here on a slider is long and the mean is shown.
_ROOMY = 70
_SHORT, _LONG = 8, 12
# What stands around the name of a metric in use, its slider and the mean apart.
_FIGURES, _MEAN = 33, 11
_MOST_FLIPS = 12


class Shown(NamedTuple):
    """A line of the list: a row, a title, a problem, or nothing."""

    line: Line
    row: Row | None = None


class CriteriaRows(CursorLines, can_focus=True, inherit_bindings=False):
    """Every row of the criteria below the titles of its section; only rows have the cursor."""

    BINDINGS = moves()

    class Slid(Message):
        """The user clicked into a slider."""

        def __init__(self, row: MetricRow, threshold: float) -> None:
            super().__init__()
            self.row = row
            self.threshold = threshold

    def __init__(self, criteria: Criteria, *, id: str) -> None:
        super().__init__(id=id)
        self._criteria = criteria
        self._shown: list[Shown] = []
        self._name_cells = 0
        self._slider_cells = _LONG
        self._roomy = True

    @property
    def current(self) -> Row | None:
        return self._shown[self.cursor].row if self.cursor < len(self._shown) else None

    def rows(self) -> Iterator[Row]:
        return (shown.row for shown in self._shown if shown.row is not None)

    def follow(self) -> None:
        if problem := self._criteria.unreadable():
            self._shown = self._problem(problem, "error")
        else:
            sections = self._criteria.sections()
            self._roomy = self.line_width >= _ROOMY
            self._slider_cells = _LONG if self._roomy else _SHORT
            taken = _FIGURES + self._slider_cells + (_MEAN if self._roomy else 0)
            self._name_cells = _name_cells(sections, self.line_width - taken)
            self._shown = list(self._lines(sections))
        self.lines_changed(len(self._shown))
        self._snap(1)

    def on_resize(self) -> None:
        self.follow()
        self.show_line(self.cursor)

    def go_to(self, row: Row) -> None:
        """To the row that is of the same thing, wherever it is now."""
        wanted = _identity(row)
        for number, shown in enumerate(self._shown):
            if shown.row is not None and _identity(shown.row) == wanted:
                self.move_to(number)
                return

    def stay_in_use(self) -> None:
        """To the metric in use that is nearest to where the cursor is, if there is any."""
        used = [
            number
            for number, shown in enumerate(self._shown)
            if isinstance(shown.row, MetricRow) and shown.row.asked
        ]
        if used:
            self.move_to(min(used, key=lambda number: abs(number - self.cursor)))

    # Drawing

    def _problem(self, problem: str, role: str) -> list[Shown]:
        """All of a problem, in as many lines as it takes."""
        width = max(24, self.line_width)
        return [Shown(line) for line in wrap_behind([(" ! ", role)], [(visible(problem), "")], width)]

    def _lines(self, sections: list[Section]) -> Iterator[Shown]:
        for problem in self._criteria.problems():
            yield from self._problem(str(problem), "warning")
        for number, section in enumerate(sections):
            if number:
                yield Shown([])
            yield Shown([(f" {section.title}", "bold")])
            if not section.rows:
                yield Shown([("   nothing: nothing is scored", "warning" if number == 0 else "muted")])
            for row in section.rows:
                yield Shown([], row)

    def line(self, number: int) -> Line:
        shown = self._shown[number]
        if shown.row is None:
            return shown.line
        here = number == self.cursor
        marker = ("▌ " if here else "  ", "bold accent" if self.has_focus else "muted")
        return [marker, *self._row_line(shown.row, here=here)]

    def row_role(self, number: int) -> str:
        return super().row_role(number) if self._shown[number].row is not None else ""

    def _row_line(self, row: Row, *, here: bool) -> Line:
        match row:
            case MetricRow(asked=True):
                return self._used_line(row, here=here)
            case MetricRow():
                return self._unused_line(row)
            case OptionRow(option=option):
                value = f"{len(row.value)}" if option.kind == "rubrics" else _shown_value(row.value)
                role = "" if row.given else "muted"
                missing: Line = [("  needed", "warning")] if row.value is None else []
                label = pad(option.name, max(0, self._name_cells - 2))
                return [("  ", ""), (label, "muted"), ("  ", ""), (value, role), *missing]
            case RubricRow(text=text):
                return [("    ", ""), (f"{row.index + 1} ", "muted"), (visible(text), "")]
            case SettingRow(name=name):
                return [
                    (pad(name, self._name_cells), ""),
                    ("  ", ""),
                    (_shown_value(row.value), "" if row.given else "muted"),
                ]
            case ReferenceRow(text=text, dangling=dangling):
                wrong: Line = [(f"  ! {visible(dangling)}", "warning")] if dangling else []
                return [(visible(text), ""), *wrong]

    def _used_line(self, row: MetricRow, *, here: bool) -> Line:
        name: Line = [(pad(visible(row.name), self._name_cells), "")]
        number = "" if row.threshold is None else show_score(row.threshold)
        line: Line = [
            *name,
            ("  ", ""),
            *_slider(row, self._slider_cells, here=here),
            ("  ", ""),
            (f"{number:>5}", "bold"),
        ]
        changed = row.saved != row.threshold
        line.append((" *" if changed else "  ", "bold accent"))
        return [*line, ("  ", ""), *_outcome(row, mean=self._roomy)]

    def _unused_line(self, row: MetricRow) -> Line:
        text = visible(row.name)
        name = (text.ljust(self._name_cells), "muted" if row.why_not else "")
        if row.why_not:
            return [name, ("  ", ""), glyph("NOT_EVALUATED"), (f" {visible(row.why_not)}", "muted")]
        if not row.gates:
            mean = "" if row.trial.mean is None else f"{show_score(row.trial.mean)}  "
            return [name, ("  ", ""), glyph("INFORMATIONAL"), (f" {mean}measured in every run", "muted")]
        ends = f"{row.interval[0]:g} to {row.interval[1]:g}" if row.interval else "0 and up"
        needs = f"  needs {', '.join(row.needs)}" if row.needs else ""
        return [name, (f"  {ends}{needs}", "muted")]

    # Keys and mouse

    def move_to(self, number: int) -> None:
        before = self.cursor
        self.cursor = max(0, min(number, self.line_count - 1))
        self._snap(1 if number >= before else -1)
        # The title above the first row is to be seen with it.
        self.show_line(0 if self.cursor <= 1 else self.cursor)
        self.refresh()
        if self.cursor != before:
            self.post_message(self.Moved())

    def _snap(self, direction: int) -> None:
        """From a line that is no row to the next one that is: onwards, else back."""
        places = [number for number, shown in enumerate(self._shown) if shown.row is not None]
        if not places:
            self.cursor = 0
        elif self.cursor not in places:
            ahead = [number for number in places if (number - self.cursor) * direction > 0]
            self.cursor = min(ahead or places, key=lambda number: abs(number - self.cursor))

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number >= len(self._shown) or self._shown[number].row is None:
            return
        super().on_click(event)
        # Textual would hand the click to the class above once more.
        event.prevent_default()
        row = self._shown[number].row
        left = 2 + self._name_cells + 2
        if (
            isinstance(row, MetricRow)
            and row.asked
            and row.interval
            and 0 <= event.x - left < self._slider_cells
        ):
            low, high = row.interval
            share = (event.x - left) / (self._slider_cells - 1)
            self.post_message(self.Slid(row, round(low + share * (high - low), 2)))


def _name_cells(sections: list[Section], room: int) -> int:
    """The width of the column of names: that of the longest one in use, as far as there is room."""
    metrics = [row for section in sections for row in section.rows if isinstance(row, MetricRow)]
    every = max((len(row.name) for row in metrics), default=0)
    used = max((len(row.name) for row in metrics if row.asked), default=0)
    return every if every <= room else max(12, min(used, room))


def _identity(row: Row) -> Hashable:
    match row:
        case MetricRow(name=name) | SettingRow(name=name):
            return name
        case OptionRow(metric=metric, option=option):
            return metric, option.path
        case RubricRow(metric=metric, index=index):
            return metric, index
        case ReferenceRow(block=block, index=index):
            return block, index


def _shown_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else visible(value) if isinstance(value, str) else show_value(value)


def _slider(row: MetricRow, width: int, *, here: bool) -> Line:
    if row.threshold is None or row.interval is None:
        return [(" " * width, "")]
    low, high = row.interval
    share = (row.threshold - low) / (high - low) if high > low else 0.0
    knob = round(min(max(share, 0.0), 1.0) * (width - 1))
    role = "bold accent" if here else ""
    return [("━" * knob, role or "muted"), ("●", role), ("─" * (width - 1 - knob), "muted")]


def _outcome(row: MetricRow, *, mean: bool) -> Line:
    """How many cases of the last run pass at the threshold."""
    trial = row.trial
    if row.why_not:
        return [glyph("NOT_EVALUATED"), (f" {visible(row.why_not)}", "muted")]
    if not trial.scored:
        return [("not scored yet", "muted")]
    mark, role = glyph("PASSED" if trial.passing == trial.scored else "FAILED")
    flips = len(trial.now_pass) + len(trial.now_fail)
    line: Line = [(f"{mark} {trial.passing} of {trial.scored}", role)]
    line += [(f"  {flips} flip", "bold accent")] if flips else []
    return [*line, (f"  mean {show_score(trial.mean)}", "muted")] if mean else line


def write_details(page: Page, row: Row) -> None:
    """What a row means, and what a threshold does to the last run."""
    match row:
        case MetricRow():
            _write_metric(page, row)
        case OptionRow(option=option):
            page.text([(f"{option.name}  ", "bold"), (visible(option.meaning), "")])
            if option.default is not None and option.kind != "rubrics":
                page.row((f"default {_shown_value(option.default)}", "muted"))
            if option.choices:
                page.text([(f"one of {', '.join(option.choices)}", "muted")])
        case RubricRow(text=text):
            page.text([(visible(text), "")])
        case SettingRow(name=name, meaning=meaning):
            page.text([(f"{name}  ", "bold"), (meaning, "")])
            page.row(("in the evaltui block, which adk eval passes over", "muted"))
        case ReferenceRow(text=text, dangling=dangling):
            page.text([(visible(text), "")])
            if dangling:
                page.text([(visible(dangling), "")], [("! ", "warning")])
            page.row(("delete takes it out", "muted"))


def _write_metric(page: Page, row: MetricRow) -> None:
    about: Line = [(f"{visible(row.name)}  ", "bold"), (visible(row.meaning), "")]
    page.text(about)
    facts = [f"from {row.interval[0]:g} to {row.interval[1]:g}" if row.interval else "0 and up"]
    if row.assumed:
        facts = ["the config does not say its range"]
    facts += ["lower is better"] if row.lower_is_better else []
    facts += [f"needs {', '.join(row.needs)}"] if row.needs else []
    facts += ["ADK has no such metric: adk eval passes over it"] if row.ours else []
    page.text([(" · ".join(facts), "muted")])
    if row.why_not:
        page.text([(visible(row.why_not), "")], [glyph("NOT_EVALUATED"), (" ", "")])
    if row.asked:
        _write_trial(page, row, row.trial)


def _write_trial(page: Page, row: MetricRow, trial: Trial) -> None:
    if not trial.scored:
        if not row.why_not:
            page.row(("run the cases, then see here how many pass at which threshold", "muted"))
        return
    if row.threshold is None:
        page.row(("its threshold is not a number", "warning"))
        return
    saved = "" if row.saved is None or row.saved == row.threshold else f"; saved is {row.saved:g}"
    page.text(
        [(f"At {row.threshold:g}, {trial.passing} of {trial.scored} cases of the last run pass{saved}.", "")]
    )
    for cases, status, word in (
        (trial.now_pass, "PASSED", "now pass"),
        (trial.now_fail, "FAILED", "now fail"),
    ):
        if cases:
            page.text([(_named(cases), "")], [glyph(status), (f" {word}  ", "muted")])


def _named(cases: tuple[CaseId, ...]) -> str:
    return some_of([visible(case.eval_id) for case in cases], _MOST_FLIPS)
