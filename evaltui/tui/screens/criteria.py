"""The metrics that score a set, their thresholds and options: `test_config.json` without its JSON."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.message import Message

from evaltui.text.lines import Line, cells, pad
from evaltui.text.outcomes import glyph
from evaltui.text.values import show_value, visible
from evaltui.tui.action_screen import DialogScreen
from evaltui.tui.bindings import bindings
from evaltui.tui.pages.writer import Page
from evaltui.tui.panes.bars import Footer, Status
from evaltui.tui.screens.prompt import PromptScreen
from evaltui.tui.widgets.cursor_lines import CursorLines
from evaltui.tui.widgets.hints import moves
from evaltui.tui.widgets.line_view import LineView
from evaltui.tui.widgets.one_line import OneLine, rule
from evaltui.workbench.actions import BY_ID, Scope
from evaltui.workbench.criteria.criteria import Criteria, Section
from evaltui.workbench.criteria.effect import Trial
from evaltui.workbench.criteria.rows import MetricRow, OptionRow, ReferenceRow, Row, RubricRow, SettingRow
from evaltui.workbench.criteria.values import text_of
from evaltui.workbench.state import CaseKey
from evaltui.workbench.workbench import Workbench

_TICK = 0.25
# From here on a slider is long and the mean is shown.
_ROOMY = 70
_SHORT, _LONG = 8, 12
# What stands around the name of a metric in use, its slider and the mean apart.
_FIGURES, _MEAN = 33, 11
_MOST_FLIPS = 12


class CriteriaScreen(DialogScreen[None], inherit_bindings=False):
    """For the config beside a set. No key of the main screen works until it is closed."""

    BINDINGS = bindings(Scope.CRITERIA)
    AUTO_FOCUS = "#criteria-rows"

    def __init__(self, workbench: Workbench, set_path: Path) -> None:
        super().__init__()
        self._workbench = workbench
        self.criteria = Criteria(workbench, set_path)
        self._followed: Hashable = None

    def compose(self) -> ComposeResult:
        yield CriteriaTitle(self._workbench, self.criteria)
        yield CriteriaRows(self.criteria, id="criteria-rows")
        yield CriteriaRule()
        yield CriteriaDetails(id="criteria-details")
        yield Status(self._workbench, id="criteria-status")
        yield Footer(self._workbench, id="criteria-footer")

    def on_mount(self) -> None:
        self.query_one(Footer).scope = Scope.CRITERIA
        self.every(_TICK, self._tick)
        self.follow()

    @property
    def rows(self) -> CriteriaRows:
        return self.query_one(CriteriaRows)

    def follow(self) -> None:
        """Show the config and the results as they are now."""
        self._followed = self._fingerprint()
        self.rows.follow()
        self._draw_around()

    def _draw_around(self) -> None:
        self.query_one(CriteriaDetails).show(self.rows.current)
        for line in self.query(OneLine):
            line.refresh()

    def _tick(self) -> None:
        """A run may be going on, and files may be changed outside."""
        if self._fingerprint() != self._followed:
            self.follow()
        else:
            self.query_one(Status).refresh()

    def _fingerprint(self) -> Hashable:
        run, draft = self._workbench.runs.current, self._workbench.editing.draft(self.criteria.path)
        of_run = (run.number, len(run.done), run.over) if run else None
        return of_run, draft.revision if draft else self.criteria.exists, id(self._workbench.sets.workspace)

    # Actions

    def perform(self, action_id: str) -> None:
        action = BY_ID[action_id]
        if reason := action.refusal(self._workbench):
            self._workbench.say(reason)
        elif action.do is not None:
            self._workbench.editing.end_typing()
            action.do(self._workbench)
        elif hasattr(self, f"action_{action_id}"):
            getattr(self, f"action_{action_id}")()
        else:
            getattr(self.rows, f"action_{action_id}")()
            self._draw_around()
            return
        if self.is_active:
            self.follow()

    def action_close_criteria(self) -> None:
        self._workbench.editing.end_typing()
        self.dismiss()

    def action_add_criterion(self) -> None:
        row = self.rows.current
        match row:
            case MetricRow(asked=False, gates=True):
                if self.criteria.add(row):
                    self.follow()
                    self.rows.go_to(row)
                    self._ask_for_what_is_missing(row)
            case MetricRow(asked=False):
                self._workbench.say(f"{row.name} is measured in every run and takes no threshold")
            case MetricRow():
                self._workbench.say(f"{row.name} is in use already")
            case RubricRow(metric=metric, index=index):
                self._ask_for_rubric(metric, index)
            case OptionRow(metric=metric) if row.option.kind == "rubrics":
                self._ask_for_rubric(metric, -1)
            case OptionRow() | SettingRow():
                self.action_higher()
            case _:
                self._workbench.say("metrics are added in the list of those not in use")

    def _ask_for_what_is_missing(self, metric: MetricRow) -> None:
        for row in self.rows.rows():
            needed = isinstance(row, OptionRow) and row.metric == metric.name and row.option.kind == "text"
            if needed and isinstance(row, OptionRow) and row.value is None:
                self._ask(row)
                return

    def _ask_for_rubric(self, metric: str, after: int) -> None:
        def take(text: str | None) -> None:
            if text is not None:
                self.criteria.add_rubric(metric, after, text)
                self.follow()

        blank = RubricRow(metric, after, "")
        title = f"A rubric for {metric}"
        self.app.push_screen(PromptScreen(title, "", partial(self.criteria.check, blank)), take)

    def action_remove_criterion(self) -> None:
        row = self.rows.current
        if row is None:
            return
        if isinstance(row, MetricRow) and not row.asked:
            self._workbench.say(f"{row.name} is not in use")
        elif isinstance(row, OptionRow | SettingRow) and not row.given:
            self._workbench.say("this is the default already")
        elif self.criteria.remove(row) and isinstance(row, MetricRow):
            self.follow()
            self.rows.stay_in_use()

    def action_lower(self) -> None:
        self._move(-1)

    def action_higher(self) -> None:
        self._move(1)

    def action_much_lower(self) -> None:
        self._move(-1, far=True)

    def action_much_higher(self) -> None:
        self._move(1, far=True)

    def _move(self, direction: int, *, far: bool = False) -> None:
        row = self.rows.current
        if isinstance(row, MetricRow) and not row.asked:
            self._workbench.say(f"{row.name} is not in use: space adds it")
        elif isinstance(row, RubricRow) or (isinstance(row, OptionRow) and row.option.kind == "text"):
            self._workbench.say("e edits this text")
        elif row is not None:
            self.criteria.move(row, direction, far=far)

    def action_edit_criterion(self) -> None:
        row = self.rows.current
        if row is None:
            return
        if isinstance(row, MetricRow) and not row.asked:
            self.action_add_criterion()
        elif text_of(row) is not None:
            self._ask(row)
        elif isinstance(row, OptionRow) and row.option.kind == "rubrics":
            self.action_add_criterion()
        elif isinstance(row, ReferenceRow):
            self._workbench.say("marks and rules are made in the case; delete takes this one out")
        else:
            self.action_higher()

    def _ask(self, row: Row) -> None:
        def take(text: str | None) -> None:
            if text is not None and text != before:
                self.criteria.type(row, text)
                self.follow()

        before = text_of(row) or ""
        title, hint = _question(row)
        self._workbench.editing.end_typing()
        self.app.push_screen(PromptScreen(title, before, partial(self.criteria.check, row), hint), take)

    # Mouse

    def on_criteria_rows_moved(self) -> None:
        self._workbench.editing.end_typing()
        self._draw_around()

    def on_criteria_rows_opened(self) -> None:
        self.action_edit_criterion()
        self.follow()

    def on_criteria_rows_slid(self, message: CriteriaRows.Slid) -> None:
        self.criteria.set_threshold(message.row, message.threshold)
        self.follow()

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        message.stop()
        self.perform(message.action)


def _question(row: Row) -> tuple[str, str]:
    """What is asked, and a hint."""
    match row:
        case MetricRow(name=name, interval=interval):
            ends = f"from {interval[0]:g} to {interval[1]:g}" if interval else ""
            return f"Threshold of {name}", f"a score of at least this passes; {ends}".removesuffix("; ")
        case OptionRow(metric=metric, option=option):
            return f"{option.name} of {metric}", option.meaning
        case RubricRow(metric=metric):
            return f"A rubric for {metric}", "what a good answer does, in a sentence"
        case SettingRow(name=name, meaning=meaning):
            return name, meaning
    return "", ""


class CriteriaTitle(OneLine):
    """The file, whether it is unsaved, and the sets that it applies to."""

    def __init__(self, workbench: Workbench, criteria: Criteria) -> None:
        super().__init__()
        self._workbench = workbench
        self._criteria = criteria

    def line(self, width: int) -> Line:
        path = self._criteria.path
        name: Line = [("Criteria", "bold"), (f"  {visible(path.parent.resolve().name)}/{path.name}", "")]
        if not self._criteria.exists:
            name.append(("  no such file yet", "dim"))
        elif self._workbench.editing.is_dirty(path):
            name.append((" ●", "accent"))
        sets = [visible(entry.eval_set_id) for entry in self._criteria.sets]
        room = width - cells(name) - 14
        text = "for " + ", ".join(sets)
        if len(text) > room:
            text = f"for {len(sets)} sets" if len(sets) > 1 else text
        return rule(name, [(text, "dim")], width, heavy=True)


class CriteriaRule(OneLine):
    def line(self, width: int) -> Line:
        return [("─" * width, "dim")]


class Shown(NamedTuple):
    """A line of the list: a row, a title, a problem, or nothing."""

    line: Line
    row: Row | None = None


class CriteriaRows(CursorLines, can_focus=True, inherit_bindings=False):
    """Every row of the criteria below the titles of its section; only rows have the cursor."""

    BINDINGS = moves()

    class Moved(Message):
        """Another row is the current one."""

    class Opened(Message):
        """The user wants to edit the current row."""

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
            self._shown = [Shown([(" ! ", "red"), (visible(problem), "")])]
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

    def _lines(self, sections: list[Section]) -> Iterator[Shown]:
        for problem in self._criteria.problems():
            yield Shown([(" ! ", "yellow"), (visible(str(problem)), "")])
        for number, section in enumerate(sections):
            if number:
                yield Shown([])
            yield Shown([(f" {section.title}", "bold")])
            if not section.rows:
                yield Shown([("   nothing: nothing is scored", "yellow" if number == 0 else "dim")])
            for row in section.rows:
                yield Shown([], row)

    def line(self, number: int) -> Line:
        shown = self._shown[number]
        if shown.row is None:
            return shown.line
        here = number == self.cursor
        marker = ("▌ " if here else "  ", "accent" if self.has_focus else "dim")
        return [marker, *self._row_line(shown.row, here=here)]

    def line_classes(self, number: int) -> tuple[str, ...]:
        return super().line_classes(number) if self._shown[number].row is not None else ()

    def _row_line(self, row: Row, *, here: bool) -> Line:
        match row:
            case MetricRow(asked=True):
                return self._used_line(row, here=here)
            case MetricRow():
                return self._unused_line(row)
            case OptionRow(option=option):
                value = f"{len(row.value)}" if option.kind == "rubrics" else _shown_value(row.value)
                tone = "" if row.given else "dim"
                missing: Line = [("  needed", "yellow")] if row.value is None else []
                label = pad(option.name, max(0, self._name_cells - 2))
                return [("  ", ""), (label, "dim"), ("  ", ""), (value, tone), *missing]
            case RubricRow(text=text):
                return [("    ", ""), (f"{row.index + 1} ", "dim"), (visible(text), "")]
            case SettingRow(name=name):
                return [
                    (pad(name, self._name_cells), ""),
                    ("  ", ""),
                    (_shown_value(row.value), "" if row.given else "dim"),
                ]
            case ReferenceRow(text=text, dangling=dangling):
                wrong: Line = [(f"  ! {visible(dangling)}", "yellow")] if dangling else []
                return [(visible(text), ""), *wrong]

    def _used_line(self, row: MetricRow, *, here: bool) -> Line:
        name: Line = [(pad(visible(row.name), self._name_cells), "")]
        number = "" if row.threshold is None else f"{row.threshold:.2f}"
        line: Line = [
            *name,
            ("  ", ""),
            *_slider(row, self._slider_cells, here=here),
            ("  ", ""),
            (f"{number:>5}", "bold"),
        ]
        changed = row.saved != row.threshold
        line.append((" *" if changed else "  ", "accent"))
        return [*line, ("  ", ""), *_outcome(row, mean=self._roomy)]

    def _unused_line(self, row: MetricRow) -> Line:
        text = visible(row.name)
        name = (text.ljust(self._name_cells), "dim" if row.why_not else "")
        if row.why_not:
            return [name, ("  ", ""), glyph("NOT_EVALUATED"), (f" {visible(row.why_not)}", "dim")]
        if not row.gates:
            mean = "" if row.trial.mean is None else f"{row.trial.mean:.2f}  "
            return [name, ("  ", ""), glyph("INFORMATIONAL"), (f" {mean}measured in every run", "dim")]
        ends = f"{row.interval[0]:g} to {row.interval[1]:g}" if row.interval else "0 and up"
        needs = f"  needs {', '.join(row.needs)}" if row.needs else ""
        return [name, (f"  {ends}{needs}", "dim")]

    # Keys and mouse

    def open_current(self) -> None:
        self.post_message(self.Opened())

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
    tone = "accent" if here else ""
    return [("━" * knob, tone or "dim"), ("●", tone), ("─" * (width - 1 - knob), "dim")]


def _outcome(row: MetricRow, *, mean: bool) -> Line:
    """How many cases of the last run pass at the threshold."""
    trial = row.trial
    if row.why_not:
        return [glyph("NOT_EVALUATED"), (f" {visible(row.why_not)}", "dim")]
    if not trial.scored:
        return [("not scored yet", "dim")]
    mark, tone = glyph("PASSED" if trial.passing == trial.scored else "FAILED")
    flips = len(trial.now_pass) + len(trial.now_fail)
    line: Line = [(f"{mark} {trial.passing} of {trial.scored}", tone)]
    line += [(f"  {flips} flip", "accent")] if flips else []
    return [*line, (f"  mean {trial.mean:.2f}", "dim")] if mean else line


class CriteriaDetails(LineView, can_focus=False, inherit_bindings=False):
    """What the current row means, and what its threshold does to the last run."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._row: Row | None = None
        self._lines: list[Line] = []

    def show(self, row: Row | None) -> None:
        self._row = row
        self._write()
        self.scroll_home(animate=False)

    def on_resize(self) -> None:
        self._write()

    def _write(self) -> None:
        page = Page(self.size.width - 2)
        if self._row is not None:
            _write_details(page, self._row)
        self._lines = page.lines
        self.lines_changed(len(self._lines))

    def line(self, number: int) -> Line:
        return [(" ", ""), *self._lines[number]]


def _write_details(page: Page, row: Row) -> None:
    match row:
        case MetricRow():
            _write_metric(page, row)
        case OptionRow(option=option):
            page.text([(f"{option.name}  ", "bold"), (visible(option.meaning), "")])
            if option.default is not None and option.kind != "rubrics":
                page.row((f"default {_shown_value(option.default)}", "dim"))
            if option.choices:
                page.text([(f"one of {', '.join(option.choices)}", "dim")])
        case RubricRow(text=text):
            page.text([(visible(text), "")])
        case SettingRow(name=name, meaning=meaning):
            page.text([(f"{name}  ", "bold"), (meaning, "")])
            page.row(("in the evaltui block, which adk eval passes over", "dim"))
        case ReferenceRow(text=text, dangling=dangling):
            page.text([(visible(text), "")])
            if dangling:
                page.text([(visible(dangling), "")], [("! ", "yellow")])
            page.row(("delete takes it out", "dim"))


def _write_metric(page: Page, row: MetricRow) -> None:
    about: Line = [(f"{visible(row.name)}  ", "bold"), (visible(row.meaning), "")]
    page.text(about)
    facts = [f"from {row.interval[0]:g} to {row.interval[1]:g}" if row.interval else "0 and up"]
    if row.assumed:
        facts = ["the config does not say its range"]
    facts += ["lower is better"] if row.lower_is_better else []
    facts += [f"needs {', '.join(row.needs)}"] if row.needs else []
    facts += ["ADK has no such metric: adk eval passes over it"] if row.ours else []
    page.text([(" · ".join(facts), "dim")])
    if row.why_not:
        page.text([(visible(row.why_not), "")], [glyph("NOT_EVALUATED"), (" ", "")])
    if row.asked:
        _write_trial(page, row, row.trial)


def _write_trial(page: Page, row: MetricRow, trial: Trial) -> None:
    if not trial.scored:
        if not row.why_not:
            page.row(("run the cases, then see here how many pass at which threshold", "dim"))
        return
    if row.threshold is None:
        page.row(("its threshold is not a number", "yellow"))
        return
    saved = "" if row.saved is None or row.saved == row.threshold else f"; saved is {row.saved:g}"
    page.text(
        [(f"At {row.threshold:g}, {trial.passing} of {trial.scored} cases of the last run pass{saved}.", "")]
    )
    for keys, status, word in (
        (trial.now_pass, "PASSED", "now pass"),
        (trial.now_fail, "FAILED", "now fail"),
    ):
        if keys:
            page.text([(_named(keys), "")], [glyph(status), (f" {word}  ", "dim")])


def _named(keys: tuple[CaseKey, ...]) -> str:
    names = ", ".join(visible(key.eval_id) for key in keys[:_MOST_FLIPS])
    more = len(keys) - _MOST_FLIPS
    return f"{names} and {more} more" if more > 0 else names
