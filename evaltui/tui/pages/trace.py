"""The trace: the time axis, a span as a row, and below the rows where the time went."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evaltui.core.model.events import Event, Json, describe_response
from evaltui.core.trace.spans import Span, SpanKind
from evaltui.core.trace.time_spent import TimeSpent
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number
from evaltui.text.lines import Line, both_ends, cells, pad
from evaltui.text.lines import Span as Text
from evaltui.text.lines import cut as cut_line
from evaltui.text.outcomes import GLYPHS, ROLES
from evaltui.text.plots import bar, column_plot, waterfall_bar
from evaltui.text.syntax import arguments_line, value_line
from evaltui.text.values import cut, visible
from evaltui.tui.pages.writer import Page

if TYPE_CHECKING:
    from evaltui.workbench.histories import CasePast

_GUTTER = 3
_LABEL = 6
_TOKENS = 12
_DURATION = 7
# Times are a picture where there is room for it.
WITH_BARS = 90
# Seconds.
_LONG = 0.5
_SPAN_ROLES = {"agent": "agent", "model": "model", "tool": "tool"}
_KIND_ROLES = {**_SPAN_ROLES, "state": "warning"}
_MOST_INDENT = 6
# Cells without which the response of a tool is left to the inspector.
_LEAST_RESPONSE = 16
# What does not fit in a row anyway need not be made into text.
_LONGEST = 300
# Cells that no row has.
_UNCUT = 10_000
_MARKS: Mapping[str, Text] = {
    "changed": ("≠", "error"),
    "moved": ("↕", "error"),
    "extra": ("+", "error"),
}


class Scale(NamedTuple):
    """The time that the bars of a case are parts of, in seconds since the run began."""

    begin: float
    end: float

    @classmethod
    def of(cls, spans: Sequence[Span], turns: Iterable[Span]) -> Scale:
        """One for all turns, so that their bars can be compared. It begins with the first agent at work: an
        import before it has no bar."""
        timed = [
            spans[number]
            for turn in turns
            if turn.turn is not None
            for number in turn.children
            if spans[number].kind in _SPAN_ROLES
        ]
        if not timed:
            return cls(0.0, 0.0)
        return cls(min(span.begin for span in timed), max(span.end for span in timed))


def axis_line(scale: Scale, width: int) -> Line:
    """What the columns of the rows are, and the times of the hairlines."""
    room = _bar_cells(width)
    if not room:
        return both_ends([], [("tokens", "faint"), (f"{'time':>{_DURATION + 2}}", "faint")], width, least=0)
    marks, last = "", ""
    for quarter in range(4):
        seconds = (scale.end - scale.begin) * quarter / 4
        label = show_duration(seconds) if quarter else "0"
        place = room * quarter // 4
        # Quarters of a few milliseconds may round to the same figure.
        if label != last and len(marks) <= place and place + len(label) <= room:
            marks += " " * (place - len(marks)) + label
            last = label
    right = [(f"{'tokens':>{_TOKENS}}", "faint"), ("  ", ""), (pad(marks, room), "faint")]
    return both_ends([], [*right, (f"{'time':>{_DURATION + 2}}", "faint")], width, least=0)


def span_line(
    span: Span,
    scale: Scale,
    width: int,
    *,
    folded: bool,
    op: str = "",
    status: str = "",
    is_live: bool = False,
) -> Line:
    """A span as a row. `op` says how a call differs, `status` what came of a turn, `is_live` whether what is
    not over may still end."""
    right = _right(span, scale, width, "…" if is_live else UNKNOWN)
    room = width - cells(right) - 1
    left = cut_line([*_gutter(span, folded, op), *_left(span, status, room - _GUTTER)], room)
    return [*left, (" " * (width - cells(left) - cells(right)), ""), *right]


def cut_text(span: Span, scale: Scale, width: int, status: str = "") -> str:
    """What its row says where that is cut there; "" where all of it is seen."""
    room = width - cells(_right(span, scale, width, UNKNOWN)) - 1 - _GUTTER
    full = _left(span, status, _UNCUT)
    return "".join(text for text, _ in full).strip() if cells(full) > room else ""


def _gutter(span: Span, folded: bool, op: str) -> Line:
    """How a call differs, and whether what is in it is folded away."""
    fold = "▸" if folded else "▾" if span.kind == "turn" and span.children else ""
    marks: Line = [_MARKS[op]] if op in _MARKS else []
    marks += [(fold, "muted")] if fold else []
    return [*marks, (" " * (_GUTTER - cells(marks)), "")]


def _left(span: Span, status: str, room: int) -> Line:
    if span.kind == "turn":
        return _turn(span, status)
    indent: Text = ("  " * min(_MOST_INDENT, span.depth - 1), "")
    role = "error" if span.failed and span.kind == "agent" else _KIND_ROLES.get(span.kind, "muted")
    kind: Text = (pad(span.kind, max(_LABEL, len(span.kind) + 1)), role)
    if span.kind == "agent":
        return [indent, kind, (visible(span.agent), "bold error" if span.failed else "bold")]
    if span.kind == "error":
        return [indent, (pad("! error", _LABEL + 2), "error"), *_error(span.events[0].data)]
    return [indent, kind, *_what(span, room - cells([indent, kind]))]


def _turn(span: Span, status: str) -> Line:
    number = "Start" if span.turn is None else f"Turn {span.turn + 1}"
    line: Line = [(number, "bold error" if span.failed else "bold")]
    if status:
        line += [(" ", ""), (GLYPHS[status], ROLES[status])]
    message = span.events[0].content if span.events and span.events[0].kind == "user" else None
    return [*line, ("  ", ""), (_short(text_of(message)), "muted")]


def _what(span: Span, room: int) -> Line:
    event = span.events[-1]
    match span.kind:
        case "model":
            return _model(span)
        case "tool":
            return _tool(span, room)
        case "transfer":
            return [("⇄ ", "muted"), (visible(str(event.data.get("to", ""))), "bold agent")]
        case "state":
            return arguments_line(event.data.get("delta"), _LONGEST)[1:]
        case "console":
            return [(_short(str(event.data.get("text", ""))), "muted")]
    if event.data.get("partial"):
        pieces = "".join(text_of(piece.content) for piece in span.events)
        return [(_short(pieces), "muted")]
    return [(_short(text_of(event.content)), "")]


def _model(span: Span) -> Line:
    asked, answered = span.event("model_request"), span.event("model_response")
    name = str((asked.data if asked else answered.data if answered else {}).get("model") or "")
    line: Line = [(visible(name), "")]
    if failed := span.event("error"):
        return [*line, ("  ", ""), *_error(failed.data)]
    if answered is None:
        return line
    if answered.content is None:
        return [*line, ("  ", ""), (_short(str(answered.data.get("error_message") or "no content")), "error")]
    return [*line, (f" → {visible(came_of(answered.content))}", "muted")]


def came_of(content: Json) -> str:
    """What a model answered, in a word: the tools that it calls, else `text`."""
    calls = [part["function_call"].get("name", "") for part in content.get("parts") or () if _calls(part)]
    if len(calls) > 1:
        return f"{calls[0]} and {len(calls) - 1} more"
    return str(calls[0]) if calls else "text" if content.get("parts") else "nothing"


def _calls(part: Mapping[str, Any]) -> bool:
    return bool(part.get("function_call"))


def _tool(span: Span, room: int) -> Line:
    called, returned = span.event("tool_call"), span.event("tool_result")
    call = part_of(called, "function_call") or part_of(returned, "function_response")
    line: Line = [(visible(str(call.get("name", ""))), "bold"), *arguments_line(call.get("args"), _LONGEST)]
    if returned is not None and cells(line) + _LEAST_RESPONSE <= room:
        response = part_of(returned, "function_response").get("response")
        line += [(" → ", "muted"), *value_line(response, _LONGEST)]
    return line


def _error(data: Json) -> Line:
    known = [str(data.get(name) or "") for name in ("type", "message")]
    return [(_short(": ".join(part for part in known if part)), "error")]


def _bar_cells(width: int) -> int:
    return 0 if width < WITH_BARS else width * 3 // 10


def _right(span: Span, scale: Scale, width: int, unknown: str) -> Line:
    """Tokens, bar and time; `unknown` stands for the time of what has no end."""
    timed = span.kind in _SPAN_ROLES or span.kind == "turn"
    tokens = tokens_of(span.usage) if span.kind == "model" else ""
    if span.kind == "agent" and span.tokens:
        tokens = show_number(span.tokens)
    shown = unknown if span.is_open else show_duration(span.seconds) if timed else ""
    took: Line = [("  ", ""), (f"{shown:>{_DURATION}}", "bold" if span.seconds >= _LONG else "muted")]
    room = _bar_cells(width)
    if not room:
        return [(f"{tokens:>{_TOKENS}}", "muted"), *took] if tokens else took if shown else []
    drawn: Line = [(" " * room, "")]
    if span.kind in _SPAN_ROLES:
        role = "error" if span.failed else _SPAN_ROLES[span.kind]
        drawn = waterfall_bar(
            span.begin - scale.begin, span.end - scale.begin, scale.end - scale.begin, room, role
        )
    return [(f"{tokens:>{_TOKENS}}", "muted"), ("  ", ""), *drawn, *took]


def tokens_of(usage: Json | None) -> str:
    """`612 → 38` for the tokens asked and answered."""
    known = usage or {}
    asked, answered = known.get("prompt_token_count"), known.get("candidates_token_count")
    if asked is None and answered is None:
        total = known.get("total_token_count")
        return "" if total is None else show_number(total)
    return f"{show_number(asked or 0)} → {show_number(answered or 0)}"


def part_of(event: Event | None, name: str) -> Mapping[str, Any]:
    """The first part of an event's content of a name, such as `function_call`; empty without one."""
    parts = (event.content or {}).get("parts") or [] if event else []
    return next((part[name] for part in parts if name in part), {})


def text_of(content: Json | None) -> str:
    """The texts of a content, and in words what else is in it."""
    return " ".join(_texts((content or {}).get("parts") or []))


def _texts(parts: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for part in parts:
        if part.get("text"):
            yield f"(thought) {part['text']}" if part.get("thought") else str(part["text"])
        elif "function_call" in part:
            yield f"→ {part['function_call'].get('name', '')}"
        elif "function_response" in part:
            yield describe_response(part["function_response"])
        else:
            yield f"({', '.join(part)})"


def _short(text: str) -> str:
    return visible(cut(" ".join(text[: 4 * _LONGEST].split()), _LONGEST))


# Below the rows

# Lines of the times, and of the plot of the last runs with its heading.
TIMES_ROWS, PLOT_ROWS = 5, 6
_MOST_PLOT = 8
_MOST_RUNS = 40


def write_time_spent(
    page: Page, spent: TimeSpent, tokens: int, unknown: Collection[SpanKind] = frozenset()
) -> None:
    """A bar for each of model, tool, agent and, where there was any, waiting; none for what is `unknown`."""
    page.section(("Where the time went", "bold"))
    facts: list[tuple[str, float, str]] = [
        ("model", spent.model, counted(spent.model_calls, "call")),
        ("tool", spent.tool, counted(spent.tool_calls, "call")),
        ("agent", spent.agent, "overhead"),
    ]
    if show_duration(spent.waiting) != show_duration(0):
        facts.append(("waiting", spent.waiting, "before and after the agent"))
    room = max(8, page.width * 3 // 10)
    for kind, seconds, what in facts:
        share = seconds / spent.whole if spent.whole else 0.0
        is_unknown = kind in unknown
        what = f"calls {UNKNOWN}" if is_unknown else what
        left: Line = [("   ", ""), (pad(kind, 9), _SPAN_ROLES.get(kind, "muted"))]
        left += [(f"{UNKNOWN if is_unknown else show_duration(seconds):>{_DURATION}}", "bold"), ("  ", "")]
        left += [*bar(share, room, _SPAN_ROLES.get(kind, "muted")), (f"  {what}", "muted")]
        page.ends(left, [(counted(tokens, "token"), "muted")] if kind == "model" and tokens else [])


def write_last_runs(page: Page, past: CasePast, height: int) -> None:
    """A column for each of the last runs of the case, as high as it took, by outcome."""
    points = [point for point in past.history.points if point.summary.seconds is not None][-_MOST_RUNS:]
    seconds = [point.summary.seconds or 0.0 for point in points]
    if len(points) < 2:
        return
    page.section((f"This case, last {counted(len(points), 'run')}", "bold"))
    longest = max(max(seconds), 1e-9)
    roles = [ROLES[point.summary.status] for point in points]
    p50, p95 = (show_duration(_quantile(seconds, share)) for share in (0.5, 0.95))
    facts: list[Line] = [
        [(show_duration(seconds[-1]), "bold")],
        [("last run", "muted")],
        [(f"p50 {p50}   p95 {p95}", "muted")],
    ]
    shares = [one / longest for one in seconds]
    plot = column_plot(shares, roles, page.width - 30, min(_MOST_PLOT, height), top=show_duration(longest))
    for number, line in enumerate(plot):
        page.ends(line, facts[number] if number < len(facts) else [])


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, round(share * (len(values) - 1)))]
