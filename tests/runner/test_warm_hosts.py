"""Hosts that were started before they were needed, as real processes: they differ from new ones in nothing
that an agent could notice, but that its libraries are there."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import textwrap
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from host_processes import hosts, is_running
from waiting import until, wait_until

from evaltui.agents.errors import AgentBrokenError
from evaltui.project.agent_address import AgentAddress
from evaltui.runner import starting
from evaltui.runner.host import Host
from evaltui.runner.starting import HostSettings, StartedHost, WarmHosts, start_host

pytestmark = pytest.mark.usefixtures("fresh_hosts")

MESSAGE = {"role": "user", "parts": [{"text": "hello"}]}

# None of these libraries is needed by anything but the agent.
AGENT = """
    import sys
    EARLY = [name for name in ("colorsys", "wave") if name in sys.modules]
    import os
    import colorsys
    from my_agent import helper

    def root_agent(message, session):
        import wave
        session.state.update(early=EARLY, helper=helper.VALUE, pid=os.getpid())
        return message
"""


class Agent:
    """An agent on disk that is run again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warm_hosts = WarmHosts(AgentAddress(folder))

    def settings(self) -> HostSettings:
        return HostSettings(AgentAddress(self.folder), 20.0)

    async def run(self) -> dict[str, Any]:
        """What a run leaves in the state; afterwards the next host is ready."""
        started = self.warm_hosts.start(self.settings())
        try:
            await started.loading
            request = {"op": "run", "session": {}, "turns": [MESSAGE]}
            answer = await started.host.request(request, 20.0, lambda event: None)
        finally:
            await started.end()
            await self.get_ready()
        state: dict[str, Any] = answer["state"]
        return state

    async def get_ready(self) -> None:
        self.warm_hosts.prepare()
        await self.warm_hosts.ready()

    def write(self, name: str, source: str) -> None:
        (self.folder / name).write_text(textwrap.dedent(source), encoding="utf-8")


@pytest.fixture
def no_warm_hosts() -> None:
    """There are some."""


@pytest.fixture
async def agent(write_agent) -> AsyncIterator[Agent]:
    one = Agent(write_agent(AGENT, helper="VALUE = 1\n"))
    yield one
    await one.warm_hosts.close()
    assert hosts() == []


async def test_the_next_host_has_the_libraries_of_the_last_import_and_the_last_run(agent):
    assert (await agent.run())["early"] == []
    assert (await agent.run())["early"] == ["colorsys", "wave"]


async def test_a_host_is_used_once_and_replaced_until_all_are_closed(agent):
    await agent.get_ready()
    assert hosts() == []
    pids = [(await agent.run())["pid"] for _ in range(3)]
    assert len(set(pids)) == 3
    (waiting,) = hosts()
    assert waiting.pid not in pids
    await agent.warm_hosts.close()
    await agent.get_ready()
    assert hosts() == []


def test_a_host_that_is_ended_when_its_loop_ends_is_gone_before_it(write_agent):
    complaints = []
    ended: list[weakref.ref[Host]] = []

    async def holds(started: StartedHost, holding: asyncio.Event) -> None:
        try:
            await started.loading
            holding.set()
            await asyncio.Event().wait()
        finally:
            await started.end()

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: complaints.append(context["message"])
        )
        agent, holding = Agent(write_agent(AGENT, helper="VALUE = 1\n")), asyncio.Event()
        started = agent.warm_hosts.start(agent.settings())
        ended.append(weakref.ref(started.host))
        task = asyncio.create_task(holds(started, holding))
        await holding.wait()
        await agent.warm_hosts.close()
        assert not task.done()

    asyncio.run(work())
    assert hosts() == []
    # A task that is not done complains when it is collected, which it is with the thread of its host.
    wait_until(lambda: gc.collect() >= 0 and ended[0]() is None)
    assert complaints == []


async def test_nothing_is_started_while_another_host_imports_the_agent(agent):
    await agent.run()
    started = agent.warm_hosts.start(agent.settings())
    agent.warm_hosts.prepare()
    assert len(hosts()) == 1
    await started.loading
    await started.end()


async def test_what_the_user_writes_is_never_in_it(agent):
    await agent.run()
    for value in (2, 3):
        # Of the same size, and within the same second.
        agent.write("helper.py", f"VALUE = {value}\n")
        assert (await agent.run())["helper"] == value


async def test_what_is_installed_for_editing_is_never_in_it(agent, monkeypatch, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "shared_code.py").write_text("VALUE = 1\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(elsewhere), os.environ.get("PYTHONPATH", "")]))
    agent.write(
        "agent.py",
        """
        import sys
        EARLY = [name for name in ("colorsys", "shared_code") if name in sys.modules]
        import colorsys
        import shared_code

        def root_agent(message, session):
            session.state.update(early=EARLY, value=shared_code.VALUE)
            return message
        """,
    )
    await agent.run()
    (elsewhere / "shared_code.py").write_text("VALUE = 2\n", encoding="utf-8")
    assert await agent.run() == {"early": ["colorsys"], "value": 2}


async def test_a_library_that_imports_what_the_user_writes_is_not_taken_from_it(agent, monkeypatch, tmp_path):
    (tmp_path / "plugin.py").write_text("import colorsys\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    host = Host()
    await host.preload(agent.folder, ["plugin"])
    await start_host(agent.settings(), host).loading
    answer = await host.request({"op": "run", "session": {}, "turns": [MESSAGE]}, 20.0, lambda event: None)
    await host.close()
    assert answer["state"]["early"] == []


@pytest.mark.parametrize("beside", ["package", "plain folder"])
async def test_a_module_of_the_user_that_is_called_like_a_library_wins(agent, beside):
    if beside == "plain folder":
        (agent.folder / "__init__.py").unlink()
    await agent.run()
    folder = agent.folder.parent if beside == "package" else agent.folder
    (folder / "colorsys.py").touch()
    agent.write("helper.py", "import colorsys\nVALUE = colorsys.__file__\n")
    assert (await agent.run())["helper"] == str(folder / "colorsys.py")


async def test_a_module_in_a_package_hides_no_library_that_is_called_so(agent):
    agent.write("colorsys.py", "OWN = True")
    agent.write(
        "helper.py", "import colorsys\nfrom . import colorsys as own\nVALUE = own.OWN, colorsys.ONE_THIRD\n"
    )
    assert (await agent.run())["helper"] == [True, 1 / 3]
    assert (await agent.run())["early"] == ["colorsys", "wave"]


@pytest.mark.parametrize("what", ["env file", "variable", "packages"])
async def test_it_is_dropped_when_what_is_around_it_changes(agent, what, monkeypatch, tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.setattr(starting, "LIBRARIES", (packages,))
    await agent.run()
    match what:
        case "env file":
            agent.write(".env", "WHERE=here\n")
        case "variable":
            monkeypatch.setenv("WHERE", "here")
        case "packages":
            (packages / "one-1.0.dist-info").mkdir()
    assert (await agent.run())["early"] == []
    assert (await agent.run())["early"] == ["colorsys", "wave"]


# This library reads a variable while it is imported.
READS_ENVIRONMENT = """
    import os, sys
    EARLY = "zoneinfo" in sys.modules
    {before}
    import zoneinfo
    {after}

    def root_agent(message, session):
        session.state.update(early=EARLY, found=list(zoneinfo.TZPATH), now=os.environ.get("PYTHONTZPATH"))
        return message
"""


def reads_environment(before: str = "", after: str = "") -> str:
    return READS_ENVIRONMENT.format(before=before, after=after)


SET_HERE = "os.environ['PYTHONTZPATH'] = '/here'"


@pytest.mark.parametrize(
    ("before", "env"), [("", "PYTHONTZPATH=/here\n"), (SET_HERE, "")], ids=["env file", "agent"]
)
async def test_libraries_find_the_env_file_and_what_the_agent_has_set_before(agent, before, env):
    agent.write("agent.py", reads_environment(before=before))
    agent.write(".env", env)
    for early in (False, True):
        assert await agent.run() == {"early": early, "found": ["/here"], "now": "/here"}
    # Another environment begins anew.
    agent.write(".env", "")
    agent.write("agent.py", reads_environment(before=SET_HERE.replace("here", "there")))
    assert await agent.run() == {"early": False, "found": ["/there"], "now": "/there"}
    agent.write("agent.py", reads_environment())
    assert (await agent.run())["now"] is None


async def test_libraries_do_not_find_what_the_agent_sets_later(agent):
    agent.write("agent.py", reads_environment())
    plain = (await agent.run())["found"]
    agent.write("agent.py", reads_environment(after=SET_HERE))
    for early in (False, True):
        assert await agent.run() == {"early": early, "found": plain, "now": "/here"}


async def test_an_agent_that_cannot_be_imported_does_not_end_it(agent):
    await agent.run()
    agent.write("agent.py", "import nothing_like_that\n")
    with pytest.raises(AgentBrokenError, match="nothing_like_that") as caught:
        await agent.run()
    assert caught.value.error.where == "agent.py:1"
    agent.write("agent.py", AGENT)
    assert (await agent.run())["early"] == ["colorsys", "wave"]


async def test_threads_and_processes_of_an_import_are_of_the_host_that_imports(agent):
    agent.write(
        "agent.py",
        """
        import subprocess, sys, threading, time
        EARLY = "colorsys" in sys.modules

        def work():
            while True:
                import colorsys
                time.sleep(0.001)

        threading.Thread(target=work).start()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

        def root_agent(message, session):
            import colorsys
            session.state.update(early=EARLY, child=child.pid, threads=threading.active_count())
            return message
        """,
    )
    first = await agent.run()
    (waiting,) = hosts()
    assert waiting.children() == []
    second = await agent.run()
    assert (first["early"], second["early"]) == (False, True)
    assert first["threads"] == second["threads"]
    assert not is_running(first["child"])
    assert not is_running(second["child"])


async def test_what_a_host_holds_is_free_again_when_the_next_one_imports(agent):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    agent.write(
        "agent.py",
        f"""
        import socket
        held = socket.create_server(("127.0.0.1", {port}), reuse_port=False)

        def root_agent(message, session):
            return message
        """,
    )
    for _ in range(3):
        started = agent.warm_hosts.start(agent.settings())
        await started.loading
        await started.end()


async def test_one_that_has_died_is_not_given_out(agent):
    await agent.run()
    (waiting,) = hosts()
    waiting.send_signal(signal.SIGKILL)
    ready = agent.warm_hosts._ready
    await until(lambda: not ready.host.alive)
    assert (await agent.run())["helper"] == 1
