"""The open field of a case, and the changes of the case that its text makes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.documents.editing.set import EditBuilder
from evaltui.documents.edits import EditError
from evaltui.text.figures import counted, show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.panes.case.navigation import CaseRows
from evaltui.tui.widgets.fields import FieldText
from evaltui.workbench.fields import Completion, Field, FieldError, Kind, Part, Row, RowId
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

_MOST_CHOICES = 6
# Characters. Who has changed more is asked before that is discarded.
_MOST_DISCARDED = 200


@dataclass
class OpenedField:
    """A field between opening and closing. It keeps its widget all the time."""

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
    added_from: RowId | None = None
    """Row that the row of a fresh field was added from."""
    is_gone: bool = False
    """Whether the row was deleted from outside."""
    problem: str = ""
    """Why the text is not applied; empty if it is."""
    problem_at: tuple[int, int] | None = None
    """Line and column of the problem in the text, 0-based; None where there is no one place."""
    question: str = ""
    """What cancelling asks before a long text is discarded; empty if nothing is asked."""
    hides_choices: bool = False
    """Whether the completions were closed, until more is typed."""
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

    def asks_to_discard(self) -> bool:
        """Whether so much was changed that cancelling has to be confirmed, which `question` then asks for."""
        if self.question or self.adds is not None:
            return False
        changed = changed_characters(self.base, self.widget.typed)
        if changed > _MOST_DISCARDED:
            apply = key_of("end_text" if self.is_text else "end_field")
            cancel = key_of("leave_field")
            self.question = f"{counted(changed, 'character')} changed   {cancel} discard   {apply} apply"
        return bool(self.question)

    def kind_for(self, now: Field) -> Kind:
        """Kind in which the widget shows a value that has become another one."""
        if not self.is_text:
            return "value" if now.kind in ("text", "json") else now.kind
        if now.kind in ("text", "json"):
            return now.kind
        return "json" if now.kind == "value" else "text"

    def matches(self) -> list[Completion]:
        """Completions of what is typed; none if that is one of them already."""
        if not self.chosen_from or self.hides_choices:
            return []
        typed = self.handled
        if typed == self.field.text and self.field.live and not self.done:
            typed = ""
        if any(typed == one.text for one in self.chosen_from):
            return []
        ranks = [(_rank(typed, one.text), one) for one in self.chosen_from]
        return [one for rank, one in sorted(ranks, key=itemgetter(0)) if rank < _NO_MATCH]

    def choose_best_match(self) -> None:
        """Selects the first completion where enter should apply it."""
        self.choice, self.question, self.hides_choices = None, "", False
        if matches := self.matches():
            names = self.part == "name" or self.row[-2:-1] == ("call",) or self.adds is not None
            rank = _rank(self.handled, matches[0].text)
            # Letters in between may be another name that nobody proposes.
            self.choice = 0 if self.handled and (rank == 0 or (names and rank == 1)) else None

    @property
    def first_choice(self) -> int:
        """Index of the first completion on screen: there may be more than fit."""
        return max(0, (self.choice or 0) - _MOST_CHOICES + 1)

    def completes(self) -> bool:
        """Whether a completion is ready to be taken: it is selected, or has what was typed in it."""
        matches = self.matches()
        if not matches or self.choice is not None:
            return bool(matches)
        # Letters in between may be another text that is not on offer.
        return self.handled not in ("", self.base) and _rank(self.handled, matches[0].text) < _SCATTERED

    def choice_lines(self) -> list[tuple[Line, Line]]:
        """Completions below the field: the text of each, and more about it at its right."""
        lines: list[tuple[Line, Line]] = []
        matches, first = self.matches(), self.first_choice
        taken = (self.choice or 0) if self.adds is None and self.completes() else None
        for number, one in enumerate(matches[first : first + _MOST_CHOICES], first):
            left = _marked(one.text, self.handled, "bold" if number == self.choice else "")
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
        if self.problem:
            lines.append([("! ", "error"), (visible(self.problem), "error")])
        if self.question:
            lines.append([("! ", "warning"), (self.question, "warning")])
        return lines


def changed_outside(text: str) -> str:
    """Says that a field has this text now, and not the one that was there when it was typed in."""
    return f"Changed outside to {text[:60]}   {key_of('leave_field')} take theirs"


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


def changed_characters(before: str, after: str) -> int:
    """How many characters were replaced or typed between what both texts begin and end with."""
    same = _common(before, after)
    rest, typed = before[same:], after[same:]
    return max(len(rest), len(typed)) - _common(reversed(rest), reversed(typed))


def _common(one: Iterable[str], other: Iterable[str]) -> int:
    """How many letters are the same at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class FieldChanges:
    """Applies open fields to the case that `pane` shows."""

    def __init__(self, pane: CaseRows, workbench: Workbench) -> None:
        self._pane = pane
        self._workbench = workbench

    def now(self, field: OpenedField) -> Field | None:
        """The field as the case has it now; None where its row is gone."""
        row = self._row(field)
        return row.of(field.part) if row else None

    def _row(self, field: OpenedField) -> Row | None:
        return next((row for row in self._pane.rows if row.id == field.row), None)

    def apply(self, field: OpenedField) -> None:
        """Applies the text to the case, or sets `problem`."""
        file = self._workbench.navigation.file
        if file is None or field.adds is not None:
            return
        field.problem, field.problem_at = "", None
        try:
            make = field.field.change(field.handled)
            if problem := self._pane.selected.refuses(make):
                raise FieldError(problem)
        except (FieldError, EditError) as error:
            field.problem = str(error)
            field.problem_at = error.place if isinstance(error, FieldError) else None
        else:
            self._do(field, file, make)
        self.keep_unapplied(field)

    def _do(self, field: OpenedField, file: Path, make: EditBuilder) -> None:
        moved, after = self._renaming(field)
        notice = self._workbench.notice
        done = self._workbench.editing.do(
            field.field.label, file, make, typing=field.typing, moved=moved, after=after
        )
        if done:
            field.done = True
            self._pane.read_rows()
            self._pane.find_current()
        elif self._workbench.notice is not notice and self._workbench.notice is not None:
            # It was refused, and a notice says so.
            field.problem = self._workbench.notice.text
        if (now := self.now(field)) is not None:
            field.field = now.of_kind(field.kind)
            field.seen = field.field.text

    def _renaming(self, field: OpenedField) -> tuple[dict[CaseId, CaseId] | None, Selection | None]:
        """The keys that change with the id of the case, and the selection then."""
        case, text = self._workbench.navigation.selection.case, field.handled
        if case is None or field.row != ("id",) or text == case.eval_id:
            return None, None
        return {case: CaseId(case.path, text)}, Selection(case.path, text)

    def keep_unapplied(self, field: OpenedField) -> None:
        """What is typed and not in the case is kept while it is not, wherever the user goes meanwhile."""
        row, path = self._row(field), self._workbench.navigation.selection.path
        if row is None or path is None or field.adds is not None:
            return
        at, unapplied = self._pane.selected.place_of(row, field.part), self._workbench.editing.unapplied
        if field.problem or (field.handled != field.field.text and not field.field.live):
            unapplied.keep(path, *at, field.handled, field.problem, field.field.text)
        else:
            unapplied.drop(path, *at)

    def drop_unapplied(self, field: OpenedField) -> None:
        row, path = self._row(field), self._workbench.navigation.selection.path
        if row is not None and path is not None and field.adds is None and not field.is_gone:
            place = self._pane.selected.place_of(row, field.part)
            self._workbench.editing.unapplied.drop(path, *place)

    def finish(self, field: OpenedField) -> bool:
        """Whether all that was typed is in the case now; a selected completion counts as typed."""
        if field.is_gone:
            return False
        matches = field.matches()
        if field.choice is not None and field.choice < len(matches):
            field.widget.begin(matches[field.choice].text, selected=False)
            field.choice = None
        typed = field.widget.typed
        if typed != field.handled or not field.field.live:
            field.handled = typed
            if field.field.live or typed != field.field.text:
                self.apply(field)
        if field.problem and field.done and not field.fresh and field.seen != field.base:
            # A value that was only on the way to a text that is not valid is not left in the case, or saved.
            self.restore(field)
            field.done, field.seen = False, field.field.text
            self.keep_unapplied(field)
        return not field.problem

    def restore(self, field: OpenedField) -> None:
        """Undoes what was typed into this field, and no other step."""
        if field.done:
            self._workbench.editing.undo_typing(field.typing)
            self._pane.read_rows()
        now, file = self.now(field), self._workbench.navigation.file
        if field.fresh or field.is_gone or now is None or file is None:
            return
        field.field = now.of_kind(field.kind)
        if field.done and field.field.text == field.seen != field.base and field.field.live:
            # Something else was done since: that stays, and what was there before is typed again.
            make = field.field.change(field.base)
            self._workbench.editing.do(field.field.label, file, make, typing=field.typing)

    def take_over(self, field: OpenedField) -> bool:
        """Takes over what was changed elsewhere in the row; False where the field has to be closed."""
        if field.adds is not None or field.is_gone:
            return True
        if self._pane.selected.case != field.case:
            return False
        now = self.now(field)
        if now is None:
            return self._keep_without_row(field)
        # The agent may have told of its tools only now.
        field.chosen_from = now.completions
        if now.of_kind(field.kind).text == field.seen:
            return True
        was_typed = bool(field.problem) or field.widget.typed != field.handled or not field.field.live
        if was_typed and field.widget.typed != field.seen:
            field.field = now.of_kind(field.kind)
            field.seen = field.base = field.field.text
            field.problem = changed_outside(field.seen)
            self.keep_unapplied(field)
            return True
        # It begins anew, as what it is now.
        field.kind = field.kind_for(now)
        field.field = now.of_kind(field.kind)
        field.seen = field.base = field.field.text
        field.widget.begin(field.field.text, selected=False, is_json=field.kind == "json")
        field.handled, field.problem = field.widget.typed, ""
        return True

    def _keep_without_row(self, field: OpenedField) -> bool:
        """What is typed at a line that somebody else has taken out stays there to be read and copied."""
        if not self._pane.rows or field.widget.typed == field.base:
            return False
        field.is_gone = True
        field.row = self._pane.rows[self._pane.current].id
        cancel = key_of("leave_field")
        field.problem = f"This line was deleted outside; the text cannot be applied   {cancel} cancel"
        return True
