"""Parts of dialogs: titles, notes, keys, forms; and a question with one line to answer."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ScreenResultType
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input, Static

from evaltui.text.glyphs import text_for_terminal
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells, pad
from evaltui.text.values import visible
from evaltui.tui.action_screen import MIN_WITH_MARGINS, DialogScreen, ask, bindings
from evaltui.tui.exchange import Attached, attach_problem, read_attached
from evaltui.tui.widgets.choices import LABEL, ChoiceLine
from evaltui.tui.widgets.fields import OneLineInput
from evaltui.tui.widgets.lines import ActionLine, DrawnLine, OneLine, content
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.actions import ACTIONS_BY_ID, Scope
from evaltui.workbench.keymap import key_name
from evaltui.workbench.runs.repeats import parse_repeated, repeat_problem
from evaltui.workbench.state import RepeatChoice
from evaltui.workbench.workbench import Workbench

Check = Callable[[str], str | None]


# The share of the screen, as in the style sheet.
_MAX_HEIGHT = 0.96


class AnswerLines(Protocol):
    """Lines below a question: its keys move in them while the field keeps the focus."""

    def action_step_line(self, step: int) -> None: ...
    def action_step_page(self, step: int) -> None: ...


def move_bindings() -> list[BindingType]:
    """The keys that move in every list."""
    return bindings(Scope.DETAILS, *(action.id for action in ACTIONS_BY_ID.values() if action.is_move))


def dialog_name(action_id: str) -> str:
    """The key and the verb of an action: `x Relax`."""
    return f"{key_of(action_id)} {ACTIONS_BY_ID[action_id].title.rstrip('…')}"


class Dialog(Vertical):
    """The frame of a dialog: its name as a chip in the border, and its subject."""

    def __init__(
        self, name: str, about: Sequence[Span] = (), *, id: str, can_be_undone: bool = False
    ) -> None:
        super().__init__(id=id)
        self._chip = name
        self._about = about
        self._below: Sequence[Span] = ()
        if can_be_undone:
            self._below = [(f" {key_of('undo')}", "bold accent"), (" undoes it later ", "")]

    def on_mount(self) -> None:
        self._draw_border()
        self.app.theme_changed_signal.subscribe(self, lambda theme: self._draw_border())

    def room(self, others: int) -> int:
        """The rows for a list or a page besides `others` other rows, at least three."""
        rows = self.screen.size.height
        frame = 4 if rows >= MIN_WITH_MARGINS else 2
        return max(3, int(rows * _MAX_HEIGHT) - frame - others)

    def about(self, about: Sequence[Span]) -> None:
        """Sets the subject of the dialog."""
        self._about = about
        self._draw_border()

    def below(self, line: Sequence[Span]) -> None:
        """Sets the note in the bottom border."""
        self._below = line
        self._draw_border()

    def _draw_border(self) -> None:
        beside: Line = [(" ", ""), *self._about] if self._about else []
        self.border_title = content(self, [(f" {self._chip} ", "chip"), *beside])
        self.border_subtitle = content(self, self._below)


class DialogPage(PageLines, inherit_bindings=False):
    """A page in a dialog, as high as there is room for besides `other_rows` rows of other parts."""

    BINDINGS = move_bindings()

    def __init__(
        self, write: Callable[[Page], object], other_rows: Callable[[], int], *, free: int | None = None
    ) -> None:
        super().__init__(write, indent=0, free=free)
        self._other_rows = other_rows

    def write_page(self) -> None:
        super().write_page()
        self.styles.height = min(self.line_count, self.screen.query_one(Dialog).room(self._other_rows()))


class QuestionScreen(DialogScreen[ScreenResultType | None], inherit_bindings=False):
    """A dialog with a question; None when it is cancelled."""

    BINDINGS = bindings(Scope.PROMPT)

    @property
    def answers(self) -> AnswerLines | None:
        """The lines below the question; None for none."""
        return None

    def action_step_line(self, step: int) -> None:
        if self.answers is not None:
            self.answers.action_step_line(step)

    def action_step_page(self, step: int) -> None:
        if self.answers is not None:
            self.answers.action_step_page(step)


class PathSuggester(Suggester):
    """Completes the path of a file or a folder."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        return await asyncio.to_thread(_complete_path, value)


def _complete_path(text: str) -> str | None:
    """The first path that starts with the text; None for none."""
    folder, separator, prefix = text.rpartition("/")
    try:
        paths = sorted(Path(folder + separator).expanduser().iterdir())
    except (OSError, RuntimeError, ValueError):
        return None
    for path in paths:
        if path.name.startswith(prefix) and (prefix or not path.name.startswith(".")):
            return f"{folder}{separator}{path.name}{'/' if path.is_dir() else ''}"
    return None


class PromptScreen(QuestionScreen[str]):
    """A dialog for one line of text; returns it, None when cancelled.

    `name` is the key and verb of the dialog, `about` its subject. `check` returns why a text is invalid, as a
    sentence; such a text is not applied. `hint` is shown while the text is valid. With `adds`, typing
    continues after the value instead of replacing it. With `is_path`, a path is completed.
    """

    box = "#prompt"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.PROMPT), *bindings(Scope.FORM, "next_field")]

    def __init__(
        self,
        name: str,
        value: str = "",
        check: Check | None = None,
        hint: str = "",
        about: str = "",
        *,
        adds: bool = False,
        is_path: bool = False,
    ) -> None:
        super().__init__()
        self._dialog_name = name
        self._is_path = is_path
        self._value = value
        self._check = check
        self._hint = hint
        self._about = about
        self._adds = adds

    def compose(self) -> ComposeResult:
        with Dialog(self._dialog_name, [(visible(self._about), "muted")], id="prompt"):
            field = QuestionInput(self._value, adds=self._adds)
            field.suggester = PathSuggester() if self._is_path else None
            yield field
            yield QuestionNote(self._hint)
            yield DialogKeys(self._hints)

    def _hints(self) -> list[Hint]:
        if self._is_path:
            return [Hint("confirm", "open"), Hint("next_field", "complete"), CANCEL]
        return [Hint("confirm", "apply"), CANCEL]

    @property
    def problem(self) -> str | None:
        """Why the text cannot be applied."""
        return self._check(self.query_one(QuestionInput).value) if self._check else None

    def on_input_changed(self, event: Input.Changed) -> None:
        # A path is no good before its last letter.
        is_wrong = event.value != self._value and not self._is_path
        self.query_one(QuestionNote).show(self.problem if is_wrong else None)

    async def action_step_field(self, _: int) -> None:
        """Completes the path."""
        field = self.query_one(QuestionInput)
        if field.suggester and (path := await field.suggester.get_suggestion(field.value)):
            field.value, field.cursor_position = path, len(path)

    def action_confirm(self) -> None:
        if problem := self.problem:
            self.query_one(QuestionNote).show(problem)
        else:
            self.dismiss(self.query_one(QuestionInput).value)


def ask_for_file(asker: DOMNode, workbench: Workbench, attach: Callable[[Attached], None]) -> None:
    """Asks for the path of a file to attach, and reads it."""

    def read(path: str) -> None:
        try:
            file = read_attached(path)
        except OSError as error:
            workbench.say(f"{path} is not attached: {error}")
        else:
            attach(file)

    hint = "Path, relative to the current folder"
    ask(asker, PromptScreen("Attach file", check=attach_problem, hint=hint, is_path=True), read)


class QuestionInput(OneLineInput):
    """The field of a question. Its text is selected at first, so that typing replaces it; with `adds`, typing
    continues after it."""

    BINDINGS = bindings(Scope.PROMPT)

    def __init__(self, value: str = "", placeholder: str = "", *, adds: bool = False) -> None:
        shown = text_for_terminal(placeholder)
        super().__init__(value, placeholder=shown, compact=True, select_on_focus=not adds)
        self.takes_space = True
        """Whether a space is typed as text, and is no key of the screen."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return (key != "space" or self.takes_space) and super().check_consume_key(key, character)


class QuestionNote(Static):
    """A hint, or the problem of the text."""

    def __init__(self, hint: str = "") -> None:
        super().__init__(Content(text_for_terminal(visible(hint))), markup=False)
        self.hint = hint

    def show(self, problem: str | None, *, warns: bool = False) -> None:
        self.set_class(problem is not None and not warns, "-problem")
        self.set_class(warns, "-warning")
        self.update(Content(text_for_terminal(visible(f"! {problem}" if problem else self.hint))))


class Hint(NamedTuple):
    """An action in the line of keys of a dialog."""

    action: str
    word: str = ""
    """Its label; "" for the usual one."""
    keys: str = ""
    """The shown keys, for a pair such as `←→`; "" for those of the action."""


CANCEL = Hint("close", "cancel")


class DialogKeys(ActionLine):
    """The keys of a dialog; the last one, which cancels, is at the right."""

    def __init__(self, hints: Callable[[], Sequence[Hint]]) -> None:
        super().__init__()
        self._hints = hints

    def parts(self, width: int) -> Iterator[tuple[str, Line]]:
        parts = [(hint.action, self._part(hint)) for hint in self._hints()]
        gap = max(2, width - sum(cells(part) for _, part in parts) - 2 * (len(parts) - 2))
        for number, part in enumerate(parts):
            if number:
                yield "", [(" " * (gap if number == len(parts) - 1 else 2), "")]
            yield part

    def _part(self, hint: Hint) -> Line:
        action = ACTIONS_BY_ID[hint.action]
        # The user may have chosen other keys.
        active = self.screen.active_bindings
        chosen = [key for key, active_binding in active.items() if active_binding.binding.id == action.id]
        key = action.keys[0] if action.keys[0] in chosen or not chosen else chosen[0]
        return [(hint.keys or key_name(key), "bold accent"), (f" {hint.word or action.short}", "muted")]


class FormKeys(Widget):
    """The actions of a form's keys, for a form that is a screen or part of a pane."""

    @abstractmethod
    def fields(self) -> Iterable[Widget]:
        """The widgets in focus order."""

    @abstractmethod
    def action_close(self) -> None:
        """Closes the form without a change."""

    def action_leave_field(self) -> None:
        self.action_close()

    def action_step_field(self, step: int) -> None:
        """Goes to the next field (1) or the previous one (-1)."""
        fields, focused = [*self.fields()], self.screen.focused
        at = fields.index(focused) if focused in fields else 0
        self.screen.set_focus(fields[(at + step) % len(fields)])

    def action_step_line(self, step: int) -> None:
        """Goes one row down (1) or up (-1): without a list, to another field."""
        self.action_step_field(step)

    def action_step_item(self, step: int) -> None:
        """Chooses the next (1) or the previous (-1) value on the focused line."""
        if isinstance(line := self.screen.focused, ChoiceLine):
            line.step(step)

    def action_form_toggle(self) -> None:
        self.action_step_item(1)

    async def action_save_field(self) -> None:
        await self.screen.run_action("confirm")

    action_end_field = action_end_text = action_save_field


class FormScreen(DialogScreen[ScreenResultType | None], FormKeys, inherit_bindings=False):
    """A dialog with several fields, lists and choices; None when it is cancelled."""

    BINDINGS = bindings(Scope.FORM)


class FormLabel(OneLine):
    def __init__(self, label: str) -> None:
        super().__init__()
        self._label = label

    def line(self, width: int) -> Line:
        return [(pad(self._label, LABEL), "muted")]


class RepeatScreen(FormScreen[RepeatChoice], inherit_bindings=False):
    """Asks for the number of runs, the pass rule and an optional confidence; returns them.

    `usual` are the first values of the fields. `cost` returns the cost of the runs.
    """

    box = "#repeat"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.PROMPT),
        *bindings(Scope.FORM, "next_field", "previous_field"),
    ]

    def __init__(self, about: str, usual: str, cost: Callable[[RepeatChoice], str]) -> None:
        super().__init__()
        self._about = about
        self._runs, self._pass_if, *confidence = usual.split()
        self._confidence = "".join(confidence)
        self._cost = cost

    def compose(self) -> ComposeResult:
        with Dialog(f"{key_of('run_repeatedly')} Repeat", [(visible(self._about), "muted")], id="repeat"):
            for label, value, placeholder in (
                ("runs", self._runs, ""),
                ("pass if", self._pass_if, ""),
                ("stop early", self._confidence, "e.g. 0.95; then runs is the maximum"),
            ):
                with Horizontal(classes="field"):
                    yield FormLabel(label)
                    yield QuestionInput(value, placeholder)
            yield QuestionNote("all, majority, or a pass rate, e.g. 0.6")
            yield DrawnLine(self._cost_line)
            yield DialogKeys(lambda: [Hint("confirm", "run"), Hint("next_field"), CANCEL])

    def fields(self) -> Iterable[QuestionInput]:
        return self.query(QuestionInput)

    @property
    def _text(self) -> str:
        runs, pass_if, confidence = (field.value.strip() for field in self.fields())
        return f"{runs} {pass_if or 'all'} {confidence}"

    def _cost_line(self, width: int) -> Line:
        if repeat_problem(self._text):
            return []
        return [(pad("cost", LABEL), "muted"), (self._cost(parse_repeated(self._text)), "")]

    def on_input_changed(self) -> None:
        self.query_one(QuestionNote).show(repeat_problem(self._text))
        self.query_one(DrawnLine).refresh()

    def action_confirm(self) -> None:
        if repeat_problem(self._text) is None:
            self.dismiss(parse_repeated(self._text))
