"""What is wrong: with a file, with the agent, with a run of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.problems import Problem, Severity, format_path
from evaltui.text.values import visible, visible_block, visible_lines
from evaltui.tui.pages.writer import Page

if TYPE_CHECKING:
    from evaltui.core.model.outcome import ErrorInfo

_MAX_PROBLEMS = 200
_MAX_TRACEBACK = 400


def write_problems(page: Page, problems: Sequence[Problem], path: Path) -> None:
    """Every problem with its place; a file is named where it is another than the page's own."""
    for problem in problems[:_MAX_PROBLEMS]:
        grave = problem.severity is Severity.ERROR
        mark = ("  ! ", "red") if grave else ("  · ", "yellow")
        page.text([(visible(problem.message), "")], [mark])
        place = [f"line {problem.line}"] if problem.line else []
        place += [visible(format_path(problem.path))] if problem.path else []
        if problem.file and Path(problem.file) != path:
            place.insert(0, visible(problem.file))
        if place:
            page.block([(", ".join(place), "dim")], 4)
    if len(problems) > _MAX_PROBLEMS:
        page.row((f"    and {len(problems) - _MAX_PROBLEMS} more: `evaltui lint` shows them all", "dim"))


def write_sentences(page: Page, sentences: Sequence[str]) -> None:
    """One below the other."""
    for sentence in sentences:
        page.text([(visible(sentence), "")], [("  · ", "yellow")])


def write_error(page: Page, error: ErrorInfo) -> None:
    """What was raised, the place in the user's code, then the traceback."""
    head = f"{error.type}: {error.message}" if error.message else error.type
    page.block([(visible_block(head.rstrip("\n")), "red")], 2)
    if error.where:
        page.block([("at ", "dim"), (visible(error.where), "bold")], 2)
    if error.traceback.strip() in ("", head.strip()):
        return
    page.blank()
    trace = visible_lines(error.traceback.rstrip("\n"))
    if len(trace) > _MAX_TRACEBACK:
        page.row((f"  … {len(trace) - _MAX_TRACEBACK} lines above are left out", "dim"))
        trace = trace[-_MAX_TRACEBACK:]
    for line in trace:
        indent = len(line) - len(line.lstrip(" "))
        page.block([(line.lstrip(" "), "dim")], min(2 + indent, 10))
