"""Scoring recorded conversations instead of running an agent: pairing them with cases."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase, full_text
from evaltui.core.model.events import ANSWERS, USER_MESSAGE, Event, Json, text_content
from evaltui.core.model.json_values import ABSENT
from evaltui.project.folders import agent_folder, case_path, file_of
from evaltui.runner.plan import HeldConversation, HeldConversations, HeldElsewhere, SetPlan
from evaltui.runs.resuming import ResumeError, Resumption
from evaltui.runs.run_header import RunHeader
from evaltui.runs.shards import ShardsOfRun
from evaltui.text.figures import counted, plural, short_list, show_number
from evaltui.text.values import cut, visible

if TYPE_CHECKING:
    from evaltui.traces.conversations import RecordedConversation
    from evaltui.traces.pairing import Pairing, Unpaired

# What SQLite has written beside a database, and not yet into it.
_WAL_SUFFIX = "-wal"


def trace_files(agent_dir: Path, files: Iterable[Path]) -> dict[str, str]:
    """The files relative to the agent's folder, with the SHA-256 of their content.

    A SQLite file includes its write-ahead log; "" for a file that can be read only once, such as a pipe.
    """
    return {case_path(agent_dir, file): _digest(file) for file in files}


def files_to_resume(agent_dir: Path, header: RunHeader) -> list[Path]:
    """The trace files that a run scored. Raises ResumeError where their content has changed."""
    before = header.trace_files
    if not before:
        raise ResumeError("the run log does not say which files were scored", differs=True)
    if once := [path for path, digest in before.items() if not digest]:
        raise ResumeError(f"{short_list(once)} can be read only once", differs=True)
    files = [file_of(agent_dir, path) for path in before]
    if gone := [path for path, file in zip(before, files, strict=True) if not file.is_file()]:
        where = f"not found in {agent_folder(agent_dir)}"
        raise ResumeError(f"{short_list(gone)} {where}", differs=True)
    digests = map(_digest, files)
    if changed := [path for path, now in zip(before, digests, strict=True) if now != before[path]]:
        raise ResumeError(f"{short_list(changed)} changed", differs=True)
    return files


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        for path in (file, file.with_name(file.name + _WAL_SUFFIX)):
            if path.is_file():
                with path.open("rb") as opened:
                    hashlib.file_digest(opened, lambda: digest)
        return digest.hexdigest() if file.is_file() else ""
    except OSError:
        # Who reads it says why it cannot be read.
        return ""


_MAX_MESSAGE_LENGTH = 60
_MAX_NAMED = 20


@dataclass(frozen=True)
class TracesToScore:
    """Conversations to score, and how they are paired with cases."""

    conversations: tuple[RecordedConversation, ...]
    files: tuple[str, ...]
    """The sources of the conversations, as the user named them."""
    case_from: str = ""
    """The attribute that names the case of a conversation; "" for the usual ones."""
    only_paired: bool = False
    """Whether cases without a conversation are left out."""
    warnings: tuple[str, ...] = ()
    """Sentences about records that were skipped."""
    lost: tuple[str, ...] = ()
    """The warnings about missing records."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The source files with their SHA-256; see `trace_files`."""


@dataclass(frozen=True)
class PairedTraces:
    """Conversations paired with cases."""

    held: HeldConversations
    notes: tuple[str, ...]
    unpaired: int
    """Number of conversations without a case."""


def pair_traces(
    traces: TracesToScore,
    sets: Sequence[SetPlan],
    selected: Collection[CaseId],
    shards: ShardsOfRun | None = None,
) -> PairedTraces:
    """Pairs conversations with the cases of `sets`, which have all of their cases.

    `selected` are the cases to score, in `shards` if they were divided.
    """
    # Runs of agents do without what reads traces.
    from evaltui.traces.pairing import CaseToPair, pair

    cases: dict[CaseId, EvalCase] = {}
    for plan in sets:
        for number, case in enumerate(plan.case_ids):
            cases[case] = plan.cases[number]
    names = {plan.case_path: plan.eval_set_id for plan in sets}
    to_pair = [CaseToPair(case, names[case.path], messages_of(model)) for case, model in cases.items()]
    pairing = pair(to_pair, traces.conversations, traces.case_from)
    count = len(selected) if shards is None else shards.case_count
    remark = _pair_single(pairing, traces, selected) if count == 1 else ()
    held = {
        case: [
            HeldElsewhere(plan.id, partial(_hold_conversation, cases[case], plan)) for plan in conversations
        ]
        for case, conversations in pairing.pairs.items()
    }
    notes = (*remark, *_notes(traces, pairing, selected), *_state_notes(pairing, cases, selected))
    return PairedTraces(held, notes, len(pairing.unpaired))


def _state_notes(
    pairing: Pairing, cases: Mapping[CaseId, EvalCase], selected: Collection[CaseId]
) -> Iterator[str]:
    """A sentence for each case of which a conversation began with another session state, as far as it is
    known."""
    for case, conversations in pairing.pairs.items():
        keys = dict.fromkeys(key for some in conversations for key in _other_state(cases[case], some))
        if keys and case in selected:
            yield (
                f"{case.eval_id}: a conversation began with another initial state than the case "
                f"({visible(short_list(list(keys)))}), which may be why it differs"
            )


def _other_state(case: EvalCase, conversation: RecordedConversation) -> list[str]:
    """The keys of the initial state whose values differ."""
    session = conversation.session
    if session is None:
        return []
    state = case.session_input.state if case.session_input else {}
    unknown = {*session.unknown, *session.shared}
    return [
        key
        for key in {**state, **session.state}
        if key not in unknown and state.get(key, ABSENT) != session.state.get(key, ABSENT)
    ]


def _pair_single(pairing: Pairing, traces: TracesToScore, selected: Collection[CaseId]) -> tuple[str, ...]:
    """Pairs a single conversation with a single case; turns with other messages are not evaluated."""
    if len(traces.conversations) != 1 or len(selected) != 1 or not pairing.unpaired:
        return ()
    (alone,), (case,) = pairing.unpaired, selected
    if alone.conversation.named_case or alone.reason.startswith("several"):
        return ()
    turns = alone.conversation.turns
    if any(USER_MESSAGE in turn.untold and ANSWERS not in turn.untold for turn in turns):
        # Content is recorded, and the response may be that to anything.
        return ()
    pairing.unpaired.clear()
    pairing.pairs[case] = [alone.conversation]
    return (f"paired as the only ones: conversation {visible(alone.conversation.id)}, case {case.eval_id}",)


def messages_of(case: EvalCase) -> tuple[str, ...]:
    """The user messages of a case, by turn; for a simulated user, the first one only."""
    if case.conversation is None:
        return (case.conversation_scenario.starting_prompt,) if case.conversation_scenario else ()
    return tuple(full_text(turn.user_content) for turn in case.conversation)


def _user_contents(case: EvalCase) -> list[Json]:
    """The contents that the user of a case sends, by turn, with attachments."""
    if case.conversation is None:
        return [text_content("user", text) for text in messages_of(case)]
    return [turn.user_content.model_dump(mode="json", exclude_none=True) for turn in case.conversation]


def _hold_conversation(case: EvalCase, conversation: RecordedConversation) -> HeldConversation:
    from evaltui.traces.pairing import aligned, aligned_events

    events: Sequence[Event] = conversation.events
    places: Sequence[int | None] = range(len(conversation.turns))
    expected = _user_contents(case)
    # What a simulated user says after its first message, nobody knew beforehand.
    if case.conversation is not None or (expected and not aligned(expected, conversation.turns[:1])):
        events, places = aligned_events(expected, conversation)
    ended = next(
        (
            replace(turn.error, turn=place)
            for turn, place in zip(conversation.turns, places, strict=True)
            if turn.error is not None
        ),
        None,
    )
    seconds = sum(turn.seconds for turn in conversation.turns)
    return HeldConversation(tuple(events), ended, seconds, conversation.final_state)


def changed_conversations(
    held: HeldConversations, resumes: Resumption, masked: Callable[[list[str]], list[str]]
) -> Iterator[str]:
    """The cases whose conversations differ from those in the earlier run."""
    for eval_set in resumes.header.sets:
        for eval_id in eval_set.eval_ids:
            case = CaseId(eval_set.path, eval_id)
            now = masked([conversation.id for conversation in held.get(case, ())])
            if resumes.finished.get(case) and list((eval_set.conversations or {}).get(eval_id, ())) != now:
                yield eval_id


def agent_name(traces: TracesToScore) -> str:
    """The agent that speaks first in most conversations; "" where none is named."""
    named = Counter(conversation.agent for conversation in traces.conversations if conversation.agent)
    return named.most_common(1)[0][0] if named else ""


def _notes(traces: TracesToScore, pairing: Pairing, selected: Collection[CaseId]) -> Iterator[str]:
    yield from traces.warnings
    elsewhere = sum(len(some) for case, some in pairing.pairs.items() if case not in selected)
    if elsewhere:
        yield f"{counted(elsewhere, 'conversation')} of cases that are not selected: not scored"
    total = len(traces.conversations)
    if not pairing.unpaired:
        return
    count = len(pairing.unpaired)
    match = plural(count, "matches", "match")
    yield f"{show_number(count)} of {counted(total, 'conversation')} {match} no case:"
    for unpaired in pairing.unpaired[:_MAX_NAMED]:
        yield f"  {_describe_unpaired(unpaired)}"
    if count > _MAX_NAMED:
        yield f"  {counted(count - _MAX_NAMED, 'conversation')} more"


def _describe_unpaired(unpaired: Unpaired) -> str:
    messages = unpaired.conversation.messages
    message = visible(cut(messages[0], _MAX_MESSAGE_LENGTH)) if messages else ""
    nearest = f"nearest case: {unpaired.nearest.eval_id}" if unpaired.nearest else "no case is like it"
    parts = (
        visible(cut(unpaired.conversation.id, _MAX_MESSAGE_LENGTH)),
        f'"{message}"' if message else "",
        unpaired.reason,
        nearest,
    )
    return "  ".join(filter(None, parts))
