"""The cases of a large set, without a model of each of them in memory."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from evaltui.core.model.eval_set import EvalCase


class CaseHead(NamedTuple):
    """What is known of a case without its model; `has_turns` is whether there is anything to run, `simulated`
    whether what the user says is not known beforehand."""

    eval_id: str
    has_turns: bool
    simulated: bool = False


class StoredCase:
    """A case as compressed JSON text, a model whenever it is asked for; that takes ten times the memory."""

    __slots__ = ("_packed", "head")

    def __init__(self, head: CaseHead, data: Any) -> None:
        """`data` is the case as JSON data that has been found valid."""
        self.head = head
        self._packed = zlib.compress(json.dumps(data).encode(), 1)

    def says_the_same(self, other: StoredCase) -> bool:
        """Whether both are the same text; cases that mean the same may be written otherwise."""
        return self._packed == other._packed

    def text(self) -> str:
        """The case as JSON text."""
        return zlib.decompress(self._packed).decode()

    def data(self) -> Any:
        """The case as JSON data."""
        return json.loads(zlib.decompress(self._packed))

    def model(self) -> EvalCase:
        return EvalCase.model_validate_json(zlib.decompress(self._packed))

    @classmethod
    def of(cls, case: EvalCase) -> StoredCase:
        return cls(head_of(case), case.model_dump(mode="json", exclude_unset=True))


class StoredCases(Sequence[EvalCase]):
    """Stored cases to be used like any others; none of the models is kept."""

    def __init__(self, stored: Iterable[StoredCase]) -> None:
        self._stored = tuple(stored)

    @property
    def stored(self) -> tuple[StoredCase, ...]:
        return self._stored

    @property
    def heads(self) -> list[CaseHead]:
        return [one.head for one in self._stored]

    def only(self, eval_ids: set[str]) -> StoredCases:
        return StoredCases(one for one in self._stored if one.head.eval_id in eval_ids)

    def __len__(self) -> int:
        return len(self._stored)

    def __iter__(self) -> Iterator[EvalCase]:
        return (one.model() for one in self._stored)

    @overload
    def __getitem__(self, index: int) -> EvalCase: ...
    @overload
    def __getitem__(self, index: slice) -> StoredCases: ...
    def __getitem__(self, index: int | slice) -> EvalCase | StoredCases:
        if isinstance(index, slice):
            return StoredCases(self._stored[index])
        return self._stored[index].model()


def head_of(case: EvalCase) -> CaseHead:
    simulated = case.conversation_scenario is not None
    return CaseHead(case.eval_id, bool(case.conversation) or simulated, simulated)


def heads_of(cases: Sequence[EvalCase]) -> list[CaseHead]:
    """Of each case, without making a model of any."""
    return cases.heads if isinstance(cases, StoredCases) else [head_of(case) for case in cases]
