"""Workers, schedulers and runs that end in the middle: each case has one result all the same."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from distributed.security import Security
from eval_data import write_eval_set
from runner.cluster.clusters import Run, cluster

from evaltui.runs.run_file import RunFile
from tests.numbered_cases import one_case
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("fresh_hosts"),
]

AGENT = """
    import asyncio, os, psutil

    async def root_agent(message, session):
        await asyncio.sleep(0.05)
        if message.endswith(" 17") and os.environ.get("KILLS"):
            one = psutil.Process()
            while not any("spawn_main" in word for word in one.cmdline()):
                one = one.parent()
            one.kill()
        return "right"
"""


def agent_of(write_agent, count: int) -> Path:
    folder = write_agent(AGENT, name="busy")
    write_eval_set(folder, "busy", *map(one_case, range(count)))
    return folder


def passed_once(count: int, besides: int | None = None) -> dict[tuple[str, str], int]:
    return {(f"case_{number}", "PASSED"): 1 for number in range(count) if number != besides}


def test_a_killed_worker_costs_no_case(write_agent):
    run = Run(agent_of(write_agent, 300), "--record", "off", "--scheduler", "local:2")
    run.wait_for_results(20)
    run.own_workers()[0].kill()
    run.wait_for_results(100)
    run.own_workers()[-1].kill()
    assert run.end()[0] == 0
    assert run.results() == passed_once(300)


def test_workers_that_dask_gives_up_come_back(write_agent):
    # It does so where starting again takes longer than this.
    environ = {"DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "100ms"}
    folder = agent_of(write_agent, 200)
    run = Run(folder, "--record", "off", "--scheduler", "local:2", environ=environ)
    run.wait_for_results(20)
    killed: set[int] = set()
    while len(killed) < 8:
        # As soon as their processes are there.
        with suppress(psutil.NoSuchProcess):
            for worker in run.own_workers():
                worker.kill()
                killed.add(worker.pid)
    assert run.end()[0] == 0
    assert run.results() == passed_once(200)


def test_a_case_that_kills_its_worker_is_the_only_error(write_agent):
    run = Run(
        agent_of(write_agent, 100), "--record", "off", "--scheduler", "local:2", environ={"KILLS": "yes"}
    )
    assert run.end()[0] == 3
    assert run.results() == passed_once(100, besides=17) | {("case_17", "ERROR"): 1}
    errors = [row.data["error"]["type"] for row in RunFile(run.log).repeats if row.data.get("error")]
    assert errors == ["WorkerLostError"]
    # The first attempts at cases are in no result.
    lost = [note for note in RunFile(run.log).notes if note.startswith("worker 127.0.0.1 was lost")]
    assert lost
    assert "case_17" in lost[-1]


def test_a_silent_worker_costs_no_case(write_agent):
    with cluster(2, environ={"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s"}) as started:
        run = Run(agent_of(write_agent, 300), "--record", "off", "--scheduler", started.address)
        run.wait_for_results(20)
        started.workers[0].send_signal(signal.SIGSTOP)
        assert run.end()[0] == 0
    assert run.results() == passed_once(300)


def test_a_lost_scheduler_is_said_and_the_rest_is_resumed(write_agent):
    folder = agent_of(write_agent, 400)
    with cluster(2) as started:
        run = Run(folder, "--record", "off", "--scheduler", started.address)
        run.wait_for_results(20)
        started.scheduler.kill()
        code, said = run.end()
    assert code == 3
    assert f"{started.address}: the scheduler was lost" in said
    assert "Traceback" not in said
    assert 20 <= run.results().total() < 400
    again = Run(folder, "--resume", "last", "--scheduler", "local:2")
    assert again.end()[0] == 0
    assert again.results() == passed_once(400)


def test_an_interrupted_run_ends_soon_and_is_resumed(write_agent):
    folder = agent_of(write_agent, 400)
    run = Run(folder, "--record", "off", "--scheduler", "local:2")
    run.wait_for_results(20)
    workers = run.own_workers()
    run.interrupt()
    code, said = run.end()
    assert code == 130
    assert said == ""
    wait_until(lambda: not any(one.is_running() for one in workers))
    again = Run(folder, "--resume", "last", "--scheduler", "local:2")
    assert again.end()[0] == 0
    assert again.results() == passed_once(400)


def test_tls_with_a_certificate_of_its_own(write_agent, tmp_path):
    folder = agent_of(write_agent, 40)
    own = Security.temporary()
    (tmp_path / "key").write_text(own.tls_client_key)
    (tmp_path / "cert").write_text(own.tls_client_cert)
    (tmp_path / "ca").write_text(own.tls_ca_file)
    names = {"CA_FILE": "ca"} | {
        f"{role}__{kind.upper()}": kind
        for role in ("CLIENT", "SCHEDULER", "WORKER")
        for kind in ("cert", "key")
    }
    environ = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(tmp_path / file) for name, file in names.items()}
    with cluster(2, "tls", environ=environ) as started:
        bare = Run(folder, "--record", "off", "--scheduler", started.address)
        code, said = bare.end()
        assert (code, "distributed.comm.tls" in said) == (3, True)
        run = Run(folder, "--record", "off", "--scheduler", started.address, environ=environ)
        assert run.end()[0] == 0
    assert run.results() == passed_once(40)


def test_two_thousand_cases_come_to_what_they_come_to_here(write_agent):
    folder = write_agent(
        """
        def root_agent(message, session):
            return "wrong" if message.endswith("3") else "right"
        """,
        name="quick",
    )
    write_eval_set(folder, "quick", *map(one_case, range(2000)))
    results = {}
    for scheduler in ("off", "local:2"):
        run = Run(folder, "--record", "off", "--workers", "1", "--scheduler", scheduler)
        assert run.end()[0] == 1
        results[scheduler] = run.results()
    assert results["local:2"] == results["off"]
    assert set(results["off"].values()) == {1}
