"""What answers of a judge are taken to say."""

import json

import pytest
from judge_cases import lines, valid, verdicts

from evaltui.core.metrics.judges.rubrics import HeldRubric
from evaltui.core.metrics.judges.verdicts import YES_OR_NO, read_fulfilment, read_validity
from evaltui.core.model.judgement import Vote

SHORT = HeldRubric("short", "The answer is short.", "the case")
POLITE = HeldRubric("polite", "The answer is polite.", "the case")
KEY = "is_the_agent_response_valid"


@pytest.mark.parametrize(
    ("label", "score"),
    [
        ("valid", 1.0),
        ("Valid", 1.0),
        ("**valid**", 1.0),
        ("true", 1.0),
        (True, 1.0),
        (["valid"], 1.0),
        ("valid, because it says the same", None),
        ("valid, but the flight number is wrong", None),
        ("invalid", 0.0),
        ("INVALID.", 0.0),
        (False, 0.0),
        ("almost", 0.0),
        ("partially_valid", 0.0),
        ("Partially valid", 0.0),
        ("valid - or rather invalid", None),
        ("not valid", None),
        ("perhaps", None),
        ("unknown", None),
        (None, None),
        (1, None),
        ({"a": "valid"}, None),
    ],
)
def test_labels_of_an_answer(label, score):
    assert read_validity(valid(label)).score == score


def test_the_reason_is_kept():
    assert read_validity(valid("invalid", "Another town.")) == Vote(0.0, "Another town.", "invalid")


def test_what_cannot_be_read_is_quoted_and_what_contradicts_itself_is_said():
    assert read_validity("I cannot say.\n").problem == ("unreadable judge response: 'I cannot say.'")
    assert read_validity(" ").problem == "unreadable judge response: empty"
    assert read_validity("x\x1b[31m" + "y" * 200).problem.endswith("…'")
    assert "\x1b" not in read_validity("x\x1b[31m").problem
    assert read_validity(valid() + valid("invalid")).problem == (
        "the judge contradicts itself: valid and invalid"
    )
    assert read_validity(valid("perhaps")).problem == (
        "'perhaps' is not a verdict: expected valid or invalid"
    )


@pytest.mark.parametrize(
    ("label", "score"),
    [
        ("yes", 1.0),
        ("Yes.", 1.0),
        ("yes (see the second call)", None),
        ("no", 0.0),
        ("No – it is long", None),
        ("unknown", None),
        ("not yes", None),
        ("yes, but no", None),
        ("not", None),
        ("", None),
    ],
)
def test_labels_of_a_rubric(label, score):
    assert YES_OR_NO.vote(label).score == score


def test_a_judge_that_cannot_tell_gives_a_vote_without_a_verdict():
    assert YES_OR_NO.vote("Unknown", "No result is shown.") == Vote(
        None, "No result is shown.", "unknown", "judge cannot tell"
    )


@pytest.mark.parametrize(
    "answer",
    [
        verdicts(short="yes", polite="no"),
        f"Sure!\n```json\n{verdicts(short='yes', polite='no')}\n```",
        json.dumps(json.loads(verdicts(short="yes", polite="no"))["rubrics"]),
        lines(short="yes", polite="no"),
        "**ID:** short\n**Rationale:** so\n**Verdict:** yes\n\n- ID: polite\n- Verdict: No",
        "Property: the answer is SHORT.\nEvidence: x\nRationale: y\nVerdict: yes\n"
        "Property: “The answer is polite.”\nRationale: z\nVerdict: no",
        json.dumps([{"rubric": "The answer is short.", "verdict": "yes"}, {"id": "polite", "verdict": "no"}]),
    ],
)
def test_verdicts_on_rubrics(answer):
    votes = dict(read_fulfilment(answer, [SHORT, POLITE]))

    assert {name: vote.score for name, vote in votes.items()} == {"short": 1.0, "polite": 0.0}


def test_rubrics_that_were_not_asked_about_or_have_no_verdict_are_left_out():
    assert read_fulfilment(verdicts(other="yes"), [SHORT]) == []
    assert read_fulfilment("ID: short\nRationale: so\nID: polite\nVerdict: no", [SHORT, POLITE]) == [
        ("polite", Vote(0.0, "", "no"))
    ]


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"rubrics": [{"id": "short", "rubric": POLITE.text, "verdict": "yes"}]}),
        f"ID: short\nProperty: {POLITE.text}\nVerdict: yes",
    ],
)
def test_a_verdict_with_the_id_of_one_rubric_and_the_text_of_another_is_none(answer):
    ((subject, vote),) = read_fulfilment(answer, [SHORT, POLITE])
    assert (subject, vote.score) == ("short", None)
    assert vote.problem == "the verdict has the id of short, the text of polite"


def test_rubrics_with_the_same_text_are_told_apart_by_id_only():
    twin = HeldRubric("brief", SHORT.text, "turn 1")
    by_text = json.dumps([{"rubric": SHORT.text, "verdict": "no"}])

    assert read_fulfilment(by_text, [SHORT, twin]) == []
    assert dict(read_fulfilment(verdicts(brief="no"), [SHORT, twin]))["brief"].score == 0.0
