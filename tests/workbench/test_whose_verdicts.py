"""A verdict is shown, resumed, merged and compared for the agent that it is of, and for no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from evaltui.project.agent_address import AgentAddress
from evaltui.runs.store import RunStore
from evaltui.text.outcomes import NOT_RUN
from evaltui.workbench.matrix.matrices import mark_failing
from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call
from tests.project.layouts import eval_set, write
from tests.stored_runs import interrupt

Answer = TypeVar("Answer")

ECHO = "def root_agent(message, session):\n    return 'hello'\n"
WRONG = "def root_agent(message, session):\n    return 'goodbye'\n"
BOTH = f"{ECHO}\n\ndef bad_agent(message, session):\n    return 'goodbye'\n"


@pytest.fixture
def desk(tmp_path, monkeypatch) -> Path:
    """A folder with an agent that passes and one that fails, the current folder."""
    write(tmp_path / "one.py", ECHO)
    write(tmp_path / "two.py", WRONG)
    write(tmp_path / "s.evalset.json", eval_set("s"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A package with two agents in a module, below the current folder."""
    folder = tmp_path / "modpkg"
    write(folder / "__init__.py", "from . import agent\n")
    write(folder / "agent.py", BOTH)
    write(folder / "s.evalset.json", eval_set("s"))
    monkeypatch.chdir(tmp_path)
    return folder


@asynccontextmanager
async def opened(agent: Path | AgentAddress) -> AsyncIterator[Workbench]:
    workbench = Workbench(agent)
    try:
        await workbench.open()
        await workbench.outcomes.restore()
        yield workbench
    finally:
        await workbench.close()


def within(agent: Path | AgentAddress, look: Callable[[Workbench], Awaitable[Answer]]) -> Answer:
    """What a look at a workbench of the agent answers."""

    async def answer() -> Answer:
        async with opened(agent) as workbench:
            return await look(workbench)

    return asyncio.run(answer())


def verdicts(agent: Path | AgentAddress) -> dict[str, tuple[str, str]]:
    """Status and freshness of each case."""

    async def look(workbench: Workbench) -> dict[str, tuple[str, str]]:
        outcomes = workbench.outcomes
        return {
            case.eval_id: (outcomes.status(case), now.state if (now := outcomes.freshness(case)) else "")
            for case in workbench.sets.every_case()
        }

    return within(agent, look)


def log_of(agent: Path) -> Path:
    log = RunStore(agent).latest()
    assert log is not None
    return log


def test_a_file_beside_another_shows_no_results_of_it(desk):
    one, two = desk / "one.py", desk / "two.py"
    assert call("run", one) == 0
    assert verdicts(two) == {"greets": (NOT_RUN, "")}
    assert call("run", two) == 1
    assert verdicts(one) == {"greets": ("PASSED", "fresh")}
    assert verdicts(two) == {"greets": ("FAILED", "fresh")}


def test_runs_of_a_file_are_listed_and_reported_for_it_alone(desk, capsys):
    assert call("run", "one.py") == 0
    capsys.readouterr()
    assert call("runs", "two.py") == 0
    assert capsys.readouterr().out.startswith("no runs of two.py yet")
    assert call("report", "two.py") == 2
    assert call("run", "two.py", "--failed") == 2
    assert "no runs of two.py yet" in capsys.readouterr().err
    assert call("runs", "one.py") == 0
    assert "passed" in capsys.readouterr().out


def test_a_run_of_a_file_is_not_resumed_by_another(desk, capsys):
    assert call("run", "one.py") == 0
    log = interrupt(log_of(desk / "one.py"), 0)
    assert call("run", "two.py", "--resume", "last") == 2
    assert "no runs of two.py yet" in capsys.readouterr().err
    assert call("run", "two.py", "--resume", log) == 2
    assert "the run is of one.py" in capsys.readouterr().err
    assert call("run", "one.py", "--resume", "last") == 0


def test_runs_of_two_files_are_not_merged(desk, tmp_path, capsys):
    assert call("run", "one.py") == 0
    assert call("run", "two.py") == 1
    logs = [log_of(desk / name) for name in ("one.py", "two.py")]
    assert call("merge", *logs, "-o", tmp_path / "merged.sqlite") == 2
    assert "file one.py → two.py" in capsys.readouterr().err.replace('"', "")
    assert call("merge", "two.py", logs[0]) == 2
    assert "the runs are of one.py" in capsys.readouterr().err
    assert call("merge", "one.py", logs[0]) == 0


def test_the_last_baseline_of_a_file_is_a_run_of_it(desk, capsys):
    assert call("run", "one.py") == 0
    assert call("run", "two.py") == 1
    write(desk / "one.py", WRONG)
    assert call("run", "one.py", "--baseline", "last", "--fail-on-regression") == 1


def test_results_of_google_adk_are_of_the_agent_of_the_folder(desk, capsys):
    write(desk / "agent.py", ECHO)
    history = desk / ".adk" / "eval_history"
    assert call("run", "one.py") == 0
    assert not history.exists()
    assert call("run", desk) == 0
    (result,) = history.iterdir()
    # As google-adk writes it.
    text = result.read_text(encoding="utf-8").replace("evaltui-", "")
    write(result.with_name("desk_s_2.evalset_result.json"), text)
    capsys.readouterr()
    assert call("runs", desk) == 0
    assert "desk_s_2" in capsys.readouterr().out
    assert call("runs", "one.py") == 0
    assert "desk_s_2" not in capsys.readouterr().out


def test_a_folder_that_was_moved_keeps_the_runs_of_its_files(tmp_path, desk):
    assert call("run", desk / "one.py") == 0
    moved = desk.rename(tmp_path.with_name(f"{tmp_path.name} moved"))
    assert verdicts(moved / "one.py") == {"greets": ("PASSED", "fresh")}


def test_an_agent_file_is_the_agent_of_its_folder(package):
    assert call("run", package / "agent.py") == 0
    assert verdicts(package) == {"greets": ("PASSED", "fresh")}


def test_an_attribute_of_a_module_is_another_agent(package):
    assert call("run", package) == 0
    assert call("run", "-m", "modpkg.agent:bad_agent") == 1
    assert verdicts(package) == {"greets": ("PASSED", "fresh")}
    address = AgentAddress(package, module="modpkg.agent:bad_agent")
    assert verdicts(address) == {"greets": ("FAILED", "fresh")}


def test_an_attribute_that_never_ran_shows_nothing_of_the_root(package, capsys):
    assert call("run", package) == 0
    address = AgentAddress(package, module="modpkg.agent:bad_agent")
    assert verdicts(address) == {"greets": (NOT_RUN, "")}
    log = interrupt(log_of(package), 0)
    capsys.readouterr()
    assert call("run", "-m", address.module, "--resume", log) == 2
    assert "the run is of the agent in its folder" in capsys.readouterr().err
    assert call("run", "-m", address.module, "--resume", "last") == 2
    assert "no runs of modpkg" in capsys.readouterr().err


def test_runs_of_an_attribute_are_marked_in_the_list(package, capsys):
    assert call("run", "-m", "modpkg.agent:bad_agent") == 1
    capsys.readouterr()
    assert call("runs", package) == 0
    assert "· modpkg.agent:bad_agent ·" in capsys.readouterr().out


def test_a_run_of_another_agent_is_not_resumed_into_the_results(package):
    assert call("run", "-m", "modpkg.agent:bad_agent") == 1
    log = interrupt(log_of(package), 0)

    async def resume(workbench: Workbench) -> str:
        assert not await workbench.runs.resume(log)
        return workbench.messages.notice.text

    assert "The run is of modpkg.agent:bad_agent" in within(package, resume)


def test_folders_of_one_name_have_their_own_place_in_shared_results(tmp_path, capsys):
    results = tmp_path / "results"
    for place, text in (("p3", ECHO), ("p4", WRONG)):
        write(tmp_path / place / "desk" / "agent.py", text)
        write(tmp_path / place / "desk" / "s.evalset.json", eval_set("s"))
    assert call("run", tmp_path / "p3" / "desk", "--results-dir", results) == 0
    capsys.readouterr()
    assert call("runs", tmp_path / "p4" / "desk", "--results-dir", results) == 0
    assert capsys.readouterr().out.startswith("no runs of ")


# Traces


@pytest.fixture
def scored(package) -> Path:
    """An agent that ran and was broken, with traces of the run before."""
    assert call("run", package) == 0
    assert call("export", package, "--run", "last", "-o", "t.json") == 0
    return package


def test_traces_are_no_verdict_of_an_agent_that_ran(scored, capsys):
    write(scored / "agent.py", WRONG)
    assert call("run", scored) == 1
    assert call("score", "t.json", "--sets", scored / "s.evalset.json") == 0
    assert verdicts(scored) == {"greets": ("FAILED", "fresh")}

    async def last_status(workbench: Workbench) -> str:
        assert workbench.outcomes.last_run is not None
        return str(workbench.outcomes.last_run.status)

    assert within(scored, last_status) == "FAILED"
    capsys.readouterr()
    assert call("runs", scored) == 0
    assert "· traces ·" in capsys.readouterr().out


def test_traces_alone_are_shown_as_traces_and_stale(scored):
    log_of(scored).unlink()
    assert call("score", "t.json", "--sets", scored / "s.evalset.json") == 0
    assert verdicts(scored) == {"greets": ("PASSED", "stale")}

    async def origin(workbench: Workbench) -> tuple[str, tuple[str, ...]]:
        (case,) = workbench.sets.every_case()
        outcome, now = workbench.outcomes.get(case), workbench.outcomes.freshness(case)
        assert outcome is not None
        assert now is not None
        return outcome.run.name, now.reasons

    assert within(scored, origin) == ("run 1 traces", ("traces",))


# Variants

FIX = '[tool.evaltui.variants.fix]\nenv = { ANSWER = "hello" }\n'
BY_VARIABLE = "import os\n\n\ndef root_agent(message, session):\n    return os.environ.get('ANSWER', 'no')\n"


@pytest.fixture
def variable(package) -> Path:
    """An agent that passes as a variant only."""
    write(package / "agent.py", BY_VARIABLE)
    write(package.parent / "pyproject.toml", FIX)
    return package


def test_failed_goes_by_the_last_run_of_the_same_variant(variable, capsys):
    assert call("run", variable) == 1
    assert call("run", variable, "--variant", "fix") == 0
    assert call("run", variable, "--failed") == 1
    assert call("run", variable, "--variant", "fix", "--failed") == 2
    assert "every selected case passed" in capsys.readouterr().err


def test_a_matrix_runs_what_failed_in_the_last_run_of_any_of_its_variants(variable, capsys):
    assert call("run", variable) == 1
    assert call("run", variable, "--variant", "fix") == 0
    assert call("run", variable, "--variant", "base", "--variant", "fix", "--failed") == 1


# Sub-agents and matrices


def test_a_report_of_the_last_run_says_which_agent_it_is_of(package, capsys):
    assert call("run", package) == 0
    assert call("run", "-m", "modpkg.agent:bad_agent") == 1
    capsys.readouterr()
    call("report", package)
    assert "run of modpkg.agent:bad_agent" in capsys.readouterr().out


def test_a_matrix_of_another_agent_marks_no_case_as_failing(variable):
    write(variable / "agent.py", BOTH)
    assert call("run", variable) == 0
    assert call("run", "-m", "modpkg.agent:bad_agent", "--variant", "base", "--variant", "fix") == 1

    async def mark(workbench: Workbench) -> str:
        await mark_failing(workbench)
        return workbench.messages.notice.text

    assert within(variable, mark) == "No failing case"


def test_a_comparison_names_the_modules_of_its_runs(package, capsys):
    assert call("run", package) == 0
    assert call("run", "-m", "modpkg.agent:bad_agent") == 1
    runs = [path.stem for path in RunStore(package).files()]
    capsys.readouterr()
    assert call("compare", package, *runs) == 0
    assert "-m none → modpkg.agent:bad_agent" in capsys.readouterr().out
