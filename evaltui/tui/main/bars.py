"""The lines around the panes: header, headings, status and footer; and the message for a small terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from textual.geometry import Offset, Size
from textual.strip import Strip

from evaltui.text.glyphs import BAR
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells, cut, join_ends, wrap
from evaltui.text.values import visible
from evaltui.tui.action_screen import ActionScreen
from evaltui.tui.main.status import header_ends, status_line
from evaltui.tui.pane import Tab, fit_words, tab_columns, tab_parts
from evaltui.tui.widgets.lines import ActionLine, LineView, OneLine, paint
from evaltui.workbench.actions import ACTIONS_BY_ID, Action, Scope, chain_of, hints
from evaltui.workbench.messages import Notice, WorkbenchMessage
from evaltui.workbench.workbench import Workbench

_MESSAGE_SECONDS = 3.0
_TICK_SECONDS = 0.1
# Cells of the run beside a message.
_MIN_RUN = 24
_GAP = "   "
_MIN_WIDTH_WITH_PALETTE = 100
# At the right of the footer. Of a field the guide is the help.
_WORDS = {"help": "help", "guide": "help", "palette": "palette"}


class Bar(OneLine):
    """A line about the workbench."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        # Once the current folder is gone, `.` has no name any more.
        self._agent_name = workbench.agent.address.url or workbench.agent.dir.resolve().stem


class Header(Bar):
    """The agent, and the counts of cases by status."""

    def line(self, width: int) -> Line:
        return join_ends(*header_ends(self._workbench, self._agent_name, width), width)


class Status(Bar):
    """The run at the left; at the right a message, until its subject changes or its time is over."""

    _message: Notice | None = None
    _message_of: object = None

    def on_mount(self) -> None:
        self._clock = self.set_interval(_TICK_SECONDS, self._tick, pause=True)
        self._workbench.messages.subscribe(self._follow, WorkbenchMessage)
        self._follow()

    def on_unmount(self) -> None:
        self._workbench.messages.unsubscribe(self._follow)

    def _follow(self, _: WorkbenchMessage | None = None) -> None:
        """Draws the current state, and then each second while a time is shown."""
        self.refresh_changed()
        if self._workbench.is_running or self._fresh_message is not None:
            self._clock.resume()

    def _tick(self) -> None:
        self.refresh_changed()
        if not self._workbench.is_running and self._fresh_message is None:
            self._clock.pause()

    @property
    def _fresh_message(self) -> Notice | None:
        notice = self._workbench.messages.notice
        if notice is None or time.monotonic() - notice.at >= _MESSAGE_SECONDS:
            return None
        if notice is not self._message:
            # Many are said just before the state changes that they speak of.
            self._message, self._message_of = notice, self._spoken_of
        return notice if self._message_of == self._spoken_of else None

    @property
    def _spoken_of(self) -> object:
        """The subject of a message; the message ends when it changes."""
        bench = self._workbench
        run = bench.runs.current
        shown = bench.navigation.selection, bench.navigation.filtered.text, bench.outcomes.previous_run
        edited = bench.editing.undo_label, len(bench.editing.unsaved())
        return shown, run and (run.number, run.stage), edited

    def state(self, width: int) -> Line:
        """The state at the left."""
        return status_line(self._workbench, width)

    def line(self, width: int) -> Line:
        message = self._fresh_message
        run: Line = [(" ", ""), *self.state(width)]
        if message is None:
            return cut(run, width)
        notice: Line = [(visible(message.text), ""), (" ", "")]
        if cells(notice) + len(_GAP) + _MIN_RUN <= width:
            return join_ends(run, notice, width, gap=len(_GAP), least=_MIN_RUN)
        # A message is not cut for a run.
        return cut([(" ", ""), *notice], width)


class Footer(Bar, ActionLine):
    """The most useful keys at the focus, as many as fit, and at the right the keys for all others. Empty
    while another screen has the keys."""

    scope = Scope.CASES
    """The scope of the focus."""

    def parts(self, width: int) -> Iterator[tuple[str, Line]]:
        screen = self.screen
        if not isinstance(screen, ActionScreen) or screen is not self.app.screen:
            return
        right = [(action.id, self._hint(action, _WORDS[action.id])) for action in self._everywhere(width)]
        room = width - 1 - sum(cells(hint) for _, hint in right)
        yield "", [(" ", "")]
        for action in hints(self.scope, screen.refusal):
            hint = self._hint(action, screen.footer_word(action))
            if cells(hint) > room:
                break
            room -= cells(hint)
            yield action.id, hint
        yield "", [(" " * (room + len(_GAP) - 1), "")]
        yield from right[:-1]
        # There is no gap behind the last one.
        yield from ((action, hint[:-1]) for action, hint in right[-1:])

    def _everywhere(self, width: int) -> list[Action]:
        # A field takes `?` for text.
        is_field = not {*chain_of(self.scope)} & {*ACTIONS_BY_ID["help"].where}
        actions = [
            "guide" if is_field else "help",
            *(["palette"] if width >= _MIN_WIDTH_WITH_PALETTE else []),
        ]
        return [ACTIONS_BY_ID[action] for action in actions if hasattr(self.screen, f"action_{action}")]

    def _hint(self, action: Action, word: str) -> Line:
        return [(key_of(action.id), "bold accent"), (f" {word}", "muted"), (_GAP, "")]


class TabRow(ActionLine):
    """The tabs of a screen with one pane, the position at the right, and a rule below."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._tabs: Sequence[Tab] = ()
        self._where: Line = []

    def show(self, tabs: Sequence[Tab], where: Line) -> None:
        self._tabs = tabs
        self._where = where
        self.refresh()

    def parts(self, width: int) -> list[tuple[str, Line]]:
        return tab_parts(self._tabs, width, focused=True, between="")

    def tab_places(self) -> Iterator[tuple[Tab, Offset]]:
        """Each tab, with the screen cell where it starts."""
        for tab, column in tab_columns(self.parts(self.size.width), self._tabs):
            yield tab, self.region.offset + Offset(column, 0)

    def line(self, width: int) -> Line:
        tabs = super().line(width)
        where = fit_words(self._where, width - cells(tabs) - 3)
        return join_ends(tabs, [*where, (" ", "")] if where else [], width)

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return super().render_line(y)
        return paint(self, [(BAR * self.size.width, "accent")], self.size.width)


MIN_WIDTH, MIN_HEIGHT = 60, 16


def is_too_small(size: Size) -> bool:
    return size.width < MIN_WIDTH or size.height < MIN_HEIGHT


class TooSmall(LineView, can_focus=False, inherit_bindings=False):
    """Covers a screen that is too small; the screen below stays as it is."""

    def on_resize(self) -> None:
        size = self.app.size
        sentence: Line = [(f"evaltui needs {MIN_WIDTH} columns and {MIN_HEIGHT} rows", "")]
        wrapped = wrap(sentence, max(1, size.width))
        left = max(0, size.width - max(map(cells, wrapped))) // 2
        above: list[Line] = [[] for _ in range(max(0, size.height - len(wrapped)) // 2)]
        self._lines = [*above, *([(" " * left, ""), *line] for line in wrapped)]
        self.lines_changed(len(self._lines))

    def line(self, number: int) -> Line:
        return self._lines[number]
