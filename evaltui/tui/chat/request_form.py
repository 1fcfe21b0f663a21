"""The form for a waiting call: a field for each member of its response."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static

from evaltui.core.conversation.request_fields import FieldError, RequestField, response_of
from evaltui.core.conversation.responding import ResponseError, request_of
from evaltui.core.conversation.waiting import WaitingCall
from evaltui.core.model.events import Json
from evaltui.text.glyphs import text_for_terminal
from evaltui.text.lines import Line, pad
from evaltui.text.values import cut, visible_block
from evaltui.tui.action_screen import KeysInOrder, bindings
from evaltui.tui.chat.page import REQUEST_TITLES
from evaltui.tui.dialogs.prompt import DialogKeys, FormKeys, Hint, QuestionNote
from evaltui.tui.pane import PaneForm
from evaltui.tui.widgets.choices import LABEL, ChoiceLine
from evaltui.tui.widgets.fields import FieldLine
from evaltui.tui.widgets.lines import DrawnLine, content
from evaltui.workbench.actions import Scope

_UNDECIDED_LABEL = "—"
_MAX_QUESTION_LENGTH = 1_000
_MAX_LABEL, _MAX_TAKES = 16, 34
_SWITCH_ACTION = "respond_to_next"


class RequestForm(PaneForm, FormKeys):
    """The form for a call, filled with `typed`. `respond` sends a response to the call, `later` closes the
    form."""

    BINDINGS = bindings(Scope.MESSAGE, _SWITCH_ACTION)

    def __init__(
        self,
        call: WaitingCall,
        fields: Sequence[RequestField],
        typed: Mapping[str, str],
        respond: Callable[[Json], None],
        later: Callable[[], None],
    ) -> None:
        super().__init__()
        self.call = call
        self._fields = list(fields)
        self._respond = respond
        self._later = later
        self._place = ""
        column = max(LABEL, min(_MAX_LABEL, max(len(field.label) for field in fields) + 2))
        self._column = column
        self._inputs = [self._input(number, field, column) for number, field in enumerate(fields)]
        self._at_first = typed

    def _input(self, number: int, field: RequestField, column: int) -> ChoiceLine | FieldLine:
        name = f"request-{number}"
        if field.kind == "choice":
            return ChoiceLine(field.label, [_UNDECIDED_LABEL, *field.labels], id=name, column=column)
        line = FieldLine(id=name)
        line.is_json = field.kind == "json"
        line.placeholder = "" if field.required else "optional"
        return line

    def _fill(self, typed: Mapping[str, str]) -> None:
        for field, box in zip(self._fields, self._inputs, strict=True):
            text = typed.get(field.name, "" if typed else field.initial)
            if isinstance(box, ChoiceLine):
                box.chosen = field.labels.index(text) + 1 if text in field.labels else 0
            else:
                box.load_text(text)
                box.move_cursor(box.document.end)

    def typed(self) -> dict[str, str]:
        """The texts of the fields, by name."""
        return {
            field.name: ("", *field.labels)[box.chosen] if isinstance(box, ChoiceLine) else box.typed
            for field, box in zip(self._fields, self._inputs, strict=True)
        }

    def compose(self) -> ComposeResult:
        question = visible_block(cut(request_of(self.call).message, _MAX_QUESTION_LENGTH))
        yield Static(text_for_terminal(question), markup=False, id="request-question")
        with VerticalScroll(id="request-fields", can_focus=False):
            for field, box in zip(self._fields, self._inputs, strict=True):
                if isinstance(box, ChoiceLine):
                    yield box
                    continue
                with Horizontal(classes="form-line"):
                    label = DrawnLine(partial(self._words, pad(field.label, self._column)))
                    label.styles.width = self._column
                    yield label
                    yield box
                    hint = DrawnLine(partial(self._words, f"  {field.accepts}"))
                    hint.styles.width = min(
                        _MAX_TAKES, max(len(request_field.accepts) for request_field in self._fields) + 2
                    )
                    yield hint
        yield QuestionNote()
        yield DialogKeys(self._hints)

    def on_mount(self) -> None:
        self._fill(self._at_first)
        self._draw_border()
        self.app.theme_changed_signal.subscribe(self, lambda theme: self._draw_border())

    def place(self, text: str) -> None:
        """The number of the call among several: `1/2`."""
        if text != self._place:
            self._place = text
            self._draw_border()

    def _draw_border(self) -> None:
        title: Line = [(REQUEST_TITLES[request_of(self.call).kind], "bold warning")]
        self.border_title = content(self, [*title, (f" {self._place}", "muted")] if self._place else title)

    @staticmethod
    def _words(text: str, width: int) -> Line:
        return [(pad(text, width).rstrip() if len(text) > width else text, "muted")]

    def _hints(self) -> list[Hint]:
        return [
            Hint("confirm", "respond", "ctrl+s"),
            *([Hint("next_field", "next field")] if len(self._inputs) > 1 else []),
            *([Hint("next_item", "choose", "←→")] if isinstance(self.screen.focused, ChoiceLine) else []),
            Hint("close", "respond later"),
        ]

    # Keys

    def fields(self) -> Sequence[ChoiceLine | FieldLine]:
        return self._inputs

    def enter(self) -> None:
        """Focuses the first field, and drops the keys typed so far, which were meant for another field."""
        self.screen.set_focus(self._inputs[0])
        if isinstance(self.app, KeysInOrder):
            self.app.ignore_typed_ahead()

    def action_confirm(self) -> None:
        try:
            response = response_of(self.call, self._fields, self.typed())
        except ResponseError as error:
            self.query_one(QuestionNote).show(str(error))
            if isinstance(error, FieldError):
                names = [field.name for field in self._fields]
                self.screen.set_focus(self._inputs[names.index(error.field)])
            return
        self._respond(response)

    def action_close(self) -> None:
        self._later()

    def on_descendant_focus(self) -> None:
        self.query_one(DialogKeys).refresh()

    def on_choice_line_changed(self) -> None:
        self.query_one(QuestionNote).show(None)

    on_text_area_changed = on_choice_line_changed
