"""Two agents of one repository, with the settings of its pyproject.toml, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call

from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from tests.eval_data import make_case, make_turn, write_eval_set
from tests.stored_runs import interrupt

AGENT = """
async def root_agent(message, session):
    if message == "slow":
        import asyncio
        await asyncio.sleep(100)
    return "hello from NAME"
"""


def write_set(agent: Path, *messages: str) -> None:
    write_eval_set(
        agent,
        "basics",
        *(make_case(message, make_turn(message, f"hello from {agent.name}")) for message in messages),
    )


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """Two agents, `agents/desk` and `agents/shop`."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    for name in ("desk", "shop"):
        folder = root / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.py").write_text(AGENT.replace("NAME", name))
        write_set(folder, "one", "two")
    monkeypatch.chdir(root)
    return root


def table(root: Path, *lines: str) -> None:
    (root / "pyproject.toml").write_text("\n".join(["[tool.evaltui]", *lines, ""]))


def test_runs_of_two_agents_in_one_folder(repository, capsys):
    table(repository, 'results-dir = "out"', "parallel = 2", "workers = 1", "timeout = 60", "keep-runs = 2")
    for agent in ("agents/desk", "agents/shop", "agents/desk"):
        assert call("run", agent) == 0
    assert "2 at once" in capsys.readouterr().out
    desk, shop = (RunStore(repository / "agents" / name, repository / "out") for name in ("desk", "shop"))
    assert (len(desk.files()), len(shop.files())) == (2, 1)
    first, second = desk.files()
    header = RunFile(second).header
    assert header.number == 2
    settings = header.settings
    assert settings.results_dir == repository / "out"
    assert (settings.parallel, settings.workers, settings.timeout) == (2, 1, 60.0)
    assert (settings.record, settings.tools, settings.keep_runs) == ("off", None, 2)
    assert header.interpreter.path.is_file()

    assert call("runs", "agents/desk", "--name", first.stem, "base") == 0
    capsys.readouterr()
    assert call("runs", "agents/desk") == 0
    listed = capsys.readouterr().out
    assert [run.stem in listed for run in (first, second, *shop.files())] == [True, True, False]
    assert call("compare", "agents/desk", "base", "last", "--report", "json") == 0
    assert json.loads(capsys.readouterr().out)["candidate"]["path"] == str(second)
    assert call("run", "agents/desk", "--failed") == 2
    assert call("run", "agents/shop", "--baseline", "base") == 2
    assert call("run", "agents/desk", "basics:one", "--baseline", "base") == 0
    assert call("run", "agents/desk", "basics:two") == 0
    # The one with a name stays, of the others the newest two.
    assert desk.files()[0] == first
    assert len(desk.files()) == 3
    assert second not in desk.files()
    assert not list(repository.rglob(".evaltui"))


def test_a_run_is_resumed_where_it_is(repository, capsys):
    elsewhere = repository / "elsewhere"
    assert call("run", "agents/desk", "--results-dir", elsewhere) == 0
    store = RunStore(repository / "agents/desk", elsewhere)
    log = store.latest()
    interrupt(log, 1)
    assert call("run", "agents/desk", "--resume", "last") == 2
    assert "no runs of agents/desk yet" in capsys.readouterr().err
    assert (
        call("run", "agents/desk", "--resume", "last", "--results-dir", "elsewhere", "--timeout", "50") == 0
    )
    assert [RunFile(one).ending is not None for one in store.files()] == [False, True]
    resumed = RunFile(store.latest()).header
    assert (resumed.resumed, resumed.settings.timeout) == (log.stem, 50.0)


def test_an_option_goes_before_the_table(repository, capsys):
    write_set(repository / "agents/desk", "slow")
    table(repository, "timeout = 0.2", 'tools = "live"', "parallel = 7")
    assert call("run", "agents/desk", "--parallel", "3") == 3
    shown = capsys.readouterr().out
    assert "no response within 0.2 s" in shown
    assert shown.splitlines()[0] == "settings  timeout 0.2, tools live"
    assert "3 at once" in shown
    header = RunFile(RunStore(repository / "agents/desk").latest()).header
    assert (header.settings.parallel, header.settings.tools) == (3, "live")


def test_recordings_by_the_table(repository, capsys):
    table(repository, 'record = "replay"')
    call("run", "agents/desk", "--report", "json")
    assert json.loads(capsys.readouterr().out)["record"] == "replay"
    call("run", "agents/desk", "--record", "off", "--report", "json")
    assert json.loads(capsys.readouterr().out)["record"] == "off"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "agents/desk"),
        ("run", "agents/desk", "--watch"),
        ("run", "agents/desk", "--resume", "last"),
        ("chat", "agents/desk"),
        ("record", "agents/desk", "basics", "--case", "new", "--turns", "turns.txt"),
        ("runs", "agents/desk"),
        ("runs", "agents/desk", "--name", "last", "x"),
        ("compare", "agents/desk", "last", "last"),
        ("metrics", "agents/desk"),
    ],
    ids=" ".join,
)
def test_wrong_settings_end_every_command_before_it_begins(words, repository, capsys):
    (repository / "turns.txt").write_text("hi")
    before = sorted(repository.rglob("*"))
    table(repository, 'parallel = "four"')
    assert call(*words) == 2
    captured = capsys.readouterr()
    problem = 'pyproject.toml:2: tool.evaltui.parallel is "four". Give a whole number above 0'
    page = f"evaltui {words[0]}: see `evaltui help command-line`"
    assert captured.err == f"evaltui {words[0]}: {problem}\n{page}\n"
    assert captured.out == ""
    assert sorted(repository.rglob("*")) == sorted([*before, repository / "pyproject.toml"])


def test_lint_names_it_once_for_both_agents(repository, capsys):
    table(repository, "paralel = 4")
    assert call("lint", ".") == 1
    problem = "pyproject.toml:2: error: tool.evaltui.paralel is unknown. Did you mean parallel?"
    assert capsys.readouterr().out.splitlines().count(problem) == 1


def test_a_folder_for_results_that_is_a_file(repository, capsys):
    (repository / "out").write_text("")
    assert call("run", "agents/desk", "--results-dir", "out/inner") == 2
    assert f"--results-dir: {repository / 'out'} is not a folder" in capsys.readouterr().err
