"""Recorded conversations in the place of runs: which case each is of, and what is said of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase, full_text
from evaltui.core.model.events import Event, Json
from evaltui.runner.plan import HeldConversation, HeldConversations, HeldElsewhere, SetPlan
from evaltui.runs.resuming import Resumption
from evaltui.runs.shards import ShardsOfRun
from evaltui.text.figures import counted, plural, show_number
from evaltui.text.values import cut, visible

if TYPE_CHECKING:
    from evaltui.traces.found import FoundConversation
    from evaltui.traces.pairing import Pairing, Unpaired

_LONGEST_MESSAGE = 60
_MOST_NAMED = 20


@dataclass(frozen=True)
class TracesToScore:
    """Conversations to be scored, and how they are paired with cases."""

    conversations: tuple[FoundConversation, ...]
    files: tuple[str, ...]
    """Where they are from, as the user named it."""
    case_from: str = ""
    """The attribute that names the case of a conversation; "" for those that are known."""
    only_paired: bool = False
    """Whether selected cases without a conversation are left out."""
    warnings: tuple[str, ...] = ()
    """What was passed over when they were read."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The files that they are from, with the SHA-256 of each: see `trace_files`."""


@dataclass(frozen=True)
class PairedTraces:
    """What comes of pairing them with all cases of the sets."""

    held: HeldConversations
    notes: tuple[str, ...]
    unpaired: int
    """How many conversations no case is for."""


def paired(
    traces: TracesToScore,
    sets: Sequence[SetPlan],
    selected: Collection[CaseId],
    shards: ShardsOfRun | None = None,
) -> PairedTraces:
    """Pairs conversations with the cases of `sets`, which have all of theirs.

    `selected` are those that are scored, of `shards` if the cases were divided before.
    """
    # Runs of agents do without what reads traces.
    from evaltui.traces.pairing import CaseToPair, pair

    cases: dict[CaseId, EvalCase] = {}
    for one in sets:
        for number, case in enumerate(one.case_ids):
            cases[case] = one.cases[number]
    names = {one.case_path: one.eval_set_id for one in sets}
    to_pair = [CaseToPair(case, names[case.path], messages_of(model)) for case, model in cases.items()]
    found = pair(to_pair, traces.conversations, traces.case_from)
    count = len(selected) if shards is None else shards.case_count
    remark = _pair_the_only_ones(found, traces, selected) if count == 1 else ()
    held = {
        case: [HeldElsewhere(one.id, partial(_held, cases[case], one)) for one in conversations]
        for case, conversations in found.pairs.items()
    }
    return PairedTraces(held, (*remark, *_notes(traces, found, selected)), len(found.unpaired))


def _pair_the_only_ones(
    found: Pairing, traces: TracesToScore, selected: Collection[CaseId]
) -> tuple[str, ...]:
    """One conversation and one case are meant for each other; turns of other messages are not evaluated."""
    if len(traces.conversations) != 1 or len(selected) != 1 or not found.unpaired:
        return ()
    (alone,), (case,) = found.unpaired, selected
    if alone.conversation.named_case or alone.reason.startswith("several"):
        return ()
    found.unpaired.clear()
    found.pairs[case] = [alone.conversation]
    return (f"paired as the only ones: conversation {visible(alone.conversation.id)}, case {case.eval_id}",)


def messages_of(case: EvalCase) -> tuple[str, ...]:
    """What the user of a case says, by turn; of a simulated user the first message."""
    if case.conversation is None:
        return (case.conversation_scenario.starting_prompt,) if case.conversation_scenario else ()
    return tuple(full_text(turn.user_content) for turn in case.conversation)


def _user_contents(case: EvalCase) -> list[Json]:
    """As `messages_of`, with all that the user gives."""
    if case.conversation is None:
        return [{"role": "user", "parts": [{"text": text}]} for text in messages_of(case)]
    return [turn.user_content.model_dump(mode="json", exclude_none=True) for turn in case.conversation]


def _held(case: EvalCase, found: FoundConversation) -> HeldConversation:
    from evaltui.traces.pairing import aligned, aligned_events

    conversation = found.read()
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


def with_other_conversations(
    held: HeldConversations, resumes: Resumption, masked: Callable[[list[str]], list[str]]
) -> Iterator[str]:
    """The cases of which the earlier run has results of other conversations than they have now."""
    for one in resumes.header.sets:
        for eval_id in one.eval_ids:
            case = CaseId(one.path, eval_id)
            now = masked([conversation.id for conversation in held.get(case, ())])
            if resumes.known.get(case) and list((one.conversations or {}).get(eval_id, ())) != now:
                yield eval_id


def agent_name(traces: TracesToScore) -> str:
    """The agent that speaks first in most conversations; "" where none is named."""
    named = Counter(one.agent for one in traces.conversations if one.agent)
    return named.most_common(1)[0][0] if named else ""


def _notes(traces: TracesToScore, found: Pairing, selected: Collection[CaseId]) -> Iterator[str]:
    yield from traces.warnings
    elsewhere = sum(len(some) for case, some in found.pairs.items() if case not in selected)
    if elsewhere:
        yield f"{counted(elsewhere, 'conversation')} of cases that are not selected: not scored"
    total = len(traces.conversations)
    if not found.unpaired:
        return
    count = len(found.unpaired)
    match = plural(count, "matches", "match")
    yield f"{show_number(count)} of {counted(total, 'conversation')} {match} no case:"
    for one in found.unpaired[:_MOST_NAMED]:
        yield f"  {_described(one)}"
    if count > _MOST_NAMED:
        yield f"  {counted(count - _MOST_NAMED, 'conversation')} more"


def _described(one: Unpaired) -> str:
    messages = one.conversation.messages
    said = visible(cut(messages[0], _LONGEST_MESSAGE)) if messages else ""
    nearest = f"nearest case: {one.nearest.eval_id}" if one.nearest else "no case is like it"
    parts = (
        visible(cut(one.conversation.id, _LONGEST_MESSAGE)),
        f'"{said}"' if said else "",
        one.reason,
        nearest,
    )
    return "  ".join(filter(None, parts))
