"""`evaltui export --format rows`: rows that are imported again give the same cases; the rest is listed."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.commands.command_line import call

SET, BACK = Path("s.evalset.json"), Path("back.evalset.json")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def content(role, text):
    return {"role": role, "parts": [{"text": text}]}


# Texts that are no cells of JSON, and have no blank lines.
TEXT = st.text("ab 1,;\"'é", min_size=1).map(lambda text: f"x{text}x") | st.sampled_from(
    ("=1+1", "'=1", "''@a", "-2 °C", "'plain", "＝1", "+ '=x")
)
CALL = st.fixed_dictionaries(
    {
        "name": st.sampled_from(("find", "book")),
        "args": st.dictionaries(st.sampled_from("ab"), st.integers() | TEXT),
    }
)


@st.composite
def turns(draw):
    turn = {"user_content": content("user", draw(TEXT))}
    calls = draw(st.none() | st.lists(CALL, max_size=3))
    if calls is not None:
        responses = [{"name": call["name"], "response": {"id": number}} for number, call in enumerate(calls)]
        turn["intermediate_data"] = {"tool_uses": calls}
        if draw(st.booleans()) and calls:
            turn["intermediate_data"]["tool_responses"] = responses
    if (response := draw(st.none() | TEXT)) is not None:
        turn["final_response"] = content("model", response)
    return turn


def write(cases, **config):
    for path in (SET, BACK, Path("test_config.json")):
        path.unlink(missing_ok=True)
    SET.write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}), encoding="utf-8")
    Path("test_config.json").write_text(
        json.dumps({"criteria": {"tool_trajectory_avg_score": 1}, "evaltui": config})
    )


def case_of(number, conversation):
    case = {"eval_id": f"case_{number}", "conversation": conversation}
    is_stated = all({"intermediate_data", "final_response"} <= turn.keys() for turn in conversation)
    return case if is_stated else case | {"evaltui": {"unspecified": "not checked"}}


def meanings(path):
    """Cases as their turns: messages, calls, results and responses."""
    cases = json.loads(path.read_text(encoding="utf-8"))["eval_cases"]
    return [
        (case["eval_id"], [meaning(turn) for turn in case["conversation"]], case.get("evaltui"))
        for case in cases
    ]


def meaning(turn):
    data = turn.get("intermediate_data")
    events = (data or {}).get("invocation_events", ())
    parts = [part for event in events for part in event["content"]["parts"]]
    calls = (data or {}).get("tool_uses") or [
        part["function_call"] for part in parts if "function_call" in part
    ]
    results = (data or {}).get("tool_responses") or [
        part["function_response"] for part in parts if "function_response" in part
    ]
    results = sorted((result["name"], json.dumps(result["response"])) for result in results)
    return (
        turn["user_content"]["parts"],
        data and calls,
        data and results,
        turn.get("final_response", {}).get("parts"),
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations=st.lists(st.lists(turns(), min_size=1, max_size=3), min_size=1, max_size=3))
def test_sets_that_rows_can_hold_come_back_as_they_were(conversations):
    write([case_of(number, turns) for number, turns in enumerate(conversations)])
    assert call("export", "--set", SET, "--format", "rows", "-o", "rows.jsonl", "--strict") == 0
    assert call("import", "rows.jsonl", "--into", BACK, "--yes", "--strict") == 0
    assert meanings(BACK) == meanings(SET)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    messages=st.lists(TEXT, min_size=1, max_size=3),
    calls=st.none() | st.lists(CALL, max_size=2),
    response=TEXT,
)
def test_tables_hold_the_expectations_of_the_last_turn(messages, calls, response):
    conversation = [{"user_content": content("user", text)} for text in messages]
    conversation[-1]["final_response"] = content("model", response)
    conversation[-1] |= {} if calls is None else {"intermediate_data": {"tool_uses": calls}}
    write([case_of(0, conversation)])
    assert call("export", "--set", SET, "--format", "rows", "-o", "rows.csv", "--strict") == 0
    assert call("import", "rows.csv", "--into", BACK, "--yes", "--strict") == 0
    assert meanings(BACK) == meanings(SET)


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "'=1", "＝1"])
def test_cells_of_tables_are_no_formulas(text):
    conversation = [{"user_content": content("user", text), "final_response": content("model", text)}]
    write([{"eval_id": text, "conversation": conversation}])
    assert call("export", "--set", SET, "--format", "rows", "-o", "rows.csv") == 0
    with Path("rows.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert [row[name] for name in ("id", "user", "expected")] == [f"'{text}"] * 3
    # In a table of others an apostrophe is part of the text.
    Path("others.csv").write_text("id,question,answer\na,'=1,'=1\n", encoding="utf-8")
    mapping = ("--map", "user=question", "--map", "expected=answer")
    assert call("import", "others.csv", "--into", BACK, *mapping, "--yes") == 0
    assert meanings(BACK)[0][1][0][0] == [{"text": "'=1"}]


@pytest.mark.parametrize("form", ["rows", "promptfoo", "dataset"])
def test_secrets_in_an_exported_set_are_told(form, capsys):
    secret = "sk-" + "a1B2" * 8
    cases = [
        {"eval_id": name, "conversation": [{"user_content": content("user", f"Use {text}")}]}
        for name, text in (("with", secret), ("without", "it"))
    ]
    write(cases)
    assert call("export", "--set", SET, "--format", form, "-o", "out.jsonl") == 0
    warning = "1 case has secrets, which are exported as they are: with. Remove them"
    assert warning in capsys.readouterr().err
    assert secret in Path("out.jsonl").read_text(encoding="utf-8")


def test_parts_that_rows_cannot_hold_are_listed_and_strict_writes_nothing(capsys):
    turn = {"user_content": content("user", "Hi"), "final_response": content("model", "Yes")}
    rubric = {"rubric_id": "kind", "rubric_content": {"text_property": "Kind"}}
    scenario = {
        "eval_id": "played",
        "conversation_scenario": {"starting_prompt": "Hi", "conversation_plan": "Go"},
    }
    write(
        [{**case_of(0, [turn, {"user_content": content("user", "Bye")}]), "rubrics": [rubric]}, scenario],
        criteria={"seconds": 9},
        answers=[{"contains": ["a"]}],
        tags=[{"set": "s", "case": "case_0", "tags": ["smoke"]}],
    )
    words = ("export", "--set", SET, "--format", "rows", "-o")
    assert call(*words, "rows.jsonl", "--strict") == 1
    assert not Path("rows.jsonl").exists()
    err = capsys.readouterr().err
    assert "eval_cases[0].rubrics" in err
    assert "eval_cases[1]: no row can hold it: it has no message of the user; left out" in err
    assert "test_config.json: evaltui.answers: 1 entry left out: rows have no place for them" in err
    assert "test_config.json: criteria seconds: left out: rows have no place for them" in err
    assert "nothing written: 4 parts left out (--strict)" in err
    assert call(*words, "rows.jsonl") == 0
    (row,) = map(json.loads, Path("rows.jsonl").read_text(encoding="utf-8").splitlines())
    assert (row["id"], row["tags"]) == ("case_0", ["smoke"])
    assert call(*words, "rows.csv") == 0
    assert "eval_cases[0].conversation[0].final_response" in capsys.readouterr().err
