"""A difference in full: nothing of its values is cut."""

from __future__ import annotations

from typing import Any

from evaltui.text.values import type_change, visible_lines
from evaltui.tui.pages.json_value import write_json
from evaltui.tui.pages.writer import Difference, Page


def write_sides(page: Page, difference: Difference) -> None:
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
