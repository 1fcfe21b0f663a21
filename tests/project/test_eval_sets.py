from __future__ import annotations

import codecs
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.eval_set import full_text, tool_calls
from evaltui.core.model.problems import EvalSetError, Severity
from evaltui.documents.json_text import parse, without_comments
from evaltui.project.eval_sets import load_eval_set, read_eval_set

SHARED = Path(__file__).parents[3] / "shared"

SNAKE = """\
{
  "eval_set_id": "lights",
  "eval_cases": [
    {
      "eval_id": "turn_off",
      "conversation": [
        {
          "user_content": {"role": "user", "parts": [{"text": "Turn it off 🌙"}]},
          "final_response": {"role": null, "parts": [{"text": "It is off."}]},
          "intermediate_data": {"tool_uses": [{"name": "set_device", "args": {"on": false}}]}
        }
      ]
    }
  ]
}
"""
CAMEL = """\
{ "evalSetId": "lights", "evalCases": [ { "evalId": "turn_off", "mine": {"b": 1}, "conversation": [ {
  "userContent": { "role": "user", "parts": [{ "text": "Turn it off 🌙" }] },
  "finalResponse": { "role": "model", "parts": [{ "text": "It is off." }] },
  "intermediateData": { "toolUses": [{"name": "set_device", "args": {"on": false}}] } } ] } ] }
"""
RECORDED = """\
{"eval_set_id": "lights", "eval_cases": [{"eval_id": "turn_off", "conversation": [{
  "user_content": {"parts": [{"text": "Turn it off 🌙"}]},
  "final_response": {"parts": [{"text": "It is off."}], "role": "model"},
  "intermediate_data": {"invocation_events": [
    {"author": "root", "invocationIndex": 0,
     "content": {"parts": [{"function_call": {"id": "1", "name": "set_device", "args": {"on": false}}}]}},
    {"author": "root",
     "content": {"parts": [{"function_response": {"id": "1", "name": "set_device", "response": {}}}]}}]}}],
  "session_input": {"app_name": "home", "user_id": "u", "state": {"mode": "night"}}}]}
"""
OLD_TURN = """\
{"query": "Turn it off 🌙", "expected_tool_use": [{"tool_name": "set_device", "tool_input": {"on": false}}],
 "reference": "It is off."}
"""
SHAPES = {
    "snake.evalset.json": (SNAKE, "eval set"),
    "camel.evalset.json": (CAMEL, "eval set"),
    "recorded.test.json": (RECORDED, "eval set"),
    "old.test.json": (f"[{OLD_TURN}]", "old test"),
    "sessions.evalset.json": (f'[{{"name": "turn_off", "data": [{OLD_TURN}]}}]', "old eval set"),
}


@pytest.fixture(params=SHAPES)
def shape(request, tmp_path) -> tuple[Path, str, str]:
    text, kind = SHAPES[request.param]
    return tmp_path / request.param, text, kind


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_shape_means_the_same(shape, mark, ending):
    path, text, kind = shape
    path.write_bytes(mark + text.replace("\n", ending).encode())
    loaded = read_eval_set(path)
    assert loaded.format == kind
    assert not [problem for problem in loaded.problems if problem.severity is Severity.ERROR]
    eval_set = load_eval_set(str(path))
    assert eval_set == loaded.eval_set
    (case,) = eval_set.eval_cases
    (turn,) = case.conversation
    assert full_text(turn.user_content) == "Turn it off 🌙"
    assert full_text(turn.final_response) == "It is off."
    assert [(call.name, call.args) for call in tool_calls(turn.intermediate_data)] == [
        ("set_device", {"on": False})
    ]


def test_a_file_of_an_old_format_gives_its_name_to_the_set(tmp_path):
    path = tmp_path / "my.lamps.test.json"
    path.write_text(f"[{OLD_TURN}]", encoding="utf-8")
    eval_set = load_eval_set(path)
    assert (eval_set.eval_set_id, eval_set.eval_cases[0].eval_id) == ("my.lamps", "my.lamps")
    assert load_eval_set(path) == eval_set


def test_emoji_load_whatever_the_locale_says(tmp_path):
    path = tmp_path / "x.evalset.json"
    path.write_bytes(codecs.BOM_UTF8 + SNAKE.replace("\n", "\r\n").encode())
    code = (
        "import sys; from evaltui import load_eval_set\n"
        "case = load_eval_set(sys.argv[1]).eval_cases[0]\n"
        "print(ascii(case.conversation[0].user_content.parts[0].text))"
    )
    settings = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "'Turn it off \\U0001f319'"


def errors(path: Path, **more: Any) -> list[str]:
    with pytest.raises(EvalSetError) as caught:
        load_eval_set(path, **more)
    assert {problem.severity for problem in caught.value.problems} == {Severity.ERROR}
    return [str(problem) for problem in caught.value.problems]


def test_problems_have_path_line_and_file(tmp_path):
    path = tmp_path / "x.evalset.json"
    text = SNAKE.replace('"user_content"', '"user_contents"').replace('"turn_off"', "5")
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert errors(path) == [
        "line 5: eval_cases[0].eval_id: must be a string, is the number 5",
        "line 7: eval_cases[0].conversation[0].user_content: missing",
        "line 8: eval_cases[0].conversation[0].user_contents: unknown key. Did you mean user_content?",
    ]
    with pytest.raises(EvalSetError, match=re.escape(f"{path}:5: eval_cases[0].eval_id")):
        load_eval_set(path)


def test_a_typo_in_a_modern_file_is_not_read_as_an_old_one(tmp_path):
    path = tmp_path / "x.evalset.json"
    path.write_text(SNAKE.replace("conversation", "conversatoin"), encoding="utf-8")
    assert [str(problem) for problem in read_eval_set(path).problems] == [
        "line 4: eval_cases[0]: needs exactly one of conversation and conversation_scenario, has neither",
        "line 6: eval_cases[0].conversatoin: unknown key. Did you mean conversation?",
    ]


def test_keys_given_twice_are_errors(tmp_path):
    path = tmp_path / "x.evalset.json"
    path.write_text(
        SNAKE.replace('"eval_id": "turn_off"', '"eval_id": "x",\n"eval_id": "y"'), encoding="utf-8"
    )
    (problem,) = read_eval_set(path).problems
    assert str(problem).startswith("line 6: eval_cases[0].eval_id: given more than once")
    assert (problem.severity, problem.file) == (Severity.ERROR, str(path))


def test_problems_of_an_old_file_have_its_own_paths(tmp_path):
    path = tmp_path / "x.test.json"
    path.write_text('[\n{"query": "q",\n"expected_tool_use": [{"tool_input": {}}]},\n{"reference": ""}]')
    assert errors(path) == [
        "line 3: [0].expected_tool_use[0].tool_name: missing",
        "line 4: [1].query: missing",
    ]


def test_unknown_keys_of_an_old_file_are_named(tmp_path):
    path = tmp_path / "old.test.json"
    call = {"tool_name": "x", "tool_input": {}, "mock_tool_output": 1, "args": {}}
    turn = {"query": "a", "reference": "b", "Reference": "c", "expected_tool_use": [call], "tool_use": []}
    path.write_text(json.dumps([turn]))
    assert [str(problem).partition(": ")[2] for problem in read_eval_set(path).problems] == [
        "[0].Reference: unknown key, ignored",
        "[0].tool_use: unknown key, ignored",
        "[0].expected_tool_use[0].args: unknown key, ignored",
    ]


def test_half_a_character_in_an_old_file_is_an_error(tmp_path):
    path = tmp_path / "x.test.json"
    path.write_text('[{"query": "\\ud83d"}]')
    (sentence,) = errors(path)
    assert "half of a surrogate pair" in sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "line 1: not valid JSON: the file is empty (column 1)"),
        (
            b'{"eval_set_id": "x",}',
            "line 1: not valid JSON: a comma before .*; .* removes it (column 20)",
        ),
        (b'{"a": "\xe9"}', "line 1: not UTF-8: byte 0xE9 at offset 7; save the file as UTF-8"),
        (b"[]", "line 1: not an eval set: expected .*; found an empty list"),
        (b"5", "line 1: not an eval set: expected .*; found the number 5"),
        (b"null", "line 1: not an eval set: expected .*; found null"),
        (b'[{"a": 1}]', "line 1: not an eval set: expected .*; found a list of something else"),
    ],
)
def test_what_is_no_eval_set_says_so_once(tmp_path, content, sentence):
    path = tmp_path / "x.test.json"
    path.write_bytes(content)
    (message,) = errors(path)
    assert re.fullmatch(sentence.replace("(", r"\(").replace(")", r"\)"), message)


def test_a_file_that_cannot_be_opened(tmp_path):
    assert errors(tmp_path / "none.test.json") == ["no such file"]
    assert errors(tmp_path) == ["cannot be read: a folder has this name"]


SESSION = {"id": "s", "app_name": "home", "user_id": "u", "state": {"mode": "night"}, "events": []}


def test_an_initial_session_goes_with_an_old_test(tmp_path):
    path = tmp_path / "x.test.json"
    path.write_text(f"[{OLD_TURN}]", encoding="utf-8")
    session = tmp_path / "initial.session.json"
    session.write_text(json.dumps(SESSION), encoding="utf-8")
    for given_session in (SESSION, session, str(session)):
        case = load_eval_set(path, given_session).eval_cases[0]
        assert (case.session_input.app_name, case.session_input.state) == ("home", {"mode": "night"})
    assert load_eval_set(path, {}).eval_cases[0].session_input is None


def test_an_initial_session_with_another_format_is_refused_unless_it_is_empty(tmp_path):
    path = tmp_path / "x.evalset.json"
    for text, kind in (SHAPES["snake.evalset.json"], SHAPES["sessions.evalset.json"]):
        path.write_text(text, encoding="utf-8")
        (sentence,) = errors(path, initial_session=SESSION)
        assert sentence.startswith("line 1: an initial session needs the old .test.json format"), kind
        assert load_eval_set(path, {})


def test_a_broken_initial_session_is_reported_as_its_own_file(tmp_path):
    path = tmp_path / "x.test.json"
    path.write_text(f"[{OLD_TURN}]", encoding="utf-8")
    session = tmp_path / "s.json"
    assert errors(path, initial_session=session) == ["no such file"]
    session.write_text("{'a': 1}")
    assert "single quotes" in errors(path, initial_session=session)[0]
    session.write_text('{"app_name": "a",\n"state": []}')
    assert errors(path, initial_session=session) == ["line 2: state: must be an object, is a list"]
    session.write_text("[]")
    assert errors(path, initial_session=session) == [
        "line 1: must be an object with app_name, user_id and state, is a list"
    ]
    with pytest.raises(EvalSetError, match=r"^initial_session: user_id: must be a string, is the number 5$"):
        load_eval_set(path, {"user_id": 5})


@given(st.sampled_from(sorted(SHAPES)), st.data())
def test_a_damaged_file_never_raises_anything_else(tmp_path_factory, name, draw):
    text = SHAPES[name][0]
    start = draw.draw(st.integers(0, len(text)))
    end = draw.draw(st.integers(start, min(len(text), start + 30)))
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_text(text[:start] + draw.draw(st.sampled_from(["", "5", "{", '"x": ', ","])) + text[end:])
    loaded = read_eval_set(path)
    has_errors = any(problem.severity is Severity.ERROR for problem in loaded.problems)
    assert (loaded.eval_set is None) == has_errors
    assert all(problem.line and problem.file == str(path) for problem in loaded.problems)


def _shared_files() -> list[Path]:
    found = [*SHARED.glob("evalsets/**/*.test.json"), *SHARED.glob("evalsets/**/*.evalset.json")]
    return sorted(found)


@pytest.mark.skipif(not _shared_files(), reason="the collection of real eval sets is not here")
def test_every_real_eval_set_loads():
    for path in _shared_files():
        eval_set = load_eval_set(path)
        assert eval_set.eval_cases, path
        assert all(case.conversation or case.conversation_scenario for case in eval_set.eval_cases), path


def _objects(text: str) -> Iterator[str]:
    """Every `{...}` of a document in which an eval set is shown, comments and trailing commas removed."""
    for start in re.finditer(r"""\{\s*["'](eval_set_id|evalSetId)["']""", text):
        cleaned, _ = without_comments(text[start.start() :])
        try:
            _, end = json.JSONDecoder().raw_decode(cleaned)
        except json.JSONDecodeError as error:
            raise AssertionError(f"{error}: {cleaned[:200]}") from None
        yield cleaned[:end]


def _documents() -> list[Path]:
    return [path for path in sorted(SHARED.glob("seeds/*.txt")) if "eval" in path.read_text(encoding="utf-8")]


@pytest.mark.skipif(not _documents(), reason="the documents that show eval sets are not here")
def test_every_eval_set_shown_in_the_documents_loads(tmp_path):
    shown = [text for path in _documents() for text in _objects(path.read_text(encoding="utf-8"))]
    assert len(shown) >= 8
    for number, text in enumerate(shown):
        assert isinstance(parse(text), dict)
        path = tmp_path / f"{number}.evalset.json"
        path.write_text(text, encoding="utf-8")
        eval_set = load_eval_set(path)
        assert eval_set.eval_cases[0].conversation[0].user_content.parts[0].text
