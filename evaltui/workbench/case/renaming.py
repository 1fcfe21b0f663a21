"""A tool, an argument or an agent renamed in every set, config and recording of the agent, as one step."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.renaming import Renaming
from evaltui.documents.line_changes import changed_lines
from evaltui.project.folders import is_recording
from evaltui.runner.recording_files import recordings_of
from evaltui.runner.renaming import RenamedFiles, rename_in_files
from evaltui.text.keys import key_of
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.result.accepting import FileChange, still_hold

if TYPE_CHECKING:
    from evaltui.documents.case_file import CaseFile


@dataclass(frozen=True)
class RenameProposal:
    """The files as a renaming would make them."""

    renaming: Renaming
    files: RenamedFiles = field(default_factory=RenamedFiles)
    changes: tuple[FileChange, ...] = ()
    """The changed lines of each file; none of recordings, whose lines are long."""
    problem: str = ""
    """Why the name cannot be changed, as a sentence."""


async def propose_renaming(editing: Editing, renaming: Renaming) -> RenameProposal:
    """Works out what a renaming would change; nothing is changed yet."""
    try:
        documents = await _documents(editing)
        files = await asyncio.to_thread(rename_in_files, renaming, documents)
        changes = await asyncio.to_thread(_changes, files)
    except (OSError, EvalSetError) as error:
        return RenameProposal(renaming, problem=str(error).partition("\n")[0])
    problem = "" if files.files else f"No {renaming.what} {renaming.full_name} in the eval sets"
    return RenameProposal(renaming, files, changes, problem)


def rename_everywhere(editing: Editing, proposal: RenameProposal) -> bool:
    """Does what was proposed; False where it cannot be done any more, which is said."""
    if not still_hold(editing, proposal.changes):
        editing.say("File changed on disk; review the new diff")
        return False
    renaming = proposal.renaming
    edits = {change.path: change.after for change in proposal.changes}
    if not editing.do_edits(f"rename {renaming.words}", edits):
        return False
    counts = proposal.files.counts
    editing.say(f"Renamed {renaming.full_name} to {renaming.new}: {counts}   {key_of('undo')} undo")
    return True


async def _documents(editing: Editing) -> dict[Path, CaseFile]:
    """The sets that can be edited, with their configs and recordings. Raises OSError, EvalSetError."""
    sets = [
        eval_set.path for eval_set in editing.sets.listed if editing.refuses_to_edit(eval_set.path) is None
    ]
    configs = [path for path in map(editing.sets.config_path, sets) if editing.is_there(path)]
    recordings = await asyncio.to_thread(lambda: [file for path in sets for file in recordings_of(path)])
    return {path: editing.whole(path) for path in (*sets, *configs, *recordings)}


def _changes(files: RenamedFiles) -> tuple[FileChange, ...]:
    return tuple(
        FileChange(
            file.path,
            1,
            () if is_recording(file.path) else changed_lines(file.before, file.after),
            file.before,
            file.after,
        )
        for file in files.files
    )
