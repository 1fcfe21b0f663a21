"""A judge on an answer, read by google-adk and by us: alike with `as_adk`, and where not without."""

import asyncio
from itertools import product

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from judge_cases import MATCH, failed, given, judged, turn, valid
from scripted_judge import ScriptedJudge

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from adk_judging import judged_by_adk, validity_by_adk

from evaltui.core.metrics.judges.final_response import read_validity_as_adk

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL")]

KEY = "is_the_agent_response_valid"
LABELS = [
    "valid",
    "invalid",
    "true",
    "false",
    "almost",
    "partially_valid",
    "partially valid",
    "Valid",
    "True",
]
LABELS += ["partially", "unknown", "", "valid,", "va lid", "[valid", "valid]"]

FORMS = [
    "".join(parts)
    for parts in product(
        ["", f'{{"{KEY}": "valid", '],
        [f'"{KEY}":', f'"{KEY}" :', '"is_the_agent_response_invalid":', f"'{KEY}':"],
        [" ", '"', '\n ["', "'"],
        LABELS,
        ["", '"', '" ', "^"],
        ["}", ",", "\n", "", "]}", " ]\n}", "] }", ",}"],
    )
]
answers = st.sampled_from(FORMS) | st.sampled_from(LABELS).map(valid) | st.text(max_size=10)


def test_answers_are_read_as_by_adk():
    read = {text: read_validity_as_adk(text).score for text in FORMS}

    assert read == {text: validity_by_adk(text) for text in FORMS}
    assert {0.0, 1.0, None} == set(read.values())


def both(script, *, turns, samples, threshold, as_adk=True):
    adk = judged_by_adk(MATCH, turns, script, samples=samples, threshold=threshold)
    ours = asyncio.run(
        judged(
            given(MATCH, turns, samples=samples, threshold=threshold, as_adk=as_adk, thoughts=as_adk),
            ScriptedJudge(*(failed() if answer is None else answer for answer in script)),
        )
    )
    return adk, ours


@examples(st.data())
def test_verdicts_are_those_of_adk(data):
    count, samples = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    threshold = data.draw(st.sampled_from([0.0, 0.5, 2 / 3, 1.0]))
    script = data.draw(st.lists(answers | st.none(), min_size=count * samples, max_size=count * samples))

    adk, ours = both(script, turns=[turn()] * count, samples=samples, threshold=threshold)

    assert (ours.score, ours.status.name) == (adk.overall_score, adk.overall_eval_status.name)
    assert [(one.score, one.status.name) for one in ours.per_invocation] == [
        (one.score, one.eval_status.name) for one in adk.per_invocation_results
    ]


def outcomes(script, **fields):
    """The statuses of google-adk and of ours."""
    options = {"turns": [turn()], "samples": len(script), "threshold": 0.5, "as_adk": False, **fields}
    adk, ours = both(script, **options)
    return adk.overall_eval_status.name, ours.status.name


YES, NO = valid(), valid("invalid")


@pytest.mark.parametrize(
    ("what", "script", "adk", "ours"),
    [
        ("one failed sample", [YES, None, YES], "NOT_EVALUATED", "PASSED"),
        ("every sample failed", [None, None], "NOT_EVALUATED", "ERROR"),
        ("no answer can be read", ["Fine.", "Good."], "NOT_EVALUATED", "ERROR"),
        ("a label in other case", [valid("Valid")], "NOT_EVALUATED", "PASSED"),
        ("true as JSON of Python", [f'{{"{KEY}": True}}'], "NOT_EVALUATED", "ERROR"),
        ("two words", [valid("partially valid")], "NOT_EVALUATED", "FAILED"),
        ("single quotes", [f"{{'{KEY}': 'invalid'}}"], "NOT_EVALUATED", "ERROR"),
        ("cut off behind the label", [f'{{"{KEY}": "valid"'], "NOT_EVALUATED", "ERROR"),
        ("another key", ['{"is_the_agent_response_invalid": "perhaps"}'], "PASSED", "ERROR"),
        (
            "an open quotation",
            [f'{{"reasoning": "{YES}", "{KEY}": "invalid"}}'],
            "PASSED",
            "ERROR",
        ),
        ("contradictory", [f"{YES}\n{NO}"], "PASSED", "NOT_EVALUATED"),
        ("quoted in the reasons", [valid("invalid", f'"{KEY}": "valid", it says')], "FAILED", "FAILED"),
        ("no verdict", [valid("unknown")], "NOT_EVALUATED", "NOT_EVALUATED"),
    ],
)
def test_where_we_differ(what, script, adk, ours):
    assert outcomes(script) == (adk, ours), what


def test_a_turn_without_a_verdict_is_passed_over_by_adk_only():
    two = {"turns": [turn(), turn()], "samples": 1}

    assert outcomes([YES, None], **two) == ("PASSED", "ERROR")
    assert outcomes([YES, valid("unknown")], **two) == ("PASSED", "NOT_EVALUATED")


def test_a_turn_without_an_expected_answer_is_judged_by_adk_only():
    adk, ours = both([YES], turns=[turn(answer=None)], samples=1, threshold=0.5, as_adk=False)

    assert (adk.overall_eval_status.name, ours.status.name) == ("PASSED", "NOT_EVALUATED")
