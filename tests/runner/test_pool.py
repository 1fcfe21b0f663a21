"""Hosts and the work that is handed to them: more comes while they work, and they may be lost over it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.files.agent_address import AgentAddress
from evaltui.runner.errors import AgentBrokenError, HostLostError
from evaltui.runner.parent import pool
from evaltui.runner.parent.pool import HostPool, HostSettings
from evaltui.runner.parent.work import WorkQueue
from evaltui.runner.protocol import FilesOpened

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

    takes_more = False
    opened = FilesOpened()

    async def request(self, message, timeout, on_event, on_recorded, gated, on_begun):
        on_begun()
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


async def run(items, follow=(), parallel=4, most=100, listener=None):
    listener = listener or Listener(follow)
    settings = HostSettings(AgentAddress(Path("agent")), 1.0)
    listener.work = work = WorkQueue(most)
    work.add(items)
    if not follow:
        work.close()
    async with asyncio.timeout(20):
        await HostPool(settings, listener, parallel, 1).run(work)
    return listener.done_with


async def test_what_is_added_while_others_run_is_run(hosts):
    found = await run(["a", "b"], {"b": ["c"], "c": ["d"]})
    assert sorted(found) == [(item, True) for item in "abcd"]
    assert hosts.begun == 1


async def test_the_most_urgent_item_comes_first(hosts):
    found = await run(["a", "b", "c"], {"a": ["d", "e"]}, parallel=1)
    assert [item for item, _ in found] == ["a", "d", "e", "b", "c"]


class Slow(Listener):
    """Is done with items only when it may be."""

    def __init__(self):
        super().__init__()
        self.handed_out = []
        self.may_be_done = asyncio.Event()

    def message(self, item):
        self.handed_out.append(item)
        return super().message(item)

    async def done(self, item, ran):
        await self.may_be_done.wait()
        await super().done(item, ran)


@pytest.mark.parametrize(("parallel", "handed_out"), [(1, "a"), (2, "abcd"), (3, "abcdef")])
async def test_each_slot_of_several_has_one_more_item_while_the_last_is_scored(hosts, parallel, handed_out):
    listener = Slow()
    running = asyncio.create_task(run("abcdefgh", parallel=parallel, listener=listener))
    for _ in range(100):
        await asyncio.sleep(0)
    assert listener.handed_out == [*handed_out]
    listener.may_be_done.set()
    assert sorted(await running) == [(item, True) for item in "abcdefgh"]


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
    work = WorkQueue(100)
    work.add(["a1", "a2"], 1)
    work.add(["b1", "b2"], 2)
    work.add(["c1"], 3)
    work.add(["b3"], 2, 0.5)
    work.add([], 3, 0.1)
    assert len(work) == 6
    work.close()
    found = []
    while (item := await work.take()) is not None:
        found.append(item)
        if item == "b2":
            work.add(["a3"], 1, 0.2)
    assert found == ["c1", "b1", "b2", "a1", "a2", "a3", "b3"]
    assert await work.take() is None
    assert not await work.waits()


async def test_what_a_run_begins_with_comes_in_order_behind_what_is_more_urgent():
    work = WorkQueue(100)
    work.begin(["a1", "a2", "b1", "b2", "c1"], lambda item: "abc".index(item[0]))
    assert len(work) == 5
    found = [await work.take()]
    work.add(["a3"], 0, 0.5)
    found += [await work.take() for _ in range(3)]
    work.add(["b3"], 1, 0.5)
    work.close()
    while (item := await work.take()) is not None:
        found.append(item)
    assert found == ["a1", "a2", "a3", "b1", "b2", "b3", "c1"]
    assert not await work.waits()


class RoomyHosts(Hosts):
    """Hosts in which items wait for their place. `crash` ends its host, `hold` waits until it may go on."""

    def __init__(self):
        super().__init__()
        self.may_go_on = asyncio.Event()
        self.has = []
        self.most = 0

    def start(self, settings):
        started = super().start(settings)
        started.host = _RoomyHost(self)
        started.end = started.host.kill
        return started


class _RoomyHost(_Host):
    takes_more = True

    def __init__(self, hosts):
        super().__init__(0)
        self._hosts = hosts
        self._room = None
        self._working = 0

    async def request(self, message, timeout, on_event, on_recorded, gated, on_begun):
        self._hosts.has.append(message["text"])
        if self._room is None:
            self._room = asyncio.Semaphore(message.get("at_once", 1))
        async with self._room:
            if not self.alive:
                raise HostLostError(LOST)
            on_begun()
            self._working += 1
            self._hosts.most = max(self._hosts.most, self._working)
            await asyncio.sleep(0)
            if message["text"].startswith("hold"):
                waiting = [asyncio.create_task(one.wait()) for one in (self._hosts.may_go_on, self._gone)]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if message["text"] == "crash":
                self.alive = False
                self._gone.set()
                # When it is tried again, nothing else will end the waiting.
                self._hosts.may_go_on.set()
            self._working -= 1
            if not self.alive:
                raise HostLostError(LOST)
            return {"state": {}}


@pytest.fixture
async def roomy(monkeypatch):
    found = RoomyHosts()
    monkeypatch.setattr(pool, "start_host", found.start)
    return found


QUICK = [f"a{number}" for number in range(9)]
LAST = [f"z{number}" for number in range(9)]


async def begun_with(hosts, count):
    async with asyncio.timeout(20):
        while len(hosts.has) < count:
            await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    return hosts.has


async def test_of_quick_items_some_wait_in_the_host_until_the_last_ones(roomy):
    """Of the last ones, none waits where another host could have it."""
    running = asyncio.create_task(run([*QUICK, "hold1", "hold2", *LAST], parallel=2))
    assert await begun_with(roomy, 14) == [*QUICK, "hold1", "hold2", "z0", "z1", "z2"]
    roomy.may_go_on.set()
    assert len(await running) == 20
    assert roomy.most == 2

    roomy.may_go_on.clear()
    roomy.has.clear()
    running = asyncio.create_task(run([*QUICK, "hold1", "hold2", "z0", "z1"], parallel=2))
    assert await begun_with(roomy, 11) == [*QUICK, "hold1", "hold2"]
    roomy.may_go_on.set()
    assert len(await running) == 13


async def test_of_items_that_take_their_time_none_waits_in_a_host(roomy, monkeypatch):
    monkeypatch.setattr(pool, "_QUICK", 0.0)
    running = asyncio.create_task(run([*QUICK, "hold1", "hold2", *LAST], parallel=2))
    assert await begun_with(roomy, 11) == [*QUICK, "hold1", "hold2"]
    roomy.may_go_on.set()
    assert len(await running) == 20


async def test_what_waits_in_a_host_that_is_lost_is_run_by_another_as_if_nothing_had_been(roomy):
    listener = Started()
    found = await run([*QUICK, "hold", "crash", *LAST], parallel=2, listener=listener)
    assert ("crash", False) in found
    assert {item for item, passed in found if passed} == {*QUICK, "hold", *LAST}
    assert roomy.has.count("z0") == 2
    # Those that were under way are tried again, each alone; what waited had not begun.
    again = {item for item in listener.begun if listener.begun.count(item) > 1}
    assert again == {"hold", "crash"}


class Started(Listener):
    def __init__(self):
        super().__init__()
        self.begun = []

    def started(self, item):
        self.begun.append(item)
