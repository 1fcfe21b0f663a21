"""What the selected case says, every line of it to be edited in its place; or its set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult

from evaltui.core.jsondoc.edits import EditError
from evaltui.core.model.arg_path import parse_arg_path
from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.text.lines import Line, cells
from evaltui.text.values import visible
from evaltui.tui import attaching
from evaltui.tui.bindings import bindings
from evaltui.tui.external_editor import EditorError, edit_outside
from evaltui.tui.key_order import KeysInOrder
from evaltui.tui.pages.empty import write_no_sets
from evaltui.tui.pages.eval_set import write_set_facts
from evaltui.tui.pages.writer import Page
from evaltui.tui.pane import PagePane
from evaltui.tui.widgets.field import FieldLine, FieldText
from evaltui.tui.widgets.typed_text import as_one_line
from evaltui.workbench.actions import Scope
from evaltui.workbench.case_document import CaseDocument
from evaltui.workbench.differences import expected_call, judged_row
from evaltui.workbench.editing import Make
from evaltui.workbench.fields import Completion, Field, FieldError, Kind, Operation, Part, Row, RowId
from evaltui.workbench.state import CaseKey, DifferenceAt, Selection
from evaltui.workbench.unapplied import UnappliedTexts
from evaltui.workbench.workbench import Workbench

_PARTS: tuple[Part, ...] = ("value", "name")
_MOST_CHOICES = 6
_TALLEST = 12

_LINE_HINT = "enter keeps it · tab goes on · esc takes it back"
_ADD_HINT = "enter adds it · type to find it · esc leaves"
_TEXT_HINT = "ctrl+s saves · tab goes on · esc keeps it and leaves"


@dataclass
class _Open:
    """The field that is being edited. `typing` makes one step of all that is typed into it.

    `kind` is what it was when it was opened: it goes on so, in the same `widget`, whatever is typed.
    `handled` is the text that was last looked at, `seen` what the data had then, `base` what esc brings back;
    `problem` is why the text is not in the data. `fresh` is a field of something that was added right before.
    `is_gone` once somebody else has taken out what it belongs to.
    """

    row: RowId
    part: Part
    field: Field
    kind: Kind
    widget: FieldText
    typing: Hashable
    handled: str
    seen: str
    base: str
    fresh: bool
    done: bool
    is_gone: bool = False
    problem: str = ""
    choice: int | None = None
    chosen_from: tuple[Completion, ...] = ()
    adds: dict[str, Callable[[], None]] | None = None

    @property
    def is_text(self) -> bool:
        """Whether it was opened as a text of many lines."""
        return self.kind in ("text", "json")


class CaseView(PagePane, can_focus=True, inherit_bindings=False):
    BINDINGS = bindings(Scope.CASE)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._document = CaseDocument(workbench)
        self._line = FieldLine(self._told, id="case-line")
        self._line.soft_wrap = True
        self._text = FieldText(self._told, id="case-text")
        self._rows: list[Row] = []
        self._at: RowId = ()
        self._current = 0
        self._open: _Open | None = None
        self._opened_times = 0
        self._placed: Sequence[Any] = ()
        self._went_to: Selection | None = None
        self._choices_at: int | None = None
        self._field_width = 0

    @property
    def is_container(self) -> bool:
        # A ScrollView draws lines and no children, unless it says so.
        return True

    def compose(self) -> ComposeResult:
        # They are there from the start: a field that is mounted when it is needed misses the first keys.
        yield self._line
        yield self._text

    def heading(self) -> Line:
        selection = self._workbench.selection
        if selection.path is None:
            return []
        if selection.eval_id is None:
            entry = self._workbench.entry(selection.path)
            return [(visible(entry.eval_set_id if entry else selection.path.name), "")]
        return [(visible(selection.eval_id), "")]

    # Following the workbench

    def follow(self) -> None:
        if self._document.follow():
            self._rows = self._document.rows
            self._find_current()
        self._follow_field()
        self._go_to_selection()
        super().follow()
        self._place_field()

    def fingerprint(self) -> Hashable:
        selection = self._workbench.selection
        opened = self._workbench.opened(selection.path) if selection.path else None
        field = self._open
        seen = (field.row, field.part, field.problem, field.choice, self._height()) if field else None
        typed = (field.handled, field.chosen_from) if field and (field.chosen_from or field.adds) else None
        return (
            id(self._workbench.workspace) if not self._rows else self._document.version,
            selection.path,
            selection.case,
            id(opened) if not self._rows else None,
            seen,
            typed,
            tuple(self._unapplied.now()),
            self.size.height if field else None,
        )

    def write(self, page: Page) -> None:
        workbench = self._workbench
        self._placed, self._choices_at = (), None
        if workbench.workspace is None:
            page.row(("looking for eval sets …", "dim"))
            return
        path, key = workbench.selection.path, workbench.selection.case
        entry = workbench.entry(path) if path else None
        if entry is None:
            write_no_sets(page, workbench.workspace)
        elif key is None:
            write_set_facts(page, entry, workbench.opened(entry.path))
        elif self._rows:
            self._write_rows(page, key)
        elif workbench.opened(entry.path) is None:
            page.row(("reading the case …", "dim"))
        else:
            write_set_facts(page, entry, workbench.opened(entry.path))

    def _write_rows(self, page: Page, key: CaseKey) -> None:
        from evaltui.tui.pages.case import OpenField, write_rows

        if (reason := self._refusal()) is not None:
            page.text([(visible(reason), "yellow")])
            page.blank()
        field, opened = self._open, None
        if field is not None:
            adding = field.adds is not None or field.is_gone
            height, below = self._height(), self._below()
            opened = OpenField(
                field.row, field.part, height, field.is_text, below, _hint(field), adding=adding
            )
        self._placed = write_rows(page, [self._with_unapplied(row) for row in self._rows], opened)
        if field is not None and self._matches():
            place = self._placed[self._current]
            self._choices_at = place.y + self._height()

    def _refusal(self) -> str | None:
        return self._workbench.editing.refuses_to_edit(self._workbench.selection.path)

    @property
    def _unapplied(self) -> UnappliedTexts:
        """What could not become what a case says: nothing that was typed is lost."""
        return self._workbench.editing.unapplied

    def _with_unapplied(self, row: Row) -> Row:
        path = self._workbench.selection.path
        if path is None or (self._open and self._open.row == row.id):
            return row
        parts = dict.fromkeys(self._document.place_of(row, part) for part in _PARTS if row.of(part))
        places = [*parts, self._document.place_of(None, "raw")] if row.id == ("id",) else [*parts]
        left = [found for at, name in places if (found := self._unapplied.at(path, at, name))]
        said = [Problem(Severity.ERROR, (), f"not in the case yet: {one}") for one in left]
        return replace(row, findings=(*said, *row.findings)) if said else row

    # The cursor

    def _find_current(self) -> None:
        """Where the cursor is, now that the rows are others: at what it was at, or at the same place."""
        for number, row in enumerate(self._rows):
            if row.id == self._at:
                self._current = number
                return
        self._current = max(0, min(self._current, len(self._rows) - 1))
        if self._rows:
            self._at = self._rows[self._current].id

    def _go_to_selection(self) -> None:
        """To the case, or to the turn, that was selected elsewhere."""
        selection = self._workbench.selection
        if selection == self._went_to or (selection.case and not self._rows):
            return
        before, self._went_to = self._went_to, selection
        if not self._rows:
            return
        if selection.turn is not None:
            self._move_to_id(("turn", selection.turn))
        elif before is None or before.case != selection.case:
            renamed_from = self._document.renamed_from
            if renamed_from is None or before is None or before.case != renamed_from:
                self._current, self._at = 0, self._rows[0].id
                if self._document.is_new:
                    self._move_to_id(("turn", 0, "user", 0))

    def show_expected(self, at: DifferenceAt) -> None:
        """Go to what is expected where a result differs; where nothing is, to its turn."""
        self.follow()
        key = self._workbench.selection.case
        scored = self._workbench.results.get(key) if key else None
        if scored is None:
            return
        wanted: RowId = ("final_state",) if at.turn is None else ("turn", at.turn)
        if at.kind == "answer":
            wanted = (*wanted, "answer", 0)
        elif at.kind == "judgement":
            wanted = judged_row(scored.shown, scored.case, at)
        elif (call := expected_call(scored.shown, scored.case, at)) is not None:
            wanted = (*wanted, "call", call)
            if at.kind == "argument" and at.row is not None and at.turn is not None:
                args = scored.shown.turns[at.turn].calls[at.row].expected
                names = list((args.args if args else None) or {})
                first = next(iter(parse_arg_path(at.path)), None) if at.path else None
                wanted = (*wanted, "arg", names.index(first)) if first in names else wanted
        self._move_to_id(wanted)
        self._show_current()
        self.refresh()

    def _scroll_to_selection(self) -> None:
        """After the page is written: the cursor is where it is to be."""
        if self._rows:
            self.call_after_refresh(self._show_current)
        else:
            super()._scroll_to_selection()

    @property
    def _row(self) -> Row | None:
        return self._rows[self._current] if self._current < len(self._rows) else None

    def _move_to_id(self, id: RowId) -> None:
        """To a row, or to what it is a part of where it is not there."""
        known = {row.id: number for number, row in enumerate(self._rows)}
        wanted = id
        while wanted and wanted not in known:
            wanted = wanted[:-1]
        if wanted:
            self._current, self._at = known[wanted], wanted

    def _move_by(self, step: int) -> None:
        if self._rows:
            self._current = max(0, min(self._current + step, len(self._rows) - 1))
            self._at = self._rows[self._current].id
            self._show_current()
            self.refresh()

    def _show_current(self) -> None:
        if self._current < len(self._placed):
            place = self._placed[self._current]
            top = 0 if self._current == 0 else place.first
            self.show_line(min(place.last - 1, top + max(0, self.size.height - 1)))
            self.show_line(top)

    def action_line_down(self) -> None:
        if not self._rows:
            super().action_line_down()
        elif self._has_more_below():
            self.scroll_relative(y=1, animate=False)
        else:
            self._move_by(1)

    def action_line_up(self) -> None:
        if not self._rows:
            super().action_line_up()
        elif self._has_more_above():
            self.scroll_relative(y=-1, animate=False)
        else:
            self._move_by(-1)

    def _has_more_below(self) -> bool:
        """Whether the current row is longer than what is seen of it: then it is read before it is left."""
        if self._current >= len(self._placed):
            return False
        return bool(self._placed[self._current].last > self.scroll_offset.y + self.size.height)

    def _has_more_above(self) -> bool:
        if self._current >= len(self._placed):
            return False
        return bool(self._placed[self._current].first < self.scroll_offset.y)

    def action_page_down(self) -> None:
        self._page_by(1)

    def action_page_up(self) -> None:
        self._page_by(-1)

    def _page_by(self, step: int) -> None:
        if not self._rows or not self._placed:
            (super().action_page_down if step > 0 else super().action_page_up)()
            return
        wanted = self._placed[self._current].first + step * max(1, self.size.height - 1)
        number = self._row_at(max(0, wanted))
        self._move_by((number if number is not None else len(self._rows) - 1) - self._current)

    def action_top(self) -> None:
        if self._rows:
            self._move_by(-len(self._rows))
        else:
            super().action_top()

    def action_bottom(self) -> None:
        if self._rows:
            self._move_by(len(self._rows))
        else:
            super().action_bottom()

    def _row_at(self, line: int) -> int | None:
        """The row that has a line, or the next one below it."""
        return next((number for number, place in enumerate(self._placed) if line < place.last), None)

    def on_click(self, event: events.Click) -> None:
        if event.widget in (self._line, self._text):
            return
        if self._open and self._open.is_gone:
            return
        line = self.scroll_offset.y + event.y
        matches = self._matches()
        if self._open and self._choices_at is not None and 0 <= line - self._choices_at < len(matches):
            self._open.choice = line - self._choices_at + self._first_choice()
            self._told("end_field")
            return
        self.left()
        number = self._row_at(line)
        if number is None or line >= len(self.page.lines):
            return
        self._move_by(number - self._current)
        if event.chain == 2:
            self.action_edit_field()

    # Drawing

    def line(self, number: int) -> Line:
        line = self.page.lines[number]
        if not self._is_current(number):
            return [(" ", ""), *line]
        marked: Line = [("▌", "accent" if self._has_the_focus() else "dim"), *line]
        place = self._placed[self._current]
        if number == place.first and self._open is None and self._row and self._row.adds:
            hint = f"o {self._row.adds[0].label} "
            gap = self.line_width - cells(marked) - cell_len(hint)
            if gap > 1 and self._has_the_focus():
                return [*marked, (" " * gap, ""), (hint, "dim")]
        return marked

    def line_classes(self, number: int) -> tuple[str, ...]:
        return ("current-line",) if self._is_current(number) and self._open is None else ()

    def _is_current(self, number: int) -> bool:
        if self._current >= len(self._placed) or self._refusal():
            return False
        place = self._placed[self._current]
        return bool(place.first <= number < place.last)

    def _has_the_focus(self) -> bool:
        return self.has_focus or self._line.has_focus or self._text.has_focus

    def on_focus(self) -> None:
        if self._open is not None and self.screen.focused is self:
            self.screen.set_focus(self._open.widget, scroll_visible=False)
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    # Doing things to rows

    def _ready(self) -> Row | None:
        """The current row, such that what it offers fits the file; None where nothing can be edited."""
        path, case = self._workbench.selection.path, self._workbench.selection.case
        if path is None or case is None:
            return None
        reason = self._refusal()
        try:
            if reason is None:
                # It may still be being read: who asks for a field need not wait for that.
                self._workbench.editing.data(path)
        except (OSError, EvalSetError) as error:
            reason = f"{path.name} cannot be edited: {error}"
        self.follow()
        row = self._row if reason is None else None
        if row is None:
            self._no_row(reason)
        return row

    def _no_row(self, reason: str | None) -> None:
        """Nothing can be edited: what has been typed already was meant for a field that does not come."""
        if reason is not None:
            self._workbench.say(reason)
        if isinstance(self.app, KeysInOrder):
            self.app.ignore_typed_ahead()

    def _do(self, operation: Operation, *, typing: Hashable = None) -> bool:
        """Do it, and go to the row that it is about then; whether it could be done."""
        path = self._workbench.selection.path
        if path is None:
            return False
        done = True
        if operation.make is not None:
            done = self._workbench.editing.do(operation.label, path, operation.make, typing=typing)
        if done:
            self.follow()
            if operation.then is not None:
                self._move_to_id(operation.then)
            self._show_soon()
        return done

    def _show_soon(self) -> None:
        self.follow()
        self.call_after_refresh(self._show_current)
        self.refresh()

    def _perform(self, operation: Operation | None, otherwise: str) -> None:
        if operation is None:
            self._no_row(otherwise)
            return
        typing = self._new_typing(operation.then or ()) if operation.opens else None
        if self._do(operation, typing=typing) and operation.opens:
            self._edit(operation.opens, typing=typing, fresh=operation.make is not None)
        if operation.opens and self._open is None:
            self._no_row(None)

    def _new_typing(self, row: RowId) -> Hashable:
        self._opened_times += 1
        return "field of a case", self._workbench.selection.case, row, self._opened_times

    def action_edit_field(self) -> None:
        row = self._ready()
        if row is None:
            return
        if row.field is not None:
            self._edit("value")
        elif row.role == "turn":
            self._perform(Operation("", None, (*row.id, "user", 0), "value"), "")
        elif row.adds and row.role in ("fact", "argument", "hint"):
            self._perform(row.adds[0], "")
        else:
            self._no_row("this is kept as it is; f4 shows the JSON of the case, where it can be changed")

    def action_rename_field(self) -> None:
        row = self._ready()
        if row is not None:
            if row.rename is not None:
                self._edit("name")
            elif row.role == "call":
                self._edit("value")
            else:
                self._no_row("there is no name on this line")

    def action_add_below(self) -> None:
        row = self._ready()
        if row is not None:
            self._perform(row.adds[0] if row.adds else None, "nothing can be added here")

    def action_insert_before(self) -> None:
        row = self._ready()
        if row is not None:
            self._perform(row.insert, "O inserts a turn before a turn, a call before a call")

    def action_duplicate_field(self) -> None:
        row = self._ready()
        if row is not None:
            self._perform(row.duplicate, "d duplicates a turn or a call: go to one")

    def action_delete_field(self) -> None:
        row = self._ready()
        if row is not None:
            self._perform(row.delete, "this line cannot be deleted")

    def action_move_field_up(self) -> None:
        self._move_row(-1)

    def action_move_field_down(self) -> None:
        self._move_row(1)

    def _move_row(self, step: int) -> None:
        row = self._ready()
        if row is not None:
            self._perform(row.move(step) if row.move else None, "turns and calls can be moved: go to one")

    def action_next_kind(self) -> None:
        row = self._ready()
        if row is None:
            return
        if row.cycle is not None:
            self._perform(row.cycle, "")
        elif row.turn is None:
            self._workbench.say("go to a turn: there it changes what is expected of calls")
        else:
            operation, lost = self._document.next_kind(row.turn)
            self._perform(operation, "")
            if lost:
                count = "its call is" if lost == 1 else f"its {lost} calls are"
                self._workbench.say(f"turn {row.turn + 1}: {count} taken out; u brings them back")

    def action_context_turn(self) -> None:
        row = self._ready()
        if row is not None:
            operation = None if row.turn is None else self._document.toggle_context(row.turn)
            self._perform(operation, "go to the turn that is to be run and not scored")

    # Choosing what to add

    def action_add_other(self) -> None:
        row = self._ready()
        if row is None:
            return
        adds: dict[str, Callable[[], None]] = {
            one.label: partial(self._perform, one, "") for one in row.adds if one.label
        }
        if row.turn is not None:
            adds["attach a file to what the user says"] = partial(self._ask_for_file, row.turn)
        choices = tuple(Completion(label) for label in adds)
        field = Field("", "", "line", _changes_nothing, choices, live=False)
        self._open_field(row, "value", field, None, fresh=False, adds=adds)
        self._show_soon()

    def _ask_for_file(self, turn: int) -> None:
        from evaltui.tui.screens.prompt import PromptScreen

        question = PromptScreen(attaching.TITLE, check=attaching.cannot_attach, hint=attaching.HINT)
        self.app.push_screen(question, partial(self._attach_file, turn))

    def _attach_file(self, turn: int, text: str | None) -> None:
        if text is None or self._ready() is None:
            return
        try:
            file = attaching.read_attached(text)
        except OSError as error:
            self._workbench.say(f"{text} is not attached: {error}")
            return
        if self._do(self._document.attach(turn, file.payload, file.mime_type)):
            self._workbench.say(file.said)

    # A field is opened, typed in, and closed

    def _edit(
        self, part: Part, *, typing: Hashable = None, fresh: bool = False, selected: bool = False
    ) -> None:
        row = self._row
        field = row.of(part) if row else None
        if row is not None and field is not None:
            # Names complete from what it declares.
            self._workbench.agent.learn_tools()
            self._open_field(row, part, field, typing, fresh=fresh, selected=selected or fresh)
            self._show_soon()

    def _open_field(
        self,
        row: Row,
        part: Part,
        field: Field,
        typing: Hashable,
        *,
        fresh: bool,
        selected: bool = False,
        adds: dict[str, Callable[[], None]] | None = None,
    ) -> None:
        self._close(keep=True)
        path = self._workbench.selection.path
        left = None
        if path is not None and adds is None:
            left = self._unapplied.at(path, *self._document.place_of(row, part))
        text, problem = (left.text, left.problem) if left else (field.text, "")
        widget = self._text if field.kind in ("text", "json") else self._line
        self._line.one_line = field.kind == "line"
        self._open = _Open(
            row.id,
            part,
            field,
            field.kind,
            widget,
            typing or self._new_typing(row.id),
            handled=text,
            seen=field.text,
            base=field.text,
            fresh=fresh,
            done=fresh,
            problem=problem,
            choice=None if adds is None else 0,
            chosen_from=field.completions,
            adds=adds,
        )
        for one in (self._line, self._text):
            one.display = one is widget
        widget.begin(text, selected=selected, is_json=field.kind == "json")
        # What the widget makes of a text, nobody has typed.
        self._open.handled = widget.typed
        self.follow()
        # At once, not soon: what is typed right behind the key is meant for the field.
        self.screen.set_focus(widget, scroll_visible=False)

    def on_text_area_changed(self) -> None:
        self._typed()

    def _typed(self) -> None:
        """Take over what is in the field, as far as it is valid."""
        field = self._open
        if field is None or field.widget.typed == field.handled:
            return
        field.handled = field.widget.typed
        field.choice = None
        if matches := self._matches():
            names = field.part == "name" or field.row[-2:-1] == ("call",) or field.adds is not None
            begins = matches[0].text.casefold().startswith(field.handled.casefold())
            field.choice = 0 if field.handled and (names or begins) else None
        if field.is_gone:
            return
        if field.field.live:
            self._commit()
        else:
            self._keep_unapplied(field)
        self._show_soon()

    def _keep_unapplied(self, field: _Open) -> None:
        """What is typed and not in the case is kept while it is not, wherever one goes meanwhile."""
        row, path = self._open_row(), self._workbench.selection.path
        if row is None or path is None or field.adds is not None:
            return
        at = self._document.place_of(row, field.part)
        if field.problem or (field.handled != field.field.text and not field.field.live):
            self._unapplied.keep(path, *at, field.handled, field.problem)
        else:
            self._unapplied.drop(path, *at)

    def _commit(self) -> None:
        """What is in the field becomes what the case says, or `problem` says why not."""
        field, selection = self._open, self._workbench.selection
        if field is None or selection.path is None or field.adds is not None:
            return
        text = field.handled
        field.problem = ""
        try:
            make = field.field.change(text)
            if problem := self._document.refuses(make):
                raise FieldError(problem)
        except (FieldError, EditError) as error:
            field.problem = str(error)
        else:
            self._do_typed(field, selection.path, make)
        self._keep_unapplied(field)

    def _do_typed(self, field: _Open, path: Path, make: Make) -> None:
        moved, after = self._renaming(field, field.handled)
        notice = self._workbench.notice
        done = self._workbench.editing.do(
            field.field.label, path, make, typing=field.typing, moved=moved, after=after
        )
        if done:
            field.done = True
            self._document.follow()
            self._rows = self._document.rows
            self._find_current()
        elif self._workbench.notice is not notice and self._workbench.notice is not None:
            # It was refused, which has been said.
            field.problem = self._workbench.notice.text
        row = self._open_row()
        now = row.of(field.part) if row else None
        if now is not None:
            field.field = now.of_kind(field.kind)
            field.seen = field.field.text

    def _renaming(self, field: _Open, text: str) -> tuple[dict[CaseKey, CaseKey] | None, Selection | None]:
        """Whoever knows the case by its id is told of another one."""
        key = self._workbench.selection.case
        if key is None or field.row != ("id",) or text == key.eval_id:
            return None, None
        return {key: CaseKey(key.path, text)}, Selection(key.path, text)

    def _open_row(self) -> Row | None:
        wanted = self._open.row if self._open else None
        return next((row for row in self._rows if row.id == wanted), None)

    def _follow_field(self) -> None:
        """What an undo, or somebody else, has changed in the row that is open."""
        field = self._open
        if field is None or field.adds is not None or field.is_gone:
            return
        row = self._open_row()
        now = row.of(field.part) if row else None
        if self._document.key != field_key(field):
            self._close_from_outside()
            return
        if now is None:
            self._lose_row(field)
            return
        # The agent may have told of its tools only now.
        field.chosen_from = now.completions
        if now.of_kind(field.kind).text == field.seen:
            return
        was_typed = bool(field.problem) or field.widget.typed != field.handled or not field.field.live
        if was_typed and field.widget.typed != field.seen:
            field.field = now.of_kind(field.kind)
            field.seen = field.base = field.field.text
            field.problem = f"changed outside meanwhile, to {field.seen[:60]}; esc takes that"
            self._keep_unapplied(field)
            return
        # It begins anew, as what it is now.
        field.kind = _kind_in(field, now)
        field.field = now.of_kind(field.kind)
        field.seen = field.base = field.field.text
        field.widget.begin(field.field.text, selected=False, is_json=field.kind == "json")
        field.handled, field.problem = field.widget.typed, ""

    def _lose_row(self, field: _Open) -> None:
        """What is typed at a line that somebody else has taken out stays there to be read and copied."""
        if not self._rows or field.widget.typed == field.base:
            self._close_from_outside()
            return
        field.is_gone = True
        field.row = self._rows[self._current].id
        field.problem = "this line was taken out outside: what is typed cannot be kept here; esc leaves"

    def _close_from_outside(self) -> None:
        """What the user goes on typing is no command."""
        was_typing = self._open is not None and self._open.widget.has_focus
        self._close(keep=True)
        if was_typing and isinstance(self.app, KeysInOrder):
            self.app.swallow_typing()
            self._workbench.say("the field is closed, as its line was changed elsewhere; esc goes on")

    def _close(self, *, keep: bool) -> None:
        """Leave the field. What is not valid is kept for later with `keep`, else nothing of it is left."""
        field = self._open
        if field is None:
            return
        row, path = self._open_row(), self._workbench.selection.path
        if not keep and row is not None and path is not None and field.adds is None and not field.is_gone:
            self._unapplied.drop(path, *self._document.place_of(row, field.part))
        self._open = None
        if field.widget.has_focus:
            self.screen.set_focus(self, scroll_visible=False)
        self._line.display = self._text.display = False
        self._workbench.editing.end_typing()

    # Keys in a field

    def _told(self, action_id: str) -> None:
        """A key that a field does not take itself."""
        match action_id:
            case "end_field" | "end_text":
                self._end()
            case "leave_field":
                self._leave()
            case "next_field":
                self._step_field(1)
            case "previous_field":
                self._step_field(-1)
            case "save_field":
                if self._finished():
                    self._close(keep=True)
                self._show_soon()
                self._workbench.editing.save_all()
            case "next_choice":
                self._step_choice(1)
            case "previous_choice":
                self._step_choice(-1)
            case "field_in_editor":
                self._field_in_editor()

    def left(self) -> None:
        """What is typed counts, but for what is only proposed below it."""
        if self._open is not None:
            self._open.choice = None
            self._finished()
            self._close(keep=True)
            self._show_soon()

    def _finished(self) -> bool:
        """Whether all that was typed is in the case now; what was chosen below the field counts as typed."""
        field = self._open
        if field is None:
            return True
        if field.is_gone:
            return False
        matches = self._matches()
        if field.choice is not None and field.choice < len(matches):
            field.widget.begin(matches[field.choice].text, selected=False)
            field.choice = None
        typed = field.widget.typed
        if typed != field.handled or not field.field.live:
            field.handled = typed
            if field.field.live or typed != field.field.text:
                self._commit()
        return not field.problem

    def _end(self) -> None:
        field = self._open
        if field is None:
            return
        if field.adds is not None:
            self._add_chosen(field)
            return
        if not self._finished():
            self._show_soon()
            return
        self._go_on(field, self._then(field))

    def _then(self, field: _Open) -> Operation | None:
        """What comes after a field: to its value from the name of something new, to arguments from a call."""
        row = self._open_row()
        now = row.of(field.part) if row else None
        then = now.then if now else None
        if then is None or (then.make is None and not field.fresh):
            return None
        return then

    def _go_on(self, field: _Open, then: Operation | None) -> None:
        """Close a field in which all is well, and do what comes after it."""
        if then is not None and then.make is not None:
            # A call, its name and the arguments that it needs are one step.
            self._do(replace(then, then=None), typing=field.typing)
        self._close(keep=True)
        if then is not None and then.then is not None:
            self._move_to_id(then.then)
        self._show_soon()
        if then is not None and then.opens:
            self._edit(then.opens, selected=True)
            if self._open is None:
                # It could not be made: one stays where one was, and what is typed next is typed there.
                self._move_to_id(field.row)
                self._edit(field.part)

    def _add_chosen(self, field: _Open) -> None:
        matches = self._matches()
        chosen = matches[field.choice].text if field.choice is not None and matches else self._line.typed
        add = (field.adds or {}).get(chosen)
        if add is None:
            field.problem = "nothing of this kind can be added here; esc leaves"
            self._show_soon()
            return
        self._close(keep=False)
        self._show_soon()
        add()

    def _leave(self) -> None:
        """Of a line, and of something new in which nothing was typed, everything is taken back."""
        field = self._open
        if field is None:
            return
        unchanged = field.widget.typed == field.field.text and not field.widget.typed
        if not field.is_text or field.is_gone or (field.fresh and unchanged):
            self._take_back(field)
            self._close(keep=False)
        else:
            self._finished()
            self._close(keep=True)
        self._show_soon()

    def _take_back(self, field: _Open) -> None:
        """Undo what was typed into this field, and no other step."""
        if field.done:
            self._workbench.editing.undo_typing(field.typing)
            self._document.follow()
            self._rows = self._document.rows
        row, path = self._open_row(), self._workbench.selection.path
        now = row.of(field.part) if row else None
        if field.fresh or field.is_gone or now is None or path is None:
            return
        field.field = now.of_kind(field.kind)
        if field.done and field.field.text == field.seen != field.base and field.field.live:
            # Something else was done since: that stays, and what was there before is typed again.
            make = field.field.change(field.base)
            self._workbench.editing.do(field.field.label, path, make, typing=field.typing)

    def _step_field(self, step: int) -> None:
        """End this field, and edit the next one; the last one is not left: what is typed next goes there."""
        field = self._open
        if field is None or field.adds is not None:
            return
        if not self._finished():
            self._show_soon()
            return
        then = self._then(field) if step > 0 else None
        if then is not None:
            self._go_on(field, then)
            return
        order = range(self._current + step, len(self._rows) if step > 0 else -1, step)
        following = next((number for number in order if self._rows[number].field is not None), None)
        if following is None:
            key = "enter" if not field.is_text else "esc"
            self._workbench.say(f"this is the {'last' if step > 0 else 'first'} field; {key} leaves it")
            self._show_soon()
            return
        self._go_on(field, None)
        self._move_by(following - self._current)
        self._edit("value", selected=True)

    # What a text may become

    def _matches(self) -> list[Completion]:
        """What the field offers for what is typed; nothing where that is one of them already."""
        field = self._open
        if field is None or not field.chosen_from:
            return []
        typed = field.handled
        if typed == field.field.text and field.field.live and not field.done:
            typed = ""
        if any(typed == one.text for one in field.chosen_from):
            return []
        wanted = typed.casefold()
        found = [one for one in field.chosen_from if wanted in one.text.casefold()]
        return sorted(found, key=lambda one: not one.text.casefold().startswith(wanted)) if typed else found

    def _step_choice(self, step: int) -> None:
        field, matches = self._open, self._matches()
        if field is not None and not matches:
            (field.widget.action_cursor_down if step > 0 else field.widget.action_cursor_up)()
        if field is None or not matches:
            return
        place = -1 if field.choice is None else field.choice
        place = max(-1, min(place + step, len(matches) - 1))
        field.choice = None if place < 0 else place
        self._show_soon()

    def _first_choice(self) -> int:
        """The first of the choices that are seen: there may be more than fit."""
        chosen = self._open.choice if self._open and self._open.choice is not None else 0
        return max(0, chosen - _MOST_CHOICES + 1)

    def _below(self) -> list[Line]:
        """What stands under the field: what the text may become, and why it is not in the case."""
        field = self._open
        if field is None:
            return []
        lines: list[Line] = []
        matches, first = self._matches(), self._first_choice()
        for number, one in enumerate(matches[first : first + _MOST_CHOICES], first):
            chosen = number == field.choice
            detail = f"  {one.detail.splitlines()[0][:80]}" if one.detail else ""
            lines.append(
                [
                    ("› " if chosen else "  ", "accent"),
                    (visible(one.text), "accent" if chosen else ""),
                    (visible(detail), "dim"),
                ]
            )
        if len(matches) > first + _MOST_CHOICES:
            lines.append([(f"  … {len(matches) - first - _MOST_CHOICES} more", "dim")])
        if field.problem:
            lines.append([("! ", "red"), (visible(field.problem), "red")])
        return lines

    # Where the field is on the page

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._open is not None and round(old_value) != round(new_value):
            # A ScrollView draws its lines anew, and leaves the widgets in it where they were.
            self.refresh(layout=True)

    def _height(self) -> int:
        """The lines that the field takes."""
        field = self._open
        if field is None:
            return 1
        width = self._field_width or max(10, min(self.size.width - 3, 110) - 16)
        least = 2 if field.is_text else 1
        most = max(least, min(_TALLEST, self.size.height - 6))
        return max(least, field.widget.height_at(width, most))

    def _place_field(self) -> None:
        field = self._open
        if field is None or self._current >= len(self._placed):
            return
        place = self._placed[self._current]
        width = max(8, min(self.page.width, self.line_width - 2) - place.x)
        field.widget.styles.offset = (place.x + 1, place.y)
        field.widget.styles.width = width
        if width != self._field_width:
            # How high it is depends on where it begins.
            self._field_width = width
            super().follow()
        field.widget.styles.height = self._height()

    # The whole case as JSON, and other programs

    def action_raw_case(self, text: str | None = None) -> None:
        row, key = self._ready(), self._workbench.selection.case
        if row is None or key is None:
            return
        from evaltui.tui.screens.raw import RawScreen

        left = self._unapplied.at(key.path, *self._document.place_of(None, "raw"))
        now = self._document.text()
        shown = text if text is not None else left.text if left else now
        take = partial(self._take_raw, now)
        screen = RawScreen(f"JSON of {key.eval_id}", shown, take, self._save_raw)
        self.app.push_screen(screen, partial(self._raw_left, key))

    def _take_raw(self, before: str, text: str) -> str | None:
        """Make a JSON text the case, which was `before`; why not, where it cannot be."""
        key = self._workbench.selection.case
        self._document.follow()
        if key is None or not self._document.rows:
            return "the case is gone"
        try:
            if self._document.text() != before != text:
                return "the case was changed outside meanwhile; f4 takes this over theirs, once this is left"
            made = self._document.replaced(text)
        except (FieldError, EditError) as error:
            return str(error)
        self._unapplied.drop(key.path, *self._document.place_of(None, "raw"))
        if made is None:
            return None
        make, new_id = made
        new_key = CaseKey(key.path, new_id)
        moved = {key: new_key} if new_key != key else None
        label = f"change the JSON of {key.eval_id}"
        self._workbench.editing.do(label, key.path, make, moved=moved, after=Selection(*new_key))
        self._show_soon()
        return None

    def _save_raw(self) -> None:
        self._workbench.editing.save_all()

    def _raw_left(self, key: CaseKey, unfinished: str | None) -> None:
        if unfinished is None:
            return
        self._document.follow()
        if self._document.key != key:
            self.app.copy_to_clipboard(unfinished)
            self._workbench.say("the case is gone: the JSON that was left unfinished is in the clipboard")
            return
        at = self._document.place_of(None, "raw")
        self._unapplied.keep(key.path, *at, unfinished, "f4 goes on with it")
        self._workbench.say("the JSON that was left unfinished is kept: f4 goes on with it")

    def action_external_editor(self) -> None:
        """The text of this line in the user's editor; where it has none, the whole case."""
        row = self._ready()
        if row is None:
            return
        if row.field is not None and row.field.kind in ("text", "json"):
            self._edit("value")
            self._field_in_editor()
            return
        before = self._document.call_json(row)
        whole = self._document.text()
        text, take = before or (whole, partial(self._take_raw, whole))
        try:
            changed = edit_outside(self.app, text, ".json")
        except EditorError as error:
            self._workbench.say(str(error))
            return
        if changed == text:
            return
        if reason := take(changed):
            if before:
                self._workbench.say(reason)
                self._raw_of(row, changed, take)
            else:
                self.action_raw_case(changed)

    def _raw_of(self, row: Row, text: str, take: Callable[[str], str | None]) -> None:
        from evaltui.tui.screens.raw import RawScreen

        self.app.push_screen(RawScreen("Arguments", text, take, self._save_raw))

    def _field_in_editor(self) -> None:
        field = self._open
        if field is None or field.adds is not None:
            return
        suffix = ".json" if field.kind == "json" else ".txt"
        before = field.widget.typed
        try:
            changed = edit_outside(self.app, before, suffix)
        except EditorError as error:
            self._workbench.say(str(error))
            return
        if changed != before:
            changed = as_one_line(changed) if field.kind == "line" else changed
            field.widget.begin(changed, selected=False, is_json=field.kind == "json")
        self._typed()


def _kind_in(field: _Open, now: Field) -> Kind:
    """What a field goes on as in the widget that it has, once its value has become another one."""
    if not field.is_text:
        return "value" if now.kind in ("text", "json") else now.kind
    if now.kind in ("text", "json"):
        return now.kind
    return "json" if now.kind == "value" else "text"


def _hint(field: _Open) -> str:
    if field.adds is not None:
        return _ADD_HINT
    return _TEXT_HINT if field.is_text else _LINE_HINT


def _changes_nothing(text: str) -> Any:
    raise FieldError("choose one of these")


def field_key(field: _Open) -> Any:
    """The case that a field belongs to."""
    return field.typing[1] if isinstance(field.typing, tuple) else None
