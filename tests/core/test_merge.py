from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltui.core.document.document import JsonDocument
from evaltui.core.document.edits import Insert, Put, Remove, same
from evaltui.core.document.merge import Clash, Conflict, Merged, merge, resolve


def written(cases, indent=2, **members) -> str:
    return json.dumps({"eval_set_id": "s", **members, "eval_cases": cases}, indent=indent) + "\n"


def case(eval_id, **fields):
    return {"eval_id": eval_id, **fields}


BASE = written([case("a", n=1), case("b", n=1.0), case("c")], name="old")


def changed(*edits, text=BASE) -> str:
    document = JsonDocument(text)
    document.apply(edits)
    return document.text


def test_changes_of_different_cases_and_members_are_merged():
    mine = changed(Put(("eval_cases", 0, "n"), 2), Put(("name",), "mine"), Remove(("eval_cases", 2)))
    theirs = changed(Put(("eval_cases", 1, "n"), 3), Put(("description",), "theirs"))
    merged = written([case("a", n=2), case("b", n=3)], name="mine")
    assert merge(BASE, mine, theirs) == Merged(changed(Put(("description",), "theirs"), text=merged))


def test_one_side_alone_is_taken_to_the_byte():
    other = BASE.replace("1.0", "1.00   ") + "\n"
    assert merge(BASE, other, BASE) == Merged(other)
    assert merge(BASE, BASE, other) == Merged(other)
    assert merge(BASE, other, other) == Merged(other)


def test_mine_goes_into_a_file_that_was_written_in_another_way():
    theirs = BASE.replace("  ", "\t").replace("\n", "\r\n").replace("1.0", "1e0")
    mine = changed(Put(("eval_cases", 1, "more"), [1]), Put(("eval_cases", 0, "n"), 5))
    assert merge(BASE, mine, theirs) == Merged(
        changed(Put(("eval_cases", 0, "n"), 5), Put(("eval_cases", 1, "more"), [1]), text=theirs)
    )


def test_a_case_that_is_only_spelt_otherwise_is_kept_as_spelt():
    mine = BASE.replace("1.0", "1.000")
    theirs = changed(Put(("eval_cases", 0, "n"), 2))
    assert merge(BASE, mine, theirs) == Merged(theirs.replace("1.0", "1.000"))


def test_added_cases_come_after_the_one_they_followed():
    mine = changed(
        Insert(("eval_cases",), 3, case("mine 3")),
        Insert(("eval_cases",), 1, case("mine 1")),
        Insert(("eval_cases",), 2, case("mine 2")),
        Insert(("eval_cases",), 0, case("mine 0")),
    )
    theirs = written([case("c"), case("theirs"), case("a", n=1)], name="old")
    result = merge(BASE, mine, theirs)
    assert isinstance(result, Merged)
    ids = [one["eval_id"] for one in json.loads(result.text)["eval_cases"]]
    assert ids == ["mine 0", "c", "mine 3", "theirs", "a", "mine 1", "mine 2"]


def test_different_changes_of_a_case_are_a_conflict_until_chosen():
    mine = changed(Put(("eval_cases", 0, "n"), 2), Remove(("eval_cases", 1)), Put(("eval_cases", 1, "x"), 1))
    theirs = changed(
        Put(("eval_cases", 0, "n"), 3),
        Put(("eval_cases", 1, "n"), 4),
        Remove(("eval_cases", 2)),
        Put(("name",), "t"),
    )
    conflict = merge(BASE, mine, theirs)
    assert isinstance(conflict, Conflict)
    assert (conflict.reason, conflict.members) == (None, ())
    assert {
        clash.name: [text and json.loads(text) for text in (clash.base, clash.mine, clash.theirs)]
        for clash in conflict.cases
    } == {
        "a": [case("a", n=1), case("a", n=2), case("a", n=3)],
        "b": [case("b", n=1.0), None, case("b", n=4)],
        "c": [case("c"), case("c", x=1), None],
    }
    rest = resolve(BASE, mine, theirs, {"a": "mine", "b": "theirs"})
    assert isinstance(rest, Conflict)
    assert [clash.name for clash in rest.cases] == ["c"]
    all_mine = resolve(BASE, mine, theirs, dict.fromkeys("abc", "mine"))
    assert all_mine == Merged(changed(Put(("name",), "t"), text=mine))
    all_theirs = resolve(BASE, mine, theirs, dict.fromkeys("abc", "theirs"))
    assert all_theirs == Merged(theirs)


def test_members_and_cases_added_on_both_sides():
    mine = changed(Put(("name",), "m"), Put(("x",), 1), Insert(("eval_cases",), 3, case("new", n=1)))
    theirs = changed(Put(("name",), "t"), Put(("x",), 1), Insert(("eval_cases",), 3, case("new", n=2)))
    conflict = merge(BASE, mine, theirs)
    assert isinstance(conflict, Conflict)
    assert conflict.members == (Clash("name", '"old"', '"m"', '"t"'),)
    assert [(clash.name, clash.base) for clash in conflict.cases] == [("new", None)]
    assert resolve(BASE, mine, theirs, {"new": "theirs"}, {"name": "mine"}) == Merged(
        changed(Put(("name",), "m"), text=theirs)
    )
    equal = changed(Insert(("eval_cases",), 3, case("new", n=2)))
    assert merge(BASE, equal, theirs) == Merged(theirs)


def test_camel_case_files_merge_too():
    camel = BASE.replace("eval_cases", "evalCases").replace("eval_id", "evalId")
    mine = changed(Put(("evalCases", 0, "n"), 2), text=camel)
    theirs = changed(Put(("evalCases", 1, "n"), 2), text=camel)
    assert merge(camel, mine, theirs) == Merged(changed(Put(("evalCases", 0, "n"), 2), text=theirs))


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ("{", "theirs is not valid JSON"),
        ("[]", "theirs is not an eval set"),
        ('{"eval_cases": {}}', "theirs is not an eval set"),
        (written([{}]), "theirs has a case without an eval_id"),
        (written([case("a"), case("a")]), "theirs has more than one case 'a'"),
    ],
)
def test_what_cannot_be_told_apart_is_a_conflict_as_a_whole(theirs, reason):
    mine = changed(Put(("name",), "m"))
    conflict = merge(BASE, mine, theirs)
    assert isinstance(conflict, Conflict)
    assert conflict.reason is not None
    assert conflict.reason.startswith(reason)
    assert resolve(BASE, mine, theirs, {"a": "mine"}) == conflict
    swapped = merge(BASE, theirs, mine)
    assert isinstance(swapped, Conflict)
    assert swapped.reason is not None
    assert swapped.reason.startswith(reason.replace("theirs", "mine"))


ids = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@st.composite
def versions(draw) -> str:
    cases = [case(eval_id, n=draw(st.integers(0, 2))) for eval_id in draw(ids)]
    return written(cases, indent=draw(st.sampled_from([None, 1, 2])), name=draw(st.sampled_from("xy")))


@settings(max_examples=150, deadline=None)
@given(versions(), versions(), versions(), st.data())
def test_each_case_comes_from_the_side_that_changed_it(base, mine, theirs, data):
    def cases(text):
        return {one["eval_id"]: one for one in json.loads(text)["eval_cases"]}

    result = merge(base, mine, theirs)
    clashing = {
        eval_id
        for eval_id in {*cases(base), *cases(mine), *cases(theirs)}
        if len({json.dumps(side.get(eval_id)) for side in (cases(base), cases(mine), cases(theirs))}) == 3
        or (
            eval_id in cases(base)
            and cases(mine).get(eval_id)
            != cases(base)[eval_id]
            != cases(theirs).get(eval_id)
            != cases(mine).get(eval_id)
        )
    }
    choices = {}
    if clashing:
        assert isinstance(result, Conflict)
        assert {clash.name for clash in result.cases} == clashing
        choices = {eval_id: data.draw(st.sampled_from(["mine", "theirs"])) for eval_id in sorted(clashing)}
        result = resolve(base, mine, theirs, choices, {"name": "mine"})
    assert isinstance(result, Merged)
    merged = cases(result.text)
    for eval_id in {*cases(base), *cases(mine), *cases(theirs)}:
        one, ours, other = (side.get(eval_id) for side in (cases(base), cases(mine), cases(theirs)))
        side = choices.get(eval_id) or ("mine" if same(one, other) else "theirs")
        assert merged.get(eval_id) == (ours if side == "mine" else other)
    stay = [eval_id for eval_id in cases(theirs) if eval_id in merged]
    if mine != base and theirs != base:
        assert [eval_id for eval_id in merged if eval_id in stay] == stay
