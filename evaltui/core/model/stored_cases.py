"""The cases of a large set as text, without keeping a model of each in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from evaltui.core.model.case_id import CaseOutline, case_fingerprint, outline_of
from evaltui.core.model.json_values import field_of
from evaltui.core.model.problems import Problem

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase


# A run asks for that of a case when it begins, and for those that it ended with.
_MODELS = 64


class StoredCase:
    """A case as JSON text, exactly as in its file if it has one.

    Value and model are created on demand; a model takes ten times the memory of the text.
    """

    __slots__ = ("_fingerprint", "_lines", "_outline", "_value", "problems", "text")

    def __init__(self, text: str, value: Any = None) -> None:
        self.text = text
        self.problems: tuple[Problem, ...] | None = None
        """Problems of its model, paths relative to the case; None before a model was made."""
        self._value = value
        self._outline: CaseOutline | None = None
        self._lines: int | None = None
        self._fingerprint: str | None = None

    @classmethod
    def parsed(cls, text: str, value: Any) -> StoredCase:
        """A case with parsed data that is used but not kept."""
        case = cls(text)
        case._outline = outline_of(value)
        return case

    @classmethod
    def of_data(cls, data: Any) -> StoredCase:
        """A case from data without a text."""
        return cls(json.dumps(data), data)

    @classmethod
    def of(cls, case: EvalCase) -> StoredCase:
        return cls.of_data(case.model_dump(mode="json", exclude_defaults=True))

    @property
    def value(self) -> Any:
        """The case as JSON data, cached."""
        if self._value is None:
            self._value = self._parsed()
        return self._value

    def _parsed(self) -> Any:
        """The parsed data of the text; a case of another format overrides this."""
        return json.loads(self.text)

    def data(self) -> Any:
        """The case as JSON data, not cached."""
        return self._parsed() if self._value is None else self._value

    @property
    def eval_case_text(self) -> str:
        """The case as JSON text in the EvalSet schema."""
        return self.text

    def model(self) -> EvalCase:
        from evaltui.core.model.eval_set import EvalCase

        # Not the text itself: of a key given twice, the last one counts.
        return EvalCase.model_validate_json(json.dumps(self.data()))

    def was_validated(self, problems: tuple[Problem, ...], fingerprint: str | None) -> None:
        """Stores the problems found while a model was created; the fingerprint is None for an invalid
        case."""
        self.problems, self._fingerprint = problems, fingerprint

    @property
    def fingerprint(self) -> str:
        """The `case_fingerprint` of the case. Raises ValueError for an invalid case."""
        if self._fingerprint is None:
            self._fingerprint = case_fingerprint(self.model())
        return self._fingerprint

    @property
    def outline(self) -> CaseOutline:
        """The outline of the case, created without a model."""
        if self._outline is None:
            self._outline = outline_of(self.data())
        return self._outline

    @property
    def eval_id(self) -> str:
        """The id of the case; "" for none."""
        return self.outline.eval_id or ""

    @property
    def lines(self) -> int:
        """Number of line breaks in the text."""
        if self._lines is None:
            self._lines = self.text.count("\n")
        return self._lines

    def to_run(self) -> StoredCase:
        """A copy of the case without data that only lists show."""
        case = type(self)(self.text)
        case._outline = self.outline._replace(first_text="", texts=(), tools=())
        return case

    def says_the_same(self, other: StoredCase) -> bool:
        """Whether both cases are the same JSON with members in the same order."""
        return self.text == other.text or json.dumps(self.data()) == json.dumps(other.data())


def _eval_id_of(case: Any) -> str | None:
    value = field_of(case, "eval_id")
    return value if isinstance(value, str) else None


def eval_ids_of(cases: Sequence[Any]) -> list[str | None]:
    """The ids of cases as JSON data, in order; None for a case without one."""
    # Of a list, stored cases as they are: none is parsed for its id.
    items = list.__iter__(cases) if isinstance(cases, list) else cases
    return [case.outline.eval_id if isinstance(case, StoredCase) else _eval_id_of(case) for case in items]


class StoredCases(Sequence["EvalCase"]):
    """Stored cases as a sequence of models, of which only recently used ones are cached."""

    def __init__(self, stored: Iterable[StoredCase]) -> None:
        self._stored = tuple(stored)
        self._model = lru_cache(_MODELS)(lambda index: self._stored[index].model())

    @property
    def stored(self) -> tuple[StoredCase, ...]:
        return self._stored

    def only(self, eval_ids: set[str]) -> StoredCases:
        return StoredCases(case for case in self._stored if case.eval_id in eval_ids)

    def __len__(self) -> int:
        return len(self._stored)

    def __iter__(self) -> Iterator[EvalCase]:
        return (case.model() for case in self._stored)

    @overload
    def __getitem__(self, index: int) -> EvalCase: ...
    @overload
    def __getitem__(self, index: slice) -> StoredCases: ...
    def __getitem__(self, index: int | slice) -> EvalCase | StoredCases:
        if isinstance(index, slice):
            return StoredCases(self._stored[index])
        return self._model(index)


def ids_and_turns(cases: Sequence[EvalCase]) -> Iterator[tuple[str, int | None]]:
    """Id and number of turns of each case, None for a simulated user; no models are created."""
    if isinstance(cases, StoredCases):
        for stored in cases.stored:
            yield stored.eval_id, stored.outline.turns
    else:
        for case in cases:
            yield case.eval_id, None if case.conversation is None else len(case.conversation)


class CaseList(list[Any]):
    """The cases of a set as a list of JSON values that are parsed on demand; it is never changed in place."""

    def __init__(self, stored: Iterable[StoredCase]) -> None:
        self.stored = tuple(stored)
        # So that its length, and whether it is empty, are those of any list.
        super().__init__(self.stored)

    def __iter__(self) -> Iterator[Any]:
        return (case.value for case in self.stored)

    def __reversed__(self) -> Iterator[Any]:
        return (case.value for case in reversed(self.stored))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return [case.value for case in self.stored[index]]
        return self.stored[index].value

    def __contains__(self, value: object) -> bool:
        return any(case == value for case in self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CaseList) and self.stored == other.stored:
            return True
        if not isinstance(other, list) or len(self) != len(other):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def copy(self) -> list[Any]:
        return list(self)

    def __repr__(self) -> str:
        return repr(list(self))
