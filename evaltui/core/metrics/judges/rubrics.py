"""The rubrics that apply to a turn or a conversation: from the criterion, the case, and its turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from evaltui.core.metrics.declaration import DECLARED
from evaltui.core.metrics.metric import CriterionError, MetricInput, criterion_extra, validation_text
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.eval_set import Rubric

Source = tuple[str, Sequence[Rubric]]
"""A place in words, and its rubrics."""

_ADAPTER = TypeAdapter(list[Rubric])


@dataclass(frozen=True)
class HeldRubric:
    """A rubric with its place in words: `the criterion`, `turn 2`."""

    id: str
    text: str
    place: str
    type: str = ""


def rubrics_of_turn(inputs: MetricInput, turn: int) -> list[HeldRubric]:
    """The rubrics for a turn, from 0. Raises CriterionError for malformed or contradictory rubrics."""
    return _held_rubrics(inputs, [*_shared_sources(inputs), *_turn_sources(inputs, [turn])])


def rubrics_of_conversation(inputs: MetricInput, turns: Iterable[int]) -> list[HeldRubric]:
    """The rubrics for a whole conversation: shared ones, and those of its `turns`.

    Raises CriterionError for malformed or contradictory rubrics.
    """
    return _held_rubrics(inputs, [*_shared_sources(inputs), *_turn_sources(inputs, turns)])


def no_rubrics(inputs: MetricInput) -> str:
    """Advice about where to add rubrics, for a metric without any in a case."""
    kind = DECLARED[inputs.metric.metric_name].rubric_type
    sources = [*_shared_sources(inputs), *_turn_sources(inputs, range(len(inputs.expected or ())))]
    others = sorted({rubric.type for _, rubrics in sources for rubric in rubrics if rubric.type})
    hint = f"; those here are of type {', '.join(others)}" if others else ""
    return (
        'needs rubrics: add "rubrics" to the metric\'s criterion, or to the case or its turns '
        f"(without a type, or of type {kind}){hint}"
    )


def criterion_rubrics(metric: EvalMetric) -> list[Rubric]:
    """The rubrics of a metric's criterion. Raises CriterionError for malformed or contradictory ones, and
    for one without text."""
    try:
        stated = criterion_extra(metric).get("rubrics")
        rubrics = _ADAPTER.validate_python([] if stated is None else stated)
    except ValidationError as error:
        wrong = validation_text(error, "the list")
        raise CriterionError(f"{metric.metric_name}: its rubrics cannot be read: {wrong}") from None
    texts: dict[str, str] = {}
    for rubric in rubrics:
        text = _text(rubric, metric.metric_name)
        if texts.setdefault(rubric.rubric_id, text) != text:
            raise CriterionError(_different_texts(rubric.rubric_id, "the criterion (twice)"))
    return rubrics


def _different_texts(rubric_id: str, places: str) -> str:
    return f"rubric id {rubric_id} has different texts in {places}; rename one rubric_id"


def _shared_sources(inputs: MetricInput) -> list[Source]:
    return [("the criterion", criterion_rubrics(inputs.metric)), ("the case", inputs.case_rubrics)]


def _turn_sources(inputs: MetricInput, turns: Iterable[int]) -> list[Source]:
    expected = inputs.expected or ()
    return [(f"turn {turn + 1}", expected[turn].rubrics or ()) for turn in turns if turn < len(expected)]


def _held_rubrics(inputs: MetricInput, sources: Iterable[Source]) -> list[HeldRubric]:
    kind = DECLARED[inputs.metric.metric_name].rubric_type
    # google-adk 2.13 never filters the criterion's, and drops those of case and turn that have no type.
    allowed = (kind,) if inputs.as_adk else (kind, None, "")
    held: dict[str, HeldRubric] = {}
    for place, rubrics in sources:
        for rubric in rubrics:
            if place == "the criterion" or rubric.type in allowed:
                held_rubric = HeldRubric(rubric.rubric_id, _text(rubric, place), place, rubric.type or "")
                _add_rubric(held, held_rubric, inputs)
    return list(held.values())


def _add_rubric(held: dict[str, HeldRubric], rubric: HeldRubric, inputs: MetricInput) -> None:
    other = held.setdefault(rubric.id, rubric)
    if other is rubric or (other.text == rubric.text and not inputs.as_adk):
        return
    both = f"{other.place} and {rubric.place}" if other.place != rubric.place else f"{rubric.place} (twice)"
    raise CriterionError(
        _different_texts(rubric.id, both)
        if other.text != rubric.text
        else f"rubric {rubric.id} is in {both}; google-adk refuses duplicates"
    )


def _text(rubric: Rubric, place: str) -> str:
    text = (rubric.rubric_content.text_property or "").strip()
    if not text:
        raise CriterionError(
            f"the rubric {rubric.rubric_id} of {place} has no text; describe the requirement in its "
            "text_property"
        )
    return text
