"""The scheduler and the workers of `local:N`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from distributed import Security
from distributed.comm import connect
from eval_data import write_eval_set

from evaltui.agents.orphans import MARK
from evaltui.runner.dask.workers import OwnCluster
from tests.numbered_cases import one_case


async def test_only_the_run_itself_can_connect():
    """Anybody who can connect to a scheduler can run code in its process."""
    own = OwnCluster(1, 1)
    try:
        cluster = await own.started()
        address = cluster.scheduler_address
        stranger = Security.temporary().get_connection_args("client")
        for other, arguments in ((address, stranger), (address.replace("tls:", "tcp:"), {})):
            with pytest.raises((OSError, RuntimeError)):
                await connect(other, timeout=0.5, **arguments)
        comm = await connect(address, timeout=10, **cluster.security.get_connection_args("client"))
        await comm.close()
    finally:
        await own.close()


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
    write_eval_set(folder, "one", one_case(1))
    script = tmp_path / "script.py"
    script.write_text(TWO_RUNS)
    environ = {**os.environ} if seed is None else {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, script, folder], env=environ, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_that_do_not_start_are_no_failed_case(tmp_path, write_agent):
    folder = write_agent(TELLS_ENVIRONMENT, name="tells")
    write_eval_set(folder, "one", one_case(1))
    script = tmp_path / "script.py"
    # Without `if __name__ == "__main__"`, no process can be made from it.
    script.write_text("import sys\nfrom evaltui.cli import main\nmain(['run', *sys.argv[1:]])\n")
    command = [sys.executable, script, folder, "--scheduler", "local:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "workers of this machine do not start" in done.stdout
    assert done.returncode == 3
