"""Rules are added, changed and removed without touching what else a config says."""

import pytest
from eval_data import new_rule
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.metrics.config_validation import validate_config
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.editing.references import References
from evaltui.documents.edits import EditError
from evaltui.documents.values import copy_of, edits_of
from tests.changed_values import changed

CONFIG = """{
    "evaltui": {
        "mine": 1.0,
        "rules": [
            {"tool": "find", "arg": "query", "match": "ignore"},
            {"tool": "find", "arg": "as_of", "match": {"regex": "\\u0061+"}, "set": "s", "case": "late"}
        ]
    },
    "criteria": {"response_match_score": 0.80}
}
"""


def text_after(change, text=CONFIG):
    document = JsonDocument(text)
    config = ConfigEditor(copy_of(document.value))
    change(config)
    return document.edited(edits_of(config.config)).text


def data(text=CONFIG):
    return JsonDocument(text).value


def test_a_rule_is_added_at_the_end_in_the_style_of_the_others():
    rule = new_rule("pay", "amount", {"approx": {"abs": 0.5}}, ("s", "late"))
    last = '"set": "s", "case": "late"}'
    added = '{"tool": "pay", "arg": "amount", "match": {"approx": {"abs": 0.5}}, "set": "s", "case": "late"}'
    assert text_after(lambda config: config.put_rule(rule)) == CONFIG.replace(
        last, f"{last},\n            {added}"
    )


def test_a_rule_for_the_same_argument_and_cases_is_changed_where_it_stands():
    after = text_after(lambda config: config.put_rule(new_rule("find", "query", "type")))
    assert after == CONFIG.replace('"ignore"', '"type"')
    # The same place in other words.
    after = text_after(lambda config: config.put_rule(new_rule("find", "['query']", "type")))
    assert after == CONFIG.replace('"ignore"', '"type"').replace('"arg": "query"', '"arg": "[\'query\']"')
    after = data(text_after(lambda config: config.put_rule(new_rule("find", "as_of", "type"))))
    assert len(after["evaltui"]["rules"]) == 3


def test_what_is_said_already_changes_nothing():
    rule = new_rule("find", "as_of", {"regex": "a+"}, ("s", "late"))
    assert text_after(lambda config: config.put_rule(rule)) == CONFIG


def test_one_rule_is_left_of_several_for_the_same():
    twice = CONFIG.replace(
        '"case": "late"}', '"case": "late"},\n            {"tool": "find", "arg": "query", "match": "type"}'
    )
    rule = new_rule("find", "query", {"any_of": [1]})
    after = data(text_after(lambda config: config.put_rule(rule), twice))
    assert [rule["match"] for rule in after["evaltui"]["rules"]] == [{"regex": "a+"}, {"any_of": [1]}]


def test_a_rule_is_removed():
    after = text_after(lambda config: config.remove_rule(0))
    assert [rule["arg"] for rule in data(after)["evaltui"]["rules"]] == ["as_of"]
    assert '"\\u0061+"' in after
    after = text_after(lambda config: config.remove_rule(0), after)
    assert data(after)["evaltui"] == {"mine": 1.0}


def test_the_first_rule_of_a_config():
    for text in (
        '{"criteria": {}}',
        '{"criteria": {}, "evaltui": null}',
        '{"criteria": {}, "evaltui": {"rules": []}}',
    ):
        after = data(text_after(lambda config: config.put_rule(new_rule("find", "*", "subset")), text))
        assert after["evaltui"] == {"rules": [{"tool": "find", "arg": "*", "match": "subset"}]}


def test_what_is_no_rule_is_refused():
    for match in ({"regex": "("}, {"approx": {"abs": -1}}, "ignored"):
        with pytest.raises(EditError, match="not a rule: match"):
            text_after(lambda config, match=match: config.put_rule(new_rule("find", "query", match)))
    with pytest.raises(EditError, match=r"not a rule: arg: .* character 2"):
        text_after(lambda config: config.put_rule(new_rule("find", "a[", "ignore")))
    with pytest.raises(EditError, match="no rule 3"):
        text_after(lambda config: config.remove_rule(2))


arguments = st.sampled_from(["query", "filter.as_of", "items[*]", "*"])
matches = st.sampled_from(["ignore", "subset", {"regex": "a"}, {"any_of": [None, 1]}])
scopes = st.none() | st.tuples(st.sampled_from("st"), st.sampled_from(["late", "early"]))


@given(st.lists(st.builds(new_rule, st.sampled_from("fg"), arguments, matches, scopes), max_size=8))
def test_of_all_that_was_put_the_last_for_each_argument_is_there_once(put):
    config = {"criteria": {"safety_v1": 1}}
    for rule in put:
        config = changed(config, lambda one, rule=rule: one.put_rule(rule), ConfigEditor)
    last = {(one["tool"], one["arg"], one.get("set"), one.get("case")): one for one in put}
    assert config.get("evaltui", {}).get("rules", []) == list(last.values())
    assert validate_config(config)[0] is not None


def test_a_case_that_is_renamed_keeps_the_rule_that_held():
    exact = new_rule("f", "a", "type", ("s", "late"))
    config = {"evaltui": {"rules": [exact, {"tool": "f", "arg": "a", "match": "ignore", "case": "late"}]}}
    pairs = [(("s", "late"), ("s", "early"))]
    after = changed(config, lambda references: references.move_cases(pairs), References)
    assert after["evaltui"]["rules"] == [{**exact, "case": "early"}, config["evaltui"]["rules"][1]]
    copied = References(config).copied([(("s", "late"), ("s", "copy"))])
    assert copied["rules"] == [{**exact, "case": "copy"}]
