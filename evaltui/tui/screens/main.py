"""The main screen: the panes of the layout, and the lines around them."""

from __future__ import annotations

import time

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input, TextArea

from evaltui.tui.bindings import bindings
from evaltui.tui.clipboard import copy
from evaltui.tui.layout import KEYS, PANES, TITLES, Column, Layout
from evaltui.tui.panes.bars import Footer, Header, Status
from evaltui.tui.panes.filter import FilterInput
from evaltui.tui.panes.heading import Heading, Tab
from evaltui.tui.panes.result import ResultView
from evaltui.tui.panes.too_small import TooSmall, is_too_small
from evaltui.tui.panes.tree import CaseTree
from evaltui.tui.screens.help import HelpScreen
from evaltui.tui.screens.jump import Jump, JumpScreen
from evaltui.workbench.actions import BY_ID, Scope
from evaltui.workbench.drafts import Clashing
from evaltui.workbench.state import Selection
from evaltui.workbench.verdicts import NOT_RUN
from evaltui.workbench.workbench import Workbench

# Events come by the thousand, eyes see some thirty pictures a second.
_FRAME = 1 / 30
_TICK = 0.1


class MainScreen(Screen[None], inherit_bindings=False):
    BINDINGS = bindings(Scope.MAIN)
    AUTO_FOCUS = "#cases"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._layout = Layout()
        self._panes = {kind.id: kind.make(workbench, id=kind.id) for kind in PANES}
        self._headings = {
            name: Heading(pane.heading, id=f"{name}-heading") for name, pane in self._panes.items()
        }
        self._filter = FilterInput(workbench, id="filter")
        self._slots = {name: self._slot(name) for name in self._panes}
        self._status = Status(workbench, id="status")
        self._footer = Footer(workbench, id="footer")
        self._header = Header(workbench, id="header")
        self._drawn = 0.0
        self._will_draw = False
        self._asked: list[Clashing] = []

    def _slot(self, pane: str) -> Vertical:
        above = [self._headings[pane], *([self._filter] if pane == "cases" else [])]
        return Vertical(*above, self._panes[pane], id=f"{pane}-slot", classes="slot")

    def compose(self) -> ComposeResult:
        yield TooSmall(id="too-small")
        yield self._header
        with Horizontal(id="panes"):
            yield from self._slots.values()
        yield self._status
        yield self._footer

    def on_mount(self) -> None:
        self._workbench.subscribe(self._changed)
        self.set_interval(_TICK, self._tick)
        self._arrange()

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
        self._ask_about_clashes()
        self._filter.follow()
        for column in self._columns():
            self._panes[column.shown].follow()
            self._draw_heading(column)
        self._footer.scope = self.scope
        for bar in (self._header, self._status, self._footer):
            bar.refresh()

    def _draw_heading(self, column: Column) -> None:
        tabs = [
            Tab(name, KEYS[name], TITLES[name], self._panes[name].mark(), active=name == column.shown)
            for name in column.panes
        ]
        self._headings[column.shown].show(tabs, focused=self._layout.focus == column.shown)

    def _tick(self) -> None:
        """Time passes: seconds of a run, notices that are old."""
        if self._workbench.busy or self._workbench.notice is not None:
            self._status.refresh()

    # Layout

    @property
    def workbench(self) -> Workbench:
        return self._workbench

    @property
    def scope(self) -> Scope:
        """Where the keys work now."""
        if self._filter.has_focus:
            return Scope.FILTER
        if isinstance(self.focused, Input | TextArea):
            return Scope.FIELD
        return Scope[self._layout.focus.upper()]

    def _columns(self) -> tuple[Column, ...]:
        return self._layout.columns(self.size.width)

    def _arrange(self) -> None:
        """Show what the layout says, and have the focus where it says."""
        self.set_class(is_too_small(self.size), "-too-small")
        columns = self._columns()
        shown = {column.shown for column in columns}
        for name, slot in self._slots.items():
            slot.display = name in shown
            slot.set_class(name == columns[-1].shown, "-last")
        pane = self._panes[self._layout.focus]
        is_in_place = self.focused is not None and pane in self.focused.ancestors
        if not is_in_place and not (self._filter.has_focus and self._layout.focus == "cases"):
            self.set_focus(pane, scroll_visible=False)
        self.set_class(len(columns) == 3, "-three")
        self._changed()

    def _go_to(self, pane: str) -> None:
        self._layout.go_to(pane)
        self._arrange()

    def on_resize(self) -> None:
        self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        # A click focuses a pane, too. By the time this is heard of, the focus may be elsewhere again.
        if (
            event.widget is self.focused
            and event.widget.id in self._panes
            and event.widget.id != self._layout.focus
        ):
            self._go_to(event.widget.id)
        self._changed()

    # Actions

    def action_perform(self, action_id: str) -> None:
        """Do an action of the registry, or say why it cannot be done."""
        action = BY_ID[action_id]
        pane = action_id.removeprefix("show_")
        if reason := action.refusal(self._workbench):
            self._workbench.say(reason)
        elif action.do is not None:
            action.do(self._workbench)
            if action_id == "run":
                self._show_result()
        elif pane in self._panes:
            self._go_to(pane)
        elif action.where == (Scope.FILTER,):
            getattr(self, f"action_{action_id}")()
        else:
            # A pane knows its own keys; what is meant everywhere is known here.
            place = self.focused if Scope.MAIN not in action.where else self
            getattr(place, f"action_{action_id}")()

    def _show_result(self) -> None:
        """Who runs a case wants to see what comes of it; the focus stays in the list."""
        if self._layout.focus in ("trace", "console"):
            # There it is seen while it happens.
            return
        self._layout.bring_up("result")
        if self._layout.focus == "case" and len(self._columns()) < 3:
            self._layout.go_to("result")
        self._arrange()

    def action_next_pane(self) -> None:
        self._step(1)

    def action_previous_pane(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        """To the next place on the screen; where there is but one, to its next tab."""
        columns = self._columns()
        places = [column.shown for column in columns] if len(columns) > 1 else list(columns[0].panes)
        self._go_to(places[(places.index(self._layout.focus) + step) % len(places)])

    def action_next_difference(self) -> None:
        self._go_to_difference(1)

    def action_previous_difference(self) -> None:
        self._go_to_difference(-1)

    def _go_to_difference(self, step: int) -> None:
        self._go_to("result")
        # It writes its page for the width that it gets only now.
        self.call_after_refresh(self._step_difference, step)

    def _step_difference(self, step: int) -> None:
        self.query_one(ResultView).step_difference(step)
        self._changed()

    def action_zoom(self) -> None:
        self._layout.maximised = not self._layout.maximised
        self._arrange()

    def action_toggle_cases(self) -> None:
        self._layout.hide_cases(not self._layout.cases_hidden)
        self._arrange()

    def reveal(self, selection: Selection) -> None:
        """Select, and make sure that the list shows it."""
        self._workbench.clear_filter()
        self._workbench.select(selection)
        self._go_to("cases")

    def action_filter(self) -> None:
        self._go_to("cases")
        self._filter.display = True
        # At once, not soon: what is typed right behind the key is meant for the filter.
        self.set_focus(self._filter)

    def action_keep_filter(self) -> None:
        self.set_focus(self._panes["cases"])

    def action_clear_filter(self) -> None:
        self._workbench.clear_filter()
        self.set_focus(self._panes["cases"])

    def action_reload(self) -> None:
        self.run_worker(self._workbench.open(), group="reload", exclusive=True)

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen(self._workbench, self.scope), self._chosen)

    def _chosen(self, action_id: str | None) -> None:
        if action_id is not None:
            self.action_perform(action_id)

    def action_jump(self) -> None:
        self.app.push_screen(JumpScreen(self._jumps()), self._jumped)

    def _jumps(self) -> list[Jump]:
        """Every pane; those that share a place have their labels one below the other."""
        return [
            Jump(pane, KEYS[pane], TITLES[pane], self._slots[column.shown].region, row, len(column.panes))
            for column in self._columns()
            for row, pane in enumerate(column.panes)
        ]

    def _jumped(self, pane: str | None) -> None:
        if pane is not None:
            self._go_to(pane)

    def action_copy(self) -> None:
        copied = self._panes[self._layout.focus].copied()
        if copied is None:
            self._workbench.say("there is nothing to copy here")
        else:
            self._workbench.say(copy(self.app, self._workbench.agent_dir, copied))

    def action_palette(self) -> None:
        self.app.action_command_palette()

    def action_quit(self) -> None:
        """Leave; what is unsaved is asked about first."""
        if self._workbench.editing.unsaved():
            # The first frame does not wait for screens that are seldom seen.
            from evaltui.tui.screens.unsaved import UnsavedScreen

            self.app.push_screen(UnsavedScreen(self._workbench), self._leave_as_chosen)
        else:
            self.run_worker(self.app.action_quit())

    def _leave_as_chosen(self, choice: str | None) -> None:
        if choice == "discard":
            self._workbench.editing.discard()
        elif choice is None or not self._workbench.editing.save_all():
            return
        self.run_worker(self.app.action_quit())

    def action_find_case(self) -> None:
        self.query_one(CaseTree).action_find_case()

    def action_criteria(self) -> None:
        if self._workbench.selection.path is not None:
            # It knows every metric, which the first frame need not wait for.
            from evaltui.tui.screens.criteria import CriteriaScreen

            self.app.push_screen(CriteriaScreen(self._workbench, self._workbench.selection.path))

    def offer_unsaved(self) -> None:
        """Ask what is to become of the edits of an earlier sitting that did not end in order."""
        from evaltui.files.journal import recoverable
        from evaltui.tui.screens.recovery import RecoveryScreen

        if found := recoverable(self._workbench.agent_dir):
            self.app.push_screen(RecoveryScreen(self._workbench, found))

    def _ask_about_clashes(self) -> None:
        """Two versions of a file are not left alone until they are looked at once."""
        new = [clash for clash in self._workbench.editing.clashing if clash not in self._asked]
        if new and self.is_current:
            from evaltui.tui.screens.versions import VersionsScreen

            self._asked.append(new[0])
            self.app.push_screen(VersionsScreen(self._workbench, new[0]))

    def on_case_tree_opened(self) -> None:
        """The result of a case that has one, else what it says."""
        case = self._workbench.selection.case
        has_result = case is not None and self._workbench.status(case) != NOT_RUN
        self._go_to("result" if has_result else "case")

    def on_case_tree_edit(self) -> None:
        self._go_to("case")

    def on_heading_chosen(self, message: Heading.Chosen) -> None:
        self._go_to(message.pane)

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        self.action_perform(message.action)
