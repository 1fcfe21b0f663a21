"""A set is read a case at a time, and nothing of what is wrong with it is lost."""

import json
from collections import Counter

import pytest

from evaltui.files.eval_set_file import read_eval_set_file
from evaltui.files.eval_sets import read_eval_set
from evaltui.files.reading_apart import give_back
from evaltui.workbench.documents import Documents

TURN = {"user_content": {"role": "user", "parts": [{"text": "hello"}]}}
GOOD = {"conversation": [TURN]}
BROKEN = {"conversation": [{"user_content": 1}]}
ODD = {"conversation": [{"user_content": {"role": "usr", "parts": []}}]}


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
    whole, parts = read_eval_set(path), read_eval_set_file(path)
    assert Counter(parts.problems) == Counter(whole.problems)
    assert (parts.eval_set is None) == (whole.eval_set is None)
    if whole.eval_set and parts.eval_set:
        assert list(parts.cases) == whole.eval_set.eval_cases
        assert parts.eval_set.description == whole.eval_set.description


def test_an_opened_set_makes_the_model_that_is_asked_for(tmp_path):
    opened = Documents().open(write(tmp_path, [GOOD, ODD]))
    assert opened.eval_set is not None
    assert opened.eval_set.eval_cases == []
    case = opened.case("case 1")
    assert case is not None
    assert case.eval_id == "case 1"
    assert opened.case("case 9") is None


def test_memory_can_be_given_back_wherever_this_runs():
    give_back()
