"""A case before its result: its expectations, and while it runs the agent's events beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.eval_set import EvalCase, scored_text, user_text
from evaltui.core.model.events import Event, output_text
from evaltui.core.model.outcome import Call, CallDiff, calls_of
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number
from evaltui.text.lines import Line, Span, cut
from evaltui.text.outcomes import NOT_RUN, ROW_MARKS, RUNNING, glyph
from evaltui.text.plots import bar
from evaltui.text.values import visible, visible_block
from evaltui.tui.result.rows import argument_lines, prose
from evaltui.tui.result.running import (
    Figure,
    InFlight,
    calls_in,
    elapsed,
    plot_width,
    turn_in_words,
    turn_of,
    waiting,
    write_figures,
    write_in_flight,
)
from evaltui.tui.result.sides import BESIDE, Sides, column_width, write_heads, write_sides
from evaltui.tui.result.verdict import chip
from evaltui.tui.widgets.writer import NOT_FOLDED, Folding, Page
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
    """The timeout in seconds."""
    place: str
    previous: CaseOutcome | None
    in_flight: Sequence[InFlight]
    folding: Folding = NOT_FOLDED
    is_judged: bool = False
    """Whether the agent is done and a judge is running."""


def write_live(page: Page, live: LiveCase) -> None:
    turn = turn_of(live.events)
    count = len(live.case.conversation or ())
    head: Line = [chip(RUNNING), ("  ", ""), (turn_in_words(turn, count), "bold"), ("  ", "")]
    previous: Line = []
    if live.previous is not None:
        previous = [("previous result: ", "muted"), glyph(live.previous.result.status)]
        previous.append((f" {live.previous.run.name}", "muted"))
    waits: Line = [("waiting for ", "muted"), ("judge", "")] if live.is_judged else []
    page.ends([*head, *(waits or waiting(live.events, live.run.seconds))], previous)
    page.blank()
    write_figures(page, _figures(live, turn, count, page.width))
    made = _by_turn(live.events)
    for number in range(max(count, turn + 1)):
        _write_turn(page, live, number, made.get(number, ()), is_current=number == turn)
    write_in_flight(page, live.run, live.in_flight)


def write_expected(page: Page, case: EvalCase) -> None:
    """Writes the expectations of a case without result, turn by turn."""
    for number, turn in enumerate(case.conversation or ()):
        page.blank()
        page.turns[number] = len(page.lines)
        page.row(
            ("  ", ""),
            (f"Turn {number + 1} ", "bold"),
            glyph(NOT_RUN),
            (f"  {_expected_message(case, number)}", "muted"),
        )
        lines: list[Line] = []
        for call in calls_of(turn.intermediate_data)[:_MOST_CALLS]:
            lines += [[(visible(call.name), "bold")], *argument_lines(call.args)]
        if text := scored_text(turn, thoughts=False):
            lines += prose(visible_block(text[-_LONGEST_TEXT:]), page.width - 4)
        page.lines += [cut([("    ", ""), *line], page.width) for line in lines]


def _by_turn(events: Sequence[Event]) -> Mapping[int, list[Event]]:
    turns: dict[int, list[Event]] = {}
    for event in events:
        if event.turn is not None:
            turns.setdefault(event.turn, []).append(event)
    return turns


def _figures(live: LiveCase, turn: int, count: int, width: int) -> list[Figure]:
    seconds = elapsed(live.events, live.run)
    tokens = sum(int((event.usage or {}).get("total_token_count") or 0) for event in live.events)
    room = plot_width(width)
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
        Figure("tokens", show_number(tokens or None)),
        Figure("cost", UNKNOWN),
    ]


def _write_turn(
    page: Page, live: LiveCase, number: int, events: Sequence[Event], *, is_current: bool
) -> None:
    turns, key = live.case.conversation or (), f"turn {number}"
    expected = calls_of(turns[number].intermediate_data) if number < len(turns) else ()
    made = calls_in(events)
    diffs = align_calls(expected, made)
    is_open = bool(events) and live.folding.is_open(key, usual=is_current)
    page.part(is_open=is_open or is_current)
    page.turns[number] = len(page.lines)
    message = _expected_message(live.case, number) or next(_texts(events, "user"), "")
    head: Line = [("▾ " if is_open else "▸ " if events else "  ", "faint"), (f"Turn {number + 1} ", "bold")]
    head += [_mark(diffs, events, is_current=is_current), (f"  {message}", "" if is_current else "muted")]
    calls = f"{show_number(len(made))}/{counted(len(expected), 'call')}{' so far' if is_current else ''}"
    facts = [calls] if events else ["queued"]
    if events and not is_current:
        facts.append(show_duration(events[-1].t - events[0].t))
    if events:
        page.fold(key, head, [("   ".join(facts), "muted")])
    else:
        page.ends(head, [(facts[0], "muted")])
    if not is_open:
        return
    if is_current:
        write_heads(page, ("expected", live.place), ("actual", f"run {live.run.number}, live"))
    for diff in diffs[:_MOST_CALLS]:
        _write_call(page, diff, is_current=is_current)
    text = scored_text(turns[number], thoughts=False) if number < len(turns) else None
    streamed = _streamed(events)
    _write_response(page, text or "", streamed + (_CURSOR if is_current and streamed else ""))


def _mark(diffs: Sequence[CallDiff], events: Sequence[Event], *, is_current: bool) -> Span:
    """The mark of a finished turn: whether its calls are as expected; the verdict follows later."""
    if is_current or not events:
        return glyph(RUNNING if is_current else NOT_RUN)
    return ROW_MARKS["same" if all(diff.op == "same" for diff in diffs) else "changed"]


def _streamed(events: Sequence[Event]) -> str:
    """The last text of a turn, as far as it was streamed."""
    whole, pieces = "", ""
    for event in events:
        text = "".join(_texts((event,), "text"))
        if event.kind == "output" and event.data.get("answers"):
            text = output_text(event.data["output"])
        if event.data.get("partial"):
            pieces += text
        elif text or event.data.get("text_is_void"):
            whole, pieces = text or whole, ""
    return pieces or whole


def _write_call(page: Page, diff: CallDiff, *, is_current: bool) -> None:
    """Writes a call; a missing call of the running turn may still come."""
    op = "" if is_current and diff.op == "missing" else diff.op
    _write_both(page, op, diff.expected if diff.op != "moved" else None, diff.actual)


def _write_both(page: Page, op: str, expected: Call | None, actual: Call | None) -> None:
    """Writes a call on both sides; in a narrow page, the actual one only."""
    if page.width < BESIDE and actual is not None:
        expected = None
    left, right = (
        [[(visible(call.name), "bold")], *argument_lines(call.args)] if call else []
        for call in (expected, actual)
    )
    rows: Iterator[tuple[Line | None, Line | None]] = zip_longest(left, right)
    for number, (left_line, right_line) in enumerate(rows):
        write_sides(page, Sides(op if number == 0 else "", left_line, right_line))


def _write_response(page: Page, expected: str, actual: str) -> None:
    beside = page.width >= BESIDE
    room = column_width(page) if beside else page.width - 4
    left, right = (
        prose(visible_block(text[-_LONGEST_TEXT:]), room) if text else [] for text in (expected, actual)
    )
    if beside:
        for left_line, right_line in zip_longest(left, right):
            write_sides(page, Sides("", left_line, right_line))
    else:
        for line in right or left:
            write_sides(page, Sides("", line))


def _expected_message(case: EvalCase, number: int) -> str:
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
