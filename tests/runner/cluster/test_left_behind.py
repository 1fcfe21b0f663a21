"""What runs leave on a scheduler and its workers, which others use after them."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands.command_line import call
from distributed import Client
from eval_data import make_answers, write_eval_set
from runner.cluster.clusters import Cluster, Run, cluster, cluster_here

from tests.numbered_cases import one_case
from tests.waiting import wait_until

AGENT = """
    import asyncio, os

    async def root_agent(message, session):
        if message == "secrets":
            print(os.environ["ORDERS_TOKEN"])
            session.state["file"] = __file__
            return f"{os.environ['ORDERS_TOKEN']} {os.environ['SHIPPED_TOKEN']}"
        if message == "raise":
            raise KeyError(message)
        await asyncio.sleep(0.02)
        return "right"
"""
SECRETS = {"ORDERS_TOKEN": 'tok"en\\väl-of-the-worker', "SHIPPED_TOKEN": "token-of-the-run"}


@pytest.fixture
def agent(write_agent) -> Path:
    return write_agent(AGENT, name="told")


def write_cases(folder: Path, *messages: str) -> None:
    write_eval_set(folder, "told", *make_answers(*messages, answer="right")["eval_cases"])


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Cluster]:
    """A worker whose environment has a secret that this one does not have."""
    with cluster(1, environ={"ORDERS_TOKEN": SECRETS["ORDERS_TOKEN"]}) as processes:
        yield processes


def asked(address: str, ask: Any) -> Any:
    """What a client of the scheduler finds."""

    async def ask_it() -> Any:
        async with Client(address, asynchronous=True, set_as_default=False) as client:
            return await ask(client)

    return asyncio.run(ask_it())


def kept(address: str) -> str:
    return str(asked(address, lambda client: client.get_events()))


def plugins(address: str) -> list[str]:
    def names(dask_scheduler: Any = None) -> list[str]:
        return [name for name in dask_scheduler.worker_plugins if name.startswith("evaltui-")]

    found: list[str] = asked(address, lambda client: client.run_on_scheduler(names))
    return found


def test_nothing_of_a_worker_is_in_the_report_and_nothing_of_the_run_on_the_scheduler(
    agent, elsewhere, monkeypatch
):
    write_cases(agent, "secrets", "raise", "fine")
    monkeypatch.setenv("SHIPPED_TOKEN", SECRETS["SHIPPED_TOKEN"])
    path = agent / "report.json"
    words = ("--scheduler", elsewhere.address, "--ship-env", "SHIPPED_TOKEN", "--report", f"json={path}")
    call("run", agent, "--record", "off", *words)
    report = json.loads(path.read_text())
    written = path.read_text() + Path(report["log"]).read_text(errors="replace")
    assert "<ORDERS_TOKEN> <SHIPPED_TOKEN>" in written
    assert str(agent / "agent.py") in written
    for secret in (*SECRETS.values(), "of-the-worker", "scratch"):
        assert secret not in written
        assert secret not in kept(elsewhere.address)
    assert f'File "{agent / "agent.py"}", line 10' in report["cases"][1]["error"]["traceback"]
    assert plugins(elsewhere.address) == []


@pytest.mark.thorough
def test_a_run_that_was_killed_ends_on_its_workers(agent, elsewhere):
    write_cases(agent, *(f"case {number}" for number in range(3000)))
    run = Run(agent, "--record", "off", "--scheduler", elsewhere.address)
    run.wait_for_results(10)
    hosts = psutil.Process(elsewhere.workers[0].pid).children(recursive=True)
    assert hosts
    assert len(plugins(elsewhere.address)) == 1
    run.process.kill()
    run.process.wait()
    wait_until(lambda: plugins(elsewhere.address) == [])
    _, alive = psutil.wait_procs(hosts, timeout=10)
    assert not alive


@pytest.mark.thorough
def test_a_run_that_was_stopped_for_a_while_goes_on(write_agent):
    """As by ctrl+z."""
    folder = write_agent(AGENT, name="stopped")
    count = 300
    write_eval_set(folder, "stopped", *map(one_case, range(count)))
    with cluster_here(2) as scheduler:
        run = Run(folder, "--record", "off", "--scheduler", scheduler.scheduler_address)
        run.wait_for_results(20)
        run.process.send_signal(signal.SIGSTOP)
        time.sleep(5)
        run.process.send_signal(signal.SIGCONT)
        code, said = run.end()
    assert code == 0, said
    assert run.results() == {(f"case_{number}", "PASSED"): 1 for number in range(count)}
