"""The lines around the panes: header, headings, status and footer; and what a small terminal shows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.strip import Strip

from evaltui.text.glyphs import BAR
from evaltui.text.lines import Line, both_ends, cells, wrap
from evaltui.text.outcomes import counts
from evaltui.text.values import show_seconds, visible
from evaltui.tui.pane import Tab, fitting, tab_parts
from evaltui.tui.widgets.lines import ActionLine, LineView, OneLine, paint
from evaltui.workbench.actions import BY_ID, Action, Scope, hints, keys_of
from evaltui.workbench.keymap import key_name
from evaltui.workbench.saves import Reaction, ReactionStep, calls_in_words, in_a_line, in_short
from evaltui.workbench.state import Notice, Run, Stage
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
            left += [(f" · {visible(part)}", "muted") for part in known if part and part != folder]
        if self._workbench.agent.error is not None:
            left.append(("  ! cannot be imported", "error"))
        outcomes = counts(self._workbench.outcomes.results.counts())
        watch: Line = [("watch ●", "bold accent"), ("   ", "")] if self._workbench.watch.on else []
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
            return [(" ", ""), ("▸ ", "bold accent"), (visible(notice.text), "")]
        past = self._workbench.outcomes.previous_run
        if past is not None:
            back = key_name(keys_of(BY_ID["step_back"], self._workbench)[0])
            shown = [("shows the ", ""), (visible(past.title), "bold accent")]
            return [(" ", ""), *shown, (f" · {back} goes back to the last results", "muted")]
        is_over = run is None or run.over
        if reaction is not None and reaction.run is None and is_over and (not run or reaction.at > run.at):
            shown = _followed(reaction, self._workbench.agent.error)
            return [(" ", ""), *shown, *(self._waiting() if reaction.step is ReactionStep.DONE else [])]
        if run is None:
            return []
        of_save = reaction if reaction is not None and reaction.run == run.number else None
        if run.over:
            remarks = (span for one in run.remarks for span in ((" · ", "muted"), (visible(one), "warning")))
            after = [*_after_save(of_save), *self._unready(run), *remarks]
            return [(" ", ""), *_over(run), *after, *self._waiting()]
        calls = f" · {calls_in_words(of_save.calls)}" if of_save else ""
        return [(" ", ""), *_progress(run), (calls, "muted"), *self._unready(run)]

    def _unready(self, run: Run) -> Line:
        """Which metrics do not run as they should."""
        if not run.unready:
            return []
        key = key_name(keys_of(BY_ID["preflight"], self._workbench)[0])
        return [(" · ", "muted"), (visible(run.unready), "warning"), (f": {key} says why", "muted")]

    def _waiting(self) -> Line:
        """What is still to be run after a change, and what that costs."""
        waiting = self._workbench.watch.waiting()
        if not waiting.cases:
            return []
        return [(f" · {len(waiting.cases)} old ({calls_in_words(waiting.calls)})", "muted")]


def _followed(reaction: Reaction, error: ErrorInfo | None) -> Line:
    """What follows from a save that leads to no run, or not yet."""
    what = f"{visible(in_short(reaction.changed))} changed"
    if reaction.step in (ReactionStep.IMPORTING, ReactionStep.SCORING):
        return [(f"◐ {what}", "bold accent"), (f": {reaction.step}", "")]
    if reaction.step is ReactionStep.BROKEN and error is not None:
        return [(f"! {visible(in_a_line(error))}", "error"), (" · the results are from before", "muted")]
    if reaction.rescored:
        many = "1 case" if reaction.rescored == 1 else f"{reaction.rescored} cases"
        done = f": {many} scored again, without the agent"
    else:
        done = ": nothing to run"
    return [(f"{what}{done}", "muted"), *_after_save(reaction)]


def _after_save(reaction: Reaction | None) -> Line:
    if reaction is None or reaction.seconds is None:
        return []
    return [(f" · verdict {show_seconds(reaction.seconds)} after the save", "muted")]


def _tally(run: Run) -> Line:
    tally = counts(run.counts)
    return [(" · ", "muted"), *tally] if tally else []


def _progress(run: Run) -> Line:
    if run.stage in (Stage.READING, Stage.STARTING):
        return [
            (f"◐ {run.stage}", "bold accent"),
            (f" · {visible(run.title)} · {show_seconds(run.seconds)}", ""),
        ]
    done, left = len(run.done), len(run.selected) - len(run.done)
    what = "cancelling" if run.stage is Stage.CANCELLING else f"running {visible(run.title)}"
    remaining = run.seconds_left
    time_left = f", about {show_seconds(remaining)} to go" if remaining is not None else ""
    return [
        (f"◐ {what}", "bold accent"),
        (f" · {done} of {done + left} done, {left} left", ""),
        *_tally(run),
        (f" · {show_seconds(run.seconds)}{time_left}", ""),
    ]


def _over(run: Run) -> Line:
    what = {
        Stage.FINISHED: f"run {run.number}: {run.title}",
        Stage.CANCELLED: f"run {run.number} cancelled after {len(run.done)} of {len(run.selected)}",
        Stage.FAILED: f"run {run.number} could not be done",
    }[run.stage]
    return [(visible(what), "muted"), *_tally(run), (f" · {show_seconds(run.seconds)}", "muted")]


class Footer(Bar, ActionLine):
    """The keys that are worth pressing where the focus is, as many as fit."""

    scope = Scope.CASES
    """Where the focus is."""

    def parts(self, width: int) -> Iterator[tuple[str, Line]]:
        """The first hints that fit, the last one always `?`: from there every key is found."""
        shown = {action.id: self._hint(action) for action in hints(self._workbench, self.scope)}
        last = shown.pop("help", [])
        room = width - cells(last)
        for action_id, hint in shown.items():
            if cells(hint) <= room:
                room -= cells(hint)
                yield action_id, hint
        if last:
            yield "help", last

    def _hint(self, action: Action) -> Line:
        key = key_name(keys_of(action, self._workbench)[0])
        return [(" ", ""), (key, "bold"), (f" {action.footer_word(self._workbench)} ", "muted")]


class TabRow(ActionLine):
    """The tabs of a screen that shows one pane, where one is in it at the right, and a rule below."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._tabs: Sequence[Tab] = ()
        self._where: Line = []

    def show(self, tabs: Sequence[Tab], where: Line) -> None:
        self._tabs = tabs
        self._where = where
        self.refresh()

    def parts(self, width: int) -> Iterator[tuple[str, Line]]:
        yield from tab_parts(self._tabs, width, focused=True, between="")

    def line(self, width: int) -> Line:
        tabs = super().line(width)
        where = fitting(self._where, width - cells(tabs) - 2)
        return both_ends(tabs, [*where, (" ", "")] if where else [], width)

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return super().render_line(y)
        return paint(self, [(BAR * self.size.width, "accent")], self.size.width)


MIN_WIDTH, MIN_HEIGHT = 60, 16


def is_too_small(size: Size) -> bool:
    return size.width < MIN_WIDTH or size.height < MIN_HEIGHT


class TooSmall(LineView, can_focus=False, inherit_bindings=False):
    """Covers the screen, which stays as it is below."""

    def on_resize(self) -> None:
        size = self.app.size
        sentence = (
            f"evaltui needs {MIN_WIDTH} columns and {MIN_HEIGHT} rows; this terminal has "
            f"{size.width} and {size.height}. Nothing is lost: make it larger."
        )
        self._lines = wrap([(sentence, "")], max(1, size.width))
        self.lines_changed(len(self._lines))

    def line(self, number: int) -> Line:
        return self._lines[number]
