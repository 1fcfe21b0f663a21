"""Hosts and the work that is handed to them: more comes while they work, and they may be lost over it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaltui.agents.errors import AgentBrokenError, HostLostError
from evaltui.agents.protocol import FilesOpened
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.project.agent_address import AgentAddress
from evaltui.runner import pool
from evaltui.runner.pool import HostPool, WorkQueue
from evaltui.runner.starting import HostSettings

LOST = ErrorInfo("AgentProcessError", "gone", kind=ErrorKind.HOST_LOST)


class Hosts:
    """Hosts that run texts: `crash` ends its host, and with it whatever runs there; `wait` waits until
    the first one has ended."""

    def __init__(self):
        self.begun = 0
        self.broken_from = 10**9

    def start(self, settings):
        self.begun += 1
        host = _Host(self.begun)
        loading = asyncio.get_running_loop().create_future()
        if self.begun >= self.broken_from:
            loading.set_exception(AgentBrokenError(LOST))
        else:
            loading.set_result({})
        return SimpleNamespace(settings=settings, host=host, loading=loading, end=host.kill)


class _Host:
    def __init__(self, number):
        self.alive = True
        self._number = number
        self._gone = asyncio.Event()

    def listen(self, on_console):
        """It prints nothing."""

    async def kill(self):
        self.alive = False

    opened = FilesOpened()

    async def request(self, message, timeout, on_event, on_recorded, gated):
        if message["text"] == "crash":
            self.alive = False
            self._gone.set()
        if message["text"] == "wait" and self._number == 1:
            await self._gone.wait()
        if not self.alive:
            raise HostLostError(LOST)
        return {"state": {}}


class Listener:
    def __init__(self, follow=()):
        self.work = None
        self.done_with = []
        self.follow = dict(follow)

    def message(self, item):
        return {"text": item}

    async def done(self, item, ran):
        self.done_with.append((item, ran.error is None))
        self.work.add(self.follow.pop(item, ()), 1, 0.5)
        if not self.follow:
            self.work.close()

    def __getattr__(self, name):
        return lambda *_: None


@pytest.fixture
async def hosts(monkeypatch):
    found = Hosts()
    monkeypatch.setattr(pool, "start_host", found.start)
    return found


async def run(items, follow=(), parallel=4):
    listener = Listener(follow)
    settings = HostSettings(AgentAddress(Path("agent")), 1.0)
    listener.work = work = WorkQueue()
    work.add(items)
    if not follow:
        work.close()
    async with asyncio.timeout(20):
        await HostPool(settings, listener, parallel, 1).run(work)
    return listener.done_with


async def test_a_crash_is_the_error_of_the_guilty_item_though_others_wait_for_what_follows(hosts):
    """One slot of the host has nothing to do: it must not hold up those that are to be tried again."""
    found = await run(["wait", "crash", "a"], {"wait": ["b"], "b": ["c"]})
    assert ("crash", False) in found
    assert {item for item, passed in found if passed} == {"wait", "a", "b", "c"}


async def test_nothing_that_comes_later_is_left_by_a_broken_agent(hosts):
    hosts.broken_from = 1
    found = await run(["a"], {"a": ["b"], "b": ["c"]})
    assert found == [(item, False) for item in "abc"]


async def test_a_host_that_cannot_be_replaced_ends_what_is_left(hosts):
    hosts.broken_from = 2
    found = await run(["a", "crash", "b"], {"crash": ["c"]}, parallel=1)
    assert dict(found) == {"a": True, "crash": False, "b": False, "c": False}


async def test_items_of_a_group_stay_in_order_however_urgent_it_becomes():
    work = WorkQueue()
    work.add(["a1", "a2"], 1)
    work.add(["b1", "b2"], 2)
    work.add(["c1"], 3)
    work.add(["b3"], 2, 0.5)
    work.add([], 3, 0.1)
    assert len(work) == 6
    work.close()
    found = []
    while (item := await work.next()) is not None:
        found.append(item)
        if item == "b2":
            work.add(["a3"], 1, 0.2)
    assert found == ["c1", "b1", "b2", "a1", "a2", "a3", "b3"]
    assert await work.next() is None
    assert not await work.waits()


async def test_what_a_run_begins_with_comes_in_order_behind_what_is_more_urgent():
    work = WorkQueue()
    work.add_first(["a1", "a2", "b1", "b2", "c1"], lambda item: "abc".index(item[0]))
    assert len(work) == 5
    found = [await work.next()]
    work.add(["a3"], 0, 0.5)
    found += [await work.next() for _ in range(3)]
    work.add(["b3"], 1, 0.5)
    work.close()
    while (item := await work.next()) is not None:
        found.append(item)
    assert found == ["a1", "a2", "a3", "b1", "b2", "b3", "c1"]
    assert not await work.waits()
