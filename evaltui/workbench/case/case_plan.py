"""One undo step for edits of cases in several sets, and of the configs beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.case_file import CaseFile
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.config import ConfigEditor, new_config_text
from evaltui.documents.editing.set import SetEditor
from evaltui.documents.edits import Edit, EditError
from evaltui.documents.values import copy_of, edits_of
from evaltui.text.keys import key_of
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.case.steps import Step
from evaltui.workbench.state import Selection


@contextmanager
def show_errors(say: Callable[[str], None]) -> Iterator[None]:
    """Shows the error of the block as a message instead of raising it."""
    try:
        yield
    except (EditError, EvalSetError, OSError, ValueError) as error:
        say(str(error))


class Plan:
    """Copies of several sets and their configs, whose changes become one step."""

    def __init__(self, editing: Editing) -> None:
        self._editing = editing
        self._copies: dict[Path, Any] = {}

    def of(self, path: Path) -> SetEditor:
        """A set and its config, to be changed; sets that share a config get the same object for it."""
        config = self._editing.sets.config_path(path)
        if path not in self._copies:
            copied = self._editing.copy_set(path)
            self._copies[path] = copied.data
            self._copies.setdefault(config, copied.config)
        return SetEditor(self._copies[path], self._copies[config])

    @property
    def edits(self) -> dict[Path, list[Edit]]:
        """The edits for each changed file."""
        return {path: edits for path, copy in self._copies.items() if (edits := edits_of(copy))}

    def do(
        self,
        label: str,
        after: Selection,
        done: Callable[[], None],
        moved: Mapping[CaseId, CaseId] | None = None,
    ) -> None:
        """Applies all changes as one step, and calls `done` then."""
        if self._editing.do_edits(label, self.edits, after=after, moved=moved):
            done()


def preview_config(
    editing: Editing, set_path: Path, change: Callable[[ConfigEditor], object]
) -> tuple[CaseFile, CaseFile]:
    """The config of a set as it is, or a new one where there is none, and as a change would leave it.

    Raises OSError, EvalSetError, EditError.
    """
    path = editing.sets.config_path(set_path)
    before = editing.document(path) if editing.is_there(path) else JsonDocument(new_config_text())
    config = ConfigEditor(copy_of(before.value))
    change(config)
    return before, before.edited(edits_of(config.config))


def change_config(
    editing: Editing,
    label: str,
    set_path: Path,
    change: Callable[[ConfigEditor], object],
    *,
    extends: Step | None = None,
    scores_later: bool = False,
) -> bool:
    """Changes the config of a set as one step; parameters as of `Editing.change_files`.

    False, with a message, where that fails.
    """
    with show_errors(editing.say):
        before, after = preview_config(editing, set_path, change)
        changes = {} if after.has_text_of(before) else {editing.sets.config_path(set_path): after}
        return editing.change_files(label, changes, extends=extends, scores_later=scores_later)
    return False


def ids_by_file(editing: Editing, cases: Sequence[CaseId]) -> dict[Path, list[str]]:
    """The ids of cases, by file."""
    by_path: dict[str, list[str]] = {}
    for case in cases:
        by_path.setdefault(case.path, []).append(case.eval_id)
    return {editing.sets.file_of(path): eval_ids for path, eval_ids in by_path.items()}


def numbers_in_sets(editing: Editing, cases: Sequence[CaseId]) -> dict[Path, list[int]]:
    """The numbers of cases in their sets, from 0 and in order. Raises EditError where they are ambiguous or
    missing."""
    return {
        path: numbers_of(SetEditor(editing.data(path)), path, eval_ids)
        for path, eval_ids in ids_by_file(editing, cases).items()
    }


def numbers_of(eval_set: SetEditor, path: Path, eval_ids: Sequence[str]) -> list[int]:
    looked_for = set(eval_ids)
    numbers = [number for number, eval_id in enumerate(eval_set.eval_ids) if eval_id in looked_for]
    if len(numbers) > len(looked_for):
        raise EditError(f"{path.name} has several cases with this id   {key_of('rename')}  Rename case")
    if len(numbers) < len(looked_for):
        raise EditError(
            f"{path.name} changed on disk; some of these cases are missing   {key_of('reload')}  Reload"
        )
    return numbers


def ids_at(here: SetEditor, numbers: Sequence[int]) -> list[str]:
    ids = here.eval_ids
    return [ids[number] for number in numbers]


def keys_at(here: SetEditor, path: str, first: int, count: int) -> list[CaseId]:
    return [CaseId(path, eval_id) for eval_id in ids_at(here, range(first, first + count))]


def moves(shown: Sequence[int], to_move: Collection[int], step: int) -> Iterator[tuple[int, int]]:
    """The moves, one after the other, that bring each case of `to_move` one place on among the shown
    cases."""
    forward = list(shown) if step < 0 else list(reversed(shown))
    at = 1
    while at < len(forward):
        end = at
        while end < len(forward) and forward[end] in to_move:
            end += 1
        if end > at and forward[at - 1] not in to_move:
            yield from _moves_past(forward[at - 1], forward[at:end], step)
        at = end + 1


def _moves_past(other: int, run: Sequence[int], step: int) -> Iterator[tuple[int, int]]:
    """The moves that bring cases, the nearest one first, past another one."""
    if abs(run[-1] - other) == len(run):
        # With nothing hidden between them, that one goes past all of them.
        yield other, run[-1]
        return
    for done, number in enumerate(run):
        yield number, other - step * done


def gathering_moves(numbers: Sequence[int], index: int) -> Iterator[tuple[int, int]]:
    """The moves, one after the other, that bring cases of a list together before the case at `index`."""
    above = [number for number in numbers if number < index]
    for done, number in enumerate(above):
        yield number - done, index - 1
    for done, number in enumerate(number for number in numbers if number >= index):
        yield number, index + done
