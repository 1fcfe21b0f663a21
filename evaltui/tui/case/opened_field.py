"""The open field of a case: the draft in it, and what is proposed for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

from evaltui.text.figures import show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.widgets.fields import FieldText
from evaltui.workbench.case.draft import Draft
from evaltui.workbench.case.fields import Completion, RowId

_MOST_CHOICES = 6


@dataclass
class OpenedField:
    """A field between opening and closing. It keeps its widget all the time."""

    draft: Draft
    """What is typed in it."""
    widget: FieldText
    """Widget that the text is typed in."""
    added_from: RowId | None = None
    """Row that the row of the field was added from right before; None for one that was there."""
    hides_choices: bool = False
    """Whether the completions were closed, until more is typed."""
    choice: int | None = None
    """Index of the selected completion, 0-based; None if none is."""
    adds: dict[str, Callable[[], None]] | None = None
    """What can be added, by label; None unless the field chooses what to add, so that nothing is drafted."""

    def matches(self) -> list[Completion]:
        """Completions of what is typed; none if that is one of them already."""
        choices, typed = self.draft.field.completions, self.draft.text
        if not choices or self.hides_choices:
            return []
        if not self.draft.is_typed and self.added_from is None:
            typed = ""
        if any(typed == one.text for one in choices):
            return []
        ranks = [(_rank(typed, one.text), one) for one in choices]
        return [one for rank, one in sorted(ranks, key=itemgetter(0)) if rank < _NO_MATCH]

    def choose_best_match(self) -> None:
        """Selects the first completion where enter should apply it."""
        self.choice, self.hides_choices = None, False
        if matches := self.matches():
            draft = self.draft
            names = draft.part == "name" or self._is_tool or self.adds is not None
            rank = _rank(draft.text, matches[0].text)
            # Letters in between may be another name that nobody proposes.
            self.choice = 0 if draft.text and (rank == 0 or (names and rank == 1)) else None

    @property
    def _is_tool(self) -> bool:
        """Whether it is the name of a tool that is called."""
        return self.draft.row[-2:-1] == ("call",)

    @property
    def first_choice(self) -> int:
        """Index of the first completion on screen: there may be more than fit."""
        return max(0, (self.choice or 0) - _MOST_CHOICES + 1)

    def completes(self) -> bool:
        """Whether a completion is ready to be taken: it is selected, or has what was typed in it."""
        matches = self.matches()
        if not matches or self.choice is not None:
            return bool(matches)
        # Letters in between may be another text that is not on offer, but tools are all on offer.
        typed = self.draft.text
        most = _NO_MATCH if self._is_tool else _SCATTERED
        return self.draft.is_typed and typed != "" and _rank(typed, matches[0].text) < most

    def choice_lines(self) -> list[tuple[Line, Line]]:
        """Completions below the field: the text of each, and more about it at its right."""
        lines: list[tuple[Line, Line]] = []
        matches, first = self.matches(), self.first_choice
        taken = (self.choice or 0) if self.adds is None and self.completes() else None
        for number, one in enumerate(matches[first : first + _MOST_CHOICES], first):
            left = _marked(one.text, self.draft.text, "bold" if number == self.choice else "")
            if one.detail:
                left.append((visible(f"  {one.detail.splitlines()[0][:80]}"), "muted"))
            tab: Line = [(key_of("next_field"), "bold accent"), (" complete", "muted")]
            lines.append((left, tab if number == taken else []))
        if len(matches) > first + _MOST_CHOICES:
            lines.append(([(f"… {show_number(len(matches) - first - _MOST_CHOICES)} more", "muted")], []))
        return lines

    def lines_below(self) -> list[Line]:
        """The problem and the question, drawn below the field."""
        lines: list[Line] = []
        if self.draft.problem:
            lines.append([("! ", "error"), (visible(self.draft.problem), "error")])
        if self.draft.question:
            lines.append([("! ", "warning"), (self.draft.question, "warning")])
        return lines


_SCATTERED, _NO_MATCH = 2, 3


def _rank(typed: str, text: str) -> int:
    """0 where a text begins with what is typed, 1 where it has it, 2 where it has its letters in order."""
    wanted, found = typed.casefold(), text.casefold()
    if wanted in found:
        return 0 if found.startswith(wanted) else 1
    return _SCATTERED if len(_letters(typed, text)) == len(typed) else _NO_MATCH


def _letters(typed: str, text: str) -> list[int]:
    """Where the letters that are typed are in a text, as far as they are there in order."""
    found, wanted = text.casefold(), typed.casefold()
    if (start := found.find(wanted)) >= 0:
        return [*range(start, start + len(typed))]
    places: list[int] = []
    for letter in wanted:
        start = found.find(letter, places[-1] + 1 if places else 0)
        if start < 0:
            break
        places.append(start)
    return places


def _marked(text: str, typed: str, role: str) -> Line:
    """A text with the letters that are typed in the accent."""
    places = set(_letters(typed, text))
    return [(visible(letter), "bold accent" if at in places else role) for at, letter in enumerate(text)]
