"""The processes that workers of `local:N` begin with."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from multiprocessing import resource_tracker

import pytest

from evaltui.runner.cluster.forking import start_tracker


class NoFile(io.StringIO):
    """Standard error as Textual has it."""

    def fileno(self) -> int:
        return -1


@pytest.mark.skipif(os.name != "posix", reason="multiprocessing has no such process")
def test_what_clears_up_after_workers_starts_where_the_workbench_is_shown(monkeypatch):
    tracker = resource_tracker.ResourceTracker()
    monkeypatch.setattr(resource_tracker, "ensure_running", tracker.ensure_running)
    monkeypatch.setattr(sys, "stderr", NoFile())
    start_tracker()
    try:
        assert tracker._check_alive()
    finally:
        tracker._stop()


@pytest.mark.skipif(os.name != "posix", reason="multiprocessing forks nothing there")
def test_workers_are_forked_unless_they_would_have_variables_that_are_gone():
    code = """
import os
from evaltui.runner.cluster.forking import begin_forking, start_method
begin_forking()
os.environ["NEW"] = "yes"
print(start_method())
del os.environ["OLD"]
print(start_method())
"""
    environ = {**os.environ, "OLD": "yes"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["forkserver", "spawn"], "")


def test_a_worker_does_not_wait_for_models():
    code = "import evaltui.runner.cluster.worker, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pydantic", "google.genai", "google.adk"} & {*done.stdout.split()}
