"""Sessions that were received: a line each, and one in full."""

from __future__ import annotations

from evaltui.runs.sessions import ScoredSession, pattern_in_words
from evaltui.text.lines import Line, pad, wrap
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible
from evaltui.tui.pages.writer import Page

# Cells of the columns, in a line from `_WIDE` cells on, and in one with fewer.
_WIDE, _COLUMNS, _NARROW_COLUMNS = 110, (20, 26), (12, 20)
_MOST_MESSAGE = 400


def session_line(session: ScoredSession, width: int) -> Line:
    """`✗ talk-7  like where_is_order  find_order: order_id is "1003", expected "1002"`"""
    name, case = _COLUMNS if width >= _WIDE else _NARROW_COLUMNS
    line: Line = [
        glyph(session.status),
        (f" {pad(visible(session.id), name)}  ", "bold"),
        (f"{pad(session.case_in_words, case)}  ", "" if session.case else "warning"),
    ]
    if session.new_patterns:
        line.append(("new trajectory  ", "warning"))
    return [*line, (session.why, "" if session.result else "muted")]


def write_session(page: Page, session: ScoredSession) -> None:
    """What the user said, what no case has, and what else is to be known."""
    for number, message in enumerate(session.messages, start=1):
        page.lines += wrap(
            [(f"turn {number}  ", "muted"), (visible(cut(message, _MOST_MESSAGE)), "")], page.width
        )
    for pattern in session.new_patterns:
        page.lines += wrap([("new trajectory  ", "warning"), (pattern_in_words(pattern), "bold")], page.width)
    for remark in (*([session.problem] if session.problem else ()), *session.remarks):
        page.lines += wrap([("note  ", "warning"), (visible(remark), "muted")], page.width)


def write_address(page: Page, url: str, problem: str) -> None:
    """Where agents send to, while nothing has come."""
    if problem:
        page.lines += wrap([(visible(problem), "warning")], page.width)
        return
    page.lines += [
        [("Agents send their traces here when they are started with", "muted")],
        [(f"OTEL_EXPORTER_OTLP_ENDPOINT={url}", "")],
        [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT", "")],
    ]
