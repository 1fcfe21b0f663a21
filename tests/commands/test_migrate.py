import json
import re

import pytest
from command_line import call

from evaltui.core.model.problems import EvalSetError
from evaltui.project.eval_sets import load_eval_set

TURN = {
    "query": "Turn off the lamp",
    "expected_tool_use": [{"tool_name": "set_device", "tool_input": {"id": "lamp", "on": False}}],
    "reference": "Es ist aus – grüße.",
}
SILENT = {"query": "Thanks", "expected_tool_use": [], "reference": "Welcome."}
OLD_SET = [
    {"name": "one", "data": [TURN], "initial_session": {"app_name": "home", "user_id": "ada", "state": {}}},
    {"name": "two", "data": [SILENT], "initial_session": {}},
]


def write(path, data):
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_the_set_is_named_after_the_new_file(tmp_path):
    new = tmp_path / "home.evalset.json"
    assert call("migrate", write(tmp_path / "old.json", OLD_SET), new) == 0
    eval_set = load_eval_set(new)
    assert (eval_set.eval_set_id, eval_set.name) == ("home", "home")
    assert [case.eval_id for case in eval_set.eval_cases] == ["one", "two"]
    assert eval_set.eval_cases[0].session_input.user_id == "ada"


@pytest.mark.parametrize(
    ("old", "says"),
    [
        ({"eval_set_id": "s", "eval_cases": []}, "has the current format"),
        ({"eval_cases": [{}]}, "has the current format"),
        ([{"qery": "x", "reference": "y"}], "old.json:1: [0].query: missing"),
        ([], "an empty list"),
        (OLD_SET, "sessions of its own"),
    ],
    ids=["new", "broken new", "broken old", "none of them", "session with sessions"],
)
def test_what_is_refused_says_why_and_writes_nothing(tmp_path, old, says, capsys):
    new = tmp_path / "new.evalset.json"
    session = write(tmp_path / "session.json", {"user_id": "u"})
    options = ["--initial-session", session] if old is OLD_SET else []
    assert call("migrate", write(tmp_path / "old.json", old), new, *options) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert not new.exists()


def test_a_name_that_would_not_be_found_is_remarked(tmp_path, capsys):
    assert call("migrate", write(tmp_path / "lamps.test.json", [TURN]), tmp_path / "new.txt") == 0
    assert "only names that end in .json" in capsys.readouterr().err


def test_warnings_are_told(tmp_path, capsys):
    old = write(tmp_path / "old.json", [{"name": "one", "data": []}])
    assert call("migrate", old, tmp_path / "new.evalset.json") == 0
    assert "old.json:1: warning: [0].data: empty" in capsys.readouterr().err


def test_texts_without_an_author_are_those_of_the_agent(tmp_path, capsys):
    said = ["One moment", {"author": "helper", "text": "It is off"}]
    turn = TURN | {"expected_intermediate_agent_responses": said}
    old = write(tmp_path / "lamps.test.json", [turn])
    new = tmp_path / "lamps.evalset.json"

    assert call("migrate", old, new) == 0
    assert (
        "expected_intermediate_agent_responses[0]: no author is given; agent is taken"
        in capsys.readouterr().err
    )
    (case,) = json.loads(new.read_text())["eval_cases"]
    assert case["conversation"][0]["intermediate_data"]["intermediate_responses"] == [
        ["agent", [{"text": "One moment"}]],
        ["helper", [{"text": "It is off"}]],
    ]
    # google-adk refuses the old file, and so does a run.
    with pytest.raises(EvalSetError):
        load_eval_set(old)


@pytest.mark.parametrize("as_set", [False, True])
def test_what_an_eval_set_has_no_place_for_is_said(tmp_path, capsys, as_set):
    call_with_note = TURN["expected_tool_use"][0] | {"note": {"by": "ada"}}
    turns = [TURN | {"_comment": "the lamp in the hall", "expected_tool_use": [call_with_note]}]
    data = [{"name": "one", "data": turns, "_author": "ada"}] if as_set else turns
    old = write(tmp_path / "lamps.test.json", data)

    assert call("migrate", old, tmp_path / "lamps.evalset.json") == 0
    told = capsys.readouterr().err
    assert '_comment: an eval set has no place for it; left out: "the lamp in the hall"' in told
    assert 'expected_tool_use[0].note: an eval set has no place for it; left out: {"by": "ada"}' in told
    assert ("_author: an eval set has no place for it" in told) is as_set
    assert re.search(rf"^{re.escape(str(old))}:\d+: warning: ", told, re.MULTILINE)


OLD_TEST = [{"query": "ok", "expected_tool_use": [], "reference": "good"}]
ENTRIES = {
    "answers": {"set": "old", "case": "old", "turn": 0, "not_contains": ["zzz"]},
    "rules": {"set": "old", "tool": "f", "arg": "x", "match": "ignore"},
    "turns": {"set": "old", "case": "old", "turn": 0, "mode": "skip"},
    "tags": {"set": "old", "case": "old", "tags": ["slow"]},
}


@pytest.mark.parametrize("name", ENTRIES)
def test_what_a_config_has_for_the_old_set_alone_is_named(tmp_path, name, capsys):
    old, new = write(tmp_path / "old.test.json", OLD_TEST), tmp_path / "greetings.evalset.json"
    write(tmp_path / "test_config.json", {"criteria": {}, "evaltui": {name: [ENTRIES[name]]}})
    assert call("migrate", "--strict", old, new) == 1
    told = f"evaltui.{name}[0].set: not for greetings.evalset.json, whose id is 'greetings'"
    assert told in capsys.readouterr().err
    assert not new.exists()
    assert call("migrate", old, tmp_path / "old.evalset.json") == 0
    assert "whose id" not in capsys.readouterr().err


def test_a_config_that_is_not_for_the_new_file_is_named(tmp_path, capsys):
    part = {"parts": [{"text": "hi"}]}
    old = write(tmp_path / "basic.json", {"eval_cases": [{"eval_case_id": "a", "prompt": part}]})
    (tmp_path / "eval_config.yaml").write_text("metrics_to_run: [rouge_1]\n")
    assert call("migrate", "--strict", old, tmp_path / "basic.evalset.json") == 1
    told = "eval_config.yaml: warning: scores basic.json, but not basic.evalset.json: ADK's defaults do"
    assert told in capsys.readouterr().err
