"""The lines around the panes: header, status and footer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual import events

from evaltui.text.lines import Line, Span, cells
from evaltui.text.outcomes import counts
from evaltui.text.values import visible
from evaltui.tui.widgets.one_line import OneLine, both_ends
from evaltui.workbench.actions import BY_ID, Action, Scope, hints, keys_of
from evaltui.workbench.keymap import key_name
from evaltui.workbench.state import Notice, Run, Stage
from evaltui.workbench.watch.reaction import Reaction, ReactionStep, calls_in_words, in_a_line, in_short
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.core.model.outcome import ErrorInfo

_NOTICE_SECONDS = 5.0
_TICK = 0.1


class Bar(OneLine):
    """A line about the workbench."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        # Once the current folder is gone, `.` has no name any more.
        self._agent_name = workbench.agent.dir.resolve().stem


class Header(Bar):
    """The agent, and how many cases came out how."""

    def line(self, width: int) -> Line:
        agent = self._workbench.agent.info
        folder = self._agent_name
        left: Line = [(" ", ""), (visible(folder), "bold")]
        if agent is not None:
            known = [str(agent.get(key) or "") for key in ("name", "framework", "model")]
            left += [(f" · {visible(part)}", "dim") for part in known if part and part != folder]
        if self._workbench.agent.error is not None:
            left.append(("  ! cannot be imported", "red"))
        outcomes = counts(self._workbench.outcomes.results.counts())
        watch: Line = [("watch ●", "accent"), ("   ", "")] if self._workbench.watch.on else []
        return both_ends(left, [*watch, *outcomes, (" ", "")], width)


class Status(Bar):
    """A notice while it is fresh, how far a run is, or how the last one ended."""

    def on_mount(self) -> None:
        self._clock = self.set_interval(_TICK, self._tick, pause=True)
        self._workbench.subscribe(self.follow)
        self.follow()

    def on_unmount(self) -> None:
        self._workbench.unsubscribe(self.follow)

    def follow(self) -> None:
        """Draws the state of now, and from then on the time that passes."""
        self.refresh()
        self._clock.resume()

    def _tick(self) -> None:
        self.refresh()
        if not self._workbench.runs.is_running and self._fresh_notice is None:
            self._clock.pause()

    @property
    def _fresh_notice(self) -> Notice | None:
        notice = self._workbench.notice
        return notice if notice is not None and time.monotonic() - notice.at < _NOTICE_SECONDS else None

    def line(self, width: int) -> Line:
        notice, run = self._fresh_notice, self._workbench.runs.current
        reaction = self._workbench.watch.last
        if notice is not None:
            return [(" ", ""), ("▸ ", "accent"), (visible(notice.text), "")]
        past = self._workbench.outcomes.previous_run
        if past is not None:
            back = key_name(keys_of(BY_ID["cancel"], self._workbench)[0])
            shown = [("shows the ", ""), (visible(past.title), "accent")]
            return [(" ", ""), *shown, (f" · {back} goes back to the last results", "dim")]
        is_over = run is None or run.over
        if reaction is not None and reaction.run is None and is_over and (not run or reaction.at > run.at):
            shown = _followed(reaction, self._workbench.agent.error)
            return [(" ", ""), *shown, *(self._waiting() if reaction.step is ReactionStep.DONE else [])]
        if run is None:
            return []
        of_save = reaction if reaction is not None and reaction.run == run.number else None
        if run.over:
            said = [*_after_save(of_save), *self._unready(run), *_remarks(run)]
            return [(" ", ""), *_over(run), *said, *self._waiting()]
        return [(" ", ""), *_progress(run), *_because_of_save(of_save), *self._unready(run)]

    def _unready(self, run: Run) -> Line:
        """Which metrics do not run as they should."""
        if not run.unready:
            return []
        key = key_name(keys_of(BY_ID["preflight"], self._workbench)[0])
        return [(" · ", "dim"), (visible(run.unready), "yellow"), (f": {key} says why", "dim")]

    def _waiting(self) -> Line:
        """What is still to be run after a change, and what that costs."""
        waiting = self._workbench.watch.waiting()
        if not waiting.keys:
            return []
        return [(f" · {len(waiting.keys)} old ({calls_in_words(waiting.calls)})", "dim")]


def _followed(reaction: Reaction, error: ErrorInfo | None) -> Line:
    """What follows from a save that leads to no run, or not yet."""
    what = f"{visible(in_short(reaction.changed))} changed"
    if reaction.step in (ReactionStep.IMPORTING, ReactionStep.SCORING):
        return [(f"◐ {what}", "accent"), (f": {reaction.step}", "")]
    if reaction.step is ReactionStep.BROKEN and error is not None:
        return [(f"! {visible(in_a_line(error))}", "red"), (" · the results are from before", "dim")]
    if reaction.rescored:
        many = "1 case" if reaction.rescored == 1 else f"{reaction.rescored} cases"
        done = f": {many} scored again, without the agent"
    else:
        done = ": nothing to run"
    return [(f"{what}{done}", "dim"), *_after_save(reaction)]


def _because_of_save(reaction: Reaction | None) -> Line:
    return [] if reaction is None else [(f" · {calls_in_words(reaction.calls)}", "dim")]


def _after_save(reaction: Reaction | None) -> Line:
    if reaction is None or reaction.seconds is None:
        return []
    return [(f" · verdict {show_seconds(reaction.seconds)} after the save", "dim")]


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

    async def on_click(self, event: events.Click) -> None:
        """Runs the action of a hint."""
        left = 0
        for action, hint in self._fitting(self.size.width):
            left += cells(hint)
            if event.x < left:
                await self.screen.run_action(action.id)
                return


def show_seconds(seconds: float) -> str:
    """`0.4 s`, `42 s`, `3 min 05 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"
