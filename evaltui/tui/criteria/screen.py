"""The criteria screen: metrics of a set with thresholds and options, for editing `test_config.json` without
JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer

from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import short_list
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, ask, bindings
from evaltui.tui.criteria.page import row_title, write_row
from evaltui.tui.criteria.rows import CriteriaRows, Group, range_text
from evaltui.tui.dialogs.details import RawScreen
from evaltui.tui.dialogs.keys import HelpScreen
from evaltui.tui.dialogs.prompt import PromptScreen, move_bindings
from evaltui.tui.layout import MEDIUM_WIDTH
from evaltui.tui.main.bars import Footer, Header, Status, TabRow
from evaltui.tui.pane import PaneFrame, Tab
from evaltui.tui.textual_private import call_later_once
from evaltui.tui.widgets.lines import DrawnLine, ScrolledLines, rule
from evaltui.tui.widgets.writer import Page, write_code
from evaltui.workbench.actions import ACTIONS_BY_ID, Scope
from evaltui.workbench.criteria.criteria import Criteria, needed_option
from evaltui.workbench.criteria.effect import Flips, effect_of, flips_of
from evaltui.workbench.criteria.rows import (
    MetricRow,
    OptionRow,
    ReferenceRow,
    Row,
    RubricRow,
    SettingRow,
    text_of,
)
from evaltui.workbench.messages import AgentChanged, FilesChanged, ResultsChanged, RunProgressed
from evaltui.workbench.workbench import Workbench


class CriteriaDetails(ScrolledLines, inherit_bindings=False):
    """The details page. `write` writes the page for a height, and returns the lines of cases.

    Keys move from case to case, and scroll where there is none; `enter` goes to the case.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*move_bindings(), *bindings(Scope.CRITERIA_EFFECT)]

    class Chosen(Message):
        """The user opens a case."""

        def __init__(self, case: CaseId) -> None:
            super().__init__()
            self.case = case

    def __init__(self, write: Callable[[Page, int], Mapping[int, CaseId]], *, id: str) -> None:
        super().__init__(id=id)
        self._write = write
        self._page = Page(80)
        self._places: dict[int, tuple[CaseId, int]] = {}
        # The current case, and which of its lines it is.
        self._at: tuple[CaseId, int] | None = None

    def follow(self) -> None:
        """Writes the current page; the cursor stays with its case."""
        self._page = Page(self.line_width)
        seen = Counter[CaseId]()
        self._places = {}
        for line, case in sorted(self._write(self._page, self.size.height).items()):
            self._places[line] = case, seen[case]
            seen[case] += 1
        if not self.has_focus or self._at not in self._places.values():
            self._at = next(iter(self._places.values()), None)
        self.lines_changed(len(self._page.lines))

    def from_top(self) -> None:
        """Shows the page from its start, for another row."""
        self.scroll_home(animate=False)
        self.follow()

    on_resize = follow

    def line(self, number: int) -> Line:
        line = self._page.lines[number]
        if not (self.has_focus and self._is_current(number)):
            return line
        (first, role), *rest = line
        return [("▌", "bold accent"), (first[1:], role), *rest]

    def row_role(self, number: int) -> str:
        return "current" if self.has_focus and self._is_current(number) else ""

    def _is_current(self, number: int) -> bool:
        return number in self._places and self._places[number] == self._at

    # Keys and mouse

    def action_step_line(self, step: int) -> None:
        lines = [*self._places]
        at = next((number for number in lines if self._is_current(number)), None)
        top, height = self.scroll_offset.y, self.size.height
        if at is not None and top <= at < top + height:
            there = lines.index(at) + step
            if 0 <= there < len(lines):
                self._go(lines[there])
                return
        self.scroll_relative(y=step, animate=False)

    def _go(self, line: int) -> None:
        self._at = self._places[line]
        self.show_line(line)
        self.refresh()

    def action_open(self) -> None:
        """Goes to the current case."""
        if self._at is not None:
            self.post_message(self.Chosen(self._at[0]))

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number in self._places:
            self._go(number)
            if event.chain > 1:
                self.action_open()


# From here on the page of the current row is beside the list.
_WIDE_SCREEN = 120
# Seconds until results are shown that come one by one.
_AGAIN_SECONDS = 0.2
_ROWS_ID, _DETAILS_ID = "criteria-rows", "criteria-details"


class CriteriaScreen(DialogScreen[CaseId | None], inherit_bindings=False):
    """The criteria of a set's config; returns a case that the user opens.

    The keys of the main screen are off until it is closed.
    """

    BINDINGS = bindings(Scope.CRITERIA)
    AUTO_FOCUS = f"#{_ROWS_ID}"

    def __init__(self, workbench: Workbench, set_path: Path, metric: str = "") -> None:
        super().__init__()
        self._workbench = workbench
        # Where the cursor begins; "" for the first row.
        self._metric = metric
        self.criteria = Criteria(workbench.editing, set_path)
        self._flips = Flips()
        self._following: Timer | None = None
        self._followed: tuple[object, object, object] = (None, None, None)

    def compose(self) -> ComposeResult:
        yield Header(self._workbench, id="criteria-header")
        yield TabRow(id="tabs")
        with Horizontal(id="criteria-body"):
            with PaneFrame(id="criteria-left"):
                yield CriteriaRows(self.criteria, self._workbench.agent.settings, id=_ROWS_ID)
            yield DrawnLine(self._divider, id="criteria-divider")
            with PaneFrame(id="criteria-right"):
                yield CriteriaDetails(self._write_details, id=_DETAILS_ID)
        yield Status(self._workbench, id="criteria-status")
        yield Footer(self._workbench, id="criteria-footer")

    def on_mount(self) -> None:
        self.subscribe_to(self._workbench.messages, FilesChanged, ResultsChanged, RunProgressed, AgentChanged)
        self._show_places(self.app.size)
        self.follow()
        for row in self.rows.rows():
            if isinstance(row, MetricRow) and row.name == self._metric:
                self.rows.go_to(row)
                break

    def on_resize(self) -> None:
        self._show_places(self.size)
        self._draw_around()

    def _show_places(self, size: Size) -> None:
        self.set_class(size.width >= _WIDE_SCREEN, "-wide")
        self.set_class(size.width < MEDIUM_WIDTH, "-narrow")

    # What is around the rows

    @property
    def rows(self) -> CriteriaRows:
        return self.query_one(CriteriaRows)

    @property
    def details(self) -> CriteriaDetails:
        return self.query_one(CriteriaDetails)

    def _where(self) -> Line:
        """The file, and its sets."""
        path = self.criteria.path
        name = f"{visible(path.parent.resolve().name)}/{path.name}"
        sets = [visible(eval_set.eval_set_id) for eval_set in self.criteria.sets]
        missing: Line = [] if self.criteria.exists else [("no file yet   ", "warning")]
        return [*missing, (f"{name}   ", ""), (f"for {short_list(sets)}", "muted")]

    def _details_title(self) -> str:
        """The title of the current row; without one, the file."""
        row = self.rows.current
        return self.criteria.path.name if row is None else row_title(row)

    def _divider(self, width: int) -> Line:
        """The title of the details on a screen without borders."""
        focused = self.details.has_focus
        name = (f" {self._details_title()} ", "chip" if focused else "bold")
        keys: Line = [(key_of("next_pane"), "bold accent")]
        if focused:
            keys = [(key_of("open"), "bold accent"), (" open case", "muted")]
        return rule([name], keys, width, heavy=focused)

    def _draw_borders(self) -> None:
        unsaved = ("●", "warning") if self._workbench.editing.is_dirty(self.criteria.path) else None
        tab = Tab(_ROWS_ID, "m", "Criteria", unsaved, active=True)
        where = self._where()
        self.query_one(TabRow).show((tab,), where)
        focused = self.details.has_focus
        self.query_one("#criteria-left", PaneFrame).show((tab,), where, focused=not focused)
        title = Tab(_DETAILS_ID, "", self._details_title(), None, active=True)
        keys: Line = [(key_of("open"), "bold accent"), (" open case", "muted")] if focused else []
        self.query_one("#criteria-right", PaneFrame).show((title,), keys, focused=focused)
        self.set_class(focused, "-details")
        self.query_one(Footer).scope = self._scope
        self.query("OneLine").refresh()

    def _write_details(self, page: Page, height: int) -> Mapping[int, CaseId]:
        if self.criteria.unreadable():
            write_code(page, self.criteria.text(), "json", 0)
            return {}
        row = self.rows.current
        row_of_config = None if isinstance(row, Group) else row
        effect = effect_of(self.criteria, self._flips, row_of_config)
        return write_row(page, row, self.rows.metric, effect, height)

    def follow(self) -> None:
        """Shows the current config and results."""
        self._followed = self._shown_state()
        self.rows.follow()
        self._flips = flips_of(self.criteria)
        self._draw_around()

    def _draw_around(self) -> None:
        self.details.follow()
        self._draw_borders()

    def draw_soon(self) -> None:
        """Draws an edit at once, because the next key may change its effect."""
        if self.is_here and self._shown_state()[1] != self._followed[1]:
            self.follow()
        super().draw_soon()

    def draw(self) -> None:
        state = self._shown_state()
        if state[1:] != self._followed[1:]:
            self.follow()
        elif state != self._followed and self._following is None:
            # Of many results that come one by one, not each is drawn.
            self._following = call_later_once(self, _AGAIN_SECONDS, self._follow_results)

    def _follow_results(self) -> None:
        self._following = None
        if self.is_here:
            self.follow()

    def _shown_state(self) -> tuple[object, object, object]:
        """The results, the config and the sets for which the screen was drawn."""
        bench = self._workbench
        file = bench.editing.open_file(self.criteria.path)
        shown = (file.document, file.dirty) if file else self.criteria.exists
        results = bench.outcomes.results
        return (results, results.version), shown, bench.sets.workspace

    def on_descendant_focus(self) -> None:
        self._draw_borders()

    def go_to(self, pane: str) -> None:
        self.set_focus(self.query_one(f"#{pane}"))

    action_go_to = go_to

    @property
    def _scope(self) -> Scope:
        """The scope of the focus."""
        return Scope.CRITERIA_EFFECT if self.details.has_focus else Scope.CRITERIA

    def action_help(self) -> None:
        ask(self, HelpScreen(self._scope, self.refusal), self.run_action)

    def action_step_pane(self, _: int) -> None:
        self.go_to(_ROWS_ID if self.details.has_focus else _DETAILS_ID)

    # Actions

    def refusal(self, action_id: str) -> str | None:
        return ACTIONS_BY_ID[action_id].refusal(self._workbench, self._scope)

    def action_save(self) -> None:
        self.criteria.end_move()
        self._workbench.editing.save_all()
        self.follow()

    def action_undo(self) -> None:
        self.criteria.end_move()
        self._workbench.editing.undo()

    def action_redo(self) -> None:
        self.criteria.end_move()
        self._workbench.editing.redo()

    def action_edit_json(self) -> None:
        self.criteria.end_move()
        if reason := self.criteria.refuses_text():
            self._workbench.say(reason)
        elif self._workbench.drafting.open_file(self.criteria.path):
            self.app.push_screen(RawScreen(self._workbench))

    def action_close(self) -> None:
        """Goes from the details back to the rows; from the rows, closes the screen."""
        if self.details.has_focus:
            self.go_to(_ROWS_ID)
        else:
            self.criteria.end_move()
            self.dismiss()

    @on(CriteriaDetails.Chosen)
    def _show_case(self, message: CriteriaDetails.Chosen) -> None:
        self.criteria.end_move()
        self.dismiss(message.case)

    def action_add_criterion(self) -> None:
        row = self.rows.current
        match row:
            case Group():
                self.rows.fold(row.subject)
            case MetricRow(in_use=False, gates=True):
                if (needed := needed_option(row)) is None:
                    self._add(row)
                else:
                    check = partial(self.criteria.check, needed)
                    title, hint = _question(needed)
                    ask(self, PromptScreen(title, "", check, hint), partial(self._add, row))
            case MetricRow(in_use=False):
                self._workbench.say(f"{row.name} is reported in every run and takes no threshold")
            case MetricRow():
                self._workbench.say(f"{row.name} is already in use")
            case RubricRow(metric=metric, index=index):
                self._ask_for_rubric(metric, index)
            case OptionRow(metric=metric) if row.option.kind == "rubrics":
                self._ask_for_rubric(metric, -1)
            case OptionRow() | SettingRow():
                self.action_move_value(1)
            case _:
                self._workbench.say("Select a metric to add")

    def _add(self, row: MetricRow, text: str = "") -> None:
        if self.criteria.add(row, text.strip()):
            self.follow()
            self.rows.go_to(row)

    def _ask_for_rubric(self, metric: str, after: int) -> None:
        def typed(text: str) -> None:
            self.criteria.add_rubric(metric, after, text)
            self.follow()

        check = partial(self.criteria.check, RubricRow(metric, after, ""))
        ask(self, PromptScreen("Rubric", "", check, _RUBRIC_HINT, metric), typed)

    def action_delete(self) -> None:
        row = self.rows.current
        if row is None or isinstance(row, Group):
            return
        if isinstance(row, MetricRow) and not row.in_use:
            self._workbench.say(f"{row.name} is not in use")
        elif isinstance(row, OptionRow | SettingRow) and not row.is_set:
            self._workbench.say("Already the default")
        elif self.criteria.remove(row) and isinstance(row, MetricRow):
            self.follow()
            self.rows.stay_in_use()

    def action_move_value(self, direction: int, far: bool = False) -> None:
        row = self.rows.current
        if isinstance(row, Group):
            if row.is_open != (direction > 0):
                self.rows.fold(row.subject)
        elif isinstance(row, MetricRow) and not row.in_use:
            self._workbench.say(f"{row.name} is not in use   {key_of('add_criterion')} add")
        elif isinstance(row, RubricRow) or (isinstance(row, OptionRow) and row.option.kind == "text"):
            self._workbench.say(f"Text   {key_of('edit_value')} edit")
        elif row is not None:
            self.criteria.move(row, direction, far=far)

    def action_edit_value(self) -> None:
        row = self.rows.current
        if row is None:
            return
        if isinstance(row, Group) or (isinstance(row, MetricRow) and not row.in_use):
            self.action_add_criterion()
        elif text_of(row) is not None:
            self._ask(row)
        elif isinstance(row, OptionRow) and row.option.kind == "rubrics":
            self.action_add_criterion()
        elif isinstance(row, ReferenceRow):
            self._workbench.say(f"Edited in the case   {key_of('delete')} remove")
        else:
            self.action_move_value(1)

    def _ask(self, row: Row) -> None:
        def typed(text: str) -> None:
            if text != before:
                self.criteria.type(row, text)
                self.follow()

        before = text_of(row) or ""
        title, hint = _question(row)
        self.criteria.end_move()
        ask(self, PromptScreen(title, before, partial(self.criteria.check, row), hint), typed)

    # Mouse

    @on(CriteriaRows.Moved)
    def _end_move(self) -> None:
        self.criteria.end_move()
        self.details.from_top()
        self._draw_borders()

    @on(CriteriaRows.Opened)
    def _edit_opened(self) -> None:
        self.action_edit_value()
        self.follow()

    def on_criteria_rows_slid(self, message: CriteriaRows.Slid) -> None:
        self.criteria.set_threshold(message.row, message.threshold)
        self.follow()


_RUBRIC_HINT = "A good response, in one sentence"


def _question(row: Row) -> tuple[str, str]:
    """The title of the question for a value, and a hint."""
    match row:
        case MetricRow(name=name, lower_is_better=lower):
            sides = "at most" if lower else "at least"
            return f"Threshold of {name}", f"Passes with a score of {sides} this; {range_text(row)}"
        case OptionRow(metric=metric, option=option):
            return f"{option.name} of {metric}", option.meaning
        case RubricRow(metric=metric):
            return f"Rubric for {metric}", _RUBRIC_HINT
        case SettingRow(title=title, meaning=meaning):
            return title, meaning
    return "", ""
