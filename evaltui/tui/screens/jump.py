"""The key of every pane, on the pane: press one to go there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region

from evaltui.text.lines import Line, cells
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.widgets.one_line import OneLine
from evaltui.workbench.actions import Scope


class Jump(NamedTuple):
    """A pane that can be gone to: its label stands in `place`, in one of the `rows` rows of labels there."""

    pane: str
    key: str
    title: str
    place: Region
    row: int
    rows: int


class JumpScreen(DialogScreen[str | None], inherit_bindings=False):
    """Returns the pane that was chosen."""

    BINDINGS = bindings(Scope.JUMP)

    def __init__(self, jumps: Sequence[Jump]) -> None:
        super().__init__()
        self._jumps = jumps

    def compose(self) -> ComposeResult:
        for jump in self._jumps:
            yield JumpLabel(jump)

    def on_key(self, event: events.Key) -> None:
        for jump in self._jumps:
            if event.key == jump.key:
                event.stop()
                self.dismiss(jump.pane)

    def on_resize(self, event: events.Resize) -> None:
        # The labels belong to a screen of another size.
        if event.size != self._first_size:
            self.dismiss(None)

    def on_mount(self) -> None:
        self._first_size = self.app.size

    def action_close_jump(self) -> None:
        self.dismiss(None)


class JumpLabel(OneLine):
    def __init__(self, jump: Jump) -> None:
        super().__init__()
        self._jump = jump

    def line(self, width: int) -> Line:
        return self._label()

    def _label(self) -> Line:
        return [(f"  {self._jump.key}", "accent"), (f"  {self._jump.title}  ", "bold")]

    def on_mount(self) -> None:
        place, width = self._jump.place, 16
        self.styles.width = max(width, cells(self._label()))
        self.styles.offset = (
            place.x + max(0, (place.width - width) // 2),
            place.y + max(1, (place.height - 2 * self._jump.rows) // 2 + 2 * self._jump.row),
        )

    def on_click(self) -> None:
        self.screen.dismiss(self._jump.pane)
