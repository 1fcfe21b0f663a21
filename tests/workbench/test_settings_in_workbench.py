"""The run-wide settings of a project in the workbench, and changes of them while it is open."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from fake_runs import FakeRuns

from evaltui.project.interpreters import look_for_interpreter
from evaltui.project.run_settings import SETTINGS, RunSettings
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from evaltui.workbench.messages import Messages
from evaltui.workbench.runs.run_list import RunList
from evaltui.workbench.state import Stage
from evaltui.workbench.workbench import Workbench

AGENT = """
async def root_agent(message, session):
    return "hello"
"""
# Of each setting a value in the table, and one that is given with an option.
VALUES: dict[str, tuple[object, object]] = {
    "parallel": (2, 3),
    "workers": (1, 2),
    "timeout": (20.0, 30.0),
    "record": ("auto", "replay"),
    "tools": ("live", "stub"),
    "results-dir": ("in", "given"),
    "keep-runs": (4, 5),
    "budget": ("1USD", "2Mtok"),
    "scheduler": ("off", "local:2"),
}


@pytest.fixture
def agent(tmp_path, write_agent, write_set, monkeypatch) -> Path:
    (tmp_path / ".git").mkdir()
    folder = write_agent(AGENT, name="desk")
    write_set(folder, one=("hi", "hello"))
    monkeypatch.chdir(tmp_path)
    return folder


def table(agent: Path, *lines: str) -> None:
    (agent.parent / "pyproject.toml").write_text("\n".join(["[tool.evaltui]", *lines, ""]))


def in_toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


async def ran(workbench: Workbench) -> RunSettings:
    """The settings of one more run."""
    workbench.runs.run_all()
    await workbench.runs.finished()
    return workbench.runs._service.requests[-1].settings


@pytest.mark.parametrize("name", VALUES)
async def test_a_run_has_it_and_the_next_one_has_it_as_it_is_then(name, agent):
    in_table, given = VALUES[name]
    expected = {True: agent.parent / str(in_table), False: in_table}[name == "results-dir"]
    option = {True: agent.parent / str(given), False: given}[name == "results-dir"]
    attribute = SETTINGS[name].attribute
    table(agent, f"{name} = {in_toml(in_table)}")
    with_options = Workbench(agent, options={attribute: given}, run_service=FakeRuns())
    workbench = Workbench(agent, run_service=FakeRuns())
    for one, value in ((workbench, expected), (with_options, option)):
        await one.open()
        assert getattr(one.agent.settings, attribute) == value
        assert getattr(await ran(one), attribute) == value
    table(agent)
    assert getattr(await ran(workbench), attribute) == getattr(RunSettings(), attribute)
    assert getattr(await ran(with_options), attribute) == option
    table(agent, f"{name} = {in_toml(given)}")
    assert getattr(await ran(workbench), attribute) == option
    (agent.parent / "pyproject.toml").unlink()
    assert await ran(workbench) == RunSettings()
    await workbench.close()
    await with_options.close()


def test_every_setting_is_tried():
    assert VALUES.keys() | {"python"} == SETTINGS.keys()


@pytest.mark.parametrize("wrong", ["parallel = 0", "paralel = 3", 'record = "reply"', "[[["])
async def test_wrong_settings_open_and_run_nothing_until_they_are_mended(wrong, agent, open_workbench):
    table(agent, "timeout = 20", wrong)
    workbench = await open_workbench(agent, run_service=FakeRuns())
    assert "pyproject.toml" in workbench.agent.settings_problem
    # The other lines count, as far as the file can be read.
    assert workbench.agent.settings.timeout == (300.0 if wrong == "[[[" else 20.0)
    for start in (workbench.runs.run_all, workbench.runs.run_set, workbench.runs.run_case):
        start()
        assert workbench.runs.current is None
        assert workbench.messages.notice.text == workbench.agent.settings_problem
    # What a save starts, too.
    run = workbench.runs.start("saved", {entry.path: None for entry in workbench.sets.listed})
    await workbench.runs.finished()
    assert (run.stage, run.remarks) == (Stage.FAILED, [workbench.agent.settings_problem])
    table(agent, "timeout = 20")
    assert (await ran(workbench)).timeout == 20.0
    assert workbench.agent.settings_problem == ""
    table(agent, "timeout = 0")
    workbench.runs.run_all()
    assert workbench.messages.notice.text.startswith("pyproject.toml:2: tool.evaltui.timeout is 0")
    assert workbench.agent.settings.timeout == 20.0
    assert len(workbench.runs._service.requests) == 1


async def test_runs_are_stored_and_found_in_the_folder_of_the_moment(agent, until):
    table(agent, 'results-dir = "one"', "keep-runs = 2")
    workbench = Workbench(agent)
    kept = RunList(lambda: workbench.agent.store, Messages())
    await workbench.open()
    for number in (1, 2, 3):
        workbench.runs.run_all()
        await workbench.runs.finished()
        assert workbench.runs.current.remarks == []
        assert workbench.runs.current.number == number
    one, two = (RunStore(agent, agent.parent / name) for name in ("one", "two"))
    assert [RunFile(log).header.number for log in one.files()] == [2, 3]
    await kept.load()
    assert kept.paths == one.files()[::-1]
    assert RunFile(one.latest()).header.settings.keep_runs == 2

    table(agent, 'results-dir = "two"', "timeout = 70")
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert RunFile(two.latest()).header.settings.timeout == 70.0
    assert len(one.files()) == 2
    await kept.load()
    assert kept.paths == two.files()
    assert not (agent / ".evaltui" / "runs").exists()
    await kept.close()
    await workbench.close()


async def test_the_runs_of_results_on_screen_stay(agent, write_set, open_workbench):
    write_set(agent, one=("hi", "hello"), two=("hi", "hello"))
    table(agent, "keep-runs = 1")
    workbench = await open_workbench(agent)
    one, two = workbench.sets.every_case()
    store, stay = RunStore(agent), []
    for cases in ([one, two], [two], [two], [one]):
        workbench.runs.run_cases("some", cases)
        await workbench.runs.finished()
        assert all(map(workbench.outcomes.traces.events_of, (one, two)))
        stay.append([RunFile(log).header.number for log in store.files()])
    assert stay == [[1], [1, 2], [1, 3], [3, 4]]
    workbench.outcomes.mark_base(store.files()[0])
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert [RunFile(log).header.number for log in store.files()] == [3, 5]
    store.latest().unlink()
    assert workbench.outcomes.trace(one).problem == "Run log of run 5 was deleted; run again"


async def test_the_last_results_of_a_chosen_folder_are_shown_again(agent, open_workbench):
    table(agent, 'results-dir = "one"')
    for expected in (0, 1):
        workbench = await open_workbench(agent)
        await workbench.outcomes.restore()
        assert len(list(workbench.outcomes.results.of("greetings.evalset.json"))) == expected
        workbench.runs.run_all()
        await workbench.runs.finished()
        await workbench.close()


async def test_another_python_is_taken_with_the_next_run(agent, tmp_path, open_workbench):
    find_python = partial(look_for_interpreter, agent)
    workbench = await open_workbench(agent, run_service=FakeRuns(), find_python=find_python)
    other = tmp_path / "other" / "bin" / "python"
    other.parent.mkdir(parents=True)
    other.symlink_to(sys.executable)
    (tmp_path / "other" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
    assert workbench.agent.address.python is None
    table(agent, 'python = "other"')
    await ran(workbench)
    assert workbench.runs._service.requests[-1].agent.python == other
    table(agent, 'python = "gone"')
    workbench.runs.run_all()
    assert workbench.messages.notice.text.endswith(
        "tool.evaltui.python: no Python at gone. Give an executable, a virtual environment or a command"
    )
    assert len(workbench.runs._service.requests) == 1
    table(agent)
    await ran(workbench)
    assert workbench.runs._service.requests[-1].agent.python is None


async def test_a_chosen_python_stays(agent, open_workbench):
    table(agent, 'python = "gone"')
    workbench = await open_workbench(agent, options={"python": sys.executable}, run_service=FakeRuns())
    await ran(workbench)
    assert workbench.runs._service.requests[-1].agent.python is None


async def test_cases_and_turns_of_a_chat_end_after_the_timeout(
    write_agent, write_set, tmp_path, monkeypatch, until, open_workbench
):
    monkeypatch.chdir(tmp_path)
    folder = write_agent(
        "import asyncio\n\nasync def root_agent(message, session):\n    await asyncio.sleep(99)\n"
    )
    write_set(folder, slow=("hi", "hello"))
    table(folder, "timeout = 0.2")
    workbench = await open_workbench(folder)
    workbench.runs.run_all()
    await workbench.runs.finished()
    (_, scored), *_ = workbench.outcomes.results.of("greetings.evalset.json")
    assert scored.result.error.message == "no response within 0.2 s"
    workbench.chat.send({"role": "user", "parts": [{"text": "hi"}]})
    await until(lambda: workbench.chat.transcript.turns and workbench.chat.transcript.turns[0].error)
    assert workbench.chat.transcript.turns[0].error.message == "no response within 0.2 s"
