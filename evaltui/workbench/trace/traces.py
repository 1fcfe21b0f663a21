"""What happened in each case: in memory while it runs, in the log of its run afterwards.

The spans of a trace are rows: what is folded away, what a search keeps.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.core.trace.spans import SPAN_KINDS, SpanTree
from evaltui.text.values import did_you_mean
from evaltui.workbench.messages import Messages, ResultsChanged
from evaltui.workbench.result.stored_results import StoredResult
from evaltui.workbench.state import CaseOutcome, RunRef

if TYPE_CHECKING:
    from evaltui.core.model.events import Event
    from evaltui.core.trace.spans import Span

# A case that loops may print without end.
MOST_EVENTS = 100_000
# Without a log, the events of this many cases are kept: they may be large.
_KEPT_WITHOUT_LOG = 50

_ByRepeat = dict[int, list["Event"]]


@dataclass(frozen=True)
class Trace:
    """The events of one repeat of a case, in order."""

    run: RunRef
    repeat: int = 0
    """Which repeat, from 0."""
    repeats: int = 1
    """How many there are."""
    events: Sequence[Event] = ()
    left_out: int = 0
    """How many further events are not shown."""
    live: bool = False
    """Whether the case is still running."""
    problem: str = ""
    """Why there are no events, as a sentence."""
    chat: int = 0
    """Of the chat: another number where it begins anew; 0 for the trace of a case."""


@dataclass
class _Live:
    """A case that is running."""

    run: RunRef
    repeat: int = 0
    events: _ByRepeat = field(default_factory=dict)
    left_out: int = 0


class Traces:
    """Of finished cases only what was read last is kept. `outcome` gives what came of a case and where in a
    log it is."""

    def __init__(self, outcome: Callable[[CaseId], CaseOutcome | None], messages: Messages) -> None:
        self._outcome = outcome
        self._messages = messages
        self._live: dict[CaseId, _Live] = {}
        # Of cases that are in no log.
        self._kept: dict[CaseId, tuple[RunRef, _ByRepeat]] = {}
        self._read: tuple[CaseId, StoredResult, _ByRepeat | str] | None = None
        self._reading: asyncio.Task[None] | None = None

    # While a run tells

    def started(self, case: CaseId, run: RunRef, repeat: int) -> None:
        """A repeat of a case begins, or begins again."""
        live = self._live.setdefault(case, _Live(run))
        live.repeat = repeat
        live.events[repeat] = []

    def happened(self, case: CaseId, event: Event) -> None:
        live = self._live.get(case)
        if live is None:
            return
        if sum(map(len, live.events.values())) < MOST_EVENTS:
            live.events.setdefault(event.repeat, []).append(event)
        else:
            live.left_out += 1

    def done(self, case: CaseId, *, is_logged: bool) -> None:
        """Nothing more will happen in the case: from now on its log is read where there is one."""
        live = self._live.pop(case, None)
        self._kept.pop(case, None)
        if live is not None and not is_logged:
            self._kept[case] = live.run, live.events
            if len(self._kept) > _KEPT_WITHOUT_LOG:
                del self._kept[next(iter(self._kept))]

    def keep(self, case: CaseId, run: RunRef, events: Mapping[int, Sequence[Event]]) -> None:
        """What is known to have happened in a case, by repeat."""
        self._kept[case] = run, {repeat: list(some) for repeat, some in events.items()}

    def run_over(self) -> None:
        """What still ran was cancelled: what is known of its last whole run stays."""
        self._live.clear()

    def move(self, moved: Mapping[CaseId, CaseId]) -> None:
        """Cases are called otherwise now; the log has them under the old ones."""
        self._kept.update({new: self._kept.pop(old) for old, new in moved.items() if old in self._kept})

    def keep_only(self, cases: set[CaseId]) -> None:
        """Forget cases that do not exist any more."""
        for case in self._kept.keys() - cases:
            del self._kept[case]

    def all_live_events(self, case: CaseId) -> Iterator[Event]:
        """What every repeat of a case has done so far; nothing where the case does not run."""
        live = self._live.get(case)
        return chain.from_iterable(live.events.values()) if live else iter(())

    # For those who look

    def live_events(self, case: CaseId) -> Sequence[Event]:
        """What the repeat that began last has done so far; nothing where the case does not run."""
        live = self._live.get(case)
        return live.events[live.repeat] if live else ()

    def get(self, case: CaseId, repeat: int) -> Trace | None:
        """The trace of a repeat that is over; None while it is being read.

        Of a case that runs, it is what the repeat that began last has done so far.
        """
        if live := self._live.get(case):
            events = live.events[live.repeat]
            return Trace(live.run, live.repeat, len(live.events), events, live.left_out, live=True)
        if kept := self._kept.get(case):
            run, repeats = kept
            return Trace(run, repeat, len(repeats), repeats.get(repeat, ()))
        scored = self._outcome(case)
        if scored is None or scored.logged is None:
            return Trace(RunRef(), problem="No run log for this case")
        if self._read is None or self._read[0] != case or self._read[1] is not scored.logged:
            if scored.logged.file.is_short(scored.logged.number):
                # Who goes from case to case sees each of them drawn once.
                self._read = case, scored.logged, scored.logged.file.events(scored.logged.number)
            else:
                if self._reading is None:
                    self._reading = asyncio.create_task(self._read_log(case, scored.logged))
                return None
        found = self._read[2]
        if isinstance(found, str):
            return Trace(scored.run, repeat, problem=found)
        events = found.get(repeat, [])
        left_out = max(0, len(events) - MOST_EVENTS)
        return Trace(scored.run, repeat, len(found), events[:MOST_EVENTS], left_out)

    def events_of(self, case: CaseId) -> Mapping[int, Sequence[Event]] | None:
        """Every event of a case that is over, by repeat; None where there is no log of it."""
        if kept := self._kept.get(case):
            return kept[1]
        scored = self._outcome(case)
        if scored is None or scored.logged is None or case in self._live:
            return None
        found = scored.logged.file.events(scored.logged.number)
        return None if isinstance(found, str) else found

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
    """What of a search cannot be understood, as a sentence; "" where all of it can."""
    return next(filter(None, map(_misunderstood, _TERM.finditer(search))), "")


class Outline:
    """`rows` are the numbers of spans from top to bottom, `GAP` before each turn but the first; those that a
    search keeps stand below what they ran in.
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
        known = len(self.tree.spans)
        self.tree.add(events)
        if self._terms:
            self._stale = True
        for span in self.tree.spans[known:]:
            if self._stale:
                return
            if self._is_last(span):
                if not any(number in self.folded for number in self.tree.ancestors(span.number)):
                    self._rows += [GAP] if span.parent is None and self._rows else []
                    self._rows.append(span.number)
            else:
                self._stale = True

    @property
    def rows(self) -> list[int]:
        if self._stale:
            self._stale = False
            self._rows = self._all_rows()
        return self._rows

    def span(self, row: int) -> Span:
        """The span of a row; the turn below a gap."""
        rows = self.rows
        return self.tree.spans[rows[row] if rows[row] != GAP else rows[row + 1]]

    def row_of(self, number: int) -> int | None:
        """The row of a span; unfolds what hides it. None where the search leaves it out."""
        if hiding := self.folded & set(self.tree.ancestors(number)):
            self.folded -= hiding
            self._stale = True
        rows = self.rows
        return rows.index(number) if number in rows else None

    def toggle(self, number: int) -> None:
        """Fold what ran in a span away, or show it again."""
        if self.tree.spans[number].children:
            self.folded ^= {number}
            self._stale = True

    def set_search(self, text: str) -> None:
        self.search = text
        self._terms = list(_TERM.finditer(text))
        self._stale = True

    def _is_last(self, span: Span) -> bool:
        """Whether it comes below everything that there is."""
        spans = self.tree.spans
        while span.parent is not None:
            parent = spans[span.parent]
            if parent.children[-1] != span.number:
                return False
            span = parent
        return span.number == self.tree.turns[-1].number

    def _all_rows(self) -> list[int]:
        """The spans that are not folded away; with a search those that it keeps, folded or not."""
        kept = self._found() if self._terms else None
        rows: list[int] = []
        stack = [turn.number for turn in reversed(self.tree.turns)]
        while stack:
            number = stack.pop()
            if kept is None or number in kept:
                rows += [GAP] if rows and self.tree.spans[number].parent is None else []
                rows.append(number)
                if kept is not None or number not in self.folded:
                    stack += reversed(self.tree.spans[number].children)
        return rows

    def _found(self) -> set[int]:
        """The spans that every term of the search holds for, and what they ran in."""
        kept: set[int] = set()
        for span in self.tree.spans:
            if all(self._has(span, term) != bool(term["not"]) for term in self._terms):
                kept |= {span.number, *self.tree.ancestors(span.number)}
        return kept

    def _has(self, span: Span, term: re.Match[str]) -> bool:
        wanted = (term["word"] or term["quoted"] or "").lower()
        match term["field"]:
            case "kind":
                return span.kind == wanted
            case "agent":
                return wanted in span.agent.lower()
        if term["word"] and wanted == "failed":
            return span.failed
        return wanted in self._text(span)

    def _text(self, span: Span) -> str:
        """All that was said in it, in lower case; made once for as many events as it has."""
        known = self._texts.get(span.number)
        if known is None or known[0] != len(span.events):
            text = " ".join(f"{event.agent} {event.content} {event.data}" for event in span.events)
            known = self._texts[span.number] = len(span.events), text.lower()
        return known[1]


def _misunderstood(term: re.Match[str]) -> str:

    word = term["word"] or term["quoted"] or ""
    if term["field"] != "kind" or word.lower() in SPAN_KINDS:
        return ""
    return f"unknown kind {word!r}; kinds are {', '.join(SPAN_KINDS)}{did_you_mean(word, SPAN_KINDS)}"
