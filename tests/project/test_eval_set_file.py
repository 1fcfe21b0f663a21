"""A set is read a case at a time, and nothing of what is wrong with it is lost."""

import json
from collections import Counter

import pytest
from eval_data import make_turn

from evaltui.project.eval_set_file import read_eval_set_file, stamp_of, validated
from evaltui.project.eval_sets import read_eval_set
from evaltui.workbench.agent.background import return_memory

TURN = make_turn("hello")
GOOD = {"conversation": [TURN]}
BROKEN = {"conversation": [{"user_content": 1}]}
ODD = {"conversation": [{"user_content": {"role": "usr", "parts": []}}]}


def read(path):
    return read_eval_set_file(path, "", path.parent)


def write(folder, cases, **others):
    path = folder / "large.evalset.json"
    named = [{"eval_id": f"case {number}", **case} for number, case in enumerate(cases)]
    path.write_text(json.dumps({"eval_set_id": "large", "eval_cases": named, **others}, indent=1))
    return path


@pytest.mark.parametrize(
    ("cases", "others"),
    [
        ([], {}),
        ([GOOD] * 5, {"description": "all of them"}),
        ([GOOD] * 5, {"evalSetId": "twice"}),
        ([GOOD, ODD, GOOD, ODD, GOOD], {}),
        ([GOOD, GOOD, BROKEN, GOOD, ODD], {}),
        ([GOOD] * 3 + [{**GOOD, "eval_id": "case 0"}], {}),
        ([GOOD], {"eval_cases": "none"}),
    ],
)
def test_it_finds_what_the_whole_set_has(tmp_path, cases, others):
    path = write(tmp_path, cases, **others)
    whole, parts = read_eval_set(path), validated(read(path))
    assert Counter(parts.problems) == Counter(whole.problems)
    assert (parts.eval_set is None) == (whole.eval_set is None)
    if whole.eval_set and parts.eval_set:
        assert [case.model() for case in parts.cases] == whole.eval_set.eval_cases
        assert parts.eval_set.description == whole.eval_set.description


def test_an_opened_set_makes_the_model_that_is_asked_for(tmp_path):
    file = validated(read(write(tmp_path, [GOOD, ODD])))
    assert file.eval_set is not None
    assert file.eval_set.eval_cases == []
    case = file.case("case 1")
    assert case is not None
    assert case.model().eval_id == "case 1"
    assert file.case("case 9") is None


def test_no_case_of_a_set_is_run_before_it_is_validated_or_when_it_has_errors(tmp_path):
    file = read(write(tmp_path, [GOOD, BROKEN]))
    assert [case.eval_id for case in file.cases] == ["case 0", "case 1"]
    assert not file.is_validated
    assert file.case("case 0") is None
    assert validated(file).case("case 0") is None


def test_cases_that_are_the_same_are_not_looked_at_again(tmp_path):
    before = validated(read(write(tmp_path, [GOOD, ODD, GOOD])))
    path = write(tmp_path, [GOOD, BROKEN, GOOD])
    again = read_eval_set_file(path, "", tmp_path, before)
    assert [one is other for one, other in zip(again.cases, before.cases, strict=True)] == [True, False, True]
    assert again.cases[1].problems is None
    assert again.stamp == stamp_of(path)
    assert len(validated(again).errors) == 1


def test_memory_can_be_given_back_wherever_this_runs():
    return_memory()
