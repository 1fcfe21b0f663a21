"""From what is shown to its source, in the user's editor."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltui.project.agent_source import (
    SourcePlace,
    frame_place,
    function_place,
    instruction_place,
    root_place,
    source_lines,
)
from evaltui.workbench.case.editors import command_at_line, editor_of

PLACE = SourcePlace(Path("/x/agent.py"), 12)
AGENT = """
from google.adk.agents import LlmAgent

def find(name):
    return name

helper = LlmAgent(
    name="helper",
    instruction="Help.",
)
root_agent = LlmAgent(name="desk", sub_agents=[helper])
"""


@pytest.mark.parametrize(
    ("editor", "words", "in_terminal"),
    [
        ("vim", ["vim", "+12", "/x/agent.py"], True),
        ("nvim -n", ["nvim", "-n", "+12", "/x/agent.py"], True),
        ("/usr/bin/nano", ["/usr/bin/nano", "+12", "/x/agent.py"], True),
        ("emacs -nw", ["emacs", "-nw", "+12", "/x/agent.py"], True),
        ("hx", ["hx", "+12", "/x/agent.py"], True),
        ("code --wait", ["code", "--goto", "/x/agent.py:12"], False),
        ("cursor", ["cursor", "--goto", "/x/agent.py:12"], False),
        ("windsurf -w", ["windsurf", "--goto", "/x/agent.py:12"], False),
        ("zed --wait", ["zed", "/x/agent.py:12"], False),
        ("pycharm", ["pycharm", "--line", "12", "/x/agent.py"], False),
        ("my-editor", ["my-editor", "/x/agent.py"], True),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(editor, words, in_terminal):
    assert command_at_line(editor.split(), PLACE) == (words, in_terminal)


@pytest.mark.parametrize(
    ("environ", "found", "editor"),
    [
        ({"VISUAL": "nvim", "EDITOR": "ed"}, (), "nvim"),
        ({"EDITOR": "nano", "TERM_PROGRAM": "vscode"}, ("code",), "nano"),
        ({"TERM_PROGRAM": "vscode"}, ("code",), "code --wait"),
        ({"TERM_PROGRAM": "vscode"}, ("cursor",), "cursor --wait"),
        ({"TERM_PROGRAM": "vscode"}, (), ""),
        ({}, ("code",), ""),
    ],
)
def test_the_editor_is_the_users_or_that_of_the_terminal(environ, found, editor):
    assert editor_of(environ, lambda name: name if name in found else None) == editor


def test_places_in_the_source_are_found_without_importing_it(tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT, encoding="utf-8")
    (tmp_path / "tools.py").write_text("\n\nasync def search():\n    pass\n", encoding="utf-8")
    assert root_place(tmp_path) == (agent, 11)
    assert function_place(tmp_path, "find") == (agent, 4)
    assert function_place(tmp_path, "search") == (tmp_path / "tools.py", 3)
    assert function_place(tmp_path, "nothing") is None
    assert instruction_place(tmp_path, "helper") == (agent, 9)
    assert instruction_place(tmp_path, "desk") == (agent, 11), "without an instruction, the agent"


def test_of_a_traceback_the_innermost_frame_of_the_agent_counts(tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT, encoding="utf-8")
    lines = [(str(agent), 3), (str(agent), 5), ("/usr/lib/python3/json/decoder.py", 355)]
    text = "\n".join(f'  File "{path}", line {line}, in x\n    code' for path, line in lines)
    place = frame_place(tmp_path, f"Traceback (most recent call last):\n{text}\nValueError: x")
    assert place == (agent, 5)
    assert place.shown(tmp_path) == "agent.py:5"
    assert frame_place(tmp_path, "no frame") is None
    assert [number for number, _ in source_lines(place)] == [2, 3, 4, 5, 6, 7]
