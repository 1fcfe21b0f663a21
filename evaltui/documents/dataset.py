"""Google's EvaluationDataset as a case file: shown as an eval set, edited and saved in its own words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any

from evaltui.core.model.datasets import (
    OF_SET,
    OWN_KEY,
    case_ids,
    dataset_place,
    from_dataset_case,
    is_dataset,
    unknown_members,
    without_original,
)
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import field_of, spelling_in
from evaltui.core.model.problems import JsonPath, Problem, has_error
from evaltui.core.model.stored_cases import CaseList, StoredCase
from evaltui.documents.case_file import CASES, CaseFile, Chunk
from evaltui.documents.dataset_cases import dataset_case, exported_case
from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import (
    Duplicate,
    Edit,
    EditError,
    Insert,
    Move,
    Put,
    PutText,
    Remove,
    at_path,
    missing,
)


class DatasetCase(StoredCase):
    """A case whose text is that of a dataset, and whose data is that of an eval set."""

    __slots__ = ("of_format", "unnamed_id")

    def __init__(self, text: str, unnamed_id: str) -> None:
        data, problems = from_dataset_case(json.loads(text), unnamed_id)
        super().__init__(text, data)
        self.unnamed_id = unnamed_id
        """The id of a case that has none of its own."""
        self.of_format: tuple[Problem, ...] = tuple(problems)
        """Problems of the dataset's case, paths relative to it: what an eval case cannot say, and errors."""

    @property
    def eval_case_text(self) -> str:
        return json.dumps(without_original(self.data()), ensure_ascii=False)

    def to_run(self) -> StoredCase:
        return self


class DatasetDocument:
    """The text of a dataset; data, paths and edits are those of the corresponding eval set."""

    def __init__(self, source: JsonDocument, like: CaseFile | None = None) -> None:
        """Wraps a dataset as JSON; equal cases of `like` are shared."""
        self.source = source
        """The text as JSON, with the data of the dataset."""
        shared = {case.text: case for case in like.cases} if like else {}
        ids = case_ids([chunk.case.data() for chunk in source.chunks])
        self._own_cases: list[DatasetCase] = []
        for chunk, eval_id in zip(source.chunks, ids, strict=True):
            case = shared.get(chunk.case.text)
            if not isinstance(case, DatasetCase) or case.eval_id != eval_id:
                case = DatasetCase(chunk.case.text, eval_id)
            self._own_cases.append(case)
        self.head, self.tail = source.head, source.tail
        self.key: str | None = CASES
        self.chunks: tuple[Chunk, ...] = tuple(
            Chunk(chunk.lead, case) for chunk, case in zip(source.chunks, self._own_cases, strict=True)
        )

    @classmethod
    def of(cls, source: JsonDocument, like: CaseFile | None = None) -> DatasetDocument | None:
        """The dataset in a JSON text; None for other data, and for a dataset with errors."""
        if source.key is None or not is_dataset(source.value):
            return None
        document = cls(source, like)
        return None if any(has_error(case.of_format) for case in document._own_cases) else document

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def frame(self) -> str:
        return self.source.frame

    @cached_property
    def value(self) -> Any:
        # It is named by its file, which a text does not know.
        return {"eval_set_id": "", CASES: CaseList(self.cases)}

    def named(self, eval_set_id: str) -> dict[str, Any]:
        """The data with the id that its file gives it."""
        return {**self.value, "eval_set_id": eval_set_id}

    @cached_property
    def cases(self) -> tuple[StoredCase, ...]:
        return tuple(chunk.case for chunk in self.chunks)

    @property
    def problems(self) -> list[Problem]:
        """Warnings about data of the dataset that an eval set does not have, with lines."""
        problems = [
            replace(problem, line=self.source.line_of(problem.path))
            for problem in unknown_members(self.source.value)
        ]
        for index, case in enumerate(self._own_cases):
            for problem in case.of_format:
                path = (self.source.key or CASES, index, *problem.path)
                problems.append(replace(problem, path=path, line=self.source.line_of(path)))
        return problems

    def read(self, text: str) -> DatasetDocument:
        if (document := self.of(JsonDocument(text, self.source), self)) is None:
            raise ValueError("not an EvaluationDataset that can be edited")
        return document

    def has_text_of(self, other: CaseFile) -> bool:
        return isinstance(other, DatasetDocument) and self.source.has_text_of(other.source)

    def with_chunks(self, chunks: Iterable[Chunk]) -> DatasetDocument:
        chunks_as_json = (Chunk(chunk.lead, StoredCase(chunk.case.text)) for chunk in chunks)
        return DatasetDocument(self.source.with_chunks(chunks_as_json), self)

    def edited(self, edits: Iterable[Edit]) -> DatasetDocument:
        document = self
        for number, group in groupby(edits, _number_of_case):
            if number is None:
                for edit in group:
                    document = document._with_source(
                        document._edited_list(edit), is_move=isinstance(edit, Move)
                    )
            else:
                document = document._with_source(document._edited_case(number, list(group)))
        return document

    def _with_source(self, source: JsonDocument, *, is_move: bool = False) -> DatasetDocument:
        return DatasetDocument(source, self) if is_move or source is not self.source else self

    def _edited_list(self, edit: Edit) -> JsonDocument:
        """The dataset after an edit of its list of cases. Raises EditError."""
        key, path = self.source.key or CASES, edit.path
        if path[:1] != (CASES,):
            raise EditError("an EvaluationDataset has cases only: it is named by its file", path)
        match edit:
            case Insert((_,), index, value):
                edit = Insert((key,), index, dataset_case({}, value))
            case Move((_,)) | Duplicate((_,)):
                edit = replace(edit, path=(key,))
            case Remove((_, number)):
                edit = Remove((key, number))
            case PutText((_, number), text):
                # The text of a case is that of the file.
                if has_error(from_dataset_case(json.loads(text), "")[1]):
                    raise EditError("not a case of an EvaluationDataset", path)
                edit = PutText((key, number), text)
            case Put((_, int(number)), value):
                return self._replaced(number, value)
            case _:
                raise EditError("the cases of an EvaluationDataset are changed one by one", path)
        return self.source.edited([edit])

    def _edited_case(self, number: int, edits: Sequence[Edit]) -> JsonDocument:
        """The dataset after edits within a case, which may be invalid between the edits. Raises EditError."""
        if not 0 <= number < len(self.chunks):
            raise missing((CASES, number))
        data = JsonDocument(json.dumps(self.chunks[number].case.value))
        try:
            return self._replaced(
                number, data.edited(replace(edit, path=edit.path[2:]) for edit in edits).value
            )
        except EditError as error:
            raise EditError(error.message, edits[0].path) from None

    def _replaced(self, number: int, eval_case: Any) -> JsonDocument:
        before = json.loads(self.chunks[number].case.text)
        return self.source.edited([Put((self.source.key or CASES, number), dataset_case(before, eval_case))])

    @property
    def lines_of_cases(self) -> Sequence[int]:
        return self.source.lines_of_cases

    def line_of(self, path: JsonPath) -> int:
        return self.source.line_of(self._own_path(path))

    def _own_path(self, path: JsonPath) -> JsonPath:
        """The path in the dataset for a path in the eval set or its case."""
        key = self.source.key or CASES
        if path[:1] != (CASES,) or len(path) < 3 or not isinstance(path[1], int):
            return (key, *path[1:]) if path[:1] == (CASES,) else path
        case = json.loads(self.chunks[path[1]].case.text)
        return (key, path[1], *dataset_place(case, path[2:]))

    def text_at(self, path: JsonPath) -> str:
        if len(path) == 2 and path[0] == CASES:
            return self.source.text_at(self._own_path(path))
        return json.dumps(at_path(self.value, path), indent=2, ensure_ascii=False)


def _number_of_case(edit: Edit) -> int | None:
    """The index of the case within which an edit changes something; None for one of the list."""
    path = edit.path
    if len(path) == 2 and isinstance(edit, Put | PutText | Remove):
        return None
    return path[1] if len(path) > 1 and path[0] == CASES and isinstance(path[1], int) else None


def dataset_of(eval_set: Json, name: str) -> tuple[Json, list[Problem]]:
    """An eval set as an EvaluationDataset whose file gives it a name; warnings for what does not fit.

    The paths of warnings are those of the eval set.
    """
    key = spelling_in(CASES, eval_set)
    id_key = spelling_in("eval_set_id", eval_set)
    warnings: list[Problem] = []
    cases = []
    for index, eval_case in enumerate(eval_set[key]):
        try:
            case, unfit = exported_case(eval_case)
        except EditError as error:
            warnings.append(Problem.warning((key, index), f"{error.message}; the case is left out"))
            continue
        warnings += (Problem.warning((key, index, *path), f"{why}; left out") for path, why in unfit)
        cases.append(case)
    if eval_set[id_key] != name:
        message = (
            f"becomes {name}, as the file of the dataset; named {eval_set[id_key]}.json, it keeps the id"
        )
        warnings.append(Problem.warning((id_key,), message))
    members = {of_set: value for of_set, value in eval_set.items() if of_set not in (key, id_key)}
    if field_of(members, "name") == name:
        del members["name"]
    if members and cases:
        cases[0][OWN_KEY] = {**cases[0].get(OWN_KEY, {}), OF_SET: members}
    elif members:
        warnings += (Problem.warning((name,), "a dataset without cases cannot hold it") for name in members)
    return {CASES: cases}, warnings
