"""Cases: new, copied, renamed, deleted, moved; and what the config says of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.problems import problems_of
from evaltui.core.model.validation import validate_case, validate_eval_set
from evaltui.documents.editing.set import SetEditor, copy_id, set_id_problem
from evaltui.documents.edits import EditError
from evaltui.documents.values import copy_of
from evaltui.project.config_references import ScoredSets
from tests.changed_values import after as value_after
from tests.changed_values import changed, changed_set


def case(eval_id, **more):
    return {"eval_id": eval_id, "conversation": [{"user_content": {"parts": [{"text": eval_id}]}}], **more}


def a_set(set_id, *ids):
    return {"eval_set_id": set_id, "eval_cases": [case(eval_id) for eval_id in ids]}


def config_for(*entries, rules=()):
    turns = [{"set": owner, "case": eval_id, "turn": 0, "mode": "context"} for owner, eval_id in entries]
    return {"criteria": {}, "evaltui": {"turns": turns} | ({"rules": list(rules)} if rules else {})}


def named(config, name="turns"):
    return [(one.get("set"), one.get("case")) for one in config.get("evaltui", {}).get(name, [])]


@pytest.mark.parametrize(
    ("wanted", "taken", "ok"),
    [("orders_2", (), True), ("or-ders", (), False), ("", (), False), ("orders", ("orders",), False)],
)
def test_ids_of_sets(wanted, taken, ok):
    assert (set_id_problem(wanted, taken) is None) == ok


def test_a_new_case_has_one_empty_turn_and_a_free_id():
    data = a_set("s", "a", "case_3")
    after = changed(data, lambda eval_set: eval_set.add_case(), SetEditor)
    assert SetEditor(after).eval_ids == ["a", "case_3", "case_4"]
    new, problems = validate_case(after["eval_cases"][2])
    assert (new.conversation[0].user_content.parts[0].text, problems) == ("", [])
    after = changed(data, lambda eval_set: eval_set.add_case(0, "first", "hello"), SetEditor)
    assert SetEditor(after).eval_ids == ["first", "a", "case_3"]


def test_a_new_case_is_spelt_as_the_others():
    data = {"eval_set_id": "s", "eval_cases": [{"evalId": "a", "conversation": []}]}
    after = changed(data, lambda eval_set: eval_set.add_case(), SetEditor)
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
    after, config = changed_set(data, config, lambda eval_set: eval_set.copy_to(eval_set, [0], 1))
    assert SetEditor(after).eval_ids == ["late", "late_2", "b"]
    assert after["eval_cases"][1] == data["eval_cases"][0] | {"eval_id": "late_2"}
    assert named(config) == [("s", "late"), ("s", "b"), ("s", "late_2")]
    assert named(config, "rules")[3:] == [("s", "late_2"), ("s", "late_2")]
    assert [rule["tool"] for rule in config["evaltui"]["rules"]] == ["t", "u", "v", "t", "u"]


def test_renaming_a_case_keeps_references_true():
    data = a_set("s", "late", "b")
    rules = [{"tool": "t", "set": "s", "case": "late"}, {"tool": "u", "case": "late"}]
    config = config_for(("s", "late"), ("other", "late"), rules=rules)
    after, config = changed_set(data, config, lambda eval_set: eval_set.rename_case(0, "early"))
    assert SetEditor(after).eval_ids == ["early", "b"]
    assert named(config) == [("s", "early"), ("other", "late")]
    assert named(config, "rules") == [("s", "early"), (None, "late"), ("s", "early")]
    sets = {"s": {"early": 1, "b": 1}, "other": {"late": 1}}
    assert problems_of("references", config, ScoredSets(sets, {})) == []
    for wrong in ("", "b"):
        with pytest.raises(EditError):
            SetEditor.copied(data, config).rename_case(0, wrong)


def test_renaming_a_set():
    data = a_set("s", "a") | {"name": "s"}
    config = config_for(("s", "a"), ("t", "a"), rules=[{"tool": "x", "set": "s"}])
    after, config = changed_set(data, config, lambda eval_set: eval_set.rename("new"))
    assert (after["eval_set_id"], after["name"]) == ("new", "new")
    assert named(config) == [("new", "a"), ("t", "a")]
    assert named(config, "rules") == [("new", None)]


def test_deleting_cases():
    data = a_set("s", "a", "b", "c", "a")
    config = config_for(("s", "a"), ("s", "b"), ("t", "b"), rules=[{"tool": "x", "case": "b"}])
    after, config = changed_set(data, config, lambda eval_set: eval_set.delete_cases([0, 1]))
    assert SetEditor(after).eval_ids == ["c", "a"]
    assert named(config) == [("s", "a"), ("t", "b")]
    assert named(config, "rules") == [(None, "b")]


def transferred(source, target, transfer):
    """Sets and configs, each `(set, config)`, after a transfer; sets may have one config."""
    copies = {id(config): copy_of(config) for _, config in (source, target)}
    editors = [SetEditor(copy_of(data), copies[id(config)]) for data, config in (source, target)]
    transfer(*editors)
    return [
        (value_after(data, editor.data), value_after(config, editor.config))
        for (data, config), editor in zip((source, target), editors, strict=True)
    ]


def test_moving_between_sets_with_configs_of_their_own():
    source = a_set("s", "a", "b", "c"), config_for(("s", "a"), ("s", "b"))
    target = a_set("t", "a"), {"criteria": {}}
    (left, left_config), (got, got_config) = transferred(source, target, lambda s, t: s.move_to(t, [2, 0], 0))
    assert (SetEditor(left).eval_ids, SetEditor(got).eval_ids) == (["b"], ["a_2", "c", "a"])
    assert (named(left_config), named(got_config)) == ([("s", "b")], [("t", "a_2")])


def test_moving_and_copying_between_sets_with_one_config():
    config = config_for(("s", "a"), ("t", "z"), rules=[{"tool": "x", "set": "s", "case": "a"}])
    source, target = (a_set("s", "a", "b"), config), (a_set("t", "z"), config)
    _, (_, after) = transferred(source, target, lambda s, t: s.move_to(t, [0]))
    assert (named(after), named(after, "rules")) == ([("t", "a"), ("t", "z")], [("t", "a")])
    (left, after), _ = transferred(source, target, lambda s, t: s.copy_to(t, [0]))
    assert left == source[0]
    assert named(after) == [("s", "a"), ("t", "z"), ("t", "a")]


def test_a_rule_without_a_set_comes_along_to_another_config():
    rules = [{"tool": "x", "case": "a"}]
    source = a_set("s", "a"), {"criteria": {}, "evaltui": {"rules": rules}}
    target = a_set("t"), {"criteria": {}}
    (_, left), (_, got) = transferred(source, target, lambda s, t: s.move_to(t, [0]))
    assert named(got, "rules") == [("t", "a")]
    assert left == source[1]


def changing(kind, case, other):
    if kind == "d":
        return lambda eval_set: eval_set.copy_to(eval_set, [case], case + 1)
    if kind == "r":
        return lambda eval_set: eval_set.rename_case(case, f"new_{other}")
    return lambda eval_set: eval_set.delete_cases([case])


@given(st.lists(st.tuples(st.sampled_from("drmxa"), st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_ids_stay_unique_and_no_reference_dangles(actions):
    data, config = a_set("s", "a", "b", "c"), config_for(("s", "a"), ("s", "c"))
    for kind, one, other in actions:
        count = len(SetEditor(data).eval_ids)
        if kind == "a" or not count:
            data = changed(data, lambda eval_set: eval_set.add_case(), SetEditor)
        elif kind == "m":
            moves = [(one % count, other % count)]
            data = changed(data, lambda eval_set, moves=moves: eval_set.move_cases(moves), SetEditor)
        else:
            try:
                data, config = changed_set(data, config, changing(kind, one % count, other))
            except EditError:
                assert kind == "r"
        ids = SetEditor(data).eval_ids
        assert len(set(ids)) == len(ids)
        assert problems_of("references", config, ScoredSets({"s": dict.fromkeys(ids, 1)}, {})) == []
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
    found = [
        problem.message
        for problem in problems_of("references", {"evaltui": {name: [entry]}}, ScoredSets(sets, {}))
    ]
    assert (found == []) if says is None else found[0].startswith(says)
