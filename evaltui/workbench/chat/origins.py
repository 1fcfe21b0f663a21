"""Starting a conversation at a turn of a case, and the differences of a repeated turn.

Importing this loads the models: do it in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaltui.core.compare.diff import diff_state, texts_of_both, turn_result
from evaltui.core.compare.explain import MAX_REASONS, describe_call
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.conversation.replay import events_of_invocation, expected_places
from evaltui.core.conversation.waiting import CallPlace, responses_in
from evaltui.core.matching.rules import REQUEST_ID_RULES, rules_of_case
from evaltui.core.metrics.intermediate_match import align_texts
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import SimulatedUserError
from evaltui.core.model.eval_set import EvalCase, Invocation, texts_before, tool_responses
from evaltui.core.model.events import SIMULATED_USER, Event, Json, text_content
from evaltui.core.model.outcome import StateDiff, TurnResult
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.text.figures import counted, show_number
from evaltui.text.values import show_change, visible
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.chat.conversation import (
    ChatTurn,
    Difference,
    SessionStart,
    Transcript,
    TurnStage,
    state_after,
)
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.state import CaseOutcome


@dataclass(frozen=True)
class Origin:
    """The turns of a case, as expected and as in its last result.

    `messages` are the user's messages, as genai Contents; for a simulated user, those of the last run, or the
    starting prompt, and `expected` is empty. `happened` are the events of the finished turns of the last run;
    without any, a conversation cannot continue from the result. `result_session` is the session at the start
    of that run: the case may have been edited since. `places` are the places of the expected calls that
    messages respond to.
    """

    case: CaseId
    session: SessionStart
    messages: tuple[Json, ...]
    expected: tuple[tuple[Event, ...], ...]
    happened: tuple[tuple[Event, ...], ...] = ()
    result_session: SessionStart | None = None
    places: Mapping[str, CallPlace] = field(default_factory=dict)

    def refuses(self, turn: int, source: str | None) -> str | None:
        """Why a conversation cannot start at a turn, as a sentence; `source` is the source of the turns
        before, None where they are sent."""
        if turn > len(self.messages):
            return f"{self.case.eval_id} has {counted(len(self.messages), 'turn')}: no turn {turn + 1}"
        if source is None or turn <= len(self.happened if source == "result" else self.expected):
            return None
        if source == "case":
            return f"{self.case.eval_id} has a simulated user, so no expected turns"
        if self.result_session is None:
            return f"{self.case.eval_id} has no result; continue from its expected turns"
        return (
            f"only {show_number(len(self.happened))} of {counted(len(self.messages), 'turn')} finished "
            f"in the last run of {self.case.eval_id}"
        )

    def conversation(self, turn: int | None, source: str | None) -> Transcript:
        """A conversation that starts at a turn, None for the end.

        The turns before are those of the last run (`result`), or the expected ones (`case`); without
        `source`, their messages are queued. Raises ValueError, with a sentence.
        """
        turn = len(self.messages) if turn is None else turn
        if reason := self.refuses(turn, source):
            raise ValueError(reason)
        events = self.happened if source == "result" else self.expected
        start = self.result_session if source == "result" and self.result_session else self.session
        at_end = turn >= len(self.messages)
        title = self.case.eval_id if at_end else f"{self.case.eval_id} › turn {turn + 1}"
        made = Transcript(title, start, proposal=None if at_end else self.messages[turn])
        if source is None:
            made.turns, made.places = [ChatTurn(content) for content in self.messages[:turn]], self.places
            return made
        state = start.state
        for own in events[:turn]:
            after = state_after(state, own)
            made.turns.append(
                ChatTurn(
                    _message_in(own),
                    "recorded",
                    TurnStage.DONE,
                    list(own),
                    state_before=state,
                    state_after=after,
                    spent=own[-1].t - own[0].t if source == "result" else None,
                )
            )
            state = after
        return made

    def last_run(self) -> Transcript:
        """The conversation of the last run. Raises ValueError where no turn finished."""
        if reason := self.refuses(max(1, len(self.happened)), "result"):
            raise ValueError(reason)
        return self.conversation(len(self.happened), "result")


def origin(
    case_id: CaseId, case: EvalCase, scored: CaseOutcome | None = None, events: Sequence[Event] = ()
) -> Origin:
    """The origin of a case; `events` are those of the shown repeat."""
    turns = case.conversation or []
    messages = tuple(turn.user_content.model_dump(mode="json", exclude_none=True) for turn in turns)
    responded = {str(response.get("id")) for message in messages for response in responses_in(message)}
    made = Origin(
        case_id,
        _session(case),
        messages,
        tuple(tuple(events_of_invocation(turn, number, responded)) for number, turn in enumerate(turns)),
        places=expected_places(turns),
    )
    scenario = case.conversation_scenario
    if scenario is not None:
        first_message = text_content("user", scenario.starting_prompt)
        made = replace(made, messages=(first_message,))
    if scored is None:
        return made
    error = scored.shown.error
    # Where it is the user who could not go on, the agent had come to the end of its turn.
    failed = error is not None and error.type != SimulatedUserError.__name__
    happened = _whole_turns(events, failed=failed)
    made = replace(made, happened=happened, result_session=_session(scored.case))
    return replace(made, messages=tuple(map(_message_in, happened))) if scenario and happened else made


def read_origin(case: CaseId, sets: OpenSets, outcomes: Outcomes) -> Origin:
    """Reads the case and the log of its last result. Raises OSError, or ValueError with a sentence."""
    file = sets.file_of(case.path)
    opened = sets.open(file)
    stored = opened.case(case.eval_id)
    if stored is None:
        why = opened.errors[0].beside(opened.path) if opened.errors else f"not in {file.name}"
        raise ValueError(f"Cannot continue {case.eval_id}: {why}")
    scored = outcomes.get(case)
    if scored is None:
        return origin(case, stored.model())
    events = (outcomes.traces.events_of(case) or {}).get(scored.repeat, ())
    return origin(case, stored.model(), scored, events)


def _message_in(turn: Sequence[Event]) -> Json:
    messages = (event.content for event in turn if event.kind == "user" and event.content)
    return next(messages, {"role": "user", "parts": []})


def _session(case: EvalCase) -> SessionStart:
    session = case.session_input
    if session is None:
        return SessionStart()
    return SessionStart(session.app_name, session.user_id, session.session_id or "", session.state)


def _whole_turns(events: Sequence[Event], *, failed: bool) -> tuple[tuple[Event, ...], ...]:
    """The events of each finished turn; the last turn of a run with an error is not finished."""
    turns: dict[int, list[Event]] = {}
    for event in events:
        if event.turn is not None and event.agent != SIMULATED_USER:
            turns.setdefault(event.turn, []).append(event)
    whole = [tuple(turns[number]) for number in sorted(turns)]
    return tuple(whole[:-1] if failed else whole)


# Comparing takes longer than anybody waits for.
MAX_CALLS = 500


def difference(before: ChatTurn, now: ChatTurn) -> Difference | None:
    """The difference of two finished turns: calls, texts, responses of tools, and the state after them; None
    where one of them has no actions.

    Raises ValueError for events that cannot be converted.
    """
    calls = max(_calls(before), _calls(now))
    if calls > MAX_CALLS:
        nothing = TurnResult("these calls", (), ResponseDiff(None, None))
        state = _states(before.state_after, now.state_after)
        return Difference(f"{counted(calls, 'call')}: too many to compare", nothing, state)
    invocations = invocations_from_events(before.events)[:1] + invocations_from_events(now.events)[:1]
    if len(invocations) < 2:
        return None
    expected, actual = invocations
    texts = texts_of_both(expected, actual)
    turn = turn_result(
        expected,
        actual,
        expectation="these calls",
        expected_text=texts[0],
        actual_text=texts[1],
        intermediate=align_texts(*(texts_before(side, thoughts=False) for side in (expected, actual))),
        rules=rules_of_case(REQUEST_ID_RULES, "", ""),
    )
    state = _states(before.state_after, now.state_after)
    reasons = [*_reasons(turn), *_changed_responses(expected, actual), *_state_reasons(state)]
    more = [f"{show_number(len(reasons) - MAX_REASONS)} more"] if len(reasons) > MAX_REASONS else []
    return Difference("; ".join([*reasons[:MAX_REASONS], *more]), turn, state)


def _calls(turn: ChatTurn) -> int:
    return sum(event.kind == "tool_call" for event in turn.events)


def _states(before: Json | None, now: Json | None) -> tuple[StateDiff, ...]:
    if before is None or now is None:
        return ()
    return diff_state({key: before.get(key) for key in before | now}, now)


def _reasons(turn: TurnResult) -> Iterator[str]:
    yield from (describe_call(call) for call in turn.calls if call.op != "same")
    if any(text.expected != text.actual for text in turn.intermediate):
        yield "text before the response differs"
    if turn.response.expected != turn.response.actual:
        yield "response differs" if turn.response.actual else "no response"


def _changed_responses(before: Invocation, now: Invocation) -> Iterator[str]:
    """The tools whose responses differ, of those that responded as often as before."""
    by_tool: list[dict[str, list[Json | None]]] = []
    for side in (before, now):
        responses: dict[str, list[Json | None]] = {}
        for response in tool_responses(side.intermediate_data):
            responses.setdefault(response.name or "", []).append(response.response)
        by_tool.append(responses)
    for name, responses_before in by_tool[0].items():
        responses_now = by_tool[1].get(name, [])
        if len(responses_now) == len(responses_before) and responses_now != responses_before:
            yield f"response of {visible(name)} differs"


def _state_reasons(state: tuple[StateDiff, ...]) -> Iterator[str]:
    for diff in state:
        was, now = show_change(diff.expected, diff.actual)
        yield f"state {visible(diff.path)} is {now}, was {was}"
