"""Sentence by sentence: what the agent had before it, and what a judge makes of it."""

import json

import pytest
from scripted_judge import (
    OUT_OF_QUOTA,
    ScriptedJudge,
    agent_details,
    called,
    event,
    judged,
    nobody,
    returned,
    said,
    samples,
    turn,
)

from evaltui.core.metrics.judges.hallucinations import hallucinations_v1, read_findings, steps_of
from evaltui.core.metrics.metric import CriterionError
from evaltui.core.model.judgement import Evidence
from evaltui.core.model.outcome import Status

NAME = "hallucinations_v1"
SHIPPED = turn(
    "Where is A1?",
    event(said("I look it up."), called("look_up", order="A1")),
    event(returned("look_up", status="shipped")),
    answer="Your order shipped. It arrives on Monday. Anything else?",
    app_details=agent_details(),
)


def labels(*given, **more):
    found = [
        {"sentence": number, "reason": f"because {label}", "label": label, **more}
        for number, label in enumerate(given, start=1)
    ]
    return json.dumps({"sentences": found})


async def test_each_sentence_has_a_verdict_with_its_evidence():
    answer = json.dumps(
        {
            "sentences": [
                {"sentence": 1, "reason": "It says so.", "supporting": "shipped", "label": "supported"},
                {"sentence": 2, "reason": "A guess.", "supporting": None, "label": "unsupported"},
                {"sentence": 3, "reason": "A question.", "label": "not_applicable"},
            ]
        }
    )
    judge = ScriptedJudge(answer)
    result = await hallucinations_v1(judged(NAME, SHIPPED, threshold=0.6), judge)

    assert (result.score, result.status, result.reason) == (2 / 3, Status.PASSED, "")
    (one,) = result.per_invocation
    assert [(found.subject, found.score, found.rationale) for found in one.judgements] == [
        ("Your order shipped.", 1.0, "It says so."),
        ("It arrives on Monday.", 0.0, "A guess."),
        ("Anything else?", 1.0, "A question."),
    ]
    assert one.judgements[0].evidence == (Evidence("supporting", "shipped"),)
    assert (result.judge.prompt, result.judge.asked, result.judge.answered) == ("hallucinations/1", 1, 1)


async def test_a_failed_turn_names_the_sentences():
    judge = ScriptedJudge(labels("contradictory", "unsupported", "disputed"))
    result = await hallucinations_v1(judged(NAME, SHIPPED), judge)
    assert (result.score, result.status) == (0.0, Status.FAILED)
    assert result.reason == (
        "turn 1: 3 of 3 sentences are not supported: “Your order shipped.” (contradictory), "
        "“It arrives on Monday.” (unsupported) and 1 more"
    )


async def test_the_judge_sees_what_the_agent_had_and_no_more():
    later = turn("And A2?", answer="No idea.", app_details=agent_details("It is noon."))
    judge = ScriptedJudge(labels("supported", "supported", "supported"), labels("supported"))
    await hallucinations_v1(judged(NAME, SHIPPED, later), judge)
    first, second = (question.prompt for question in judge.questions)
    assert [question.turn for question in judge.questions] == [0, 1]
    for told in ("Be kind.", '"name": "look_up"', "Where is A1?", '"status": "shipped"', "I look it up."):
        assert told in first
        assert told in second
    assert "And A2?" not in first
    assert '{"turn": 1, "answer": "Your order shipped. It arrives' not in first
    assert '{"turn": 1, "answer": "Your order shipped. It arrives' in second
    assert '{"sentence": 2, "text": "It arrives on Monday."}' in first


async def test_texts_before_the_answer_on_request():
    judge = ScriptedJudge(labels("unsupported"), labels("supported", "supported", "supported"))
    given = judged(NAME, SHIPPED, criterion={"evaluateIntermediateNlResponses": True})
    result = await hallucinations_v1(given, judge)
    # The mean of the two texts, not of the four sentences.
    assert result.score == 0.5
    first, second = (question.prompt for question in judge.questions)
    assert "shipped" not in first.replace("Your order shipped", "")
    assert "I look it up." in second
    assert len(result.per_invocation[0].judgements) == 4


@pytest.mark.parametrize("as_adk", [False, True])
async def test_each_part_of_a_text_before_the_answer_counts_as_one_text(as_adk):
    both = turn("Hi", event(said("I look. I search."), said("It shipped.")), answer="Yes.")
    judge = ScriptedJudge(labels("unsupported", "unsupported"), labels("supported"), labels("supported"))
    criterion = {"evaluate_intermediate_nl_responses": True}
    result = await hallucinations_v1(judged(NAME, both, criterion=criterion, as_adk=as_adk), judge)
    assert result.score == pytest.approx(2 / 3)
    assert '"text": "It shipped."' in judge.questions[1].prompt


async def test_earlier_turns_are_not_shown_as_adk():
    later = turn("And A2?", answer="No idea.")
    (step,) = [
        step for step in steps_of(judged(NAME, SHIPPED, later, as_adk=True), every_text=False) if step.turn
    ]
    assert [entry.value for entry in step.context] == ["And A2?"]


async def test_asked_once_unless_the_samples_are_given():
    once = ScriptedJudge(labels("supported", "supported", "supported"))
    await hallucinations_v1(judged(NAME, SHIPPED, criterion={"judge_model_options": {}}), once)
    assert len(once.questions) == 1

    three = ScriptedJudge(
        labels("supported", "unsupported", "supported"),
        OUT_OF_QUOTA,
        labels("supported", "supported", "not_applicable"),
    )
    result = await hallucinations_v1(judged(NAME, SHIPPED, criterion=samples(3), threshold=0.9), three)
    # The tie on the second sentence is negative.
    assert [found.score for found in result.per_invocation[0].judgements] == [1.0, 0.0, 1.0]
    assert len(result.per_invocation[0].judgements[1].votes) == 3
    assert result.reason.endswith("(unsupported); 2 of 3 votes counted")
    assert (result.judge.asked, result.judge.answered) == (3, 2)

    as_adk = ScriptedJudge(labels("supported", "supported", "supported"))
    await hallucinations_v1(judged(NAME, SHIPPED, criterion=samples(3), as_adk=True), as_adk)
    assert len(as_adk.questions) == 1


async def test_a_judge_that_fails_is_an_error_and_never_a_verdict():
    other = turn("Hi", answer="Hello.")
    result = await hallucinations_v1(
        judged(NAME, other, SHIPPED), ScriptedJudge(labels("supported"), OUT_OF_QUOTA)
    )
    assert (result.score, result.status) == (None, Status.ERROR)
    assert result.error == OUT_OF_QUOTA.error
    assert [one.status for one in result.per_invocation] == [Status.PASSED, Status.ERROR]
    assert result.reason == "turn 2: ClientError: 429 quota exceeded"

    judge = ScriptedJudge(labels("supported"), OUT_OF_QUOTA)
    result = await hallucinations_v1(judged(NAME, other, SHIPPED, as_adk=True), judge)
    assert (result.score, result.status) == (1.0, Status.PASSED)
    assert [one.status for one in result.per_invocation] == [Status.PASSED, Status.NOT_EVALUATED]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("All is fine.", "unreadable judge response: 'All is fine.'"),
        ("", "unreadable judge response: empty"),
        (
            labels("supported", "supported"),
            "no verdict on 1 of 3 sentences: “Anything else?”: no vote",
        ),
        (labels("supported", "splendid", "supported"), "no verdict on 1 of 3 sentences: “It arrives on"),
        (
            labels("supported", "supported", "supported") + labels("unsupported"),
            "no verdict on 1 of 3 sentences: “Your order shipped.”: the judge contradicts itself: supported",
        ),
    ],
)
async def test_an_answer_that_does_not_say_it_all_is_an_error(answer, problem):
    result = await hallucinations_v1(judged(NAME, SHIPPED), ScriptedJudge(answer))
    assert (result.score, result.status) == (None, Status.ERROR)
    assert result.reason.startswith(f"turn 1: {problem}")
    assert result.error.type == "UnreadableAnswerError"
    assert len(result.per_invocation[0].judgements) == 3


async def test_nothing_to_judge():
    silent = turn("Hi", answer="🍎 …")
    result = await hallucinations_v1(judged(NAME, silent, turn("Hi")), nobody)
    assert (result.status, result.judge) == (Status.NOT_EVALUATED, None)
    assert "turn 1: no response text, or none with words" in result.reason

    result = await hallucinations_v1(judged(NAME, SHIPPED, context=frozenset({0})), nobody)
    assert result.status is Status.NOT_EVALUATED


async def test_a_text_that_is_no_flag_is_a_wrong_criterion():
    given = judged(NAME, SHIPPED, criterion={"evaluate_intermediate_nl_responses": "no"})
    with pytest.raises(CriterionError, match="must be true or false"):
        await hallucinations_v1(given, nobody)


def test_labels_are_read_as_they_are_written():
    answer = f"Here it is:\n```json\n{labels('**Supported**', 'not applicable', 'CONTRADICTORY')}\n```"
    assert [found.vote.score for found in read_findings(answer, 3)] == [1.0, 1.0, 0.0]
    by_text = '[{"sentence": "1", "label": "disputed", "contradicting": "no", "supporting": "null"}]'
    (found,) = read_findings(by_text, 1)
    assert (found.vote.score, found.evidence) == (0.0, (Evidence("contradicting", "no"),))


@pytest.mark.parametrize("label", ["supported", "not_applicable"])
def test_a_supported_sentence_has_no_passage_that_contradicts_it(label):
    passages = ("It is 19.", ["It is 19."], {"a": "It is 19."}, [["It is 19."]])
    absent = (" None ", "null", None, [], {}, [None, "-"], False)
    for passage, score in [*((passage, None) for passage in passages), *((none, 1.0) for none in absent)]:
        entry = {"sentence": 1, "supporting": None, "contradicting": passage, "label": label}
        assert read_findings(json.dumps([entry]), 1)[0].vote.score == score


@pytest.mark.parametrize("number", [3, 0, -1, 1.5, True, "two", "0_2"])
def test_a_label_of_no_sentence_that_says_otherwise_leaves_no_verdict(number):
    said = [
        {"sentence": 1, "label": "supported"},
        {"sentence": 2, "label": "supported"},
        {"sentence": number, "label": "unsupported"},
    ]
    assert [found.vote.score for found in read_findings(json.dumps(said), 2)] == [None, None]
