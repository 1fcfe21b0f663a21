"""The line on standard error that says how far a run is."""

from __future__ import annotations

import time
from collections import Counter
from typing import TextIO

from evaltui.core.model.outcome import Status
from evaltui.runner.plan import CaseDone, CaseStarted, Happened, Scaled, Update
from evaltui.text.figures import show_elapsed

_EVERY = 0.1


class Progress:
    """Rewrites its line at most ten times a second; silent where stderr is no terminal."""

    def __init__(self, stream: TextIO, cases: int, title: str = "") -> None:
        self._stream = stream
        self._title = f"{title} · " if title else ""
        self._cases = cases
        self._shown = stream.isatty()
        self._done: Counter[Status] = Counter()
        self._current = ""
        self._scale: Scaled | None = None
        self._began = time.monotonic()
        self._painted = 0.0

    def on_update(self, update: Update) -> None:
        match update:
            case CaseDone(result):
                self._done[result.status] += 1
            case CaseStarted(case=case):
                self._current = case.eval_id
            case Scaled() as scale:
                self._scale = scale
            case Happened():
                return
        if self._shown and time.monotonic() - self._painted > _EVERY:
            self._paint()

    def _paint(self) -> None:
        self._painted = time.monotonic()
        done = self._done.total()
        bad = ", ".join(
            f"{self._done[status]} {status.lower()}"
            for status in (Status.FAILED, Status.ERROR)
            if self._done[status]
        )
        line = (
            f"{self._title}{done}/{self._cases}{', ' + bad if bad else ''} · "
            f"{show_elapsed(self._painted - self._began)}"
        )
        current = self._current.encode("ascii", "replace").decode()
        if self._scale is not None:
            current = self._scale.in_words
        self._write(f"\r\x1b[2K{line} · {current}"[:100])

    def end(self) -> None:
        """Take the line away."""
        if self._shown and self._painted:
            self._write("\r\x1b[2K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # The terminal is gone.
            self._shown = False
