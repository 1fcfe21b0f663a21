"""The problems that `evaltui lint` finds, for people, editors and CI."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from evaltui.core.model.problems import Problem, format_path
from evaltui.project.folders import seen_from_here
from evaltui.project.lint import format_problem, lint_rules

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
