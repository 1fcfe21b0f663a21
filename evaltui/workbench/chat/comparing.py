"""What a turn did otherwise than the turn that it repeats. Importing this loads the models."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.compare.diff import diff_state, turn_result
from evaltui.core.compare.explain import MAX_REASONS, describe_call
from evaltui.core.compare.rules import REQUEST_ID_RULES, rules_of_case
from evaltui.core.metrics.response_match import scored_text
from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import ResponseDiff, StateDiff, TurnResult
from evaltui.core.recording.invocations import invocations_from_events
from evaltui.text.values import show_change, visible
from evaltui.workbench.chat.conversation import ChatTurn, Difference

# Comparing takes longer than anybody waits for.
MOST_CALLS = 500


def difference(before: ChatTurn, now: ChatTurn) -> Difference | None:
    """Two turns that are done: calls, answer, and the state after them; None where one of them did nothing.

    Raises ValueError for events that cannot be put together.
    """
    calls = max(_calls(before), _calls(now))
    if calls > MOST_CALLS:
        nothing = TurnResult("these calls", (), ResponseDiff(None, None))
        state = _states(before.state_after, now.state_after)
        return Difference(f"{calls:,} calls are too many to be compared", nothing, state)
    expected, actual = _invocation(before), _invocation(now)
    if expected is None or actual is None:
        return None
    turn = turn_result(
        expected,
        actual,
        expectation="these calls",
        expected_text=scored_text(expected, thoughts=False),
        actual_text=scored_text(actual, thoughts=False),
        rules=rules_of_case(REQUEST_ID_RULES, "", ""),
    )
    state = _states(before.state_after, now.state_after)
    reasons = list(_reasons(turn, state))
    more = [f"{len(reasons) - MAX_REASONS} more"] if len(reasons) > MAX_REASONS else []
    return Difference("; ".join([*reasons[:MAX_REASONS], *more]), turn, state)


def _calls(turn: ChatTurn) -> int:
    return sum(event.kind == "tool_call" for event in turn.events)


def _invocation(turn: ChatTurn) -> Invocation | None:
    found = invocations_from_events(turn.events)
    return found[0] if found else None


def _states(before: Json | None, now: Json | None) -> tuple[StateDiff, ...]:
    if before is None or now is None:
        return ()
    return diff_state({key: before.get(key) for key in before | now}, now)


def _reasons(turn: TurnResult, state: tuple[StateDiff, ...]) -> Iterator[str]:
    yield from (describe_call(call) for call in turn.calls if call.op != "same")
    if turn.response.expected != turn.response.actual:
        yield "the answer is another" if turn.response.actual else "there is no answer"
    for diff in state:
        was, now = show_change(diff.expected, diff.actual)
        yield f"state {visible(diff.path)} is {now} instead of {was}"
