"""`response_match_score`: how many words an answer shares with the expected one, and what text is scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from evaltui.core.metrics.metric import MetricInput, TurnScore, left_out, score_against_expected
from evaltui.core.metrics.rouge import rouge_1_f, words
from evaltui.core.model.eval_set import (
    Invocation,
    scored_text,
    tool_calls,
)
from evaltui.core.model.outcome import MetricResult
from evaltui.core.recording.waiting import REQUESTS


def response_match_score(given: MetricInput) -> MetricResult:
    """ROUGE-1 F of the answers, the mean over turns. Raises CriterionError where there is no threshold.

    A turn that ends with a request to the user needs no answer: saying nothing matches nothing expected.
    """

    waits = {id(turn) for turn in waiting_turns(given.expected or ()) if not given.as_adk}

    def score_turn(expected: Invocation, actual: Invocation) -> TurnScore:
        wanted = scored_text(expected, thoughts=given.thoughts)
        said = scored_text(actual, thoughts=given.thoughts)
        if id(expected) in waits and not wanted and not said:
            return TurnScore(1.0)
        score = rouge_1_f(said, wanted)
        return TurnScore(score, _shortfall(score, said, wanted))

    return score_against_expected(given, score_turn, left_out(given))


def waiting_turns(turns: Sequence[Invocation]) -> Iterator[Invocation]:
    """The turns after which a call is expected to wait for the user's response."""
    for turn, following in zip_longest(turns, turns[1:]):
        names = {call.name for call in tool_calls(turn.intermediate_data)}
        parts = (following.user_content.parts or []) if following else []
        responded = {part.function_response.name for part in parts if part.function_response}
        if names & (REQUESTS | responded):
            yield turn


def _shortfall(score: float, said: str, wanted: str) -> str:
    if score == 1.0:
        return ""
    if not wanted:
        return "no answer is expected, so none can match"
    if not said:
        return "there is no answer text"
    if not words(wanted) or not words(said):
        return "there are no words to compare, only punctuation or symbols"
    return f"the answer matches the expected one by {score:.2f}"
