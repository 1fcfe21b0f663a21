"""`evaltui import`: conversations in recorded traces as cases of an eval set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.commands.output import UsageError, complain, write_lines, write_stderr
from evaltui.commands.recorded import some_conversations
from evaltui.commands.target_set import add_to_set, find_set, never_passes_in, require_free
from evaltui.core.conversation.drafting import (
    CaseDraft,
    TurnDraft,
    draft_case,
    propose_eval_id,
    without_secrets,
)
from evaltui.core.conversation.twins import Twin, twin_of
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Json
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.secrets import Secrets
from evaltui.files.configs import scores_outputs
from evaltui.files.eval_set_file import read_eval_set_file
from evaltui.files.settings import secrets_of
from evaltui.text.figures import counted, some_of
from evaltui.text.lines import Line
from evaltui.text.values import cut, did_you_mean, visible
from evaltui.traces.conversations import RecordedConversation
from evaltui.traces.drafting import chosen_turns, turn_events, unusable
from evaltui.traces.found import FoundConversation, FoundConversations
from evaltui.traces.missing import not_expected

_LONGEST_USER = 60


@dataclass(frozen=True)
class _Imported:
    """A case that is made of a conversation."""

    draft: CaseDraft
    conversation: FoundConversation
    turns: Sequence[int]
    """Places of its turns in the conversation."""
    notes: Sequence[str]
    """What of the conversation is not in the case."""

    @property
    def case(self) -> Json:
        return self.draft.case


def import_traces(options: argparse.Namespace) -> int:
    """Add the cases and print what they are; 2 where nothing is added."""
    try:
        path = find_set(options.agent_dir, options.into)
        with some_conversations(options.traces) as read:
            imported, already = _cases(options, _chosen(options, read), path)
        if not imported:
            raise UsageError("\n".join(already))
        if path.exists():
            require_free(path, [one.case["eval_id"] for one in imported])
        marked = None if options.dry_run else add_to_set(path, [one.draft for one in imported])
    except (UsageError, EvalSetError) as error:
        return complain("import", error)
    write_stderr(*(f"evaltui import: {visible(one)}" for one in (*read.warnings, *already)))
    write_lines(_lines(path, imported, marked, written=not options.dry_run))
    if not options.dry_run:
        for one in imported:
            if reason := never_passes_in(path, one.draft):
                write_stderr(f"evaltui import: case {visible(one.case['eval_id'])} {reason}")
    return 0


def _chosen(options: argparse.Namespace, read: FoundConversations) -> Sequence[FoundConversation]:
    known = {one.id: one for one in read.conversations}
    for wanted in options.conversation:
        if wanted not in known:
            hint = did_you_mean(wanted, known) or f"; there are {some_of(list(known))}"
            raise UsageError(f"--conversation: no conversation {wanted!r}{hint}")
    found = [known[one] for one in dict.fromkeys(options.conversation)] or list(read.conversations)
    for option, value in (("--case", options.case), ("--turns", options.turns)):
        if value is not None and len(found) > 1:
            raise UsageError(
                f"{option} is for one conversation, there are {len(found)}; choose one with --conversation ID"
            )
    return found


def _cases(
    options: argparse.Namespace, chosen: Sequence[FoundConversation], path: Path
) -> tuple[list[_Imported], list[str]]:
    """The cases to add, and of each conversation that the set has already a sentence."""
    secrets = secrets_of(options.agent_dir)
    known = list(read_eval_set_file(path, "given", path.parent).cases) if path.exists() else []
    imported: list[_Imported] = []
    already: list[str] = []
    for one in chosen:
        conversation = one.read()
        turns, notes = _turns(conversation, options.turns)
        named = options.case or conversation.named_case
        taken = [case.eval_id for case in known]
        # The same case may be held several times.
        fresh = {other.case["eval_id"] for other in imported}
        eval_id = named if named and named not in fresh else ""
        eval_id = eval_id or propose_eval_id(named or conversation.turns[turns[0]].user, taken)
        draft = _draft(conversation, turns, eval_id, secrets, outputs=scores_outputs(path))
        twin = twin_of(draft.case, known)
        if twin is not None and twin.is_same and (eval_id != named or twin.eval_id == named):
            already.append(_already(conversation, twin, path))
            continue
        known.append(StoredCase.of_data(draft.case))
        imported.append(_Imported(draft, one, turns, [*notes, *_alike(twin)]))
    return imported, already


def _already(conversation: RecordedConversation, twin: Twin, path: Path) -> str:
    return (
        f"conversation {conversation.id} left out: {path} has it as case {twin.eval_id}; "
        "--conversation with --case adds it again"
    )


def _alike(twin: Twin | None) -> Iterator[str]:
    if twin is not None:
        same = "the same turns" if twin.is_same else "the same messages of the user"
        yield f"case {twin.eval_id} has {same}: `evaltui score` tells them apart only by the id of the case"


def _turns(conversation: RecordedConversation, wanted: str | None) -> tuple[Sequence[int], list[str]]:
    """The places of the turns that become the case, and what is left out. Raises UsageError."""
    every = range(len(conversation.turns))
    try:
        asked = every if wanted is None else chosen_turns(wanted, len(every))
    except ValueError as error:
        raise UsageError(f"--turns: {error}") from error
    why = {number: unusable(conversation.turns[number]) for number in asked}
    notes = [f"turn {number + 1} left out: {reason}" for number, reason in why.items() if reason]
    turns = [number for number in asked if not why[number]]
    if notes and (wanted is not None or not turns):
        raise UsageError(f"conversation {visible(conversation.id)}: {notes[0].replace(' left out', '', 1)}")
    notes += [
        f"turn {number + 1}: {gap}"
        for number in turns
        for gap in (*not_expected(conversation.turns[number]), *conversation.turns[number].remarks)
    ]
    return turns, notes


def _draft(
    conversation: RecordedConversation,
    turns: Sequence[int],
    eval_id: str,
    secrets: Secrets,
    *,
    outputs: bool,
) -> CaseDraft:
    drafts = [TurnDraft(turn_events(conversation, number)) for number in turns]
    try:
        draft = draft_case(eval_id, drafts, app_name="", user_id="", state={}, outputs=outputs)
        draft = replace(draft, case=without_secrets(draft.case, secrets))
        EvalCase.model_validate(draft.case)
    except ValueError as error:
        raise UsageError(f"conversation {conversation.id}: a case cannot hold this: {error}") from error
    return draft


def _lines(
    path: Path, imported: Sequence[_Imported], marked: Path | None, *, written: bool
) -> Iterator[Line]:
    done = "added" if written else "would be added; no file changed"
    yield [(f"{visible(str(path))}: {counted(len(imported), 'case')} {done}", "bold")]
    for one in imported:
        about = f"  {counted(len(one.turns), 'turn')} of conversation {visible(one.conversation.id)}"
        yield [("  ", ""), (visible(one.case["eval_id"]), "bold"), (about, "muted")]
        for number, turn in zip(one.turns, one.case["conversation"], strict=True):
            user = visible(cut(" ".join(one.conversation.messages[number].split()), _LONGEST_USER))
            yield [(f"    {number + 1}  ", "muted"), (user, ""), *_calls(turn)]
        yield from ([("    note  ", "warning"), (visible(note), "")] for note in one.notes)
    if marked is not None:
        turns = counted(sum(len(one.draft.marks) for one in imported), "turn")
        yield [(f"{visible(str(marked))}: calls of {turns} not checked", "bold")]


def _calls(turn: Json) -> Line:
    events = turn.get("intermediate_data", {}).get("invocation_events", ())
    parts = [part for event in events for part in event["content"]["parts"]]
    names = [visible(part["function_call"]["name"]) for part in parts if "function_call" in part]
    return [(f"   → {some_of(names)}", "muted")] if names else []
