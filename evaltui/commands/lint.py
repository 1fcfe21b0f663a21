"""`evaltui lint`: checking eval sets and configs, and mending them."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from evaltui.commands.output import complain, write_stderr
from evaltui.core.model.problems import errors_in
from evaltui.documents.line_changes import diff_lines
from evaltui.documents.saving import ChangedOutsideError, save
from evaltui.project.lint import lint as find_problems
from evaltui.project.lint import mended_files
from evaltui.reports.lint_report import render_problems
from evaltui.text.figures import counted
from evaltui.text.values import without_commands


def lint(options: argparse.Namespace) -> int:
    """Prints the problems; 1 where there is an error. With `--fix`, the problems that remain."""
    paths: Sequence[Path] = options.paths
    for path in paths:
        if not path.exists():
            return complain("lint", f"{path} does not exist")
    # An id may hold what the terminal's encoding lacks.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if options.diff:
        return _show_mends(paths)
    if options.fix and (problem := _mend(paths)):
        return complain("lint", problem)
    problems = find_problems(paths)
    text = render_problems(problems, options.format)
    print(without_commands(text) if options.format == "console" else text, end="")
    errors = len(errors_in(problems))
    warnings = len(problems) - errors
    mendable = 0 if options.fix else sum(len(file.mends) for file in mended_files(paths))
    hint = f"; --fix mends {mendable}" if mendable else ""
    write_stderr(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}{hint}")
    return 1 if errors else 0


def _mend(paths: Sequence[Path]) -> str:
    """Mends files one by one and prints the changes; returns the reason of a failed write, else ""."""
    for file in mended_files(paths):
        try:
            save(file.source.path, file.text, file.source.fingerprint)
        except (OSError, ChangedOutsideError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            return f"{file.source.path} cannot be written: {reason or error}"
        write_stderr(*(mend.located("fixed") for mend in file.mends))
    return ""


def _show_mends(paths: Sequence[Path]) -> int:
    """Prints the possible mends; returns 1 where there are any."""
    files = list(mended_files(paths))
    for file in files:
        sys.stdout.writelines(diff_lines(str(file.source.path), file.source.text, file.text))
    mends = sum(len(file.mends) for file in files)
    in_files = f" in {counted(len(files), 'file')}" if files else ""
    write_stderr(f"{counted(mends, 'problem')} to mend{in_files}")
    return 1 if files else 0
