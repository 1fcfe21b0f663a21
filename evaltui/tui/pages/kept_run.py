"""A run that was kept: as one line, and what is known of it."""

from __future__ import annotations

from evaltui.runs.listing import RunRow, when
from evaltui.text.lines import Line, cells, pad
from evaltui.text.outcomes import COUNTED, RUNNING, counts, glyph
from evaltui.text.values import visible
from evaltui.tui.pages.writer import Page
from evaltui.tui.panes.bars import show_seconds

_WHEN = 19
_NAME, _LONG_NAME = 12, 24
_STATE = 24
# From here on there is room for names of files.
_ROOMY = 90
_COUNTS = 20
_SECONDS = 11


def run_line(row: RunRow, width: int) -> Line:
    """How it ended, when it began, its name, how its cases came out, how long it took, the agent's state."""
    name = "google-adk" if row.is_of_adk and not row.name else row.name
    roomy = width >= _ROOMY
    head: Line = [
        _mark(row),
        (f" {when(row.started):{_WHEN}}  ", ""),
        (pad(visible(name), _LONG_NAME if roomy else _NAME), "bold" if row.name else "dim"),
        ("  ", ""),
    ]
    if row.problem:
        return [*head, (f"cannot be read: {visible(row.problem)}", "red")]
    figures = counts({status: row.counts.get(status, 0) for status in COUNTED}) or [("no case", "dim")]
    return [
        *head,
        *figures,
        (" " * max(1, _COUNTS - cells(figures)), ""),
        (f"{_lasted(row):>{_SECONDS}}", "yellow" if row.ending == "interrupted" else "dim"),
        *_state_columns(row, roomy=roomy),
    ]


def _state_columns(row: RunRow, *, roomy: bool) -> Line:
    state = _agent_state(row, roomy=roomy)
    if not roomy:
        return [(f"  {state}", "dim")]
    return [(f"  {pad(state, _STATE)}  {', '.join(visible(one.eval_set_id) for one in row.sets)}", "dim")]


def _mark(row: RunRow) -> tuple[str, str]:
    if row.problem:
        return glyph("ERROR")
    if row.ending == "going on":
        return glyph(RUNNING)
    return ("…", "yellow") if row.status is None else glyph(row.status)


def _lasted(row: RunRow) -> str:
    if row.ending != "over":
        return row.ending
    return "" if row.seconds is None else show_seconds(row.seconds)


def _agent_state(row: RunRow, *, roomy: bool) -> str:
    """Whether the agent is what it was then."""
    if row.changed is None:
        return ""
    if not row.changed:
        return "the agent is the same" if roomy else "same"
    one, *more = row.changed
    if not roomy:
        return "changed"
    return f"{f'{1 + len(more)} files' if more else visible(one)} changed since"


def write_run(page: Page, row: RunRow) -> None:
    page.labelled("run", [(visible(row.id), "")])
    if row.problem:
        page.labelled("problem", [(visible(row.problem), "red")])
        return
    done = sum(row.counts.values())
    sets = ", ".join(visible(one.eval_set_id) for one in row.sets)
    all_of_them = "1 case" if row.selected == 1 else f"{row.selected} cases"
    how_many = f"{done} of {all_of_them}" if done != row.selected else all_of_them
    rest = ", r runs the rest" if row.ending == "interrupted" and done != row.selected else ""
    page.labelled("cases", [(how_many, ""), (f" of {sets}{rest}" if sets else rest, "dim")])
    if row.model:
        page.labelled("model", [(visible(row.model), "")])
    if row.changed:
        page.labelled("changed", [(", ".join(map(visible, row.changed)), ""), (" since then", "dim")])
