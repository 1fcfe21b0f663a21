"""Running cases from the workbench, on a real agent that is a function."""

import host_processes
import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.runner import host, pool
from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.state import Selection, Stage
from evaltui.workbench.workbench import Workbench

ECHO = """
    import time

    def root_agent(message, session):
        if message == "forever":
            while True:
                time.sleep(0.01)
        if message == "raise":
            raise ValueError("not today")
        return message
"""


@pytest.fixture
def echo(write_agent, write_set):
    """An agent that says what it hears, with one case that passes and one that does not."""
    folder = write_agent(ECHO)
    write_set(folder, good=("hello", "hello"), bad=("hello", "something else"))
    return folder


async def opened(folder):
    workbench = Workbench(folder)
    await workbench.open()
    return workbench


def statuses(workbench):
    return {
        case.eval_id: workbench.outcomes.status(CaseId(entry.case_path, case.eval_id))
        for entry in workbench.sets.listed
        for case in entry.cases
    }


async def test_runs_the_selected_case_only(echo, until):
    workbench = await opened(echo)
    assert workbench.navigation.selection.eval_id == "good"
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.over)
    assert statuses(workbench) == {"good": "PASSED", "bad": "NOT_RUN"}
    assert workbench.runs.current.stage is Stage.FINISHED
    assert workbench.agent.info["framework"] == "function"
    assert workbench.runs.current.log.parent == echo / ".evaltui" / "runs"


async def test_runs_a_whole_set_and_says_how_far_it_is(echo, until):
    workbench = await opened(echo)
    seen = []
    workbench.messages.subscribe(
        lambda _: seen.append((workbench.runs.current.stage, len(workbench.runs.current.done))),
        WorkbenchMessage,
    )
    workbench.runs.run_set()
    assert workbench.runs.current.title == "greetings"
    await until(lambda: workbench.runs.current.over)
    assert statuses(workbench) == {"good": "PASSED", "bad": "FAILED"}
    stages = list(dict.fromkeys(stage for stage, _ in seen))
    assert stages == [Stage.READING, Stage.STARTING, Stage.RUNNING, Stage.FINISHED]
    assert [done for _, done in seen] == sorted(done for _, done in seen)
    assert workbench.outcomes.counts_of() == {"PASSED": 1, "FAILED": 1}


async def test_a_second_run_is_refused_while_one_is_going(write_agent, write_set, until):
    folder = write_agent(ECHO)
    write_set(folder, endless=("forever", ""))
    workbench = await opened(folder)
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.running)
    workbench.runs.run_all()
    assert workbench.runs.current.number == 1
    assert workbench.messages.notice.text == "Run in progress (ctrl+c cancels)"
    workbench.runs.cancel()
    await until(lambda: workbench.runs.current.over)


async def test_cancelling_keeps_what_is_finished(write_agent, write_set, until):
    folder = write_agent(ECHO)
    write_set(folder, quick=("hello", "hello"), endless=("forever", ""))
    workbench = await opened(folder)
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.done and workbench.runs.current.running)
    workbench.runs.cancel()
    assert workbench.runs.current.stage is Stage.CANCELLING
    await until(lambda: workbench.runs.current.over)
    assert workbench.runs.current.stage is Stage.CANCELLED
    assert statuses(workbench) == {"quick": "PASSED", "endless": "NOT_RUN"}
    assert not workbench.outcomes.traces.live_events(CaseId(workbench.sets.listed[0].case_path, "endless"))


async def test_cancelling_stops_a_stream_of_quick_cases(write_agent, write_set, until):
    folder = write_agent(ECHO)
    write_set(folder, **{f"case_{number}": ("hello", "hello") for number in range(400)})
    workbench = await opened(folder)
    workbench.runs.run_all()
    await until(lambda: len(workbench.runs.current.done) > 20)
    workbench.runs.cancel()
    done = len(workbench.runs.current.done)
    await until(lambda: workbench.runs.current.over)
    assert workbench.runs.current.stage is Stage.CANCELLED
    assert len(workbench.runs.current.done) < done + 20


async def test_closing_ends_a_run(write_agent, write_set, until):
    folder = write_agent(ECHO)
    write_set(folder, endless=("forever", ""))
    workbench = await opened(folder)
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.running)
    await workbench.close()
    assert workbench.runs.current.stage is Stage.CANCELLED


async def test_sets_that_share_an_id_are_not_mixed_up(write_agent, write_set, until):
    folder = write_agent(ECHO)
    first = write_set(folder, "first", set_id="same", hi=("hello", "hello"))
    second = write_set(folder, "second", set_id="same", hi=("hello", "bye"))
    workbench = await opened(folder)
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.over)
    assert workbench.outcomes.status(CaseId(first.name, "hi")) == "PASSED"
    assert workbench.outcomes.status(CaseId(second.name, "hi")) == "FAILED"
    assert len(workbench.runs.current.done) == 2


async def test_an_agent_that_cannot_be_imported_is_told_once_and_forgotten_when_it_works(
    write_agent, write_set, until
):
    folder = write_agent("raise RuntimeError('not yet')")
    write_set(folder, good=("hello", "hello"))
    workbench = await opened(folder)
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.over)
    assert workbench.agent.error.message == "not yet"
    assert statuses(workbench) == {"good": "ERROR"}
    write_agent(ECHO)
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.over)
    assert workbench.agent.error is None
    assert statuses(workbench) == {"good": "PASSED"}


async def test_a_broken_set_is_passed_over_and_named(echo, until):
    (echo / "torn.evalset.json").write_text('{"eval_set_id": "torn", ', encoding="utf-8")
    (echo / "refused.evalset.json").write_text(
        '{"eval_set_id": "refused", "eval_cases": [{"eval_id": "x"}]}', encoding="utf-8"
    )
    workbench = await opened(echo)
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.over)
    assert workbench.outcomes.counts_of() == {"PASSED": 1, "FAILED": 1}
    assert [remark.partition(":")[0] for remark in workbench.runs.current.remarks] == [
        "Cannot run refused.evalset.json"
    ]
    assert workbench.sets.errors(workbench.sets.listed[1])
    assert workbench.sets.errors(workbench.sets.listed[2])


async def test_a_run_that_cannot_be_kept_still_runs(echo, until, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("evaltui.runs.execution.begin_run", refuse)
    workbench = await opened(echo)
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.over)
    assert workbench.runs.current.stage is Stage.FINISHED
    assert "Run not stored" in workbench.runs.current.remarks[0]


async def test_a_run_reads_files_that_changed(echo, write_set, until):
    workbench = await opened(echo)
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    write_set(echo, good=("hello", "hello"), added=("a new one", "a new one"))
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    assert statuses(workbench) == {"good": "PASSED", "added": "PASSED"}
    assert workbench.outcomes.counts_of() == {"PASSED": 2}


async def test_failing_cases_are_walked_through_in_order_and_around(write_agent, write_set, until):
    folder = write_agent(ECHO)
    first = write_set(folder, "a", good=("x", "x"), bad=("x", "y"))
    second = write_set(folder, "b", boom=("raise", "x"), fine=("x", "x"))
    workbench = await opened(folder)
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.over)
    seen = []
    for step in (1, 1, 1, -1):
        workbench.navigation.select_failing(step)
        seen.append(workbench.navigation.selection)
    bad, boom = Selection(first.name, "bad"), Selection(second.name, "boom")
    assert seen == [bad, boom, bad, boom]
    workbench.navigation.select(Selection(second.name))
    workbench.navigation.select_failing(-1)
    assert workbench.navigation.selection == bad


async def test_a_folder_without_sets_has_nothing_to_run(write_agent):
    workbench = await opened(write_agent(ECHO))
    assert workbench.navigation.selection == Selection()
    workbench.runs.run_all()
    assert workbench.runs.current is None
    assert workbench.messages.notice.text == "No case to run"


async def test_a_given_set_stays_when_the_sets_are_read_again(echo, tmp_path, write_set):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    given = write_set(elsewhere, "given", hi=("hello", "hello"))
    workbench = Workbench(echo, [given])
    for _ in range(2):
        await workbench.open()
        assert {entry.eval_set_id for entry in workbench.sets.listed} == {"greetings", "given"}


async def test_a_second_cancel_ends_every_process_at_once(write_agent, write_set, until, monkeypatch):
    """Those of all hosts, not of the first one alone, which hangs like the others."""
    monkeypatch.setattr(pool.os, "cpu_count", lambda: 2)
    # Whoever waits for a host to give way waits for longer than this test.
    monkeypatch.setattr(host, "_GRACE", 60)
    folder = write_agent(ECHO)
    write_set(folder, **{f"case_{number}": ("forever", "never") for number in range(8)})
    others = {*host_processes.hosts()}
    workbench = await opened(folder)
    workbench.runs.run_all()
    await until(lambda: len(workbench.runs.current.running) == 4)
    # What looks at the agent's Python when it is opened ends by itself.
    await until(lambda: len({*host_processes.hosts()} - others) == 2)
    workbench.runs.cancel()
    workbench.runs.cancel()
    await until(lambda: workbench.runs.current.over)
    assert workbench.runs.current.stage is Stage.CANCELLED
    await until(lambda: not {*host_processes.hosts()} - others)
    await workbench.close()
