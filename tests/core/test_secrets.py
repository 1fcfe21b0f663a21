"""What is masked: values of variables by their names, and what looks like nothing but a key."""

from __future__ import annotations

import json

import pytest
from eval_data import make_case, make_turn

from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.secrets import Secrets

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC/+=\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("AIza" + "x" * 35, "<key>"),
        ("id AKIAIOSFODNN7EXAMPLE.", "id <key>."),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K", "<key>"),
        ("xoxb-123456789012-abcdefghij", "<key>"),
        ("(glpat-abcdefghij0123456789)", "(<key>)"),
        ("ghp_" + "a1" * 18, "<key>"),
        ("github_pat_" + "a1_" * 20, "<key>"),
        ("sk-proj-abcdefghij0123456789", "<key>"),
        ("ya29.abcdefghij0123456789", "<key>"),
        ("postgres://shop:s3cr3t@db:5432/x", "postgres://shop:<password>@db:5432/x"),
        ("redis://:s3cr3t@cache", "redis://:<password>@cache"),
        ("Authorization: Bearer abc.def-123_456/789", "Authorization: Bearer <key>"),
        (f"a {PEM} b", "a <private key> b"),
        (PEM[:40], "<private key>"),
        (PEM.replace("\n", "\\n"), "<private key>"),
    ],
)
def test_what_looks_like_a_key(text, clean):
    secrets = Secrets()
    assert secrets.mask_text(text) == clean
    assert secrets.mask_text(clean) == clean
    line = json.dumps({"a": f"\n{text}"})
    assert json.loads(secrets.mask_json(line, json.dumps)) == {"a": f"\n{clean}"}


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8080/path?mail=a@b.c",
        "https://example.com/a:b/c@d",
        "the bearer of good news, whoever 1 it is",
        "desk-assessment-of-the-quarterly-report",
        "a task-with-a-rather-long-name-of-words",
        "AKIA is not a key, nor is eyJ or eyJhbGciOiJ.x",
        "xoxo-xoxo",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    ],
)
def test_what_does_not(text):
    assert Secrets().mask_text(text) is text


def test_values_of_variables_by_their_names():
    secrets = Secrets(
        {
            "SHOP_API_KEY": "correct horse",
            "DB_PASSWORD": 'quo"te\\d',
            "CITY": "Winterthur",
            "PWD": "/home/someone",
        },
        {"LONG_TOKEN": "correct horse battery", "SHORT_KEY": "abc", "MAX_OUTPUT_TOKENS": "100000000"},
    )
    text = 'correct horse battery, correct horse; quo"te\\d; Winterthur /home/someone abc 100000000'
    clean = "<LONG_TOKEN>, <SHOP_API_KEY>; <DB_PASSWORD>; Winterthur /home/someone abc 100000000"
    assert secrets.mask_text(text) == clean
    for ascii_only in (True, False):
        line = json.dumps({"é": [text]}, ensure_ascii=ascii_only)
        assert json.loads(secrets.mask_json(line, json.dumps)) == {"é": [clean]}


def test_whatever_data_they_stand_in_and_nothing_else_is_touched():
    secrets = Secrets({"SHOP_API_KEY": "correct horse"})
    case = EvalCase.model_validate(make_case("correct horse", make_turn("say correct horse")))
    masked = secrets.masked(
        {"case": case, "errors": (ErrorInfo("E", "correct horse", kind=None),), "correct horse": 1}
    )
    assert masked["case"].conversation[0].user_content.parts[0].text == "say <SHOP_API_KEY>"
    assert masked["case"].eval_id == "correct horse"
    assert masked["errors"] == (ErrorInfo("E", "<SHOP_API_KEY>", kind=None),)
    assert masked["<SHOP_API_KEY>"] == 1
    assert case.conversation[0].user_content.parts[0].text == "say correct horse"
    clean = [case.model_copy(deep=True, update={"conversation": []}), {"a": (1, None, b"x")}]
    assert secrets.masked(clean) is clean
