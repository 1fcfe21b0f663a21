"""Workers of `local:N` that Dask gives up are started again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from distributed import Security, Status
from distributed.comm import connect

from evaltui.runner.cluster import own_cluster
from evaltui.runner.cluster.own_cluster import OwnCluster, OwnWorkers
from evaltui.runner.orphans import MARK
from evaltui.runner.parent.executor import ExecutorError
from tests.numbered_cases import one_case


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


async def test_only_the_run_itself_can_connect():
    """Anybody who can connect to a scheduler can run code in its process."""
    own = OwnCluster(1, 1)
    try:
        cluster = (await own.opened()).cluster
        address = cluster.scheduler_address
        stranger = Security.temporary().get_connection_args("client")
        for other, arguments in ((address, stranger), (address.replace("tls:", "tcp:"), {})):
            with pytest.raises((OSError, RuntimeError)):
                await connect(other, timeout=0.5, **arguments)
        comm = await connect(address, timeout=10, **cluster.security.get_connection_args("client"))
        await comm.close()
    finally:
        await own.close()


def test_a_run_to_which_no_worker_comes_back_ends(monkeypatch):
    looking = OwnWorkers(Cluster(), 3)
    looking.look(have_some=False)
    monkeypatch.setattr(own_cluster, "_MOST_WAITING", -1.0)
    looking.look(have_some=True)
    with pytest.raises(ExecutorError, match="has come back"):
        looking.look(have_some=False)


SCRIPT = """
import asyncio, multiprocessing, sys
from evaltui.runner.cluster.forking import begin_forking
from evaltui.runner.cluster.own_cluster import OwnCluster

async def main(until):
    begin_forking()
    own = OwnCluster(2, 1)
    if until == "opened":
        await own.opened()
    elif until == "starting":
        await own.opened()
        await asyncio.sleep(0.2)
    elif until == "started":
        await own.started()
    await own.close()
    await own.close()
    while multiprocessing.active_children():
        await asyncio.sleep(0.05)

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("until", ["at once", "opened", "starting", "started"])
def test_workers_that_nothing_needs_are_ended_whenever_that_is_known(tmp_path, until):
    """Whatever is left open is told of on standard error when the process ends."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script, until], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


TELLS_ENVIRONMENT = f"""
    import os
    MARK = {MARK!r}

    def root_agent(message, session):
        return "\\n".join(sorted(name + "=" + value for name, value in os.environ.items() if name != MARK))
"""
TWO_RUNS = """
import contextlib, json, os, sys
from evaltui.cli import main

def answer(*words):
    with contextlib.suppress(SystemExit):
        main(["run", sys.argv[1], "--record", "off", "--report", "json=report.json", *words])
    with open("report.json") as file:
        (turn,) = json.load(file)["cases"][0]["repeats"][0]["actual"]
    return turn["final_response"]["parts"][0]["text"]

if __name__ == "__main__":
    before = dict(os.environ)
    here, there = answer(), answer("--scheduler", "local:1")
    assert "PATH=" in here
    assert there == here, {*there.splitlines()} ^ {*here.splitlines()}
    assert os.environ == before, dict(os.environ.items() ^ before.items())
"""


@pytest.mark.parametrize("seed", [None, "0"])
def test_agents_find_the_environment_that_they_find_without_workers(tmp_path, write_agent, seed):
    folder = write_agent(TELLS_ENVIRONMENT, name="tells")
    (folder / "one.evalset.json").write_text(json.dumps({"eval_set_id": "one", "eval_cases": [one_case(1)]}))
    script = tmp_path / "script.py"
    script.write_text(TWO_RUNS)
    environ = {**os.environ} if seed is None else {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, script, folder], env=environ, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_that_do_not_start_are_no_failed_case(tmp_path, write_agent):
    folder = write_agent(TELLS_ENVIRONMENT, name="tells")
    (folder / "one.evalset.json").write_text(json.dumps({"eval_set_id": "one", "eval_cases": [one_case(1)]}))
    script = tmp_path / "script.py"
    # Without `if __name__ == "__main__"`, no process can be made from it.
    script.write_text("import sys\nfrom evaltui.cli import main\nmain(['run', *sys.argv[1:]])\n")
    command = [sys.executable, script, folder, "--scheduler", "local:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "workers of this machine do not start" in done.stdout
    assert done.returncode == 3
