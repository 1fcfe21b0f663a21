"""The trace pane: every span of the selected case, nested, with its duration."""

from __future__ import annotations

import json
from functools import partial

from evaltui.core.model.case_id import CaseId
from evaltui.core.trace.graph import graph_of
from evaltui.core.trace.spans import Span, request_of
from evaltui.files.agent_source import SourcePlace, frame_place
from evaltui.text.figures import counted, show_duration
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.outcomes import NOT_RUN
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings
from evaltui.tui.pages.trace import Scale, span_line, write_events, write_graph, write_request, write_response
from evaltui.tui.pane import Copied, Pane
from evaltui.tui.screens.details import DetailsScreen, Tab
from evaltui.tui.widgets.fields import FilterLine
from evaltui.tui.widgets.lines import GrowingLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.editors import place_of_agent, place_of_tool
from evaltui.workbench.state import Selection
from evaltui.workbench.traces import Outline, Trace, problem_of
from evaltui.workbench.workbench import Workbench

# A hundred thousand events take a second to become spans: the screen goes on meanwhile.
_MOST_AT_ONCE = 4_000


class TraceView(Pane, GrowingLines, can_focus=True, inherit_bindings=False):
    """One row per span, however many there are: a row is made into text when it is drawn."""

    BINDINGS = bindings(Scope.TRACE)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._outline = Outline()
        self._remark = "Loading eval sets…"
        self._case: CaseId | None = None
        self._trace: Trace | None = None
        self._shown = Selection()
        self._looks_for_error = False
        self._wanted: tuple[int, int | None] | None = None
        self._drawn: tuple[int, str, str] = (0, "", "")

    def heading(self) -> Line:
        trace, tree = self._trace, self._outline.tree
        if trace is None or not tree.events:
            return []
        facts = [trace.run.name, counted(tree.events + trace.left_out, "event")]
        if trace.repeats > 1:
            facts.insert(1, f"repeat {trace.repeat + 1} of {trace.repeats}")
        if tokens := tree.tokens:
            facts.append(counted(tokens, "token"))
        facts.append(show_duration(sum(turn.seconds for turn in tree.turns)))
        return [(facts[0], "muted"), *((f" · {fact}", "muted") for fact in facts[1:])]

    # Following the workbench

    def follow(self) -> None:
        case = self._workbench.navigation.selection.case
        trace = self._workbench.outcomes.trace(case) if case else None
        if (
            trace is None
            and case is not None
            and case == self._case
            and self._workbench.outcomes.status(case) != NOT_RUN
        ):
            # Its log is being read: what could be seen while it ran is what will be in there.
            return
        if self._is_another(case, trace):
            self._outline = Outline()
            self.line_count = 0
        self._case, self._trace = case, trace
        current = self._current()
        if trace is not None:
            known = self._outline.tree.events
            self._outline.add(trace.events[known : known + _MOST_AT_ONCE])
            if self._outline.tree.events < len(trace.events):
                self.call_later(self.follow)
        if self._outline.search != self._workbench.navigation.trace_search:
            self._outline.set_search(self._workbench.navigation.trace_search)
        self._remark = self._remark_now(case, trace)
        drawn = self._outline.tree.events, self._remark, self._outline.search
        if self.line_count == 0 or drawn != self._drawn:
            self._drawn = drawn
            self._draw_rows(current, is_live=bool(trace and trace.live))
        self._go_to_selection()
        self._go_to_wanted()

    def _draw_rows(self, current: Span | None, *, is_live: bool) -> None:
        fresh = self.line_count == 0
        at_end = self.cursor >= self.line_count - 1
        self.lines_changed(len(self._outline.rows) + bool(self._remark))
        if fresh and not is_live:
            self.start_at(0)
            self._looks_for_error = True
        elif current is not None and not (is_live and at_end):
            self.cursor = min(self._outline.row_of(current.number) or 0, max(0, self.line_count - 1))

        if self._looks_for_error and not self.cursor and self._outline.tree.first_error is not None:
            self._looks_for_error = False
            self.start_at(self._outline.row_of(self._outline.tree.first_error) or 0)

    def _is_another(self, case: CaseId | None, trace: Trace | None) -> bool:
        if trace is None or self._trace is None or case != self._case:
            return True
        same = (trace.run, trace.repeat) == (self._trace.run, self._trace.repeat)
        # A case that is tried again after a crash begins anew.
        return not same or len(trace.events) < self._outline.tree.events

    def _remark_now(self, case: CaseId | None, trace: Trace | None) -> str:
        if case is None:
            return "No case selected"
        if trace is None:
            status = self._workbench.outcomes.status(case)
            return f"Not run   {key_of('run')}  Run case" if status == NOT_RUN else "reading the log …"
        if trace.events and not self._outline.rows:
            return f"No match   {key_of('filter')} search   {key_of('clear_filter')} clear"
        if trace.left_out:
            return f"… and {counted(trace.left_out, 'more event')}, in the run log only"
        if trace.live:
            return "…"
        return trace.problem or ("" if trace.events else "No events")

    def _go_to_selection(self) -> None:
        """To the turn that was selected in the list of cases."""
        selection = self._workbench.navigation.selection
        if selection == self._shown or not self._outline.rows:
            return
        self._shown = selection
        if selection.turn is None:
            return
        turns = self._outline.tree.turns
        if turn := next((turn for turn in turns if turn.turn == selection.turn), None):
            self._move_to_span(turn)

    def show(self, turn: int, call: int | None) -> None:
        """Go to a call that the agent made in a turn, both counted from 0; without one, to the turn."""
        self._wanted = turn, call
        self.follow()

    def _go_to_wanted(self) -> None:
        """As soon as it is there: the log may still be being read."""
        tree = self._outline.tree
        if self._wanted is None or self._trace is None or tree.events < len(self._trace.events):
            return
        (turn, call), self._wanted = self._wanted, None
        span = None if call is None else tree.call(turn, call)
        span = span or next((one for one in tree.turns if one.turn == turn), None)
        if span is not None:
            self._looks_for_error = False
            self._move_to_span(span)

    def _move_to_span(self, span: Span) -> None:
        row = self._outline.row_of(span.number)
        self.lines_changed(len(self._outline.rows) + bool(self._remark))
        if row is not None:
            self.move_to(row)

    # Drawing

    def line(self, number: int) -> Line:
        marker = ("▌" if number == self.cursor else " ", "bold accent" if self.has_focus else "muted")
        if number >= len(self._outline.rows):
            role = "bold accent" if self._remark == "…" else "muted"
            return [marker, (visible(self._remark), role)]
        span = self._outline.span(number)
        is_folded = span.number in self._outline.folded and not self._outline.search
        op = self._op(span)
        return [marker, *span_line(span, self._scale, self.line_width - 2, folded=is_folded, op=op)]

    @property
    def _scale(self) -> Scale:
        """One for all turns, so that their bars can be compared."""
        turns = self._outline.tree.turns
        return Scale(turns[0].begin, max(turn.end for turn in turns))

    def _op(self, span: Span) -> str:
        """How a call differs from what is expected."""
        if span.call is None or span.turn is None or self._case is None or self._trace is None:
            return ""
        return self._workbench.outcomes.call_op(
            self._case, self._trace.run, self._trace.repeat, span.turn, span.call
        )

    # Keys

    def _current(self) -> Span | None:
        rows = self._outline.rows
        return self._outline.span(self.cursor) if self.cursor < len(rows) else None

    def source(self) -> SourcePlace | None:
        """Of the tool, the instruction of the agent whose model was asked, or where an error was raised."""
        span, agent = self._current(), self._workbench.agent
        if span is None:
            return None
        if (failed := span.event("error")) is not None and failed.data.get("traceback"):
            return frame_place(agent.dir, str(failed.data["traceback"]))
        call = span.event("tool_call")
        for part in (call.content or {}).get("parts") or [] if call else []:
            return place_of_tool(agent, str((part.get("function_call") or {}).get("name")))
        return place_of_agent(agent, span.agent)

    def copied(self) -> Copied | None:
        span = self._current()
        if span is None or not span.events:
            return None
        events = [event.to_json() for event in span.events]
        return Copied(f"the {span.kind}", json.dumps(events, indent=2, ensure_ascii=False))

    def open_current(self) -> None:
        self.action_open_details()

    def action_toggle_fold(self) -> None:
        if span := self._current():
            self._fold(span, folded=span.number not in self._outline.folded)

    def action_fold(self) -> None:
        """Fold; what has nothing to fold goes to what it is in."""
        span = self._current()
        if span is None:
            return
        if span.children and span.number not in self._outline.folded:
            self._fold(span, folded=True)
        elif span.parent is not None:
            self._move_to_span(self._outline.tree.spans[span.parent])

    def action_unfold(self) -> None:
        span = self._current()
        if span is not None and span.number in self._outline.folded:
            self._fold(span, folded=False)
        elif span is not None and span.children:
            self.action_line_down()

    def _fold(self, span: Span, *, folded: bool) -> None:
        if not span.children or folded == (span.number in self._outline.folded):
            return
        self._outline.toggle(span.number)
        self._move_to_span(span)

    def action_open_details(self) -> None:
        span = self._current()
        if span is None:
            return
        spans = self._outline.tree.spans
        happened = span.events or [spans[number].events[0] for number in span.children[:1]]
        answer = span.events if span.kind in ("model", "tool") else ()
        tabs = [
            Tab("Event", partial(write_events, events=happened)),
            Tab("Request", lambda page: write_request(page, request_of(spans, span.number))),
            Tab("Response", partial(write_response, events=answer)),
            Tab("Graph", lambda page: write_graph(page, graph_of(spans, span.turn))),
        ]
        turn = "" if span.turn is None else f" · turn {span.turn + 1}"
        what = visible(span.agent) if span.kind == "agent" else span.kind
        title: Line = [(what, "bold"), (turn, ""), (f" · {show_duration(span.seconds)}", "muted")]
        first = 3 if span.kind == "agent" else 0
        self.app.push_screen(DetailsScreen(title, tabs, first))


class TraceFilter(FilterLine):
    example = ("kind:tool", "agent:guide", '"a text"')
    examples = ("a word", "kind:tool", "kind:model", "agent:x", "failed", '"some words"', "-not")

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench

    def filter_text(self) -> str:
        return self._workbench.navigation.trace_search

    def set_filter(self, text: str) -> None:
        self._workbench.navigation.search_trace(text)

    def problem(self) -> str:
        return problem_of(self.value)
