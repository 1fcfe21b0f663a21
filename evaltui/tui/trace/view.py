"""The panes of the trace, every span of the selected case with its duration, and of what agents printed."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.message import Message
from textual.widget import Widget

from evaltui.core.compare.turn_verdicts import turn_status
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import TurnResult
from evaltui.core.trace.spans import Span, time_spent
from evaltui.project.agent_source import SourcePlace, frame_place
from evaltui.text.figures import counted, show_duration, show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, pad
from evaltui.text.lines import Span as LineSpan
from evaltui.text.outcomes import NOT_RUN
from evaltui.text.values import visible, visible_lines
from evaltui.tui.action_screen import bindings
from evaltui.tui.dialogs.details import DetailsScreen
from evaltui.tui.inspector import Inspected, InspectedPane, Room
from evaltui.tui.pane import CASE_MESSAGES, CopiedText, Pane
from evaltui.tui.trace.page import (
    MIN_WIDTH_WITH_BARS,
    PLOT_ROWS,
    TIMES_ROWS,
    Columns,
    axis_line,
    cut_text,
    is_named,
    span_line,
    write_last_runs,
    write_time_spent,
)
from evaltui.tui.trace.span import FIRST_TAB, source_of, span_tabs
from evaltui.tui.widgets.fields import FilterLine
from evaltui.tui.widgets.lines import DrawnLine, GrowingLines
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.views.rows import made_call
from evaltui.workbench.actions import Scope
from evaltui.workbench.agent.agent_state import PrintedLine
from evaltui.workbench.chat.controller import NO_RUN
from evaltui.workbench.chat.trace import ChatPlace, ChatTrace
from evaltui.workbench.messages import ChatProgressed, ResultsChanged, RunProgressed
from evaltui.workbench.state import CaseOutcome, Selection
from evaltui.workbench.trace.traces import GAP, Outline, Trace, problem_of
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.runs.history import CaseHistory


class Summary(PageLines, inherit_bindings=False):
    """The summary below the rows of a trace, while there is room."""

    _followed: object = None

    def follow(self, *state: object) -> None:
        """Writes it again when the state has changed."""
        if state != self._followed and self.size.height:
            self._followed = state
            self.write_page()

    def on_resize(self) -> None:
        self.write_page()


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


# A hundred thousand events take a second to become spans: the screen goes on meanwhile.
_MAX_EVENTS_AT_ONCE = 4_000
_DIFFERING_OPS = ("changed", "moved", "extra")


class TraceView(InspectedPane, GrowingLines, can_focus=True, inherit_bindings=False):
    """One row per span; a row is written when it is drawn."""

    BINDINGS = bindings(Scope.TRACE)
    SHOWS = (*CASE_MESSAGES, ChatProgressed)
    INSPECTOR_ROOM = Room(from_width=122, least=42, most=60, from_height=32)

    class Moved(Message):
        """The user has moved to another span of the chat."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._outline = Outline()
        self._of_chat = ChatTrace()
        self._remark = "Loading eval sets…"
        self._case: CaseId | None = None
        self._trace: Trace | None = None
        self._shown = Selection()
        self._looks_for_error = False
        self._target: tuple[int, int | None] | None = None
        self._drawn: tuple[object, ...] = ()
        self._columns = Columns.of(self._outline.tree)
        self._axis = DrawnLine(self._draw_axis, id="trace-axis")
        self._summary = Summary(self._write_summary, can_focus=False, id="trace-summary")

    def above(self) -> Widget:
        return self._axis

    def below(self) -> Widget:
        return self._summary

    def heading(self) -> Line:
        trace, tree = self._trace, self._outline.tree
        if trace is None or not tree.events:
            return []
        facts = [
            f"{trace.run.name}{' (stale)' if self._is_stale else ''}",
            counted(tree.events + trace.left_out, "event"),
        ]
        if trace.repeats > 1:
            facts.insert(1, f"repeat {trace.repeat + 1} of {trace.repeats}")
        if tokens := tree.tokens:
            facts.append(counted(tokens, "token"))
        facts.append(show_duration(sum(turn.seconds for turn in tree.turns) or None))
        where: Line = [(f"{visible(self._case.eval_id)}   ", "muted")] if self._case else []
        return [*where, *((f"{fact}   ", "muted") for fact in facts[:-1]), (facts[-1], "")]

    # Following the workbench

    def _followed(self) -> tuple[CaseId | None, Trace | None]:
        """The shown trace: of the selected case, or of the chat, as far as it is known."""
        if self._workbench.navigation.trace_of_chat:
            chat = self._workbench.chat
            return None, self._of_chat.follow(chat.transcript, live=chat.answering)
        case = self._workbench.navigation.selection.case
        return case, self._workbench.outcomes.trace(case) if case else None

    def follow(self) -> None:
        case, trace = self._followed()
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
            event_count = self._outline.tree.events
            self._outline.add(trace.events[event_count : event_count + _MAX_EVENTS_AT_ONCE])
            if self._outline.tree.events < len(trace.events):
                self.call_later(self.follow)
        if self._outline.search != self._workbench.navigation.trace_search:
            self._outline.set_search(self._workbench.navigation.trace_search)
        self._remark = self._remark_now(case, trace)
        drawn = self._outline.tree.events, self._remark, self._outline.search, self._scored(), self._is_stale
        if self.line_count == 0 or drawn != self._drawn:
            self._drawn = drawn
            self._columns = Columns.of(self._outline.tree)
            self._draw_rows(current, is_live=bool(trace and trace.live))
        self._go_to_selection()
        self._go_to_target()
        self._share_height()
        self._inspector.follow()

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
        before = self._trace
        same = (trace.run, trace.repeat, trace.chat) == (before.run, before.repeat, before.chat)
        # A case that is tried again after a crash begins anew.
        return not same or len(trace.events) < self._outline.tree.events

    def _remark_now(self, case: CaseId | None, trace: Trace | None) -> str:
        if trace is None:
            if case is None:
                return "No case selected"
            status = self._workbench.outcomes.status(case)
            return f"Not run   {key_of('run')}  Run case" if status == NOT_RUN else "Loading run log…"
        if trace.events and not self._outline.rows:
            return f"No match   {key_of('filter')} search   {key_of('clear_filter')} clear"
        if trace.left_out:
            return f"… and {counted(trace.left_out, 'more event')}, in the run log only"
        if trace.live:
            return "…"
        nothing = "No messages yet" if trace.chat else "No events"
        return trace.problem or ("" if trace.events else nothing)

    def _go_to_selection(self) -> None:
        """Goes to the turn that is selected in the list of cases."""
        selection = self._workbench.navigation.selection
        if selection == self._shown or not self._outline.rows:
            return
        self._shown = selection
        if selection.turn is None or self._workbench.navigation.trace_of_chat:
            return
        turns = self._outline.tree.turns
        if turn := next((turn for turn in turns if turn.turn == selection.turn), None):
            self._move_to_span(turn)

    def show(self, turn: int, call: int | None) -> None:
        """Goes to a call of the agent in a turn, both counted from 0; without a call, to the turn."""
        self._target = turn, call
        self.follow()

    def _go_to_target(self) -> None:
        """Goes to the target once its span exists: the log may still be being read."""
        tree = self._outline.tree
        if self._target is None or self._trace is None or tree.events < len(self._trace.events):
            return
        (turn, call), self._target = self._target, None
        span = None if call is None else tree.call(turn, call)
        span = span or next((turn_span for turn_span in tree.turns if turn_span.turn == turn), None)
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
        marker = self.marker(number)
        if number < len(self._outline.rows) and self._outline.rows[number] == GAP:
            return []
        if number >= len(self._outline.rows):
            role = "bold accent" if self._remark == "…" else "muted"
            return [marker, (visible(self._remark), role)]
        span = self._outline.span(number)
        is_folded = span.number in self._outline.folded and not self._outline.search
        op, status = self._op(span), self._status(span)
        width = self.line_width - 2
        is_live = self._trace is not None and self._trace.live
        drawn = span_line(
            span,
            self._columns,
            width,
            folded=is_folded,
            op=op,
            status=status,
            is_live=is_live,
            named=is_named(self._outline.tree.spans, span),
        )
        return [marker, *drawn]

    def full_text(self, number: int) -> str:
        rows = self._outline.rows
        if number >= len(rows) or rows[number] == GAP:
            return super().full_text(number)
        span = self._outline.span(number)
        width, status = self.line_width - 2, self._status(span)
        return cut_text(span, self._columns, width, status, named=is_named(self._outline.tree.spans, span))

    def _draw_axis(self, width: int) -> Line:
        return [(" ", ""), *axis_line(self._columns, self.line_width - 2)]

    def _share_height(self) -> None:
        """Gives the summary the rows that the spans do not need, if these are enough."""
        rows = self._outline.rows
        self._axis.display = bool(rows) and self.line_width - 2 >= MIN_WIDTH_WITH_BARS
        frame = self.parent.size.height if isinstance(self.parent, Widget) else 0
        room = frame - self._axis.display - self.line_count
        shown = bool(rows) and room > TIMES_ROWS and not (self._trace and self._trace.live)
        self.styles.height = self.line_count if shown else "1fr"
        self._summary.display = shown
        self._axis.refresh_changed()
        if shown:
            self._summary.follow(self._drawn, self._past())

    def _past(self) -> CaseHistory | None:
        return self._workbench.outcomes.history(self._case) if self._case else None

    def _write_summary(self, page: Page) -> None:
        tree = self._outline.tree
        page.lines.append([])
        write_time_spent(page, time_spent(tree.spans), tree.tokens, tree.unknown)
        room = self._summary.size.height - len(page.lines) - 2
        if (past := self._past()) is not None and room >= PLOT_ROWS - 2:
            write_last_runs(page, past, room)

    def _status(self, span: Span) -> str:
        """The verdict of a turn; "" for a turn without metrics."""
        scored = self._scored()
        if span.kind != "turn" or span.turn is None or scored is None or self._is_stale:
            return ""
        return turn_status(scored.result, span.turn) or ""

    @property
    def _is_stale(self) -> bool:
        """Whether the trace is that of another agent or case than the current one."""
        if self._case is None or self._scored() is None:
            return False
        now = self._workbench.outcomes.freshness(self._case)
        return now is not None and now.is_stale

    def _scored(self) -> CaseOutcome | None:
        """The result of the shown run."""
        scored = self._workbench.outcomes.get(self._case) if self._case else None
        if scored is None or self._trace is None or self._trace.live:
            return None
        return scored if (scored.run, scored.repeat) == (self._trace.run, self._trace.repeat) else None

    def _op(self, span: Span) -> str:
        """The diff operation of a call; "" where it is unknown."""
        turn = self._turn(span)
        row = made_call(turn, span.call) if turn is not None and span.call is not None else None
        return row.op if row else ""

    def _turn(self, span: Span) -> TurnResult | None:
        """The result of the turn of a span in the shown run."""
        scored = self._scored()
        turns = scored.shown.turns if scored else ()
        return turns[span.turn] if span.turn is not None and span.turn < len(turns) else None

    # Keys

    def _current(self) -> Span | None:
        rows = self._outline.rows
        return self._outline.span(self.cursor) if self.cursor < len(rows) else None

    def source(self) -> SourcePlace | None:
        """The source of the tool, of the instruction of the agent with the model call, or of an error."""
        span = self._current()
        return None if span is None else source_of(span, self._workbench.agent)

    def copied(self) -> CopiedText | None:
        span = self._current()
        if span is None or not span.events:
            return None
        events = [event.to_json() for event in span.events]
        return CopiedText(f"the {span.kind}", json.dumps(events, indent=2, ensure_ascii=False))

    def move_to(self, number: int) -> None:
        """Moves to a row, skipping the gap before a turn."""
        rows = self._outline.rows
        if 0 <= number < len(rows) and rows[number] == GAP:
            number += 1 if number >= self.cursor else -1
        super().move_to(number)
        self._inspector.follow()
        if self.has_focus and self._trace is not None and self._trace.chat:
            self.post_message(self.Moved())

    def chat_place(self) -> ChatPlace | None:
        """The place of the current span in the chat; None in the trace of a case."""
        span = self._current()
        if span is None or self._trace is None or not self._trace.chat:
            return None
        return self._of_chat.place_of(self._outline.tree.spans, span)

    def show_place(self, place: ChatPlace) -> None:
        """Goes to the span of a place in the chat."""
        self.follow()
        if (span := self._of_chat.span_of(self._outline.tree.spans, place)) is not None:
            self._looks_for_error = False
            self._move_to_span(span)

    def on_resize(self) -> None:
        super().on_resize()
        self._share_height()

    def step_difference(self, step: int) -> None:
        """Goes to the next or previous call that is not as expected; wraps at the end."""
        spans, current = self._outline.tree.spans, self._current()
        differing = [span for span in spans if self._op(span) in _DIFFERING_OPS]
        if not differing:
            self._workbench.say("No difference in the trace")
            return
        at = -1 if current is None else current.number
        after = [span for span in differing[::step] if (span.number - at) * step > 0]
        if not after:
            self._workbench.say("Wrapped to the first" if step > 0 else "Wrapped to the last")
        self._move_to_span((after or differing[::step])[0])

    def action_toggle_fold(self) -> None:
        """Folds the spans inside a span; from a span without any, the span around it."""
        span = self._current()
        if span is not None and not span.children and span.parent is not None:
            span = self._outline.tree.spans[span.parent]
        if span is not None:
            self._fold(span, folded=span.number not in self._outline.folded)

    def _fold(self, span: Span, *, folded: bool) -> None:
        if not span.children or folded == (span.number in self._outline.folded):
            return
        self._outline.toggle(span.number)
        self._move_to_span(span)
        self._share_height()

    def action_step_item(self, step: int) -> None:
        self._inspector.action_step_item(step)

    def inspected(self) -> Inspected | None:
        span, trace = self._current(), self._trace
        if span is None or trace is None:
            return None
        tabs = span_tabs(
            self._workbench.agent,
            self._outline.tree.spans,
            span,
            self._turn(span),
            is_of_chat=bool(trace.chat),
        )
        what = self._case, trace.run, trace.repeat, trace.chat, span.number
        state = len(span.events), span.end, self._workbench.outcomes.results.version
        first = "Expected" if self._op(span) in _DIFFERING_OPS else FIRST_TAB.get(span.kind, "Event")
        return Inspected(what, state, tabs, first)


_SOURCE_WIDTH = 7
_MAX_CASE = 22
# Narrower panes name the case in the details only.
_MIN_WIDTH_WITH_CASES = 72
# No terminal is wider: what is not seen need not be made visible.
_MAX_LINE = 1000


class ConsoleView(Pane, GrowingLines, can_focus=True, inherit_bindings=False):
    """One row per printed line; the cursor follows the last line while it is on it."""

    BINDINGS = bindings(Scope.CONSOLE)
    SHOWS = (ChatProgressed, ResultsChanged, RunProgressed)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._log = workbench.console
        self._drawn = -1
        self._dropped = 0
        self._cases = 0

    def source(self) -> SourcePlace | None:
        """The frame in a line of a printed traceback."""
        number = self.cursor - self._above
        printed = self._log[number].text if 0 <= number < len(self._log) else ""
        return frame_place(self._workbench.agent.dir, printed)

    def heading(self) -> Line:
        count = len(self._log)
        return [(counted(count, "line"), "muted")] if count else []

    def mark(self) -> LineSpan | None:
        unread = self._log.unread
        return (show_number(unread), "bold accent") if unread else None

    def follow(self) -> None:
        self._log.mark_seen()
        if self._log.total == self._drawn:
            return
        # The column of cases is as wide as what is in it, up to a limit.
        new = self._log.total - max(0, self._drawn)
        for number in range(max(0, len(self._log) - new), len(self._log)):
            if case := self._log[number].case:
                self._cases = max(self._cases, min(_MAX_CASE, cell_len(visible(case.eval_id))))
        self._drawn = self._log.total
        # Every line goes up by those that were dropped, but for the last one, which is followed.
        dropped = self._log.dropped - self._dropped
        if dropped and self.cursor < self.line_count - 1:
            self.cursor = max(0, self.cursor - dropped)
            self.scroll_to(y=max(0, self.scroll_offset.y - dropped), animate=False, force=True)
        self._dropped = self._log.dropped
        self.lines_changed(max(1, len(self._log) + self._above))

    @property
    def _above(self) -> int:
        """The number of rows above the lines: one for the note about dropped lines."""
        return 1 if self._log.dropped else 0

    def line(self, number: int) -> Line:
        marker = self.marker(number)
        if not len(self._log):
            return [marker, ("No output yet", "muted")]
        if number < self._above:
            return [marker, (f"… {counted(self._log.dropped, 'earlier line')} dropped", "warning")]
        printed = self._log[number - self._above]
        role = "warning" if printed.source == "stderr" else "muted"
        line: Line = [marker, (pad(visible(printed.source), _SOURCE_WIDTH), role)]
        if self._cases and self.line_width >= _MIN_WIDTH_WITH_CASES:
            case = visible(printed.case.eval_id) if printed.case else ""
            line += [(pad(case, self._cases), "muted"), ("  ", "")]
        return [*line, (visible(printed.text[:_MAX_LINE].replace("\t", "    ")), "")]

    def action_open_details(self) -> None:
        number = self.cursor - self._above
        if 0 <= number < len(self._log):
            printed = self._log[number]
            when = f"run {printed.run}" if printed.run != NO_RUN else "the conversation"
            title: Line = [(visible(printed.source), "bold"), (f" · {when}", "muted")]
            self.app.push_screen(DetailsScreen(title, partial(write_printed, printed=printed)))

    open_current = action_open_details


def write_printed(page: Page, printed: PrintedLine) -> None:
    """Writes a printed line in full."""
    case = visible(printed.case.eval_id) if printed.case else "not known: it was not alone in its process"
    page.labelled("case", [(case, "" if printed.case else "muted")])
    page.blank()
    for line in visible_lines(printed.text):
        page.block([(line, "")], 2)
    if printed.cut:
        page.row((f"  … {counted(printed.cut, 'more character')} of this line in the run log", "warning"))
