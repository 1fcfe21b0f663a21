"""`evaltui rename`: where names stand, what stays, and what is refused."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SAMPLES = Path(__file__).parents[2] / "sample_agents"

FIND = {"id": "1", "name": "find_order", "args": {"order_id": 7, "id": {"order_id": 1}}}
FOUND = {"id": "1", "name": "find_order", "response": {"name": "find_order", "order_id": 7}}
TRANSFER = {"name": "transfer_to_agent", "args": {"agent_name": "billing"}}
DECLARED = {
    "name": "find_order",
    "parameters": {
        "title": "find_orderParams",
        "properties": {"order_id": {"title": "Order Id"}, "note": {}},
        "required": ["order_id"],
    },
}
EVENTS = [
    {"author": "billing", "content": {"role": "model", "parts": [{"function_call": FIND}]}},
    {"author": "user", "content": {"role": "user", "parts": [{"functionResponse": FOUND}]}},
    {"author": "billing", "content": {"parts": [{"text": "find_order found order_id"}]}},
]
DETAILS = {"billing": {"name": "billing", "tool_declarations": [{"function_declarations": [DECLARED]}]}}


def _rubric(text):
    return {"rubric_id": "r", "rubric_content": {"text_property": text}}


# Data with the names, and what they are with the new ones. Everything else stays.
PLACES = [
    ({"tool_uses": [FIND]}, "tool", {"tool_uses": [{**FIND, "name": "get_order"}]}),
    ({"toolUses": [FIND]}, "tool", {"toolUses": [{**FIND, "name": "get_order"}]}),
    ({"tool_responses": [FOUND]}, "tool", {"tool_responses": [{**FOUND, "name": "get_order"}]}),
    (
        {"tool_uses": [FIND]},
        "argument",
        {"tool_uses": [{**FIND, "args": {"number": 7, "id": {"order_id": 1}}}]},
    ),
    ({"tool_uses": [{**FIND, "name": "other"}, {**FIND, "args": {}}]}, "argument", None),
    (
        {"intermediate_responses": [["billing", [{"text": "billing"}]], ["shop", []]]},
        "agent",
        {"intermediate_responses": [["accounts", [{"text": "billing"}]], ["shop", []]]},
    ),
    (
        {"tool_uses": [TRANSFER, {"name": "transfer_to_billing"}, {"name": "billing"}]},
        "agent",
        {
            "tool_uses": [
                {"name": "transfer_to_agent", "args": {"agent_name": "accounts"}},
                {"name": "transfer_to_accounts"},
                {"name": "accounts"},
            ]
        },
    ),
]
NAMES = {
    "tool": ("find_order", "get_order"),
    "argument": ("find_order.order_id", "number"),
    "agent": ("billing", "accounts"),
}


def _renamed(folder, what, *more):
    return call("rename", what, *NAMES[what], folder, "--yes", *more)


@pytest.mark.parametrize(("data", "what", "expected"), PLACES)
def test_names_in_intermediate_data(data, what, expected, tmp_path):
    turn = make_turn("Find order 7", intermediate_data=data)
    path = write_eval_set(tmp_path, "orders", make_case("a", turn))
    before = path.read_text()
    assert _renamed(tmp_path, what) == (2 if expected is None else 0)
    turn = json.loads(path.read_text())["eval_cases"][0]["conversation"][0]
    assert turn["intermediate_data"] == (data if expected is None else expected)
    assert (path.read_text() == before) is (expected is None)


def _text_of_set(tmp_path):
    turn = make_turn(
        "find_order",
        intermediate_data={"invocation_events": EVENTS},
        app_details={"agent_details": DETAILS},
        rubrics=[_rubric("Calls find_order with `order_id`, refind_orders not; the order_id is 7")],
    )
    state = {"state": {"find_order": 1, "author": "billing"}}
    case = make_case("a", turn, session_input={"app_name": "billing", "user_id": "u", **state})
    return write_eval_set(tmp_path, "orders", case)


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        (
            "tool",
            [
                ('"name": "find_order", "args"', '"name": "get_order", "args"'),
                ('"name": "find_order", "response"', '"name": "get_order", "response"'),
                ('"name": "find_order", "parameters"', '"name": "get_order", "parameters"'),
                ("find_orderParams", "get_orderParams"),
                ("Calls find_order", "Calls get_order"),
            ],
        ),
        (
            "argument",
            [
                ('"args": {"order_id"', '"args": {"number"'),
                (
                    '"properties": {"order_id": {"title": "Order Id"}',
                    '"properties": {"number": {"title": "Number"}',
                ),
                ('["order_id"]', '["number"]'),
                ("`order_id`", "`number`"),
                ("the order_id is", "the number is"),
            ],
        ),
        (
            "agent",
            [
                ('"author": "billing", "content"', '"author": "accounts", "content"'),
                ('{"billing": {"name": "billing"', '{"accounts": {"name": "accounts"'),
            ],
        ),
    ],
)
def test_everything_else_in_a_set_stays_to_the_byte(what, changes, tmp_path):
    path = _text_of_set(tmp_path)
    expected = path.read_text()
    for old, new in changes:
        assert old in expected
        expected = expected.replace(old, new)
    assert _renamed(tmp_path, what) == 0
    assert path.read_text() == expected


CONFIG = """\
{ "criteria": {"trajectory_single_tool_use": {"threshold": 1, "tool": "find_order", "note": "find_order"},
               "rubric_based_tool_use_quality_v1": {"threshold": 1, "rubrics": [
                 {"rubric_id": "r", "rubric_content": {"text_property": "find_order gets \\"order_id\\""}}]}},
  "evaltui": {"tools": {"find_order": "stub", "send": "live"}, "repeats": {"runs": 2},
              "rules": [{"tool": "find_order", "arg": "order_id", "match": "ignore"},
                        {"tool": "find_order", "arg": "order_id[*].x", "match": "ignore"},
                        {"tool": "find_order", "arg": "['order_id'].x", "match": "ignore"},
                        {"tool": "send", "arg": "order_id", "match": "ignore"}],
              "answers": [{"agent": "billing", "contains": ["billing"]}]}}
"""


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        (
            "tool",
            [
                ('"tool": "find_order"', '"tool": "get_order"'),
                ('{"find_order": "stub"', '{"get_order": "stub"'),
                ("find_order gets", "get_order gets"),
            ],
        ),
        (
            "argument",
            [
                ('"find_order", "arg": "order_id', '"find_order", "arg": "number'),
                ("['order_id']", "['number']"),
                ('\\"order_id\\"', '\\"number\\"'),
            ],
        ),
        ("agent", [('{"agent": "billing"', '{"agent": "accounts"')]),
    ],
)
def test_names_in_a_config(what, changes, tmp_path):
    write_eval_set(tmp_path, "orders", make_case("a", make_turn("x", calls=[FIND])))
    path = tmp_path / "test_config.json"
    path.write_text(CONFIG)
    expected = CONFIG
    for old, new in changes:
        assert old in expected
        expected = expected.replace(old, new)
    assert _renamed(tmp_path, what) == 0
    assert path.read_text() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Looks for the id of the order", None),
        ("find gets 'id' and `id`, not the id", "find gets 'number' and `number`, not the id"),
        ("Sends `id`", None),
    ],
)
def test_an_argument_that_is_a_plain_word_is_renamed_in_quotes_only(text, expected, tmp_path):
    turn = make_turn("x", calls=[{"name": "find", "args": {"id": 1}}], rubrics=[_rubric(text)])
    path = write_eval_set(tmp_path, "orders", make_case("a", turn))
    assert call("rename", "argument", "find.id", "number", tmp_path, "--yes") == 0
    (rubric,) = json.loads(path.read_text())["eval_cases"][0]["conversation"][0]["rubrics"]
    assert rubric == _rubric(expected or text)


CLASHES = [
    (
        ("argument", "find.id", "order"),
        {"args": {"id": 1, "order": 2}},
        {},
        "orders.evalset.json:1: eval_cases[0].conversation[0].intermediate_data.tool_uses[0].args.id: "
        "'order' is there already, beside 'id'",
    ),
    (
        ("tool", "find", "get"),
        {},
        {
            "rules": [
                {"tool": "find", "arg": "*", "match": "ignore"},
                {"tool": "get", "arg": "*", "match": "type"},
            ]
        },
        "test_config.json:1: evaltui.rules[0].tool: 'get' is there already, beside 'find'",
    ),
    (
        ("argument", "find.id", "order"),
        {},
        {"rules": [{"tool": "find", "arg": n, "match": "ignore"} for n in ("order", "id.x")]},
        "test_config.json:1: evaltui.rules[1].arg: 'order' is there already, beside 'id'",
    ),
    (
        ("tool", "find", "get"),
        {},
        {"tools": {"get": "stub", "find": "live"}},
        "test_config.json:1: evaltui.tools.find: 'get' is there already, beside 'find'",
    ),
]


@pytest.mark.parametrize(("words", "called", "block", "expected"), CLASHES)
def test_a_name_that_is_taken_is_refused_with_its_place(words, called, block, expected, tmp_path, capsys):
    one = {"name": "find", "args": {"id": 1}} | called
    path = write_eval_set(tmp_path, "orders", make_case("a", make_turn("x", calls=[one])))
    config = write_test_config(tmp_path, criteria={}, evaltui=block)
    before = path.read_text(), config.read_text()
    assert call("rename", *words, tmp_path, "--yes") == 2
    assert capsys.readouterr() == ("", f"evaltui rename: {tmp_path}/{expected}\n")
    assert (path.read_text(), config.read_text()) == before


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tool", "find_ordr", "x"), "no tool 'find_ordr' in {}. Did you mean find_order?"),
        (("tool", "zzz", "x"), "no tool 'zzz' in {}. There: find_order, transfer_to_agent"),
        (
            ("argument", "find_order.order", "x"),
            "no argument 'find_order.order' in {}. Did you mean find_order.order_id?",
        ),
        (("argument", "id", "x"), "name the argument with its tool, such as find_order.order_id"),
        (("agent", "bill", "x"), "no agent 'bill' in {}. Did you mean billing?"),
        (("tool", "find_order", "find_order"), "find_order is its name already"),
        (("tool", "find_order", "get order"), "'get order' cannot be the name of a tool"),
        (("tool", "find_order", ""), "argument NEW: the value is empty"),
    ],
)
def test_what_cannot_be_renamed(words, expected, tmp_path, capsys):
    write_eval_set(tmp_path, "orders", make_case("a", make_turn("x", calls=[FIND, TRANSFER])))
    assert call("rename", *words, tmp_path, "--yes") == 2
    assert capsys.readouterr() == ("", f"evaltui rename: {expected.format(tmp_path)}\n")


def test_without_a_terminal_it_shows_the_changes_and_needs_yes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_eval_set(tmp_path, "orders", make_case("a", make_turn("x", calls=[FIND])))
    before = path.read_text()
    assert call("rename", "tool", "find_order", "get_order") == 2
    out, err = capsys.readouterr()
    assert out.startswith("--- orders.evalset.json\n+++ orders.evalset.json\n@@ -1 +1 @@\n-{")
    refusal = "nothing changed: without a terminal, --yes renames (1 place in 1 file)"
    assert err == f"evaltui rename: {refusal}\n"
    assert path.read_text() == before


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_at_a_terminal_it_asks(answer, code, tmp_path, monkeypatch):
    path = write_eval_set(tmp_path, "orders", make_case("a", make_turn("x", calls=[FIND])))
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or answer)
    assert call("rename", "tool", "find_order", "get_order", tmp_path) == code
    assert asked == ["Rename tool find_order to get_order: 1 place in 1 file? [y/N] "]
    assert ("get_order" in path.read_text()) is (code == 0)


def test_a_reader_that_leaves_does_not_keep_it_from_writing(tmp_path):
    case = make_case("case", make_turn("hello", "right", calls=["find_order"]))
    path = write_eval_set(tmp_path, "set", case)
    command = f"{sys.executable} -m evaltui rename tool find_order get_order {tmp_path} --yes | true"
    subprocess.run(["bash", "-c", command], check=True)
    assert "get_order" in path.read_text()


def test_a_file_of_an_old_format_is_named_and_stays(tmp_path, capsys):
    write_eval_set(tmp_path, "orders", make_case("a", make_turn("x", calls=[FIND])))
    old = tmp_path / "old.test.json"
    old.write_text('[{"query": "x", "expected_tool_use": [{"tool_name": "find_order"}], "reference": ""}]')
    before = old.read_text()
    assert _renamed(tmp_path, "tool") == 0
    stays = f"{old} has 'find_order' and stays: not an eval set or config that can be edited"
    assert stays in capsys.readouterr().err
    assert old.read_text() == before


def test_a_recording_in_which_the_agent_had_both_tools_is_refused(tmp_path, capsys):
    write_eval_set(tmp_path, "orders", make_case("a", make_turn("x", calls=[FIND])))
    recordings = tmp_path / "recordings" / "orders.jsonl"
    recordings.parent.mkdir()
    shared = {"kind": "shared", "id": "1", "tools": [DECLARED, {"name": "get_order"}]}
    recordings.write_text(json.dumps(shared) + "\n")
    assert _renamed(tmp_path, "tool") == 2
    both = "orders.jsonl:1: tools[0].name: the agent had both find_order and get_order"
    assert both in capsys.readouterr().err


names = st.from_regex(r"[a-z]+_[a-z]+[0-9]", fullmatch=True).filter(
    lambda name: name not in json.dumps(EVENTS)
)


def test_a_folder_of_recordings_that_cannot_be_read_is_refused(tmp_path, capsys, monkeypatch):
    path = write_eval_set(tmp_path, "orders", make_case("a", make_turn("Find", calls=[FIND])))
    before, closed, scandir = path.read_text(), tmp_path / "recordings", os.scandir
    closed.mkdir()

    def refusing(folder):
        if Path(folder) == closed:
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    assert _renamed(tmp_path, "tool") == 2
    assert f"{closed} cannot be read: Permission denied" in capsys.readouterr().err
    assert path.read_text() == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(
    what=st.sampled_from(sorted(NAMES)),
    new=names,
    indent=st.sampled_from([None, 1, "\t"]),
    has_bom=st.booleans(),
)
def test_there_and_back_gives_every_byte(what, new, indent, has_bom, tmp_path):
    path, config = _text_of_set(tmp_path), tmp_path / "test_config.json"
    text = json.dumps(json.loads(path.read_text()), indent=indent)
    path.write_text("\ufeff" * has_bom + text.replace("\n", "\r\n"), newline="")
    config.write_text(CONFIG)
    before = path.read_bytes(), config.read_bytes()
    old = NAMES[what][0]
    assert call("rename", what, old, new, tmp_path, "--yes") == 0
    assert path.read_bytes() != before[0]
    owner, _, name = old.rpartition(".")
    back = f"{owner}.{new}" if owner else new
    assert call("rename", what, back, name, tmp_path, "--yes") == 0
    assert (path.read_bytes(), config.read_bytes()) == before


def _verdicts(agent, report, *words):
    code = call("run", agent, *words, "--report", f"json={report}")
    cases = json.loads(report.read_text())["cases"]
    metrics = {
        (case["eval_id"], row["name"]): row["score"]
        for case in cases
        for row in case["metrics"]
        if row["name"] != "invocation_duration_v1"
    }
    return code, {case["eval_id"]: case["status"] for case in cases}, metrics


@pytest.mark.parametrize(
    ("words", "edits"),
    [
        (("tool", "search_flights", "find_flights"), [("search_flights", "find_flights")]),
        (
            ("argument", "search_flights.destination", "city_of_arrival"),
            [
                ("destination: str", "city_of_arrival: str"),
                ('"destination": "{destination}"', '"city_of_arrival": "{destination}"'),
                ('"destination": destination', '"destination": city_of_arrival'),
            ],
        ),
        (
            ("agent", "bookings", "reservations"),
            [
                ('name="bookings"', 'name="reservations"'),
                ('"agent_name": "bookings"', '"agent_name": "reservations"'),
            ],
        ),
    ],
)
def test_the_renamed_agent_replays_its_recordings_with_the_same_verdicts(words, edits, tmp_path):
    pytest.importorskip("google.adk")
    agent = tmp_path / "travel_desk"
    ignored = shutil.ignore_patterns(".evaltui", ".adk", "__pycache__")
    shutil.copytree(SAMPLES / "travel_desk", agent, ignore=ignored)
    recorded = _verdicts(agent, tmp_path / "a.json", "--record", "record")
    files = [*agent.glob("*.json"), *agent.glob("recordings/*")]
    before = {path: path.read_bytes() for path in files}
    assert call("rename", *words, agent, "--yes") == 0
    for path in agent.glob("*.py"):
        text = path.read_text()
        for old, new in edits:
            text = text.replace(old, new)
        path.write_text(text)
    assert _verdicts(agent, tmp_path / "b.json", "--record", "replay") == recorded
    calls = json.loads((tmp_path / "b.json").read_text())["model_calls"]
    assert calls["live"] == 0
    what, old, new = words
    owner, _, name = old.rpartition(".")
    assert call("rename", what, f"{owner}.{new}" if owner else new, name, agent, "--yes") == 0
    assert {path: path.read_bytes() for path in files} == before
