"""The multi-turn metrics: a whole conversation, rated once by a judge model and placed on its last turn.

google-adk has Vertex AI rate them, which takes a Google Cloud project.
"""

from __future__ import annotations

from evaltui.core.metrics.judges.judge import Judge
from evaltui.core.metrics.judges.prompts import fenced, prompt
from evaltui.core.metrics.judges.ratings import Scale, rate
from evaltui.core.metrics.judges.transcript import agents, entries, transcript
from evaltui.core.metrics.metric import (
    MetricInput,
    left_out,
    not_evaluated,
    nothing_to_score,
    unpaired,
    unscored_turn,
)
from evaltui.core.model.eval_set import Invocation, tool_calls
from evaltui.core.model.outcome import MetricResult

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
