"""Schedulers and workers as processes of their own, and runs on them that can be disturbed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from waiting import wait_until

from evaltui.runs.run_file import RunFile

if TYPE_CHECKING:
    from distributed import LocalCluster


@dataclass
class Cluster:
    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(
    workers: int, protocol: str = "tcp", words: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """`words` are further options of scheduler and workers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"{protocol}://127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, **(environ or {})}

    def start(kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options, *words, "--no-dashboard"]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)

    host, port = address.rpartition("//")[2].split(":")
    scheduler = start("scheduler", "--host", f"{protocol}://{host}:{port}", "--no-jupyter")
    options = ("--nthreads", "1", "--host", f"{protocol}://{host}", "--no-nanny")
    started = [start("worker", address, *options) for _ in range(workers)]
    try:
        yield Cluster(address, scheduler, started)
    finally:
        for process in (*started, scheduler):
            process.kill()
            process.wait()


def cluster_here(workers: int) -> LocalCluster:
    """A scheduler and workers in a thread of this process."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        host="127.0.0.1",
        protocol="tcp://",
        dashboard_address=None,
        scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
    )


class Run:
    """`evaltui run` of an agent in a process of its own."""

    def __init__(self, folder: Path, *words: str, environ: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "evaltui", "run", str(folder), *words, "--report", "json=/dev/null"]
        self.folder = folder
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **(environ or {})},
        )

    @property
    def log(self) -> Path:
        return max((self.folder / ".evaltui" / "runs").glob("*.sqlite"), key=lambda path: path.name)

    def wait_for_results(self, count: int) -> None:
        def has_results() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            folder = self.folder / ".evaltui" / "runs"
            return any(True for _ in folder.glob("*.sqlite")) and self.results().total() >= count

        wait_until(has_results, seconds=100)

    def results(self) -> Counter[tuple[str, str]]:
        """How often the file has each case with each status."""
        return Counter((row.case.eval_id, row.data["status"]) for row in RunFile(self.log).repeats)

    def own_workers(self) -> list[psutil.Process]:
        """The processes of `local:N`."""
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if any("spawn_main" in word for word in child.cmdline())]

    def interrupt(self) -> None:
        """As ctrl+c does in a terminal: every process of it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """The exit code and what was said on standard error."""
        _, said = self.process.communicate(timeout=300)
        return self.process.returncode, said
