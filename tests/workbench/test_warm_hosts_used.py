"""The workbench keeps a host ready for the next run, whoever needs it first."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import host_processes
import psutil
import pytest

from evaltui.core.model.events import Event
from evaltui.workbench.workbench import Workbench

pytestmark = pytest.mark.usefixtures("fresh_hosts")

AGENT = """
    import os, sys
    EARLY = "colorsys" in sys.modules
    import colorsys

    def root_agent(message, session):
        return f"{os.getpid()} {EARLY}"
"""

# A host that is closed looks at its modules.
HANGS_IN_THE_END = """
    import os, sys, time, types

    class Hanging(types.ModuleType):
        @property
        def __dict__(self):
            time.sleep(60)

    def root_agent(message, session):
        sys.modules["hanging"] = Hanging("hanging")
        return f"{os.getpid()} False"
"""


@pytest.fixture
def no_warm_hosts() -> None:
    """There are some."""


# Hosts that another test of this process has left.
others: set[int] = set()


@pytest.fixture(autouse=True)
def without_others() -> None:
    others.clear()
    others.update(hosts())


@pytest.fixture
async def workbench(write_agent, write_set, open_workbench):
    folder = write_agent(AGENT)
    write_set(folder, one=("hello", "hello"))
    opened = await open_workbench(folder)
    yield opened
    await opened.close()
    assert hosts() == set()


def hosts() -> set[int]:
    return {process.pid for process in host_processes.hosts()} - others


async def run(workbench: Workbench) -> tuple[int, bool]:
    """The process that the agent ran in, and whether its library was there before it."""
    workbench.runs.run_case()
    await workbench.runs.finished()
    case = workbench.navigation.selection.case
    assert case is not None
    pid, early = answer_of((workbench.outcomes.traces.events_of(case) or {})[0])
    return int(pid), early == "True"


def answer_of(events: Sequence[Event]) -> list[str]:
    answer = [event for event in events if event.kind == "text"][-1]
    assert answer.content is not None
    text: str = answer.content["parts"][0]["text"]
    return text.split()


async def test_there_is_none_before_the_first_run(workbench, until):
    workbench.agent.learn_tools()
    await until(lambda: workbench.agent.info)
    await until(lambda: not hosts())
    await run(workbench)
    await workbench.agent.warm_hosts.ready()
    assert len(hosts()) == 1


async def test_a_run_takes_it_and_leaves_another_one(workbench):
    pid, early = await run(workbench)
    assert not early
    await workbench.agent.warm_hosts.ready()
    (waiting,) = hosts()
    assert waiting != pid
    assert await run(workbench) == (waiting, True)
    await workbench.agent.warm_hosts.ready()
    assert len(hosts() - {waiting}) == 1


async def test_the_end_of_a_run_does_not_wait_for_its_host(workbench):
    source = workbench.agent.dir / "agent.py"
    source.write_text(textwrap.dedent(HANGS_IN_THE_END), "utf-8")
    pid, _ = await run(workbench)
    assert pid in hosts()
    psutil.Process(pid).kill()


async def test_a_chat_takes_it_when_the_code_has_changed(workbench, until):
    async def say(text: str) -> list[str]:
        workbench.chat.send({"role": "user", "parts": [{"text": text}]})
        await until(lambda: not workbench.chat.busy)
        return answer_of(workbench.chat.transcript.turns[-1].events)

    await run(workbench)
    await workbench.agent.warm_hosts.ready()
    (waiting,) = hosts()
    assert await say("one") == [str(waiting), "True"]
    await workbench.agent.warm_hosts.ready()
    (other,) = hosts() - {waiting}
    source = workbench.agent.dir / "agent.py"
    source.write_text(source.read_text("utf-8") + "\n# changed\n", "utf-8")
    assert await say("two") == [str(other), "True"]
