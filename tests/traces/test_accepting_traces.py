"""What a trace does not hold is never accepted as an expectation, and a case is made of what it holds."""

import asyncio

import pytest

pytest.importorskip("google.adk")

from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.scoring import score_case
from evaltui.documents.editing.accepting import Accepting
from evaltui.documents.editing.set import CaseEditor
from evaltui.documents.edits import EditError
from evaltui.documents.values import copy_of
from evaltui.traces.conversations import conversations_in
from evaltui.traces.pairing import aligned_events
from tests.changed_values import changed_case
from tests.traces import written_traces
from tests.traces.adk_spans import BARE, SPANS, run
from tests.traces.test_score_command import COST, LAMP, THANKS, TIME, case

pytestmark = pytest.mark.adk


def accepted(expected, messages, environment):
    """The case after all that was done is accepted, and what came of each turn."""
    told = run("tools", messages, environment)
    (found,) = conversations_in([written_traces.read_bytes(written_traces.otlp_json(told))]).conversations
    said = [turn["user_content"] for turn in expected["conversation"]]
    actual = invocations_from_events(aligned_events(said, found)[0])
    result = asyncio.run(score_case(EvalCase.model_validate(expected), actual, EvalConfig.default()))
    data = {"eval_set_id": "s", "eval_cases": [expected]}
    after = changed_case(data, lambda case: Accepting(case).case(result.turns, actual, None))
    return after["eval_cases"][0], actual, result


def test_content_that_was_not_captured_changes_no_expectation():
    expected = case("buy", LAMP, TIME)
    after, actual, result = accepted(expected, [LAMP[0], TIME[0]], BARE)
    assert after == expected
    data = {"eval_set_id": "s", "eval_cases": [expected]}
    accepting = Accepting(CaseEditor(copy_of(data), 0))
    with pytest.raises(EditError, match="Unknown, so nothing to accept: answers"):
        accepting.answer(0, actual[0])
    with pytest.raises(EditError, match="Unknown, so nothing to accept: arguments"):
        accepting.calls(0, result.turns[0].calls, actual[0])


def test_a_turn_that_was_not_held_stays_and_others_are_accepted():
    wrong = ("What does it cost?", [("price", {"what": "rug"})], "Nothing.")
    expected = case("buy", LAMP, wrong, THANKS)
    after, _, _ = accepted(expected, [LAMP[0], THANKS[0]], SPANS)
    assert after == expected
    after, _, _ = accepted(expected, [COST[0], THANKS[0]], SPANS)
    turns = after["conversation"]
    assert turns[0] == expected["conversation"][0]
    assert turns[1]["final_response"]["parts"] == [{"text": COST[2]}]
    assert turns[1]["intermediate_data"]["tool_uses"][0]["args"] == COST[1][0][1]
