"""The spans of a trace as the rows that are seen: what is folded away, what a search keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evaltui.core.model.events import Event
from evaltui.core.trace.spans import SPAN_KINDS, Span, SpanTree
from evaltui.text.wording import did_you_mean

_TERM = re.compile(r'(?P<not>-?)(?:(?P<field>kind|agent):)?(?:"(?P<quoted>[^"]*)(?:"|$)|(?P<word>\S+))')


def problem_of(search: str) -> str:
    """What of a search cannot be understood, as a sentence; "" where all of it can."""
    return next(filter(None, map(_misunderstood, _TERM.finditer(search))), "")


class Outline:
    """`rows` are the numbers of spans from top to bottom; those that a search keeps stand below what they
    ran in.
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
                    self._rows.append(span.number)
            else:
                self._stale = True

    @property
    def rows(self) -> list[int]:
        if self._stale:
            self._stale = False
            self._rows = self._searched() if self._terms else self._unfolded()
        return self._rows

    def span(self, row: int) -> Span:
        return self.tree.spans[self.rows[row]]

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

    def _unfolded(self) -> list[int]:
        rows: list[int] = []
        stack = [turn.number for turn in reversed(self.tree.turns)]
        while stack:
            number = stack.pop()
            rows.append(number)
            if number not in self.folded:
                stack += reversed(self.tree.spans[number].children)
        return rows

    def _searched(self) -> list[int]:
        kept: set[int] = set()
        for span in self.tree.spans:
            if self._matches(span):
                kept.add(span.number)
                kept.update(self.tree.ancestors(span.number))
        rows: list[int] = []
        stack = [turn.number for turn in reversed(self.tree.turns)]
        while stack:
            number = stack.pop()
            if number in kept:
                rows.append(number)
                stack += reversed(self.tree.spans[number].children)
        return rows

    def _matches(self, span: Span) -> bool:
        return all(self._has(span, term) != bool(term["not"]) for term in self._terms)

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
            said = " ".join(f"{event.agent} {event.content} {event.data}" for event in span.events).lower()
            known = self._texts[span.number] = len(span.events), said
        return known[1]


def _misunderstood(term: re.Match[str]) -> str:
    word = term["word"] or term["quoted"] or ""
    if term["field"] != "kind" or word.lower() in SPAN_KINDS:
        return ""
    return f"there is no kind {word!r}{did_you_mean(word, SPAN_KINDS)}; kinds are {', '.join(SPAN_KINDS)}"
