"""Nothing of an agent's text is a workflow command where a CI service reads what is printed."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from evaltui.text.values import without_commands
from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn

AGENT = """
COMMANDS = "\\n".join(
    ["x", "::set-output name=answer::1", " \\t::stop-commands::abc"]
    + ["##[error]no", "a ##vso[task.complete]", "##teamcity[x]"]
)

def root_agent(message, session):
    if message == "fail":
        raise ValueError(COMMANDS)
    return COMMANDS
"""
OBEYED = re.compile(r"^\s*::|##\[|##vso\[|##teamcity\[")


def obeyed(text):
    return [line for line in text.splitlines() if OBEYED.search(line)]


def turn(message, answer):
    return make_turn(f"{message}", answer)


def test_no_line_that_commands_print_of_an_agent_is_one(write_agent, tmp_path, capfd):
    agent = write_agent(AGENT)
    cases = [
        make_case("::error::id", turn("hi\n::user::1", "expected\n::expected::1")),
        make_case("broken", turn("fail", "x")),
    ]
    (agent / "s.evalset.json").write_text(json.dumps({"eval_set_id": "::set::1", "eval_cases": cases}))
    assert call("run", agent, "--workers", "1", "--report", "console") == 1
    assert call("report", agent, "last", "--report", "markdown") == 0
    assert call("compare", agent, "last", "last") == 0
    assert call("runs", agent) == 0
    spans = tmp_path / "spans.jsonl"
    assert call("export", agent, "--run", "last", "-o", spans) == 0
    assert call("inspect", spans) == 0
    turns = tmp_path / "turns.txt"
    turns.write_text("::hi::\n")
    assert call("record", agent, "new.evalset.json", "--case", "::new::1", "--turns", turns) == 0
    turns.write_text("fail\n")
    call("record", agent, "new.evalset.json", "--case", "other", "--turns", turns)
    printed = capfd.readouterr()
    assert not obeyed(printed.out)
    assert not obeyed(printed.err)
    assert "\\::stop-commands::abc" in printed.out
    assert "#\\#vso[task.complete]" in printed.out


@pytest.mark.parametrize("kind", ["json", "junit", "markdown"])
def test_a_report_for_programs_that_is_printed_has_none_and_says_the_same(write_agent, capfd, kind):
    agent = write_agent(AGENT)
    (agent / "s.evalset.json").write_text(
        json.dumps(
            {
                "eval_set_id": "##teamcity[x]",
                "eval_cases": [make_case("a ##vso[x]", turn("hi ##[error]x", "expected\n::expected::1"))],
            }
        )
    )
    assert call("run", agent, "--workers", "1", "--report", kind) == 1
    printed = capfd.readouterr().out
    assert not obeyed(printed)
    if kind == "json":
        (found,) = json.loads(printed)["cases"]
        assert found["eval_id"] == "a ##vso[x]"
        assert "::set-output name=answer::1" in found["turns"][0]["response"]["actual"]
        assert "a ##vso[task.complete]" in found["turns"][0]["response"]["actual"]
    if kind == "junit":
        (found,) = ElementTree.fromstring(printed).iter("testcase")
        assert (found.get("name"), found.get("classname")) == ("a ##vso[x]", "##teamcity[x]")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("::error::x", "\\::error::x"),
        ("a\n \t::x::", "a\n \t\\::x::"),
        ("##[group]", "#\\#[group]"),
        ("a ##vso[x] ##teamcity[y]", "a #\\#vso[x] #\\#teamcity[y]"),
        ("a ::b::", "a ::b::"),
        ("## Heading [x]", "## Heading [x]"),
        ("a.json::case", "a.json::case"),
    ],
)
def test_a_mark_is_before_commands_and_nothing_else(text, clean):
    assert without_commands(text) == clean
    assert without_commands(clean) == clean
