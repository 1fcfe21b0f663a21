"""The environment of an agent's project comes, goes and changes while the workbench is open."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
from environments import make_environment

from evaltui.core.model.errors import NO_PYTHON
from evaltui.project.agent_address import AgentAddress
from evaltui.project.interpreters import Interpreter, interpreter_to_compare, look_for_interpreter
from evaltui.runner.starting import WarmHosts
from evaltui.tui.main.status import header_ends
from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call
from tests.stored_runs import interrupt

pytestmark = pytest.mark.usefixtures("fresh_hosts")

PREPARE = WarmHosts.prepare
AGENT = """
    import sys

    def root_agent(message, session):
        return sys.prefix.rpartition("/")[2]
"""


@pytest.fixture
def project(tmp_path, monkeypatch, write_agent, write_set) -> Path:
    monkeypatch.delenv("UV_PROJECT_ENVIRONMENT", raising=False)
    (tmp_path / "pyproject.toml").touch()
    write_set(write_agent(AGENT), one=("hello", ".venv"))
    return tmp_path


@pytest.fixture
def opened(project, open_workbench):
    """Opens the workbench as `evaltui my_agent` does, perhaps with --read-only."""

    async def open_it(*, read_only: bool = False) -> Workbench:
        find = interpreter_to_compare if read_only else look_for_interpreter
        find_python = partial(find, project / "my_agent")
        address = AgentAddress(project / "my_agent", interpreter=find_python())
        return await open_workbench(address, find_python=find_python, read_only=read_only)

    return open_it


async def run(workbench: Workbench) -> str | None:
    """What the agent answered; None where nothing was run."""
    before = workbench.runs.current
    workbench.say("")
    workbench.runs.run_all()
    if workbench.runs.current is before:
        return None
    await workbench.runs.finished()
    (case,) = workbench.sets.every_case()
    scored = workbench.outcomes.get(case)
    assert scored is not None
    return scored.shown.turns[0].response.actual


def header(workbench: Workbench) -> str:
    return "".join(text for text, _ in header_ends(workbench, "my_agent", 100)[0])


async def test_the_next_run_is_in_the_environment_that_is_there_then(project, opened):
    workbench = await opened()
    own = Path(sys.prefix).name
    assert await run(workbench) == own
    assert "(.venv)" not in header(workbench)

    make_environment(project)
    (project / ".venv").rename(project / "other")
    assert await run(workbench) == own
    (project / ".venv").symlink_to(project / "other")
    assert await run(workbench) == ".venv"
    assert f"Python 3.{sys.version_info[1]} (.venv)" in header(workbench)

    (project / ".venv").unlink()
    assert await run(workbench) == own
    assert "(.venv)" not in header(workbench)


async def test_an_environment_without_its_python_keeps_nothing_else_from_working(project, opened):
    make_environment(project)
    for link in (project / ".venv" / "bin").glob("python*"):
        link.unlink()
    (project / ".venv" / "bin" / "python").symlink_to("/nowhere/python")
    sentence = (
        f"{project}/.venv: its Python is missing (from .venv). "
        "Make the environment anew: python3 -m venv --clear .venv"
    )

    workbench = await opened()
    assert [case.eval_id for case in workbench.sets.every_case()] == ["one"]
    assert await run(workbench) is None
    assert workbench.messages.notice is not None
    assert workbench.messages.notice.text == sentence
    assert workbench.agent.error is not None
    assert (workbench.agent.error.type, workbench.agent.error.message) == (NO_PYTHON, sentence)
    assert "! no usable Python" in header(workbench)

    shutil.rmtree(project / ".venv")
    make_environment(project)
    assert await run(workbench) == ".venv"
    assert workbench.agent.error is None


@pytest.mark.parametrize(
    ("python", "reason"),
    [("#!/bin/sh\nexit 127\n", "exit code 127"), ("no program at all", "Exec format error")],
)
async def test_a_python_that_is_none_is_the_error_of_the_run(python, reason, project, opened):
    make_environment(project)
    executable = project / ".venv" / "bin" / "python"
    executable.unlink()
    executable.write_text(python)
    executable.chmod(0o755)
    workbench = await opened()
    assert await run(workbench) is None or workbench.agent.error is not None
    error = workbench.agent.error
    assert error is not None
    assert (error.type, error.message) == (
        NO_PYTHON,
        f"{executable}: cannot be started as a Python ({reason})",
    )


async def test_a_python_that_vanishes_after_it_was_found(project, opened):
    make_environment(project)
    workbench = await opened()
    workbench.agent.update_python()
    workbench.agent._find_python = None
    shutil.rmtree(project / ".venv")
    await run(workbench)
    assert workbench.agent.error is not None
    assert "cannot be started as a Python (No such file or directory)" in workbench.agent.error.message


@pytest.fixture
def warm_hosts(monkeypatch) -> None:
    """There are some, as for users."""
    monkeypatch.setattr(WarmHosts, "prepare", PREPARE)


@pytest.mark.usefixtures("no_warm_hosts", "warm_hosts")
async def test_a_warm_host_is_of_the_environment_that_is_there(project, opened):
    for name in ("one", "other"):
        (project / name).mkdir()
        make_environment(project / name)
        (project / name / ".venv" / "bin" / name).touch()
    agent = "import sys, pathlib\ndef root_agent(message, session):\n    return "
    agent += "next(p.name for p in pathlib.Path(sys.prefix, 'bin').iterdir() if p.name in ('one', 'other'))\n"
    (project / "my_agent" / "agent.py").write_text("import colorsys\n" + agent)
    workbench = await opened()
    for name in ("one", "other", "one"):
        (project / ".venv").unlink(missing_ok=True)
        (project / ".venv").symlink_to(project / name / ".venv")
        assert await run(workbench) == name
        await workbench.agent.warm_hosts.ready()


async def test_two_agents_have_each_their_own(project, opened, open_workbench, write_agent, write_set):
    make_environment(project)
    prefix = "import sys\ndef root_agent(message, session):\n    return sys.prefix\n"
    for name in ("my_agent", "desk"):
        write_set(write_agent(prefix, name=name), one=("hello", "x"))
    (project / "other").mkdir()
    make_environment(project / "other")
    (project / "desk" / ".venv").symlink_to(project / "other" / ".venv")
    find_python = partial(look_for_interpreter, project / "desk")
    address = AgentAddress(project / "desk", interpreter=find_python())
    desk = await open_workbench(address, find_python=find_python)
    answers = await asyncio.gather(run(desk), run(await opened()))
    assert answers == [str(project / "desk" / ".venv"), str(project / ".venv")]


@pytest.mark.parametrize(
    ("name", "is_stale"), [(".venv/bin/python3", False), ("other/.venv/bin/python", True)]
)
async def test_a_result_is_stale_by_another_environment_not_by_another_name_of_it(
    project, opened, open_workbench, name, is_stale
):
    (project / "other").mkdir()
    for folder in (project, project / "other"):
        make_environment(folder)
    assert await run(await opened()) == ".venv"
    interpreter = Interpreter(project / name, "--python")
    again = await open_workbench(AgentAddress(project / "my_agent", interpreter=interpreter))
    await again.outcomes.restore()
    assert bool(again.outcomes.stale()) == is_stale


async def test_shards_of_other_packages_are_named_and_their_results_stale(project, opened, write_set, capsys):
    make_environment(project)
    agent = project / "my_agent"
    write_set(agent, one=("hello", ".venv"), two=("hi", ".venv"))
    (libraries,) = (project / ".venv" / "lib").glob("python*/site-packages")
    for number in (1, 2):
        installed = libraries / f"foo-{number}.0.dist-info"
        installed.mkdir()
        await asyncio.to_thread(call, "run", agent, "--shard", f"{number}/2")
        installed.rmdir()
    logs = sorted((agent / ".evaltui" / "runs").glob("*.sqlite"))
    assert await asyncio.to_thread(call, "merge", agent, *logs) == 0
    assert "not the same in every run: package foo" in capsys.readouterr().out
    for log in logs:
        log.unlink()
    workbench = await opened()
    await workbench.outcomes.restore()
    reasons = [workbench.outcomes.freshness(case).reasons for case in workbench.sets.every_case()]
    assert reasons == [("package foo",)] * 2


async def test_results_kept_under_a_package_that_was_installed_since_are_named(project, write_set, capsys):
    make_environment(project)
    agent = project / "my_agent"
    write_set(agent, one=("hello", ".venv"), two=("hi", ".venv"))
    assert await asyncio.to_thread(call, "run", agent) == 0
    (log,) = (agent / ".evaltui" / "runs").glob("*.sqlite")
    interrupt(log, 1)
    (libraries,) = (project / ".venv" / "lib").glob("python*/site-packages")
    (libraries / "foo-1.0.dist-info").mkdir()
    assert await asyncio.to_thread(call, "run", agent, "--resume", "last") == 0
    assert "package foo was installed since: kept results are without it" in "".join(capsys.readouterr())


PACKAGES = [
    (["foo-2.0"], ("package foo",)),
    ([], ("package foo",)),
    (["foo-1.0", "new_one-1"], ("package new_one",)),
    (["foo-1.0", "evaltui-7"], ()),
    (["foo-1.0@2"], ("package foo",)),
]


def install(libraries, name):
    """Installs a package by its name and version, and after an @ the commit of its repository."""
    package, _, commit = name.partition("@")
    folder = libraries / f"{package}.dist-info"
    folder.mkdir(parents=True)
    if commit:
        origin = {"url": "https://example.com/foo", "vcs_info": {"vcs": "git", "commit_id": commit}}
        (folder / "direct_url.json").write_text(json.dumps(origin))


def uninstall(libraries):
    for folder in libraries.glob("*.dist-info"):
        shutil.rmtree(folder)


@pytest.mark.parametrize("is_of_user", [False, True])
@pytest.mark.parametrize(("installed", "reasons"), PACKAGES)
async def test_a_result_is_stale_by_other_packages_of_its_python(
    project, opened, installed, reasons, is_of_user, monkeypatch
):
    make_environment(project)
    (libraries,) = (project / ".venv" / "lib").glob("python*/site-packages")
    if is_of_user:
        (project / ".venv" / "pyvenv.cfg").write_text("include-system-site-packages = true\n")
        monkeypatch.setenv("HOME", str(project / "home"))
        libraries = project / "home" / ".local" / "lib" / "python3.11" / "site-packages"
    install(libraries, "foo-1.0")
    workbench = await opened()
    assert await run(workbench) == ".venv"
    (case,) = workbench.sets.every_case()
    seen = await opened(read_only=True)
    await seen.outcomes.restore()
    assert not seen.outcomes.stale()
    uninstall(libraries)
    for name in installed:
        install(libraries, name)
    again = [await opened(), await opened(read_only=True)]
    for bench in again:
        await bench.outcomes.restore()
    for bench in (workbench, seen):
        await bench.open()
    for bench in (workbench, seen, *again):
        assert bench.outcomes.freshness(case).reasons == reasons
    uninstall(libraries)
    install(libraries, "foo-1.0")
    for bench in (workbench, seen, *again):
        await bench.open()
        assert not bench.outcomes.stale()
