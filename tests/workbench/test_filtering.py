"""The filter of the list: words, outcomes, and ten thousand cases."""

import time
from pathlib import Path

import pytest

from evaltui.files.set_entry import CaseInfo, SetEntry
from evaltui.workbench.filtering import Filter, Filtered
from evaltui.workbench.state import CaseKey, Selection
from evaltui.workbench.workbench import Workbench

LIGHTS, HEAT = Path("lights.evalset.json"), Path("heat.evalset.json")
SETS = (
    SetEntry(
        LIGHTS,
        "lights",
        "",
        "agent directory",
        "eval set",
        (
            CaseInfo("turn_off", 1, "Turn off the light"),
            CaseInfo("movie_mode", 1, "We watch a movie"),
            CaseInfo("ÜBER_ALL", 1, "Straße"),
        ),
    ),
    SetEntry(HEAT, "heat", "", "evals/", "eval set", (CaseInfo("night", None, "turn the heating down"),)),
)
STATUSES = {
    CaseKey(LIGHTS, "turn_off"): "FAILED",
    CaseKey(LIGHTS, "movie_mode"): "PASSED",
    CaseKey(HEAT, "night"): "ERROR",
}


def kept(text, statuses=STATUSES, also=None):
    filtered = Filtered()
    filtered.update(text, SETS, lambda key: statuses.get(key, "NOT_RUN"), also)
    return {path.name.partition(".")[0]: numbers for path, numbers in filtered.kept.items()}


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
    ],
)
def test_every_word_must_be_found_and_one_of_the_outcomes(text, expected):
    assert kept(text) == expected


def test_a_case_can_stay_although_its_outcome_is_another_now():
    assert kept("fail", also=CaseKey(LIGHTS, "movie_mode")) == {"lights": [0, 1]}


@pytest.mark.parametrize("text", ["", "   ", "\t"])
def test_nothing_typed_is_no_filter(text):
    assert not Filter.parse(text)
    assert kept(text) == {}


async def test_the_selection_moves_to_what_is_kept_and_stays_where_it_can(write_agent, write_set):
    folder = write_agent("root_agent = print")
    path = write_set(folder, one=("hello", "x"), two=("bye", "y"), three=("hello again", "z"))
    workbench = Workbench(folder)
    await workbench.open()
    workbench.set_filter("bye")
    assert workbench.selection == Selection(path, "two")
    workbench.set_filter("hello")
    assert workbench.selection == Selection(path, "one")
    workbench.select(Selection(path, "three"))
    workbench.set_filter("again")
    assert workbench.selection == Selection(path, "three")
    workbench.set_filter("nobody says this")
    assert workbench.selection == Selection(path, "three")
    assert workbench.filtered.count == 0
    workbench.step_back()
    assert not workbench.filtered.filter


def test_ten_thousand_cases_are_filtered_at_once():
    cases = tuple(CaseInfo(f"case_{n}", 1, f"please do number {n} " * 5) for n in range(10_000))
    filtered, sets = Filtered(), (SetEntry(LIGHTS, "lights", "", "", "eval set", cases),)
    filtered.update("warm", sets, lambda key: "PASSED")
    began = time.perf_counter()
    filtered.update("number 99 pass", sets, lambda key: "PASSED")
    # A tenth of a second is the bar; a hundred times that is a mistake, not a slow machine.
    assert time.perf_counter() - began < 1
    assert filtered.count == 10_000 - sum("99" not in str(n) for n in range(10_000))
