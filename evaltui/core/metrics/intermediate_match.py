"""`intermediate_match_score`: similarity of the texts before the answer with the expected ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaltui.core.metrics.declaration import MetricInfo, metric
from evaltui.core.metrics.metric import (
    MetricInput,
    TurnScore,
    left_out_turns,
    not_evaluated,
    score_against_expected,
    unpaired_reason,
)
from evaltui.core.metrics.response_match import rouge_1_f
from evaltui.core.model.eval_set import Invocation, texts_before
from evaltui.core.model.events import ANSWERS, TEXTS
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.core.model.text_diff import IntermediateDiff
from evaltui.text.figures import counted, plural, short_list, show_score

# An author and a text.
Utterance = tuple[str, str]

# Pairs of texts that are compared; of more, each text is compared with the one at its own place.
_MAX_PAIRS = 2_500
_NOTHING_EXPECTED = "no intermediate responses expected"


@metric(
    MetricInfo(
        "Word overlap with the expected intermediate responses (ROUGE-1 F).",
        ("expected turns", "intermediate responses"),
        source="evaltui",
        compares="texts",
    )
)
def intermediate_match_score(inputs: MetricInput) -> MetricResult:
    """Similarity of expected and actual texts before the answer, the mean over the turns that expect any.

    Texts are aligned in order, regardless of their author. The score of a turn is twice the sum of ROUGE-1 F
    over the pairs, divided by the number of texts on both sides, so that missing and extra texts lower it.
    Raises CriterionError without a threshold.
    """
    if inputs.expected is None or unpaired_reason(inputs):
        return score_against_expected(inputs, _no_score, {})
    without = left_out_turns(inputs)
    for number, turn in enumerate(inputs.expected):
        if not texts_before(turn, thoughts=inputs.thoughts):
            without.setdefault(number, _NOTHING_EXPECTED)
    scored = [number for number in range(len(inputs.expected)) if number not in without]
    if not scored and _NOTHING_EXPECTED in without.values():
        # Other metrics decide: sets may have cases with texts and without.
        result = not_evaluated(inputs.metric, f"{_NOTHING_EXPECTED} in any scored turn")
        return replace(result, is_optional=True)
    unknown = [number for number in scored if not knows_texts(inputs.actual[number])]
    if unknown:
        where = f"{plural(len(unknown), 'turn')} {short_list([str(number + 1) for number in unknown])}"
        untold = inputs.actual[unknown[0]].untold
        remedy = untold.get(ANSWERS) or untold.get(TEXTS) or "the agent does not send them"
        return not_evaluated(inputs.metric, f"the intermediate responses of {where} are unknown: {remedy}")

    def score_turn(expected: Invocation, actual: Invocation) -> TurnScore:
        rows = align_texts(
            texts_before(expected, thoughts=inputs.thoughts), texts_before(actual, thoughts=inputs.thoughts)
        )
        score = _score(rows)
        return TurnScore(score, "" if score == 1.0 else _shortfall(rows, score))

    result = score_against_expected(inputs, score_turn, without)
    # Nothing is open in a turn that expects none.
    turns = tuple(
        replace(turn, status=Status.INFORMATIONAL) if turn.reason == _NOTHING_EXPECTED else turn
        for turn in result.per_invocation
    )
    return replace(result, per_invocation=turns)


def knows_texts(actual: Invocation) -> bool:
    """Whether the texts of an actual turn are known."""
    return actual.intermediate_data is not None and actual.untold.keys().isdisjoint((ANSWERS, TEXTS))


def _no_score(expected: Invocation, actual: Invocation) -> TurnScore:
    raise AssertionError("turns that cannot be paired have no score")


def _score(rows: Sequence[IntermediateDiff]) -> float:
    texts = sum((row.expected is not None) + (row.actual is not None) for row in rows)
    return 2 * sum(row.score or 0.0 for row in rows) / texts


def _shortfall(rows: Sequence[IntermediateDiff], score: float) -> str:
    missing, extra = sum(row.actual is None for row in rows), sum(row.expected is None for row in rows)
    parts = [f"{missing} missing"] * bool(missing) + [f"{extra} unexpected"] * bool(extra)
    of = counted(sum(row.expected is not None for row in rows), "expected text")
    return f"intermediate match {show_score(score)} ({', '.join([of, *parts])})"


def align_texts(expected: Sequence[Utterance], actual: Sequence[Utterance]) -> tuple[IntermediateDiff, ...]:
    """The texts of both sides as aligned rows with the highest total similarity."""
    start = 0
    while start < min(len(expected), len(actual)) and expected[start][1] == actual[start][1]:
        start += 1
    same = [_pair(expected[at], actual[at], 1.0) for at in range(start)]
    expected_rest, actual_rest = expected[start:], actual[start:]
    in_place = len(expected_rest) * len(actual_rest) > _MAX_PAIRS
    return (
        *same,
        *(
            _pair_by_place(expected_rest, actual_rest)
            if in_place
            else _best_alignment(expected_rest, actual_rest)
        ),
    )


def _pair(expected: Utterance, actual: Utterance, score: float) -> IntermediateDiff:
    return IntermediateDiff(expected[0], expected[1], actual[1], score)


def _missing_rows(expected: Sequence[Utterance]) -> Iterator[IntermediateDiff]:
    return (IntermediateDiff(author, text, None) for author, text in expected)


def _extra_rows(actual: Sequence[Utterance]) -> Iterator[IntermediateDiff]:
    return (IntermediateDiff(author, None, text) for author, text in actual)


def _pair_by_place(expected: Sequence[Utterance], actual: Sequence[Utterance]) -> Iterator[IntermediateDiff]:
    both = min(len(expected), len(actual))
    for text, other in zip(expected, actual, strict=False):
        yield _pair(text, other, _likeness(text[1], other[1]))
    yield from _missing_rows(expected[both:])
    yield from _extra_rows(actual[both:])


def _best_alignment(expected: Sequence[Utterance], actual: Sequence[Utterance]) -> Iterator[IntermediateDiff]:
    """The alignment with the highest total similarity; texts without common words are no pair."""
    likeness = [[_likeness(text[1], other[1]) for other in actual] for text in expected]
    rows, columns = len(expected), len(actual)
    # What the texts from there on come to at best.
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            paired = likeness[row][column] + best[row + 1][column + 1]
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    row = column = 0
    while row < rows and column < columns:
        score = likeness[row][column]
        if score and best[row][column] == score + best[row + 1][column + 1]:
            yield _pair(expected[row], actual[column], score)
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            yield from _missing_rows(expected[row : row + 1])
            row += 1
        else:
            yield from _extra_rows(actual[column : column + 1])
            column += 1
    yield from _missing_rows(expected[row:])
    yield from _extra_rows(actual[column:])


def _likeness(text: str, other: str) -> float:
    return 1.0 if text == other else rouge_1_f(other, text)
