from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.documents import merge as merging
from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import Insert, Put, Remove, same
from evaltui.documents.merge import Choices, Clash, Conflict


@dataclass(frozen=True)
class Merged:
    text: str


def merge(base, mine, theirs, choices=None, *, is_config=False):
    began = JsonDocument(base)
    merged = merging.merge(
        began, JsonDocument(mine, began), theirs, choices or Choices(), is_config=is_config
    )
    return merged if isinstance(merged, Conflict) else Merged(merged.text)


def written(cases, indent=2, **members) -> str:
    return json.dumps({"eval_set_id": "s", **members, "eval_cases": cases}, indent=indent) + "\n"


def case(eval_id, **fields):
    return {"eval_id": eval_id, **fields}


BASE = written([case("a", n=1), case("b", n=1.0), case("c")], name="old")


def changed(*edits, text=BASE) -> str:
    return JsonDocument(text).edited(edits).text


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


def test_keys_in_another_order_are_no_change():
    args = {"city": "Rome", "day": {"from": 1, "to": 2}}
    base = written([case("a", args=args), case("b")], name="old")
    moved = written([case("a", args={"day": {"to": 2, "from": 1}, "city": "Rome"}), case("b")], name="old")
    other = changed(Put(("eval_cases", 0, "args", "day", "to"), 3), text=base)
    for mine, theirs in ((moved, other), (other, moved)):
        result = merge(base, mine, theirs)
        assert isinstance(result, Merged)
        assert json.loads(result.text) == json.loads(other)


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
    rest = merge(BASE, mine, theirs, Choices({"a": "mine", "b": "theirs"}))
    assert isinstance(rest, Conflict)
    assert [clash.name for clash in rest.cases] == ["c"]
    all_mine = merge(BASE, mine, theirs, Choices(dict.fromkeys("abc", "mine")))
    assert all_mine == Merged(changed(Put(("name",), "t"), text=mine))
    all_theirs = merge(BASE, mine, theirs, Choices(dict.fromkeys("abc", "theirs")))
    assert all_theirs == Merged(theirs)


def test_members_and_cases_added_on_both_sides():
    mine = changed(Put(("name",), "m"), Put(("x",), 1), Insert(("eval_cases",), 3, case("new", n=1)))
    theirs = changed(Put(("name",), "t"), Put(("x",), 1), Insert(("eval_cases",), 3, case("new", n=2)))
    conflict = merge(BASE, mine, theirs)
    assert isinstance(conflict, Conflict)
    assert conflict.members == (Clash("name", '"old"', '"m"', '"t"'),)
    assert [(clash.name, clash.base) for clash in conflict.cases] == [("new", None)]
    assert merge(BASE, mine, theirs, Choices({"new": "theirs"}, {"name": "mine"})) == Merged(
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
    assert merge(BASE, mine, theirs, Choices({"a": "mine"})) == conflict
    if "not valid JSON" in reason:
        # What is edited here always is.
        return
    swapped = merge(BASE, theirs, mine)
    assert isinstance(swapped, Conflict)
    assert swapped.reason is not None
    assert swapped.reason.startswith(reason.replace("theirs", "mine"))


ids = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@st.composite
def versions(draw) -> str:
    cases = [case(eval_id, n=draw(st.integers(0, 2))) for eval_id in draw(ids)]
    return written(cases, indent=draw(st.sampled_from([None, 1, 2])), name=draw(st.sampled_from("xy")))


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
    asked_for_order = isinstance(result, Conflict) and bool(result.orders)
    if isinstance(result, Conflict):
        assert {clash.name for clash in result.cases} == clashing
        choices = {eval_id: data.draw(st.sampled_from(["mine", "theirs"])) for eval_id in sorted(clashing)}
        result = merge(base, mine, theirs, Choices(choices, {"name": "mine"}, {"eval_cases": "theirs"}))
    else:
        assert not clashing
    assert isinstance(result, Merged)
    merged = cases(result.text)
    for eval_id in {*cases(base), *cases(mine), *cases(theirs)}:
        one, ours, other = (side.get(eval_id) for side in (cases(base), cases(mine), cases(theirs)))
        side = choices.get(eval_id) or ("mine" if same(one, other) else "theirs")
        assert merged.get(eval_id) == (ours if side == "mine" else other)
    orders = [[eval_id for eval_id in cases(side) if eval_id in merged] for side in (base, mine, theirs)]
    common = set.intersection(*map(set, orders))
    turned = [turned_round(orders[0], order, common) for order in (*orders[1:], list(merged))]
    if asked_for_order:
        assert turned[0]
        assert turned[1]
        assert turned[2] == turned[1]
    else:
        # What either side moved is moved.
        assert turned[0] | turned[1] <= turned[2]
        if not (turned[0] and turned[1]):
            assert turned[0] | turned[1] == turned[2]


def turned_round(base, order, common):
    """The pairs that stand the other way round."""
    pairs = combinations([name for name in base if name in common], 2)
    return {pair for pair in pairs if order.index(pair[0]) > order.index(pair[1])}


def ids_of(text):
    return [one["eval_id"] for one in json.loads(text)["eval_cases"]]


def ordered(text, order):
    cases = {one["eval_id"]: one for one in json.loads(text)["eval_cases"]}
    return written([cases[eval_id] for eval_id in order], name="old")


FOUR = written([case(eval_id) for eval_id in "abcd"], name="old")


def test_where_both_moved_cases_the_order_is_asked():
    mine, theirs = ordered(FOUR, "dabc"), ordered(FOUR, "adbc")
    conflict = merge(FOUR, mine, theirs)
    orders = [json.dumps(list(one)) for one in ("abcd", "dabc", "adbc")]
    assert conflict == Conflict(orders=(Clash("eval_cases", *orders),))
    for side, order in (("mine", "dabc"), ("theirs", "adbc")):
        result = merge(FOUR, mine, theirs, Choices(orders={"eval_cases": side}))
        assert isinstance(result, Merged)
        assert ids_of(result.text) == list(order)


def test_cases_added_and_removed_beside_a_new_order():
    mine = changed(Insert(("eval_cases",), 1, case("mine")), text=ordered(FOUR, "dabc"))
    theirs = changed(Remove(("eval_cases", 1)), Insert(("eval_cases",), 3, case("theirs")), text=FOUR)
    result = merge(FOUR, mine, theirs)
    assert isinstance(result, Merged)
    assert ids_of(result.text) == ["d", "mine", "theirs", "a", "c"]


# Configs


MARKS = [{"set": "s", "case": one, "turn": 0, "mode": "skip"} for one in "ab"]
RULES = [{"tool": "find", "arg": arg, "match": "ignore"} for arg in "xy"]
CONFIG_BASE = {
    "criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8},
    "evaltui": {"rules": RULES, "turns": MARKS, "repeats": {"runs": 2}},
}


def config(data) -> str:
    return json.dumps(data, indent=2) + "\n"


def merged_config(mine, theirs, choices=None, base=CONFIG_BASE):
    return merge(config(base), config(mine), config(theirs), choices, is_config=True)


def without(data, *path):
    copy = json.loads(json.dumps(data))
    holder = copy
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return copy


def put(data, *path_and_value):
    *path, last, value = path_and_value
    copy = json.loads(json.dumps(data))
    holder = copy
    for step in path:
        holder = holder[step]
    holder[last] = value
    return copy


def test_a_config_merges_by_metric_and_member():
    mine = put(CONFIG_BASE, "criteria", "response_match_score", 0.5)
    mine = put(mine, "evaltui", "turns", 0, "case", "renamed")
    mine = put(mine, "evaltui", "rules", [{"tool": "new", "arg": "z", "match": "ignore"}, *RULES])
    theirs = put(CONFIG_BASE, "criteria", "tool_trajectory_avg_score", 0.9)
    theirs = put(theirs, "criteria", "safety_v1", 0.7)
    theirs = put(theirs, "evaltui", "repeats", {"runs": 3})
    theirs = put(theirs, "own", [1.0])
    result = merged_config(mine, theirs)
    assert isinstance(result, Merged)
    assert json.loads(result.text) == {
        "criteria": {"tool_trajectory_avg_score": 0.9, "response_match_score": 0.5, "safety_v1": 0.7},
        "evaltui": {
            "rules": [{"tool": "new", "arg": "z", "match": "ignore"}, *RULES],
            "turns": [{**MARKS[0], "case": "renamed"}, MARKS[1]],
            "repeats": {"runs": 3},
        },
        "own": [1.0],
    }


def test_of_a_config_only_what_both_changed_is_asked():
    mine = put(put(CONFIG_BASE, "criteria", "response_match_score", 0.5), "evaltui", "repeats", {"runs": 4})
    mine = put(mine, "evaltui", "turns", 0, "mode", "context")
    theirs = put(put(CONFIG_BASE, "criteria", "response_match_score", 0.6), "evaltui", "repeats", {"runs": 5})
    theirs = without(theirs, "evaltui", "turns", 0)
    conflict = merged_config(mine, theirs)
    assert isinstance(conflict, Conflict)
    names = [clash.name for clash in conflict.members]
    assert names == ["criteria.response_match_score", "evaltui.turns", "evaltui.repeats"]
    assert conflict.reason is None
    all_mine = merged_config(mine, theirs, Choices(members=dict.fromkeys(names, "mine")))
    assert isinstance(all_mine, Merged)
    chosen = json.loads(all_mine.text)
    assert {frozenset(mark.items()) for mark in chosen["evaltui"].pop("turns")} == {
        frozenset(mark.items()) for mark in mine["evaltui"]["turns"]
    }
    assert chosen == without(mine, "evaltui", "turns")
    assert merged_config(mine, theirs, Choices(members=dict.fromkeys(names, "theirs"))) == Merged(
        config(theirs)
    )


@pytest.mark.parametrize("gone", [("evaltui",), ("evaltui", "turns")])
def test_a_change_of_what_the_other_side_removed_is_asked(gone):
    mine = put(CONFIG_BASE, "evaltui", "turns", MARKS[:1])
    conflict = merged_config(mine, without(CONFIG_BASE, *gone))
    assert isinstance(conflict, Conflict)
    ((name, theirs),) = [(clash.name, clash.theirs) for clash in conflict.members]
    assert (name, theirs) == (".".join(gone), None)
    chosen = merged_config(mine, without(CONFIG_BASE, *gone), Choices(members={name: "mine"}))
    assert isinstance(chosen, Merged)
    assert json.loads(chosen.text) == mine


def test_two_configs_that_are_new_on_both_sides_merge():
    mine, theirs = {"evaltui": {"turns": MARKS[:1]}}, {"evaltui": {"rules": RULES}}
    result = merged_config(mine, theirs, base={})
    assert isinstance(result, Merged)
    assert json.loads(result.text) == {"evaltui": {"rules": RULES, "turns": MARKS[:1]}}


def test_what_is_wrong_with_a_config_is_said_of_a_config():
    conflict = merge(config(CONFIG_BASE), config({}), "[]", is_config=True)
    assert conflict == Conflict(reason="theirs is not a config: not an object")
