"""`evaltui lint`: checking eval sets and configs, and mending them."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import groupby
from pathlib import Path

from evaltui.commands.output import complain, write_stderr
from evaltui.core.model.problems import errors_in
from evaltui.documents.saving import ChangedOutsideError, save
from evaltui.project.lint import lint as find_problems
from evaltui.project.lint import mended_files
from evaltui.reports.lint_report import render_problems
from evaltui.text.figures import counted
from evaltui.text.values import without_commands

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


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


def diff_lines(name: str, before: str, after: str, context: int = 3) -> list[str]:
    """A unified diff of two texts of a file."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    if len(old) == len(new):
        # Most changes are inside lines; difflib takes minutes for thousands of them.
        lines = _diff_of_pairs(name, old, new, context)
    else:
        lines = unified_diff(old, new, name, name, n=context)
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _diff_of_pairs(name: str, old: Sequence[str], new: Sequence[str], context: int) -> Iterator[str]:
    """A unified diff of texts with as many lines, of which those at the same place belong together."""
    changed = [number for number, (before, after) in enumerate(zip(old, new, strict=True)) if before != after]
    if changed:
        yield from (f"--- {name}\n", f"+++ {name}\n")
    for hunk in _groups(changed, 2 * context + 1):
        start, end = max(0, hunk[0] - context), min(len(old), hunk[-1] + context + 1)
        place = f"{start + 1},{end - start}" if end - start > 1 else str(start + 1)
        yield f"@@ -{place} +{place} @@\n"
        for is_changed, numbers in groupby(range(start, end), {*hunk}.__contains__):
            lines = list(numbers)
            yield from (f"-{old[number]}" for number in lines if is_changed)
            yield from (f"{'+' if is_changed else ' '}{new[number]}" for number in lines)


def _groups(numbers: Sequence[int], most: int) -> Iterator[list[int]]:
    """Ascending numbers in groups: neighbours in a group are at most `most` apart."""
    group: list[int] = []
    for number in numbers:
        if group and number - group[-1] > most:
            yield group
            group = []
        group.append(number)
    if group:
        yield group
