"""`evaltui import` of the same rows again: a three-way merge by case."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.commands.command_line import call

SET, CONFIG, ROWS = Path("s.evalset.json"), Path("test_config.json"), Path("rows.jsonl")
IDS = ("a", "b", "c", "d", "e")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_rows(answers):
    ROWS.write_text(
        "".join(
            json.dumps({"key": key, "q": f"Is it {key}?", "a": answer}) + "\n"
            for key, answer in answers.items()
        )
    )


def bring(*words):
    return call("import", ROWS, "--into", SET, "--yes", *words)


def first(answers):
    for path in (SET, CONFIG):
        path.unlink(missing_ok=True)
    write_rows(answers)
    assert bring("--map", "user=q", "--map", "expected=a", "--map", "id=key") == 0


def answers():
    return {
        case["eval_id"]: case["conversation"][0]["final_response"]["parts"][0]["text"]
        for case in json.loads(SET.read_text())["eval_cases"]
    }


def edit(answers):
    """Changes responses in the set; None deletes the case."""
    data = json.loads(SET.read_text())
    data["eval_cases"] = [case for case in data["eval_cases"] if answers.get(case["eval_id"], "") is not None]
    for case in data["eval_cases"]:
        if case["eval_id"] in answers:
            case["conversation"][0]["final_response"]["parts"][0]["text"] = answers[case["eval_id"]]
    SET.write_text(json.dumps(data, indent=2))


def test_new_changed_and_gone_rows_are_merged_and_the_mapping_is_remembered(capsys):
    first({"a": "1", "b": "2", "c": "3", "d": "4"})
    edit({"c": "mine"})
    before = SET.read_text()
    write_rows({"a": "1", "b": "two", "c": "3", "e": "5"})
    capsys.readouterr()
    assert bring() == 0
    assert (
        "4 cases: 1 new, 1 changed, 1 gone from the file, 1 edited here, kept, 1 unchanged"
        in capsys.readouterr().out
    )
    assert answers() == {"a": "1", "b": "two", "c": "mine", "e": "5"}
    # Other lines stay to the byte.
    assert set(before.splitlines()) - set(SET.read_text().splitlines()) == {
        line
        for line in before.splitlines()
        if '"text": "2"' in line or '"d"' in line or "Is it d?" in line or '"4"' in line
    }
    texts = SET.read_bytes(), CONFIG.read_bytes()
    assert bring() == 0
    assert (SET.read_bytes(), CONFIG.read_bytes()) == texts


def test_what_both_changed_is_a_conflict_until_a_side_is_chosen(capsys):
    first({"a": "1", "b": "2"})
    edit({"a": "mine"})
    write_rows({"a": "theirs", "b": "2"})
    texts = SET.read_text(), CONFIG.read_text()
    assert bring() == 1
    assert "both changed a since the last import. --conflicts mine keeps" in capsys.readouterr().err
    assert (SET.read_text(), CONFIG.read_text()) == texts
    assert bring("--conflicts", "mine") == 0
    assert answers()["a"] == "mine"
    # It is settled: only a further change of the file asks again.
    assert bring() == 0
    write_rows({"a": "once more", "b": "2"})
    assert bring() == 1
    assert bring("--conflicts", "theirs") == 0
    assert answers() == {"a": "once more", "b": "2"}


def test_a_case_of_the_set_with_the_id_of_a_row_is_not_replaced(capsys):
    first({"a": "1"})
    CONFIG.unlink()
    write_rows({"a": "2"})
    assert bring("--map", "user=q", "--map", "expected=a", "--map", "id=key") == 1
    assert answers() == {"a": "1"}


def test_tags_follow_the_rows_and_a_set_may_be_renamed():
    rows = [{"id": "a", "prompt": "Hi", "tags": ["x"]}]
    ROWS.write_text(json.dumps(rows[0]))
    assert bring() == 0
    ROWS.write_text(json.dumps({**rows[0], "tags": ["x", "y"]}))
    assert bring() == 0
    block = json.loads(CONFIG.read_text())["evaltui"]
    assert block["tags"] == [{"set": "s", "case": "a", "tags": ["x", "y"]}]


ANSWERS = st.dictionaries(st.sampled_from(IDS), st.sampled_from(("1", "2")), min_size=1)
EDITS = st.dictionaries(st.sampled_from(IDS), st.sampled_from(("1", "mine", None)))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=ANSWERS, edits=EDITS, after=ANSWERS, side=st.sampled_from(("mine", "theirs")))
def test_edits_of_the_set_survive_every_change_of_the_file(before, edits, after, side):
    first(before)
    edit(edits)
    mine = answers()
    write_rows(after)
    both = {
        key
        for key in {*before, *after}
        if mine.get(key) != before.get(key) and after.get(key) not in (before.get(key), mine.get(key))
    }
    code = bring()
    assert code == (1 if both else 0)
    if both:
        assert answers() == mine
        assert bring("--conflicts", side) == 0
    kept = {
        key: mine.get(key)
        if (after.get(key) == before.get(key) or (key in both and side == "mine"))
        else after.get(key)
        for key in {*before, *after}
    }
    assert answers() == {key: answer for key, answer in kept.items() if answer is not None}
    assert bring() == 0
    assert answers() == {key: answer for key, answer in kept.items() if answer is not None}


def rules():
    return json.loads(CONFIG.read_text())["evaltui"].get("rules", [])


def row(answer, *calls):
    ROWS.write_text(json.dumps({"id": "a", "prompt": "Hi", "expected": answer, "calls": calls}))


STATED = {"name": "find", "args": {"id": 7}}


def test_a_rule_of_an_earlier_import_frees_no_arguments_that_the_file_states_now():
    row("1", "find")
    assert bring() == 0
    assert len(rules()) == 1
    edit({"a": "mine"})
    row("1", STATED)
    assert bring("--conflicts", "mine") == 0
    assert bring() == 0
    assert len(rules()) == 1
    row("2", STATED)
    assert bring("--conflicts", "theirs") == 0
    assert rules() == []


def test_entries_of_a_deleted_case_are_not_for_a_later_one_with_its_id():
    row("1", "find")
    assert bring() == 0
    row_a = ROWS.read_text()
    edit({"a": None})
    ROWS.write_text(row_a.replace('"a"', '"b"'))
    assert bring() == 0
    assert [rule["case"] for rule in rules()] == ["b"]
    row("1", STATED)
    assert bring() == 0
    assert rules() == []


def test_a_case_that_comes_back_has_its_checks():
    suite = Path("suite.json")

    def suite_of(text):
        test = {"description": "a", "vars": {"q": text}, "assert": [{"type": "contains", "value": "Hi"}]}
        suite.write_text(json.dumps({"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test]}))

    suite_of("one")
    assert call("import", suite, "--into", SET, "--yes") == 0
    edit({"a": None})
    block = json.loads(CONFIG.read_text())
    CONFIG.write_text(json.dumps({**block, "evaltui": {**block["evaltui"], "answers": []}}))
    suite_of("two")
    assert call("import", suite, "--into", SET, "--yes", "--conflicts", "theirs") == 0
    assert len(json.loads(CONFIG.read_text())["evaltui"]["answers"]) == 1


def test_tags_and_checks_of_a_conflict_stay_as_the_chosen_side():
    def tags():
        (entry,) = json.loads(CONFIG.read_text())["evaltui"]["tags"]
        return entry["tags"]

    ROWS.write_text(json.dumps(row := {"id": "a", "prompt": "Hi", "tags": ["x"]}))
    assert bring() == 0
    SET.write_text(SET.read_text().replace('"Hi"', '"Hello"'))
    ROWS.write_text(json.dumps({**row, "prompt": "Good day", "tags": ["x", "y"]}))
    assert bring() == 1
    assert bring("--conflicts", "mine") == 0
    assert tags() == ["x"]
    ROWS.write_text(json.dumps({**row, "prompt": "Good night", "tags": ["z"]}))
    assert bring("--conflicts", "theirs") == 0
    assert tags() == ["x", "z"]
