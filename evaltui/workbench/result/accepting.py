"""Accepting the agent's behaviour as expected, and renaming: proposed changes of files, and applying them.

Only changes that were shown are applied, all as one step for undo.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation, answer_text
from evaltui.core.model.json_values import value_at
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.renaming import Renaming
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.editing.accepting import Accepting
from evaltui.documents.editing.json_paths import cases_path, eval_ids
from evaltui.documents.editing.set import CaseEditor, SetEditor
from evaltui.documents.edits import EditError
from evaltui.documents.line_changes import LineChange, changed_lines
from evaltui.documents.problems import check_new_cases
from evaltui.documents.values import all_or_nothing, edits_of
from evaltui.project.folders import is_recording
from evaltui.runner.recording_files import recordings_of
from evaltui.runner.renaming import RenamedFiles, rename_in_files
from evaltui.text.figures import counted, short_list, show_number
from evaltui.text.keys import key_of
from evaltui.workbench.agent.background import Progress, run_in_thread
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.result.acceptable import Choice, refuses_outcome, refuses_unread
from evaltui.workbench.result.freshness import State
from evaltui.workbench.result.rescoring import actual_of, score_again
from evaltui.workbench.state import CaseOutcome

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult
    from evaltui.documents.case_file import CaseFile
    from evaltui.workbench.workbench import Workbench

_MAX_NAMES = 3


@dataclass(frozen=True)
class FileChange:
    """The proposed change of a file."""

    path: Path
    cases: int
    """The number of its changed cases."""
    lines: tuple[LineChange, ...]
    """The removed and added lines."""
    before: CaseFile
    after: CaseFile


@dataclass(frozen=True)
class Proposal:
    """The proposed changes for accepting."""

    choice: Choice
    changes: tuple[FileChange, ...] = ()
    remarks: tuple[str, ...] = ()
    """Remarks to read before accepting, each a sentence."""
    problem: str = ""
    """Why accepting is impossible, as a sentence."""


@dataclass(frozen=True)
class _Case:
    """A case with its result."""

    id: CaseId
    file: Path
    number: int
    """Its index in the set."""
    document: CaseFile
    """The current set."""
    scored: CaseOutcome
    changed: tuple[str, ...] = ()
    """The changes after its run; `case` where the input for the agent has changed."""


async def propose(editing: Editing, choice: Choice, progress: Progress | None = None) -> Proposal:
    """Reads the agent's behaviour, and computes the changes of accepting it; no file is changed yet.

    `progress` counts the cases.
    """
    cases: list[_Case] = []
    left_out: list[str] = []
    documents: dict[Path, CaseFile] = {}
    numbers: dict[Path, dict[str, int]] = {}
    for path in {case.path for case in choice.cases}:
        file = editing.sets.file_of(path)
        # Those that cannot be edited, or read any more, are told of below.
        if editing.refuses_to_edit(file) is None:
            with suppress(EvalSetError, OSError):
                editing.document(file)
    await editing.merge_outside_changes()
    await editing.outcomes.compare_files()
    for case in choice.cases:
        scored = editing.outcomes.get(case)
        if (reason := refuses_unread(editing, case)) or scored is None:
            left_out.append(reason or "not run")
            continue
        file = editing.sets.file_of(case.path)
        if file not in documents:
            try:
                documents[file] = document = editing.document(file)
            except (EvalSetError, OSError) as error:
                left_out.append(str(error))
                continue
            numbers[file] = {eval_id: number for number, eval_id in enumerate(eval_ids(document.value))}
        if (number := numbers[file].get(case.eval_id)) is not None:
            now, is_other = editing.outcomes.freshness(case), editing.outcomes.has_other_input(case, scored)
            reasons = now.reasons if now is not None and now.state is not State.RESCORED else ()
            reasons = tuple(reason for reason in reasons if reason != "case" or is_other)
            cases.append(_Case(case, file, number, documents[file], scored, reasons))
        else:
            left_out.append(f"{case.eval_id} is no longer in {file.name}")
    progress = progress or Progress()
    progress.total = len(cases)
    return await run_in_thread(lambda: _propose(editing, choice, cases, left_out, progress), progress)


async def effects(
    workbench: Workbench, proposal: Proposal, most: int
) -> AsyncIterator[tuple[CaseResult, CaseResult]]:
    """The results of the first cases before and after the changes, scored on the last run; no agent is
    called."""

    editing = workbench.editing
    after = {change.path: change.after.value for change in proposal.changes}
    for case in proposal.choice.cases[:most]:
        data, scored = after.get(editing.sets.file_of(case.path)), editing.outcomes.get(case)
        if data is None or scored is None:
            continue
        events = await asyncio.to_thread(editing.outcomes.events_of, case)
        if events is None or case.eval_id not in (ids := eval_ids(data)):
            continue
        stored = StoredCase.of_data(value_at(data, (*cases_path(data), ids.index(case.eval_id))))
        new = await score_again(scored, actual_of(events), stored, scored.config, workbench.agent.secrets)
        yield scored.result, new.result


def accept(editing: Editing, proposal: Proposal) -> bool:
    """Applies the proposed changes; False, with a message, where the files have changed since."""
    changes = proposal.changes
    if not still_hold(editing, changes):
        editing.say("File changed on disk; review the new diff")
        return False
    if not editing.do_edits(proposal.choice.label, {change.path: change.after for change in changes}):
        return False
    if len(proposal.choice.cases) > 1:
        editing.navigation.clear_marks()
    editing.say(f"{proposal.choice.label.replace('accept', 'Accepted', 1)}   {key_of('undo')} undo")
    return True


def still_hold(editing: Editing, changes: Sequence[FileChange]) -> bool:
    """Whether every file is as it was when the changes were proposed."""
    try:
        return all(editing.whole(change.path).has_text_of(change.before) for change in changes)
    except (OSError, EvalSetError):
        return False


def _propose(
    editing: Editing,
    choice: Choice,
    cases: Sequence[_Case],
    left_out: list[str],
    progress: Progress,
) -> Proposal:
    """In a thread: reads logs, and changes nothing."""
    by_file: dict[Path, list[_Case]] = {}
    for case in cases:
        by_file.setdefault(case.file, []).append(case)
    accepted: Counter[Path] = Counter()
    remarks: list[str] = []

    def with_accepted(document: CaseFile, some: Sequence[_Case]) -> CaseFile:
        eval_set = SetEditor.copied(document.value)
        for case in some:
            progress.step()
            if reason := refuses_outcome(case.scored):
                left_out.append(reason)
                continue
            try:
                actual = _actual_turns(editing, case)
                with all_or_nothing(eval_set.data, (*eval_set.path, case.number)):
                    _accept(choice, case, editor := eval_set.case(case.number), actual)
            except ValueError as error:
                left_out.append(str(error))
                continue
            if edits_of(editor.value):
                accepted[case.file] += 1
                remarks.extend(_remarks(choice, case, editor, actual))
        return document.edited(edits_of(eval_set.data))

    try:
        changes = [
            FileChange(path, accepted[path], changed_lines(before, after), before, after)
            for path, some in by_file.items()
            if (after := with_accepted(before := some[0].document, some)) and accepted[path]
        ]
    except EditError as error:
        return Proposal(choice, problem=str(error))
    if not changes:
        return Proposal(choice, problem=left_out[0] if left_out else "No changes")
    for change in changes:
        check_new_cases(change.after, change.before.cases)
    if left_out:
        remarks.append(
            f"{show_number(len(left_out))} of {counted(len(choice.cases), 'case')} left out: {left_out[0]}"
        )
    return Proposal(choice, tuple(changes), tuple(dict.fromkeys(remarks)))


def _actual_turns(editing: Editing, case: _Case) -> list[Invocation]:
    """The actual turns of the shown repeat of a case."""

    events = editing.outcomes.events_of(case.id)
    if events is None:
        raise EditError("Run log unreadable; run again")
    actual = invocations_from_events(events.get(case.scored.repeat, ()))
    scores_outputs = case.scored.config.evaltui.outputs == "score"
    return [turn.with_output for turn in actual] if scores_outputs else actual


def _accept(choice: Choice, case: _Case, editor: CaseEditor, actual: Sequence[Invocation]) -> None:
    # It builds on the models.

    result = case.scored.shown
    accepting = Accepting(editor, thoughts=case.scored.config.evaltui.thoughts == "score")
    final_state = result.repeats[case.scored.repeat].final_state
    if choice.what == "case":
        accepting.case(result.turns, actual, final_state)
        return
    if choice.what == "state":
        accepting.state(choice.path, final_state or {})
        return
    turn = choice.turn
    if turn >= min(len(actual), len(result.turns)):
        raise EditError(
            f"Turn {turn + 1} was not reached in {case.scored.run.name}   {key_of('run')}  Run case"
        )
    scored, invocation = result.turns[turn], actual[turn]
    match choice.what:
        case "argument":
            accepting.argument(turn, scored.calls, choice.row, choice.path)
        case "call":
            accepting.call(turn, scored.calls, choice.row, invocation)
        case "calls":
            accepting.calls(turn, scored.calls, invocation)
        case "text":
            accepting.text(turn, scored.intermediate, choice.row, invocation)
        case "texts":
            accepting.texts(turn, scored.intermediate, invocation)
        case "answer":
            accepting.answer(turn, invocation)
        case "turn":
            accepting.turn(turn, scored, invocation)


def _remarks(choice: Choice, case: _Case, editor: CaseEditor, actual: Sequence[Invocation]) -> Iterator[str]:
    """Reasons against accepting this run as expected."""

    run, result = case.scored.run.name, case.scored.shown
    which = f"{case.id.eval_id}: " if len(choice.cases) > 1 else ""
    changed = [reason for reason in case.changed if reason != "case"]
    if changed:
        yield f"{short_list(changed, _MAX_NAMES)} changed after {run}   {key_of('run')}  Run case"
    if len(result.repeats) > 1:
        number = case.scored.repeat + 1
        passed = f"{result.passed_repeats} of {counted(len(result.repeats), 'repeat')} passed"
        yield f"{which}{passed}; accepting run {number}"
    turns = range(editor.turn_count) if choice.what == "case" else [choice.turn]
    is_said = False
    for turn in turns if choice.what != "state" else ():
        if turn >= len(actual):
            yield f"{which}turn {turn + 1} was not reached in {run}; it stays unchanged"
            continue
        message = "\n".join(part.text for part in editor.turn(turn).user.texts if part.text)
        if message != answer_text(actual[turn].user_content.parts):
            is_said = True
            what = f"{which}the user message of turn {turn + 1}"
            yield f"{what} changed after {run}   {key_of('run')}  Run case"
    if "case" in case.changed and not is_said:
        yield f"{which}what the case gives the agent changed after {run}   {key_of('run')}  Run case"
    if case.scored.config.evaltui.thoughts == "score" and choice.what in ("answer", "turn", "case"):
        yield "thoughts are scored, but not accepted as expected text"


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
