"""How edits of cases in several sets, and of the configs beside them, become one step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.json_values import list_at
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.case_file import CaseFile
from evaltui.documents.editing.json_paths import Changes, cases_path
from evaltui.documents.editing.set import SetEditor, Transfer
from evaltui.documents.edits import Edit, EditError, Insert, Move, Put, Remove, apply_to_data
from evaltui.documents.problems import check_new_cases
from evaltui.text.keys import key_of
from evaltui.workbench.background import Progress, in_thread
from evaltui.workbench.editing import Editing
from evaltui.workbench.state import Selection

# Edits that take noticeably long.
_MANY = 100


@contextmanager
def refusing(say: Callable[[str], None]) -> Iterator[None]:
    """What cannot be done is said, and then nothing is done."""
    try:
        yield
    except (EditError, EvalSetError, OSError, ValueError) as error:
        say(str(error))


class Plan:
    """Edits of several files that will be one step; what follows sees what was planned before."""

    def __init__(self, editing: Editing) -> None:
        self._editing = editing
        self._sets: dict[Path, Any] = {}
        self._configs: dict[Path, Any] = {}
        self.edits: dict[Path, list[Edit]] = {}

    def of(self, path: Path) -> SetEditor:
        """A set and its config; sets with the same config have it as the same object."""
        if path not in self._sets:
            self._sets[path] = self._editing.data(path)
        config = self._editing.sets.config_path(path)
        if config not in self._configs:
            self._configs[config] = self._editing.config_for_edit(path)
        return SetEditor(self._sets[path], self._configs[config])

    def target(self, path: Path, source: SetEditor) -> SetEditor:
        """As `of`; without a config it has a new one, where marks and rules might come with the cases."""
        target = self.of(path)
        if target.config is None and source.config is not None:
            return replace(target, config=_new_config())
        return target

    def transfer(self, source: Path, target: Path, transfer: Transfer) -> None:
        self.add(source, transfer.source)
        self.add(target, transfer.target)

    def add(self, path: Path, changes: Changes) -> None:
        here = self.of(path)
        if changes.of_set:
            self.edits.setdefault(path, []).extend(changes.of_set)
            self._sets[path] = _with_cases(here.data, changes.of_set)
        if changes.of_config:
            file = self._editing.sets.config_path(path)
            self.edits.setdefault(file, []).extend(changes.of_config)
            config = _new_config() if here.config is None else here.config
            self._configs[file] = apply_to_data(config, changes.of_config)

    def do(
        self,
        label: str,
        after: Selection,
        done: Callable[[], None],
        moved: Mapping[CaseId, CaseId] | None = None,
    ) -> None:
        """Does it all as one step, and calls `done` then; many edits are worked out in a thread."""
        if sum(map(len, self.edits.values())) >= _MANY:
            # The edits are of the files as they are at this moment, and no later.
            with refusing(self._editing.say):
                before = self._editing.opened(self.edits)
                self._editing.background.start(self._do_many(before, label, after, done, moved))
        elif self._editing.do_edits(label, self.edits, after=after, moved=moved):
            done()

    async def _do_many(
        self,
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
                made = await in_thread(lambda: self._made(before, progress), progress)
            for path, document in editing.opened(before).items():
                if not document.has_text_of(before[path]):
                    raise EditError(f"{path.name} changed meanwhile; try again")
            if editing.do_edits(label, made, after=after, moved=moved):
                done()

    def _made(self, before: Mapping[Path, CaseFile], progress: Progress) -> dict[Path, CaseFile]:
        """In a thread: what the edits make of files. Raises EditError."""
        documents: dict[Path, CaseFile] = {}
        for path, document in before.items():
            documents[path] = document.edited(self.edits[path])
            check_new_cases(documents[path], document.cases)
            progress.done += len(self.edits[path])
        return documents


def _new_config() -> Any:
    # It knows the metrics, which build on the models.
    from evaltui.documents.editing.config import new_config

    return new_config()


def _with_cases(data: Any, edits: Sequence[Edit]) -> Any:
    """A set after edits of its list of cases; the cases stay the same objects, so that it is fast."""
    (key,) = cases_path(data)
    found = list(list_at(data, (key,)))
    for edit in edits:
        match edit:
            case Insert(_, index, value):
                found.insert(index, value)
            case Remove((_, int(index))):
                del found[index]
            case Move(_, index, to):
                found.insert(to, found.pop(index))
            case Put(_, list(value)):
                found = value
    return {**data, key: found}


def by_file(editing: Editing, cases: Sequence[CaseId]) -> dict[Path, list[str]]:
    """The ids of cases, by the files that they are in."""
    found: dict[str, list[str]] = {}
    for case in cases:
        found.setdefault(case.path, []).append(case.eval_id)
    return {editing.sets.file_of(path): eval_ids for path, eval_ids in found.items()}


def numbers_in_sets(editing: Editing, cases: Sequence[CaseId]) -> dict[Path, list[int]]:
    """Which cases of their sets they are, from 0 and in order. Raises EditError where that is not clear."""
    return {
        path: numbers_of(SetEditor(editing.data(path)), path, wanted)
        for path, wanted in by_file(editing, cases).items()
    }


def numbers_of(eval_set: SetEditor, path: Path, wanted: Sequence[str]) -> list[int]:
    looked_for = set(wanted)
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


def moves(shown: Sequence[int], wanted: Collection[int], step: int) -> Iterator[tuple[int, int]]:
    """The moves, one after the other, that bring each wanted case one place on among those that are shown."""
    forward = list(shown) if step < 0 else list(reversed(shown))
    at = 1
    while at < len(forward):
        end = at
        while end < len(forward) and forward[end] in wanted:
            end += 1
        if end > at and forward[at - 1] not in wanted:
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
    """The moves, one after the other, that bring cases of a list together before the one at `index`."""
    above = [number for number in numbers if number < index]
    for done, number in enumerate(above):
        yield number - done, index - 1
    for done, number in enumerate(number for number in numbers if number >= index):
        yield number, index + done
