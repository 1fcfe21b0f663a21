"""The main screen: the panes of the layout, and the lines around them."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input, TextArea

from evaltui.text.lines import Line, Span
from evaltui.text.outcomes import NOT_RUN
from evaltui.text.values import visible
from evaltui.tui.action_screen import ActionScreen
from evaltui.tui.bindings import bindings
from evaltui.tui.clipboard import copy
from evaltui.tui.layout import KEYS, LEFT_TO_RIGHT, MAKE, PANES, TITLES, Column, Layout
from evaltui.tui.pane import Copied, Pane
from evaltui.tui.panes.bars import Footer, Header, Status
from evaltui.tui.panes.filter import FilterInput
from evaltui.tui.panes.heading import Heading, Tab
from evaltui.tui.panes.too_small import TooSmall, is_too_small
from evaltui.tui.panes.tree import CaseTree
from evaltui.tui.timing import once
from evaltui.tui.widgets.filter_line import FilterLine
from evaltui.tui.widgets.message_box import MessageField
from evaltui.workbench.actions import BY_ID, Scope
from evaltui.workbench.draft import Clashing
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.tui.screens.jump import Jump
    from evaltui.tui.screens.runs import Wanted

# Events come by the thousand, eyes see some thirty pictures a second.
_FRAME = 1 / 30
_TICK = 0.1
# Seconds until the cases that were drawn first are on the screen.
_SEEN = 0.05
# Actions of one pane that lead to another.
_LEAPS = ("go_to_trace", "show_event", "show_expected")


class MainScreen(ActionScreen[None], inherit_bindings=False):
    BINDINGS = bindings(Scope.MAIN)
    AUTO_FOCUS = "#cases"

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._layout = Layout()
        self._panes: dict[str, Pane] = {"cases": CaseTree(workbench, id="cases")}
        self._headings = {
            kind.id: Heading(partial(self._shown_in, kind.id), id=f"{kind.id}-heading") for kind in PANES
        }
        self._filters: dict[str, FilterLine] = {"cases": FilterInput(workbench, id="filter")}
        there = {"cases": (self._filters["cases"], self._panes["cases"])}
        self._slots = {
            name: Vertical(heading, *there.get(name, ()), id=f"{name}-slot", classes="slot")
            for name, heading in self._headings.items()
        }
        self._status = Status(workbench, id="status")
        self._footer = Footer(workbench, id="footer")
        self._header = Header(workbench, id="header")
        self._drawn = 0.0
        self._will_draw = False
        self._will_complete = False
        self._asked: list[Clashing] = []
        self._offers_unsaved = False
        self._came_from: str | None = None

    def compose(self) -> ComposeResult:
        # Arranged before it is styled, nothing is styled twice.
        self._show_columns(self.app.size)
        yield TooSmall(id="too-small")
        yield self._header
        with Horizontal(id="panes"):
            yield from (self._slots[pane] for pane in LEFT_TO_RIGHT)
        yield self._status
        yield self._footer

    def on_mount(self) -> None:
        self._workbench.subscribe(self._changed)
        self.set_interval(_TICK, self._tick)
        self._arrange()

    def _pane(self, name: str) -> Pane:
        """A pane, made now if nobody has wanted it before."""
        if name not in self._panes:
            pane = self._panes[name] = MAKE[name](self._workbench, id=name)
            above, below = self._filter_above(name), pane.below()
            self._slots[name].mount(*(part for part in (above, pane, below) if part is not None))
        return self._panes[name]

    def _filter_above(self, name: str) -> FilterLine | None:
        if name != "trace":
            return None
        from evaltui.tui.panes.trace_filter import TraceFilter

        self._filters[name] = TraceFilter(self._workbench, id="trace-filter")
        return self._filters[name]

    def complete(self) -> None:
        """Have every pane: the first frame was drawn with the cases alone."""
        if not self.is_attached:
            # Whoever was quick has left already.
            return
        for name in LEFT_TO_RIGHT:
            self._pane(name)
        self._changed()

    def _shown_in(self, name: str) -> Line:
        return self._panes[name].heading() if name in self._panes else []

    # Following the workbench

    def _changed(self) -> None:
        """Draw soon, and once for all that changed by then."""
        if not self._will_draw:
            self._will_draw = True
            wait = self._drawn + _FRAME - time.monotonic()
            if wait > 0:
                once(self, wait, self._draw)
            else:
                self.call_next(self._draw)

    def _draw(self) -> None:
        self._will_draw = False
        if self._workbench.sets.workspace is not None:
            # Cases do not wait for the frame after one that had none.
            self._drawn = time.monotonic()
            if not self._will_complete:
                self._will_complete = True
                once(self, _SEEN, self.complete)
        self._ask()
        for line in self._filters.values():
            line.follow()
        for column in self._columns():
            if column.shown in self._panes:
                self._panes[column.shown].follow()
            self._draw_heading(column)
        self._footer.scope = self.scope
        for bar in (self._header, self._status, self._footer):
            bar.refresh()

    def _draw_heading(self, column: Column) -> None:
        tabs = [
            Tab(name, KEYS[name], TITLES[name], self._mark_of(name), active=name == column.shown)
            for name in column.panes
        ]
        self._headings[column.shown].show(tabs, focused=self._layout.focus == column.shown)

    def _mark_of(self, name: str) -> Span | None:
        return self._panes[name].mark() if name in self._panes else None

    def _tick(self) -> None:
        """Time passes: seconds of a run, notices that are old."""
        if self._workbench.runs.is_running or self._workbench.notice is not None:
            self._status.refresh()

    # Layout

    @property
    def workbench(self) -> Workbench:
        return self._workbench

    @property
    def scope(self) -> Scope:
        """Where the keys work now."""
        if isinstance(self.focused, FilterLine):
            return Scope.FILTER
        if isinstance(self.focused, MessageField):
            return Scope.MESSAGE
        if isinstance(self.focused, Input | TextArea):
            return Scope.FIELD
        return Scope[self._layout.focus.upper()]

    def _columns(self) -> tuple[Column, ...]:
        return self._layout.columns(self.size.width)

    def _show_columns(self, size: Size) -> None:
        """Show what the layout says that there is room for."""
        columns = self._layout.columns(size.width)
        shown = {column.shown for column in columns}
        for name, slot in self._slots.items():
            slot.display = name in shown
            slot.set_class(name == columns[-1].shown, "-last")
        self.set_class(is_too_small(size), "-too-small")
        self.set_class(len(columns) == 3, "-three")

    def _arrange(self) -> None:
        """Show what the layout says, and have the focus where it says."""
        self._show_columns(self.size)
        if (before := self._pane_of(self.focused)) != self._layout.focus:
            if before in self._panes:
                self._panes[before].left()
            self.set_focus(self._pane(self._layout.focus).entry, scroll_visible=False)
        self._changed()

    def _pane_of(self, widget: Widget | None) -> str | None:
        """The pane that a widget is, or belongs to."""
        around = set(widget.ancestors_with_self) if widget else set()
        return next((pane for pane, slot in self._slots.items() if slot in around), None)

    def _go_to(self, pane: str) -> None:
        if pane != self._layout.focus and self._layout.focus in self._panes:
            self._panes[self._layout.focus].left()
        self._layout.go_to(pane)
        self._arrange()

    def on_resize(self) -> None:
        self._arrange()

    def follow(self) -> None:
        """The terminal may have another size, and anything may have happened meanwhile."""
        self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        # A click focuses a pane, too. By the time this is heard of, the focus may be elsewhere again.
        pane = self._pane_of(event.widget)
        if event.widget is self.focused and pane is not None and pane != self._layout.focus:
            self._go_to(pane)
        self._changed()

    # Actions

    @property
    def takes_input(self) -> bool:
        """Not where nothing of it can be seen."""
        return super().takes_input and not is_too_small(self.size)

    def action_perform(self, action_id: str) -> None:
        if self.takes_input or (self.is_active and action_id == "quit"):
            self.perform(action_id)

    def perform(self, action_id: str) -> None:
        """Do an action of the registry, or say why it cannot be done."""
        action = BY_ID[action_id]
        pane = action_id.removeprefix("show_")
        if reason := action.refusal(self._workbench):
            self._workbench.say(reason)
        elif action.do is not None:
            action.do(self._workbench)
            if action_id == "run":
                self._show_result()
        elif pane in TITLES:
            self._go_to(pane)
            self.set_focus(self._pane(pane).entry, scroll_visible=False)
        else:
            # A pane knows its own keys; what is meant everywhere, or leads elsewhere, is known here.
            is_ours = Scope.MAIN in action.where or action.where == (Scope.FILTER,) or action_id in _LEAPS
            do = getattr(self if is_ours else self.focused, f"action_{action_id}", None)
            if do is not None:
                do()
            else:
                # The keys of a pane are heard in its fields, too.
                self._workbench.say(f"{action.title}: leave the field first; enter keeps a line, esc a text")

    def _show_result(self) -> None:
        """Who runs a case wants to see what comes of it; the focus stays in the list."""
        if self._layout.focus in ("trace", "console"):
            # There it is seen while it happens.
            return
        self._layout.bring_up("result")
        if self._layout.focus != "cases" and len(self._columns()) < 3:
            # It would stay below what has the focus.
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
        from evaltui.tui.panes.result import ResultView

        self._go_to("result")
        self.query_one(ResultView).step_difference(step)
        self._changed()

    def action_go_to_trace(self) -> None:
        self._go_to("trace")

    def action_show_event(self) -> None:
        """What happened where the result differs."""
        from evaltui.tui.panes.trace import TraceView

        self._leap("trace")
        at = self._workbench.navigation.difference
        if at is not None and at.turn is not None:
            call = self._workbench.navigation.made_call(at)
            trace = self.query_one(TraceView)
            self.call_after_refresh(trace.show, at.turn, call)

    def action_show_expected(self) -> None:
        """What is expected where the result differs."""
        from evaltui.tui.panes.case.view import CaseView

        self._leap("case")
        if (at := self._workbench.navigation.difference) is not None:
            self.call_after_refresh(self.query_one(CaseView).show_expected, at)

    def _leap(self, pane: str) -> None:
        self._came_from = self._layout.focus
        self._go_to(pane)

    def action_back(self) -> None:
        if self._came_from is None:
            self._workbench.say("there is nowhere to go back to: t and e in a result go elsewhere")
        else:
            back, self._came_from = self._came_from, None
            self._go_to(back)

    def action_zoom(self) -> None:
        self._layout.maximised = not self._layout.maximised
        self._arrange()

    def action_toggle_cases(self) -> None:
        self._layout.hide_cases(not self._layout.cases_hidden)
        self._arrange()

    def reveal(self, selection: Selection) -> None:
        """Select, and make sure that the list shows it."""
        self._workbench.navigation.set_filter("")
        self._workbench.navigation.select(selection)
        self._go_to("cases")

    def action_filter(self) -> None:
        """Of the trace, if one is there; else of the cases."""
        pane = self._layout.focus if self._layout.focus in self._filters else "cases"
        self._go_to(pane)
        self._filters[pane].display = True
        # At once, not soon: what is typed right behind the key is meant for the filter.
        self.set_focus(self._filters[pane])

    def action_keep_filter(self) -> None:
        if line := self._filters.get(self._layout.focus):
            line.apply()
            self.set_focus(self._pane(self._layout.focus))

    def action_clear_filter(self) -> None:
        if line := self._filters.get(self._layout.focus):
            line.clear()
            self.action_keep_filter()

    def action_reload(self) -> None:
        self.run_worker(self._workbench.open(), group="reload", exclusive=True)

    def action_help(self) -> None:
        from evaltui.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self._workbench, self.scope), self._chosen)

    def _chosen(self, action_id: str | None) -> None:
        if action_id is not None:
            self.action_perform(action_id)

    def action_jump(self) -> None:
        from evaltui.tui.screens.jump import JumpScreen

        self.app.push_screen(JumpScreen(self._jumps()), self._jumped)

    def _jumps(self) -> list[Jump]:
        """Every pane; those that share a place have their labels one below the other."""
        from evaltui.tui.screens.jump import Jump

        return [
            Jump(pane, KEYS[pane], TITLES[pane], self._slots[column.shown].region, row, len(column.panes))
            for column in self._columns()
            for row, pane in enumerate(column.panes)
        ]

    def _jumped(self, pane: str | None) -> None:
        if pane is not None:
            self._go_to(pane)

    def action_copy(self) -> None:
        self._copy(self._pane(self._layout.focus).copied())

    def action_copy_json(self) -> None:
        self._copy(self._pane("result").copied_json())

    def _copy(self, copied: Copied | None) -> None:
        if copied is None:
            self._workbench.say("there is nothing to copy here")
        else:
            self._workbench.say(copy(self.app, self._workbench.agent.dir, copied))

    def action_palette(self) -> None:
        # The first frame does not wait for it.
        from evaltui.tui.screens.palette import PaletteScreen

        self.app.push_screen(PaletteScreen(self), lambda choose: choose and choose())

    def action_quit(self) -> None:
        """Leave; what is unsaved, or typed and in no case yet, is asked about first."""
        # The first frame does not wait for screens that are seldom seen.
        from evaltui.tui.screens.unsaved import UnsavedScreen

        if isinstance(self.app.screen, UnsavedScreen):
            return
        typed = self._typed_elsewhere()
        if self._workbench.editing.unsaved() or self._workbench.editing.unapplied.now() or typed:
            self.app.push_screen(UnsavedScreen(self._workbench, typed), self._leave_as_chosen)
        else:
            self._leave()

    def _typed_elsewhere(self) -> str:
        """What is typed in a field that lies over this screen."""
        field = self.app.screen.focused
        if self.app.screen is self or not isinstance(field, Input | TextArea):
            return ""
        return field.value if isinstance(field, Input) else field.text

    def _leave(self) -> None:
        self.run_worker(self.app.action_quit())

    def _leave_as_chosen(self, choice: str | None) -> None:
        editing = self._workbench.editing
        if choice == "discard":
            editing.discard()
        elif choice is None or not editing.save_all():
            return
        elif left := editing.unapplied.now():
            # The files are saved; that is in none of them.
            if left[0].case is not None:
                self._workbench.navigation.select(Selection(*left[0].case))
                self._go_to("case")
            return
        self._leave()

    def action_find_case(self) -> None:
        self.query_one(CaseTree).action_find_case()

    def action_runs(self) -> None:
        # It reads logs, which the first frame need not wait for.
        from evaltui.tui.screens.runs import RunsScreen

        self.app.push_screen(RunsScreen(self._workbench), self._run_chosen)

    def _run_chosen(self, wanted: Wanted | None) -> None:
        if wanted is not None:
            self.run_worker(self._show_run(wanted), group="runs", exclusive=True)

    async def _show_run(self, wanted: Wanted) -> None:
        workbench = self._workbench
        if wanted.resumes:
            if await workbench.runs.resume(wanted.path):
                self._show_result()
            return
        workbench.say(f"reading the {wanted.title} …")
        if not await workbench.outcomes.open_run(wanted.path, wanted.title):
            return
        if wanted.case is None:
            self._go_to("cases")
        elif selection := workbench.outcomes.case_of(wanted.case, wanted.eval_set_id):
            workbench.navigation.select(selection)
            self._go_to("result")
        else:
            workbench.say(f"the case {wanted.case.eval_id} is not in the eval sets any more")

    def action_preflight(self) -> None:
        if (run := self._workbench.runs.current) is not None:
            # It builds on the models, which the first frame does not wait for.
            from evaltui.tui.pages.preflight import write_checks
            from evaltui.tui.screens.details import DetailsScreen

            title: Line = [("Metrics", "bold"), (f" ─ run {run.number}: {visible(run.title)}", "")]
            self.app.push_screen(DetailsScreen(title, partial(write_checks, checks=run.checks)))

    def action_run_repeatedly(self) -> None:
        from evaltui.tui.screens.prompt import PromptScreen
        from evaltui.workbench.repeating import EXAMPLE, problem_of, proposal, title_of

        workbench = self._workbench
        question = PromptScreen(title_of(workbench), proposal(workbench), problem_of, EXAMPLE)
        self.app.push_screen(question, self._run_repeatedly)

    def _run_repeatedly(self, asked: str | None) -> None:
        from evaltui.workbench.repeating import parse_repeated

        if asked is not None:
            self._workbench.runs.run_repeatedly(parse_repeated(asked))
            self._show_result()

    def action_criteria(self) -> None:
        if self._workbench.navigation.selection.path is not None:
            # It knows every metric, which the first frame need not wait for.
            from evaltui.tui.screens.criteria import CriteriaScreen

            self.app.push_screen(CriteriaScreen(self._workbench, self._workbench.navigation.selection.path))

    def offer_unsaved(self) -> None:
        """Ask about the edits of an earlier sitting, as soon as no other screen lies over this one."""
        self._offers_unsaved = True
        self._changed()

    def _ask(self) -> None:
        """What waits for an answer is asked once nothing else is."""
        if not self.takes_input:
            return
        if self._offers_unsaved:
            self._offers_unsaved = False
            self._ask_about_unsaved()
        else:
            self._ask_about_clashes()

    def _ask_about_unsaved(self) -> None:
        from evaltui.files.journal import recoverable
        from evaltui.tui.screens.recovery import RecoveryScreen

        if found := recoverable(self._workbench.agent.dir):
            self.app.push_screen(RecoveryScreen(self._workbench, found))

    def _ask_about_clashes(self) -> None:
        """Two versions of a file are not left alone until they are looked at once."""
        new = [clash for clash in self._workbench.editing.clashing if clash not in self._asked]
        # Nobody is asked while typing: what is typed next would be taken for the answer.
        if new and self.app.screen is self and not isinstance(self.focused, Input | TextArea):
            from evaltui.tui.screens.versions import VersionsScreen

            self._asked.append(new[0])
            self.app.push_screen(VersionsScreen(self._workbench, new[0]))

    def on_case_tree_opened(self) -> None:
        """The result of a case that has one, else what it says."""
        case = self._workbench.navigation.selection.case
        has_result = case is not None and self._workbench.outcomes.status(case) != NOT_RUN
        self._go_to("result" if has_result else "case")

    def on_case_tree_edit(self) -> None:
        self._go_to("case")

    def on_pane_chat_from_here(self) -> None:
        """Ask where in the case to begin; without a case there is nothing to ask."""
        key, chat = self._workbench.navigation.selection.case, self._workbench.chat
        if key is not None:
            from evaltui.tui.screens.chat_from import ChatFromScreen

            self.app.push_screen(ChatFromScreen(self._workbench, key), self._chat_begun)
            return
        if chat.transcript is None:
            chat.new()
        self._chat_begun(True)

    def _chat_begun(self, begun: bool | None) -> None:
        if begun:
            self.perform("show_chat")

    def on_chat_view_saved(self) -> None:
        self._go_to("case")

    def on_result_view_case_made(self) -> None:
        self._go_to("case")

    def on_heading_chosen(self, message: Heading.Chosen) -> None:
        self._go_to(message.pane)

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        self.perform(message.action)
