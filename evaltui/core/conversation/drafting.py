"""Drafting an eval case from a conversation: choosing what is expected.

A turn is drafted from the invocation that a run would make of its events, so that a deterministic agent
passes the new case. Thoughts, work inside agent tools, usage, times and ids are left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.base_model import dump
from evaltui.core.model.content import Content, FunctionCall, FunctionResponse, Part
from evaltui.core.model.eval_set import (
    Invocation,
    InvocationEvent,
    InvocationEvents,
    answer_text,
    scored_text,
    tool_calls,
)
from evaltui.core.model.events import CALLS, Event, Json
from evaltui.core.model.modes import TurnMode
from evaltui.core.secrets import Secrets
from evaltui.text.figures import counted

_MAX_ID_LENGTH = 40
# Another role would be a problem of the case.
_ROLES = ("user", "model", "function", "tool")


@dataclass(frozen=True)
class TurnDraft:
    """A turn of a conversation, the user's message included, and the choice of its expectations.

    A `context` turn is run but not scored. `results` need `calls`: a result whose call is not expected keeps
    a case from passing.
    """

    events: Sequence[Event]
    context: bool = False
    calls: bool = True
    results: bool = True
    intermediate: bool = True
    answer: bool = True


@dataclass(frozen=True)
class CaseDraft:
    """A drafted case.

    `case` is an EvalCase as JSON in snake_case. `marks` are entries for `evaltui.turns` of the config, by
    turn: `context` where chosen, and for a turn without expectations; `skip` where only calls are not
    expected, or are unknown.
    """

    case: Json
    marks: Mapping[int, TurnMode]
    outputs: frozenset[int] = frozenset()
    """The turns, from 0, whose expected response is an output of the agent."""


def draft_case(
    eval_id: str,
    turns: Sequence[TurnDraft],
    *,
    app_name: str,
    user_id: str,
    state: Json,
    final_state: Json | None = None,
    outputs: bool = False,
) -> CaseDraft:
    """Drafts a case from turns that start with `state`, the session state before the first of them.

    Without `state`, `app_name` and `user_id`, the case has no session input. `final_state` is expected
    without `temp:` keys, which no session keeps. An output is the expected response of a turn without a text,
    and with `outputs` of every turn with an output. A deterministic agent passes the default criteria, unless
    a turn has no words to compare. Raises ValueError for a turn without events, pydantic's ValidationError
    for a content that genai does not accept.
    """
    turns = [replace(turn, calls=turn.calls and not _lacks_calls(turn)) for turn in turns]
    happened = [_invocation(turn.events) for turn in turns]
    scored = [
        invocation.with_output if outputs or not _answer(invocation) else invocation
        for invocation in happened
    ]
    conversation = [_turn(turn, invocation) for turn, invocation in zip(turns, scored, strict=True)]
    case: Json = {"eval_id": eval_id, "conversation": conversation}
    if app_name or user_id or state:
        session: Json = {"app_name": app_name, "user_id": user_id}
        case["session_input"] = session | ({"state": state} if state else {})
    if expected_state := {
        key: value for key, value in (final_state or {}).items() if not key.startswith("temp:")
    }:
        case["final_session_state"] = expected_state
    marks = {number: mode for number, turn in enumerate(turns) if (mode := _mark(turn)) is not None}
    returned = (
        number for number, turn in enumerate(turns) if turn.answer and scored[number] is not happened[number]
    )
    return CaseDraft(case, marks, frozenset(returned))


def propose_eval_id(message: str, used_ids: Collection[str]) -> str:
    """An id for a case: the first words of a user message in snake_case, at most 40 characters, numbered if
    the id is used; `case` for a message without words."""
    words = _words(message) or ["case"]
    proposed = _join_words(words, _MAX_ID_LENGTH)
    number = 1
    while proposed in used_ids:
        number += 1
        proposed = _join_words(words, _MAX_ID_LENGTH - len(f"_{number}")) + f"_{number}"
    return proposed


def _words(message: str) -> list[str]:
    # A message may be a pasted document.
    start = unicodedata.normalize("NFKC", message[: 10 * _MAX_ID_LENGTH]).lower()
    for apostrophe in "'’":
        start = start.replace(apostrophe, "")
    # Scripts such as Thai write vowels as marks, which are no letters by themselves.
    return "".join(
        letter if letter.isalnum() or unicodedata.category(letter).startswith("M") else " "
        for letter in start
    ).split()


def _join_words(words: Sequence[str], limit: int) -> str:
    text = ""
    for word in words:
        longer = f"{text}_{word}" if text else word[:limit]
        if len(longer) > limit:
            break
        text = longer
    return text


def _lacks_calls(turn: TurnDraft) -> bool:
    """Whether the calls of a turn are unknown because the agent does not send them."""
    return any(CALLS in event.data.get("untold", ()) for event in turn.events)


def _mark(turn: TurnDraft) -> TurnMode | None:
    if turn.context or not (turn.calls or turn.answer):
        return "context"
    return None if turn.calls else "skip"


def _turn(draft: TurnDraft, happened: Invocation) -> Json:
    turn: Json = {"user_content": dump(happened.user_content)}
    if draft.answer and (answer := _answer(happened)):
        turn["final_response"] = dump(Content(role="model", parts=answer))
    events = _expected_events(happened, draft)
    # Without calls in it, an empty list says that none is expected.
    if events or draft.calls:
        turn["intermediate_data"] = {"invocation_events": [dump(event) for event in events]}
    return turn


def _invocation(events: Sequence[Event]) -> Invocation:
    # Pieces of a streamed text come again as a whole; what is called is called, whichever step says so.
    streamed = {event.data.get("step") for event in events if event.data.get("partial")} - {None}
    whole = [event for event in events if event.kind != "text" or event.data.get("step") not in streamed]
    invocations = invocations_from_events(whole)
    if len(invocations) != 1:
        raise ValueError(f"expected the events of one turn, found {counted(len(invocations), 'turn')}")
    return invocations[0]


def _answer(happened: Invocation) -> list[Part]:
    parts = happened.final_response.parts or [] if happened.final_response else []
    own = [
        part
        for part in parts
        if not part.thought and part.function_call is None and part.function_response is None
    ]
    if not answer_text(own) and (text := scored_text(happened, thoughts=False)):
        # An answer of thoughts only: what was said before is scored in its place.
        return [Part(text=text), *own]
    return own


def _expected_events(happened: Invocation, draft: TurnDraft) -> list[InvocationEvent]:
    calls = tool_calls(happened.intermediate_data)

    def is_expected(part: Part, *, in_answer: bool) -> bool:
        if part.function_call is not None:
            return draft.calls
        if part.function_response is not None:
            is_known = part.function_response.response is not None
            return is_known and draft.calls and draft.results and _answers_call(part.function_response, calls)
        return draft.intermediate and not in_answer and not part.thought

    expected = []
    for event in _events(happened):
        if event.content is None:
            continue
        # An answer that calls, too, is recorded with its text.
        in_answer = event.content == happened.final_response
        parts = [part for part in event.content.parts or [] if is_expected(part, in_answer=in_answer)]
        if parts:
            role = event.content.role if event.content.role in _ROLES else None
            content = Content(role=role, parts=parts)
            expected.append(InvocationEvent(author=event.author, content=content))
    return expected


def _events(invocation: Invocation) -> Sequence[InvocationEvent]:
    data = invocation.intermediate_data
    return data.invocation_events if isinstance(data, InvocationEvents) else []


def _answers_call(response: FunctionResponse, calls: Sequence[FunctionCall]) -> bool:
    """Whether a response belongs to one of the calls."""
    return any(call.id == response.id if response.id else call.name == response.name for call in calls)


def without_secrets(case: Json, secrets: Secrets) -> Json:
    """A drafted case with secrets masked in its expectations, because they are compared with masked texts.

    The user's messages and the session input stay, because the agent needs them.
    """
    turns = [
        {name: value if name == "user_content" else secrets.masked(value) for name, value in turn.items()}
        for turn in case["conversation"]
    ]
    state = case.get("final_session_state")
    return case | {"conversation": turns} | ({"final_session_state": secrets.masked(state)} if state else {})
