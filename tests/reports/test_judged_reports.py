"""What judges found, in every report."""

import csv
import io
from dataclasses import replace
from xml.etree import ElementTree as ET

from example_runs import case, json_of, report, said
from hypothesis import given
from hypothesis import strategies as st
from judged_metrics import (
    AGREES,
    ANSWERS,
    DISAGREES,
    INVENTED,
    LEFT_OUT,
    POLITE,
    RATINGS,
    RUBRICS,
    SENTENCES,
    SHORT,
    SPLIT,
    SUPPORTED,
    WHOLE,
    judged,
    judged_metric,
)

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.judgement import Evidence, JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import Call, ErrorInfo, MetricResult, Status, TurnResult, worst_status
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.reports.csv_report import csv_report
from evaltui.reports.details import case_details
from evaltui.reports.junit import junit_report
from evaltui.text.lines import cells, draw

FINE = TurnResult("unspecified", (), ResponseDiff(None, "Hello."))
SIMULATED = TurnResult(
    "simulated",
    align_calls([], [Call("find_bag", {"id": 7})]),
    ResponseDiff(None, "It is in Rome."),
    user="Where is my bag?",
)


def judged_case(*metrics, turns=(FINE, FINE), **fields):
    status = worst_status(metric.status for metric in metrics)
    actual = [said("hello")] * len(turns)
    one = case("night", status, metrics=metrics, turns=turns, actual=actual, **fields)
    return replace(one, repeats=tuple(replace(repeat, turns=turns) for repeat in one.repeats))


def details(*metrics, width=80, **fields):
    lines = case_details(judged_case(*metrics, **fields), width)
    return [draw(line, color=False) for line in lines]


def test_rubrics_with_votes_and_reasons():
    assert details(judged_metric(RUBRICS, [SHORT], [POLITE, SHORT, LEFT_OUT, SPLIT]))[2:] == [
        "  ✗ rubric_based_final_response_quality_v1  0.83 ≥ 0.80",
        "      judged by gemini-2.5-flash, 5 of 5 answered",
        "",
        "  turn 2  calls unspecified (scored as no calls)",
        "    user      hello",
        "    ✗ rubric_based_final_response_quality_v1  0.67 < 0.80  2 of 4 yes",
        "      ✗ no 1/5      polite  Says please and thank you",
        "                    It shouts\\x1b[2J at the user.",
        "                    ✓ yes  It is so.",
        "      ✓ yes 5/5     short  Is at most two sentences",
        "      – not judged  on_topic  Stays with the thermostat",
        "                    TimeoutError: no response within 60 s",
        "      ✓ yes 3/5     kind  Is kind",
        "                    It greets.",
        "                    ✗ no  It does not greet.",
    ]


def test_answers_sentences_and_ratings():
    rated = Judgement("", "the answer", 3.0, "So so.", votes=(Vote(3.0, "So so."), Vote(3.0, "Dry.")))
    lines = details(
        judged_metric(ANSWERS, [DISAGREES]),
        judged_metric(SENTENCES, [SUPPORTED, INVENTED]),
        judged_metric(RATINGS, [rated], threshold=4.0),
        turns=(FINE,),
    )
    assert lines[lines.index("    user      hello") + 1 :] == [
        "    response  + no response expected  Hello.",
        "    ✗ final_response_match_v2  0.00 < 0.80  votes 1/5",
        "      ✗ invalid  19 is not 21.",
        "      ✓ valid    Both are cold.",
        "    ✗ hallucinations_v1  0.50 < 0.80  1 of 2 supported",
        "      ✓ supported      The kitchen is heated.",
        "      ✗ contradictory  It is 30 °C there.",
        "                       The thermostat says 19.",
        '                       contradicting  {"degrees": 19}',
        "    ✗ response_evaluation_score  3.00 < 4.00  votes 3 3",
        "      ✗ 3  So so.",
    ]


def test_turns_that_nobody_failed_are_not_shown_and_what_passed_is_a_line():
    lines = details(judged_metric(RUBRICS, [SHORT], [POLITE]), judged_metric(ANSWERS, [AGREES], [AGREES]))
    assert not any("turn 1" in line for line in lines[1:])
    assert "    ✓ final_response_match_v2  1.00  votes 5/5" in lines
    assert not any("valid" in line for line in lines)


def test_the_whole_conversation_is_no_turn():
    lines = details(judged_metric(WHOLE, [], [judged("", "", 0, 2, against="Never booked.")]))
    assert lines[-4:] == [
        "",
        "  whole conversation",
        "    ✗ multi_turn_task_success_v1  0.00 < 0.80  votes 0 0",
        "      ✗ 0  Never booked.",
    ]
    assert not any(line.startswith("  turn") for line in lines)


def test_a_turn_that_failed_for_another_reason_than_what_was_found_says_why():
    metric = judged_metric(RATINGS, [Judgement("", "the answer", 5.0)], threshold=4.0)
    silent = replace(metric.per_invocation[0], status=Status.FAILED, reason="no response text")
    lines = details(replace(metric, status=Status.FAILED, per_invocation=(silent,)), turns=(FINE,))
    assert lines[-1] == "      no response text"


def test_what_was_left_open_is_shown():
    unjudged = judged_metric(RUBRICS, [SHORT, LEFT_OUT], [SHORT], status=Status.NOT_EVALUATED, reason="open")
    lines = details(unjudged)
    assert "  – rubric_based_final_response_quality_v1  1.00 ≥ 0.80  open" in lines
    assert "      – not judged  on_topic  Stays with the thermostat" in lines


def test_a_judge_that_did_not_answer():
    error = ErrorInfo("ClientError", "401 UNAUTHENTICATED", kind=None)
    failed = MetricResult(ANSWERS, None, 0.8, Status.ERROR, error=error, judge=JudgedBy("gemini", "p/1", 5))
    lines = details(failed)
    assert lines[0] == "  final_response_match_v2 not judged by gemini: ClientError: 401 UNAUTHENTICATED"
    assert "      judged by gemini, 0 of 5 answered" in lines


def test_a_conversation_with_a_simulated_user():
    metric = judged_metric(RUBRICS, [POLITE])
    lines = details(metric, turns=(SIMULATED,), stopped="stopped at the limit of 1 turn")
    assert lines[lines.index("  turn 1  simulated user") :][:4] == [
        "  turn 1  simulated user",
        "    user      Where is my bag?",
        "    → find_bag  id 7",
        "    response  → It is in Rome.",
    ]
    assert lines[-2:] == ["  whole conversation", "    ended     stopped at the limit of 1 turn"]


texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["x" * 200, "日本語" * 30, "a\n\tb\x1b"]
)
votes = st.builds(Vote, st.sampled_from([None, 0.0, 1.0, 3.0]), texts, texts, texts)
judgements = st.builds(
    Judgement,
    texts,
    texts,
    st.sampled_from([None, 0.0, 1.0, 3.0]),
    texts,
    st.lists(st.builds(Evidence, texts, texts), max_size=2).map(tuple),
    st.lists(votes, max_size=3).map(tuple),
)


@given(
    st.sampled_from([RUBRICS, ANSWERS, SENTENCES, RATINGS, WHOLE, "per_turn_user_simulator_quality_v1"]),
    st.lists(judgements, max_size=3),
    st.integers(40, 120),
)
def test_anything_that_a_judge_may_say_fits_every_report(name, found, width):
    metric = replace(judged_metric(name, found), status=Status.FAILED)
    lines = case_details(judged_case(metric, turns=(FINE,)), width)
    assert all(cells(line) <= width for line in lines)
    assert not {letter for line in lines for text, _ in line for letter in text if letter < " "}
    run = report(judged_case(metric, turns=(FINE,)))
    ET.fromstring("".join(junit_report(run)).encode("utf-8"))
    assert len(json_of(run)["cases"]) == 1
    assert len(list(csv.DictReader(io.StringIO("".join(csv_report(run)), newline="")))) == 1


def test_json_keeps_all_of_it():
    run = report(judged_case(judged_metric(ANSWERS, [AGREES], [DISAGREES], lost=1)))
    (entry,) = json_of(run)["cases"][0]["metrics"]
    assert entry["judge"] == {
        "model": "gemini-2.5-flash",
        "prompt": "final_response_match/1",
        "asked": 2,
        "answered": 1,
        "replayed": 0,
        "unasked": 0,
    }
    (found,) = entry["per_turn"][1]["judgements"]
    assert (found["id"], found["subject"], found["score"], found["rationale"]) == (
        "",
        "19 °C",
        0.0,
        "19 is not 21.",
    )
    assert found["votes"][0] == {
        "score": 1.0,
        "label": "valid",
        "rationale": "Both are cold.",
        "problem": None,
    }
    assert found["votes"][4] == {
        "score": None,
        "label": "",
        "rationale": "",
        "problem": "TimeoutError: no response within 60 s",
    }


def test_json_keeps_evidence():
    run = report(judged_case(judged_metric(SENTENCES, [INVENTED]), turns=(FINE,)))
    (entry,) = json_of(run)["cases"][0]["repeats"][0]["metrics"]
    (found,) = entry["per_turn"][0]["judgements"]
    assert found["evidence"] == [{"kind": "contradicting", "text": '{"degrees": 19}'}]


def test_json_tells_what_a_simulated_user_said_and_what_stopped_it():
    one = judged_case(judged_metric(RUBRICS, [POLITE]), turns=(SIMULATED,), stopped="the user was done")
    (told,) = json_of(report(one))["cases"]
    assert told["stopped"] == "the user was done"
    (turn,) = told["turns"]
    assert (turn["expectation"], turn["user"]) == ("simulated", "Where is my bag?")


def test_junit_says_why():
    root = ET.fromstring(
        "".join(junit_report(report(judged_case(judged_metric(RUBRICS, [SHORT], [POLITE])))))
    )
    failure = root.find(".//failure")
    assert failure.get("message") == (
        "turn 2: rubric polite: no (4 of 5 votes): It shouts\\x1b[2J at the user"
    )
    assert "✗ no 1/5  polite  Says please and thank you" in failure.text


def csv_rows(*metrics, turns=(FINE, FINE)):
    text = "".join(csv_report(report(judged_case(*metrics, turns=turns))))
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_a_line_for_everything_that_was_judged():
    first, second = csv_rows(judged_metric(RUBRICS, [SHORT], [POLITE, LEFT_OUT], lost=1))
    assert first["judge"] == second["judge"] == "gemini-2.5-flash, 2 of 3 answered"
    assert first["judged"] == "short: yes 5/5 (It is so.)"
    assert second["judged"].splitlines() == [
        "polite: no 1/5 (It shouts\\x1b[2J at the user.)",
        "on_topic: not judged (TimeoutError: no response within 60 s)",
    ]
