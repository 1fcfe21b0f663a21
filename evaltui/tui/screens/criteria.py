"""The metrics that score a set, their thresholds and options: `test_config.json` without its JSON."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from textual import on
from textual.app import ComposeResult

from evaltui.text.lines import Line, cells
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, ask, bindings
from evaltui.tui.pages.writer import Page
from evaltui.tui.panes.bars import Footer, Status
from evaltui.tui.screens.criteria_rows import CriteriaRows, write_details
from evaltui.tui.screens.prompt import PromptScreen
from evaltui.tui.widgets.lines import DrawnLine, HorizontalRule, PageLines, rule
from evaltui.workbench.actions import BY_ID, Scope
from evaltui.workbench.criteria import Criteria, text_of
from evaltui.workbench.criteria_rows import MetricRow, OptionRow, ReferenceRow, Row, RubricRow, SettingRow
from evaltui.workbench.workbench import Workbench


class CriteriaScreen(DialogScreen[None], inherit_bindings=False):
    """For the config beside a set. No key of the main screen works until it is closed."""

    BINDINGS = bindings(Scope.CRITERIA)
    AUTO_FOCUS = "#criteria-rows"

    def __init__(self, workbench: Workbench, set_path: Path) -> None:
        super().__init__()
        self._workbench = workbench
        self.criteria = Criteria(
            workbench.sets, workbench.outcomes, workbench.editing, set_path, workbench.say
        )
        self._followed: tuple[object, object, object] = (None, None, None)

    def compose(self) -> ComposeResult:
        yield DrawnLine(self._title)
        yield CriteriaRows(self.criteria, id="criteria-rows")
        yield HorizontalRule()
        yield PageLines(self._write_details, can_focus=False, id="criteria-details")
        yield Status(self._workbench, id="criteria-status")
        yield Footer(self._workbench, id="criteria-footer")

    def on_mount(self) -> None:
        self.query_one(Footer).scope = Scope.CRITERIA
        self.subscribe_to(self._workbench)
        self.follow()

    def _title(self, width: int) -> Line:
        """The file, whether it is unsaved, and the sets that it applies to."""
        path = self.criteria.path
        name: Line = [("Criteria", "bold"), (f"  {visible(path.parent.resolve().name)}/{path.name}", "")]
        if not self.criteria.exists:
            name.append(("  no such file yet", "muted"))
        elif self._workbench.editing.is_dirty(path):
            name.append((" ●", "bold accent"))
        sets = [visible(eval_set.eval_set_id) for eval_set in self.criteria.sets]
        text = "for " + ", ".join(sets)
        if len(text) > width - cells(name) - 14 and len(sets) > 1:
            text = f"for {len(sets)} sets"
        return rule(name, [(text, "muted")], width, heavy=True)

    def _write_details(self, page: Page) -> None:
        if (row := self.rows.current) is not None:
            write_details(page, row)

    @property
    def rows(self) -> CriteriaRows:
        return self.query_one(CriteriaRows)

    def follow(self) -> None:
        """Show the config and the results as they are now."""
        self._followed = self._shown_state()
        self.rows.follow()
        self._draw_around()

    def _draw_around(self) -> None:
        self.query_one(PageLines).show(self._write_details)
        self.query("OneLine").refresh()

    def draw_soon(self) -> None:
        """An edit is shown at once: the next key changes what it has made."""
        if self.is_here and self._shown_state()[1] != self._followed[1]:
            self.follow()
        super().draw_soon()

    def draw(self) -> None:
        if self._shown_state() != self._followed:
            self.follow()

    def _shown_state(self) -> tuple[object, object, object]:
        """The results, the config and the sets that are shown."""
        run, file = self._workbench.runs.current, self._workbench.editing.open_file(self.criteria.path)
        of_run = (run.number, len(run.done), run.over) if run else None
        return of_run, file.revision if file else self.criteria.exists, self._workbench.sets.workspace

    # Actions

    def refusal(self, action_id: str) -> str | None:
        return BY_ID[action_id].refusal(self._workbench)

    def refuse(self, action_id: str) -> None:
        if self.takes_input and (reason := self.refusal(action_id)):
            self._workbench.say(reason)

    def action_save(self) -> None:
        self._workbench.editing.end_typing()
        self._workbench.editing.save_all()
        self.follow()

    def action_undo(self) -> None:
        self._workbench.editing.end_typing()
        self._workbench.editing.undo()

    def action_redo(self) -> None:
        self._workbench.editing.end_typing()
        self._workbench.editing.redo()

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
            match row:
                case OptionRow(metric=metric.name, value=None) if row.option.kind == "text":
                    self._ask(row)
                    return

    def _ask_for_rubric(self, metric: str, after: int) -> None:
        def typed(text: str) -> None:
            self.criteria.add_rubric(metric, after, text)
            self.follow()

        check = partial(self.criteria.check, RubricRow(metric, after, ""))
        ask(self, PromptScreen(f"A rubric for {metric}", "", check), typed)

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
        def typed(text: str) -> None:
            if text != before:
                self.criteria.type(row, text)
                self.follow()

        before = text_of(row) or ""
        title, hint = _question(row)
        self._workbench.editing.end_typing()
        ask(self, PromptScreen(title, before, partial(self.criteria.check, row), hint), typed)

    # Mouse

    @on(CriteriaRows.Moved)
    def _end_typing(self) -> None:
        self._workbench.editing.end_typing()
        self._draw_around()

    @on(CriteriaRows.Opened)
    def _edit_opened(self) -> None:
        self.action_edit_criterion()
        self.follow()

    def on_criteria_rows_slid(self, message: CriteriaRows.Slid) -> None:
        self.criteria.set_threshold(message.row, message.threshold)
        self.follow()


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
