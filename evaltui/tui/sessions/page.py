"""Sessions that were received: a line each, and one in full."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.secrets import Secrets
from evaltui.runs.sessions import Pattern, ScoredSession, pattern_in_words
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, pad, wrap
from evaltui.text.outcomes import GLYPHS, glyph
from evaltui.text.values import cut, visible
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.trace.new_trajectories import NewTrajectory

# Cells of the columns, in a line from `_WIDE` cells on, and in one with fewer.
_WIDE, _COLUMNS, _NARROW_COLUMNS = 110, (20, 26), (12, 20)
_COUNT = len("500 sessions")
_MOST_MESSAGE = 400


def session_line(
    session: ScoredSession, width: int, secrets: Secrets, *, is_new: bool, is_outdated: bool
) -> Line:
    """`✗ talk-7  like where_is_order  find_order: order_id is "1003", expected "1002"`

    `is_new` says that no case has the trajectory of one of its turns, `is_outdated` that its case is another
    one since it was scored.
    """
    name, case = _COLUMNS if width >= _WIDE else _NARROW_COLUMNS
    line: Line = [
        glyph(session.status),
        (f" {pad(visible(session.id), name)}  ", "bold"),
        (f"{pad(session.case_in_words, case)}  ", "" if session.case else "warning"),
    ]
    if is_new:
        line.append(("new trajectory  ", "warning"))
    if is_outdated:
        line[0] = (GLYPHS[session.status], "muted")
        line.append(("stale: case  ", "warning"))
    return [*line, (secrets.in_text(session.why), "" if session.result and not is_outdated else "muted")]


def trajectory_line(trajectory: NewTrajectory) -> Line:
    """` 12 sessions  find_order → refund`"""
    count = counted(trajectory.sessions, "session").rjust(_COUNT)
    return [(f"{count}  ", "muted"), (pattern_in_words(trajectory.calls), "bold")]


def write_session(page: Page, session: ScoredSession, new: Sequence[Pattern], secrets: Secrets) -> None:
    """What the user said, the `new` trajectories, which no case has, and what else is to be known."""
    for number, message in enumerate(secrets.masked(session.messages), start=1):
        page.lines += wrap(
            [(f"turn {number}  ", "muted"), (visible(cut(message, _MOST_MESSAGE)), "")], page.width
        )
    for pattern in new:
        page.lines += wrap([("new trajectory  ", "warning"), (pattern_in_words(pattern), "bold")], page.width)
    for remark in secrets.masked([*([session.problem] if session.problem else ()), *session.remarks]):
        page.lines += wrap([("note  ", "warning"), (visible(remark), "muted")], page.width)


def write_address(page: Page, url: str, problem: str) -> None:
    """Where agents send to, while nothing has come; "" for nowhere."""
    if problem:
        page.lines += wrap([(visible(problem), "warning")], page.width)
    if not url:
        key = key_of("toggle_listening")
        page.lines += wrap([("Not listening   ", "muted"), (key, "key"), (" listen", "muted")], page.width)
        return
    page.lines += [
        [("Agents send their traces here when they are started with", "muted")],
        [(f"OTEL_EXPORTER_OTLP_ENDPOINT={url}", "")],
        [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT", "")],
    ]
