"""`evaltui lint`: checking eval sets and configs, and mending them."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from evaltui.commands.output import UsageError, save_all, write_stderr
from evaltui.core.model.problems import Problem, errors_in, format_path
from evaltui.documents.line_changes import diff_lines
from evaltui.documents.saving import Write
from evaltui.project.folders import seen_from_here
from evaltui.project.lint import format_problem, lint_rules, mended_files
from evaltui.project.lint import lint as find_problems
from evaltui.text.figures import counted
from evaltui.text.values import without_commands

LintFormat = Literal["console", "json", "sarif", "github"]
VERSION = 1
"""The version of the JSON format."""

_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://pypi.org/project/evaltui/"


def render_problems(problems: Sequence[Problem], form: LintFormat) -> str:
    """The problems in a format; every line ends with a newline."""
    return _FORMS[form](problems)


def _console(problems: Sequence[Problem]) -> str:
    return "".join(f"{format_problem(problem)}\n" for problem in problems)


def _json(problems: Sequence[Problem]) -> str:
    rows = [
        {
            "severity": problem.severity.value,
            "rule": problem.rule.id,
            "file": problem.file,
            "line": problem.line,
            "path": format_path(problem.path),
            "message": problem.message,
        }
        for problem in problems
    ]
    return _json_text({"version": VERSION, "problems": rows})


def _sarif(problems: Sequence[Problem]) -> str:
    """The problems as SARIF 2.1.0, for code scanning services."""
    rules = [{"id": rule.id, "shortDescription": {"text": rule.meaning}} for rule in lint_rules()]
    driver = {"name": "evaltui", "informationUri": _HOME, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [*map(_result, problems)],
    }
    return _json_text({"$schema": _SARIF, "version": "2.1.0", "runs": [run]})


def _result(problem: Problem) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": problem.rule.id,
        "level": problem.severity.value,
        "message": {"text": problem.sentence},
    }
    if problem.file is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(seen_from_here(Path(problem.file)))}}
        if problem.line is not None:
            place["region"] = {"startLine": problem.line}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _github(problems: Sequence[Problem]) -> str:
    """The problems as workflow commands of GitHub Actions, which shows each beside its line."""
    return "".join(f"{_command(problem)}\n" for problem in problems)


def _command(problem: Problem) -> str:
    places = {"file": problem.file and seen_from_here(Path(problem.file)), "line": problem.line}
    properties = ",".join(
        f"{name}={_escape_property(str(value))}" for name, value in places.items() if value is not None
    )
    return (
        f"::{problem.severity.value}{' ' if properties else ''}{properties}::{_escape_text(problem.sentence)}"
    )


def _escape_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_text(text).replace(":", "%3A").replace(",", "%2C")


def _json_text(data: Any) -> str:
    return f"{json.dumps(data, indent=2)}\n"


_FORMS: Mapping[LintFormat, Callable[[Sequence[Problem]], str]] = {
    "console": _console,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}


def lint(options: argparse.Namespace) -> int:
    """Prints the problems; 1 where there is an error. With `--fix`, the problems that remain."""
    paths: Sequence[Path] = options.paths
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist")
    # An id may hold what the terminal's encoding lacks.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if options.diff:
        return _show_mends(paths)
    if options.fix:
        _mend(paths)
    problems = find_problems(paths)
    text = render_problems(problems, options.format)
    print(without_commands(text) if options.format == "console" else text, end="")
    errors = len(errors_in(problems))
    warnings = len(problems) - errors
    mendable = 0 if options.fix else sum(len(file.mends) for file in mended_files(paths))
    hint = f"; --fix mends {mendable}" if mendable else ""
    write_stderr(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}{hint}")
    return 1 if errors else 0


def _mend(paths: Sequence[Path]) -> None:
    """Mends files one by one and prints the changes. Raises UsageError where a file cannot be written."""
    for file in mended_files(paths):
        path, seen = file.source.path, file.source.fingerprint
        save_all([Write(path, file.text, seen)], f"{path} cannot be written")
        write_stderr(*(mend.located("fixed") for mend in file.mends))


def _show_mends(paths: Sequence[Path]) -> int:
    """Prints the possible mends; returns 1 where there are any."""
    files = list(mended_files(paths))
    for file in files:
        sys.stdout.writelines(diff_lines(str(file.source.path), file.source.text, file.text))
    mends = sum(len(file.mends) for file in files)
    in_files = f" in {counted(len(files), 'file')}" if files else ""
    write_stderr(f"{counted(mends, 'problem')} to mend{in_files}")
    return 1 if files else 0
