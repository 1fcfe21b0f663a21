"""What is unsaved, asked when one wants to leave: save it, throw it away, or stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from evaltui.text.lines import Line, pad
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.pages.writer import Page
from evaltui.tui.widgets.cursor_lines import CursorLines
from evaltui.tui.widgets.hints import Hint, Hints, moves
from evaltui.tui.widgets.line_view import LineView
from evaltui.tui.widgets.one_line import OneLine, rule
from evaltui.workbench.actions import BY_ID, Scope, keys_of
from evaltui.workbench.keymap import key_name
from evaltui.workbench.workbench import Workbench

_MOST_CASES = 8
# What is returned, what it is called, and the action whose key does it at once.
_CHOICES: tuple[tuple[str | None, str, str], ...] = (
    ("save", "Save all and leave", "save"),
    ("discard", "Throw the changes away and leave", "throw_away"),
    (None, "Stay", "leave_open"),
)


class UnsavedScreen(DialogScreen[str | None], inherit_bindings=False):
    """Returns `save`, `discard`, or None: stay. `typed` is what stands in a field below this screen."""

    BINDINGS = bindings(Scope.VERSIONS)
    AUTO_FOCUS = "UnsavedChoices"

    def __init__(self, workbench: Workbench, typed: str = "") -> None:
        super().__init__()
        self._workbench = workbench
        self._typed = typed

    def compose(self) -> ComposeResult:
        with Vertical(id="unsaved"):
            yield UnsavedTitle(len(self._workbench.editing.unsaved()))
            yield UnsavedFiles(self._workbench, self._typed, id="unsaved-files")
            yield UnsavedChoices(self._workbench)
            yield Hints(self._workbench, lambda: [Hint("decide", "do it"), Hint("leave_open", "stay")])

    def action_decide(self) -> None:
        self.dismiss(self.query_one(UnsavedChoices).chosen)

    def action_save(self) -> None:
        self.dismiss("save")

    def action_throw_away(self) -> None:
        self.dismiss("discard")

    def action_leave_open(self) -> None:
        self.dismiss(None)

    def on_unsaved_choices_decided(self, message: UnsavedChoices.Decided) -> None:
        self.dismiss(message.choice)


class UnsavedTitle(OneLine):
    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def line(self, width: int) -> Line:
        files = "1 file is not saved" if self._count == 1 else f"{self._count} files are not saved"
        title = files if self._count else "What is typed is in no file yet"
        return rule([(title, "bold")], [], width, heavy=True)


class UnsavedFiles(LineView, can_focus=False, inherit_bindings=False):
    """The files, and which of their cases were changed."""

    def __init__(self, workbench: Workbench, typed: str, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self._typed = typed
        self._lines: list[Line] = []

    def on_resize(self) -> None:
        page = Page(self.size.width - 2)
        for path in self._workbench.editing.unsaved():
            page.row(
                ("● ", "accent"), (visible(path.name), "bold"), (f"  {visible(path.parent.name)}", "dim")
            )
            page.block([(", ".join(self._changed(path)), "dim")], 2)
        for left in self._workbench.editing.unapplied.now():
            file = self._workbench.sets.file_of(left.path)
            where = visible(left.case.eval_id if left.case else file.name)
            page.row(("! ", "red"), (where, "bold"), ("  typed, not in the case, so not saved:", ""))
            page.block([(visible(str(left)), "dim")], 2)
        if self._typed:
            page.row(("! ", "red"), ("Typed in the open dialog, saved nowhere:", ""))
            page.block([(visible(self._typed.strip()[:60]), "dim")], 2)
        if self._workbench.runs.current is not None and self._workbench.runs.is_running:
            page.blank()
            page.text([(f"Run {self._workbench.runs.current.number} is not over: leaving cancels it.", "")])
        self._lines = page.lines
        self.lines_changed(len(self._lines))

    def _changed(self, path: Path) -> Iterator[str]:
        draft = self._workbench.editing.open_file(path)
        if draft is not None and draft.saved is None:
            yield "a new file"
        entry = self._workbench.sets.entry(path)
        dirty = self._workbench.editing.dirty_cases(path)
        ordered = [case.eval_id for case in entry.cases if case.eval_id in dirty] if entry else sorted(dirty)
        yield from map(visible, ordered[:_MOST_CASES])
        if len(ordered) > _MOST_CASES:
            yield f"{len(ordered) - _MOST_CASES} more cases"
        if entry is None:
            yield "the criteria"
        elif not ordered:
            yield "the set itself: its name, or which cases it has"

    def line(self, number: int) -> Line:
        return [(" ", ""), *self._lines[number]]


class UnsavedChoices(CursorLines, can_focus=True, inherit_bindings=False):
    """One line for each answer; a click on one is the answer."""

    BINDINGS = moves()

    class Decided(Message):
        """The user clicked an answer."""

        def __init__(self, choice: str | None) -> None:
            super().__init__()
            self.choice = choice

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench

    @property
    def chosen(self) -> str | None:
        return _CHOICES[self.cursor][0]

    def on_resize(self) -> None:
        self.lines_changed(len(_CHOICES))

    def line(self, number: int) -> Line:
        _, title, action = _CHOICES[number]
        here = number == self.cursor
        key = key_name(keys_of(BY_ID[action], self._workbench)[0])
        return [("▌ " if here else "  ", "accent"), (pad(title, 36), "bold" if here else ""), (key, "dim")]

    def open_current(self) -> None:
        """A click decides; who clicks twice has decided then."""

    def on_click(self, event: events.Click) -> None:
        super().on_click(event)
        self.post_message(self.Decided(self.chosen))
