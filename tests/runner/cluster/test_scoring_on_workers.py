"""Requests for metrics and judges that go to workers, which die while they compute them."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.runner.cluster.messages import LeaveScore, Score, Scored
from evaltui.runner.cluster.scoring import ScoringOnWorkers
from evaltui.runner.errors import HostLostError
from evaltui.runner.protocol import FilesOpened

KEY, NO_KEY = GeminiAccess(), GeminiAccess("GOOGLE_API_KEY is not set")


@dataclass(eq=False)
class Worker:
    """Stands for a `RemoteWorker`."""

    gemini: GeminiAccess = KEY
    held: dict[int, Score] = field(default_factory=dict)

    def send(self, message: Any) -> None:
        if isinstance(message, Score):
            self.held[message.number] = message
        else:
            assert isinstance(message, LeaveScore)
            self.held.pop(message.number, None)


class Cluster:
    """Workers that answer and die by chance. Those that compute a guilty request never answer it."""

    def __init__(self, accesses: list[GeminiAccess], chance: random.Random) -> None:
        self.workers = [Worker(one) for one in accesses]
        self.scoring: Any = ScoringOnWorkers(1, lambda: iter(self.workers), is_elsewhere=True)  # type: ignore[arg-type, return-value]
        self.deaths = 0
        self._chance = chance

    def step(self) -> None:
        worker = self._chance.choice([one for one in self.workers if one.held])
        number, asked = self._chance.choice([*worker.held.items()])
        if asked.request["guilty"]:
            self.deaths += 1
            self.workers[self.workers.index(worker)] = Worker(worker.gemini)
            self.scoring.lose(worker, "died")
            # What it has sent before may still come.
            late = self._chance.choice([*worker.held])
            self.scoring.on_scored(worker, Scored(late, {"was": "late"}, FilesOpened()))
            return
        del worker.held[number]
        self.scoring.on_scored(worker, Scored(number, {"was": asked.request["name"]}, FilesOpened()))


@given(
    st.lists(st.sampled_from([KEY, NO_KEY]), min_size=1, max_size=4),
    st.lists(st.tuples(st.booleans(), st.sampled_from(["metrics", "models"])), max_size=14),
    st.integers(0, 1000),
)
def test_each_request_has_one_answer_and_only_the_guilty_fail(accesses, asked, seed: int):
    async def run() -> None:
        cluster = Cluster(accesses, random.Random(seed))
        tasks = [
            asyncio.create_task(cluster.scoring.answer(kind, {"name": number, "guilty": is_guilty}))
            for number, (is_guilty, kind) in enumerate(asked)
        ]
        await asyncio.sleep(0)
        while any(one.held for one in cluster.workers):
            assert cluster.deaths <= 3 * len(asked)
            cluster.step()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        came = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        for number, (answer, (is_guilty, _)) in enumerate(zip(came, asked, strict=True)):
            assert isinstance(answer, HostLostError) if is_guilty else answer == {"was": number}
        assert cluster.deaths <= 3 * sum(is_guilty for is_guilty, _ in asked)

    asyncio.run(run())


def test_models_are_asked_where_there_is_a_key():
    async def run() -> None:
        cluster = Cluster([NO_KEY, KEY], random.Random(0))
        without, having = cluster.workers
        tasks = [asyncio.create_task(cluster.scoring.answer("models", {})) for _ in range(4)]
        await asyncio.sleep(0)
        assert (len(without.held), len(having.held)) == (0, 4)
        assert cluster.scoring.gemini is None
        # With none left, it is said before anything is asked.
        cluster.workers.remove(having)
        assert cluster.scoring.gemini.problem == "GOOGLE_API_KEY is not set on the workers"
        cluster.scoring.end()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(task.cancelled() for task in tasks)

    asyncio.run(run())
