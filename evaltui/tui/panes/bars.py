"""The lines around the panes: header, titles, status and footer."""

from __future__ import annotations

import time
from collections.abc import Iterator

from textual import events
from textual.message import Message
from textual.widget import Widget

from evaltui.core.show import visible
from evaltui.reports.lines import Line, Span, cells, cut
from evaltui.tui.pages.outcome import counts, glyph
from evaltui.tui.pages.selected import page_title
from evaltui.tui.widgets.one_line import OneLine, both_ends, rule
from evaltui.workbench.actions import BY_ID, Action, hints
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


class PaneTitle(Bar):
    """The rule above a pane; heavy while the pane has the focus."""

    def __init__(self, workbench: Workbench, pane: Widget, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._pane = pane

    def line(self, width: int) -> Line:
        left, right = self.title()
        return rule(left, right, width, heavy=self._pane.has_focus)

    def title(self) -> tuple[Line, Line]:
        raise NotImplementedError


class CasesTitle(PaneTitle):
    def title(self) -> tuple[Line, Line]:
        total = sum(len(entry.cases) for entry in self._workbench.sets)
        return [("Cases", "bold")], [(str(total), "dim")] if total else []


class ResultTitle(PaneTitle):
    def title(self) -> tuple[Line, Line]:
        return page_title(self._workbench)


class Tabs(Bar):
    """Where only one pane fits: which one is shown, and what the other one holds."""

    showing_result = False

    class Chosen(Message):
        """The user clicked a tab."""

        def __init__(self, result: bool) -> None:
            super().__init__()
            self.result = result

    def line(self, width: int) -> Line:
        cases = self._tab("1 Cases", None, active=not self.showing_result)
        result = self._tab("2 Result", self._selected_status(), active=self.showing_result)
        title, right = page_title(self._workbench)
        shown = (
            [*title, *([("  ", ""), *right] if right else [])]
            if self.showing_result and self._workbench.selection.path
            else []
        )
        left = [*cases, ("─", "dim"), *result]
        room = width - cells(left) - 6
        ending: Line = [(" ", ""), *cut(shown, room), (" ", ""), ("──", "dim")] if shown and room > 8 else []
        return [*left, ("─" * max(0, width - cells(left) - cells(ending)), "dim"), *ending]

    def _tab(self, title: str, mark: Span | None, *, active: bool) -> Line:
        stroke: Span = ("━━", "accent") if active else ("──", "dim")
        label: Line = [(title, "bold" if active else "dim")]
        return [stroke, (" ", ""), *label, *([(" ", ""), mark] if mark else []), (" ", ""), stroke]

    def _selected_status(self) -> Span | None:
        case = self._workbench.selection.case
        return glyph(self._workbench.status(case)) if case else None

    def on_click(self, event: events.Click) -> None:
        first = cells(self._tab("1 Cases", None, active=True))
        self.post_message(self.Chosen(event.x > first))


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
        what = f"◐ {run.stage}"
    elif run.stage is Stage.CANCELLING:
        what = f"◐ cancelling, {len(run.done)} of {len(run.selected)} done"
    else:
        what = f"◐ running {min(len(run.done) + 1, len(run.selected))} of {len(run.selected)}"
    tally = counts(run.counts)
    middle: Line = [(" · ", "dim"), *tally] if tally else []
    return [(what, "accent"), *middle, (f" · {run.seconds:.1f} s", ""), ("   esc cancel", "dim")]


def _over(run: Run) -> Line:
    what = {
        Stage.FINISHED: f"run {run.number}: {run.title}",
        Stage.CANCELLED: f"run {run.number} cancelled after {len(run.done)} of {len(run.selected)}",
        Stage.FAILED: f"run {run.number} could not be done",
    }[run.stage]
    tally = counts(run.counts)
    middle: Line = [(" · ", "dim"), *tally] if tally else []
    return [(visible(what), "dim"), *middle, (f" · {run.seconds:.1f} s", "dim")]


def _remarks(run: Run) -> Iterator[Span]:
    for remark in run.remarks:
        yield " · ", "dim"
        yield visible(remark), "yellow"


class Footer(Bar):
    """The keys that are worth pressing now, as many as fit."""

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
        every = BY_ID["help"]
        room = width - cells(_hint(every))
        chosen: list[Action] = []
        for action in hints(self._workbench):
            if action is every:
                continue
            if cells(_hint(action)) > room:
                break
            room -= cells(_hint(action))
            chosen.append(action)
        return [(action, _hint(action)) for action in (*chosen, every)]

    def on_click(self, event: events.Click) -> None:
        left = 0
        for action, hint in self._fitting(self.size.width):
            left += cells(hint)
            if event.x < left:
                self.post_message(self.Pressed(action.id))
                return


def _hint(action: Action) -> Line:
    return [(" ", ""), (key_name(action.keys[0]), "bold"), (f" {action.title} ", "dim")]
