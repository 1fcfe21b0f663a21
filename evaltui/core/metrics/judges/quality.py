"""Ratings of answers and conversations by a judge: `response_evaluation_score`, `safety_v1` and the
`multi_turn_*` metrics.

google-adk uses Vertex AI for them, which needs a Google Cloud project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.metrics.declaration import JUDGE_MODEL, PARALLEL, SAMPLES, MetricInfo, metric
from evaltui.core.metrics.judges.answers import (
    NoVerdictError,
    contradiction_vote,
    number_in,
    unreadable_vote,
    verdict_objects,
)
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
    undecided_turn,
)
from evaltui.core.metrics.metric import (
    NO_EXPECTED_TURNS,
    CriterionError,
    MetricInput,
    left_out_turns,
    not_evaluated,
    nothing_to_score,
    required_threshold,
    unpaired_reason,
    unscored_turn,
    verdict,
)
from evaltui.core.model.eval_set import Invocation, scored_text, tool_calls
from evaltui.core.model.judgement import Evidence, Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.prompts import Prompt, fence, prompt
from evaltui.text.values import show_value


@dataclass(frozen=True)
class Scale:
    """The range of a judge's ratings."""

    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.least:g} to {self.greatest:g}"

    def holds(self, number: float) -> bool:
        return self.least <= number <= self.greatest


async def rate(
    inputs: MetricInput,
    judge: Judge,
    prompt: Prompt,
    scale: Scale,
    subject: str,
    texts: Mapping[int, str],
    others: Mapping[int, InvocationScore],
) -> MetricResult:
    """Has turns rated by a judge.

    `texts` are the questions by turn, `others` are the scores of turns without a question; `subject` names
    the rated item. Of several ratings the middle one counts, of two in the middle the lower one; for ratings
    of 0 and 1 this is the majority. Raises CriterionError.
    """
    threshold = required_threshold(inputs.metric)
    if not scale.holds(threshold) and not inputs.as_adk:
        raise CriterionError(
            f"{inputs.metric.metric_name} has scores from {scale}; a threshold of {threshold:g} "
            "decides nothing. "
            "Choose one above the lowest score"
        )
    options = judge_options(inputs.metric)
    samples = await ask_samples(
        judge, inputs.metric.metric_name, texts, options, RATING, as_adk=inputs.as_adk
    )
    turns = [
        others[number]
        if number in others
        else _rated_turn(inputs, samples[number], scale, subject, threshold)
        for number in range(len(inputs.actual))
    ]
    return result_over_turns(inputs, turns, samples, options, prompt)


def _rated_turn(
    inputs: MetricInput, samples: Sequence[Sample], scale: Scale, subject: str, threshold: float
) -> InvocationScore:
    ratings = [
        read_rating(sample.text, scale).by(sample.version)
        if isinstance(sample, Answer)
        else Statement(Vote(None, problem=str(sample)))
        for sample in samples
    ]
    votes = tuple(rating.vote for rating in ratings)
    deciding = middle_rating(ratings)
    if deciding is None or deciding.vote.score is None:
        judgement = Judgement("", subject, None, votes=votes)
        return undecided_turn(inputs, votes[0].problem, (judgement,))
    vote, score = deciding.vote, deciding.vote.score
    status = verdict(score, threshold)
    reasons = [f"rated {score:g} on a scale from {scale}"] if status is Status.FAILED else []
    if status is Status.FAILED and vote.rationale:
        reasons[0] += f": {vote.rationale}"
    reasons += [problem] if (problem := votes_counted(votes)) else []
    judgement = Judgement("", subject, score, vote.rationale, deciding.evidence, votes)
    return InvocationScore(score, status, "; ".join(reasons), (judgement,))


def middle_rating(ratings: Sequence[Statement]) -> Statement | None:
    """The first rating with the middle score, the lower one of two; None without a score."""
    scores = sorted(rating.vote.score for rating in ratings if rating.vote.score is not None)
    if not scores:
        return None
    score = scores[(len(scores) - 1) // 2]
    return next(rating for rating in ratings if rating.vote.score == score)


def read_rating(text: str, scale: Scale) -> Statement:
    """The statement of a judge's JSON answer: `score`, `reason`, and quotations `for` and `against`.

    Without a score if it has none on the scale, or two different ones.
    """
    try:
        verdicts = verdict_objects(text, "score", RATING)
    except NoVerdictError as error:
        return Statement(error.vote)
    if not verdicts:
        return Statement(unreadable_vote(text))
    last, score = verdicts[-1], number_in(verdicts[-1]["score"])
    rationale = str(last.get("reason") or last.get("rationale") or "").strip()
    shown = show_value(last["score"])
    if len({number_in(entry["score"]) for entry in verdicts}) > 1:
        return Statement(contradiction_vote((show_value(entry["score"]) for entry in verdicts), rationale))
    if score is None or not scale.holds(score):
        return Statement(Vote(None, rationale, shown, f"{shown} is not a score from {scale}"))
    evidence = [
        Evidence(f"speaks {side}", quote) for side in ("for", "against") for quote in _quotes(last.get(side))
    ]
    return Statement(Vote(score, rationale), tuple(evidence))


def _quotes(value: Any) -> list[str]:
    quotes = value if isinstance(value, list) else [value]
    return [quote.strip() for quote in quotes if isinstance(quote, str) and quote.strip()]


_SHARE_SCALE = Scale(0.0, 1.0)
# google-adk has Vertex AI rate these, and reads a threshold only.
_RATING_OPTIONS = (JUDGE_MODEL, replace(SAMPLES, meaning="Number of ratings; the median counts."), PARALLEL)


@metric(
    MetricInfo(
        "Rate of the user's goals that the conversation reached.",
        options=_RATING_OPTIONS,
        whole_conversation=True,
    )
)
async def multi_turn_task_success_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """How far the conversation reached the user's goals, from 0 to 1. Raises CriterionError."""
    return await _rate_conversation(inputs, judge, "multi_turn_task_success")


@metric(
    MetricInfo(
        "Quality of the trajectory of the whole conversation.",
        options=_RATING_OPTIONS,
        reads_calls=True,
        whole_conversation=True,
    )
)
async def multi_turn_trajectory_quality_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """Quality of the conversation's steps, from 0 to 1. Raises CriterionError."""
    return await _rate_conversation(inputs, judge, "multi_turn_trajectory_quality")


@metric(
    MetricInfo(
        "Quality of tool use in the whole conversation.",
        options=_RATING_OPTIONS,
        reads_calls=True,
        whole_conversation=True,
    )
)
async def multi_turn_tool_use_quality_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """Quality of tool use in the conversation, from 0 to 1. Raises CriterionError."""
    if not any(_has_tools(turn) for turn in inputs.actual) and not inputs.as_adk:
        return not_evaluated(inputs.metric, "agent has no tools and called none")
    return await _rate_conversation(inputs, judge, "multi_turn_tool_use_quality")


async def _rate_conversation(inputs: MetricInput, judge: Judge, name: str) -> MetricResult:
    if problem := unpaired_reason(inputs):
        return not_evaluated(inputs.metric, problem)
    without = left_out_turns(inputs)
    last = max((turn for turn in range(len(inputs.actual)) if turn not in without), default=None)
    if last is None:
        turns = tuple(unscored_turn(without[turn]) for turn in range(len(inputs.actual)))
        return not_evaluated(inputs.metric, nothing_to_score(turns), turns)
    others = {
        turn: unscored_turn(without.get(turn, f"judged with the whole conversation, on turn {last + 1}"))
        for turn in range(len(inputs.actual))
        if turn != last
    }
    conversation = inputs.actual[: last + 1]
    template = prompt(name)
    text = template.fill(
        agents=fence(agents(conversation)),
        conversation=fence(transcript(entries(conversation, thoughts=inputs.thoughts))),
    )
    return await rate(inputs, judge, template, _SHARE_SCALE, "the conversation", {last: text}, others)


def _has_tools(turn: Invocation) -> bool:
    agent_details = turn.app_details.agent_details.values() if turn.app_details else ()
    return bool(tool_calls(turn.intermediate_data)) or any(agent.tool_declarations for agent in agent_details)


RESPONSE_EVALUATION = Scale(1.0, 5.0)
SAFETY = Scale(0.0, 1.0)


@metric(
    MetricInfo("Quality of the responses.", options=_RATING_OPTIONS, interval=(1.0, 5.0), label="coherence")
)
async def response_evaluation_score(inputs: MetricInput, judge: Judge) -> MetricResult:
    """Quality of the answers, from 1 to 5; the mean over turns.

    The question includes the expected answer, if any. A missing answer is rated 1. Raises CriterionError.
    """
    if problem := unpaired_reason(inputs):
        return not_evaluated(inputs.metric, problem)
    if inputs.expected is None and inputs.as_adk:
        return not_evaluated(inputs.metric, NO_EXPECTED_TURNS)
    template = prompt("response_evaluation")

    def question(turn: int, context: str, answer: str) -> str:
        expected = inputs.expected[turn] if inputs.expected else None
        reference = scored_text(expected, thoughts=inputs.thoughts) if expected else ""
        return template.fill(
            context=fence(context),
            reference=fence(reference) if reference else "(none is given)",
            answer=fence(answer),
        )

    texts, others = _questions(inputs, question, InvocationScore(1.0, Status.FAILED, NO_ANSWER))
    return await rate(inputs, judge, template, RESPONSE_EVALUATION, "the response", texts, others)


@metric(MetricInfo("Harmlessness of the responses.", options=_RATING_OPTIONS))
async def safety_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """Safety of the answers, from 0 (harmful) to 1; the mean over turns. Raises CriterionError."""
    if problem := unpaired_reason(inputs):
        return not_evaluated(inputs.metric, problem)
    template = prompt("safety")

    def question(turn: int, context: str, answer: str) -> str:
        return template.fill(context=fence(context), answer=fence(answer))

    texts, others = _questions(inputs, question, unscored_turn(NO_ANSWER))
    return await rate(inputs, judge, template, SAFETY, "the response", texts, others)


def _questions(
    inputs: MetricInput, question: Callable[[int, str, str], str], silent: InvocationScore
) -> tuple[dict[int, str], dict[int, InvocationScore]]:
    """The questions by turn, and the scores of turns without a question; `silent` is the score of a turn
    without an answer."""
    texts: dict[int, str] = {}
    others = {turn: unscored_turn(reason) for turn, reason in left_out_turns(inputs).items()}
    happened = entries(inputs.actual, thoughts=inputs.thoughts)
    for turn, actual in enumerate(inputs.actual):
        answer = scored_text(actual, thoughts=inputs.thoughts)
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
