"""The progress of a run as a line on standard error."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

from evaltui.core.model.limits import CallRate
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import Cost, RunningTotal
from evaltui.runner.plan import AtWork, CaseDone, CaseStarted, Happened, RepeatDone, Scaled, Update
from evaltui.text.figures import show_duration, show_elapsed, show_number
from evaltui.text.lines import cells

# Finished cases from which on their pace says how long the rest takes.
_ENOUGH = 3


@dataclass
class RunProgress:
    """The progress of a run."""

    cases: int
    """The number of cases."""
    title: str = ""
    """The variant of a matrix; "" for other runs."""
    done: Counter[Status] = field(default_factory=Counter)
    carried: int = 0
    """The number of done cases that an earlier run had finished."""
    current: str = ""
    """The id of the case that was started last."""
    cost: Cost | None = None
    """The cost so far; None where it is unknown."""
    rate: CallRate | None = None
    """The call rate at the nearest limit; None without a limit on calls per minute."""
    scale: Scaled | None = None
    """The workers of a distributed run; None for a run on this machine."""
    seconds: float = 0.0
    """Seconds since the start of the run."""
    working: float = 0.0
    """Seconds since the start of its first case."""

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the pace of the finished cases; None before there are three of them, and at the
        end."""
        finished = self.done.total() - self.carried
        left = self.cases - self.done.total()
        return self.working / finished * left if finished >= _ENOUGH and left > 0 else None


def progress_line(run: RunProgress, columns: int) -> str:
    """`12/120, 2 failed · 0:07, about 9 s left · $0.011 · calls/min 48 of 60 · case_13`: as much as fits."""
    line, *facts = (fact for fact in _facts(run) if fact)
    short = {run.scale.in_words: run.scale.in_short} if run.scale is not None else {}
    for fact in facts:
        room = columns - cells([(f"{line} · ", "")])
        fits = next((text for text in (fact, short.get(fact, fact)) if cells([(text, "")]) <= room), None)
        if fits is None:
            break
        line = f"{line} · {fits}"
    return line[:columns]


def _facts(run: RunProgress) -> Iterator[str]:
    counts = [
        f"{run.done[status]} {status.lower()}" for status in (Status.FAILED, Status.ERROR) if run.done[status]
    ]
    yield run.title
    yield ", ".join([f"{run.done.total()}/{run.cases}", *counts])
    left = run.seconds_left
    rest = "" if left is None else f", about {show_duration(max(1, round(left)))} left"
    yield show_elapsed(run.seconds) + rest
    # Where nothing of it is known, it is not 0.
    yield run.cost.short if run.cost is not None and run.cost.usd is not None else ""
    if run.rate is not None:
        yield f"calls/min {show_number(run.rate.made)} of {show_number(run.rate.limit)}"
    if run.scale is not None:
        yield run.scale.in_words
    else:
        yield run.current.encode("ascii", "replace").decode()


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
