"""The lines around the panes: header, status and footer."""

from __future__ import annotations

import time
from collections.abc import Iterator

from textual import events
from textual.message import Message

from evaltui.core.show import visible
from evaltui.reports.lines import Line, Span, cells
from evaltui.tui.pages.outcome import counts
from evaltui.tui.widgets.one_line import OneLine, both_ends
from evaltui.workbench.actions import Action, Scope, hints, keys_of
from evaltui.workbench.keys import key_name
from evaltui.workbench.state import Run, Stage
from evaltui.workbench.workbench import Workbench

_NOTICE_SECONDS = 5.0


class Bar(OneLine):
    """A line about the workbench."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench


class Header(Bar):
    """The agent, and how many cases came out how."""

    def line(self, width: int) -> Line:
        agent = self._workbench.agent
        folder = self._workbench.agent_dir.resolve().stem
        left: Line = [(" ", ""), (visible(folder), "bold")]
        if agent is not None:
            known = [str(agent.get(key) or "") for key in ("name", "framework", "model")]
            left += [(f" · {visible(part)}", "dim") for part in known if part and part != folder]
        if self._workbench.agent_error is not None:
            left.append(("  ! cannot be imported", "red"))
        return both_ends(left, [*counts(self._workbench.results.counts()), (" ", "")], width)


class Status(Bar):
    """A notice while it is fresh, how far a run is, or how the last one ended."""

    def line(self, width: int) -> Line:
        notice, run = self._workbench.notice, self._workbench.run
        if notice is not None and time.monotonic() - notice.at < _NOTICE_SECONDS:
            return [(" ", ""), ("▸ ", "accent"), (visible(notice.text), "")]
        if run is None:
            return []
        shown = [*_over(run), *_remarks(run)] if run.over else _progress(run)
        return [(" ", ""), *shown]


def _progress(run: Run) -> Line:
    if run.stage in (Stage.READING, Stage.STARTING):
        return [(f"◐ {run.stage}", "accent"), (f" · {visible(run.title)} · {show_seconds(run.seconds)}", "")]
    done, left = len(run.done), len(run.selected) - len(run.done)
    what = "cancelling" if run.stage is Stage.CANCELLING else f"running {visible(run.title)}"
    tally = counts(run.counts)
    middle: Line = [(" · ", "dim"), *tally] if tally else []
    remaining = run.seconds_left
    time_left = f", about {show_seconds(remaining)} to go" if remaining is not None else ""
    return [
        (f"◐ {what}", "accent"),
        (f" · {done} of {done + left} done, {left} left", ""),
        *middle,
        (f" · {show_seconds(run.seconds)}{time_left}", ""),
    ]


def _over(run: Run) -> Line:
    what = {
        Stage.FINISHED: f"run {run.number}: {run.title}",
        Stage.CANCELLED: f"run {run.number} cancelled after {len(run.done)} of {len(run.selected)}",
        Stage.FAILED: f"run {run.number} could not be done",
    }[run.stage]
    tally = counts(run.counts)
    middle: Line = [(" · ", "dim"), *tally] if tally else []
    return [(visible(what), "dim"), *middle, (f" · {show_seconds(run.seconds)}", "dim")]


def _remarks(run: Run) -> Iterator[Span]:
    for remark in run.remarks:
        yield " · ", "dim"
        yield visible(remark), "yellow"


class Footer(Bar):
    """The keys that are worth pressing where the focus is, as many as fit."""

    scope = Scope.CASES

    class Pressed(Message):
        """The user clicked a hint."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def line(self, width: int) -> Line:
        line: Line = []
        for _, hint in self._fitting(width):
            line += hint
        return line

    def _fitting(self, width: int) -> list[tuple[Action, Line]]:
        """The first hints that fit, the last one always `?`: from there every key is found."""
        shown = [(action, self._hint(action)) for action in hints(self._workbench, self.scope)]
        last = [(action, hint) for action, hint in shown if action.id == "help"]
        room = width - sum(cells(hint) for _, hint in last)
        fitting: list[tuple[Action, Line]] = []
        for action, hint in shown:
            if action.id != "help" and cells(hint) <= room:
                room -= cells(hint)
                fitting.append((action, hint))
        return [*fitting, *last]

    def _hint(self, action: Action) -> Line:
        key = key_name(keys_of(action, self._workbench)[0])
        return [(" ", ""), (key, "bold"), (f" {action.footer_word(self._workbench)} ", "dim")]

    def on_click(self, event: events.Click) -> None:
        left = 0
        for action, hint in self._fitting(self.size.width):
            left += cells(hint)
            if event.x < left:
                self.post_message(self.Pressed(action.id))
                return


def show_seconds(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3 min 05 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"
