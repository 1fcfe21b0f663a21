"""Exceptions that cannot be printed: their type and their place are told, at once."""

from __future__ import annotations

import json

import pytest
from google.genai.errors import APIError

from evaltui import EvalConfig, EvalSet, Status, evaluate
from evaltui.agents.errors import describe_error

EVIL = """
import asyncio

class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no")
    __repr__ = __str__

class Leaving(Exception):
    def __str__(self):
        raise SystemExit(3)

class Wrong(Exception):
    def __str__(self):
        return 7

class Endless(Exception):
    def __str__(self):
        return str(self)

class Odd(SyntaxError):
    filename = property(lambda self: 1 / 0)
    lineno = property(lambda self: 1 / 0)

def mute(): raise Mute
def leaving(): raise Leaving
def wrong(): raise Wrong
def endless(): raise Endless
def odd(): raise SyntaxError("odd", (7, "x", object(), None))
def deep(): return deep()
def huge(): raise ValueError("x" * 2_000_000)
def lone(): raise ValueError("\\ud800")

def chained(count=3000):
    error = None
    for number in range(count):
        try:
            try:
                raise KeyError(number)
            except KeyError as inner:
                if error is not None:
                    raise ValueError(number) from error
                raise
        except Exception as raised:
            error = raised
    raise error

def cycle():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    raise one

def group():
    inner = []
    for kind in (Mute, KeyError):
        try:
            raise kind("inside")
        except Exception as error:
            inner.append(error)
    raise ExceptionGroup("both", inner)

def nested():
    group = ValueError("inside")
    for number in range(2000):
        group = ExceptionGroup(str(number), [group])
    raise group
"""
KINDS = {
    "mute": "Mute",
    "leaving": "Leaving",
    "wrong": "Wrong",
    "endless": "Endless",
    "odd": "SyntaxError",
    "deep": "RecursionError",
    "huge": "ValueError",
    "lone": "ValueError",
    "chained": "ValueError",
    "cycle": "ValueError",
    "group": "ExceptionGroup",
    "nested": "ExceptionGroup",
}


@pytest.mark.parametrize("kind", KINDS)
def test_type_and_place_are_told(tmp_path, kind):
    path = tmp_path / "agent.py"
    names: dict[str, object] = {}
    exec(compile(EVIL, str(path), "exec"), names)
    raised: BaseException | None = None
    try:
        names[kind]()  # type: ignore[operator]
    except BaseException as error:
        raised = error
    assert raised is not None
    described = describe_error(raised)
    assert described["type"] == KINDS[kind]
    assert described["where"].startswith("agent.py:") or kind == "odd"
    assert "agent.py" in described["traceback"]
    assert len(json.dumps(described).encode("utf-8")) < 400_000


async def test_the_case_does_not_wait_for_its_time_out(write_agent):
    agent = write_agent(EVIL + "\ndef root_agent(message, session):\n    globals()[message]()\n")
    said = ["mute", "leaving", "chained", "nested", "huge"]
    conversations = [
        {"user_content": {"parts": [{"text": one}]}, "final_response": {"parts": [{"text": one}]}}
        for one in said
    ]
    cases = [{"eval_id": one, "conversation": [turn]} for one, turn in zip(said, conversations, strict=True)]
    sets = EvalSet.model_validate({"eval_set_id": "evil", "eval_cases": cases})
    result = await evaluate(agent, sets, EvalConfig(criteria={"response_match_score": 0.9}))
    assert [one.status for one in result.cases] == [Status.ERROR] * len(said)
    types = [one.error.type if one.error else "" for one in result.cases]
    assert types == [KINDS[one] for one in said]


def test_a_syntax_error_tells_its_place_once():
    with pytest.raises(SyntaxError) as raised:
        compile("def f(:\n", "/somewhere/agent.py", "exec")
    described = describe_error(raised.value)
    assert described["where"] == "agent.py:1"
    assert described["message"] == "invalid syntax"
    assert describe_error(SyntaxError("no place"))["message"] == "no place"


def of_gemini(status, name, message):
    body = {"error": {"code": status, "status": name, "message": message}}
    return APIError(status, body)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            of_gemini(429, "RESOURCE_EXHAUSTED", "Quota exceeded.\nSee the docs."),
            "429 RESOURCE_EXHAUSTED: Quota exceeded. "
            "Wait, run fewer cases at once (--parallel 1), or raise the quota",
        ),
        (
            of_gemini(404, "NOT_FOUND", "models/gemini-9 is not found"),
            "404 NOT_FOUND: models/gemini-9 is not found. Check the name of the model",
        ),
        (
            of_gemini(403, "PERMISSION_DENIED", "API key not valid"),
            "403 PERMISSION_DENIED: API key not valid. Check the API key and what it may use",
        ),
        (of_gemini(400, "INVALID_ARGUMENT", "Bad tool"), "400 INVALID_ARGUMENT: Bad tool"),
    ],
)
def test_what_a_model_refuses_is_said_in_words_with_what_to_do(error, message):
    assert describe_error(error)["message"] == message


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("No API key was provided. Please pass a valid API key.", "GOOGLE_API_KEY"),
        (
            "The api_key client option must be set either by passing api_key to the client or by setting the "
            "OPENAI_API_KEY environment variable",
            "OPENAI_API_KEY",
        ),
        (
            "Set the `GROQ_API_KEY` environment variable or pass it via `GroqProvider(api_key=...)`",
            "GROQ_API_KEY",
        ),
    ],
)
def test_a_missing_key_is_named_with_the_places_to_set_it(tmp_path, said, key):
    described = describe_error(RuntimeError(said), tmp_path / "desk")
    assert described["message"] == f"{key} is not set. Set it in desk/.env or the environment."
    assert described["kind"] == "config"
    assert describe_error(RuntimeError(said))["message"] == f"{key} is not set. Set it in the environment."
