"""A value in full, as coloured JSON; and the sides of a difference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pygments.lexers.data import JsonLexer
from pygments.token import Keyword, Name, Number, String

from evaltui.text.lines import Line
from evaltui.text.values import type_change, visible, visible_lines
from evaltui.tui.pages.writer import Difference, Page

# An image in base64 is megabytes that nobody reads.
_MOST_CHARACTERS = 200_000
_TONES = {Name.Tag: "key", String: "string", Number: "number", Keyword: "number"}


def write_json(page: Page, value: Any, indent: int = 2) -> None:
    """Every line behind `indent` cells; what goes on in the next line is indented once more."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=repr)
    left_out = len(text) - _MOST_CHARACTERS
    for line in _coloured(text[:_MOST_CHARACTERS]):
        first = line[0][0] if line else ""
        margin = indent + len(first) - len(first.lstrip(" "))
        page.hanging([(" " * indent, ""), *line], min(margin + 2, page.width // 2))
    if left_out > 0:
        page.row((" " * indent, ""), (f"… {left_out:,} characters are left out here", "yellow"))


def _coloured(text: str) -> Iterator[Line]:
    line: Line = []
    for token, written in JsonLexer().get_tokens(text):
        tone = next((tone for kind, tone in _TONES.items() if token[: len(kind)] == kind), "dim")
        before, *others = written.split("\n")
        line.append((visible(before), tone))
        for other in others:
            yield [span for span in line if span[0]]
            line = [(visible(other), tone)]
    if any(span for span, _ in line):
        yield line


def write_sides(page: Page, difference: Difference) -> None:
    """What differs, on both sides, nothing cut."""
    sides = difference.sides
    if kind := type_change(sides.get("expected"), sides.get("actual")):
        page.row((f"the type is another one: {kind}", "yellow"))
    for title, value in sides.items():
        page.blank()
        page.row((title.capitalize(), "bold"))
        _write_value(page, value)


def _write_value(page: Page, value: Any) -> None:
    write_json(page, value)
    if isinstance(value, str) and "\n" in value:
        page.blank()
        page.row(("  as text", "dim"))
        for line in visible_lines(value):
            page.block([(line, "")], 2)
