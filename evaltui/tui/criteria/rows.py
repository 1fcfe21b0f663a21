"""The list of the criteria: rows in sections, with a cursor and mouse clicks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from textual import events
from textual.message import Message

from evaltui.core.metrics.declaration import Subject
from evaltui.core.model.problems import Problem
from evaltui.project.run_settings import RunSettings
from evaltui.text.figures import counted, show_number, show_score, show_threshold
from evaltui.text.glyphs import BAR, EMPTY_BAR
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells, cut, join_ends, pad, wrap_behind
from evaltui.text.outcomes import glyph
from evaltui.text.syntax import value_line
from evaltui.text.values import visible
from evaltui.tui.dialogs.prompt import move_bindings
from evaltui.tui.widgets.lines import CursorLines
from evaltui.workbench.criteria.criteria import POLICY, Criteria, Section
from evaltui.workbench.criteria.rows import (
    MetricRow,
    OptionRow,
    ReferenceRow,
    Row,
    RubricRow,
    SettingRow,
)

# What all metrics of a group need.
_SHARED_NEEDS: Mapping[Subject, tuple[str, ...]] = {
    "Judge": ("a judge model",),
    "Simulated user": ("a scenario", "a judge model"),
}
# Cells of a slider, of what stands around it, and of the mean.
_SHORT_SLIDER, _LONG_SLIDER = 8, 12
_FIGURES_WIDTH, _MEAN_WIDTH = 25, 11
_MIN_NAME = 12
_MIN_PREVIEW = 12
# Cells of the range and the requirements of a metric that is not in use.
_RANGE_WIDTH = 30


class Group(NamedTuple):
    """Metrics that are not in use, with the same subject."""

    subject: Subject
    rows: tuple[MetricRow, ...]
    is_open: bool


class Columns(NamedTuple):
    """The widths of the columns of a metric in use."""

    name: int
    slider: int
    mean: bool
    """Whether the mean is shown."""
    unused: int
    """Cells of the names of metrics that are not in use."""


def columns_of(rows: Sequence[MetricRow], width: int) -> Columns:
    """The widest columns that fit: the slider is shortened first, then the mean is dropped, then names are
    cut."""
    longest, unused = (
        max((len(visible(row.name)) for row in rows if row.in_use is in_use), default=0)
        for in_use in (True, False)
    )
    name = max(longest, _MIN_NAME)
    unused = min(unused, max(_MIN_NAME, width - _RANGE_WIDTH))
    for slider, mean in ((_LONG_SLIDER, True), (_SHORT_SLIDER, True), (_SHORT_SLIDER, False)):
        room = width - _FIGURES_WIDTH - slider - (_MEAN_WIDTH if mean else 0)
        if name <= room:
            return Columns(name, slider, mean, unused)
    return Columns(max(_MIN_NAME, room), _SHORT_SLIDER, False, unused)


def row_line(row: Row | Group, columns: Columns, width: int, *, here: bool) -> Line:
    """A row without its marker; `here` tells whether it is current."""
    match row:
        case Group():
            return _group_line(row, width)
        case MetricRow(in_use=True):
            return _used_line(row, columns, here=here)
        case MetricRow():
            return _unused_line(row, columns)
        case OptionRow(option=option):
            label = pad(option.name, max(columns.name - 2, len(option.name)))
            return [("  ", ""), (label, "muted"), ("  ", ""), *_option_value(row, here=here)]
        case RubricRow(text=text):
            return [("    ", ""), (f"{row.index + 1} ", "muted"), (visible(text), "")]
        case SettingRow(title=title):
            return [(pad(title, columns.name), ""), ("  ", ""), *_setting_value(row, here=here)]
        case ReferenceRow(text=text, dangling=dangling):
            wrong: Line = [(f"  ! {visible(dangling)}", "warning")] if dangling else []
            return [(visible(text), ""), *wrong]


def _group_line(group: Group, width: int) -> Line:
    """A group: `▸ Judge  11  needs a judge model   safety_v1, …`."""
    line: Line = [
        ("▾ " if group.is_open else "▸ ", "muted"),
        (group.subject, ""),
        (f"  {len(group.rows)}", "muted"),
    ]
    if shared := _SHARED_NEEDS.get(group.subject):
        line.append((f"  needs {', '.join(shared)}", "muted"))
    if group.subject == "Informational":
        line.append(("  in every run", "muted"))
    if group.is_open:
        return line
    names = ", ".join(visible(row.name) for row in group.rows)
    room = width - cells(line) - 3
    return line if room < _MIN_PREVIEW else join_ends([*line, ("   ", ""), (names, "faint")], [], width)


def _used_line(row: MetricRow, columns: Columns, *, here: bool) -> Line:
    number = "—" if row.threshold is None else show_threshold(row.threshold)
    line: Line = [
        (pad(visible(row.name), columns.name), "" if here else "foreground"),
        ("  ", ""),
        *_slider_line(row, columns.slider, here=here),
        (f" {number:>5}", "bold"),
    ]
    line.append((" ●" if row.saved != row.threshold else "  ", "warning"))
    line += [("  ", ""), *_passing_line(row)]
    if columns.mean and row.trial.mean is not None:
        shown = f"mean {show_score(row.trial.mean)}"
        line += [
            (" " * max(2, columns.name + columns.slider + _FIGURES_WIDTH - cells(line)), ""),
            (shown, "muted"),
        ]
    return line


def _slider_line(row: MetricRow, width: int, *, here: bool) -> Line:
    """The slider of a threshold: `━━━━●──`; empty where the metric has no interval."""
    if row.threshold is None or row.interval is None:
        return [(" " * width, "")]
    low, high = row.interval
    share = (row.threshold - low) / (high - low) if high > low else 0.0
    knob = round(min(max(share, 0.0), 1.0) * (width - 1))
    role = "bold accent" if here else ""
    return [
        (BAR * knob, "accent" if here else "muted"),
        ("●", role),
        (EMPTY_BAR * (width - 1 - knob), "line"),
    ]


def _passing_line(row: MetricRow) -> Line:
    """The passing cases of the last run: `✗ 5/9 pass`."""
    if row.why_not:
        return [glyph("NOT_EVALUATED"), (f" {visible(row.why_not)}", "muted")]
    trial = row.trial
    if not trial.scored or row.threshold is None:
        return [("— not scored" if row.threshold is not None else "— no threshold", "muted")]
    mark, role = glyph("PASSED" if trial.passing == trial.scored else "FAILED")
    return [(f"{mark} {trial.passing}/{trial.scored} pass", role)]


def _unused_line(row: MetricRow, columns: Columns) -> Line:
    name = (f"  {pad(visible(row.name), columns.unused)}  ", "muted" if row.why_not else "")
    if row.why_not:
        return [name, glyph("NOT_EVALUATED"), (f" {visible(row.why_not)}", "muted")]
    if not row.gates:
        return [name, (f"mean {show_score(row.trial.mean)}" if row.trial.scored else "—", "muted")]
    needs = [need for need in row.needs if need not in _SHARED_NEEDS.get(row.subject, ())]
    return [name, (range_text(row), "muted"), (f"  needs {', '.join(needs)}" if needs else "", "muted")]


def range_text(row: MetricRow) -> str:
    """The interval in words: `0 to 1`, `0 and up`."""
    if row.interval is None:
        return "0 and up"
    return f"{show_number(row.interval[0])} to {show_number(row.interval[1])}"


def _option_value(row: OptionRow, *, here: bool) -> Line:
    if row.option.kind == "rubrics":
        return [(counted(len(row.value), "rubric"), "" if row.value else "muted")]
    if row.value is None:
        return [("— required", "warning")]
    chosen = here and row.option.kind in ("choice", "flag")
    return _value(row.value, is_set=row.is_set, chosen=chosen)


def _setting_value(row: SettingRow, *, here: bool) -> Line:
    return _value(row.value, is_set=row.is_set, chosen=here and bool(row.choices))


def _value(value: object, *, is_set: bool, chosen: bool) -> Line:
    """A value as JSON; a choice for `←→` is between arrows."""
    shown = value_line(value)
    if chosen:
        shown = [("‹ ", "accent"), *shown, (" ›", "accent")]
    return shown if is_set else [*shown, ("  default", "faint")]


def fact_lines(name: int, settings: RunSettings) -> list[Line]:
    """The run settings that no config has, with the option for each."""
    facts = (
        ("Timeout", f"{settings.timeout:g} s per case"),
        ("Parallel", counted(settings.parallel, "case")),
    )
    return [
        [(f" {pad(title, name)}  ", "muted"), (f"{value}  --{title.lower()}", "faint")]
        for title, value in facts
    ]


_MARKER_WIDTH = 2
_MAX_PROBLEMS = 4

ListedRow = Row | Group


class ShownLine(NamedTuple):
    """A line of the list: a row, a title, a problem, or nothing."""

    line: Line
    row: ListedRow | None = None


class CriteriaRows(CursorLines, can_focus=True, inherit_bindings=False):
    """The criteria rows below the titles of their sections; only rows have the cursor.

    The options of a metric are below it while it or one of them is current. Metrics that are not in use are
    grouped by subject; groups are folded where not everything fits.
    """

    BINDINGS = move_bindings()

    class Slid(Message):
        """The user clicked into a slider, or drags it."""

        def __init__(self, row: MetricRow, threshold: float) -> None:
            super().__init__()
            self.row = row
            self.threshold = threshold

    def __init__(self, criteria: Criteria, settings: RunSettings, *, id: str) -> None:
        super().__init__(id=id)
        self._criteria = criteria
        self._settings = settings
        self._problem: str | None = None
        self._problems: Sequence[Problem] = ()
        self._sections: Sequence[Section] = ()
        self._shown: list[ShownLine] = []
        self._columns = Columns(0, 0, mean=False, unused=0)
        # The metric whose options are shown.
        self._owner = ""
        # Whether the pointer is over a slider, and whether the mouse went down there.
        self._over_slider = self._slides = False
        self._toggled: set[str] = set()
        # The groups that are open as there is room for them; None until that is known.
        self._fitting: frozenset[str] | None = None

    @property
    def current(self) -> ListedRow | None:
        return self._shown[self.cursor].row if self.cursor < len(self._shown) else None

    @property
    def metric(self) -> MetricRow | None:
        """The metric of the current row; None for a row of no metric."""
        here = self.current
        owner = here.name if isinstance(here, MetricRow) else _owning_metric(here) if here else ""
        return next((row for row in self.rows() if isinstance(row, MetricRow) and row.name == owner), None)

    def rows(self) -> Iterator[Row]:
        """Every row, also folded ones."""
        return (row for section in self._sections for row in section.rows)

    def follow(self) -> None:
        """Shows the current config and results; the cursor stays with its row."""
        at = self.current
        self._problem = self._criteria.unreadable()
        self._problems = () if self._problem else self._criteria.problems()
        self._sections = () if self._problem else self._criteria.sections()
        if self._fitting is None and self.size.height:
            self._fitting = self._groups_that_fit()
        self._show(at)

    def on_resize(self) -> None:
        self._fitting = None
        self.follow()
        self.show_line(self.cursor)

    def _show(self, at: ListedRow | None) -> None:
        """Builds the lines again, with the cursor on a row, or near its old place if the row is gone."""
        if at is not None:
            # What it says may have changed.
            by_identity = {_identity(row): row for row in self.rows()}
            self._owner = _owning_metric(by_identity.get(_identity(at), at))
        seen = [row for row in self.rows() if isinstance(row, MetricRow) and self._is_seen(row)]
        self._columns = columns_of(seen, self.line_width - _MARKER_WIDTH)
        self._shown = list(self._lines())
        self.lines_changed(len(self._shown))
        number = self._number(at)
        if number is not None:
            self.cursor = number
            return
        self._snap(1)
        if (there := self.current) is not None and _owning_metric(there) != self._owner:
            self._show(there)

    def _number(self, row: ListedRow | None) -> int | None:
        """The line number of a row with the same identity, None where it is hidden."""
        identity = None if row is None else _identity(row)
        return next(
            (
                number
                for number, shown in enumerate(self._shown)
                if shown.row is not None and _identity(shown.row) == identity
            ),
            None,
        )

    def go_to(self, row: ListedRow) -> None:
        """Goes to the row with the same identity; its group is opened."""
        if isinstance(row, MetricRow) and not self._is_seen(row):
            self.fold(row.subject)
        self._show(row)
        self.show_line(self.cursor)
        self.post_message(self.Moved())

    def stay_in_use(self) -> None:
        """Goes to the metric in use that is nearest to the cursor, if there is one."""
        used = [
            (abs(number - self.cursor), shown.row)
            for number, shown in enumerate(self._shown)
            if isinstance(shown.row, MetricRow) and shown.row.in_use
        ]
        if used:
            self.go_to(min(used, key=lambda distance: distance[0])[1])

    def fold(self, subject: str) -> None:
        """Folds a group, or opens it."""
        self._toggled ^= {subject}
        self._show(self.current)

    def _is_seen(self, row: MetricRow) -> bool:
        return row.in_use or self._is_open(row.subject)

    def _is_open(self, subject: str) -> bool:
        return (subject in (self._fitting or ())) != (subject in self._toggled)

    # Lines

    def _groups_that_fit(self) -> frozenset[str]:
        """The groups that can be open without scrolling, for any current metric."""
        rows = [*self.rows()]
        unused = Counter(row.subject for row in rows if isinstance(row, MetricRow) and not row.in_use)
        options = Counter(row.metric for row in rows if isinstance(row, OptionRow | RubricRow))
        needed = len(rows) - unused.total() + len(unused) - options.total()
        needed += max(options.values(), default=0) + 2 * len(self._sections)
        needed += len(fact_lines(0, self._settings))
        needed += len(list(self._problem_lines()))
        fitting: set[str] = set()
        for subject, count in unused.items():
            if needed + count <= self.size.height:
                needed += count
                fitting.add(subject)
        return frozenset(fitting)

    def _wrapped(self, problem: str, role: str) -> list[ShownLine]:
        """The whole text of a problem, wrapped."""
        width = max(24, self.line_width)
        return [ShownLine(line) for line in wrap_behind([("! ", role)], [(visible(problem), "")], width)]

    def _problem_lines(self) -> Iterator[ShownLine]:
        for problem in self._problems[:_MAX_PROBLEMS]:
            yield from self._wrapped(str(problem), "error" if problem.severity == "error" else "warning")
        if more := len(self._problems[_MAX_PROBLEMS:]):
            yield ShownLine([(f"  and {show_number(more)} more", "muted")])
        if self._problems:
            yield ShownLine([])

    def _lines(self) -> Iterator[ShownLine]:
        if self._problem:
            yield from self._wrapped(self._problem, "error")
            if self._criteria.refuses_text() is None:
                yield ShownLine([])
                yield ShownLine([(f"  {key_of('edit_json')}", "bold accent"), ("  Edit JSON", "")])
            return
        yield from self._problem_lines()
        for number, section in enumerate(self._sections):
            if number:
                yield ShownLine([])
            stroke = EMPTY_BAR * max(0, self.line_width - len(section.title) - 3)
            yield ShownLine([(section.title, "bold"), (f" {stroke}", "line")])
            if number == 0 and not section.rows:
                yield ShownLine([("  No metrics, so nothing is scored", "warning")])
            for row in self._rows_of(section):
                yield ShownLine([], row)
            if section.title == POLICY:
                yield from (ShownLine(line) for line in fact_lines(self._columns.name, self._settings))

    def _rows_of(self, section: Section) -> Iterator[ListedRow]:
        unused = [row for row in section.rows if isinstance(row, MetricRow) and not row.in_use]
        for subject, rows in groupby(unused, key=lambda row: row.subject):
            group = Group(subject, tuple(rows), self._is_open(subject))
            yield group
            yield from group.rows if group.is_open else ()
        for row in section.rows:
            match row:
                case OptionRow(metric=metric) | RubricRow(metric=metric):
                    if metric == self._owner:
                        yield row
                case MetricRow(in_use=False):
                    pass
                case _:
                    yield row

    def line(self, number: int) -> Line:
        shown = self._shown[number]
        if shown.row is None:
            return [(" ", ""), *shown.line]
        here = number == self.cursor
        marker = ("▌ " if here else "  ", "bold accent" if self.has_focus else "muted")
        line = row_line(shown.row, self._columns, self.line_width - _MARKER_WIDTH, here=here)
        return cut([marker, *line], self.line_width)

    def row_role(self, number: int) -> str:
        return super().row_role(number) if self._shown[number].row is not None else ""

    # Keys and mouse

    def move_to(self, number: int) -> None:
        before = self.current
        self.cursor, down = max(0, min(number, self.line_count - 1)), number >= self.cursor
        self._snap(1 if down else -1)
        row = self.current
        if row is not None and _owning_metric(row) != self._owner:
            self._show(row)
        # The title above the first row is to be seen with it.
        self.show_line(0 if self.cursor <= 1 else self.cursor)
        self.refresh()
        if row != before:
            self.post_message(self.Moved())

    def _snap(self, direction: int) -> None:
        """Moves the cursor from a line without row to the next row: downwards, else upwards."""
        places = [number for number, shown in enumerate(self._shown) if shown.row is not None]
        if not places:
            self.cursor = 0
        elif self.cursor not in places:
            ahead = [number for number in places if (number - self.cursor) * direction > 0]
            self.cursor = min(ahead or places, key=lambda number: abs(number - self.cursor))

    def on_click(self, event: events.Click) -> None:
        # Textual would hand the click to the class above once more.
        event.prevent_default()
        number = self.scroll_offset.y + event.y
        if self._slides:
            self._slides = False
            return
        if event.chain == self.clicks_to_open:
            # The first click may have moved what is below the pointer.
            self.open_current()
            return
        if number >= len(self._shown) or (row := self._shown[number].row) is None:
            return
        self.move_to(number)
        if isinstance(row, Group):
            self.fold(row.subject)

    # Sliders

    @property
    def allow_select(self) -> bool:
        """No text selection while a slider is dragged."""
        return super().allow_select and not self._over_slider

    def on_mouse_down(self, event: events.MouseDown) -> None:
        row = self._row_of_slider(event)
        self._slides = row is not None
        if row is not None:
            self.capture_mouse()
            self.go_to(row)
            self._slide(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._over_slider = self._row_of_slider(event) is not None
        if self.app.mouse_captured is self:
            self._slide(event)

    def on_mouse_up(self) -> None:
        self.release_mouse()

    def _row_of_slider(self, event: events.MouseEvent) -> MetricRow | None:
        number = self.scroll_offset.y + event.y
        row = self._shown[number].row if 0 <= number < len(self._shown) else None
        if not isinstance(row, MetricRow) or not row.in_use or row.interval is None:
            return None
        return row if 0 <= self._cell(event) < self._columns.slider else None

    def _cell(self, event: events.MouseEvent) -> int:
        """The cell of the mouse in the column of sliders."""
        return event.x - _MARKER_WIDTH - self._columns.name - 2

    def _slide(self, event: events.MouseEvent) -> None:
        row, last = self.current, self._columns.slider - 1
        if isinstance(row, MetricRow) and row.interval is not None:
            low, high = row.interval
            share = min(max(self._cell(event), 0), last) / last
            self.post_message(self.Slid(row, round(low + share * (high - low), 2)))


def _owning_metric(row: ListedRow) -> str:
    """The metric whose options are shown while a row is current; "" for none."""
    match row:
        case MetricRow(in_use=True, name=name):
            return name
        case OptionRow(metric=metric) | RubricRow(metric=metric):
            return metric
    return ""


def _identity(row: ListedRow) -> Hashable:
    match row:
        case Group(subject=subject):
            return "group", subject
        case MetricRow(name=name):
            return "metric", name
        case SettingRow(name=name):
            return "setting", name
        case OptionRow(metric=metric, option=option):
            return metric, option.path
        case RubricRow(metric=metric, index=index):
            return metric, index
        case ReferenceRow(block=block, index=index):
            return block, index
