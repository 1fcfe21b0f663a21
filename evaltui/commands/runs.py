"""`evaltui runs`: which runs of an agent were kept, and how they ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from evaltui.commands.output import width, write_lines
from evaltui.commands.usage import UsageError, complain, require_one_agent
from evaltui.core.outcome import Status
from evaltui.core.show import visible
from evaltui.files.runs import StoredRun, read_run, run_logs
from evaltui.reports.console import counts
from evaltui.reports.details import GLYPHS, STYLES
from evaltui.reports.lines import Line, cut

_SHOWN = 20


def runs(agent_dir: Path) -> int:
    """Print the newest runs, the newest first; 2 where there is no such agent."""
    try:
        require_one_agent(agent_dir)
    except UsageError as error:
        return complain("runs", error)
    write_lines(_list(agent_dir, width()))
    return 0


def _list(agent_dir: Path, cells: int) -> Iterator[Line]:
    logs = run_logs(agent_dir)[::-1]
    for log in logs[:_SHOWN]:
        try:
            yield from [cut(line, cells) for line in _run(read_run(log))]
        except (OSError, ValueError) as error:
            yield [("! ", "red"), (f"{log.stem}  cannot be read", "")]
            yield [(f"    {visible(str(error))}", "dim")]
    if not logs:
        yield [(f"no run of {visible(str(agent_dir))} was kept yet", "")]
    elif len(logs) > _SHOWN:
        yield [(f"and {len(logs) - _SHOWN} older ones in {visible(str(logs[0].parent))}", "dim")]


def _run(run: StoredRun) -> Iterator[Line]:
    started = datetime.fromisoformat(run.header["started"]).astimezone()
    yield [*_mark(run), (f" {run.id}  {started:%Y-%m-%d %H:%M}  ", ""), (_ended(run), "")]
    yield [("    ", ""), *_counts(run), (f" · {_selected(run)}", "dim")]


def _mark(run: StoredRun) -> Line:
    if run.footer is None:
        return [("…", "yellow")]
    status = Status(run.footer["status"])
    return [(GLYPHS[status], STYLES[status])]


def _ended(run: StoredRun) -> str:
    if run.footer is None:
        return "interrupted, or still running"
    status = Status(run.footer["status"]).lower().replace("_", " ")
    # Logs of earlier versions do not say how long it took.
    seconds = run.footer.get("seconds")
    return status if seconds is None else f"{status:13}  {seconds:.1f} s"


def _counts(run: StoredRun) -> Line:
    line = counts([Status(result["status"]) for result in run.results])
    left = sum(map(len, _sets(run).values())) - len(run.results)
    if left:
        line += [(", ", "")] if line else []
        line.append((f"{left} not finished", "yellow"))
    return line


def _selected(run: StoredRun) -> str:
    """`lights (4 cases), thermostat:set_bedroom`"""
    named = (
        f"{name}:{ids[0]}" if len(ids) == 1 else f"{name} ({len(ids)} cases)"
        for name, ids in _sets(run).items()
    )
    return visible(", ".join(named))


def _sets(run: StoredRun) -> dict[str, list[str]]:
    """The ids of the selected cases by set."""
    selected: dict[str, list[str]] = run.header["selected"]
    return selected
