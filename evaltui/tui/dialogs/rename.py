"""The dialog that renames a tool, an argument or an agent everywhere: the places, before it is done."""

from __future__ import annotations

from textual.app import ComposeResult

from evaltui.core.model.renaming import Renaming
from evaltui.project.folders import is_recording
from evaltui.text.figures import counted
from evaltui.text.values import visible
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
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.case.renaming import RenameProposal, propose_renaming, rename_everywhere
from evaltui.workbench.workbench import Workbench

_HINTS = (Hint("confirm", "rename"), CANCEL)
# Blank rows and keys.
_OTHER_ROWS = 3


class RenameScreen(FormScreen[bool]):
    """Shows every place of a name, returns True once it was renamed; nothing changes before `enter`."""

    box = "#rename"
    AUTO_FOCUS = "DialogPage"

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
            yield DialogKeys(lambda: _HINTS)

    def on_mount(self) -> None:
        self._propose()

    def on_resize(self) -> None:
        self.query_one(DialogPage).write_page()

    def fields(self) -> list[DialogPage]:
        return [self.query_one(DialogPage)]

    def _propose(self) -> None:
        self._proposal = None
        self.run_worker(self._work_out(), group="propose", exclusive=True)

    async def _work_out(self) -> None:
        self._proposal = await propose_renaming(self._workbench.editing, self._renaming)
        if self.is_here:
            self.query_one(DialogPage).show(self._write_proposal)

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
