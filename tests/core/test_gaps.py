"""Changes of conversations that an eval set should notice: what counts as one, and what of it is noticed."""

from __future__ import annotations

import pytest
from eval_data import make_turn
from hypothesis import given
from hypothesis import strategies as st
from recorded_cases import recorded, report_of

from evaltui.core.model.tool_schema import DeclaredTool

VALUES = st.sampled_from(
    [1, 2, 1.5, True, "19", "2026-09-01", "Oslo", "oslo", None, ["a", 1], {"as_of": "x"}]
)
ARGS = st.dictionaries(st.sampled_from(["a", "b"]), VALUES, max_size=2)
MATCHES = st.sampled_from(
    [
        "ignore",
        "type",
        "subset",
        "case_insensitive",
        {"regex": r"\d{4}-\d\d-\d\d|\d+"},
        {"approx": {"abs": 1}},
        {"any_of": [1, 2, "19"]},
    ]
)
PATHS = st.sampled_from(["*", "a", "b", "a.as_of", "b[*]"])
RULES = st.lists(st.tuples(st.sampled_from(["find", "pay"]), PATHS, MATCHES), max_size=3)


def turn(calls=None, answer="The order is on its way."):
    calls = None if calls is None else [{"name": name, "args": args} for name, args in calls]
    return make_turn("hi", answer, calls)


@given(
    st.lists(st.tuples(st.sampled_from(["find", "pay"]), ARGS, ARGS), max_size=3),
    RULES,
    st.sampled_from(["EXACT", "IN_ORDER", "ANY_ORDER"]),
    st.booleans(),
)
def test_no_change_of_calls_is_a_gap_that_the_metric_calls_equal(calls, rules, match_type, ignore_args):
    """Calls differ from the expected ones as far as rules allow."""
    criterion = {"threshold": 1.0, "match_type": match_type, "ignore_args": ignore_args}
    rules = [{"tool": tool, "arg": arg, "match": match} for tool, arg, match in rules]
    expected, actual = ([turn([(call[0], call[side]) for call in calls])] for side in (1, 2))
    case = recorded(expected, actual, {"tool_trajectory_avg_score": criterion}, {"rules": rules})
    kinds = {kind.kind for kind in report_of(case).kinds if kind.subject == "calls" and kind.gaps}
    assert not kinds


def test_calls_that_are_allowed_and_not_expected_are_not_changed():
    criteria = {"tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"}}
    case = recorded([turn(FIND[:1])], [turn(FIND)], criteria)
    assert not any("pay" in mutant.before for mutant in case.mutants())


CALL_KINDS = {"call dropped", "call repeated", "calls swapped", "argument changed", "argument dropped"}
CALL_KINDS |= {"argument added", "argument of another type"}
EXACT = {"tool_trajectory_avg_score": 1.0}
ANSWER = {"response_match_score": 0.8}
FIND = [("find", {"id": 1, "note": "x"}), ("pay", {})]


@pytest.mark.parametrize(
    ("criterion", "rules", "absent"),
    [
        ({"match_type": "ANY_ORDER"}, [], {"calls swapped", "call repeated"}),
        ({"match_type": "IN_ORDER"}, [], {"call repeated"}),
        ({"match_type": "EXACT"}, [], set()),
        (
            {"ignore_args": True},
            [],
            {"argument changed", "argument dropped", "argument added", "argument of another type"},
        ),
        ({}, [("find", "*", "ignore")], {"argument changed", "argument dropped", "argument of another type"}),
        ({}, [("find", "id", "type"), ("find", "note", "type")], {"argument changed"}),
    ],
)
def test_what_the_config_calls_equal_is_no_change(criterion, rules, absent):
    criteria = {"tool_trajectory_avg_score": {"threshold": 1.0, **criterion}}
    rules = [{"tool": tool, "arg": arg, "match": match} for tool, arg, match in rules]
    report = report_of(recorded([turn(FIND)], [turn(FIND)], criteria, {"rules": rules}))
    kinds = {kind.kind for kind in report.kinds if kind.subject == "calls"}
    assert CALL_KINDS - kinds == absent


def test_the_default_of_a_declared_tool_is_the_same_as_an_absent_argument():
    """Also where calls are swapped that differ in it alone; the argument that is added has another value."""
    tool = DeclaredTool("find", "", {"properties": {"limit": {"type": "integer", "default": 10}}})
    calls = [("find", {"limit": 10}), ("find", {})]
    case = recorded([turn(calls)], [turn(calls)], EXACT, tools=[tool])
    changes = {(mutant.kind, mutant.after) for mutant in case.mutants() if mutant.subject == "calls"}
    assert not {kind for kind, _ in changes} & {"argument dropped", "calls swapped"}
    assert {after for kind, after in changes if kind == "argument added"} >= {"find limit 11"}
    assert ("argument changed", "find limit 11") in changes


def test_the_checks_of_answers_notice_what_words_do_not():
    said = "The room is set to 19 °C for Ada until 2026-09-01."
    checks = [{"numbers": "equal", "contains": ["Ada"], "not_contains": ["not", "refunded"]}]
    before, after = (
        {
            kind.kind: (kind.noticed, kind.changes)
            for kind in report_of(recorded([turn([], said)], [turn([], said)], ANSWER, block)).kinds
        }
        for block in ({}, {"answers": checks})
    )
    blind = {"answer negated", "another number", "another unit", "another name", "another date or time"}
    assert {before[kind][0] for kind in blind} == {0}
    assert all(noticed == changes for noticed, changes in map(after.get, blind))
    assert after["an invented promise"] == (1, 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("It is 19 °C.", "It is 19 °F."),
        ("It weighs 5 kg.", "It weighs 5 lb."),
        ("It takes 2 hours.", "It takes 2 days."),
        ("It costs 7 USD.", "It costs 7 €."),
        ("It costs $7.", "It costs €7."),
        ("It is 3 miles away.", "It is 3 kilometers away."),
        ("It is 40% off.", None),
        ("It is in aisle 5 m.", None),
    ],
)
def test_another_unit_is_noticed_where_numbers_must_be_equal(before, after):
    case = recorded([turn([], before)], [turn([], before)], {}, {"answers": [{"numbers": "equal"}]})
    units = [mutant.after for mutant in case.mutants() if mutant.kind == "another unit"]
    assert units == ([] if after is None else [after])
    kinds = {kind.kind: kind for kind in report_of(case).kinds}
    assert after is None or not kinds["another unit"].gaps


def test_the_expected_state_is_changed_and_dropped():
    state = {"lights": {"bedroom": "OFF"}, "seen": 1}
    expected = {"lights": {"bedroom": "OFF"}}
    case = recorded([turn([])], [turn([])], EXACT, final_state=state, final_session_state=expected)
    kinds = {kind.kind: (kind.noticed, kind.changes) for kind in report_of(case).kinds}
    assert (kinds["state changed"], kinds["state key dropped"]) == ((1, 1), (1, 1))


def test_turns_that_are_not_scored_are_named_and_not_counted():
    marks = [
        {"set": "s", "case": "c", "turn": turn, "mode": mode} for turn, mode in enumerate(["context", "skip"])
    ]
    turns = [turn(FIND), turn(FIND), turn(FIND)]
    report = report_of(recorded(turns, turns, EXACT | ANSWER, {"turns": marks}))
    assert {(item.turn, item.reason) for item in report.not_counted} == {
        (1, "context turn, not scored"),
        (2, "calls not checked"),
    }
    assert {kind.changes for kind in report.kinds if kind.kind == "calls swapped"} == {1}
    assert {kind.changes for kind in report.kinds if kind.kind == "answer emptied"} == {2}


@pytest.mark.parametrize(
    ("criteria", "reason"),
    [
        ({"final_response_match_v2": 0.5}, "left to final_response_match_v2"),
        (EXACT | {"final_response_match_v2": 0.5}, "answers: left to final_response_match_v2"),
    ],
)
def test_what_only_a_judge_would_notice_is_no_gap(criteria, reason):
    report = report_of(recorded([turn(FIND)], [turn(FIND)], criteria))
    assert reason in {item.reason for item in report.not_counted}
    assert report.left_out_metrics == ("final_response_match_v2",)
    assert not any(kind.gaps for kind in report.kinds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The bedroom light is off.", True),
        ("NA101 flies from Rome to Oslo.", True),
        ("De lamp in de kamer is uit.", False),
        ("Das Licht ist aus und der Flug auch.", False),
        ("Il volo è il primo di oggi.", False),
        ("Oslo 42", False),
        ("寝室の照明を消しました。", False),
    ],
)
def test_words_are_changed_in_english_only(text, expected):
    kinds = {mutant.kind for mutant in recorded([turn([], text)], [turn([], text)], ANSWER).mutants()}
    assert ("an invented promise" in kinds) is expected
    assert "answer emptied" in kinds


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_change_of_an_answer_is_another_text(text):
    case = recorded([turn([], text)], [turn([], text)], ANSWER)
    assert all(mutant.before == text != mutant.after for mutant in case.mutants())


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("How can I help you?", set()),
        ("How can I help you? It is open.", {"How can I help you? It is not open."}),
        ("It is open. Is it far?", {"It is not open. Is it far?"}),
        ("It is not open. Is it far?", {"It is open. Is it far?"}),
    ],
)
def test_a_statement_is_negated_and_a_question_is_not(text, negated):
    case = recorded([turn([], text)], [turn([], text)], ANSWER)
    assert {mutant.after for mutant in case.mutants() if mutant.kind == "answer negated"} == negated


def test_words_in_capitals_are_no_names():
    text = "The order of Ada with ID 7 is FINISHED for you."
    case = recorded([turn([], text)], [turn([], text)], ANSWER)
    names = [mutant.after for mutant in case.mutants() if mutant.kind == "another name"]
    assert names == [text.replace("Ada", "Avery")]


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        ("Order 7 is late. It comes on Monday. Anything else?", "Order 7 is late. Anything else?"),
        ("Order 7 comes on Monday.", None),
        ("Order 7 is late.", None),
    ],
)
def test_a_dropped_tool_response_takes_its_sentences_with_it(answer, rest):
    said = turn([("find", {"id": 7})], answer)
    response = {"name": "find", "response": {"day": "Monday", "late": True, "note": None}}
    said["intermediate_data"]["tool_responses"] = [response]
    changes = {mutant.kind: mutant for mutant in recorded([said], [said], ANSWER).mutants()}
    dropped = changes.get("tool response dropped")
    assert (dropped and dropped.after) == rest
    assert dropped is None or not dropped.turns[0].intermediate_data.tool_responses


@pytest.mark.parametrize("thoughts", ["score", "ignore"])
def test_a_response_with_thoughts_is_changed_as_it_is_scored(thoughts):
    said = turn([], "The light is on.")
    said["final_response"]["parts"].insert(0, {"text": "It is dark.", "thought": True})
    case = recorded([said], [said], ANSWER, {"thoughts": thoughts})
    changes = {mutant.kind: mutant for mutant in case.mutants()}
    assert {"answer emptied", "answer negated", "an invented promise"} <= changes.keys()
    assert ("dark" in changes["answer negated"].before) == (thoughts == "score")


def test_the_same_changes_are_chosen_each_time():
    calls = [("find", {"id": number}) for number in range(20)]
    case = recorded([turn(calls)], [turn(calls)], EXACT)
    first, again = ([(mutant.kind, mutant.before) for mutant in case.mutants(2)] for _ in range(2))
    assert first == again
    assert len([kind for kind, _ in first if kind == "argument changed"]) == 2
