"""Cases: new, copied, renamed, deleted, moved; and what the config says of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.validation import validate_case, validate_eval_set
from evaltui.documents.editing.json_paths import Changes
from evaltui.documents.editing.references import dangling
from evaltui.documents.editing.set import SetEditor, copy_id, set_id_problem
from evaltui.documents.edits import EditError, apply_to_data


def case(eval_id, **more):
    return {"eval_id": eval_id, "conversation": [{"user_content": {"parts": [{"text": eval_id}]}}], **more}


def a_set(set_id, *ids):
    return {"eval_set_id": set_id, "eval_cases": [case(eval_id) for eval_id in ids]}


def config_for(*entries, rules=()):
    turns = [{"set": owner, "case": eval_id, "turn": 0, "mode": "context"} for owner, eval_id in entries]
    return {"criteria": {}, "evaltui": {"turns": turns} | ({"rules": list(rules)} if rules else {})}


def named(config, name="turns"):
    return [(one.get("set"), one.get("case")) for one in config.get("evaltui", {}).get(name, [])]


def applied(data, config, changes):
    return apply_to_data(data, changes.of_set), apply_to_data(config, changes.of_config)


@pytest.mark.parametrize(
    ("wanted", "taken", "ok"),
    [("orders_2", (), True), ("or-ders", (), False), ("", (), False), ("orders", ("orders",), False)],
)
def test_ids_of_sets(wanted, taken, ok):
    assert (set_id_problem(wanted, taken) is None) == ok


def test_a_new_case_has_one_empty_turn_and_a_free_id():
    data = a_set("s", "a", "case_3")
    after = apply_to_data(data, SetEditor(data).add_case())
    assert SetEditor(after).eval_ids == ["a", "case_3", "case_4"]
    new, problems = validate_case(after["eval_cases"][2])
    assert (new.conversation[0].user_content.parts[0].text, problems) == ("", [])
    after = apply_to_data(data, SetEditor(data).add_case(0, "first", "hello"))
    assert SetEditor(after).eval_ids == ["first", "a", "case_3"]


def test_a_new_case_is_spelt_as_the_others():
    data = {"eval_set_id": "s", "eval_cases": [{"evalId": "a", "conversation": []}]}
    after = apply_to_data(data, SetEditor(data).add_case())
    assert after["eval_cases"][1] == {
        "evalId": "case_2",
        "conversation": [{"userContent": {"parts": [{"text": ""}], "role": "user"}}],
    }


@pytest.mark.parametrize(
    ("original", "taken", "copy"),
    [("late", [], "late_2"), ("late", ["late_2"], "late_3"), ("case_3", [], "case_4"), ("", [], "case_2")],
)
def test_ids_of_copies(original, taken, copy):
    assert copy_id(original, taken) == copy


def test_a_copy_has_the_marks_and_the_rules():
    data = a_set("s", "late", "b")
    data["eval_cases"][0]["mine"] = {"kept": 1}
    rules = [{"tool": "t", "set": "s", "case": "late"}, {"tool": "u", "case": "late"}, {"tool": "v"}]
    config = config_for(("s", "late"), ("s", "b"), rules=rules)
    after, config = applied(data, config, duplicated(data, config, 0))
    assert SetEditor(after).eval_ids == ["late", "late_2", "b"]
    assert after["eval_cases"][1] == data["eval_cases"][0] | {"eval_id": "late_2"}
    assert named(config) == [("s", "late"), ("s", "b"), ("s", "late_2")]
    assert named(config, "rules")[3:] == [("s", "late_2"), ("s", "late_2")]
    assert [rule["tool"] for rule in config["evaltui"]["rules"]] == ["t", "u", "v", "t", "u"]


def test_renaming_a_case_keeps_references_true():
    data = a_set("s", "late", "b")
    rules = [{"tool": "t", "set": "s", "case": "late"}, {"tool": "u", "case": "late"}]
    config = config_for(("s", "late"), ("other", "late"), rules=rules)
    after, config = applied(data, config, SetEditor(data, config).rename_case(0, "early"))
    assert SetEditor(after).eval_ids == ["early", "b"]
    assert named(config) == [("s", "early"), ("other", "late")]
    assert named(config, "rules") == [("s", "early"), (None, "late"), ("s", "early")]
    sets = {"s": {"early": 1, "b": 1}, "other": {"late": 1}}
    assert list(dangling(config, sets)) == []
    for wrong in ("", "b"):
        with pytest.raises(EditError):
            SetEditor(data, config).rename_case(0, wrong)


def test_renaming_a_set():
    data = a_set("s", "a") | {"name": "s"}
    config = config_for(("s", "a"), ("t", "a"), rules=[{"tool": "x", "set": "s"}])
    after, config = applied(data, config, SetEditor(data, config).rename("new"))
    assert (after["eval_set_id"], after["name"]) == ("new", "new")
    assert named(config) == [("new", "a"), ("t", "a")]
    assert named(config, "rules") == [("new", None)]


def test_deleting_cases():
    data = a_set("s", "a", "b", "c", "a")
    config = config_for(("s", "a"), ("s", "b"), ("t", "b"), rules=[{"tool": "x", "case": "b"}])
    after, config = applied(data, config, SetEditor(data, config).delete_cases([0, 1]))
    assert SetEditor(after).eval_ids == ["c", "a"]
    assert named(config) == [("s", "a"), ("t", "b")]
    assert named(config, "rules") == [(None, "b")]


def test_moving_between_sets_with_configs_of_their_own():
    source = SetEditor(a_set("s", "a", "b", "c"), config_for(("s", "a"), ("s", "b")))
    target = SetEditor(a_set("t", "a"), {"criteria": {}})
    moved = source.move_to(target, [2, 0], 0)
    left, left_config = applied(source.data, source.config, moved.source)
    got, got_config = applied(target.data, target.config, moved.target)
    assert (SetEditor(left).eval_ids, SetEditor(got).eval_ids) == (["b"], ["a_2", "c", "a"])
    assert (named(left_config), named(got_config)) == ([("s", "b")], [("t", "a_2")])


def test_moving_and_copying_between_sets_with_one_config():
    config = config_for(("s", "a"), ("t", "z"), rules=[{"tool": "x", "set": "s", "case": "a"}])
    source, target = SetEditor(a_set("s", "a", "b"), config), SetEditor(a_set("t", "z"), config)
    moved = source.move_to(target, [0])
    assert moved.target.of_config == []
    after = apply_to_data(config, moved.source.of_config)
    assert (named(after), named(after, "rules")) == ([("t", "a"), ("t", "z")], [("t", "a")])
    copied = source.copy_to(target, [0])
    assert copied.source.of_set == copied.target.of_config == []
    after = apply_to_data(config, copied.source.of_config)
    assert named(after) == [("s", "a"), ("t", "z"), ("t", "a")]


def test_a_rule_without_a_set_comes_along_to_another_config():
    rules = [{"tool": "x", "case": "a"}]
    source = SetEditor(a_set("s", "a"), {"criteria": {}, "evaltui": {"rules": rules}})
    target = SetEditor(a_set("t"), {"criteria": {}})
    moved = source.move_to(target, [0])
    assert named(apply_to_data(target.config, moved.target.of_config), "rules") == [("t", "a")]
    assert apply_to_data(source.config, moved.source.of_config) == source.config


def duplicated(data, config, case):
    here = SetEditor(data, config)
    copied = here.copy_to(here, [case], case + 1)
    return Changes(copied.target.of_set, copied.source.of_config)


def change(data, config, kind, case_number, other):
    if kind == "d":
        return duplicated(data, config, case_number)
    if kind == "r":
        return SetEditor(data, config).rename_case(case_number, f"new_{other}")
    return SetEditor(data, config).delete_cases([case_number])


@given(st.lists(st.tuples(st.sampled_from("drmxa"), st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_ids_stay_unique_and_no_reference_dangles(actions):
    data, config = a_set("s", "a", "b", "c"), config_for(("s", "a"), ("s", "c"))
    for kind, one, other in actions:
        count = len(SetEditor(data).eval_ids)
        if kind == "a" or not count:
            data = apply_to_data(data, SetEditor(data).add_case())
        elif kind == "m":
            data = apply_to_data(data, SetEditor(data).move_cases([(one % count, other % count)]))
        else:
            try:
                data, config = applied(data, config, change(data, config, kind, one % count, other))
            except EditError:
                assert kind == "r"
        ids = SetEditor(data).eval_ids
        assert len(set(ids)) == len(ids)
        assert list(dangling(config, {"s": dict.fromkeys(ids, 1)})) == []
        assert validate_eval_set(data)[0] is not None


@pytest.mark.parametrize(
    ("entry", "name", "says"),
    [
        (
            {"set": "ss", "case": "a", "turn": 0},
            "turns",
            "no eval set 'ss' beside this config. Did you mean s",
        ),
        ({"set": "s", "case": "x", "turn": 0}, "turns", "no case 'x' in s"),
        ({"set": "s", "case": "a", "turn": 1}, "turns", "no turn 1: a has 1 turn, counted from 0"),
        ({"set": "s", "case": "sim", "turn": 7}, "turns", None),
        ({"tool": "t"}, "rules", None),
        ({"tool": "t", "case": "b"}, "rules", None),
        ({"tool": "t", "case": "x"}, "rules", "no case 'x' in the eval sets beside this config"),
    ],
)
def test_references_that_dangle(entry, name, says):
    sets = {"s": {"a": 1, "sim": None}, "other": {"b": 2}}
    found = [problem.message for problem in dangling({"evaltui": {name: [entry]}}, sets)]
    assert (found == []) if says is None else found[0].startswith(says)
