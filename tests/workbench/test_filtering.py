"""The filter of the list: its language, outcomes and scores, and ten thousand cases."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, MetricResult, Status
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.workbench.cases import set_editing
from evaltui.workbench.cases.case_list import LANGUAGE, Filter, Filtered, Scores, _pattern, scores_of
from evaltui.workbench.state import Selection
from tests.listed_cases import listed_case as case

LIGHTS, HEAT = "lights.evalset.json", "heat.evalset.json"


SETS = (
    EvalSetFile(
        Path(LIGHTS),
        LIGHTS,
        "lights",
        "",
        "agent directory",
        "eval set",
        (
            case("turn_off", 1, ("Turn off the light",), ("set_light",)),
            case("movie_mode", 2, ("We watch a movie", "At 20:15"), ("set_light", "play")),
            case("ÜBER_ALL", 1, ("Straße",)),
        ),
    ),
    EvalSetFile(
        Path(HEAT), HEAT, "heat", "", "evals/", "eval set", (case("night", None, ("turn the heating down",)),)
    ),
)
STATUSES = {
    CaseId(LIGHTS, "turn_off"): "FAILED",
    CaseId(LIGHTS, "movie_mode"): "PASSED",
    CaseId(HEAT, "night"): "ERROR",
}


SCORES = {
    CaseId(LIGHTS, "turn_off"): Scores(
        0.25, {"tool_trajectory_avg_score": 0.25, "response_match_score": 0.9}
    ),
    CaseId(LIGHTS, "movie_mode"): Scores(1.0, {"tool_trajectory_avg_score": 1.0}),
}


def kept(text, statuses=STATUSES, also=None):
    filtered = Filtered()
    filtered.update(text, SETS, lambda key: statuses.get(key, "NOT_RUN"), also, lambda cases: SCORES)
    return {path.partition(".")[0]: numbers for path, numbers in filtered.matching.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("turn", {"lights": [0], "heat": [0]}),
        ("TURN light", {"lights": [0]}),
        ("movie", {"lights": [1]}),
        ("über strasse", {"lights": [2]}),
        ("fail", {"lights": [0]}),
        ("fail error", {"lights": [0], "heat": [0]}),
        ("passed watch", {"lights": [1]}),
        ("fail movie", {}),
        ("flaky", {}),
        ("[", {}),
        ("not_run", {"lights": [2]}),
        ("-fail", {"lights": [1, 2], "heat": [0]}),
        ("-fail -error", {"lights": [1, 2]}),
        ('"fail"', {}),
        ('"the light"', {"lights": [0]}),
        ('"light the"', {}),
        ('"the ligh', {"lights": [0]}),
        ('-"the light" light', {}),
        ("id:t*f", {"lights": [0]}),
        ("id:t*", {"lights": [0]}),
        ("id:*o*", {"lights": [0, 1]}),
        ("id:movie_mod?", {"lights": [1]}),
        ("id:turn", {"lights": [0]}),
        ("text:turn", {"lights": [0], "heat": [0]}),
        ('text:"turn off"', {"lights": [0]}),
        ("-text:turn", {"lights": [1, 2]}),
        ("20:15", {"lights": [1]}),
        ("tool:set_light", {"lights": [0, 1]}),
        ("tool:set_light -tool:play", {"lights": [0]}),
        ("tool:PLAY", {"lights": [1]}),
        ("set:heat", {"heat": [0]}),
        ("-set:h*", {"lights": [0, 1, 2]}),
        ("score<0.8", {"lights": [0]}),
        ("score>=0.25", {"lights": [0, 1]}),
        ("-score<0.8", {"lights": [1, 2], "heat": [0]}),
        ("score=1", {"lights": [1]}),
        ("tool_trajectory<1", {"lights": [0]}),
        ("response_match_score>.5 fail", {"lights": [0]}),
        ("nobody_knows<1", {}),
        ("set:lights fail score<0.8 tool:set* turn", {"lights": [0]}),
    ],
)
def test_every_word_must_be_found_and_one_of_the_outcomes(text, expected):
    assert kept(text) == expected


def test_a_case_can_stay_although_its_outcome_is_another_now():
    assert kept("fail", also=CaseId(LIGHTS, "movie_mode")) == {"lights": [0, 1]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("score<", "score< needs a number, e.g. score<0.8"),
        ("score<high", "score<high needs a number, e.g. score<0.8"),
        ("tols:book", "Unknown filter 'tols'. Did you mean tool?"),
        ("id:", "id: needs a text, e.g. id:late"),
    ],
)
def test_what_cannot_be_understood_is_said_and_counts_for_nothing(text, says):
    filtered = Filtered()
    filtered.update(f"turn {text}", SETS, lambda key: "PASSED")
    assert filtered.problem == says
    assert filtered.count == 2
    assert not Filter.parse(text)


@given(st.text(alphabet='ab :"*?<>=-.0fil[\\', max_size=15))
def test_whatever_is_typed_is_a_filter(text):
    Filtered().update(text, SETS, lambda key: "PASSED", None, SCORES.get)
    assert all(len(problem) > 10 for problem in Filter.parse(text).problems)


@pytest.mark.parametrize("form", [form for form, _ in LANGUAGE])
def test_what_the_readme_lists_is_understood(form):
    assert Filter.parse(form)
    assert not Filter.parse(form).problems


def test_the_score_that_decides_is_that_of_the_first_metric_with_the_verdict():
    metrics = tuple(
        MetricResult(name, score, 0.5, status)
        for name, score, status in (
            ("a", 1.0, Status.PASSED),
            ("b", None, Status.FAILED),
            ("c", 0.25, Status.FAILED),
        )
    )
    result = CaseResult("c", Status.FAILED, metrics)
    assert scores_of(result) == Scores(0.25, {"a": 1.0, "c": 0.25})


@pytest.mark.parametrize("text", ["", "   ", "\t"])
def test_nothing_typed_is_no_filter(text):
    assert not Filter.parse(text)
    assert kept(text) == {}


@pytest.fixture
async def three_cases(write_agent, write_set, open_workbench):
    """A workbench with a set of three cases, and its file."""
    folder = write_agent("root_agent = print")
    path = write_set(folder, one=("hello", "x"), two=("bye", "y"), three=("hello again", "z"))
    workbench = await open_workbench(folder)
    return workbench, path


async def test_the_selection_moves_to_what_is_kept_and_stays_where_it_can(three_cases):
    workbench, path = three_cases
    workbench.navigation.set_filter("bye")
    assert workbench.navigation.selection == Selection(path.name, "two")
    workbench.navigation.set_filter("hello")
    assert workbench.navigation.selection == Selection(path.name, "one")
    workbench.navigation.select(Selection(path.name, "three"))
    workbench.navigation.set_filter("again")
    assert workbench.navigation.selection == Selection(path.name, "three")
    workbench.navigation.set_filter("nobody says this")
    assert workbench.navigation.selection == Selection(path.name, "three")
    assert workbench.navigation.filtered.count == 0
    workbench.step_back()
    assert not workbench.navigation.filtered.filter


def test_a_score_is_asked_only_of_the_cases_that_the_words_leave():
    cases = tuple(case(f"case_{n}", 1, (f"please do number {n}",), ("book",)) for n in range(10_000))
    filtered, sets = Filtered(), (EvalSetFile(Path(LIGHTS), LIGHTS, "lights", "", "", "eval set", cases),)
    asked = []

    def scores(cases):
        asked.extend(cases)
        return dict.fromkeys(cases, Scores(0.5))

    filtered.update("number 99 pass tool:book score<1 -id:x*", sets, lambda key: "PASSED", None, scores)
    assert filtered.count == 10_000 - sum("99" not in str(n) for n in range(10_000))
    assert len(asked) == filtered.count


@given(st.text(alphabet="ab*?", min_size=1, max_size=6), st.text(alphabet="ab\n", max_size=6))
@example("ab*", "ab")
@example("a*b", "ab")
@example("ab*ba", "aba")
@example("a?", "a\n")
def test_stars_and_question_marks_stand_for_what_the_help_says(typed, value):
    wild = "*" in typed or "?" in typed
    plain = "".join({"*": ".*", "?": "."}.get(char, char) for char in typed)
    expected = re.fullmatch(plain, value, re.DOTALL) if wild else typed in value

    assert bool(_pattern(typed)(value)) is bool(expected)


def test_many_stars_are_not_tried_in_every_way():
    # Tried in every way this would not end before the time-out of the test.
    assert not _pattern("*e*e*e*e*e*e*e*e*e*q")("e" * 20_000)
    assert _pattern("*e*e*e*e*e*e*e*e*e*q")("e" * 20_000 + "q")


async def test_what_a_filter_keeps_follows_the_cases(three_cases):
    workbench, path = three_cases
    workbench.navigation.set_filter("hello")
    assert workbench.navigation.filtered.matching == {path.name: [0, 2]}
    workbench.navigation.select(Selection(path.name, "one"))
    set_editing.duplicate(workbench.editing)
    assert workbench.navigation.filtered.matching == {path.name: [0, 1, 3]}
    workbench.editing.undo()
    assert workbench.navigation.filtered.matching == {path.name: [0, 2]}
