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
from evaltui.text.figures import show_duration, show_elapsed
from evaltui.text.lines import Line, with_role, wrap
from evaltui.text.outcomes import COUNTED, GLYPHS, NOT_RUN, ROLES, RUNNING, glyph
from evaltui.text.plots import bar, stacked_bar
from evaltui.text.values import visible, visible_block
from evaltui.tui.pages.calls import BESIDE, Row, argument_lines, column_width, write_row
from evaltui.tui.pages.turns import write_heads
from evaltui.tui.pages.verdict import chip
from evaltui.tui.pages.writer import Page
from evaltui.workbench.state import CaseOutcome, Run

# What the trace shows in full.
_MOST_CALLS = 200
_MOST_IN_FLIGHT = 12
_LONGEST_TEXT = 4_000
_CARD_GAP = 2
_MOST_BAR = 60
_CURSOR = "▋"


@dataclass(frozen=True)
class InFlight:
    """A case that runs."""

    name: str
    turns: int
    """How many it has; 0 where nobody knows."""
    events: Sequence[Event]
    """What has happened in it so far."""


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
    turn = _turn_of(live.events)
    count = len(live.case.conversation or ())
    head: Line = [chip(RUNNING), ("  ", ""), (_of(turn, count), "bold"), ("  ", "")]
    previous: Line = []
    if live.previous is not None:
        previous = [("previous result: ", "muted"), glyph(live.previous.result.status)]
        previous.append((f" {live.previous.run.name}", "muted"))
    page.ends([*head, *_waiting(live.events, live.run.seconds)], previous)
    page.blank()
    _write_figures(page, live, turn, count)
    made = _by_turn(live.events)
    for number in range(max(count, turn + 1)):
        _write_turn(page, live, number, made.get(number, ()), is_current=number == turn)
    write_in_flight(page, live.run, live.in_flight)


def write_in_flight(page: Page, run: Run, in_flight: Sequence[InFlight]) -> None:
    """What runs now, and what each of these waits for."""
    if not in_flight:
        return
    page.blank()
    page.row(("In flight", "bold"))
    names = max(len(one.name) for one in in_flight)
    for one in in_flight[:_MOST_IN_FLIGHT]:
        left: Line = [("  ", ""), glyph(RUNNING), (f" {visible(one.name):<{min(names, 40)}}  ", "")]
        left += [(f"{_of(_turn_of(one.events), one.turns).lower():<14}", "muted")]
        left += _waiting(one.events, run.seconds)
        page.ends(left, [(show_duration(_elapsed(one.events, run)), "muted")])
    if len(in_flight) > _MOST_IN_FLIGHT:
        page.row((f"    and {len(in_flight) - _MOST_IN_FLIGHT} more", "muted"))


def write_run(page: Page, run: Run, in_flight: Sequence[InFlight]) -> None:
    """How far a run is, and what is in flight: above the results that it has so far."""
    done, selected = len(run.done), len(run.selected)
    left = run.seconds_left
    about = f"   about {show_duration(round(left))} left" if left is not None else ""
    page.row(
        chip(RUNNING),
        ("  ", ""),
        (f"{done}/{selected}", "bold"),
        (f" done   {show_elapsed(run.seconds)}{about}", "muted"),
    )
    parts = [(run.counts[status], ROLES[status]) for status in COUNTED]
    page.lines.append([(" ", ""), *stacked_bar(parts, selected, min(page.width - 1, _MOST_BAR))])
    write_in_flight(page, run, in_flight)
    page.blank()


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


def _of(turn: int, count: int) -> str:
    return f"Turn {turn + 1} of {count}" if count else f"Turn {turn + 1}"


def _turn_of(events: Sequence[Event]) -> int:
    return next((event.turn for event in reversed(events) if event.turn is not None), 0)


def _by_turn(events: Sequence[Event]) -> Mapping[int, list[Event]]:
    turns: dict[int, list[Event]] = {}
    for event in events:
        if event.turn is not None:
            turns.setdefault(event.turn, []).append(event)
    return turns


def _elapsed(events: Sequence[Event], run: Run) -> float:
    return max(0.0, run.seconds - events[0].t) if events else 0.0


def _waiting(events: Sequence[Event], now: float) -> Line:
    """`waiting for gemini-2.5-flash  1.3 s`, `tool get_temperature`"""
    last = next((event for event in reversed(events) if event.kind not in ("console", "state")), None)
    if last is None:
        return [("starting", "muted")]
    since = max(0.0, now - last.t)
    time = (f"  {show_duration(since)}", "muted")
    if last.kind == "model_request":
        return [("waiting for ", "muted"), (visible(str(last.data.get("model", "model"))), ""), time]
    if last.kind == "tool_call":
        return [("tool ", "muted"), *((visible(call.name), "") for call in _calls((last,))), time]
    return [("streaming" if last.data.get("partial") else "agent", "muted"), time]


def _write_figures(page: Page, live: LiveCase, turn: int, count: int) -> None:
    seconds = _elapsed(live.events, live.run)
    tokens = sum(int((event.usage or {}).get("total_token_count") or 0) for event in live.events)
    timeout = f"timeout {show_duration(live.timeout)}"
    figures = (
        ("elapsed", timeout, show_duration(seconds), seconds / live.timeout),
        ("turns", "", f"{turn}/{count}" if count else str(turn), turn / count if count else None),
        ("tokens", "", f"{tokens:,}" if tokens else "—", None),
    )
    if page.width < BESIDE:
        page.row(
            *(
                span
                for name, _, value, _ in figures
                for span in ((f" {name} ", "muted"), (value, "bold"), ("  ", ""))
            )
        )
        return
    width = (page.width + _CARD_GAP) // len(figures) - _CARD_GAP
    rows: tuple[Line, Line] = [], []
    for name, limit, value, share in figures:
        gap: Line = [(" " * _CARD_GAP, "")] if rows[0] else []
        top: Line = [(f" {name}", "muted"), (limit.rjust(width - len(name) - 2), "faint"), (" ", "")]
        room = width - len(value) - 4
        drawn = bar(share, room, "accent") if share is not None else [(" " * room, "")]
        for row, line in zip(rows, (top, [(f" {value}  ", "bold"), *drawn, (" ", "")]), strict=True):
            row += [*gap, *with_role("surface", line)]
    page.lines += rows


def _write_turn(
    page: Page, live: LiveCase, number: int, events: Sequence[Event], *, is_current: bool
) -> None:
    page.blank()
    page.turns[number] = len(page.lines)
    turns = live.case.conversation or ()
    expected = calls_of(turns[number].intermediate_data) if number < len(turns) else ()
    made = _calls(events)
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


def _calls(events: Sequence[Event]) -> list[Call]:
    parts = (part for one in events if one.kind == "tool_call" for part in _parts(one))
    calls = (part.get("function_call") or {} for part in parts)
    return [Call(str(call.get("name", "")), call.get("args")) for call in calls]


def _texts(events: Sequence[Event], kind: str) -> Iterator[str]:
    for event in events:
        if event.kind == kind:
            yield from (
                str(part["text"]) for part in _parts(event) if part.get("text") and not part.get("thought")
            )


def _parts(event: Event) -> Sequence[Mapping[str, Any]]:
    return (event.content or {}).get("parts") or []
