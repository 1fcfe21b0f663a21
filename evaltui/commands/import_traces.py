"""`evaltui import`: conversations in recorded traces and sessions, and scenarios, as cases of an eval set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from evaltui.commands.exit_codes import NOT_WRITTEN
from evaltui.commands.output import UsageError, write_lines, write_stderr
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
from evaltui.core.model.json_values import field_of
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.secrets import Secrets
from evaltui.project.configs import scores_outputs
from evaltui.project.eval_set_file import read_eval_set_file
from evaltui.project.settings import secrets_of
from evaltui.project.workspace import open_workspace
from evaltui.text.figures import counted, short_list
from evaltui.text.lines import Line
from evaltui.text.values import cut, did_you_mean, visible
from evaltui.traces.conversations import Conversations, RecordedConversation, RecordedSession
from evaltui.traces.drafting import (
    chosen_turns,
    not_expected,
    shown_message,
    turn_events,
    unknown_state,
    unusable,
)

_MAX_USER_LENGTH = 60


@dataclass(frozen=True)
class _Imported:
    """A case that is made of a conversation, or of a scenario."""

    draft: CaseDraft
    source: str
    """Its origin in a few words."""
    messages: Sequence[tuple[int, str]]
    """The user's messages with their numbers in the conversation."""
    notes: Sequence[str]
    """Remarks on parts of the conversation that are not in the case."""

    @property
    def case(self) -> Json:
        return self.draft.case


def import_traces(options: argparse.Namespace) -> int:
    """Adds the cases and prints them; returns the exit code."""
    path = find_set(options.agent_dir, options.into)
    read = some_conversations(options.traces)
    cases, already = _cases(options, read, path)
    if not cases:
        raise UsageError("\n".join(already))
    if path.exists():
        require_free(path, [case.case["eval_id"] for case in cases])
    left_out = [*read.warnings, *already, *(note for case in cases for note in case.notes)]
    is_refused = options.strict and bool(left_out)
    is_written = not options.dry_run and not is_refused
    marked = add_to_set(path, [case.draft for case in cases]) if is_written else None
    write_stderr(*(f"evaltui import: {visible(warning)}" for warning in (*read.warnings, *already)))
    write_lines(_lines(path, cases, marked, written=is_written))
    if is_refused:
        write_stderr(f"evaltui import: nothing added: {counted(len(left_out), 'part')} not taken (--strict)")
        return NOT_WRITTEN
    if is_written:
        for case in cases:
            if reason := never_passes_in(path, case.draft):
                write_stderr(f"evaltui import: case {visible(case.case['eval_id'])} {reason}")
    return 0


def _chosen(options: argparse.Namespace, read: Conversations) -> Sequence[RecordedConversation]:
    by_id = {conversation.id: conversation for conversation in read.conversations}
    for conversation_id in options.conversation:
        if conversation_id not in by_id:
            hint = did_you_mean(conversation_id, by_id) or f"; there are {short_list(list(by_id))}"
            raise UsageError(f"--conversation: no conversation {conversation_id!r}{hint}")
    ids = dict.fromkeys(options.conversation)
    chosen = [by_id[conversation_id] for conversation_id in ids] or list(read.conversations)
    count = len(chosen) + len(_scenarios(options, read))
    for option, value in (("--case", options.case), ("--turns", options.turns)):
        if value is not None and count > 1:
            raise UsageError(
                f"{option} is for one conversation, there are {count}; choose one with --conversation ID"
            )
    return chosen


def _scenarios(options: argparse.Namespace, read: Conversations) -> Sequence[Json]:
    return () if options.conversation else read.scenarios


def _cases(options: argparse.Namespace, read: Conversations, path: Path) -> tuple[list[_Imported], list[str]]:
    """The cases to add, and a sentence for each conversation that is left out."""
    secrets = secrets_of(options.agent_dir)
    stored = list(read_eval_set_file(path, "given", path.parent).cases) if path.exists() else []
    others = chain.from_iterable(eval_set.cases for eval_set in open_workspace(options.agent_dir).sets)
    has_states = any(field_of(field_of(case.data(), "session_input"), "state") for case in (*stored, *others))
    imported: list[_Imported] = []
    already: list[str] = []
    for conversation in _chosen(options, read):
        turns, notes = _turns(conversation, options.turns)
        if not turns:
            why = notes[0].replace(" left out", "", 1)
            already.append(f"conversation {conversation.id} left out: {why}")
            continue
        if has_states and conversation.session_before(turns[0]) is None:
            notes.append("initial state not in the trace: add it to the case if the session had one")
        named = options.case or conversation.named_case
        stored_ids = [case.eval_id for case in stored]
        # The same case may be held several times.
        fresh = {other.case["eval_id"] for other in imported}
        eval_id = named if named and named not in fresh else ""
        eval_id = eval_id or propose_eval_id(named or conversation.turns[turns[0]].user, stored_ids)
        draft = _draft(conversation, turns, eval_id, secrets, outputs=scores_outputs(path))
        twin = twin_of(draft.case, stored)
        if twin is not None and twin.is_same and (eval_id != named or twin.eval_id == named):
            already.append(
                f"conversation {conversation.id} left out: {path} has it as case {twin.eval_id}; "
                "--conversation with --case adds it again"
            )
            continue
        stored.append(StoredCase.of_data(draft.case))
        source = f"{counted(len(turns), 'turn')} of conversation {visible(conversation.id)}"
        messages = [(number, shown_message(conversation.turns[number])) for number in turns]
        imported.append(_Imported(draft, source, messages, [*notes, *_alike(twin)]))
    for scenario in _scenarios(options, read):
        prompt = scenario["starting_prompt"]
        eval_id = options.case or propose_eval_id(prompt, [case.eval_id for case in stored])
        draft = CaseDraft({"eval_id": eval_id, "conversation_scenario": scenario}, {})
        twin = twin_of(draft.case, stored)
        if twin is not None and twin.is_same:
            already.append(f"scenario {prompt!r} left out: {path} has it as case {twin.eval_id}")
            continue
        stored.append(StoredCase.of_data(draft.case))
        imported.append(_Imported(draft, "scenario", [(0, prompt)], []))
    return imported, already


def _alike(twin: Twin | None) -> Iterator[str]:
    if twin is not None:
        same = "the same turns" if twin.is_same else "the same messages of the user"
        yield f"case {twin.eval_id} has {same}: `evaltui score` tells them apart only by the id of the case"


def _turns(conversation: RecordedConversation, text: str | None) -> tuple[Sequence[int], list[str]]:
    """The indexes of the turns that become the case, and notes on what is left out. Raises UsageError where
    a turn that was chosen cannot."""
    every = range(len(conversation.turns))
    try:
        numbers = every if text is None else chosen_turns(text, len(every))
    except ValueError as error:
        raise UsageError(f"--turns: {error}") from error
    why = {number: unusable(conversation.turns[number]) for number in numbers}
    notes = [f"turn {number + 1} left out: {reason}" for number, reason in why.items() if reason]
    turns = [number for number in numbers if not why[number]]
    if notes and text is not None:
        raise UsageError(f"conversation {visible(conversation.id)}: {notes[0].replace(' left out', '', 1)}")
    notes += [
        f"turn {number + 1}: {gap}"
        for number in turns
        for gap in (*not_expected(conversation.turns[number]), *conversation.turns[number].remarks)
    ]
    if turns and (session := conversation.session_before(turns[0])) is not None:
        notes += unknown_state(session)
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
    session = conversation.session_before(turns[0]) or RecordedSession("", "", {})
    try:
        draft = draft_case(
            eval_id,
            drafts,
            app_name=session.app_name,
            user_id=session.user_id,
            state=session.state,
            outputs=outputs,
        )
        draft = replace(draft, case=without_secrets(draft.case, secrets))
        EvalCase.model_validate(draft.case)
    except ValueError as error:
        raise UsageError(f"conversation {conversation.id}: a case cannot hold this: {error}") from error
    return draft


def _lines(path: Path, cases: Sequence[_Imported], marked: Path | None, *, written: bool) -> Iterator[Line]:
    done = "added" if written else "would be added; no file changed"
    yield [(f"{visible(str(path))}: {counted(len(cases), 'case')} {done}", "bold")]
    for case in cases:
        yield [("  ", ""), (visible(case.case["eval_id"]), "bold"), (f"  {case.source}", "muted")]
        turns = case.case.get("conversation") or [{}]
        for (number, message), turn in zip(case.messages, turns, strict=True):
            user = visible(cut(" ".join(message.split()), _MAX_USER_LENGTH))
            yield [(f"    {number + 1}  ", "muted"), (user, ""), *_calls(turn)]
        yield from ([("    note  ", "warning"), (visible(note), "")] for note in case.notes)
    if marked is not None:
        marks = counted(sum(len(case.draft.marks) for case in cases), "turn")
        yield [(f"{visible(str(marked))}: calls of {marks} not checked", "bold")]


def _calls(turn: Json) -> Line:
    events = turn.get("intermediate_data", {}).get("invocation_events", ())
    parts = [part for event in events for part in event["content"]["parts"]]
    names = [visible(part["function_call"]["name"]) for part in parts if "function_call" in part]
    return [(f"   → {short_list(names)}", "muted")] if names else []
