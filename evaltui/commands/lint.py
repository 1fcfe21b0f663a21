"""`evaltui lint`: every problem in eval sets and configs."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from evaltui.commands.output import complain
from evaltui.core.model.problems import Severity
from evaltui.files.lint import format_problem
from evaltui.files.lint import lint as find_problems
from evaltui.text.values import counted


def lint(paths: Sequence[Path]) -> int:
    """Print a line per problem; 1 where one of them is an error."""
    for path in paths:
        if not path.exists():
            return complain("lint", f"{path} does not exist")
    problems = find_problems(paths)
    # An id may hold what the terminal's encoding lacks.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    for problem in problems:
        print(format_problem(problem))
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    warnings = len(problems) - errors
    print(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}", file=sys.stderr)
    return 1 if errors else 0
