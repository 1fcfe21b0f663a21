"""The field of a case that is being edited: its text, what completes it, and why it is not applied."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.widgets.field import FieldText
from evaltui.workbench.fields import Completion, Field, Kind, Part, RowId

_MOST_CHOICES = 6
_LINE_HINT = "enter keeps it · tab goes on · esc takes it back"
_ADD_HINT = "enter adds it · type to find it · esc leaves"
_TEXT_HINT = "ctrl+s saves · tab goes on · esc keeps it and leaves"


@dataclass
class OpenedField:
    """A field between opening and closing. It keeps its widget, whatever is typed."""

    row: RowId
    """Row of the case that the field belongs to."""
    part: Part
    """Value or name of the row."""
    field: Field
    """The field as the case has it now."""
    kind: Kind
    """Kind it was opened with."""
    widget: FieldText
    """Widget that the text is typed in."""
    typing: Hashable
    """Key that joins all that is typed into one undo step."""
    handled: str
    """Text that was last read from the widget."""
    seen: str
    """Text of the case when it was last read."""
    base: str
    """Text that cancelling restores."""
    fresh: bool
    """Whether the field belongs to something added right before."""
    done: bool
    """Whether anything was applied to the case."""
    is_gone: bool = False
    """Whether the row was deleted from outside."""
    problem: str = ""
    """Why the text is not applied; empty if it is."""
    choice: int | None = None
    """Index of the selected completion, 0-based; None if none is."""
    chosen_from: tuple[Completion, ...] = ()
    """Completions on offer."""
    adds: dict[str, Callable[[], None]] | None = None
    """What can be added, by label; None unless the field chooses what to add."""

    @property
    def is_text(self) -> bool:
        """Whether it was opened as a text of many lines."""
        return self.kind in ("text", "json")

    @property
    def case(self) -> Any:
        """The case that the field belongs to."""
        return self.typing[1] if isinstance(self.typing, tuple) else None

    @property
    def hint(self) -> str:
        if self.adds is not None:
            return _ADD_HINT
        return _TEXT_HINT if self.is_text else _LINE_HINT

    def kind_for(self, now: Field) -> Kind:
        """Kind in which the widget shows a value that has become another one."""
        if not self.is_text:
            return "value" if now.kind in ("text", "json") else now.kind
        if now.kind in ("text", "json"):
            return now.kind
        return "json" if now.kind == "value" else "text"

    def matches(self) -> list[Completion]:
        """Completions of what is typed; none if that is one of them already."""
        if not self.chosen_from:
            return []
        typed = self.handled
        if typed == self.field.text and self.field.live and not self.done:
            typed = ""
        if any(typed == one.text for one in self.chosen_from):
            return []
        wanted = typed.casefold()
        found = [one for one in self.chosen_from if wanted in one.text.casefold()]
        return sorted(found, key=lambda one: not one.text.casefold().startswith(wanted)) if typed else found

    def choose_best_match(self) -> None:
        """Selects the first completion where enter should apply it."""
        self.choice = None
        if matches := self.matches():
            names = self.part == "name" or self.row[-2:-1] == ("call",) or self.adds is not None
            begins = matches[0].text.casefold().startswith(self.handled.casefold())
            self.choice = 0 if self.handled and (names or begins) else None

    @property
    def first_choice(self) -> int:
        """Index of the first completion on screen: there may be more than fit."""
        return max(0, (self.choice or 0) - _MOST_CHOICES + 1)

    def lines_below(self) -> list[Line]:
        """Completions and the problem, drawn below the field."""
        lines: list[Line] = []
        matches, first = self.matches(), self.first_choice
        for number, one in enumerate(matches[first : first + _MOST_CHOICES], first):
            chosen = number == self.choice
            detail = f"  {one.detail.splitlines()[0][:80]}" if one.detail else ""
            lines.append(
                [
                    ("› " if chosen else "  ", "accent"),
                    (visible(one.text), "accent" if chosen else ""),
                    (visible(detail), "dim"),
                ]
            )
        if len(matches) > first + _MOST_CHOICES:
            lines.append([(f"  … {len(matches) - first - _MOST_CHOICES} more", "dim")])
        if self.problem:
            lines.append([("! ", "red"), (visible(self.problem), "red")])
        return lines
