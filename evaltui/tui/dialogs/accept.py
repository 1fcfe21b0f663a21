"""Dialogs that preview a change of files: accepting actual as expected, and renaming everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.message import Message

from evaltui.core.model.outcome import CaseResult
from evaltui.core.model.renaming import Renaming
from evaltui.project.folders import is_recording
from evaltui.text.figures import counted, show_number
from evaltui.text.lines import Line, cells, pad
from evaltui.text.values import visible
from evaltui.tui.action_screen import start_work
from evaltui.tui.dialogs.effects import write_result
from evaltui.tui.dialogs.file_versions import write_file_change
from evaltui.tui.dialogs.prompt import (
    CANCEL,
    Dialog,
    DialogKeys,
    DialogPage,
    FormScreen,
    Hint,
    dialog_name,
)
from evaltui.tui.widgets.choices import LABEL
from evaltui.tui.widgets.lines import LineView
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.agent.background import Progress
from evaltui.workbench.result.acceptable import Choice
from evaltui.workbench.result.accepting import (
    Proposal,
    RenameProposal,
    accept,
    effects,
    propose,
    propose_renaming,
    rename_everywhere,
)
from evaltui.workbench.workbench import Workbench

# Seconds between looks at how far reading has come.
_TICK_SECONDS = 0.25
# More cases are not scored again for a preview.
_MAX_SCORED = 6
# Blank rows and keys.
_OTHER_ROWS = 3


class PreviewForm(FormScreen[bool]):
    """A dialog with a page of the changes that it makes."""

    AUTO_FOCUS = "DialogPage"

    @property
    def page(self) -> DialogPage:
        return self.query_one(DialogPage)

    def on_resize(self) -> None:
        self.page.write_page()

    def fields(self) -> list[DialogPage]:
        return [self.page]


class AcceptScreen(PreviewForm):
    """Shows the changes of each choice; returns True once they were made. No file changes before `enter`."""

    box = "#accept"

    def __init__(self, workbench: Workbench, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._workbench = workbench
        self._choices = choices
        self._current = 0
        self._proposals: dict[int, Proposal] = {}
        # Results before and after, by choice.
        self._effects: dict[int, list[tuple[CaseResult, CaseResult]]] = {}
        self._progress = Progress()

    def compose(self) -> ComposeResult:
        with Dialog(dialog_name("accept"), id="accept", can_be_undone=True):
            yield AcceptChoices([choice.title for choice in self._choices])
            yield DialogPage(self._write_proposal, self._other_rows, free=1)
            hints = (Hint("confirm", "accept"), Hint("next_item", "scope", "←→"), CANCEL)
            yield DialogKeys(lambda: hints)

    def on_mount(self) -> None:
        self._choose(0)
        self.set_interval(
            _TICK_SECONDS, lambda: None if self._current in self._proposals else self.on_resize()
        )

    def _other_rows(self) -> int:
        return _OTHER_ROWS + self.query_one(AcceptChoices).line_count

    @property
    def choice(self) -> Choice:
        """The current choice."""
        return self._choices[self._current]

    def _about(self) -> Line:
        cases = self.choice.cases
        name = visible(cases[0].eval_id) if len(cases) == 1 else counted(len(cases), "case")
        return [(f"actual as expected in {name}", "muted")]

    def _write_proposal(self, page: Page) -> None:
        proposal = self._proposals.get(self._current)
        if proposal is None:
            page.row((f"Reading the run log…{self._progress}", "muted"))
            return
        for remark in proposal.remarks:
            page.text([(visible(remark), "warning")], [("! ", "warning")])
        if proposal.problem:
            page.text([(visible(proposal.problem), "")], [("! ", "warning")])
            return
        page.section(("Effect", "bold"))
        scored = self._effects[self._current]
        for before, after in scored[:_MAX_SCORED]:
            write_result(page, after.eval_id, before, after, fixed="would pass")
        left = sum(change.cases for change in proposal.changes) - min(len(scored), _MAX_SCORED)
        if left > 0:
            page.row((f"and {show_number(left)} more" if scored else "◐ scoring…", "muted"))
        for change in proposal.changes:
            page.blank()
            write_file_change(page, change)

    def action_step_item(self, step: int) -> None:
        self._choose(self._current + step)

    action_step_field = action_step_item

    def _choose(self, number: int) -> None:
        self._current = number % len(self._choices)
        self.query_one(Dialog).about(self._about())
        self.query_one(AcceptChoices).show(self._current)
        self.page.show(self._write_proposal)
        if self._current not in self._proposals:
            start_work(self, self._propose, self._current, group="propose")

    async def _propose(self, number: int) -> None:
        self._progress = Progress()
        self._effects[number] = []
        self._proposals[number] = await propose(
            self._workbench.editing, self._choices[number], self._progress
        )
        self._show(number)
        async for before, after in effects(self._workbench, self._proposals[number], _MAX_SCORED):
            self._effects[number].append((before, after))
            self._show(number)

    def _show(self, number: int) -> None:
        if number == self._current and self.is_here:
            self.page.show(self._write_proposal)

    def action_confirm(self) -> None:
        proposal = self._proposals.get(self._current)
        if proposal is None or proposal.problem:
            return
        if accept(self._workbench.editing, proposal):
            self.dismiss(True)
        else:
            self._proposals.clear()
            self._choose(self._current)

    def on_accept_choices_chosen(self, message: AcceptChoices.Chosen) -> None:
        self._choose(message.number)


class AcceptChoices(LineView, can_focus=False, inherit_bindings=False):
    """The choices, from the smallest to the largest."""

    class Chosen(Message):
        """The user clicked a choice."""

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
        """Shows as many choices in a line as fit."""
        self._rows = []
        left = 0
        for number in range(len(self._titles)):
            size = cells(self._choice(number))
            if not self._rows or size > left:
                self._rows.append([])
                left = self.size.width - LABEL
            self._rows[-1].append(number)
            left -= size
        self.styles.height = len(self._rows)
        self.lines_changed(len(self._rows))

    def line(self, number: int) -> Line:
        label = pad("scope" if number == 0 else "", LABEL)
        return [(label, "muted"), *(span for choice in self._rows[number] for span in self._choice(choice))]

    def _choice(self, number: int) -> Line:
        return [(f" {self._titles[number]} ", "chip" if number == self._current else ""), (" ", "")]

    def on_click(self, event: events.Click) -> None:
        left = event.x - LABEL
        for number in self._rows[event.y] if event.y < len(self._rows) else ():
            if 0 <= left < cells(self._choice(number)):
                self.post_message(self.Chosen(number))
            left -= cells(self._choice(number))


class RenameScreen(PreviewForm):
    """Shows every place of a name, returns True once it was renamed; nothing changes before `enter`."""

    box = "#rename"

    def __init__(self, workbench: Workbench, renaming: Renaming) -> None:
        super().__init__()
        self._workbench = workbench
        self._renaming = renaming
        self._proposal: RenameProposal | None = None

    def compose(self) -> ComposeResult:
        about = f"{self._renaming.full_name} → {self._renaming.new}"
        name = dialog_name("rename_everywhere")
        with Dialog(name, [(visible(about), "muted")], id="rename", can_be_undone=True):
            yield DialogPage(self._write_proposal, lambda: _OTHER_ROWS)
            yield DialogKeys(lambda: (Hint("confirm", "rename"), CANCEL))

    def on_mount(self) -> None:
        self._propose()

    def _propose(self) -> None:
        self._proposal = None
        start_work(self, self._compute_proposal, group="propose")

    async def _compute_proposal(self) -> None:
        self._proposal = await propose_renaming(self._workbench.editing, self._renaming)
        if self.is_here:
            self.page.show(self._write_proposal)

    def _write_proposal(self, page: Page) -> None:
        proposal = self._proposal
        if proposal is None:
            page.row(("Reading files…", "muted"))
            return
        if proposal.problem:
            page.text([(visible(proposal.problem), "")], [("! ", "warning")])
            return
        page.row((proposal.files.counts, "bold"), ("; the agent's code stays", "muted"))
        for file, change in zip(proposal.files.files, proposal.changes, strict=True):
            page.blank()
            if is_recording(file.path):
                name = f"{file.path.parent.name}/{file.path.name}"
                page.row((visible(name), "bold"), (f"  {counted(file.places, 'place')}", "muted"))
            else:
                write_file_change(page, change)
        for path in proposal.files.skipped:
            page.blank()
            page.text([(f"{visible(path.name)} has the name and cannot be edited", "")], [("! ", "warning")])

    def action_confirm(self) -> None:
        if self._proposal is None or self._proposal.problem:
            return
        if rename_everywhere(self._workbench.editing, self._proposal):
            self.dismiss(True)
        else:
            self._propose()
