"""The dialog that saves a conversation as a case: its id, its set, its turns, and the expectations of
each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import TextArea

from evaltui.text.figures import UNKNOWN, counted
from evaltui.text.lines import Line, cells, cut, pad
from evaltui.text.syntax import value_line
from evaltui.text.values import visible
from evaltui.tui.dialogs.prompt import (
    CANCEL,
    Dialog,
    DialogKeys,
    FormLabel,
    FormScreen,
    Hint,
    QuestionNote,
    dialog_name,
)
from evaltui.tui.widgets.choices import ChoiceLine
from evaltui.tui.widgets.fields import FieldLine
from evaltui.tui.widgets.lines import CursorLines, DrawnLine
from evaltui.workbench.chat import saving
from evaltui.workbench.chat.conversation import Transcript
from evaltui.workbench.chat.saving import PARTS, Part, SaveChoices, TurnChoice, TurnMode
from evaltui.workbench.workbench import Workbench

# Rows besides those of the turns.
_OTHER_ROWS = 10
_NEW_SET = "new set"
_MODES: tuple[TurnMode, ...] = ("scored", "context", "left out")
# The heads of the columns for the parts of a turn, in two rows.
_COLUMN_HEADS = (("", "tool", "partial", ""), ("calls", "responses", "responses", "response"))
_NUMBER_WIDTH, _MODE_WIDTH, _CELL_WIDTH = 4, 9, 11
_MEANINGS = {
    "mode": "Context turns run without a score; turns that are left out are not in the case",
    "calls": "Tool calls and arguments are expected; off: calls are not checked",
    "results": "Tool responses are saved with the calls",
    "intermediate": "Texts before the response are expected",
    "answer": "The final response is expected",
    "state": "The case starts with the session state before its first turn",
    "final": "The session state after the last turn is expected",
}


class SaveCaseScreen(FormScreen[bool]):
    """Adds the case to its set, unsaved; returns whether it has."""

    box = "#save-case"
    AUTO_FOCUS = "#save-id"

    def __init__(self, workbench: Workbench, transcript: Transcript) -> None:
        super().__init__()
        self._workbench = workbench
        self._transcript = transcript
        self.rows = TurnRows(transcript, saving.propose_choices(workbench.editing, transcript))
        self._targets = saving.targets(workbench.editing)
        self._twin: tuple[SaveChoices, str] | None = None

    def compose(self) -> ComposeResult:
        sets = [self._workbench.sets.by_path(path) for path in self._targets]
        names = [eval_set.eval_set_id if eval_set else "" for eval_set in sets]
        target = self.choices.target
        chosen = self._targets.index(target) if target in self._targets else len(names)
        turns = counted(len(self.choices.turns), "turn")
        with Dialog(dialog_name("save_as_case"), [(turns, "muted")], id="save-case"):
            with Horizontal(classes="form-line"):
                yield FormLabel("id")
                yield FieldLine(id="save-id")
            yield ChoiceLine("set", [*names, _NEW_SET], chosen, id="save-target")
            with Horizontal(classes="form-line", id="save-new-line") as line:
                line.display = target is None
                yield FormLabel("new id")
                yield FieldLine(id="save-new")
            for number in range(len(_COLUMN_HEADS)):
                yield DrawnLine(partial(_turn_header, number), id=f"turn-header-{number}")
            yield self.rows
            yield QuestionNote()
            yield DialogKeys(self._hints)

    def on_mount(self) -> None:
        self.query_one("#save-id", FieldLine).show_text(self.choices.eval_id, selected=True)
        self.query_one("#save-new", FieldLine).show_text(self.choices.new_set, selected=False)
        self._follow_target()

    def _hints(self) -> list[Hint]:
        if isinstance(self.focused, TurnRows):
            more = [Hint("form_toggle", "change"), Hint("next_item", "column", "←→")]
        elif isinstance(self.focused, ChoiceLine):
            more = [Hint("next_item", "set", "←→")]
        else:
            more = []
        return [Hint("confirm", "save"), Hint("next_field"), *more, CANCEL]

    # What is chosen

    @property
    def choices(self) -> SaveChoices:
        return self.rows.choices

    def _set(self, **changes: Any) -> None:
        self.rows.choices = replace(self.choices, **changes)
        self._show_note()

    def _follow_target(self) -> None:
        line = self.query_one("#save-target", ChoiceLine)
        is_new = line.chosen >= len(self._targets)
        target = None if is_new else self._targets[line.chosen]
        line.remark = "" if target is None else target.name
        line.refresh()
        self.query_one("#save-new-line").display = is_new
        self._set(target=target)

    def on_choice_line_changed(self) -> None:
        self._follow_target()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        typed = event.text_area.text.strip()
        if event.text_area.id == "save-id":
            self._set(eval_id=typed)
        else:
            self._set(new_set=typed)

    @on(CursorLines.Moved)
    def _show_note(self) -> None:
        """Shows why the case cannot be saved; else an equal case, or the meaning of the column."""
        note = self.query_one(QuestionNote)
        if problem := saving.problem(self._workbench.editing, self.choices):
            note.show(problem)
        elif warning := self._twin_of(replace(self.choices, eval_id="", new_set="")) or saving.sub_agent_note(
            self._workbench.agent, self._transcript
        ):
            note.show(warning, warns=True)
        else:
            note.hint = _MEANINGS[self.rows.column] if self.rows.has_focus else ""
            note.show(None)

    def _twin_of(self, choices: SaveChoices) -> str:
        """A sentence on an equal case; searched again when turns or set change, not for each letter of the
        id."""
        if self._twin is None or self._twin[0] != choices:
            workbench = self._workbench
            twin = saving.twin(workbench.agent, workbench.editing, self._transcript, choices)
            self._twin = choices, twin
        return self._twin[1]

    def on_resize(self) -> None:
        self.rows.styles.height = min(self.rows.line_count, self.query_one(Dialog).room(_OTHER_ROWS))

    def on_descendant_focus(self) -> None:
        self._show_note()
        self.query_one(DialogKeys).refresh()

    # Keys

    def action_confirm(self) -> None:
        if saving.problem(self._workbench.editing, self.choices) is not None:
            self._show_note()
        elif saving.save(self._workbench.agent, self._workbench.editing, self._transcript, self.choices):
            self._workbench.chat.has_saved = True
            self.dismiss(True)
        elif self._workbench.messages.notice is not None:
            self.query_one(QuestionNote).show(self._workbench.messages.notice.text)

    def action_step_line(self, step: int) -> None:
        if self.rows.has_focus and (step > 0 or self.rows.cursor):
            self.rows.action_step_line(step)
        else:
            self.action_step_field(step)

    def action_form_toggle(self) -> None:
        if self.rows.has_focus:
            self.rows.toggle()
        else:
            self.action_step_item(1)

    def action_form_edit(self) -> None:
        self.set_focus(self.query_one("#save-id"))

    def action_step_item(self, step: int) -> None:
        if self.rows.has_focus:
            self.rows.step_column(step)
        else:
            super().action_step_item(step)

    def fields(self) -> Iterator[Widget]:
        for widget in self.query("#save-id, #save-target, #save-new, #save-turns").results(Widget):
            if widget.id != "save-new" or self.choices.target is None:
                yield widget


def _turn_header(number: int, width: int) -> Line:
    room, is_last = _text_room(width), number == len(_COLUMN_HEADS) - 1
    return [
        (pad(" turn" if is_last else "", _NUMBER_WIDTH + _MODE_WIDTH + room + 1), "muted"),
        *((f"{name:<{_CELL_WIDTH}}", "muted") for name in _COLUMN_HEADS[number]),
    ]


def _text_room(width: int) -> int:
    return max(8, width - 1 - _NUMBER_WIDTH - _MODE_WIDTH - _CELL_WIDTH * len(PARTS))


class TurnRows(CursorLines, can_focus=True, inherit_bindings=False):
    """The turns with the parts that are saved, then the state before and after them. A cell of the current
    turn is current."""

    def __init__(self, transcript: Transcript, choices: SaveChoices) -> None:
        super().__init__(id="save-turns")
        self.choices = choices
        self._transcript = transcript
        self._at = 0

    @property
    def column(self) -> str:
        """The part of the turn in the current cell."""
        beyond = self.cursor - len(self.choices.turns)
        if beyond >= 0:
            return ("state", "final")[min(beyond, 1)]
        return ("mode", *PARTS)[self._at]

    def on_mount(self) -> None:
        self.lines_changed(len(self.choices.turns) + 2)

    def step_column(self, step: int) -> None:
        self._at = max(0, min(self._at + step, len(PARTS)))
        self.refresh()
        self.post_message(self.Moved())

    def open_current(self) -> None:
        """Does not open a cell: a click changes it already."""

    def toggle(self) -> None:
        """Changes the current cell."""
        choices = self.choices
        if self.column == "state":
            self.choices = replace(choices, state=not choices.state)
        elif self.column == "final":
            self.choices = replace(choices, final_state=not choices.final_state)
        else:
            turn = choices.turns[self.cursor]
            next_mode = _MODES[(_MODES.index(turn.mode) + 1) % len(_MODES)]
            changed = turn.toggled(PARTS[self._at - 1]) if self._at else replace(turn, mode=next_mode)
            turns = tuple(changed if other is turn else other for other in choices.turns)
            self.choices = replace(choices, turns=turns)
        self.refresh()
        self.post_message(self.Moved())

    # Drawing

    def line(self, number: int) -> Line:
        choices = self.choices
        here = number == self.cursor and self.has_focus
        marker = self.marker(number)
        if number < len(choices.turns):
            return [marker, *self._turn(choices.turns[number], number + 1, current=self._at if here else -1)]
        return [marker, *self._state(choices, is_final=number > len(choices.turns), here=here)]

    def _turn(self, turn: TurnChoice, number: int, *, current: int) -> Line:
        room = _text_room(self.line_width)
        left_out = turn.mode == "left out"
        line: Line = [
            (f"{number:>2}  ", "muted"),
            (f"{turn.mode:<{_MODE_WIDTH}}", _role(turn.mode == "scored", current == 0)),
            (pad(visible(turn.text), room - 1) + " ", "muted" if left_out else ""),
        ]
        for place, part in enumerate(PARTS, 1):
            line.append(
                (f"{_cell(turn, part):<{_CELL_WIDTH}}", _role(turn.mode == "scored", current == place))
            )
        return line

    def _state(self, choices: SaveChoices, *, is_final: bool, here: bool) -> Line:
        state = self._state_of(choices, is_final=is_final)
        is_saved = choices.final_state if is_final else choices.state
        label = "expect the final state" if is_final else "start with the state"
        head: Line = [("    ", ""), (f"{_box(is_saved)} {label}  ", "bold accent" if here else "")]
        unknown = self._transcript.has_unknown_state
        shown: Line = value_line(state, 400) if state else [(UNKNOWN if unknown else "empty", "muted")]
        return cut([*head, *shown], max(cells(head), self.line_width - 1))

    def _state_of(self, choices: SaveChoices, *, is_final: bool) -> Any:
        transcript = self._transcript
        chosen = [turn.index for turn in choices.turns if turn.mode != "left out"]
        if not chosen:
            return {}
        return transcript.turns[chosen[-1]].state_after if is_final else transcript.given_before(chosen[0])

    def on_click(self, event: events.Click) -> None:
        super().on_click(event)
        # Textual would hand the click to the class above once more.
        event.prevent_default()
        self.focus()
        if self.cursor < len(self.choices.turns):
            first = 1 + _NUMBER_WIDTH + _MODE_WIDTH + _text_room(self.line_width)
            at = (event.x - first) // _CELL_WIDTH + 1 if event.x >= first else 0
            self._at = min(at, len(PARTS))
            if not at and not _NUMBER_WIDTH < event.x <= _NUMBER_WIDTH + _MODE_WIDTH:
                self.post_message(self.Moved())
                return
        self.toggle()


def _role(scored: bool, current: bool) -> str:
    if current:
        return "bold accent"
    return "" if scored else "muted"


def _box(on: bool) -> str:
    return "[x]" if on else "[ ]"


def _cell(turn: TurnChoice, part: Part) -> str:
    if turn.mode != "scored":
        return ""
    box = _box(part in turn.expects)
    if part == "calls" and part not in turn.has:
        return f"{box} none" if turn.knows_calls else UNKNOWN
    return box if part in turn.has else "–"
