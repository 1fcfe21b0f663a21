"""A case before its result: what is expected of it, and while it runs what the agent does beside that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from evaltui.core.compare.diff import align_calls, calls_of
from evaltui.core.model.eval_set import EvalCase, scored_text, user_text
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import Call, CallDiff
from evaltui.text.figures import UNKNOWN, show_duration
from evaltui.text.lines import Line, wrap
from evaltui.text.outcomes import GLYPHS, NOT_RUN, RUNNING, glyph
from evaltui.text.plots import bar
from evaltui.text.values import visible, visible_block
from evaltui.tui.pages.calls import BESIDE, Row, argument_lines, column_width, write_row
from evaltui.tui.pages.running import (
    Figure,
    InFlight,
    calls_in,
    elapsed,
    turn_in_words,
    turn_of,
    waiting,
    write_figures,
    write_in_flight,
)
from evaltui.tui.pages.turns import write_heads
from evaltui.tui.pages.verdict import chip
from evaltui.tui.pages.writer import Page
from evaltui.workbench.state import CaseOutcome, Run

# What the trace shows in full.
_MOST_CALLS = 200
_LONGEST_TEXT = 4_000
_CURSOR = "▋"


@dataclass(frozen=True)
class LiveCase:
    """The selected case while it runs."""

    case: EvalCase
    events: Sequence[Event]
    run: Run
    timeout: float
    """Seconds."""
    place: str
    previous: CaseOutcome | None
    in_flight: Sequence[InFlight]


def write_live(page: Page, live: LiveCase) -> None:
    turn = turn_of(live.events)
    count = len(live.case.conversation or ())
    head: Line = [chip(RUNNING), ("  ", ""), (turn_in_words(turn, count), "bold"), ("  ", "")]
    previous: Line = []
    if live.previous is not None:
        previous = [("previous result: ", "muted"), glyph(live.previous.result.status)]
        previous.append((f" {live.previous.run.name}", "muted"))
    page.ends([*head, *waiting(live.events, live.run.seconds)], previous)
    page.blank()
    write_figures(page, _figures(live, turn, count, page.width))
    made = _by_turn(live.events)
    for number in range(max(count, turn + 1)):
        _write_turn(page, live, number, made.get(number, ()), is_current=number == turn)
    write_in_flight(page, live.run, live.in_flight)


def write_expected(page: Page, case: EvalCase) -> None:
    """What a case that has no result expects, turn by turn."""
    for number, turn in enumerate(case.conversation or ()):
        page.blank()
        page.turns[number] = len(page.lines)
        page.row(
            ("  ", ""), (f"Turn {number + 1} ", "bold"), glyph(NOT_RUN), (f"  {_said(case, number)}", "muted")
        )
        for call in calls_of(turn.intermediate_data)[:_MOST_CALLS]:
            _write_both(page, "", call, None)
        text = scored_text(turn, thoughts=False)
        _write_response(page, text or "", None)


def _by_turn(events: Sequence[Event]) -> Mapping[int, list[Event]]:
    turns: dict[int, list[Event]] = {}
    for event in events:
        if event.turn is not None:
            turns.setdefault(event.turn, []).append(event)
    return turns


def _figures(live: LiveCase, turn: int, count: int, width: int) -> list[Figure]:
    seconds = elapsed(live.events, live.run)
    tokens = sum(int((event.usage or {}).get("total_token_count") or 0) for event in live.events)
    room = width // 4 - 14
    return [
        Figure(
            "elapsed",
            show_duration(seconds),
            f"timeout {show_duration(live.timeout)}",
            bar(seconds / live.timeout, room, "accent"),
        ),
        Figure(
            "turns",
            f"{turn}/{count}" if count else str(turn),
            "",
            bar(turn / count, room, "accent") if count else [],
        ),
        Figure("tokens", f"{tokens:,}" if tokens else UNKNOWN),
        Figure("cost", UNKNOWN),
    ]


def _write_turn(
    page: Page, live: LiveCase, number: int, events: Sequence[Event], *, is_current: bool
) -> None:
    page.blank()
    page.turns[number] = len(page.lines)
    turns = live.case.conversation or ()
    expected = calls_of(turns[number].intermediate_data) if number < len(turns) else ()
    made = calls_in(events)
    said = _said(live.case, number) or next(_texts(events, "user"), "")
    status = RUNNING if is_current else NOT_RUN if not events else ""
    mark = glyph(status) if status else (GLYPHS["INFORMATIONAL"], "muted")
    head: Line = [("  ", ""), (f"Turn {number + 1} ", "bold"), mark]
    facts = "queued" if not events else f"{len(made)}/{len(expected)} calls{' so far' if is_current else ''}"
    page.ends([*head, (f"  {said}", "" if is_current else "muted")], [(facts, "muted")])
    if not events:
        return
    if is_current:
        write_heads(page, ("expected", live.place), ("actual", f"run {live.run.number}, live"))
    for diff in align_calls(expected, made)[:_MOST_CALLS]:
        _write_call(page, diff, is_current=is_current)
    text = scored_text(turns[number], thoughts=False) if number < len(turns) else None
    streamed = "".join(_texts(events, "text"))
    _write_response(page, text or "", streamed + (_CURSOR if is_current and streamed else ""))


def _write_call(page: Page, diff: CallDiff, *, is_current: bool) -> None:
    """What is not made yet in the current turn may still come."""
    op = "" if is_current and diff.op == "missing" else diff.op
    _write_both(page, op, diff.expected if diff.op != "moved" else None, diff.actual)


def _write_both(page: Page, op: str, expected: Call | None, actual: Call | None) -> None:
    """A call on both sides; below each other the actual one is enough."""
    if page.width < BESIDE and actual is not None:
        expected = None
    left, right = (
        [[(visible(call.name), "bold")], *argument_lines(call.args)] if call else []
        for call in (expected, actual)
    )
    rows: Iterator[tuple[Line | None, Line | None]] = zip_longest(left, right)
    for number, (one, other) in enumerate(rows):
        write_row(page, Row(op if number == 0 else "", one, other))


def _write_response(page: Page, expected: str, actual: str | None) -> None:
    beside = page.width >= BESIDE
    room = column_width(page) if beside else page.width - 4
    sides = [
        wrap([(visible_block(text[-_LONGEST_TEXT:]), role)], room) if text else []
        for text, role in ((expected, "" if beside or not actual else "muted"), (actual or "", ""))
    ]
    if beside:
        for one, other in zip_longest(*sides):
            write_row(page, Row("", one, other))
    else:
        for line in sides[1] or sides[0]:
            write_row(page, Row("", line))


def _said(case: EvalCase, number: int) -> str:
    turns = case.conversation or ()
    text = user_text(turns[number].user_content) if number < len(turns) else ""
    return " ".join(visible_block(text).split())


def _texts(events: Sequence[Event], kind: str) -> Iterator[str]:
    for event in events:
        if event.kind == kind:
            yield from (
                str(part["text"]) for part in _parts(event) if part.get("text") and not part.get("thought")
            )


def _parts(event: Event) -> Sequence[Mapping[str, Any]]:
    return (event.content or {}).get("parts") or []
