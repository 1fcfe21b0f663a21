"""The scheduler that a run goes to."""

from __future__ import annotations

import io
import os
import sys
from multiprocessing import resource_tracker

import pytest

from evaltui.runner.cluster import connecting


class NoFile(io.StringIO):
    """Standard error as Textual has it."""

    def fileno(self) -> int:
        return -1


@pytest.mark.skipif(os.name != "posix", reason="multiprocessing has no such process")
def test_what_clears_up_after_workers_starts_where_the_workbench_is_shown(monkeypatch):
    tracker = resource_tracker.ResourceTracker()
    monkeypatch.setattr(resource_tracker, "ensure_running", tracker.ensure_running)
    monkeypatch.setattr(sys, "stderr", NoFile())
    connecting._start_tracker()
    try:
        assert tracker._check_alive()
    finally:
        tracker._stop()
