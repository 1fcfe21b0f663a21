"""Where a place of a document is after it was edited."""

import copy
import json

import pytest

from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import Move, Put, Remove
from evaltui.workbench.unapplied import followed

DATA = {
    "cases": [
        {"eval_id": "a", "turns": [{"said": "hi"}, {"said": "hi"}]},
        {"eval_id": "b", "turns": [{"said": "bye", "args": {"x": 1, "y": [1, 2]}}]},
    ]
}
AT = ("cases", 1, "turns", 0, "args", "y")


def changed(change):
    data = copy.deepcopy(DATA)
    change(data["cases"])
    return data


def rename_key(cases):
    cases[1]["turns"][0]["args"] = {"x": 1, "z": [1, 2]}


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (lambda cases: None, AT),
        (lambda cases: cases.reverse(), ("cases", 0, *AT[2:])),
        (lambda cases: cases.insert(0, {"eval_id": "new"}), ("cases", 2, *AT[2:])),
        (lambda cases: cases.pop(0), ("cases", 0, *AT[2:])),
        (lambda cases: cases.pop(1), None),
        (lambda cases: cases[1].update(eval_id="renamed"), AT),
        (lambda cases: cases[1]["turns"].insert(0, {"said": "first"}), (*AT[:3], 1, *AT[4:])),
        (lambda cases: cases[1]["turns"].append({"said": "last"}), AT),
        (lambda cases: cases[1]["turns"][0].update(said="other"), AT),
        (lambda cases: cases[1]["turns"][0]["args"].pop("x"), AT),
        (lambda cases: cases[1]["turns"][0]["args"].pop("y"), None),
        (lambda cases: cases[1]["turns"].clear(), None),
        (rename_key, (*AT[:5], "z")),
    ],
)
def test_a_place_is_found_again(change, after):
    assert followed(DATA, changed(change), AT) == after


def test_what_is_not_there_yet_stays_where_it_would_be():
    at = ("cases", 1, "session", "user")
    assert followed(DATA, changed(lambda cases: cases.pop(0)), at) == ("cases", 0, "session", "user")


def test_of_a_large_set_only_cases_that_changed_are_looked_into(monkeypatch):
    cases = [{"eval_id": f"case {number}", "turns": ["a", "b"]} for number in range(50)]
    document = JsonDocument(json.dumps({"eval_cases": cases}))
    old = document.value
    document = document.edited([Put(("eval_cases", 20, "turns", 0), "new"), Move(("eval_cases",), 20, 40)])
    document = document.edited([Remove(("eval_cases", 3))])
    parsed = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text, **kwargs: parsed.append(text) or loads(text, **kwargs))
    assert followed(old, document.value, ("eval_cases", 20, "turns", 1)) == ("eval_cases", 39, "turns", 1)
    assert followed(old, document.value, ("eval_cases", 3, "turns")) is None
    assert followed(old, document.value, ("eval_cases", 30, "turns")) == ("eval_cases", 28, "turns")
    assert len(parsed) <= 4
