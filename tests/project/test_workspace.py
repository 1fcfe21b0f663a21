from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from eval_data import make_case

from evaltui.core.model.problems import SelectionError, Severity
from evaltui.project.agents import agents_in
from evaltui.project.folders import case_path
from evaltui.project.workspace import open_workspace, select

TURN = {"user_content": {"role": "user", "parts": [{"inline_data": {}}, {"text": "hello"}, {"text": "x"}]}}


def write_set(path: Path, set_id: str, *case_ids: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cases = [make_case(eval_id, TURN, TURN) for eval_id in case_ids]
    path.write_text(json.dumps({"eval_set_id": set_id, "name": set_id.title(), "eval_cases": cases}))
    return path


@pytest.fixture
def project(tmp_path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "agent.py").touch()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def origins(workspace):
    return {entry.eval_set_id: entry.origin for entry in workspace.sets}


def test_sets_are_found_in_every_place_with_their_origin(project):
    agent = project / "agent"
    write_set(agent / "a.evalset.json", "own", "x")
    write_set(agent / "eval" / "b.evalset.json", "eval", "x")
    write_set(agent / "evaluation" / "deep" / "c.test.json", "evaluation", "x")
    write_set(agent / "tests" / "unit" / "d.test.json", "tests", "x")
    write_set(agent / "test_files" / "e.test.json", "test_files", "x")
    write_set(project / "evals" / "f.evalset.json", "evals beside", "x")
    write_set(project / "tests" / "eval" / "evalsets" / "g.evalset.json", "tests beside", "x")
    elsewhere = write_set(project / "elsewhere" / "odd_name.json", "given file", "x")
    write_set(project / "folder" / "h.test.json", "given folder", "x")
    # None of these belong to the agent.
    write_set(agent / "data" / "i.test.json", "data", "x")
    write_set(project / "j.test.json", "beside", "x")
    write_set(project / "other_agent" / "k.test.json", "other", "x")
    write_set(project / "evaluator" / "l.test.json", "an agent beside", "x")
    (project / "evaluator" / "agent.py").touch()
    write_set(project / "evaltui" / "tests" / "n.test.json", "a checkout beside", "x")
    (project / "evaltui" / ".git").mkdir()
    write_set(project / "evalkit" / "o.test.json", "a project beside", "x")
    (project / "evalkit" / "pyproject.toml").touch()
    for hidden in (".venv", "node_modules", ".git", "__pycache__", ".evaltui", ".adk"):
        write_set(agent / "eval" / hidden / "m.test.json", "hidden", "x")
    workspace = open_workspace(agent, [elsewhere, str(project / "folder"), agent / "eval"])
    assert origins(workspace) == {
        "own": "agent directory",
        "eval": "eval/",
        "evaluation": "evaluation/deep/",
        "tests": "tests/unit/",
        "test_files": "test_files/",
        "evals beside": "../evals/",
        "tests beside": "../tests/eval/evalsets/",
        "given file": "given",
        "given folder": "given",
    }
    assert [entry.path for entry in workspace.sets] == sorted(entry.path for entry in workspace.sets)
    assert workspace.skipped == ()


def test_the_sets_of_another_agent_are_left_out_in_a_folder_that_holds_several(project):
    write_set(project / "evals" / "shared.evalset.json", "shared", "x")
    for folder in ("agent", "eval_bot", "evals/nested", "tests/bot"):
        write_set(project / folder / "own.evalset.json", folder, "x")
        (project / folder / "agent.py").touch()
    assert {one.eval_set_id for one in open_workspace(project).sets} == {"shared"}
    assert {one.eval_set_id for one in open_workspace(project / "agent").sets} == {"shared", "agent"}
    bots = {one.eval_set_id for one in open_workspace(project / "tests" / "bot").sets}
    assert bots == {"shared", "tests/bot"}


def test_an_agent_may_be_a_single_file_or_the_current_folder(project, monkeypatch):
    write_set(project / "agent" / "a.evalset.json", "own", "x")
    write_set(project / "tests" / "b.evalset.json", "beside", "x")
    expected = {"own": "agent directory", "beside": "../tests/"}
    assert origins(open_workspace(project / "agent" / "agent.py")) == expected
    monkeypatch.chdir(project / "agent")
    assert origins(open_workspace(Path())) == expected
    assert origins(open_workspace(Path("agent.py"))) == expected
    monkeypatch.chdir(project)
    assert origins(open_workspace(Path("agent"))) == expected
    assert [entry.path for entry in open_workspace(Path("agent")).sets] == [
        Path("agent/a.evalset.json"),
        Path("tests/b.evalset.json"),
    ]


def test_links_and_loops_are_harmless(project):
    agent = project / "agent"
    own = write_set(agent / "a.evalset.json", "own", "x")
    (agent / "eval").mkdir()
    (agent / "eval" / "again.evalset.json").symlink_to(own)
    (agent / "eval" / "loop").symlink_to(agent, target_is_directory=True)
    nowhere = agent / "eval" / "nowhere.evalset.json"
    nowhere.symlink_to(agent / "none")
    (agent / "tests").symlink_to(agent / "eval", target_is_directory=True)
    assert [entry.path for entry in open_workspace(agent).sets] == [own, nowhere]


def test_what_a_list_shows(project):
    agent = project / "agent"
    write_set(agent / "snake.evalset.json", "snake", "a", "b")
    (agent / "camel.evalset.json").write_text(
        json.dumps(
            {
                "evalSetId": "camel",
                "evalCases": [
                    {"evalId": "c", "conversation": [{"userContent": {"parts": [{"text": "hi"}]}}]},
                    {"evalId": "s", "conversationScenario": {"startingPrompt": "go"}},
                    {"evalId": "e", "conversation": []},
                ],
            }
        )
    )
    (agent / "old.test.json").write_text('[{"query": "one"}, {"query": "two"}]')
    workspace = open_workspace(agent)
    shown = {
        entry.eval_set_id: (
            entry.format,
            [(case.eval_id, case.outline.turns, case.outline.first_text) for case in entry.cases],
        )
        for entry in workspace.sets
    }
    assert shown == {
        "snake": ("eval set", [("a", 2, "hello"), ("b", 2, "hello")]),
        "camel": ("eval set", [("c", 1, "hi"), ("s", None, "go"), ("e", 0, "")]),
        "old": ("old test", [("old", 2, "one")]),
    }
    assert {entry.name for entry in workspace.sets} == {"Snake", "", "old"}
    assert not any(entry.problems for entry in workspace.sets)


def test_a_broken_set_is_listed_with_its_problems(project):
    agent = project / "agent"
    (agent / "a.evalset.json").write_text('{"eval_set_id": "x",')
    (agent / "b.evalset.json").write_text('{"eval_cases": [\n{"conversation": 5},\n7,\n{"eval_id": 1}]}')
    (agent / "c.evalset.json").write_text('{"evalSetId": "c", "eval_cases": {}}')
    (agent / "d.evalset.json").write_text("[5]")
    (agent / "e.evalset.json").write_text("{}")
    a, b, c, d, e = open_workspace(agent).sets
    assert (a.eval_set_id, a.format, a.cases) == ("a", None, ())
    assert [str(problem) for problem in a.problems] == [
        "line 1: not valid JSON: the file ends too early; a closing bracket or a value is missing (column 21)"
    ]
    assert (b.eval_set_id, [case.eval_id for case in b.cases]) == ("b", ["", "", ""])
    assert [str(problem) for problem in b.problems] == [
        "line 1: eval_set_id: missing",
        "line 2: eval_cases[0].eval_id: missing",
        "line 3: eval_cases[1]: must be an object, is the number 7",
        "line 4: eval_cases[2].eval_id: must be a string, is the number 1",
    ]
    assert {problem.severity for problem in b.problems} == {Severity.ERROR}
    assert (c.eval_set_id, c.cases) == ("c", ())
    assert [str(problem) for problem in c.problems] == ["line 1: eval_cases: must be a list, is an object"]
    assert d.format is None
    assert [str(problem) for problem in e.problems] == [
        "line 1: eval_set_id: missing",
        "line 1: eval_cases: missing",
    ]


def test_what_looks_like_a_set_but_is_not_named_like_one_is_skipped_with_the_reason(project):
    agent = project / "agent"
    write_set(agent / "eval" / "lights.json", "lights", "x")
    broken = agent / "broken.json"
    broken.write_text('{"eval_cases": [')
    for name, text in {
        "test_config.json": '{"criteria": {}, "eval_cases": 1}',
        "initial.session.json": '{"state": {"eval_cases": 1}}',
        "package.json": "{}",
        "queries.json": '[{"query": "x"}]',
    }.items():
        (agent / name).write_text(text)
    skipped = {one.path: one.reason for one in open_workspace(agent).skipped}
    reason = "looks like an eval set, but its name ends in neither .evalset.json nor .test.json"
    assert skipped == {broken: reason}
    workspace = open_workspace(agent, [agent / "none.json"])
    assert origins(workspace) == {"lights": "eval/"}
    assert {one.path: one.reason for one in workspace.skipped} == {
        broken: reason,
        agent / "none.json": "no such file or folder",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_listed(project):
    path = write_set(project / "agent" / "a.evalset.json", "own", "x")
    path.chmod(0)
    (entry,) = open_workspace(project / "agent").sets
    assert str(entry.problems[0]) == "cannot be read: Permission denied"


def test_agents_in_a_folder(project):
    for name, file, text in [
        ("by_yaml", "root_agent.yaml", ""),
        ("by_init", "__init__.py", "from shopbot.desk import root_agent\n"),
        (".hidden", "agent.py", ""),
        ("empty", "readme.txt", ""),
    ]:
        (project / name).mkdir()
        (project / name / file).write_text(text)
    assert agents_in(project) == ["agent", "by_init", "by_yaml"]
    (project / "agent" / "sub").mkdir()
    (project / "agent" / "sub" / "agent.py").touch()
    assert agents_in(project / "agent") == []
    assert agents_in(project / "agent" / "agent.py") == []


PACKAGES = {
    "defines it": ("def root_agent(message, session): ...", True),
    "is async": ("async def get_agent_async(): ...", True),
    "under a condition": ("try:\n    import x\nfinally:\n    root_agent = 1", True),
    "a module of its own": ("from . import agent", True),
    "names of a module": ("from .agent import tools", True),
    "every name of a module": ("from .agent import *", True),
    "a module elsewhere": ("from shopbot.desk import agent", True),
    "an app of ADK": ("from google.adk.apps import App\napp = App(name='desk')", True),
    "a lazy name": ("def __getattr__(name):\n    if name == 'root_agent': ...", True),
    "is being edited": ("root_agent = (", True),
    "mentions one": ('"""Helpers of root_agent, the agent and its app."""', False),
    "an argument": ("def call(agent, app): return agent.root_agent", False),
    "a string": ("NAMES = ['root_agent', 'agent']", False),
    "an app of the web": ("from fastapi import FastAPI\napp = FastAPI()", False),
    "another import": ("from .desk import agent", False),
    "an annotation": ("root_agent: object", False),
    "inside a function": ("def make():\n    root_agent = 1", False),
}


@pytest.mark.parametrize(("text", "is_agent"), PACKAGES.values(), ids=PACKAGES)
def test_a_package_is_an_agent_where_an_import_would_have_one(text, is_agent, tmp_path):
    (tmp_path / "desk" / "agent").mkdir(parents=True)
    (tmp_path / "desk" / "agent" / "__init__.py").write_text("root_agent = print\n")
    (tmp_path / "desk" / "__init__.py").write_text(f"{text}\n")
    assert ("desk" in agents_in(tmp_path)) == is_agent


def test_a_list_loads_no_models(project):
    write_set(project / "agent" / "a.evalset.json", "own", "x")
    code = (
        "import sys; from pathlib import Path; from evaltui.project.workspace import open_workspace, select\n"
        "assert select(open_workspace(Path(sys.argv[1])))\n"
        "print([name for name in ('google.genai', 'pydantic', 'textual') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(project / "agent")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture
def lights(project):
    agent = project / "agent"
    write_set(
        agent / "lights.evalset.json", "lights", "turn_off_bedroom", "set_thermostat", "a,b", "a", "x/y:z"
    )
    write_set(agent / "eval" / "one.test.json", "twice", "first")
    write_set(agent / "eval" / "two.test.json", "twice", "second")
    write_set(agent / "empty.evalset.json", "empty")
    write_set(agent / "colon.evalset.json", "lights:night", "dim")
    return agent


def picked(agent, *selectors):
    return [
        (entry.path.name.partition(".")[0], list(cases) if cases is not None else None)
        for entry, cases in select(open_workspace(agent), selectors)
    ]


def test_without_selectors_everything_is_selected(lights):
    assert picked(lights) == [
        ("colon", None),
        ("empty", None),
        ("one", None),
        ("two", None),
        ("lights", None),
    ]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("lights", ("lights", None)),
        ("lights:set_thermostat", ("lights", ["set_thermostat"])),
        ("lights:set_thermostat,turn_off_bedroom", ("lights", ["set_thermostat", "turn_off_bedroom"])),
        ("lights:a,b", ("lights", ["a,b"])),
        ("lights:a", ("lights", ["a"])),
        ("lights:x/y:z", ("lights", ["x/y:z"])),
        ("lights:night", ("colon", None)),
        ("lights:night:dim", ("colon", ["dim"])),
        ("lights.evalset.json:a", ("lights", ["a"])),
        ("eval/one.test.json", ("one", None)),
    ],
)
def test_selectors(lights, selector, expected):
    assert picked(lights, selector) == [expected]


def test_a_file_is_named_from_the_current_folder_too(lights, monkeypatch):
    monkeypatch.chdir(lights.parent)
    assert picked(Path("agent"), "agent/lights.evalset.json:a") == [("lights", ["a"])]
    assert picked(lights, str(lights / "eval" / "two.test.json") + ":second") == [("two", ["second"])]


def test_files_and_folders_outside_of_the_workspace(lights, tmp_path):
    odd = write_set(tmp_path / "more" / "odd.json", "odd", "x")
    write_set(tmp_path / "more" / "deep" / "deep.test.json", "deep", "y")
    assert picked(lights, f"{odd}:x", str(tmp_path / "more")) == [("odd", None), ("deep", None)]


def test_a_folder_stands_for_its_sets(lights):
    assert picked(lights, str(lights / "eval")) == [("one", None), ("two", None)]
    assert picked(lights, "eval") == [("one", None), ("two", None)]
    assert picked(lights, "eval:second") == [("two", ["second"])]


def test_selectors_of_one_set_add_up(lights):
    assert picked(lights, "lights:a", "lights:set_thermostat,a") == [("lights", ["a", "set_thermostat"])]
    assert picked(lights, "lights:a", "lights") == [("lights", None)]
    assert picked(lights, "lights", "lights:a") == [("lights", None)]


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("lights:turn_of_bedroom", "no case 'turn_of_bedroom' in lights. Did you mean turn_off_bedroom?"),
        (
            "lights:a,zzzzz",
            "no case 'zzzzz' in lights. Known: turn_off_bedroom, set_thermostat, a,b, a, x/y:z",
        ),
        ("lights:", "case id missing after lights:"),
        ("lights:a,", "case id missing after lights:"),
        ("lihgts:a", "no eval set 'lihgts' in NAME. Did you mean lights?"),
        ("", "no eval set '' in NAME. Known: lights:night, empty, twice, twice, lights"),
        ("empty", "empty has no cases; nothing to run"),
        ("empty:x", "no case 'x' in empty"),
        (
            "twice",
            "'twice' is the id of several sets, AGENT/eval/one.test.json and AGENT/eval/two.test.json. "
            "Name the file",
        ),
        ("nothing_here", "no eval sets found in AGENT/nothing_here"),
    ],
)
def test_what_cannot_be_selected_says_why_in_one_line(lights, selector, message):
    (lights / "nothing_here").mkdir()
    with pytest.raises(SelectionError) as caught:
        picked(lights, selector)
    assert str(caught.value) == message.replace("NAME", lights.name).replace("AGENT", str(lights))


def test_nothing_at_all_says_what_was_skipped(project):
    agent = project / "agent"
    with pytest.raises(
        SelectionError, match=f"^no eval sets found for {agent}; looked for .* root of its project$"
    ):
        picked(agent)
    (agent / "x.json").write_text('{"eval_cases": [')
    with pytest.raises(SelectionError, match=r"x\.json looks like an eval set"):
        picked(agent)
    (agent / "x.json").unlink()
    write_set(agent / "empty.evalset.json", "empty")
    with pytest.raises(SelectionError, match="has no cases; nothing to run"):
        picked(agent)


def test_a_set_that_cannot_be_read_is_selected_so_that_loading_it_says_why(project):
    agent = project / "agent"
    (agent / "bad.evalset.json").write_text("{")
    assert picked(agent) == [("bad", None)]
    assert picked(agent, "bad") == [("bad", None)]
    assert picked(agent, "bad:some_case") == [("bad", ["some_case"])]


def test_a_set_is_named_also_once_the_current_folder_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert case_path(Path(), Path("sets") / "a.evalset.json") == "sets/a.evalset.json"
