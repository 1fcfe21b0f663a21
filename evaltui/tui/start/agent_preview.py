"""An agent that may be opened: what is known of it without importing it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from evaltui.files.folders import short_path
from evaltui.runs.listing import RunRow
from evaltui.text.figures import UNKNOWN, counted, show_moment, show_number, some_of
from evaltui.text.lines import Line, pad
from evaltui.text.outcomes import counts
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import LABEL, Page
from evaltui.workbench.agent.agent_preview import AgentPreview, SetPreview

# Fewer are named on one line.
_LEAST_SETS = 3
_READING: Line = [("Reading…", "faint")]


def write_agent(page: Page, path: Path, preview: AgentPreview, now: datetime, height: int) -> None:
    """An agent in so many lines: its folder, framework, model and Python, how it last came out, its sets."""
    page.row((visible(path.name), "bold"))
    page.labelled("folder", [(visible(short_path(path.parent if path.is_file() else path)), "")])
    page.labelled("agent", _agent(preview))
    page.labelled("python", _python(preview))
    page.labelled("last run", _last_run(preview.last_run, now) if preview.is_complete else _READING)
    if preview.sets is None:
        page.labelled("eval sets", _READING)
    elif not preview.sets:
        page.labelled("eval sets", [("No eval sets", "muted")])
    else:
        _write_sets(page, preview.sets, height)


def _agent(preview: AgentPreview) -> Line:
    facts = preview.facts
    if facts is None:
        return _READING
    if facts.problem:
        return [(f"! {visible(facts.problem)}", "error")]
    return [(visible(" · ".join(filter(None, (facts.framework, facts.model))) or UNKNOWN), "")]


def _python(preview: AgentPreview) -> Line:
    if preview.python_problem:
        return [(f"! {visible(preview.python_problem)}", "error")]
    return _READING if preview.python is None else [(visible(preview.python), "")]


def _last_run(row: RunRow | None, now: datetime) -> Line:
    if row is None:
        return [("No runs yet", "muted")]
    if row.problem:
        return [(f"! {visible(row.problem)}", "error")]
    return [
        (visible(row.title), ""),
        (f"  {show_moment(row.started, now)}  ", "muted"),
        *counts(row.totals.counts),
    ]


def _write_sets(page: Page, sets: tuple[SetPreview, ...], height: int) -> None:
    count = f"{counted(len(sets), 'eval set')}, {counted(sum(one.cases for one in sets), 'case')}"
    # A heading and an empty line stand above them.
    if height - len(page.lines) - 2 < min(len(sets), _LEAST_SETS):
        names = some_of([f"{one.eval_set_id}{' !' if one.problem else ''}" for one in sets])
        page.row((f"  {pad('eval sets', LABEL)}", "muted"), (count, ""), (f"  {visible(names)}", "muted"))
        return
    page.section((count, "bold"))
    room = height - len(page.lines)
    shown = sets if len(sets) <= room else sets[: room - 1]
    for one in shown:
        right: Line = [("!", "error")] if one.problem else [(counted(one.cases, "case"), "muted")]
        why: Line = [(f"  {visible(one.problem)}", "error")] if one.problem else []
        page.ends([(f"  {visible(one.eval_set_id)}", ""), *why], right)
    if len(shown) < len(sets):
        page.row((f"  and {show_number(len(sets) - len(shown))} more", "muted"))
