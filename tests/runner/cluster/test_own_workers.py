"""Workers of `local:N` that Dask gives up are started again."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from distributed import Status

from evaltui.runner.cluster import connecting
from evaltui.runner.cluster.connecting import OwnWorkers
from evaltui.runner.parent.executor import ExecutorError


@dataclass
class Cluster:
    """As much of Dask's as is asked for: it starts what it is asked to at once."""

    worker_spec: dict[int, None] = field(default_factory=dict)
    workers: dict[int, SimpleNamespace] = field(default_factory=dict)
    started: list[int] = field(default_factory=list)

    def new_worker_spec(self) -> dict[int, None]:
        return {len(self.worker_spec): None}

    def __await__(self) -> Generator[None, None, None]:
        self.scale(len(self.worker_spec))
        yield from ()

    def scale(self, count: int) -> None:
        missing = [name for name in range(count) if name not in self.workers]
        self.started += missing
        self.workers |= {name: SimpleNamespace(status=Status.running) for name in missing}


async def test_each_that_was_given_up_or_cannot_start_is_replaced():
    cluster = Cluster()
    looking = OwnWorkers(cluster, 3)
    looking.look(have_some=False)
    assert cluster.started == []
    await looking.start()
    assert cluster.started == [0, 1, 2]
    looking.look(have_some=True)
    del cluster.workers[1]
    cluster.workers[2].status = Status.failed
    looking.look(have_some=True)
    assert cluster.started == [0, 1, 2, 1, 2]


def test_a_run_to_which_no_worker_comes_back_ends(monkeypatch):
    looking = OwnWorkers(Cluster(), 3)
    looking.look(have_some=False)
    monkeypatch.setattr(connecting, "_MOST_WAITING", -1.0)
    looking.look(have_some=True)
    with pytest.raises(ExecutorError, match="has come back"):
        looking.look(have_some=False)
