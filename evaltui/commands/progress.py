"""The progress of a run as a line on standard error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from evaltui.commands.progress_line import RunProgress, progress_line
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.limits import CallRate
from evaltui.core.model.spending import RunningTotal
from evaltui.runner.plan import AtWork, CaseDone, CaseStarted, Happened, RepeatDone, RunPlan, Scaled, Update

_EVERY = 0.1
_TICK = 0.9
# Where the terminal does not say how wide it is.
_COLUMNS = 80


class Progress:
    """Rewrites its line at most ten times a second; silent where stderr is no terminal.

    `seconds` is how long the cases of the run took before, as far as known.
    """

    def __init__(
        self, stream: TextIO, cases: int, title: str = "", seconds: Mapping[CaseId, float] | None = None
    ) -> None:
        self._stream = stream
        self._shown = stream.isatty()
        self._run = RunProgress(cases, title)
        self._seconds = dict(seconds or {})
        self._spent = RunningTotal()
        self._rate: Callable[[], CallRate | None] = lambda: None
        for recorded in self._seconds.values():
            self._run.recorded_left.add(recorded)
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
                self._finished(result.id)
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

    def _finished(self, case: CaseId) -> None:
        if (recorded := self._seconds.pop(case, None)) is not None:
            self._run.recorded_left.remove(recorded)
        if self._working_since is None:
            self._run.carried += 1
        elif recorded is not None:
            self._run.recorded_done.add(recorded)

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


def recorded_seconds(plan: RunPlan) -> dict[CaseId, float]:
    """The recorded durations of the cases of a plan, as far as known."""
    if not plan.seconds:
        return {}
    cases = (case for eval_set in plan.sets for case in eval_set.case_ids)
    return {case: plan.seconds[case] for case in cases if case in plan.seconds}
