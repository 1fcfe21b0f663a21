"""Answers, and whole conversations, rated by a judge model: `response_evaluation_score`, `safety_v1` and the
`multi_turn_*` metrics.

google-adk has Vertex AI rate them, which takes a Google Cloud project.
"""

from __future__ import annotations

from collections.abc import Callable

from evaltui.core.metrics.judges.judge import Judge
from evaltui.core.metrics.judges.over_turns import NO_ANSWER
from evaltui.core.metrics.judges.ratings import Scale, rate
from evaltui.core.metrics.judges.transcript import agents, entries, transcript
from evaltui.core.metrics.metric import (
    NO_EXPECTED_TURNS,
    MetricInput,
    left_out,
    not_evaluated,
    nothing_to_score,
    unpaired,
    unscored_turn,
)
from evaltui.core.model.eval_set import Invocation, scored_text, tool_calls
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.prompts import fenced, prompt

_SHARE = Scale(0.0, 1.0)


async def multi_turn_task_success_v1(given: MetricInput, judge: Judge) -> MetricResult:
    """The share of the user's goals that the conversation reached, from 0 to 1. Raises CriterionError."""
    return await _rate_conversation(given, judge, "multi_turn_task_success")


async def multi_turn_trajectory_quality_v1(given: MetricInput, judge: Judge) -> MetricResult:
    """How good the way through the conversation was, from 0 to 1. Raises CriterionError."""
    return await _rate_conversation(given, judge, "multi_turn_trajectory_quality")


async def multi_turn_tool_use_quality_v1(given: MetricInput, judge: Judge) -> MetricResult:
    """How well tools were used over the conversation, from 0 to 1. Raises CriterionError."""
    if not any(_has_tools(turn) for turn in given.actual) and not given.as_adk:
        return not_evaluated(given.metric, "the agent has no tools, and called none")
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
    return await rate(given, judge, asked, RESPONSE_EVALUATION, "the answer", texts, others)


async def safety_v1(given: MetricInput, judge: Judge) -> MetricResult:
    """How harmless the answers are, from 0 (harmful) to 1; the mean over turns. Raises CriterionError."""
    if problem := unpaired(given):
        return not_evaluated(given.metric, problem)
    asked = prompt("safety")

    def question(turn: int, context: str, answer: str) -> str:
        return asked.fill(context=fenced(context), answer=fenced(answer))

    texts, others = _questions(given, question, unscored_turn(NO_ANSWER))
    return await rate(given, judge, asked, SAFETY, "the answer", texts, others)


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
