"""Workers that cannot run the agent: others do, and it is said why."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from commands.command_line import call
from eval_data import write_eval_set
from runner.cluster.clusters import Run, cluster_here

from evaltui.runner.dask import worker as on_worker
from evaltui.runner.dask.worker import differing, versions_of
from tests.numbered_cases import one_case
from tests.stored_runs import count

AGENT = """
    import os

    # On some workers a package is missing: their folders are named.
    if any(folder in __file__ for folder in os.environ["LACKING"].split(":") if folder):
        import not_installed

    def root_agent(message, session):
        return "right"
"""
COUNT = 24


@pytest.fixture
def agent(write_agent) -> Path:
    folder = write_agent(AGENT, name="packed")
    write_eval_set(folder, "packed", *map(one_case, range(COUNT)))
    return folder


@pytest.fixture(scope="module")
def workers():
    """The scheduler of three workers in this process, with their folders."""
    with cluster_here(3) as cluster:
        yield cluster.scheduler_address, [one.local_directory for one in cluster.workers.values()]


def report_of(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    path = folder / "report.json"
    code = call("run", folder, "--record", "off", "--report", f"json={path}", *options)
    return code, json.loads(path.read_text())


def notes_of(report: dict[str, Any]) -> list[str]:
    """Without those on the files of the agent: hosts of tests have others."""
    return [note for note in report["notes"] if not note.startswith("not sent to workers")]


@pytest.mark.parametrize(
    ("breaks", "parallel"),
    [
        (1, "1"),
        (3, "1"),
        *(
            pytest.param(*one, marks=pytest.mark.thorough)
            for one in [(0, "1"), (2, "1"), (1, "4"), (2, "4"), (3, "4")]
        ),
    ],
)
def test_an_agent_that_breaks_on_some_workers_runs_on_the_others(
    agent, workers, monkeypatch, breaks: int, parallel: str
):
    address, folders = workers
    monkeypatch.setenv("LACKING", ":".join(folders[:breaks]))
    code, report = report_of(agent, "--scheduler", address, "--parallel", parallel)
    statuses = [case["status"] for case in report["cases"]]
    assert len(statuses) == COUNT
    if breaks < 3:
        assert (code, set(statuses)) == (0, {"PASSED"})
    else:
        assert (code, set(statuses)) == (3, {"ERROR"})
        assert all("import not_installed" in case["error"]["traceback"] for case in report["cases"])
    named = [note for note in report["notes"] if "is not used: agent.py:6: ModuleNotFoundError" in note]
    assert bool(named) is bool(breaks)
    with closing(sqlite3.connect(report["log"])) as run:
        printed = "event LIKE '%127.0.0.1:     import not_installed%' AND kind = 'console'"
        assert bool(run.execute(f"SELECT count(*) FROM events WHERE {printed}").fetchone()[0]) is bool(breaks)
    assert count(Path(report["log"]), "repeats") == COUNT


@pytest.mark.parametrize("differ", [1, 3])
@pytest.mark.parametrize("strict", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_workers_with_other_packages_are_told_of_or_refused(
    agent, workers, monkeypatch, differ: int, strict: bool
):
    found: list[bool] = []

    def differs(versions: Mapping[str, str], python: Path | None) -> tuple[str, ...]:
        found.append(len(found) < differ)
        return ("left-pad 1.0 instead of 1.3",) if found[-1] else ()

    monkeypatch.setattr(on_worker, "differing", differs)
    monkeypatch.setenv("LACKING", "")
    code, report = report_of(agent, "--scheduler", workers[0], *(["--strict-env"] if strict else []))
    assert len(found) == 3
    notes = notes_of(report)
    if not strict:
        assert code == 0
        assert notes == ["versions on worker 127.0.0.1 differ: left-pad 1.0 instead of 1.3"]
        return
    said = "worker 127.0.0.1 is not used: left-pad 1.0 instead of 1.3"
    if differ == 3:
        assert code == 3
        assert {case["reason"] for case in report["cases"]} == {"did not run"}
        assert notes[:2] == [said, f"{workers[0]}: no worker can be used. {said}"]
    else:
        assert (code, len(report["cases"]), notes) == (0, COUNT, [said])


@pytest.mark.thorough
def test_a_worker_to_which_the_run_cannot_be_brought_is_told_of(agent, workers, monkeypatch):
    begun: list[object] = []

    def differs(versions: Mapping[str, str], python: Path | None) -> tuple[str, ...]:
        begun.append(python)
        if len(begun) == 1:
            raise OSError("no room on the disk")
        return ()

    monkeypatch.setattr(on_worker, "differing", differs)
    monkeypatch.setenv("LACKING", "")
    code, report = report_of(agent, "--scheduler", workers[0])
    assert (code, len(report["cases"])) == (0, COUNT)
    assert notes_of(report) == ["a worker cannot begin: OSError: 127.0.0.1: no room on the disk"]


def test_packages_are_compared_by_name_whatever_its_spelling():
    assert differing({"Typing_Extensions": version("typing-extensions")}, None) == ()
    assert differing({"pytest": "0.1", "nowhere": "2"}, None) == (
        "nowhere is missing (2)",
        f"pytest {pytest.__version__} instead of 0.1",
    )


def test_another_python_is_another_version():
    here = ".".join(map(str, sys.version_info[:2]))
    assert versions_of([], None) == {"Python": here}
    assert versions_of(["pytest"], None) == {"pytest": pytest.__version__, "Python": here}
    assert differing({"Python": here}, None) == ()
    assert differing({"Python": "2.7"}, None) == (f"Python {here} instead of 2.7",)


@pytest.mark.thorough
def test_a_run_without_any_worker_says_once_that_it_waits(agent, monkeypatch):
    monkeypatch.setenv("LACKING", "")
    with cluster_here(0) as scheduler:
        run = Run(agent, "--record", "off", "--scheduler", scheduler.scheduler_address)
        time.sleep(15)
        scheduler.scale(1)
        code, said = run.end()
    assert code == 0
    waits = (
        f"{scheduler.scheduler_address} has no worker: the run waits for one. Start one with `dask worker`"
    )
    assert said.count(waits) == 1
