"""What is said to a worker, and heard of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from evaltui.runner.cluster.messages import Again
from evaltui.runner.cluster.remote_worker import RemoteWorker


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
            worker.begin(group, nothing)
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
