"""What was done to files, so that it can be undone: steps, and the changes from outside between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.splices import Splice, inverted
from evaltui.core.model.case_id import CaseId
from evaltui.workbench.state import Selection


@dataclass(frozen=True)
class Step:
    """Something that was done, in one or several files at once; `moved` are cases that have another key now.

    Steps in a row with the same `typing` are one: what is typed into a field is undone at once.
    """

    label: str
    splices: Mapping[Path, tuple[Splice, ...]]
    before: Selection
    after: Selection
    moved: Mapping[CaseId, CaseId]
    typing: Hashable = None

    @property
    def inverse(self) -> Step:
        return Step(
            self.label,
            {path: inverted(splices) for path, splices in self.splices.items()},
            self.after,
            self.before,
            {new: old for old, new in self.moved.items()},
        )

    def followed_by(self, later: Step) -> Step:
        paths = dict.fromkeys((*self.splices, *later.splices))
        splices = {path: (*self.splices.get(path, ()), *later.splices.get(path, ())) for path in paths}
        return replace(self, splices=splices, after=later.after)


@dataclass(frozen=True)
class Entry:
    """A step, and the revisions that its files had before it."""

    step: Step
    revisions: Mapping[Path, int]


@dataclass(frozen=True)
class NewBase:
    """A file got another text from outside. `before` is the one that the steps below this are made for."""

    path: Path
    before: JsonDocument


class Steps:
    """A stack of steps. What comes from outside lies between them: it is none of them."""

    def __init__(self) -> None:
        self._items: list[Entry | NewBase] = []

    def __iter__(self) -> Iterator[Entry]:
        return (item for item in self._items if isinstance(item, Entry))

    @property
    def top(self) -> Entry | None:
        """The last step, whatever came from outside since."""
        return next((item for item in reversed(self._items) if isinstance(item, Entry)), None)

    def push(self, entry: Entry) -> None:
        self._items.append(entry)

    def goes_on(self, typing: Hashable) -> bool:
        """Whether the last step is one of the same typing, and nothing came from outside since."""
        last = self._items[-1] if self._items else None
        return isinstance(last, Entry) and typing is not None and last.step.typing == typing

    def extend(self, step: Step, revisions: Mapping[Path, int]) -> None:
        """The last step goes on with this one."""
        last = self._items[-1]
        assert isinstance(last, Entry)
        self._items[-1] = Entry(last.step.followed_by(step), {**revisions, **last.revisions})

    def end_typing(self) -> None:
        last = self._items[-1] if self._items else None
        if isinstance(last, Entry):
            self._items[-1] = replace(last, step=replace(last.step, typing=None))

    def pop(self) -> tuple[Entry, dict[Path, JsonDocument]]:
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
            if isinstance(item, Entry):
                break
            top.add(item.path)
        for path, before in bases.items():
            # Steps below a base that is there already are for its text.
            if path not in top and any(path in entry.step.splices for entry in self):
                self._items.append(NewBase(path, before))

    def clear(self) -> None:
        self._items.clear()
