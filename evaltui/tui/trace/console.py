"""The console pane: the output of the agent and its processes."""

from __future__ import annotations

from functools import partial

from rich.cells import cell_len

from evaltui.project.agent_source import SourcePlace, frame_place
from evaltui.text.figures import counted, show_number
from evaltui.text.lines import Line, Span, pad
from evaltui.text.values import visible, visible_lines
from evaltui.tui.action_screen import bindings
from evaltui.tui.dialogs.details import DetailsScreen
from evaltui.tui.pane import Pane
from evaltui.tui.widgets.lines import GrowingLines
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.actions import Scope
from evaltui.workbench.agent.agent_state import PrintedLine
from evaltui.workbench.chat.controller import NO_RUN
from evaltui.workbench.messages import ChatProgressed, ResultsChanged, RunProgressed
from evaltui.workbench.workbench import Workbench

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

    def mark(self) -> Span | None:
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

    def open_current(self) -> None:
        self.action_open_details()

    def action_open_details(self) -> None:
        number = self.cursor - self._above
        if 0 <= number < len(self._log):
            printed = self._log[number]
            when = f"run {printed.run}" if printed.run != NO_RUN else "the conversation"
            title: Line = [(visible(printed.source), "bold"), (f" · {when}", "muted")]
            self.app.push_screen(DetailsScreen(title, partial(write_printed, printed=printed)))


def write_printed(page: Page, printed: PrintedLine) -> None:
    """Writes a printed line in full."""
    case = visible(printed.case.eval_id) if printed.case else "not known: it was not alone in its process"
    page.labelled("case", [(case, "" if printed.case else "muted")])
    page.blank()
    for line in visible_lines(printed.text):
        page.block([(line, "")], 2)
    if printed.cut:
        page.row((f"  … {counted(printed.cut, 'more character')} of this line in the run log", "warning"))
