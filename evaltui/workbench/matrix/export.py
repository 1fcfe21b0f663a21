"""A matrix written to a file, in the format that its name asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from evaltui.documents.files import write_atomically
from evaltui.files.packages import extra_command
from evaltui.files.settings import secrets_of
from evaltui.reports.matrix_report import MatrixReport, stored_matrix_report
from evaltui.runs.matrices import OpenMatrix


def _html(report: MatrixReport) -> str:
    from evaltui.reports.html.matrix_page import html_matrix

    return html_matrix(report)


def _markdown(report: MatrixReport) -> str:
    from evaltui.reports.markdown_matrix import markdown_matrix

    return markdown_matrix(report)


def _json(report: MatrixReport) -> str:
    from evaltui.reports.matrix_json import matrix_json

    return json.dumps(matrix_json(report), indent=2, ensure_ascii=False) + "\n"


def _csv(report: MatrixReport) -> str:
    from evaltui.reports.matrix_csv import matrix_csv

    return matrix_csv(report)


_FORMATS: Mapping[str, Callable[[MatrixReport], str]] = {
    ".html": _html,
    ".md": _markdown,
    ".json": _json,
    ".csv": _csv,
}


def refuses_file(name: str) -> str | None:
    """Why no matrix can be written to a file of this name, as a sentence."""
    path = Path(name.strip()).expanduser()
    if path.suffix not in _FORMATS:
        return f"The name ends in {', '.join(_FORMATS)}"
    if not path.parent.is_dir():
        return f"The folder {path.parent} does not exist"
    if path.exists():
        # It may be an eval set, or somebody's notes.
        return f"{path.name} already exists"
    if path.suffix == ".html" and find_spec("jinja2") is None:
        return f"Jinja2 is not installed. Run {extra_command('report')}"
    return None


def free_name() -> str:
    """The name that is suggested: of a file that is not there yet."""
    names = ("matrix.html", *(f"matrix-{number}.html" for number in range(2, 100)))
    return next((name for name in names if not Path(name).exists()), names[0])


def export_matrix(opened: OpenMatrix, name: str, agent_dir: Path) -> str:
    """Writes it, in a thread; returns what came of that, as a sentence."""
    path = Path(name.strip()).expanduser()
    try:
        write_atomically(path, _FORMATS[path.suffix](stored_matrix_report(opened, secrets_of(agent_dir))))
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}"
    return f"Wrote {path}"
