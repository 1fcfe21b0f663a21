"""Answers of a judge on rubrics, read by google-adk and by us: alike with `as_adk`, and where not without."""

import asyncio

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from judge_cases import (
    ANSWERS,
    CALLS,
    WHOLE,
    failed,
    given,
    judged,
    lines,
    rubric,
    turn,
    verdicts,
)
from scripted_judge import ScriptedJudge

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from adk_judging import fulfilment_by_adk, judged_by_adk

from evaltui.core.metrics.judges.final_response import read_fulfilment_as_adk
from evaltui.core.metrics.judges.rubrics import HeldRubric

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL"),
    # google-adk makes the coroutines of a turn, then finds that the next turn has no rubrics.
    pytest.mark.filterwarnings("ignore:coroutine .*_evaluate_single_sample"),
]

TYPES = {ANSWERS: "FINAL_RESPONSE_QUALITY", CALLS: "TOOL_USE_QUALITY", WHOLE: "TRAJECTORY_QUALITY"}
NAMES = ["a", "b", "c", "d", "e"]

ids = st.sampled_from([*NAMES, "", "nobody"]).map("  ID: {} \n".format)
texts = st.sampled_from([*(f"text of {name}" for name in NAMES), "**Text  of A**", "“text of b”", "else"])
labels = st.sampled_from(["yes", "no", "unknown", "not yes", "No, never", "perhaps", ""])
blocks = st.builds(
    "{}{}Property: {}\n{}Rationale: {}\nVerdict: {}\n{}".format,
    st.lists(ids, max_size=2).map("".join),
    st.sampled_from(["", "\n", "Evidence: x\n"]),
    texts,
    st.sampled_from(["", "Evidence: y\n", "ID: e\n"]),
    st.sampled_from(["first", "second", ""]),
    labels,
    st.sampled_from(["", "\n", "  \n\n"]),
)
tidy = st.lists(blocks, min_size=1, max_size=4).map("".join)
odd_lines = st.sampled_from(
    [
        "Rationale: Rationale: ",
        "Rationale: more",
        "Verdict: Verdict: ",
        "Verdict: no",
        "Property: text of a",
        "ID: a",
    ]
)


@st.composite
def odd(draw):
    """Lines of which one is lost, and one more than fits."""
    found = draw(tidy).split("\n")
    del found[draw(st.integers(0, len(found) - 1))]
    found.insert(draw(st.integers(0, len(found))), draw(odd_lines))
    return "\n".join(found)


answers = st.one_of(tidy, tidy, odd(), st.sampled_from(["", "Fine.", verdicts(a="yes")]))


@examples(st.one_of(tidy, odd()))
def test_answers_are_read_as_by_adk(text):
    rubrics = [rubric(name) for name in NAMES]
    held = [HeldRubric(name, f"text of {name}", "the criterion") for name in NAMES]

    read = [(name, vote.score, vote.rationale) for name, vote in read_fulfilment_as_adk(text, held)]

    assert read == fulfilment_by_adk(text, rubrics)


def rubrics_of(name, ids):
    types = st.sampled_from([None, TYPES[name], TYPES[name], "OTHER"])
    rubrics = st.builds(rubric, st.sampled_from(ids), st.none() | st.just("text of c"), types)
    return st.lists(rubrics, max_size=2, unique_by=lambda one: one["rubric_id"])


def both(name, turns, script, *, samples, threshold=0.5, case_rubrics=(), rubrics=(), as_adk=True):
    shared = {"samples": samples, "threshold": threshold, "case_rubrics": case_rubrics}
    adk = judged_by_adk(name, turns, script, rubrics=rubrics, **shared)
    judge = ScriptedJudge(*(failed() if answer is None else answer for answer in script))
    asked = given(name, turns, criterion={"rubrics": rubrics}, as_adk=as_adk, thoughts=as_adk, **shared)
    return adk, asyncio.run(judged(asked, judge))


@pytest.mark.parametrize("name", [ANSWERS, CALLS, WHOLE])
@examples(data=st.data())
def test_verdicts_are_those_of_adk(name, data):
    turns = [
        turn(rubrics=data.draw(rubrics_of(name, ["d", "e"]))) for _ in range(data.draw(st.integers(1, 3)))
    ]
    samples = data.draw(st.integers(1, 3))
    script = data.draw(
        st.lists(answers | st.none(), min_size=len(turns) * samples, max_size=len(turns) * samples)
    )

    adk, ours = both(
        name,
        turns,
        script,
        samples=samples,
        threshold=data.draw(st.sampled_from([0.0, 0.5, 2 / 3, 1.0])),
        case_rubrics=data.draw(rubrics_of(name, ["b", "c"])),
        rubrics=data.draw(rubrics_of(name, ["a", "b"])),
    )

    if adk is None:
        assert (ours.score, ours.status.name in ("NOT_EVALUATED", "ERROR")) == (None, True)
        return
    assert (ours.score, ours.status.name) == (adk.overall_score, adk.overall_eval_status.name)
    for mine, theirs in zip(ours.per_invocation, adk.per_invocation_results, strict=True):
        assert (mine.score, mine.status.name) == (theirs.score, theirs.eval_status.name)
        if theirs.rubric_scores is not None:
            assert [(one.id, one.score, one.rationale) for one in mine.judgements] == [
                # Of a rubric without a verdict we keep the reasons with the votes.
                (one.rubric_id, one.score, one.rationale if one.score is not None else "")
                for one in theirs.rubric_scores
            ]


ONE = [turn()]
A_AND_B = [rubric("a"), rubric("b")]


def outcomes(script, *, turns=ONE, samples=1, name=ANSWERS, **fields):
    """Score and status of google-adk and of ours."""
    adk, ours = both(name, turns, script, samples=samples, as_adk=False, **fields)
    theirs = (None, "NOT_EVALUATED") if adk is None else (adk.overall_score, adk.overall_eval_status.name)
    return theirs, (ours.score, ours.status.name)


@pytest.mark.parametrize(
    ("what", "script", "adk", "ours"),
    [
        ("all is said", [lines(a="yes", b="no")], (0.5, "PASSED"), (0.5, "PASSED")),
        ("a rubric left out", [lines(a="yes")], (1.0, "PASSED"), (None, "NOT_EVALUATED")),
        ("a rubric left out, fails", [lines(a="no")], (0.0, "FAILED"), (None, "NOT_EVALUATED")),
        ("unknown", [lines(a="yes", b="unknown")], (0.5, "PASSED"), (None, "NOT_EVALUATED")),
        ("not yes", [lines(a="yes", b="not yes")], (1.0, "PASSED"), (None, "NOT_EVALUATED")),
        (
            "contradictory",
            [lines(a="yes") + "\n" + lines(a="no", b="yes")],
            (0.5, "PASSED"),
            (None, "NOT_EVALUATED"),
        ),
        (
            "one field short",
            [lines(a="yes", b="yes") + "\nRationale: z"],
            (None, "NOT_EVALUATED"),
            (1.0, "PASSED"),
        ),
        ("JSON", [verdicts(a="yes", b="yes")], (None, "NOT_EVALUATED"), (1.0, "PASSED")),
        ("nothing to read", ["Fine."], (None, "NOT_EVALUATED"), (None, "ERROR")),
        ("failed", [None], (None, "NOT_EVALUATED"), (None, "ERROR")),
    ],
)
def test_where_we_differ(what, script, adk, ours):
    assert outcomes(script, case_rubrics=[], rubrics=A_AND_B) == (adk, ours), what


def test_one_failed_sample_voids_the_turn_in_adk_only():
    yes = lines(a="yes", b="yes")

    assert outcomes([yes, None, yes], samples=3, rubrics=A_AND_B) == (
        (None, "NOT_EVALUATED"),
        (1.0, "PASSED"),
    )


def test_a_turn_without_a_verdict_is_passed_over_by_adk_only():
    script = [lines(a="yes", b="yes"), None]

    assert outcomes(script, turns=[turn(), turn()], rubrics=A_AND_B) == ((1.0, "PASSED"), (None, "ERROR"))


def test_earlier_turns_are_judged_by_the_rubrics_of_the_last_one_in_adk_only():
    kind = TYPES[ANSWERS]
    turns = [turn(rubrics=[rubric("d", type=kind)]), turn(rubrics=[rubric("e", type=kind)])]

    assert outcomes([lines(d="no"), lines(e="yes")], turns=turns) == ((1.0, "PASSED"), (0.5, "PASSED"))


def test_rubrics_without_a_type_are_dropped_by_adk_only():
    script = [lines(a="no", b="yes")]

    assert outcomes(script, case_rubrics=[rubric("a"), rubric("b", type=TYPES[ANSWERS])], threshold=1.0) == (
        (1.0, "PASSED"),
        (0.5, "FAILED"),
    )
    assert outcomes(script, case_rubrics=A_AND_B, threshold=1.0) == (
        (None, "NOT_EVALUATED"),
        (0.5, "FAILED"),
    )


def test_one_turn_without_rubrics_stops_adk_only():
    turns = [turn(), turn(rubrics=[rubric("d", type=TYPES[ANSWERS])])]

    assert outcomes([lines(d="yes")], turns=turns) == ((None, "NOT_EVALUATED"), (1.0, "PASSED"))


def test_the_same_rubric_in_two_places_stops_adk_only():
    assert outcomes(
        [lines(a="yes")], rubrics=[rubric("a")], case_rubrics=[rubric("a", type=TYPES[ANSWERS])]
    ) == (
        (None, "NOT_EVALUATED"),
        (1.0, "PASSED"),
    )


def test_a_conversation_is_judged_by_the_rubrics_of_its_last_turn_in_adk_only():
    kind = TYPES[WHOLE]
    turns = [turn(rubrics=[rubric("d", type=kind)]), turn(rubrics=[rubric("e", type=kind)])]

    assert outcomes([lines(d="no", e="yes")], turns=turns, name=WHOLE, threshold=1.0) == (
        (1.0, "PASSED"),
        (0.5, "FAILED"),
    )
