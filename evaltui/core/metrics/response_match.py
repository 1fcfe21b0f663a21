"""`response_match_score`: how many words an answer shares with the expected one, and what text is scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from evaltui.core.metrics.metric import MetricInput, TurnScore, left_out, score_against_expected
from evaltui.core.metrics.rouge import rouge_1_f, words
from evaltui.core.model.eval_set import Invocation, answer_text, full_text, intermediate_texts, tool_calls
from evaltui.core.model.outcome import MetricResult
from evaltui.core.recording.waiting import REQUESTS

THOUGHT = "thought"


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


def scored_text(invocation: Invocation, *, thoughts: bool) -> str:
    """The text of a turn that is scored.

    With `thoughts`, all of the final response, as in ADK. Without, its text that is not a thought; where it
    holds thoughts only, the last thing said before it.
    """
    if thoughts:
        return full_text(invocation.final_response)
    answer = _answer(invocation)
    if answer or not _thoughts(invocation):
        return answer
    said = intermediate_texts(invocation.intermediate_data)
    return said[-1][1] if said else ""


def unscored_texts(invocation: Invocation, *, thoughts: bool) -> tuple[tuple[str, str], ...]:
    """`(author, text)` of what the turn holds besides the scored text; the author of thoughts is THOUGHT."""
    said = intermediate_texts(invocation.intermediate_data)
    if thoughts:
        return tuple(said)
    thought = _thoughts(invocation)
    if thought and not _answer(invocation):
        said = said[:-1]
    return (*said, (THOUGHT, thought)) if thought else tuple(said)


def _answer(invocation: Invocation) -> str:
    return answer_text(invocation.final_response.parts if invocation.final_response else None)


def _thoughts(invocation: Invocation) -> str:
    parts = (invocation.final_response.parts if invocation.final_response else None) or []
    return "\n".join(part.text for part in parts if part.text and part.thought)


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
