"""The progress of a run as a line on standard error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TextIO

from evaltui.commands.progress_line import RunProgress, progress_line
from evaltui.core.model.limits import CallRate
from evaltui.core.model.spending import RunningTotal
from evaltui.runner.plan import AtWork, CaseDone, CaseStarted, Happened, RepeatDone, Scaled, Update

_EVERY = 0.1
_TICK = 0.9
# Where the terminal does not say how wide it is.
_COLUMNS = 80


class Progress:
    """Rewrites its line at most ten times a second; silent where stderr is no terminal."""

    def __init__(self, stream: TextIO, cases: int, title: str = "") -> None:
        self._stream = stream
        self._shown = stream.isatty()
        self._run = RunProgress(cases, title)
        self._spent = RunningTotal()
        self._rate: Callable[[], CallRate | None] = lambda: None
        self._began = time.monotonic()
        self._working_since: float | None = None
        self._painted = 0.0

    def on_update(self, update: Update) -> None:
        if not self._shown:
            return
        run = self._run
        match update:
            case AtWork(rate=rate):
                self._rate = rate
            case CaseStarted(case=case):
                run.current = case.eval_id
                self._working_since = self._working_since or time.monotonic()
            case RepeatDone(result=result):
                self._spent.add(result.spent)
            case CaseDone(result):
                run.done[result.status] += 1
                run.carried += self._working_since is None
            case Scaled() as scale:
                run.scale = scale
            case Happened():
                return
        self._paint_if_older(_EVERY)

    def tick(self) -> None:
        """Repaints the line as time passes."""
        if self._shown:
            self._paint_if_older(_TICK)

    def _paint_if_older(self, seconds: float) -> None:
        if time.monotonic() - self._painted > seconds:
            self._paint()

    def _paint(self) -> None:
        run = self._run
        now = self._painted = time.monotonic()
        run.seconds = now - self._began
        run.working = now - (self._working_since or now)
        run.cost = None if (spent := self._spent.value) is None else spent.cost
        run.rate = self._rate()
        line = progress_line(run, self._columns() - 1)
        self._write(f"\r\x1b[2K{line}")

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except (OSError, ValueError):
            return _COLUMNS

    def end(self) -> None:
        """Removes the line."""
        if self._shown and self._painted:
            self._write("\r\x1b[2K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # The terminal is gone.
            self._shown = False
