"""The main screen: the tree of cases, the result of what is selected, and the lines around them."""

from __future__ import annotations

import time

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from evaltui.tui.bindings import bindings
from evaltui.tui.panes.bars import CasesTitle, Footer, Header, ResultTitle, Status, Tabs
from evaltui.tui.panes.result import ResultView
from evaltui.tui.panes.tree import CaseTree
from evaltui.tui.screens.help import HelpScreen
from evaltui.workbench.actions import BY_ID, Scope
from evaltui.workbench.workbench import Workbench

# Events come by the thousand, eyes see some thirty pictures a second.
_FRAME = 1 / 30
_TICK = 0.1


class MainScreen(Screen[None], inherit_bindings=False):
    """Below 110 columns one pane at a time is shown, from there on both."""

    BINDINGS = bindings(Scope.MAIN)
    AUTO_FOCUS = "#cases"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
        self._workbench = workbench
        self._cases = CaseTree(workbench, id="cases")
        self._result = ResultView(workbench, id="result")
        self._tabs = Tabs(workbench, id="tabs")
        self._status = Status(workbench, id="status")
        self._bars = (
            Header(workbench, id="header"),
            self._tabs,
            CasesTitle(workbench, self._cases, id="cases-title"),
            ResultTitle(workbench, self._result, id="result-title"),
            self._status,
            Footer(workbench, id="footer"),
        )
        self._drawn = 0.0
        self._will_draw = False
        self._told_empty = False

    def compose(self) -> ComposeResult:
        header, tabs, cases_title, result_title, status, footer = self._bars
        yield header
        yield tabs
        with Horizontal(id="panes"):
            with Vertical(id="cases-pane"):
                yield cases_title
                yield self._cases
            with Vertical(id="result-pane"):
                yield result_title
                yield self._result
        yield status
        yield footer

    def on_mount(self) -> None:
        self._workbench.subscribe(self._changed)
        self.set_interval(_TICK, self._tick)

    # Following the workbench

    def _changed(self) -> None:
        """Draw soon, and once for all that changed by then."""
        if not self._will_draw:
            self._will_draw = True
            wait = self._drawn + _FRAME - time.monotonic()
            if wait > 0:
                self.set_timer(wait, self._draw)
            else:
                self.call_next(self._draw)

    def _draw(self) -> None:
        self._will_draw = False
        self._drawn = time.monotonic()
        if self._workbench.workspace is not None and not self._workbench.sets and not self._told_empty:
            # The list has nothing to say; the result pane says what to do.
            self._told_empty = True
            self._show(result=True)
        self._cases.follow()
        self._result.follow()
        for bar in self._bars:
            bar.refresh()

    def _tick(self) -> None:
        """Time passes: seconds of a run, notices that are old."""
        if self._workbench.busy or self._workbench.notice is not None:
            self._status.refresh()

    # Actions

    def action_perform(self, action_id: str) -> None:
        """Do an action of the registry, or say why it cannot be done."""
        action = BY_ID[action_id]
        if reason := action.refusal(self._workbench):
            self._workbench.say(reason)
        elif action.do is not None:
            action.do(self._workbench)
        else:
            # A pane knows its own keys; what is meant everywhere is known here.
            place = self.focused if Scope.MAIN not in action.where else self
            getattr(place, f"action_{action_id}")()

    def action_next_pane(self) -> None:
        self._show(result=self.focused is not self._result)

    def action_show_cases(self) -> None:
        self._show(result=False)

    def action_show_result(self) -> None:
        self._show(result=True)

    def _show(self, *, result: bool) -> None:
        self.set_class(result, "-on-result")
        self._tabs.showing_result = result
        (self._result if result else self._cases).focus(scroll_visible=False)
        self._changed()

    def action_reload(self) -> None:
        self.run_worker(self._workbench.open(), group="reload", exclusive=True)

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())

    def action_palette(self) -> None:
        self.app.action_command_palette()

    def action_quit(self) -> None:
        self.run_worker(self.app.action_quit())

    def on_case_tree_opened(self) -> None:
        self._show(result=True)

    def on_tabs_chosen(self, message: Tabs.Chosen) -> None:
        self._show(result=message.result)

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        self.action_perform(message.action)

    def on_descendant_focus(self) -> None:
        # A click focuses a pane, too.
        on_result = self.focused is self._result
        self.set_class(on_result, "-on-result")
        self._tabs.showing_result = on_result
        self._changed()
