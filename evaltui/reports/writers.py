"""The table of report formats, with the functions that write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Writer(NamedTuple):
    """A report format; a function is given as `module:name`, with a module in `reports`."""

    of_run: str
    matrix_function: str = ""
    """The function for a matrix; "" for a format without one."""


WRITERS: Mapping[str, Writer] = {
    "console": Writer("console:render_console", "console:render_matrix"),
    "json": Writer("json_report:json_report", "json_report:matrix_json"),
    "junit": Writer("junit:junit_report"),
    "csv": Writer("csv_report:csv_report", "csv_report:matrix_csv"),
    "markdown": Writer("markdown_report:markdown_report", "markdown_report:markdown_matrix"),
    "html": Writer("html.page:html_report", "html.matrix_page:html_matrix"),
}


def render_report(function: str, report: object, **layout: Any) -> str | Iterable[str]:
    """The text of a report, or its pieces; only the module of the function is imported. `layout` has the
    colour and width of a console report."""
    module, _, name = function.partition(":")
    text: str | Iterable[str] = getattr(import_module(f"evaltui.reports.{module}"), name)(report, **layout)
    return text
