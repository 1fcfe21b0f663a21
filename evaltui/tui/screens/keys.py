"""Dialogs about keys: all valid keys, and the key of every pane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Region
from textual.message import Message

from evaltui.text.lines import Line, cells, pad, wrap
from evaltui.text.outcomes import COUNTED, NOT_RUN, RUNNING, WORDS, glyph
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.widgets.lines import LineView, OneLine, Title
from evaltui.workbench.actions import Action, Scope, actions_in, chain_of, keys_of, place_of
from evaltui.workbench.keymap import key_name
from evaltui.workbench.workbench import Workbench

_KEYS = 18


class HelpScreen(DialogScreen[str | None], inherit_bindings=False):
    """Returns the action that was chosen. No key of the main screen works until it is closed."""

    box = "#help"
    BINDINGS = bindings(Scope.HELP)

    def __init__(self, workbench: Workbench, scope: Scope) -> None:
        super().__init__()
        self._workbench = workbench
        self._scope = scope

    def compose(self) -> ComposeResult:
        with Vertical(id="help"):
            yield Title(lambda: [("Keys", "bold")], lambda: [("enter does it, esc closes", "muted")])
            yield HelpLines(self._workbench, self._scope, id="help-lines")

    def action_close_help(self) -> None:
        self.dismiss()

    def on_help_lines_chosen(self, message: HelpLines.Chosen) -> None:
        self.dismiss(message.action)


class Entry(NamedTuple):
    """A line of the help; of an action, its first or a further one."""

    line: Line
    action: Action | None = None
    first: bool = False


class HelpLines(LineView, inherit_bindings=False):
    class Chosen(Message):
        """The user wants an action done."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, workbench: Workbench, scope: Scope, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self._scope = scope
        self._entries: list[Entry] = []
        self._cursor = 0

    def on_mount(self) -> None:
        self.focus()

    def on_resize(self) -> None:
        self._entries = list(self._all_entries(max(30, self.size.width - 1)))
        self._cursor = min(self._cursor, len(self._entries) - 1)
        self.lines_changed(len(self._entries))
        self._move(0)

    def line(self, number: int) -> Line:
        return self._entries[number].line

    def row_role(self, number: int) -> str:
        chosen = self._entries[self._cursor].action
        here = chosen is not None and self._entries[number].action is chosen
        return "sel" if here else ""

    def _all_entries(self, width: int) -> Iterator[Entry]:
        for title, actions in self._groups().items():
            yield Entry([(title, "bold")])
            for action in actions:
                yield from self._action_entries(action, width)
            yield Entry([])
        yield Entry([("Outcomes", "bold")])
        for status in (*COUNTED, NOT_RUN, RUNNING):
            yield Entry([("  ", ""), glyph(status), (f" {WORDS[status]}", "")])

    def _groups(self) -> dict[str, list[Action]]:
        """What this place alone has, then what works everywhere, then what all lists have."""
        chain = chain_of(self._scope)
        groups: dict[str, list[Action]] = {str(scope).capitalize(): [] for scope in chain}
        for scope in chain:
            for action in actions_in(scope):
                groups.setdefault(place_of(action).capitalize(), []).append(action)
        return {title: actions for title, actions in groups.items() if actions}

    def _action_entries(self, action: Action, width: int) -> Iterator[Entry]:
        reason = action.refusal(self._workbench)
        names = " ".join(key_name(key) for key in keys_of(action, self._workbench))
        text: Line = [(action.help, "muted" if reason else "")]
        text += [(f"  not now: {visible(reason)}", "warning")] if reason else []
        for number, line in enumerate(wrap(text, width - _KEYS - 2)):
            keys = pad(names if number == 0 else "", _KEYS)
            yield Entry(
                [("  ", ""), (keys, "muted" if reason else "bold accent"), *line], action, number == 0
            )

    # Keys and mouse

    def _move(self, step: int) -> None:
        """By so many actions; to the first one where none is chosen yet."""
        starts = [number for number, entry in enumerate(self._entries) if entry.first]
        here = max((number for number in starts if number <= self._cursor), default=starts[0])
        place = max(0, min(starts.index(here) + step, len(starts) - 1))
        self._cursor = starts[place]
        # What stands above the first action and below the last one has no cursor, but is to be read.
        edges = {0: 0, len(starts) - 1: len(self._entries) - 1}
        self.show_line(edges.get(place, self._cursor))
        self.refresh()

    def action_line_down(self) -> None:
        self._move(1)

    def action_line_up(self) -> None:
        self._move(-1)

    def action_page_down(self) -> None:
        self._move(max(1, self.size.height - 2))

    def action_page_up(self) -> None:
        self._move(-max(1, self.size.height - 2))

    def action_top(self) -> None:
        self._move(-len(self._entries))

    def action_bottom(self) -> None:
        self._move(len(self._entries))

    def action_choose(self) -> None:
        if action := self._entries[self._cursor].action:
            self.post_message(self.Chosen(action.id))

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number < len(self._entries) and self._entries[number].action is not None:
            self._cursor = number
            self.action_choose()


class Jump(NamedTuple):
    """A pane that can be gone to, and where its label stands."""

    pane: str
    """Id of the pane."""
    key: str
    title: str
    place: Region
    """The region that it shares with other labels."""
    row: int
    """Row of the label among those of the region, 0-based."""
    rows: int
    """How many labels the region has."""


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
        return [(f"  {self._jump.key}", "bold accent"), (f"  {self._jump.title}  ", "bold")]

    def on_mount(self) -> None:
        place, width = self._jump.place, 16
        self.styles.width = max(width, cells(self.line(width)))
        self.styles.offset = (
            place.x + max(0, (place.width - width) // 2),
            place.y + max(1, (place.height - 2 * self._jump.rows) // 2 + 2 * self._jump.row),
        )

    def on_click(self) -> None:
        self.screen.dismiss(self._jump.pane)
