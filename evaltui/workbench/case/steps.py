"""Steps that can be undone, and the changes from outside between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.state import Selection

if TYPE_CHECKING:
    from evaltui.documents.case_file import CaseFile, Change


@dataclass(frozen=True)
class Step:
    """An edit of one or several files at once."""

    label: str
    changes: Mapping[Path, Change]
    before: Selection
    """The selection before it."""
    after: Selection
    """The selection after it."""
    moved: Mapping[CaseId, CaseId]
    """Cases that have other ids since."""

    @property
    def inverse(self) -> Step:
        """The step that undoes this one."""
        changes = {path: change.inverse for path, change in self.changes.items()}
        moved = {new: old for old, new in self.moved.items()}
        return Step(self.label, changes, self.after, self.before, moved)


@dataclass(frozen=True)
class NewBase:
    """A changed text of a file on disk. `before` is the document that the steps below apply to."""

    path: Path
    before: CaseFile


class Steps:
    """A stack of steps, with the changes on disk between them, which are no steps."""

    def __init__(self) -> None:
        self._items: list[Step | NewBase] = []

    def __iter__(self) -> Iterator[Step]:
        return (item for item in self._items if isinstance(item, Step))

    @property
    def top(self) -> Step | None:
        """The last step, also if files changed on disk since."""
        return next((item for item in reversed(self._items) if isinstance(item, Step)), None)

    @property
    def last(self) -> Step | None:
        """The last step; None if a file changed on disk since."""
        last = self._items[-1] if self._items else None
        return last if isinstance(last, Step) else None

    def push(self, step: Step) -> None:
        """Put a step on top."""
        self._items.append(step)

    def pop(self) -> tuple[Step, dict[Path, CaseFile]]:
        """Removes the last step and returns it, with the documents after it for the files that changed on
        disk since.

        The stack must have a step.
        """
        bases: dict[Path, CaseFile] = {}
        while isinstance(item := self._items.pop(), NewBase):
            bases[item.path] = item.before
        return item, bases

    def rebase(self, bases: Mapping[Path, CaseFile]) -> None:
        """Notes that files changed on disk: the steps below apply to these earlier documents."""
        top: set[Path] = set()
        for item in reversed(self._items):
            if isinstance(item, Step):
                break
            top.add(item.path)
        for path, before in bases.items():
            # Steps below a base that is there already are for its document.
            if path not in top and any(path in step.changes for step in self):
                self._items.append(NewBase(path, before))

    def clear(self) -> None:
        self._items.clear()
