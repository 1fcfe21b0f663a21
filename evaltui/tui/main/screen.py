"""The main screen: the panes of the layout, and the lines around them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partialmethod
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from textual import events, work
from textual.app import ComposeResult
from textual.geometry import Size

from evaltui.project.settings import last_sizes
from evaltui.text.outcomes import NOT_RUN
from evaltui.tui.action_screen import ask, bindings
from evaltui.tui.exchange import copy
from evaltui.tui.layout import DRAGGED, MEDIUM, PANES, TITLES, Layout
from evaltui.tui.main.bars import Footer, Header, Status, TooSmall, is_too_small
from evaltui.tui.main.links import MainLinks
from evaltui.tui.main.panes import Panes, other_panes
from evaltui.tui.pane import Beside, Copied, PaneForm
from evaltui.tui.textual_private import TextField, once
from evaltui.workbench.actions import BY_ID, Action, Scope
from evaltui.workbench.agent.first_minute import is_first_minute
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.tui.runs.recent import RecentRuns
    from evaltui.tui.start.view import StartView, TourLine

# Seconds until the cases that were drawn first are on the screen.
_SEEN = 0.05
# Rows of the frame around the cases and of their filter.
_AROUND_CASES = 4


class MainScreen(MainLinks, inherit_bindings=False):
    """The main screen. Its actions are global, or lead from one pane to another."""

    BINDINGS = bindings(Scope.MAIN)
    AUTO_FOCUS = "#cases"

    def __init__(self, workbench: Workbench, *, tour: bool = False) -> None:
        super().__init__(workbench)
        self._layout = Layout(sizes=last_sizes(DRAGGED))
        self._panes = Panes(workbench, self._layout, id="panes")
        self._status = Status(workbench, id="status")
        self._footer = Footer(workbench, id="footer")
        self._header = Header(workbench, id="header")
        self._tour: TourLine | None = None
        if tour:
            from evaltui.tui.start.view import TourLine

            self._tour = TourLine(workbench, id="tour")
            self._layout.bars += 1
        self._will_complete = False
        self.seen = asyncio.Event()
        """Set once the first drawn cases are on the screen."""

    def compose(self) -> ComposeResult:
        # Arranged before it is styled, nothing is styled twice.
        self._show_places(self.app.size)
        yield TooSmall(id="too-small")
        yield self._header
        yield self._panes.tabs
        yield self._panes
        if self._tour is not None:
            yield self._tour
        yield self._status
        yield self._footer

    def on_mount(self) -> None:
        self.subscribe_to(self.workbench.messages)
        self._arrange()

    # What was seen last

    def show_view(self, view: Mapping[str, Any]) -> None:
        """Restores the view of the last session."""
        path, eval_id, folded, toggled = (view.get(name) for name in ("set", "case", "folded", "toggled"))
        if isinstance(path, str):
            self.workbench.navigation.selection = Selection(
                path, eval_id if isinstance(eval_id, str) else None
            )
        if isinstance(toggled, list):
            self.workbench.navigation.toggled = frozenset(map(str, toggled))
        if isinstance(folded, list):
            self.workbench.navigation.folded_sets.update(map(str, folded))
        if (dock := view.get("dock")) in TITLES:
            self._layout.dock = dock
        if (upper := view.get("upper")) in TITLES:
            self._layout.bring_up(upper)
        self._layout.dock_hidden = view.get("dock_hidden") is True
        self._layout.nothing_run = not view

    def view(self) -> dict[str, Any]:
        """The view: the selected case, the panes on top, the folded sets, and the folded parts of its
        result."""
        selection, layout = self.workbench.navigation.selection, self._layout
        return {
            "set": selection.path,
            "case": selection.eval_id,
            "upper": None if layout.undecided else layout.upper,
            "dock": layout.dock,
            "dock_hidden": layout.dock_hidden,
            "folded": sorted(self.workbench.navigation.folded_sets),
            "toggled": sorted(self.workbench.navigation.toggled),
        }

    async def begin_tour(self) -> None:
        """Runs the cases of the demo, and shows why the first one fails."""
        self.workbench.runs.run_all()
        await self.workbench.runs.finished()
        for action in ("next_failing", "show_result", "next_difference"):
            await self.run_action(action)

    @work
    async def complete(self) -> None:
        """Creates the other panes after the first frame, which has only the cases. Keys do not wait for their
        import."""
        await asyncio.to_thread(other_panes)
        if not self.is_attached:
            # Whoever was quick has left already.
            return
        self.seen.set()
        self._panes.make_all()
        self.draw_soon()

    # Following the workbench

    def draw(self) -> None:
        if self.workbench.sets.workspace is None:
            # Cases do not wait for the frame after one that had none.
            self.drawn_at = 0.0
        elif not self._will_complete:
            self._will_complete = True
            once(self, _SEEN, self.complete)
        before = self._layout.at_start, self._layout.nothing_run
        self._layout.trace_of_chat = self.workbench.navigation.trace_of_chat
        self._layout.start(is_first_minute(self.workbench.sets))
        if self.workbench.sets.is_read and not self.workbench.outcomes.is_loading:
            self._layout.nothing_run = self.workbench.is_unused
        rows = sum(len(eval_set.cases) + 2 for eval_set in self.workbench.sets.listed) + _AROUND_CASES
        now = self._layout.at_start, self._layout.nothing_run
        if now != before or rows != self._layout.cases_rows:
            self._layout.cases_rows = rows
            self._arrange()
        if self._layout.undecided and self.workbench.outcomes.get(self.workbench.navigation.selection.case):
            self._layout.bring_up("result")
            self._arrange()
        self.ask()
        self._panes.draw(anew=self._draws_all)
        self._footer.scope = self.scope
        if self._tour is not None:
            self._tour.follow(self.scope)

    # Layout

    @property
    def scope(self) -> Scope:
        """The scope of the keys."""
        field = self.focused if isinstance(self.focused, TextField) else None
        if field is not None and field.scope in (Scope.FILTER, Scope.MESSAGE):
            return field.scope
        if self.focused is not None and any(isinstance(node, PaneForm) for node in self.focused.ancestors):
            return Scope.FORM
        if field is not None:
            return field.scope
        if self.focused is not None and any(isinstance(node, Beside) for node in self.focused.ancestors):
            return Scope.INSPECTOR
        return Scope[self._layout.focus.upper()]

    def _show_places(self, size: Size) -> None:
        self._panes.show_places(size)
        is_small = is_too_small(size)
        self.set_class(is_small, "-too-small")
        self.set_class(size.width < MEDIUM and not is_small, "-narrow")

    def _arrange(self) -> None:
        """Shows the panes of the layout, and focuses its pane."""
        self._show_places(self.size)
        if (before := self._panes.name_of(self.focused)) != self._layout.focus:
            if before is not None and not self._leaves(before):
                self._layout.go_to(before)
                return
            self.set_focus(self._panes.pane(self._layout.focus).entry, scroll_visible=False)
        self.draw_soon()

    def _leaves(self, pane: str) -> bool:
        """Whether the focused pane lets the focus go."""
        return pane not in self._panes.made or self._panes.made[pane].left()

    def go_to(self, pane: str) -> None:
        if pane != self._layout.focus and not self._leaves(self._layout.focus):
            return
        # The first case may be newer than what is drawn.
        self._layout.start(is_first_minute(self.workbench.sets))
        if pane in ("case", "result", "chat") and self._layout.has_dock(self.size):
            # The trace below is of what is above it.
            self.workbench.navigation.trace_chat(pane == "chat")
        self._layout.go_to(pane)
        self._arrange()

    def go_to_entry(self, pane: str) -> None:
        if pane == self._layout.focus and pane == self._layout.dock and self._layout.has_dock(self.size):
            # The key of the dock's tab shows the dock, and hides it.
            if not self._leaves(pane):
                return
            self._layout.hide_dock()
            self._arrange()
            return
        self.go_to(pane)
        self.set_focus(self._panes.pane(pane).entry, scroll_visible=False)

    def on_resize(self) -> None:
        self._arrange()

    def follow(self) -> None:
        """Shows the current state: the terminal may have another size, and anything may have changed."""
        self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        # A click focuses a pane, too. By the time this is heard of, the focus may be elsewhere again.
        pane = self._panes.name_of(event.widget)
        if event.widget is self.focused and pane is not None and pane != self._layout.focus:
            self.go_to(pane)
        self.draw_soon()

    # Actions

    @property
    def takes_input(self) -> bool:
        """False also where the screen is too small to be seen."""
        return super().takes_input and not is_too_small(self.size)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "quit":
            return self.is_mounted and self.is_active
        return super().check_action(action, parameters)

    def refusal(self, action_id: str) -> str | None:
        if action_id == "step_back" and (self._layout.maximised or self.scope is Scope.INSPECTOR):
            return None
        action = BY_ID[action_id]
        if reason := action.refusal(self.workbench, self.scope):
            return reason
        in_case = Scope.CASE in action.where and self.scope not in action.where and not action.is_move
        if in_case and self.scope in (Scope.FIELD, Scope.TEXT):
            # The keys of a pane are heard in its fields, too.
            return f"{action.title}: close the field first"
        pane = self._panes.made.get(self._layout.focus)
        return pane.refusal(action_id) if pane is not None and self.scope in action.where else None

    def footer_word(self, action: Action) -> str:
        if action.id == "step_back" and self.scope is Scope.INSPECTOR:
            return "back"
        if action.id == "step_back" and self._layout.maximised:
            return "unzoom"
        pane = self._panes.made.get(self._layout.focus)
        return super().footer_word(action) if pane is None else pane.footer_word(action)

    def action_run(self) -> None:
        self.workbench.runs.run_chosen()
        self.show_result()

    def show_result(self) -> None:
        """Shows the result when a case is run; the focus stays in the list."""
        if self._layout.focus in ("trace", "console"):
            # There it is seen while it happens.
            return
        self._layout.bring_up("result")
        if self._layout.focus != "cases" and "result" not in {place.shown for place in self._panes.places}:
            # It would stay below what has the focus.
            self._layout.go_to("result")
        self._arrange()

    def action_step_pane(self, step: int) -> None:
        """Goes to the next place on the screen; with a single place, to its next tab."""
        places = self._panes.places
        panes = [place.shown for place in places] if len(places) > 1 else list(places[0].panes)
        self.go_to(panes[(panes.index(self._layout.focus) + step) % len(panes)])

    def action_zoom(self) -> None:
        self._layout.maximised = not self._layout.maximised
        self._arrange()

    def action_step_back(self) -> None:
        """Clears the smallest thing first; ends the zoom where nothing else is left."""
        if self._layout.maximised and not self.workbench.navigation.is_narrowed:
            self.action_zoom()
        else:
            self.workbench.step_back()

    def action_toggle_cases(self) -> None:
        self._layout.hide_cases(not self._layout.cases_hidden)
        self._arrange()

    def action_widen_cases(self, cells: int) -> None:
        self._panes.widen_cases(cells)

    def action_filter(self) -> None:
        """Focuses the filter of the focused pane, if it has one; else that of the cases."""
        pane = self._layout.focus if self._layout.focus in self._panes.filters else "cases"
        self.go_to(pane)
        line = self._panes.filter(pane)
        line.display = True
        # At once, not soon: what is typed right behind the key is meant for the filter.
        self.set_focus(line)

    def action_keep_filter(self) -> None:
        if line := self._panes.filters.get(self._layout.focus):
            line.apply()
            self.set_focus(self._panes.pane(self._layout.focus))

    def action_clear_filter(self) -> None:
        if line := self._panes.filters.get(self._layout.focus):
            line.clear()
            self.action_keep_filter()

    def action_reload(self) -> None:
        self.run_worker(self.workbench.reload(), group="reload", exclusive=True)

    def action_jump(self) -> None:
        """Jumps to a visible pane or section, by the key of its label."""
        from evaltui.tui.dialogs.keys import Jump, JumpScreen

        tabs = [Jump(tab.pane, tab.key, at) for tab, at in self._panes.tab_places() if tab.key]
        places = zip(ascii_lowercase, self._panes.section_places(), strict=False)
        sections = [Jump(f"{pane} {section}", key, at) for key, (pane, section, at) in places]
        ask(self, JumpScreen([*tabs, *sections]), self._jump_to)

    def _jump_to(self, target: str) -> None:
        pane, _, section = target.partition(" ")
        self.go_to(pane)
        if section:
            self._panes.jump(pane, section)

    def action_copy(self) -> None:
        self._copy(self._panes.pane(self._layout.focus).copied())

    def action_copy_json(self) -> None:
        self._copy(self._panes.pane("result").copied_json())

    def _copy(self, copied: Copied | None) -> None:
        if copied is None:
            self.workbench.say("Nothing to copy")
        else:
            self.workbench.say(copy(self.app, self.workbench, copied))

    def on_case_tree_opened(self) -> None:
        """Goes to the result of a case, else to the case."""
        case = self.workbench.navigation.selection.case
        has_result = case is not None and self.workbench.outcomes.status(case) != NOT_RUN
        self.go_to("result" if has_result else "case")

    action_edit_case = partialmethod(go_to, "case")

    def on_case_tree_added(self) -> None:
        from evaltui.tui.case.view import CaseView

        self.go_to("case")
        self.query_one(CaseView).edit_user_text()

    def action_edit_json(self) -> None:
        from evaltui.tui.case.view import CaseView

        self.go_to("case")
        self.query_one(CaseView).edit_json()

    def on_result_view_case_made(self) -> None:
        self.go_to("case")

    def action_go_to(self, pane: str) -> None:
        """Shows a tab, by a click."""
        self.go_to(pane)

    def on_recent_runs_open_run(self, message: RecentRuns.OpenRun) -> None:
        opening = self.workbench.outcomes.open_run(message.path, message.title)
        self.run_worker(opening, group="runs", exclusive=True)

    def on_recent_runs_compare_runs(self, message: RecentRuns.CompareRuns) -> None:
        self.compare_runs(message.sides)

    async def on_start_view_in_cases(self, message: StartView.InCases) -> None:
        self.go_to("cases")
        await self.run_action(message.action)


for _kind in PANES:
    setattr(MainScreen, f"action_show_{_kind.id}", partialmethod(MainScreen.go_to_entry, _kind.id))
