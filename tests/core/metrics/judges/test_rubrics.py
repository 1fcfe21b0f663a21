"""Which rubrics hold where."""

import pytest
from judge_cases import ANSWERS, CALLS, WHOLE, given, rubric, turn

from evaltui.core.metrics.judges.rubrics import no_rubrics, rubrics_of_conversation, rubrics_of_turn
from evaltui.core.metrics.metric import CriterionError


def held(asked, number=0):
    return [(one.id, one.place) for one in rubrics_of_turn(asked, number)]


def test_those_of_criterion_case_and_the_turn_itself_hold():
    asked = given(
        ANSWERS,
        [turn(rubrics=[rubric("first")]), turn(rubrics=[rubric("second")]), turn()],
        criterion={"rubrics": [rubric("general")]},
        case_rubrics=[rubric("case")],
    )

    assert held(asked, 0) == [("general", "the criterion"), ("case", "the case"), ("first", "turn 1")]
    assert held(asked, 1) == [("general", "the criterion"), ("case", "the case"), ("second", "turn 2")]
    assert held(asked, 2) == [("general", "the criterion"), ("case", "the case")]


@pytest.mark.parametrize(
    ("metric", "own"),
    [(ANSWERS, "FINAL_RESPONSE_QUALITY"), (CALLS, "TOOL_USE_QUALITY"), (WHOLE, "TRAJECTORY_QUALITY")],
)
def test_rubrics_without_a_type_hold_and_those_of_another_type_do_not(metric, own):
    every = [rubric("plain"), rubric("own", type=own), rubric("other", type="SOMETHING_ELSE")]
    asked = given(metric, [turn(rubrics=every)])

    assert held(asked) == [("plain", "turn 1"), ("own", "turn 1")]


def test_rubrics_of_the_criterion_hold_whatever_their_type():
    asked = given(CALLS, [turn()], criterion={"rubrics": [rubric("other", type="FINAL_RESPONSE_QUALITY")]})

    assert held(asked) == [("other", "the criterion")]


def test_the_same_rubric_in_two_places_counts_once():
    same = [rubric("short", "Is short.")]
    asked = given(ANSWERS, [turn(rubrics=same)], case_rubrics=same)

    assert held(asked) == [("short", "the case")]


def test_one_id_with_two_texts_is_an_error_that_names_both_places():
    asked = given(
        ANSWERS, [turn(), turn(rubrics=[rubric("short", "Two.")])], case_rubrics=[rubric("short", "One.")]
    )

    assert held(asked, 0) == [("short", "the case")]
    with pytest.raises(CriterionError, match="rubric id short has different texts in the case and turn 2"):
        rubrics_of_turn(asked, 1)


def test_a_conversation_is_judged_by_the_rubrics_of_all_its_turns():
    turns = [
        turn(rubrics=[rubric("first")]),
        turn(rubrics=[rubric("second")]),
        turn(rubrics=[rubric("third")]),
    ]
    asked = given(WHOLE, turns, case_rubrics=[rubric("case")])

    assert [one.id for one in rubrics_of_conversation(asked, [0, 2])] == ["case", "first", "third"]


def test_turns_of_a_simulated_user_have_the_shared_rubrics():
    asked = given(ANSWERS, None, [turn(), turn()], case_rubrics=[rubric("case")])

    assert held(asked, 1) == [("case", "the case")]


def test_a_rubric_without_a_text_is_an_error():
    empty = {"rubric_id": "short", "rubric_content": {}}

    with pytest.raises(
        CriterionError,
        match="rubric short of the case has no text; describe the requirement in its text_property",
    ):
        rubrics_of_turn(given(ANSWERS, [turn()], case_rubrics=[empty]), 0)


@pytest.mark.parametrize(
    ("rubrics", "wrong"),
    [
        ([{"rubric_id": 5, "rubric_content": {}}], "0.rubric_id: Input should be a valid string"),
        ("short", "the list: Input should be a valid list"),
    ],
)
def test_malformed_rubrics_of_a_criterion_are_an_error(rubrics, wrong):
    with pytest.raises(CriterionError, match=f"its rubrics cannot be read: {wrong}"):
        rubrics_of_turn(given(ANSWERS, [turn()], criterion={"rubrics": rubrics}), 0)


def test_where_there_are_none_it_says_what_to_add_where():
    asked = given(CALLS, [turn(rubrics=[rubric("short", type="FINAL_RESPONSE_QUALITY")])])

    assert no_rubrics(asked) == (
        'needs rubrics: add "rubrics" to the metric\'s criterion, or to the case or its turns '
        "(without a type, or of type TOOL_USE_QUALITY); those here are of type FINAL_RESPONSE_QUALITY"
    )


def test_as_adk_those_without_a_type_and_every_second_id_are_refused():
    asked = given(
        ANSWERS,
        [turn(rubrics=[rubric("plain"), rubric("own", type="FINAL_RESPONSE_QUALITY")])],
        case_rubrics=[rubric("case")],
        criterion={"rubrics": [rubric("general")]},
        as_adk=True,
    )
    twice = given(ANSWERS, [turn()], criterion={"rubrics": [rubric("a"), rubric("a")]}, as_adk=True)

    assert held(asked) == [("general", "the criterion"), ("own", "turn 1")]
    with pytest.raises(CriterionError, match="google-adk refuses duplicates"):
        rubrics_of_turn(twice, 0)
