"""What was done to files, so that it can be undone: steps, and the changes from outside between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.state import Selection

if TYPE_CHECKING:
    from evaltui.core.jsondoc.document import JsonDocument
    from evaltui.core.jsondoc.splices import Splice


@dataclass(frozen=True)
class Step:
    """Something that was done, in one or several files at once."""

    label: str
    splices: Mapping[Path, tuple[Splice, ...]]
    before: Selection
    """What was selected."""
    after: Selection
    """What is selected then."""
    moved: Mapping[CaseId, CaseId]
    """Cases that are called otherwise since."""
    revisions: Mapping[Path, int]
    """Those that the files had before."""
    typing: Hashable = None
    """Steps in a row with the same one are undone at once: what is typed into a field. None for a step of its
    own."""
    documents: Mapping[Path, JsonDocument] = field(default_factory=dict)
    """What files were before in which much was changed: thousands of splices are not gone through."""

    def inverse(self, revisions: Mapping[Path, int], documents: Mapping[Path, JsonDocument]) -> Step:
        """What takes the step back, from files of these revisions and texts."""
        from evaltui.core.jsondoc.splices import inverted

        return Step(
            self.label,
            {path: inverted(splices) for path, splices in self.splices.items()},
            self.after,
            self.before,
            {new: old for old, new in self.moved.items()},
            revisions,
            documents={path: documents[path] for path in self.documents},
        )

    def followed_by(self, later: Step) -> Step:
        """Both as one."""
        paths = dict.fromkeys((*self.splices, *later.splices))
        splices = {path: (*self.splices.get(path, ()), *later.splices.get(path, ())) for path in paths}
        revisions = {**later.revisions, **self.revisions}
        return replace(self, splices=splices, after=later.after, revisions=revisions)


@dataclass(frozen=True)
class NewBase:
    """A file got another text from outside. `before` is the one that the steps below this are made for."""

    path: Path
    before: JsonDocument


class Steps:
    """A stack of steps. What comes from outside lies between them: it is none of them."""

    def __init__(self) -> None:
        self._items: list[Step | NewBase] = []

    def __iter__(self) -> Iterator[Step]:
        return (item for item in self._items if isinstance(item, Step))

    @property
    def top(self) -> Step | None:
        """The last step, whatever came from outside since."""
        return next((item for item in reversed(self._items) if isinstance(item, Step)), None)

    def push(self, step: Step) -> None:
        """Put a step on top; one of the same typing as the last goes on with it, unless something came from
        outside since."""
        last = self._items[-1] if self._items else None
        if isinstance(last, Step) and step.typing is not None and last.typing == step.typing:
            self._items[-1] = last.followed_by(step)
        else:
            self._items.append(step)

    def end_typing(self) -> None:
        """What is typed from now on is a step of its own."""
        last = self._items[-1] if self._items else None
        if isinstance(last, Step):
            self._items[-1] = replace(last, typing=None)

    def pop(self) -> tuple[Step, dict[Path, JsonDocument]]:
        """The last step, and of the files that changed outside since the text that it left behind.

        There must be a step.
        """
        bases: dict[Path, JsonDocument] = {}
        while isinstance(item := self._items.pop(), NewBase):
            bases[item.path] = item.before
        return item, bases

    def rebase(self, bases: Mapping[Path, JsonDocument]) -> None:
        """Files got another text from outside: what is below is for the texts that they had before."""
        top: set[Path] = set()
        for item in reversed(self._items):
            if isinstance(item, Step):
                break
            top.add(item.path)
        for path, before in bases.items():
            # Steps below a base that is there already are for its text.
            if path not in top and any(path in step.splices for step in self):
                self._items.append(NewBase(path, before))

    def clear(self) -> None:
        self._items.clear()
