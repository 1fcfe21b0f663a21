"""Which reports were asked for, and writing them where they belong."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from evaltui.commands.output import UsageError, colored, write_stderr, write_stdout

if TYPE_CHECKING:
    from evaltui.reports.model import RunReport

Format = Literal["console", "json", "junit", "csv"]


@dataclass(frozen=True)
class ReportTarget:
    """A report and where it goes; no path means standard output."""

    format: Format
    path: Path | None


def parse_targets(asked: Sequence[str], formats: Sequence[Format] = get_args(Format)) -> list[ReportTarget]:
    """`["json=-", "junit=out.xml"]` as targets; the console report where none is asked for.

    Raises UsageError for another format and for two reports that both want standard output.
    """
    targets = [_parse(text, formats) for text in asked] or [ReportTarget("console", None)]
    to_stdout = [target.format for target in targets if target.path is None]
    if len(to_stdout) > 1:
        raise UsageError(
            f"--report: {' and '.join(to_stdout)} cannot both go to stdout; give one a file: "
            f"--report {to_stdout[0]}=PATH"
        )
    for target in targets:
        if target.path is not None and not target.path.parent.is_dir():
            raise UsageError(f"--report: the folder {target.path.parent} does not exist")
    return targets


def _parse(text: str, formats: Sequence[Format]) -> ReportTarget:
    name, _, path = text.partition("=")
    for known in formats:
        if name == known:
            return ReportTarget(known, None if path in ("", "-") else Path(path))
    raise UsageError(f"--report: {name!r} is not one of {', '.join(formats)}")


def write_reports(report: RunReport, targets: Sequence[ReportTarget]) -> bool:
    """Write each report; standard output carries nothing but the one that belongs there.

    Returns whether all are written; of others the reason is told.
    """
    complaints: list[str] = []
    # Files first: they are there even where nobody reads standard output any more.
    for target in sorted(targets, key=lambda one: one.path is None):
        try:
            write_text(_render(report, target), target)
        except BrokenPipeError:
            continue
        except OSError as error:
            place, reason = target.path or "stdout", error.strerror or error
            complaints.append(f"--report {target.format}: {place} cannot be written: {reason}")
    untold = report.notes if all(target.format != "console" for target in targets) else ()
    for note in (*untold, *complaints):
        write_stderr(f"evaltui run: {note}")
    return not complaints


def write_text(text: str, target: ReportTarget) -> None:
    if target.path is None:
        write_stdout(text)
        return
    try:
        target.path.write_text(text, encoding="utf-8")
    except OSError:
        # Half a report may be taken for a whole one.
        with contextlib.suppress(OSError):
            if target.path.is_file():
                target.path.unlink()
        raise


def report_width(target: ReportTarget) -> int:
    """The cells of a line: those of the terminal; 100 where a report does not go to one."""
    return shutil.get_terminal_size().columns if target.path is None and sys.stdout.isatty() else 100


def _render(report: RunReport, target: ReportTarget) -> str:
    if target.format == "json":
        from evaltui.reports.json_report import json_report

        return json.dumps(json_report(report), indent=2, ensure_ascii=False) + "\n"
    if target.format == "junit":
        from evaltui.reports.junit import junit_report

        return junit_report(report)
    if target.format == "csv":
        from evaltui.reports.csv_report import csv_report

        return csv_report(report)
    from evaltui.reports.console import render_console

    return render_console(report, color=target.path is None and colored(), width=report_width(target))
