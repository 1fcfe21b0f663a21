"""Everything that happened in the selected case."""

from __future__ import annotations

from functools import partial

from evaltui.core.show import visible
from evaltui.reports.lines import Line
from evaltui.tui.bindings import bindings
from evaltui.tui.pages.trace_row import TraceRows, duration
from evaltui.tui.pane import Pane
from evaltui.tui.screens.details import DetailsScreen
from evaltui.tui.widgets.cursor_lines import GrowingLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.state import CaseKey, Selection
from evaltui.workbench.traces import Trace
from evaltui.workbench.verdicts import NOT_RUN
from evaltui.workbench.workbench import Workbench


class TraceView(Pane, GrowingLines, can_focus=True, inherit_bindings=False):
    """One row per event, however many there are: a row is made into text when it is drawn."""

    BINDINGS = bindings(Scope.TRACE)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._rows = TraceRows()
        self._remark = "looking for eval sets …"
        self._key: CaseKey | None = None
        self._trace: Trace | None = None
        self._shown = Selection()

    def heading(self) -> Line:
        trace, rows = self._trace, self._rows
        if trace is None or not rows.events:
            return []
        facts = [f"run {trace.run}", f"{len(rows.events) + trace.left_out:,} events"]
        if trace.repeats > 1:
            facts.insert(1, f"repeat {trace.repeat + 1} of {trace.repeats}")
        if rows.tokens:
            facts.append(f"{rows.tokens:,} tokens")
        return [(facts[0], "dim"), *((f" · {fact}", "dim") for fact in [*facts[1:], duration(rows.seconds)])]

    # Following the workbench

    def follow(self) -> None:
        key = self._workbench.selection.case
        trace = self._workbench.trace(key) if key else None
        if trace is None and key is not None and key == self._key and self._workbench.status(key) != NOT_RUN:
            # Its log is being read: what could be seen while it ran is what will be in there.
            return
        if self._is_another(key, trace):
            self._rows = TraceRows()
            self.line_count = 0
        self._key, self._trace = key, trace
        before = len(self._rows.events), self._remark
        if trace is not None:
            self._rows.add(trace.events[len(self._rows.events) :])
        self._remark = self._remark_now(key, trace)
        if self.line_count == 0 or (len(self._rows.events), self._remark) != before:
            fresh = self.line_count == 0
            self.lines_changed(len(self._rows.events) + bool(self._remark))
            if fresh and not (trace and trace.live):
                self.start_at(0)
        self._go_to_selection()

    def _is_another(self, key: CaseKey | None, trace: Trace | None) -> bool:
        if trace is None or self._trace is None or key != self._key:
            return True
        same = (trace.run, trace.repeat) == (self._trace.run, self._trace.repeat)
        # A case that is tried again after a crash begins anew.
        return not same or len(trace.events) < len(self._rows.events)

    def _remark_now(self, key: CaseKey | None, trace: Trace | None) -> str:
        if key is None:
            return "select a case: its events are shown here"
        if trace is None:
            status = self._workbench.status(key)
            return "nothing run yet: r runs the case" if status == NOT_RUN else "reading the log …"
        if trace.left_out:
            return f"… and {trace.left_out:,} more events, which only the log of the run has"
        if trace.live:
            return "…"
        return trace.problem or ("" if trace.events else "nothing happened in this case")

    def _go_to_selection(self) -> None:
        """To the turn that was selected in the list of cases."""
        selection = self._workbench.selection
        if selection == self._shown or not self._rows.events:
            return
        self._shown = selection
        if selection.turn is not None and (line := self._rows.first_of(selection.turn)) is not None:
            self.move_to(line)

    # Drawing

    def line(self, number: int) -> Line:
        marker = ("▌" if number == self.cursor else " ", "accent" if self.has_focus else "dim")
        if number >= len(self._rows.events):
            tone = "accent" if self._remark == "…" else "dim"
            return [marker, (visible(self._remark), tone)]
        return [marker, *self._rows.line(number, self.line_width - 2)]

    def open_current(self) -> None:
        self.action_open_details()

    def action_open_details(self) -> None:
        if self.cursor >= len(self._rows.events):
            return
        # It colours JSON, which the first frame need not wait for.
        from evaltui.tui.pages.event import write_event

        event = self._rows.events[self.cursor]
        turn = "" if event.turn is None else f" · turn {event.turn + 1}"
        title: Line = [(event.kind.replace("_", " "), "bold"), (turn, ""), (f" · event {event.seq}", "dim")]
        self.app.push_screen(DetailsScreen(title, partial(write_event, event=event)))
