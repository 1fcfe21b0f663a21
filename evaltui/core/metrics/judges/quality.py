"""Answers, and whole conversations, rated by a judge model: `response_evaluation_score`, `safety_v1` and the
`multi_turn_*` metrics.

google-adk has Vertex AI rate them, which takes a Google Cloud project.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.metrics.declaration import JUDGE_MODEL, PARALLEL, SAMPLES, MetricInfo, metric
from evaltui.core.metrics.judges.answers import NoVerdictError, contradiction, unreadable, verdict_objects
from evaltui.core.metrics.judges.judge import (
    RATING,
    Answer,
    Judge,
    Sample,
    Statement,
    ask_samples,
    judge_options,
    votes_counted,
)
from evaltui.core.metrics.judges.transcript import agents, entries, transcript
from evaltui.core.metrics.judges.verdicts import (
    NO_ANSWER,
    result_over_turns,
    undecided,
)
from evaltui.core.metrics.metric import (
    NO_EXPECTED_TURNS,
    CriterionError,
    MetricInput,
    left_out,
    not_evaluated,
    nothing_to_score,
    required_threshold,
    unpaired,
    unscored_turn,
    verdict,
)
from evaltui.core.model.eval_set import Invocation, scored_text, tool_calls
from evaltui.core.model.judgement import Evidence, Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.prompts import Prompt, fenced, prompt
from evaltui.text.values import show_value


@dataclass(frozen=True)
class Scale:
    """The least and the greatest number that a judge may give."""

    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.least:g} to {self.greatest:g}"

    def holds(self, number: float) -> bool:
        return self.least <= number <= self.greatest


async def rate(
    given: MetricInput,
    judge: Judge,
    prompt: Prompt,
    scale: Scale,
    subject: str,
    texts: Mapping[int, str],
    others: Mapping[int, InvocationScore],
) -> MetricResult:
    """Have turns rated. `texts` is what the judge is asked about each, `others` are the turns it is not asked
    about; `subject` says what is rated.

    Of several ratings of a turn the middle one counts, of two in the middle the lower: for ratings that are
    either 0 or 1 this is the majority. Raises CriterionError.
    """
    threshold = required_threshold(given.metric)
    if not scale.holds(threshold) and not given.as_adk:
        raise CriterionError(
            f"{given.metric.metric_name} has scores from {scale}; a threshold of {threshold:g} "
            "decides nothing. "
            "Choose one above the lowest score"
        )
    options = judge_options(given.metric)
    samples = await ask_samples(judge, given.metric.metric_name, texts, options, RATING, as_adk=given.as_adk)
    turns = [
        others[number] if number in others else _rated_turn(given, samples[number], scale, subject, threshold)
        for number in range(len(given.actual))
    ]
    return result_over_turns(given, turns, samples, options, prompt)


def _rated_turn(
    given: MetricInput, samples: Sequence[Sample], scale: Scale, subject: str, threshold: float
) -> InvocationScore:
    ratings = [
        read_rating(sample.text, scale)
        if isinstance(sample, Answer)
        else Statement(Vote(None, problem=str(sample)))
        for sample in samples
    ]
    votes = tuple(rating.vote for rating in ratings)
    deciding = middle(ratings)
    if deciding is None or deciding.vote.score is None:
        judgement = Judgement("", subject, None, votes=votes)
        return undecided(given, votes[0].problem, (judgement,))
    vote, score = deciding.vote, deciding.vote.score
    status = verdict(score, threshold)
    reasons = [f"rated {score:g} on a scale from {scale}"] if status is Status.FAILED else []
    if status is Status.FAILED and vote.rationale:
        reasons[0] += f": {vote.rationale}"
    reasons += [problem] if (problem := votes_counted(votes)) else []
    judgement = Judgement("", subject, score, vote.rationale, deciding.evidence, votes)
    return InvocationScore(score, status, "; ".join(reasons), (judgement,))


def middle(ratings: Sequence[Statement]) -> Statement | None:
    """The first rating with the middle score, the lower one of two; None where none has a score."""
    scores = sorted(rating.vote.score for rating in ratings if rating.vote.score is not None)
    if not scores:
        return None
    score = scores[(len(scores) - 1) // 2]
    return next(rating for rating in ratings if rating.vote.score == score)


def read_rating(text: str, scale: Scale) -> Statement:
    """What a judge says in JSON: `score`, `reason`, and `for` and `against` with what it quotes.

    Without a score where there is none on the scale, or where there are two that differ.
    """
    try:
        found = verdict_objects(text, "score", RATING)
    except NoVerdictError as error:
        return Statement(error.vote)
    if not found:
        return Statement(unreadable(text))
    last, score = found[-1], _number(found[-1]["score"])
    rationale = str(last.get("reason") or last.get("rationale") or "").strip()
    given = show_value(last["score"])
    if len({_number(one["score"]) for one in found}) > 1:
        return Statement(contradiction((show_value(one["score"]) for one in found), rationale))
    if score is None or not scale.holds(score):
        return Statement(Vote(None, rationale, given, f"{given} is not a score from {scale}"))
    evidence = [
        Evidence(f"speaks {side}", quote) for side in ("for", "against") for quote in _quotes(last.get(side))
    ]
    return Statement(Vote(score, rationale), tuple(evidence))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _quotes(value: Any) -> list[str]:
    quotes = value if isinstance(value, list) else [value]
    return [quote.strip() for quote in quotes if isinstance(quote, str) and quote.strip()]


_SHARE = Scale(0.0, 1.0)
# google-adk has Vertex AI rate these, and reads a threshold only.
_RATED = (JUDGE_MODEL, replace(SAMPLES, meaning="Number of ratings; the median counts."), PARALLEL)


@metric(
    MetricInfo(
        "Rate of the user's goals that the conversation reached.",
        options=_RATED,
        whole_conversation=True,
    )
)
async def multi_turn_task_success_v1(given: MetricInput, judge: Judge) -> MetricResult:
    """The share of the user's goals that the conversation reached, from 0 to 1. Raises CriterionError."""
    return await _rate_conversation(given, judge, "multi_turn_task_success")


@metric(
    MetricInfo(
        "Quality of the trajectory of the whole conversation.",
        options=_RATED,
        reads_calls=True,
        whole_conversation=True,
    )
)
async def multi_turn_trajectory_quality_v1(given: MetricInput, judge: Judge) -> MetricResult:
    """How good the way through the conversation was, from 0 to 1. Raises CriterionError."""
    return await _rate_conversation(given, judge, "multi_turn_trajectory_quality")


@metric(
    MetricInfo(
        "Quality of tool use in the whole conversation.",
        options=_RATED,
        reads_calls=True,
        whole_conversation=True,
    )
)
async def multi_turn_tool_use_quality_v1(given: MetricInput, judge: Judge) -> MetricResult:
    """How well tools were used over the conversation, from 0 to 1. Raises CriterionError."""
    if not any(_has_tools(turn) for turn in given.actual) and not given.as_adk:
        return not_evaluated(given.metric, "agent has no tools and called none")
    return await _rate_conversation(given, judge, "multi_turn_tool_use_quality")


async def _rate_conversation(given: MetricInput, judge: Judge, name: str) -> MetricResult:
    if problem := unpaired(given):
        return not_evaluated(given.metric, problem)
    without = left_out(given)
    last = max((turn for turn in range(len(given.actual)) if turn not in without), default=None)
    if last is None:
        turns = tuple(unscored_turn(without[turn]) for turn in range(len(given.actual)))
        return not_evaluated(given.metric, nothing_to_score(turns), turns)
    others = {
        turn: unscored_turn(without.get(turn, f"judged with the whole conversation, on turn {last + 1}"))
        for turn in range(len(given.actual))
        if turn != last
    }
    conversation = given.actual[: last + 1]
    asked = prompt(name)
    text = asked.fill(
        agents=fenced(agents(conversation)),
        conversation=fenced(transcript(entries(conversation, thoughts=given.thoughts))),
    )
    return await rate(given, judge, asked, _SHARE, "the conversation", {last: text}, others)


def _has_tools(turn: Invocation) -> bool:
    known = turn.app_details.agent_details.values() if turn.app_details else ()
    return bool(tool_calls(turn.intermediate_data)) or any(agent.tool_declarations for agent in known)


RESPONSE_EVALUATION = Scale(1.0, 5.0)
SAFETY = Scale(0.0, 1.0)


@metric(MetricInfo("Quality of the responses.", options=_RATED, interval=(1.0, 5.0), label="coherence"))
async def response_evaluation_score(given: MetricInput, judge: Judge) -> MetricResult:
    """How well the answers say what they have to say, from 1 to 5; the mean over turns.

    The expected answer, where there is one, goes with the question. No answer at all is rated 1. Raises
    CriterionError.
    """
    if problem := unpaired(given):
        return not_evaluated(given.metric, problem)
    if given.expected is None and given.as_adk:
        return not_evaluated(given.metric, NO_EXPECTED_TURNS)
    asked = prompt("response_evaluation")

    def question(turn: int, context: str, answer: str) -> str:
        expected = given.expected[turn] if given.expected else None
        reference = scored_text(expected, thoughts=given.thoughts) if expected else ""
        return asked.fill(
            context=fenced(context),
            reference=fenced(reference) if reference else "(none is given)",
            answer=fenced(answer),
        )

    texts, others = _questions(given, question, InvocationScore(1.0, Status.FAILED, NO_ANSWER))
    return await rate(given, judge, asked, RESPONSE_EVALUATION, "the response", texts, others)


@metric(MetricInfo("Harmlessness of the responses.", options=_RATED))
async def safety_v1(given: MetricInput, judge: Judge) -> MetricResult:
    """How harmless the answers are, from 0 (harmful) to 1; the mean over turns. Raises CriterionError."""
    if problem := unpaired(given):
        return not_evaluated(given.metric, problem)
    asked = prompt("safety")

    def question(turn: int, context: str, answer: str) -> str:
        return asked.fill(context=fenced(context), answer=fenced(answer))

    texts, others = _questions(given, question, unscored_turn(NO_ANSWER))
    return await rate(given, judge, asked, SAFETY, "the response", texts, others)


def _questions(
    given: MetricInput, question: Callable[[int, str, str], str], silent: InvocationScore
) -> tuple[dict[int, str], dict[int, InvocationScore]]:
    """The question about each turn that a judge is asked about, and the others; `silent` are those without an
    answer."""
    texts: dict[int, str] = {}
    others = {turn: unscored_turn(reason) for turn, reason in left_out(given).items()}
    happened = entries(given.actual, thoughts=given.thoughts)
    for turn, actual in enumerate(given.actual):
        answer = scored_text(actual, thoughts=given.thoughts)
        if turn in others:
            continue
        if not answer.strip():
            others[turn] = silent
            continue
        before = [
            entry
            for entry in happened
            if entry.turn < turn or (entry.turn == turn and entry.kind != "answer")
        ]
        texts[turn] = question(turn, transcript(before), answer)
    return texts, others
