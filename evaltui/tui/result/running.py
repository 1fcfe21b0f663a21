"""A run or a case in progress: its figures, its events beside what is expected, and the failures so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import EvalCase, scored_text, user_text
from evaltui.core.model.events import Event, output_text, parts_in, spoken_texts
from evaltui.core.model.outcome import Call, CallDiff, calls_of
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_elapsed, show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells, cut, fill_line, join_ends, with_role
from evaltui.text.outcomes import COUNTED_STATUSES, NOT_RUN, ROLES, ROW_MARKS, RUNNING, glyph
from evaltui.text.plots import bar, sparkline, stacked_bar
from evaltui.text.values import visible, visible_block
from evaltui.tui.result.rows import (
    MIN_WIDTH_BESIDE,
    Sides,
    argument_lines,
    column_width,
    prose,
    write_heads,
    write_sides,
)
from evaltui.tui.result.verdict import ROOMY_WIDTH, chip
from evaltui.tui.widgets.writer import DEFAULT_FOLDING, Folding, Link, Page, fold_mark
from evaltui.views.cause import cause_text
from evaltui.workbench.state import CaseOutcome, Run, is_rate_limit, scale_to_shares

# What the trace shows in full.
_MAX_CALLS = 200
_MAX_TEXT_LENGTH = 4_000
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
    in_flight: Sequence[RunningCase]
    folding: Folding = DEFAULT_FOLDING
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
    page.ends([*head, *(waits or waiting_line(live.events, live.run.seconds))], previous)
    page.blank()
    write_figures(page, _figures_of_case(live, turn, count, page.width))
    made = _events_by_turn(live.events)
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
        for call in calls_of(turn.intermediate_data)[:_MAX_CALLS]:
            lines += [[(visible(call.name), "bold")], *argument_lines(call.args)]
        if text := scored_text(turn, thoughts=False):
            lines += prose(visible_block(text[-_MAX_TEXT_LENGTH:]), page.width - 4)
        page.lines += [cut([("    ", ""), *line], page.width) for line in lines]


def _events_by_turn(events: Sequence[Event]) -> Mapping[int, list[Event]]:
    turns: dict[int, list[Event]] = {}
    for event in events:
        if event.turn is not None:
            turns.setdefault(event.turn, []).append(event)
    return turns


def _figures_of_case(live: LiveCase, turn: int, count: int, width: int) -> list[Figure]:
    seconds = elapsed_seconds(live.events, live.run)
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
    messages = spoken_texts(event.content for event in events if event.kind == "user")
    message = _expected_message(live.case, number) or (messages[0] if messages else "")
    head: Line = [fold_mark(is_open) if events else ("  ", ""), (f"Turn {number + 1} ", "bold")]
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
    for diff in diffs[:_MAX_CALLS]:
        _write_call(page, diff, is_current=is_current)
    text = scored_text(turns[number], thoughts=False) if number < len(turns) else None
    streamed = _streamed_text(events)
    _write_response(page, text or "", streamed + (_CURSOR if is_current and streamed else ""))


def _mark(diffs: Sequence[CallDiff], events: Sequence[Event], *, is_current: bool) -> Span:
    """The mark of a finished turn: whether its calls are as expected; the verdict follows later."""
    if is_current or not events:
        return glyph(RUNNING if is_current else NOT_RUN)
    return ROW_MARKS["same" if all(diff.op == "same" for diff in diffs) else "changed"]


def _streamed_text(events: Sequence[Event]) -> str:
    """The last text of a turn, as far as it was streamed."""
    whole, pieces = "", ""
    for event in events:
        text = "".join(spoken_texts([event.content])) if event.kind == "text" else ""
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
    if page.width < MIN_WIDTH_BESIDE and actual is not None:
        expected = None
    left, right = (
        [[(visible(call.name), "bold")], *argument_lines(call.args)] if call else []
        for call in (expected, actual)
    )
    rows: Iterator[tuple[Line | None, Line | None]] = zip_longest(left, right)
    for number, (left_line, right_line) in enumerate(rows):
        write_sides(page, Sides(op if number == 0 else "", left_line, right_line))


def _write_response(page: Page, expected: str, actual: str) -> None:
    beside = page.width >= MIN_WIDTH_BESIDE
    room = column_width(page) if beside else page.width - 4
    left, right = (
        prose(visible_block(text[-_MAX_TEXT_LENGTH:]), room) if text else [] for text in (expected, actual)
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


_MAX_RUNNING = 12
MAX_FAILURES = 50
_MAX_BAR = 60
_MAX_NAME = 40
_GAP = 2


@dataclass(frozen=True)
class RunningCase:
    """A running case."""

    name: str
    turns: int
    """The number of its turns; 0 where it is unknown."""
    events: Sequence[Event]
    """Its events so far."""
    repeat: tuple[int, int] = (0, 1)
    """The current repeat, from 0, and the number of repeats."""
    is_judged: bool = False
    """Whether it waits for a judge."""


class FailedCase(NamedTuple):
    """A case of the run that needs attention."""

    case: CaseId
    set_name: str
    """The name of its set; "" where all cases of the run are in one set."""
    scored: CaseOutcome


class Figure(NamedTuple):
    """A number of a run or a case, drawn as a card."""

    name: str
    value: str
    limit: str = ""
    """A remark at the right of its name."""
    plot: Sequence[Span] = ()
    """A plot behind the value."""


def write_running(
    page: Page, run: Run, in_flight: Sequence[RunningCase], failures: Sequence[FailedCase]
) -> None:
    """Writes the page; `failures` are the last ones of the run, the newest first."""
    done, selected = len(run.done), len(run.selected)
    left = run.seconds_left
    head: Line = [chip(RUNNING), ("  ", ""), (f"{done}/{selected}", "bold"), (" done", "muted")]
    about = f", about {show_duration(round(left))} left" if left is not None else ""
    page.ends(head, [(f"{show_elapsed(run.seconds)}{about}", "muted")])
    parts = [(run.counts[status], ROLES[status]) for status in COUNTED_STATUSES]
    bar = stacked_bar([*parts, (len(run.running), "accent")], selected, min(page.width - 1, _MAX_BAR))
    page.lines.append([(" ", ""), *bar])
    page.blank()
    write_figures(page, _figures(run, page.width))
    write_in_flight(page, run, in_flight)
    _write_failures(page, failures, len(run.failures))
    page.blank()


def _figures(run: Run, width: int) -> list[Figure]:
    """Requests, latency and tokens over the run; their cost is unknown."""
    traffic, now = run.traffic, run.seconds
    rate, latency = traffic.requests_per_minute(now), traffic.latency(now)
    columns = plot_width(width)
    plots = [
        sparkline(scale_to_shares(values), ["accent"] * len(values))
        for values in (
            traffic.requests_over_time(now, columns),
            traffic.latency_over_time(now, columns),
            traffic.tokens_over_time(now, columns),
        )
    ]
    refused = counted(traffic.rate_limits, "rate limit") if traffic.rate_limits else ""
    throttled = f"throttled {show_duration(traffic.throttled)}" if traffic.throttled else ""
    return [
        Figure("requests/min", show_number(rate), throttled or refused, plots[0] if rate else ()),
        Figure("latency", show_duration(latency), "", plots[1] if latency is not None else ()),
        Figure(
            "tokens",
            show_number(traffic.tokens or None),
            "",
            plots[2] if traffic.tokens else (),
        ),
        Figure("cost", UNKNOWN),
    ]


def plot_width(width: int) -> int:
    """Cells of the plot of a figure on a page of `width` cells."""
    return width // 4 - 14 if width >= ROOMY_WIDTH else 8


def write_figures(page: Page, figures: Sequence[Figure]) -> None:
    """Writes figures as cards; where there is less room, in as few lines as possible."""
    if page.width < ROOMY_WIDTH:
        line: Line = []
        for figure in figures:
            limit = f"  {figure.limit}" if figure.limit else ""
            plot: Line = [(" ", ""), *figure.plot] if figure.plot else []
            part: Line = [(f" {figure.name} ", "muted"), (figure.value, "bold"), *plot, (limit, "faint")]
            if line and cells(line) + cells(part) + 2 > page.width:
                page.lines.append(cut(line, page.width))
                line = []
            line += [*([("  ", "")] if line else []), *part]
        page.lines.append(cut(line, page.width))
        return
    width = (page.width + _GAP) // len(figures) - _GAP
    rows: tuple[Line, Line] = [], []
    for figure in figures:
        top = join_ends([(f" {figure.name}", "muted")], [(figure.limit, "faint"), (" ", "")], width, gap=1)
        below = join_ends([(f" {figure.value}  ", "bold")], [*figure.plot, (" ", "")], width, gap=0)
        for row, line in zip(rows, (top, below), strict=True):
            gap: Line = [(" " * _GAP, "")] if row else []
            row += [*gap, *with_role("surface", fill_line(line, width))]
    page.lines += rows


def write_in_flight(page: Page, run: Run, in_flight: Sequence[RunningCase]) -> None:
    """Writes the running cases, and what each waits for."""
    if not in_flight:
        return
    page.blank()
    hosts = f", {counted(run.hosts, 'host')}" if run.hosts else ""
    page.ends([("In flight", "bold")], [(f"parallel {run.parallel}{hosts}", "muted")] if run.parallel else [])
    names = min(_MAX_NAME, max(len(case.name) for case in in_flight))
    for case in in_flight[:_MAX_RUNNING]:
        left: Line = [("  ", ""), glyph(RUNNING), (f" {visible(case.name):<{names}}  ", "")]
        left += [(f"{_place(case):<14}", "muted")]
        left += [("judge", "muted")] if case.is_judged else waiting_line(case.events, run.seconds)
        page.ends(left, [(show_duration(elapsed_seconds(case.events, run)), "muted")])
    page.more(len(in_flight) - _MAX_RUNNING, 4)


def _place(case: RunningCase) -> str:
    """The place of a running case: `turn 2 of 3`, `repeat 3 of 5`."""
    number, repeats = case.repeat
    if repeats > 1:
        return f"repeat {number + 1} of {repeats}"
    return turn_in_words(turn_of(case.events), case.turns).lower()


def _write_failures(page: Page, newest: Sequence[FailedCase], count: int) -> None:
    if not newest:
        return
    page.blank()
    page.ends([("Failures", "bold")], [(show_number(count), "muted")])
    for failed in newest:
        page.links.append(Link(failed.case, len(page.lines), len(page.lines) + 1))
        prefix = f"{visible(failed.set_name)} › " if failed.set_name else ""
        left: Line = [("  ", ""), glyph(failed.scored.status), (f" {prefix}", "muted")]
        page.ends(
            [*left, (visible(failed.case.eval_id), "")],
            [(visible(cause_text(failed.scored.result)), "muted")],
        )
    if count > len(newest):
        more = f"    and {show_number(count - len(newest))} more   {key_of('next_failing')} next failing"
        page.row((more, "muted"))


# What a case is at


def turn_in_words(turn: int, count: int) -> str:
    return f"Turn {turn + 1} of {count}" if count else f"Turn {turn + 1}"


def turn_of(events: Sequence[Event]) -> int:
    """The current turn, from 0."""
    return next((event.turn for event in reversed(events) if event.turn is not None), 0)


def elapsed_seconds(events: Sequence[Event], run: Run) -> float:
    """Seconds since the start of the case."""
    return max(0.0, run.seconds - events[0].t) if events else 0.0


def waiting_line(events: Sequence[Event], now: float) -> Line:
    """The current activity: `waiting for gemini-2.5-flash  1.3 s`, `tool get_temperature`, `rate limit, retry
    in 2 s`."""
    last = next((event for event in reversed(events) if event.kind not in ("console", "state")), None)
    if last is None:
        return [("starting", "muted")]
    since = max(0.0, now - last.t)
    time = (f"  {show_duration(since)}", "muted")
    if last.kind == "error" and last.data.get("retrying"):
        left = max(0.0, float(last.data.get("wait") or 0) - since)
        what = "rate limit" if is_rate_limit(last) else str(last.data.get("type") or "error")
        return [(f"{visible(what)}, retry in {show_duration(left)}", "warning")]
    if last.kind == "model_request":
        return [("waiting for ", "muted"), (visible(str(last.data.get("model", "model"))), ""), time]
    if last.kind == "tool_call":
        return [("tool ", "muted"), *((visible(call.name), "") for call in calls_in((last,))), time]
    return [("streaming" if last.data.get("partial") else "agent", "muted"), time]


def calls_in(events: Sequence[Event]) -> list[Call]:
    """The calls of the agent in these events."""
    contents = (event.content for event in events if event.kind == "tool_call")
    parts = (part for content in contents for part in parts_in(content))
    calls = (part.get("function_call") or {} for part in parts)
    return [Call(str(call.get("name", "")), call.get("args")) for call in calls]
