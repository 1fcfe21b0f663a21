"""The templates of the HTML pages, which escape every text, and the content security policy of a page."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from evaltui.reports.html.painting import (
    Verdict,
    judged_lines,
    long_text,
    mark,
    percent,
    sides,
    traceback,
)
from evaltui.text.figures import show_number
from evaltui.text.syntax import color_json
from evaltui.text.values import visible_block
from evaltui.views.rows import argument_rows

_FOLDER = Path(__file__).parent


def policy(style: str, script: str = "") -> str:
    """The content security policy of a page: its script and styles are allowed by their hashes, nothing else
    is loaded."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    scripts = f"script-src 'sha256-{hashes[0]}'; " if script else ""
    return (
        f"default-src 'none'; {scripts}style-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def own_text(name: str) -> str:
    """The text of a file in this folder."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def markup(text: str) -> Any:
    """A text marked as HTML, which templates do not escape."""
    return Markup(text)


@cache
def environment() -> Environment:
    """The environment of the templates: every written text is escaped and has no control characters."""

    def safe(value: Any) -> Any:
        return visible_block(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    templates = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=safe,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "colored": color_json,
        "figure": show_number,
        "verdict": Verdict,
        "sides": sides,
        "mark": mark,
        "arguments": argument_rows,
        "judged_lines": judged_lines,
        "long_text": long_text,
        "percent": percent,
        "traceback": traceback,
    }
    return templates
