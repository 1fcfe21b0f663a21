"""Whether a simulated user kept to its scenario."""

import json

import pytest
from scripted_judge import OUT_OF_QUOTA, ScriptedJudge, judged, nobody, said, samples, turn

from evaltui.core.metrics.judges.user_simulator import per_turn_user_simulator_quality_v1, read_is_valid
from evaltui.core.metrics.metric import CriterionError
from evaltui.core.model.outcome import Status

NAME = "per_turn_user_simulator_quality_v1"
SCENARIO = {"starting_prompt": "I want tea.", "conversation_plan": "Order tea, then ask for milk."}
START = turn("  I want tea.\n", answer=[said("hm", thought=True), said("Which one?")])
NEXT = turn("The green one.", answer="Here it is.")


def valid(is_valid=True, reason="It fits."):
    return json.dumps({"criteria": [], "reason": reason, "is_valid": is_valid})


async def quality(judge, *turns, scenario=SCENARIO, **fields):
    fields.setdefault("criterion", samples(1))
    return await per_turn_user_simulator_quality_v1(judged(NAME, *turns, scenario=scenario, **fields), judge)


async def test_the_first_message_is_compared_and_the_others_and_the_end_are_judged():
    judge = ScriptedJudge(valid(), valid())
    result = await quality(judge, START, NEXT, threshold=1.0)
    assert (result.score, result.status) == (1.0, Status.PASSED)
    first, second = result.per_invocation
    assert (first.score, first.judgements) == (1.0, ())
    assert [found.subject for found in second.judgements] == [
        "The green one.",
        "the end of the conversation (</finished>)",
    ]
    assert [question.turn for question in judge.questions] == [1, 2]
    middle, end = (question.prompt for question in judge.questions)
    for told in ("Order tea, then ask for milk.", '{"user": "  I want tea.\\n"}', '{"agent": "Which one?"}'):
        assert told in middle
    assert "Here it is." not in middle
    assert "Here it is." in end
    assert (result.judge.prompt, result.judge.asked) == ("user_simulator/1", 2)


async def test_what_does_not_keep_to_the_scenario_fails():
    wrong_start = turn("I want coffee.", answer="Sure.")

    judge = ScriptedJudge(valid(False, "It made up milk."), valid(), valid())
    result = await quality(judge, wrong_start, NEXT, NEXT)
    assert (result.score, result.status) == (1 / 3, Status.FAILED)
    assert [one.score for one in result.per_invocation] == [0.0, 0.0, 1.0]
    assert result.reason == ("turn 1: first message is not the starting prompt; turn 2: It made up milk.")


async def test_a_wrong_end_fails_the_last_turn():
    result = await quality(ScriptedJudge(valid(), valid(False, "No milk yet.")), START, NEXT, threshold=0.9)
    assert (result.score, result.status) == (0.5, Status.FAILED)
    assert result.reason == "turn 2: the conversation should not have ended here: No milk yet."
    only = await quality(ScriptedJudge(valid(False, "No tea yet.")), START)
    assert (only.score, only.per_invocation[0].status) == (0.0, Status.FAILED)


async def test_the_majority_decides_and_a_tie_is_negative():
    script = [valid(), valid(False, "no"), valid(), valid(False, "no"), OUT_OF_QUOTA]
    judge = ScriptedJudge(*script, *[valid()] * 5)
    result = await quality(judge, START, NEXT, criterion=None)
    assert result.per_invocation[1].score == 0.0
    assert result.reason == "turn 2: no; 4 of 5 votes counted"
    assert (result.judge.asked, result.judge.answered) == (10, 9)


@pytest.mark.parametrize("end", [OUT_OF_QUOTA, "It was fine.", valid("perhaps"), valid() + valid(False)])
async def test_without_a_verdict_it_is_an_error(end):
    result = await quality(ScriptedJudge(valid(), end), START, NEXT)
    assert (result.score, result.status) == (None, Status.ERROR)
    assert [one.status for one in result.per_invocation] == [Status.PASSED, Status.ERROR]
    assert len(result.per_invocation[1].judgements) == 2


async def test_as_adk_a_failed_question_gives_no_verdict_and_an_unread_turn_counts_as_bad():
    result = await quality(ScriptedJudge(valid(), OUT_OF_QUOTA), START, NEXT, as_adk=True)
    assert (result.status, result.reason) == (Status.NOT_EVALUATED, "ClientError: 429 quota exceeded")
    result = await quality(ScriptedJudge("?", valid()), START, NEXT, as_adk=True, threshold=0.5)
    assert (result.score, result.status) == (0.5, Status.PASSED)


async def test_a_persona_brings_its_own_criteria():
    persona = {
        "id": "me",
        "description": "In a hurry; says {{ stop_signal }} soon.",
        "behaviors": [
            {
                "name": "Hurries",
                "description": "Is short.",
                "behavior_instructions": ["Write little."],
                "violation_rubrics": ["The message is long.", "It has no {{stop_signal}}."],
            }
        ],
    }
    criterion = samples(1) | {"stopSignal": "DONE"}
    judge = ScriptedJudge(valid())
    await quality(judge, START, scenario=SCENARIO | {"user_persona": persona}, criterion=criterion)
    told = judge.questions[0].prompt
    assert "In a hurry; says DONE soon." in told
    assert (
        "Hurries. Is short. It is broken by any of these:\n- The message is long.\n- It has no DONE." in told
    )
    assert "Keeps to the plan." not in told

    prebuilt = ScriptedJudge(valid())
    await quality(prebuilt, START, scenario=SCENARIO | {"user_persona": "EXPERT"})
    assert "Keeps to the plan." not in prebuilt.questions[0].prompt
    plain = ScriptedJudge(valid())
    await quality(plain, START, criterion=criterion)
    assert "ends with DONE while" in plain.questions[0].prompt


async def test_what_it_needs():
    result = await quality(nobody, START, scenario=None)
    assert (result.status, "no conversation_scenario" in result.reason) == (Status.NOT_EVALUATED, True)
    assert (await quality(nobody)).status is Status.NOT_EVALUATED
    with pytest.raises(CriterionError, match="stop_signal"):
        await quality(nobody, START, criterion={"stop_signal": " "})


def test_verdicts_are_read_as_they_are_written():
    assert read_is_valid('```\n{"is_valid": true,}\n```').score == 1.0
    assert read_is_valid('{"is_valid": "Partially valid", "reason": "half"}').score == 0.0
    assert read_is_valid('{"criteria": [{"passes": true}], "is_valid": ["valid"]}').score == 1.0
    assert read_is_valid('{"criteria": [{"passes": false}], "is_valid": ["valid"]}').score is None
    assert read_is_valid('{"criteria": [{"passes": false}], "is_valid": false}').score == 0.0
    assert read_is_valid('{"criteria": [{"passes": true}], "is_valid": false}').score is None
    assert read_is_valid('{"criteria": [], "is_valid": false}').score == 0.0
    assert read_is_valid('{"criteria": false, "is_valid": true}').score is None
    assert read_is_valid("is_valid: true").score is None


@pytest.mark.parametrize(
    "criterion",
    [{"passes": "no"}, {"passes": 0}, {"passes": None}, {"passes": [False]}, {"verdict": "no"}, "no"],
)
def test_a_criterion_that_is_broken_in_any_form_is_no_pass(criterion):
    assert read_is_valid(json.dumps({"criteria": [criterion], "is_valid": True})).score is None
    assert read_is_valid(json.dumps({"criteria": criterion, "is_valid": True})).score is None
