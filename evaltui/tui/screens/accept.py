"""How much of what the agent did is accepted, and what that changes in the files; over the main screen."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from evaltui.text.lines import Line, cells
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.pages.file_versions import write_file_change
from evaltui.tui.pages.writer import Page
from evaltui.tui.screens.prompt import Hint, Hints, moves
from evaltui.tui.widgets.lines import LineView, PageLines, Title
from evaltui.workbench.acceptable import Choice
from evaltui.workbench.accepting import Proposal, accept, propose
from evaltui.workbench.actions import Scope
from evaltui.workbench.workbench import Workbench

_HINTS = (Hint("accept_it", "accept"), Hint("leave_it", "leave it"))
_GAP = "   "
# Of the dialog: title, choices, keys, and space between them.
_OTHER_LINES = 11
_LEAST_LINES = 3


class AcceptScreen(DialogScreen[None], inherit_bindings=False):
    """Shows what each choice would change; nothing is changed before `enter`, nor what was not shown."""

    box = "#accept"
    BINDINGS = bindings(Scope.ACCEPT)
    AUTO_FOCUS = "AcceptLines"

    def __init__(self, workbench: Workbench, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._workbench = workbench
        self._choices = choices
        self._current = 0
        self._proposals: dict[int, Proposal] = {}

    def compose(self) -> ComposeResult:
        with Vertical(id="accept"):
            yield Title(self._title)
            yield AcceptLines(self._write_proposal)
            yield AcceptChoices([choice.title for choice in self._choices])
            yield AcceptHints(self._workbench, lambda: _HINTS)

    def on_mount(self) -> None:
        self._choose(0)

    def on_resize(self) -> None:
        self.query_one(AcceptLines).write_page()

    def _title(self) -> Line:
        cases = self._choices[self._current].cases
        name = visible(cases[0].eval_id) if len(cases) == 1 else f"{len(cases)} cases"
        return [("Accept", "bold"), (" into ", ""), (name, "bold")]

    def _write_proposal(self, page: Page) -> None:
        proposal = self._proposals.get(self._current)
        if proposal is None:
            page.row(("reading what the agent did …", "dim"))
            return
        for remark in proposal.remarks:
            page.text([(visible(remark), "yellow")], [("! ", "yellow")])
        if proposal.problem:
            page.text([(visible(proposal.problem), "")], [("! ", "yellow")])
        for change in proposal.changes:
            page.blank()
            write_file_change(page, change)

    def action_leave_it(self) -> None:
        self.dismiss()

    def action_accept_it(self) -> None:
        self._accept()

    def action_accept_more(self) -> None:
        self._choose(self._current + 1)

    def action_accept_less(self) -> None:
        self._choose(self._current - 1)

    def _choose(self, number: int) -> None:
        self._current = number % len(self._choices)
        self.query_one(Title).refresh()
        self.query_one(AcceptChoices).show(self._current)
        self.query_one(AcceptLines).show(self._write_proposal)
        if self._current not in self._proposals:
            self.run_worker(self._propose(self._current), group="propose", exclusive=True)

    async def _propose(self, number: int) -> None:
        self._proposals[number] = await propose(self._workbench.editing, self._choices[number])
        if number == self._current and self.is_here:
            self.query_one(AcceptLines).show(self._write_proposal)

    def _accept(self) -> None:
        proposal = self._proposals.get(self._current)
        if proposal is None or proposal.problem:
            return
        if accept(self._workbench.editing, proposal):
            self.dismiss()
        else:
            self._proposals.clear()
            self._choose(self._current)

    def on_accept_choices_chosen(self, message: AcceptChoices.Chosen) -> None:
        self._choose(message.number)


class AcceptLines(PageLines, inherit_bindings=False):
    """The lines of the files that would be other ones, as high as there is room for."""

    BINDINGS = moves()

    def write_page(self) -> None:
        super().write_page()
        self.styles.height = max(_LEAST_LINES, min(self.line_count, self.screen.size.height - _OTHER_LINES))


class AcceptChoices(LineView, can_focus=False, inherit_bindings=False):
    """What can be accepted, from the least to the most."""

    class Chosen(Message):
        """The user clicked one."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, titles: Sequence[str]) -> None:
        super().__init__()
        self._titles = titles
        self._current = 0
        self._rows: list[list[int]] = []

    def show(self, current: int) -> None:
        self._current = current
        self.refresh()

    def on_resize(self) -> None:
        """As many in a line as there is room for."""
        self._rows = []
        left = 0
        for number in range(len(self._titles)):
            size = cells(self._choice(number))
            if not self._rows or size > left:
                self._rows.append([])
                left = self.size.width - 1
            self._rows[-1].append(number)
            left -= size
        self.styles.height = len(self._rows)
        self.lines_changed(len(self._rows))

    def line(self, number: int) -> Line:
        return [(" ", ""), *(span for choice in self._rows[number] for span in self._choice(choice))]

    def _choice(self, number: int) -> Line:
        if number == self._current:
            return [("(•) ", "accent"), (self._titles[number], "accent"), (_GAP, "")]
        return [("( ) ", "dim"), (self._titles[number], ""), (_GAP, "")]

    def on_click(self, event: events.Click) -> None:
        left = event.x - 1
        for number in self._rows[event.y] if event.y < len(self._rows) else ():
            if 0 <= left < cells(self._choice(number)):
                self.post_message(self.Chosen(number))
            left -= cells(self._choice(number))


class AcceptHints(Hints):
    """Keys, and the way back."""

    def line(self, width: int) -> Line:
        keys: Line = [*super().line(width), (" ", ""), ("left right", "bold"), (" choose ", "dim")]
        note: Line = [(" undo takes it back ", "dim")]
        return [*keys, *note] if cells(keys) + cells(note) <= width else keys
