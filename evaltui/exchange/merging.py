"""Importing a file again: a three-way merge of its cases with those of the set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evaltui.core.model.base_model import dump
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.model_errors import validate_model
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.case_file import CASES, CaseFile
from evaltui.documents.edits import Edit, Insert, Put, Remove
from evaltui.documents.merge import Choices, Clash, Conflict, Side, merge
from evaltui.exchange.imported import ImportedCase, Json

Outcome = Literal["new", "changed", "gone", "edited", "unchanged"]
"""Outcome of an import for a case; `edited` is changed in the set only, and stays as it is."""
_DIGITS = 16


class UnmergeableImportError(ValueError):
    """The reason why the cases of a set cannot be merged, as a sentence."""


@dataclass(frozen=True)
class MergedImport:
    """A set with the cases of a file."""

    document: CaseFile
    """The set; unchanged where there are conflicts."""
    outcomes: Mapping[str, Outcome]
    """Outcomes of cases by id, in the order of the file; cases that are gone come last."""
    conflicts: tuple[Clash, ...] = ()
    """Cases that both the set and the file have changed since the last import."""
    preferred: tuple[str, ...] = ()
    """Conflicting cases of which the version of the set was preferred."""

    def ids(self, *outcomes: Outcome) -> list[str]:
        return [eval_id for eval_id, outcome in self.outcomes.items() if outcome in outcomes]


def digest(case: Any) -> str:
    """A short digest of a case, the same for every spelling of its keys and with defaults written or not."""
    model, _ = validate_model(EvalCase, case)
    data = case if model is None else dump(model)
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def merge_import(
    mine: CaseFile, cases: Sequence[ImportedCase], before: Mapping[str, str], prefer: Side | None = None
) -> MergedImport:
    """The set `mine` with the cases of a file, of which `before` has the digests of the last import.

    Cases that only the file or only the set has changed get that change; `prefer` decides about the others.
    Raises UnmergeableImportError.
    """
    own = {case.eval_id: case for case in mine.cases}
    imported = {case.eval_id: _spelt_as(own.get(case.eval_id), case.case) for case in cases}
    gone = [eval_id for eval_id in before if eval_id not in imported]
    base = _with_cases(mine, {eval_id: None for eval_id in imported if eval_id not in before})
    bases = {eval_id: _base(old, own.get(eval_id), imported.get(eval_id)) for eval_id, old in before.items()}
    base = _with_cases(base, bases)
    theirs = _with_cases(mine, {**dict.fromkeys(gone), **imported})
    everything = [*imported, *(eval_id for eval_id in gone if eval_id in own)]
    merged = merge(base, mine, theirs, Choices({}))
    preferred: tuple[str, ...] = ()
    if prefer is not None and isinstance(merged, Conflict):
        preferred = tuple(clash.name for clash in merged.cases) if prefer == "mine" else ()
        merged = merge(base, mine, theirs, Choices(dict.fromkeys(everything, prefer)))
    conflicts: tuple[Clash, ...] = ()
    if isinstance(merged, Conflict):
        if merged.reason or merged.members or merged.orders:
            raise UnmergeableImportError(merged.reason or "the order of its cases is ambiguous")
        conflicts = tuple(
            replace(clash, base=clash.base if bases.get(clash.name) is not None else None)
            for clash in merged.cases
        )
        # For the outcomes of the other cases.
        merged = merge(base, mine, theirs, Choices({clash.name: "mine" for clash in conflicts}))
        assert not isinstance(merged, Conflict)
    after = {case.eval_id: case for case in merged.cases}
    outcomes = {
        eval_id: _outcome(own.get(eval_id), after.get(eval_id), imported.get(eval_id))
        for eval_id in everything
        if eval_id not in {clash.name for clash in conflicts}
    }
    return MergedImport(mine if conflicts else merged, outcomes, conflicts, preferred)


def _spelt_as(mine: StoredCase | None, theirs: Json) -> Json:
    """A case of the file; that of the set where it is the same in another spelling."""
    return mine.value if mine is not None and digest(mine.value) == digest(theirs) else theirs


def _base(old: str, mine: StoredCase | None, theirs: Json | None) -> Json | None:
    """The case of the last import, of which only the digest is stored.

    Where neither side has it any more, a case that is like neither stands for it.
    """
    if mine is not None and digest(mine.value) == old:
        return dict(mine.value)
    if theirs is not None and digest(theirs) == old:
        return theirs
    eval_id = mine.eval_id if mine is not None else (theirs or {}).get("eval_id")
    return None if eval_id is None else {"eval_id": eval_id, "digest": old}


def _with_cases(document: CaseFile, cases: Mapping[str, Json | None]) -> CaseFile:
    """A set with other cases of these ids, None for none; new ones come last."""
    key = document.key or CASES
    edits: list[Edit] = []
    numbers = {case.eval_id: number for number, case in enumerate(document.cases)}
    for eval_id in sorted(cases.keys() & numbers.keys(), key=numbers.__getitem__, reverse=True):
        case = cases[eval_id]
        if case is None:
            edits.append(Remove((key, numbers[eval_id])))
        elif case != document.cases[numbers[eval_id]].value:
            edits.append(Put((key, numbers[eval_id]), case))
    count = len(document.cases) - sum(isinstance(edit, Remove) for edit in edits)
    new = [case for eval_id, case in cases.items() if eval_id not in numbers and case is not None]
    edits += [Insert((key,), count + number, case) for number, case in enumerate(new)]
    return document.edited(edits)


def _outcome(before: StoredCase | None, after: StoredCase | None, theirs: Json | None) -> Outcome:
    if after is None:
        return "gone" if before is not None else "edited"
    if before is None:
        return "new"
    if after is not before and after.value != before.value:
        return "changed"
    return "unchanged" if theirs is not None and digest(after.value) == digest(theirs) else "edited"
