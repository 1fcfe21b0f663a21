"""What judges need of a case, without a model of each case of a large set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evaltui.core.model.aliases import spelt
from evaltui.core.model.eval_set import EvalCase, answer_text
from evaltui.core.model.stored_cases import StoredCases


class CaseTraits(NamedTuple):
    """`turns_without_answer` count from 0; `rubric_types` is what the rubrics of the case and its turns are
    for, "" for those that do not say."""

    eval_id: str
    turns_without_answer: tuple[int, ...]
    rubric_types: frozenset[str]


def traits_of(cases: Sequence[EvalCase]) -> Iterator[CaseTraits]:
    """Of every case, in their order."""
    if isinstance(cases, StoredCases):
        return (_of_data(one.head.eval_id, one.data()) for one in cases.stored)
    return (_of_model(case) for case in cases)


def _of_model(case: EvalCase) -> CaseTraits:
    turns = case.conversation or []
    rubrics = [*(case.rubrics or ()), *(rubric for turn in turns for rubric in turn.rubrics or ())]
    return CaseTraits(
        case.eval_id,
        tuple(
            number
            for number, turn in enumerate(turns)
            if not (turn.final_response and answer_text(turn.final_response.parts))
        ),
        frozenset(rubric.type or "" for rubric in rubrics),
    )


def _of_data(eval_id: str, data: Mapping[str, Any]) -> CaseTraits:
    turns = data.get("conversation") or []
    rubrics = [*(data.get("rubrics") or ()), *(one for turn in turns for one in turn.get("rubrics") or ())]
    return CaseTraits(
        eval_id,
        tuple(
            number
            for number, turn in enumerate(turns)
            if not _has_text(turn.get(spelt("final_response", turn)))
        ),
        frozenset(rubric.get("type") or "" for rubric in rubrics),
    )


def _has_text(content: Mapping[str, Any] | None) -> bool:
    parts = (content or {}).get("parts") or ()
    return any(part.get("text") and not part.get("thought") for part in parts)
