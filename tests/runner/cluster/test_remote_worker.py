"""What is said to a worker, and heard of it."""

from __future__ import annotations

import asyncio
import itertools
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from evaltui.runner.cluster.messages import Again, ChunkEnded, Printed
from evaltui.runner.cluster.remote_worker import _ACKNOWLEDGED, RemoteWorker


async def nothing(worker: RemoteWorker, message: Any) -> None:
    pass


def test_a_cancellation_that_comes_along_with_an_answer_is_not_lost():
    async def cancelled() -> bool:
        sent: list[asyncio.Future[str]] = []
        reached = asyncio.Event()

        def proxy(**words: Any) -> asyncio.Future[str]:
            sent.append(asyncio.get_running_loop().create_future())
            reached.set()
            return sent[-1]

        client = SimpleNamespace(scheduler=SimpleNamespace(proxy=proxy))
        worker = RemoteWorker("tcp://127.0.0.1:1", client, "topic", None, lambda *_: None)
        worker.send(Again())
        async with asyncio.TaskGroup() as group:
            worker.begin(group, nothing, asyncio.Lock())
            await reached.wait()
            await asyncio.sleep(0)
            sent[0].set_result("OK")
            tasks = worker._tasks
            for task in tasks:
                task.cancel()
            # It says something else, if it goes on.
            worker.send(Again())
            reached.clear()
            going_on = asyncio.create_task(reached.wait())
            ended = asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.wait({going_on, ended}, return_when=asyncio.FIRST_COMPLETED)
            going_on.cancel()
            worker.close()
        return len(sent) == 1

    assert asyncio.run(cancelled())


def test_what_one_worker_tells_is_read_before_what_another_one_told_later():
    """Else all workers that have told what came of a chunk are given the next one at the same moment."""
    names = ("a", "b", "c")

    async def read() -> list[str]:
        order: list[str] = []
        all_read = asyncio.Event()
        turn = asyncio.Lock()

        async def slowly(worker: RemoteWorker, message: Any) -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            order.append(worker.address)
            if len(order) == 2 * 3 * 10:
                all_read.set()

        async with asyncio.TaskGroup() as group:
            workers = [RemoteWorker(name, None, "topic", None, lambda *_: None) for name in names]
            for worker in workers:
                worker.begin(group, slowly, turn)
            batch = pickle.dumps([ChunkEnded(number) for number in range(10)])
            for number in (1, 2):
                for worker in workers:
                    worker.on_batch(number, batch)
            await all_read.wait()
            for worker in workers:
                worker.close()
        return order

    told = [(name, len(list(run))) for name, run in itertools.groupby(asyncio.run(read()))]
    assert told == [(name, 10) for name in names] * 2


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_worker_whose_words_wait_for_something_does_not_hold_up_the_others(is_lost):
    """Cases that are judged wait until there is room for them, others do not."""

    async def read() -> list[str]:
        heard: list[str] = []
        waits, reached = asyncio.Event(), asyncio.Event()

        async def hear(worker: RemoteWorker, message: Any) -> None:
            heard.append(worker.address)
            if worker.address == "other":
                reached.set()
                return
            waits.set()
            await asyncio.Event().wait()

        turn = asyncio.Lock()
        async with asyncio.TaskGroup() as group:
            waiting, other = (
                RemoteWorker(name, None, "topic", None, lambda *_: None) for name in ("waiting", "other")
            )
            for worker in (waiting, other):
                worker.begin(group, hear, turn)
                worker.on_batch(1, pickle.dumps([ChunkEnded(1)]))
            await waits.wait()
            if is_lost:
                waiting.close()
            await reached.wait()
            # Nothing of it goes on, or the group would wait for ever.
            waiting.close()
            other.close()
        return heard

    assert asyncio.run(asyncio.wait_for(read(), 30)) == ["waiting", "other"]


def test_a_worker_that_tells_much_hears_at_once_that_it_was_read():
    """Else it waits, after a few large messages, for the next time that it is spoken to."""
    sent: list[int] = []

    async def read() -> None:
        heard = asyncio.Event()

        async def proxy(msg: dict[str, Any], worker: str) -> str:
            sent.append(msg["read"])
            if msg["read"]:
                heard.set()
            return "OK"

        client = SimpleNamespace(scheduler=SimpleNamespace(proxy=proxy))
        async with asyncio.TaskGroup() as group:
            worker = RemoteWorker("tcp://127.0.0.1:1", client, "topic", None, lambda *_: None)
            worker.begin(group, nothing, asyncio.Lock())
            worker.on_batch(1, pickle.dumps([Printed(None, None, "stdout", "x" * 600_000)]))
            worker.on_batch(2, pickle.dumps([Printed(None, None, "stdout", "x" * 600_000)]))
            async with asyncio.timeout(_ACKNOWLEDGED / 2):
                await heard.wait()
            worker.close()

    asyncio.run(read())
    assert sent == [2]
