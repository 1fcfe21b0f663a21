from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("distributed")
from runner.cluster.clusters import cluster_here


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with two workers, in a thread of this process; their hosts are real."""
    with cluster_here(2) as cluster:
        yield cluster.scheduler_address
