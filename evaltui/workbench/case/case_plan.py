"""One undo step for edits of cases in several sets, and of the configs beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.case_file import CaseFile
from evaltui.documents.editing.set import SetEditor
from evaltui.documents.edits import Edit, EditError
from evaltui.documents.problems import check_new_cases
from evaltui.documents.values import edits_of
from evaltui.text.keys import key_of
from evaltui.workbench.agent.background import Progress, in_thread
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.state import Selection

# Edits that take noticeably long.
_MANY = 100


@contextmanager
def refusing(say: Callable[[str], None]) -> Iterator[None]:
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
            copied = self._editing.copied(path)
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
        """Applies all changes as one step, and calls `done` then; many edits are computed in a thread."""
        edits = self.edits
        if sum(map(len, edits.values())) >= _MANY:
            # The edits are of the files as they are at this moment, and no later.
            with refusing(self._editing.say):
                before = self._editing.opened(edits)
                self._editing.background.start(self._do_many(edits, before, label, after, done, moved))
        elif self._editing.do_edits(label, edits, after=after, moved=moved):
            done()

    async def _do_many(
        self,
        edits: Mapping[Path, list[Edit]],
        before: Mapping[Path, CaseFile],
        label: str,
        after: Selection,
        done: Callable[[], None],
        moved: Mapping[CaseId, CaseId] | None,
    ) -> None:
        editing = self._editing
        with refusing(editing.say):
            with editing.background.progress(f"{label} …"):
                progress = Progress()
                made = await in_thread(lambda: _edited_files(before, edits, progress), progress)
            for path, document in editing.opened(before).items():
                if not document.has_text_of(before[path]):
                    raise EditError(f"{path.name} changed meanwhile; try again")
            if editing.do_edits(label, made, after=after, moved=moved):
                done()


def _edited_files(
    before: Mapping[Path, CaseFile], edits: Mapping[Path, list[Edit]], progress: Progress
) -> dict[Path, CaseFile]:
    """In a thread: the edited files. Raises EditError."""
    documents: dict[Path, CaseFile] = {}
    for path, document in before.items():
        documents[path] = document.edited(edits[path])
        check_new_cases(documents[path], document.cases)
        progress.done += len(edits[path])
    return documents


def by_file(editing: Editing, cases: Sequence[CaseId]) -> dict[Path, list[str]]:
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
        for path, eval_ids in by_file(editing, cases).items()
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
            yield from _past(forward[at - 1], forward[at:end], step)
        at = end + 1


def _past(other: int, run: Sequence[int], step: int) -> Iterator[tuple[int, int]]:
    """The moves that bring cases, the nearest one first, past another one."""
    if abs(run[-1] - other) == len(run):
        # With nothing hidden between them, that one goes past all of them.
        yield other, run[-1]
        return
    for done, number in enumerate(run):
        yield number, other - step * done


def gathered(numbers: Sequence[int], index: int) -> Iterator[tuple[int, int]]:
    """The moves, one after the other, that bring cases of a list together before the case at `index`."""
    above = [number for number in numbers if number < index]
    for done, number in enumerate(above):
        yield number - done, index - 1
    for done, number in enumerate(number for number in numbers if number >= index):
        yield number, index + done
