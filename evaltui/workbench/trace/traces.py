"""The traces of cases: in memory while a case runs, in the log of its run afterwards.

The spans of a trace are rows, with folding and a search.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.core.trace.spans import SPAN_KINDS, Span, SpanTree
from evaltui.text.values import did_you_mean
from evaltui.workbench.messages import Messages, ResultsChanged
from evaltui.workbench.result.stored_results import StoredResult
from evaltui.workbench.state import CaseOutcome, RunRef

if TYPE_CHECKING:
    from evaltui.core.model.events import Event

# A case that loops may print without end.
MAX_EVENTS = 100_000
# Without a log, the events of this many cases are kept: they may be large.
_MAX_WITHOUT_LOG = 50

_ByRepeat = dict[int, list["Event"]]


@dataclass(frozen=True)
class Trace:
    """The events of one repeat of a case, in order."""

    run: RunRef
    repeat: int = 0
    """Which repeat, from 0."""
    repeats: int = 1
    """The number of repeats."""
    events: Sequence[Event] = ()
    left_out: int = 0
    """How many further events are not shown."""
    live: bool = False
    """Whether the case is still running."""
    problem: str = ""
    """Why there are no events, as a sentence."""
    chat: int = 0
    """A number that changes when the chat starts anew; 0 for the trace of a case."""


@dataclass
class _LiveCase:
    """A case that is running."""

    run: RunRef
    repeat: int = 0
    events: _ByRepeat = field(default_factory=dict)
    left_out: int = 0


class Traces:
    """The events of running cases, and of the finished case that was read last.

    `outcome` returns the outcome of a case with its place in a log.
    """

    def __init__(self, outcome: Callable[[CaseId], CaseOutcome | None], messages: Messages) -> None:
        self._outcome = outcome
        self._messages = messages
        self._live: dict[CaseId, _LiveCase] = {}
        # Of cases that are in no log.
        self._unlogged: dict[CaseId, tuple[RunRef, _ByRepeat]] = {}
        self._read: tuple[CaseId, StoredResult, _ByRepeat | str] | None = None
        self._reading: asyncio.Task[None] | None = None

    # While a run tells

    def started(self, case: CaseId, run: RunRef, repeat: int) -> None:
        """Notes that a repeat of a case starts, or starts again."""
        live = self._live.setdefault(case, _LiveCase(run))
        live.repeat = repeat
        live.events[repeat] = []

    def happened(self, case: CaseId, event: Event) -> None:
        live = self._live.get(case)
        if live is None:
            return
        if sum(map(len, live.events.values())) < MAX_EVENTS:
            live.events.setdefault(event.repeat, []).append(event)
        else:
            live.left_out += 1

    def done(self, case: CaseId, *, is_logged: bool) -> None:
        """Notes that a case has ended: from now on its log is read, if it has one."""
        live = self._live.pop(case, None)
        self._unlogged.pop(case, None)
        if live is not None and not is_logged:
            self._unlogged[case] = live.run, live.events
            if len(self._unlogged) > _MAX_WITHOUT_LOG:
                del self._unlogged[next(iter(self._unlogged))]

    def run_over(self) -> None:
        """Forgets the running cases, which were cancelled; the events of their last whole run stay."""
        self._live.clear()

    def move(self, moved: Mapping[CaseId, CaseId]) -> None:
        """Renames cases; the log still has the old ids."""
        events = {new: self._unlogged.pop(old, None) for old, new in moved.items()}
        for new in events:
            # That of a deleted case of the same id.
            self._unlogged.pop(new, None)
        self._unlogged |= {new: stored for new, stored in events.items() if stored}

    def keep_only(self, cases: set[CaseId]) -> None:
        """Forgets deleted cases."""
        for case in self._unlogged.keys() - cases:
            del self._unlogged[case]

    def all_live_events(self, case: CaseId) -> Iterator[Event]:
        """The events of all repeats of a running case so far; none where the case does not run."""
        live = self._live.get(case)
        return chain.from_iterable(live.events.values()) if live else iter(())

    # For those who look

    def live_events(self, case: CaseId) -> Sequence[Event]:
        """The events of the last started repeat so far; none where the case does not run."""
        live = self._live.get(case)
        return live.events[live.repeat] if live else ()

    def get(self, case: CaseId, repeat: int) -> Trace | None:
        """The trace of a repeat that has ended; None while it is being read.

        For a running case, the trace of the last started repeat so far.
        """
        if live := self._live.get(case):
            events = live.events[live.repeat]
            return Trace(live.run, live.repeat, len(live.events), events, live.left_out, live=True)
        scored = self._outcome(case)
        if scored is None or scored.logged is None:
            if stored := self._unlogged.get(case):
                run, repeats = stored
                return Trace(run, repeat, len(repeats), repeats.get(repeat, ()))
            return Trace(RunRef(), problem="No run log for this case")
        if self._read is None or self._read[0] != case or self._read[1] is not scored.logged:
            if scored.logged.file.is_short(scored.logged.number):
                # Who goes from case to case sees each of them drawn once.
                self._read = case, scored.logged, scored.logged.file.events(scored.logged.number)
            else:
                if self._reading is None:
                    self._reading = asyncio.create_task(self._read_log(case, scored.logged))
                return None
        events_by_repeat = self._read[2]
        if isinstance(events_by_repeat, str):
            return Trace(scored.run, repeat, problem=events_by_repeat)
        events = events_by_repeat.get(repeat, [])
        left_out = max(0, len(events) - MAX_EVENTS)
        return Trace(scored.run, repeat, len(events_by_repeat), events[:MAX_EVENTS], left_out)

    def events_of(self, case: CaseId) -> Mapping[int, Sequence[Event]] | None:
        """All events of an ended case, by repeat; None where it has no log."""
        scored = self._outcome(case)
        if scored is None or scored.logged is None:
            stored = self._unlogged.get(case)
            return stored and stored[1]
        if case in self._live:
            return None
        events = scored.logged.file.events(scored.logged.number)
        return None if isinstance(events, str) else events

    async def _read_log(self, case: CaseId, logged: StoredResult) -> None:
        try:
            self._read = case, logged, await asyncio.to_thread(logged.file.events, logged.number)
        finally:
            self._reading = None
        self._messages.publish(ResultsChanged())


# A row that keeps turns apart.
GAP = -1

_TERM = re.compile(r'(?P<not>-?)(?:(?P<field>kind|agent):)?(?:"(?P<quoted>[^"]*)(?:"|$)|(?P<word>\S+))')


def problem_of(search: str) -> str:
    """Why a search cannot be parsed, as a sentence; "" where it can."""
    return next(filter(None, map(_term_problem, _TERM.finditer(search))), "")


class Outline:
    """The visible rows of a trace.

    `rows` are the numbers of spans from top to bottom, with `GAP` before each turn but the first; spans that
    match a search follow the spans around them.
    """

    def __init__(self) -> None:

        self.tree = SpanTree()
        self.folded: set[int] = set()
        self.search = ""
        self._terms: list[re.Match[str]] = []
        self._rows: list[int] = []
        self._stale = False
        self._texts: dict[int, tuple[int, str]] = {}

    def add(self, events: Iterable[Event]) -> None:
        self.tree.add(events)
        self._stale = True

    @property
    def rows(self) -> list[int]:
        if self._stale:
            self._stale = False
            self._rows = self._all_rows()
        return self._rows

    def span(self, row: int) -> Span:
        """The span of a row; for a gap, the turn below it."""
        rows = self.rows
        return self.tree.spans[rows[row] if rows[row] != GAP else rows[row + 1]]

    def row_of(self, number: int) -> int | None:
        """The row of a span, after unfolding the spans around it. None where the search hides it."""
        if hiding := self.folded & set(self.tree.ancestors(number)):
            self.folded -= hiding
            self._stale = True
        rows = self.rows
        return rows.index(number) if number in rows else None

    def toggle(self, number: int) -> None:
        """Folds the spans inside a span, or unfolds them."""
        if self.tree.spans[number].children:
            self.folded ^= {number}
            self._stale = True

    def set_search(self, text: str) -> None:
        self.search = text
        self._terms = list(_TERM.finditer(text))
        self._stale = True

    def _all_rows(self) -> list[int]:
        """The numbers of the spans that are not folded; with a search the matching ones, folded or not."""
        matches = self._matching() if self._terms else None
        rows: list[int] = []
        stack = [turn.number for turn in reversed(self.tree.turns)]
        while stack:
            number = stack.pop()
            if matches is None or number in matches:
                rows += [GAP] if rows and self.tree.spans[number].parent is None else []
                rows.append(number)
                if matches is not None or number not in self.folded:
                    stack += reversed(self.tree.spans[number].children)
        return rows

    def _matching(self) -> set[int]:
        """The spans that match every term of the search, and the spans around them."""
        numbers: set[int] = set()
        for span in self.tree.spans:
            if all(self._has(span, term) != bool(term["not"]) for term in self._terms):
                numbers |= {span.number, *self.tree.ancestors(span.number)}
        return numbers

    def _has(self, span: Span, term: re.Match[str]) -> bool:
        text = (term["word"] or term["quoted"] or "").lower()
        match term["field"]:
            case "kind":
                return span.kind == text
            case "agent":
                return text in span.agent.lower()
        if term["word"] and text == "failed":
            return span.failed
        return text in self._text(span)

    def _text(self, span: Span) -> str:
        """All text of a span in lower case; cached until the span gets more events."""
        cached = self._texts.get(span.number)
        if cached is None or cached[0] != len(span.events):
            text = " ".join(f"{event.agent} {event.content} {event.data}" for event in span.events)
            cached = self._texts[span.number] = len(span.events), text.lower()
        return cached[1]


def _term_problem(term: re.Match[str]) -> str:

    word = term["word"] or term["quoted"] or ""
    if term["field"] != "kind" or word.lower() in SPAN_KINDS:
        return ""
    return f"unknown kind {word!r}; kinds are {', '.join(SPAN_KINDS)}{did_you_mean(word, SPAN_KINDS)}"
