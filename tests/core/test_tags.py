"""Tags of cases in configs: read, changed, kept true, merged."""

import pytest
from eval_data import make_case, make_turn

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.metrics.normal_config import score_alike
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.tags import TagChoice, tags_in
from evaltui.documents.editing.references import References
from evaltui.documents.editing.set import SetEditor
from tests.changed_values import changed, changed_set


def entry(case, *tags, of="orders"):
    return {"set": of, "case": case, "tags": list(tags)}


def config(*entries):
    return {"criteria": {"response_match_score": 0.5}, "evaltui": {"tags": list(entries)}}


def tags_after(before, cases, added, removed):
    after = changed(before, lambda references: references.change_tags(cases, added, removed), References)
    return tags_in(after, "orders")


def test_a_case_has_the_tags_of_all_its_entries_each_once():
    data = config(
        entry("late", "smoke", "slow"), entry("late", "slow", "new"), entry("late", "x", of="other")
    )
    assert tags_in(data, "orders") == {"late": ("smoke", "slow", "new")}
    model, problems = validate_config(data)
    assert model is not None
    assert problems == []
    assert model.tags("orders") == tags_in(data, "orders")


@pytest.mark.parametrize("tag", ["", "two words", "a,b", "#a", "-a", "a*", "a?", 'a"b', "a\n", 5, None])
def test_what_cannot_be_typed_is_no_tag(tag):
    model, problems = validate_config(config({"set": "s", "case": "c", "tags": ["fine", tag]}))
    assert model is None
    assert [problem.path for problem in problems] == [("evaltui", "tags", 0, "tags", 1)]


@pytest.mark.parametrize("found", [None, 1, [], {}, {"evaltui": 3}, {"evaltui": {"tags": {}}}])
def test_what_has_no_tags(found):
    assert tags_in(found, "orders") == {}


def test_wrong_entries_are_passed_over():
    wrong = [1, {"set": "orders"}, {"set": "orders", "case": "a", "tags": "smoke"}, entry("a", "b")]
    wrong.append({"set": "orders", "case": "a", "tags": [1, None, "c"]})
    assert tags_in({"evaltui": {"tags": wrong}}, "orders") == {"a": ("b", "c")}


def test_tags_have_no_part_in_scoring():
    tagged, plain = EvalConfig.model_validate(config(entry("a", "b"))), EvalConfig.model_validate(config())
    assert tagged.scoring() == plain.scoring() == {"criteria": {"response_match_score": 0.5}}
    assert score_alike(tagged, plain)
    assert not score_alike(tagged, EvalConfig.default())


def test_tags_are_given_and_taken():
    before = config(entry("late", "smoke", "slow"), entry("early", "slow"), entry("late", "new"))
    cases = [("orders", "late"), ("orders", "early"), ("orders", "third")]
    assert tags_after(before, cases, ["train"], {"slow"}) == {
        "late": ("smoke", "new", "train"),
        "early": ("train",),
        "third": ("train",),
    }
    assert tags_after(config(entry("late", "slow")), cases[:1], ["slow"], ()) == {"late": ("slow",)}
    assert tags_after(before, cases, (), {"smoke", "slow", "new"}) == {}


@pytest.mark.parametrize("before", [{}, {"evaltui": {}}, {"evaltui": {"tags": None}}, {"evaltui": 1}])
def test_lists_are_made_where_they_are_missing(before):
    assert tags_after(before, [("orders", "a")], ["x"], ()) == {"a": ("x",)}


def eval_set(*ids, name="orders"):
    cases = [make_case(eval_id, make_turn("hi")) for eval_id in ids]
    return {"eval_set_id": name, "eval_cases": cases}


def test_tags_follow_their_cases():
    shared = config(entry("late", "smoke"), entry("early", "slow"), entry("late", "x", of="other"))

    def tags_then(change, of="orders"):
        return tags_in(changed_set(eval_set("late", "early"), shared, change)[1], of)

    assert tags_then(lambda here: here.rename_case(0, "later")) == {"later": ("smoke",), "early": ("slow",)}
    assert tags_then(lambda here: here.rename("sent"), "sent") == {"late": ("smoke",), "early": ("slow",)}
    assert tags_then(lambda here: here.delete_cases([0])) == {"early": ("slow",)}
    assert tags_then(lambda here: here.copy_to(here, [0, 1]))["late_2"] == ("smoke",)
    elsewhere = SetEditor.copied(eval_set("late", name="far"), config())
    assert tags_then(lambda here: here.move_to(elsewhere, [0])) == {"early": ("slow",)}
    assert tags_in(elsewhere.config, "far") == {"late_2": ("smoke",)}


def test_a_choice_by_tags():
    choice = TagChoice(("smoke", "fast"), ("broken",))
    kept = [("smoke", "fast"), ("smoke",), ("smoke", "fast", "broken"), ()]
    assert [choice.keeps(tags) for tags in kept] == [True, False, False, False]
    assert str(choice) == "--tag smoke --tag fast --not-tag broken"
    assert not TagChoice()
