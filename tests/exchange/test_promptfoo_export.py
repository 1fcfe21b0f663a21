"""`evaltui export --format promptfoo`: imported again they give the same cases; the rest is listed."""

import json
from pathlib import Path

import pytest
from eval_data import make_case, make_turn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.commands.command_line import call

SET, BACK, SUITE = Path("s.evalset.json"), Path("back/back.evalset.json"), Path("promptfooconfig.yaml")
# Texts without templates, which are no messages in JSON or YAML.
TEXT = st.text("ab 1,;\"'é", min_size=1).map(lambda text: f"x{text}x")
CALL = st.fixed_dictionaries(
    {
        "name": st.sampled_from(("find", "book")),
        "args": st.dictionaries(st.sampled_from("ab"), st.integers() | TEXT, min_size=1),
    }
)
TURN = st.builds(
    lambda user, response, calls: make_turn(user, response, calls),
    TEXT,
    TEXT,
    st.lists(CALL, min_size=1, max_size=3, unique_by=lambda item: item["name"]),
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(cases, criteria, **block):
    for path in (SET, BACK, SUITE, BACK.with_name("test_config.json")):
        path.unlink(missing_ok=True)
    BACK.parent.mkdir(exist_ok=True)
    SET.write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}), encoding="utf-8")
    Path("test_config.json").write_text(json.dumps({"criteria": criteria, "evaltui": block}))


def export(*words):
    return call("export", "--set", SET, "--format", "promptfoo", "-o", SUITE, *words)


def meaning(path):
    """Messages, calls and responses of each case."""
    return [
        (
            case["eval_id"],
            [
                (
                    turn["user_content"]["parts"],
                    [(use["name"], use["args"]) for use in turn["intermediate_data"]["tool_uses"]],
                    turn["final_response"]["parts"],
                )
                for turn in case["conversation"]
            ],
        )
        for case in json.loads(path.read_text(encoding="utf-8"))["eval_cases"]
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    conversations=st.lists(st.lists(TURN, min_size=1, max_size=3), min_size=1, max_size=3),
    match_type=st.sampled_from(("EXACT", "IN_ORDER")),
)
def test_cases_that_tests_can_hold_come_back_as_they_were(conversations, match_type):
    cases = [make_case(f"case_{number}", *turns) for number, turns in enumerate(conversations)]
    trajectory = {"threshold": 1.0, "match_type": match_type}
    write(cases, {"tool_trajectory_avg_score": trajectory, "response_match_score": 0.8})
    assert export("--strict") == 0
    assert call("import", SUITE, "--into", BACK, "--yes") == 0
    assert meaning(BACK) == meaning(SET)


def assertions():
    (test,) = json.loads(SUITE.read_text())["tests"]
    return [(item["type"], item.get("value")) for item in test["assert"]]


FIND = {"name": "find", "args": {"q": "x"}}
CASES = [
    ({"tool_trajectory_avg_score": 1}, {}, [
        ("trajectory:tool-sequence", {"mode": "exact", "steps": ["find"]}),
        ("trajectory:tool-args-match", {"name": "find", "args": {"q": "x"}, "mode": "exact"}),
    ]),
    ({"tool_trajectory_avg_score": {"threshold": 1, "match_type": "ANY_ORDER", "ignore_args": True}}, {}, [
        ("trajectory:tool-used", {"name": "find", "min": 1}),
    ]),
    (
        {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "ANY_ORDER"}},
        {"rules": [{"tool": "find", "arg": "q", "match": "ignore"}]},
        [
            ("trajectory:tool-used", {"name": "find", "min": 1}),
            (
                "trajectory:tool-args-match",
                {"name": "find", "args": {"q": "x"}, "mode": "exact", "ignore": ["q"]},
            ),
        ],
    ),
    (
        {"response_match_score": 0.5},
        {"answers": [{"contains": ["7"], "not_contains": ["no"], "regex": "a+", "json_schema": {}}]},
        [
            ("rouge-n", "done"),
            ("icontains-all", ["7"]),
            ("not-icontains", "no"),
            ("regex", "a+"),
            ("is-json", {}),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("criteria", "block", "expected"), CASES)
def test_expectations_become_assertions(criteria, block, expected):
    write([make_case("c", make_turn("hi", "done", [FIND]))], criteria, **block)
    assert export() == 0
    assert assertions() == expected


RUBRICS = {"threshold": 1, "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "Polite"}}]}


@pytest.mark.parametrize(
    ("case", "criteria", "block", "told"),
    [
        ({"session_input": {"app_name": "a", "user_id": "u", "state": {"x": 1}}}, {}, {}, "session_input"),
        ({"final_session_state": {"x": 1}}, {}, {}, "final_session_state"),
        ({}, {"safety_v1": 0.8}, {}, "criteria safety_v1: left out"),
        ({}, {}, {"answers": [{"numbers": "equal"}]}, '"numbers" left out'),
        ({}, {}, {"answers": [{"not_contains": ["no"]}]}, "texts inside of words count, too"),
        (
            {},
            {"rubric_based_final_response_quality_v1": RUBRICS},
            {},
            "1 rubric left out: write them into turns",
        ),
        ({}, {}, {"thoughts": "score"}, 'evaltui.thoughts: "score" left out'),
        ({}, {}, {"rules": [{"tool": "find", "arg": "q", "match": "type"}]}, "evaltui.rules: type left out"),
        (
            {},
            {},
            {"rules": [{"tool": "find", "arg": "q", "match": "subset"}]},
            "evaltui.rules: subset left out",
        ),
        (
            {},
            {},
            {"rules": [{"tool": "find", "arg": "q.r", "match": "ignore"}]},
            "evaltui.rules: ignore left out",
        ),
        ({}, {}, {"turns": [{"set": "s", "case": "c", "turn": 0, "mode": "skip"}]}, "evaltui.turns"),
    ],
)
def test_a_part_that_tests_cannot_hold_is_listed_and_strict_writes_nothing(
    case, criteria, block, told, capsys
):
    criteria = {"tool_trajectory_avg_score": 1, "response_match_score": 0.8, **criteria}
    write([make_case("c", make_turn("hi", "done", [FIND]), **case)], criteria, **block)
    assert export() == 0
    assert told in capsys.readouterr().err
    SUITE.unlink()
    assert export("--strict") == 1
    assert not SUITE.exists()
