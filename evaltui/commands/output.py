"""The output of commands: standard output and error, report files, messages for wrong use."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from evaltui.commands.exit_codes import NOT_WRITTEN, WRONG_USE
from evaltui.documents.files import written_at_once
from evaltui.documents.json_text import why_unreadable
from evaltui.documents.saving import ChangedOutsideError, Write, save_together
from evaltui.project.agent_address import AgentAddress
from evaltui.project.agents import agents_in
from evaltui.project.folders import may_be_agent
from evaltui.project.interpreters import InterpreterError, find_interpreter
from evaltui.project.packages import extra_command
from evaltui.project.remote_address import url_hint
from evaltui.project.run_settings import RunSettings, SettingsError, run_settings
from evaltui.reports.writers import WRITERS, Writer, render_report
from evaltui.text.figures import counted
from evaltui.text.lines import Line, draw
from evaltui.text.values import did_you_mean, without_commands

if TYPE_CHECKING:
    from evaltui.core.compare.run_summary import CaseSummary
    from evaltui.reports.matrix_report import MatrixReport
    from evaltui.runs.report import RunReport


def write_stdout(text: str) -> None:
    _write(text, sys.stdout)


def write_stderr(*lines: str) -> None:
    """Writes lines to standard error, where anybody reads it."""
    with contextlib.suppress(OSError):
        print(*map(without_commands, lines), sep="\n", file=sys.stderr, flush=True)


def write_lines(lines: Iterable[Line], *, to_stderr: bool = False) -> None:
    """Lines of styled text, coloured where a person is watching.

    Raises BrokenPipeError where nobody reads standard output any more.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    color = colored(stream)
    text = "".join(f"{draw(line, color=color)}\n" for line in lines)
    try:
        _write(text, stream)
    except OSError:
        # What is said beside it may go unheard.
        if not to_stderr:
            raise


def _write(text: str, stream: TextIO) -> None:
    try:
        # The terminal's encoding may lack a glyph: better a replacement than a traceback after a long run.
        stream.buffer.write(text.encode(stream.encoding or "utf-8", "replace"))
        stream.buffer.flush()
    except OSError as error:
        # A terminal that is gone is one more reader that has left.
        if error.errno == errno.EIO:
            raise BrokenPipeError(error.errno, error.strerror) from error
        raise


def colored(stream: TextIO | None = None) -> bool:
    """Whether a stream, by default standard output, is a terminal with colours."""
    return (stream or sys.stdout).isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """The width of a line in cells: the terminal's, or 80 without one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 80


class UsageError(ValueError):
    """The command was called in a way that cannot work; one sentence."""

    def __init__(self, problem: str, page: str = "") -> None:
        super().__init__(problem)
        self.page = page
        """The page of the guide that helps, if there is one."""


def agent_of(options: argparse.Namespace) -> AgentAddress:
    """The agent that the options name, with its own Python, which is not started. Raises UsageError."""
    try:
        interpreter = find_interpreter(options.agent_dir, options.python)
    except (InterpreterError, SettingsError) as error:
        raise UsageError(str(error)) from error
    name = getattr(options, "agent", None)
    return AgentAddress(options.agent_dir, name, interpreter, options.module, options.url, options.headers)


def agent_to_run(options: argparse.Namespace) -> AgentAddress:
    """The agent of a command that runs it. Raises UsageError where its Python cannot run it."""
    agent = agent_of(options)
    if problem := agent.problem:
        raise UsageError(problem)
    return agent


def settings_of(options: argparse.Namespace) -> RunSettings:
    """The run-wide settings, with those options of them that the command has. Raises UsageError."""
    try:
        return run_settings(options.agent_dir, vars(options))
    except SettingsError as error:
        raise UsageError(str(error)) from error


def complain(command: str, problem: object) -> int:
    """Writes the errors of a call and the page of the guide that helps; returns the exit code."""
    for line in str(problem).splitlines():
        write_stderr(f"evaltui {command}: {line}")
    causes = (problem, getattr(problem, "__cause__", None))
    if page := next(filter(None, (getattr(cause, "page", "") for cause in causes)), ""):
        write_stderr(f"evaltui {command}: see `evaltui help {page}`")
    return WRONG_USE


def refused(command: str, left_out: Sequence[object]) -> int:
    """Says that `--strict` writes nothing, of which each part that does not fit is listed already."""
    write_stderr(f"evaltui {command}: nothing written: {counted(len(left_out), 'part')} left out (--strict)")
    return NOT_WRITTEN


def confirmed(question: str, refusal: str) -> bool:
    """Asks a question that yes or no answers. Raises UsageError with the refusal where nobody can answer."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(refusal)
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        answer = ""
    return answer.strip().lower() in ("y", "yes")


def save_all(writes: Sequence[Write], refusal: str) -> None:
    """Saves all files or none. Raises UsageError with the refusal and the reason where that fails."""
    try:
        save_together(writes)
    except (OSError, ChangedOutsideError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise UsageError(f"{refusal}: {reason or error}") from error


def require_one_agent(options: argparse.Namespace) -> None:
    """Raises UsageError where the options name no agent; that with a URL or a dotted name may be anywhere."""
    if not (options.url or options.module):
        require_agent(options.agent_dir, may_be_named="agent" in options)


def require_agent(agent_dir: Path, *, may_be_named: bool = False) -> None:
    """Raises UsageError for what does not exist, and for a folder that is no agent, naming those it holds.

    `may_be_named` is for a command that has the option `--agent`.
    """
    if not agent_dir.exists():
        raise UsageError(f"{agent_dir} does not exist{url_hint(str(agent_dir))}")
    agents = [str(agent_dir / name) for name in agents_in(agent_dir)]
    if len(agents) == 1:
        raise UsageError(f"{agent_dir} is the parent of an agent; use {agents[0]}")
    if agents:
        also = ", or give its name with --agent" if may_be_named else ""
        raise UsageError(f"{agent_dir} has several agents: {', '.join(agents)}. Name one of them{also}")
    if not may_be_agent(agent_dir):
        if agent_dir.is_dir() and not os.access(agent_dir, os.R_OK | os.X_OK):
            raise UsageError(f"{agent_dir} {why_unreadable(agent_dir, PermissionError())}")
        raise UsageError(
            f"{agent_dir} has no agent: agent.py, __init__.py or root_agent.yaml is missing", "agents"
        )


@dataclass(frozen=True)
class ReportTarget:
    """A report and its file; without a path it goes to standard output."""

    format: str
    """A key of `WRITERS`."""
    path: Path | None


def parse_targets(texts: Sequence[str], formats: Sequence[str] = tuple(WRITERS)) -> list[ReportTarget]:
    """`["json=-", "junit=out.xml"]` as targets; the console report for an empty list.

    Raises UsageError for another format, for two reports in one place, and for a report on a standard output
    that is closed.
    """
    targets = [_parse(text, formats) for text in texts] or [ReportTarget("console", None)]
    to_stdout = [target.format for target in targets if target.path is None]
    if len(to_stdout) > 1:
        raise UsageError(
            f"--report: {' and '.join(to_stdout)} cannot both go to stdout; give one a file: "
            f"--report {to_stdout[0]}=PATH"
        )
    # None where the program was started with it closed; `start` opens another in its place.
    if texts and to_stdout and sys.__stdout__ is None:
        raise UsageError(f"--report {to_stdout[0]}: stdout is closed; give the report a file")
    paths = [target.path.absolute() for target in targets if target.path is not None]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise UsageError(f"--report: {twice} is named for two reports; give each its own file")
    for target in targets:
        if target.path is not None and not target.path.parent.is_dir():
            raise UsageError(f"--report: the folder {target.path.parent} does not exist")
    return targets


def run_targets(texts: Sequence[str]) -> list[ReportTarget]:
    """The targets of a run, with a console report where all others go to files."""
    targets = parse_targets(texts)
    shown = any(target.path is None or target.format == "console" for target in targets)
    return targets if shown else [*targets, ReportTarget("console", None)]


def _parse(text: str, formats: Sequence[str]) -> ReportTarget:
    name, _, path = text.partition("=")
    if name not in formats:
        hint = did_you_mean(name, formats)
        raise UsageError(f"--report: {name!r} is not one of {', '.join(formats)}{hint}")
    if name == "html" and find_spec("jinja2") is None:
        raise UsageError(f"--report html: Jinja2 is not installed. Run {extra_command('report')}")
    return ReportTarget(name, None if path in ("", "-") else Path(path))


def write_reports(report: RunReport, targets: Sequence[ReportTarget], command: str = "run") -> bool:
    """Writes each report to its target; returns whether all are written, and names failures on stderr."""
    all_written = _write_all(report, targets, command, attrgetter("of_run"))
    if all(target.format != "console" for target in targets):
        for note in report.notes:
            write_stderr(f"evaltui {command}: {note}")
    return all_written


def matrix_targets(targets: Sequence[ReportTarget]) -> Sequence[ReportTarget]:
    """Raises UsageError for a report that a matrix does not have."""
    formats = [name for name, writer in WRITERS.items() if writer.matrix_function]
    for target in targets:
        if target.format not in formats:
            raise UsageError(
                f"--report {target.format}: a matrix has {', '.join(formats)}. "
                f"`evaltui report RUN --report {target.format}` reports one of its runs"
            )
    return targets


def write_matrix(report: MatrixReport, targets: Sequence[ReportTarget], command: str) -> bool:
    """Writes each report of a matrix as `write_reports` does."""
    return _write_all(report, targets, command, attrgetter("matrix_function"))


def _write_all(
    report: object, targets: Sequence[ReportTarget], command: str, function_of: Callable[[Writer], str]
) -> bool:
    complaints: list[str] = []
    # Files first: they are there even where nobody reads standard output any more.
    for target in sorted(targets, key=lambda target: target.path is None):
        layout: dict[str, int] = {}
        if target.format == "console":
            layout = {"color": target.path is None and colored(), "width": report_width(target)}
        try:
            write_text(render_report(function_of(WRITERS[target.format]), report, **layout), target)
        except BrokenPipeError:
            continue
        except OSError as error:
            place, reason = target.path or "stdout", error.strerror or error
            complaints.append(f"--report {target.format}: {place} cannot be written: {reason}")
    for complaint in complaints:
        write_stderr(f"evaltui {command}: {complaint}")
    return not complaints


def stored_durations(file: Path | None, cases: Iterable[CaseSummary], command: str) -> bool:
    """Writes the durations if a file is named; returns False where that fails, with the reason on stderr."""
    if file is None:
        return True
    from evaltui.runs.shards import DurationsError, store_durations

    try:
        store_durations(file, {case.id: case.seconds for case in cases if case.seconds is not None})
    except (OSError, DurationsError) as error:
        write_stderr(f"evaltui {command}: --store-durations: {error}")
        return False
    return True


# Characters that are written at once.
_MAX_AT_ONCE = 1 << 16


def write_text(text: str | Iterable[str], target: ReportTarget) -> None:
    """Write a text, or the pieces of one that is too long to be in memory.

    A file gets all of it or stays as it was: half a report may be taken for a whole one. Raises OSError, and
    what making the pieces raises.
    """
    pieces = [text] if isinstance(text, str) else text
    if target.path is None:
        for some in _joined(pieces):
            write_stdout(some)
        return

    with written_at_once(target.path) as file:
        file.writelines(pieces)


def _joined(pieces: Iterable[str]) -> Iterator[str]:
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _MAX_AT_ONCE:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)


def write_result(
    targets: Sequence[ReportTarget],
    json: Callable[[], Iterable[str]],
    lines: Callable[[int], Iterable[Line]],
) -> None:
    """Writes a result to each target: as JSON, or as lines of a width. Raises OSError."""
    for target in targets:
        if target.format == "json":
            write_text(json(), target)
        else:
            color = target.path is None and colored()
            drawn = (f"{draw(line, color=color)}\n" for line in lines(report_width(target)))
            write_text(drawn, target)


def report_width(target: ReportTarget) -> int:
    """The width of a line in cells: the terminal's, or 100 for another target."""
    return shutil.get_terminal_size().columns if target.path is None and sys.stdout.isatty() else 100
