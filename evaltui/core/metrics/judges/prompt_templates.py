"""Judges of agents-cli: a prompt of the user's with placeholders, answered with a score."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from evaltui.core.conversation.instances import instance_of
from evaltui.core.metrics.judges.answers import (
    EXPLAINING_KEYS,
    NoVerdictError,
    contradiction_vote,
    is_preamble,
    number_in,
    quote,
    read_json,
    unreadable_vote,
)
from evaltui.core.metrics.judges.judge import (
    Judge,
    Sample,
    ask_samples,
    judge_options,
    votes_counted,
    votes_of,
)
from evaltui.core.metrics.judges.verdicts import NO_ANSWER, result_over_turns, undecided_turn
from evaltui.core.metrics.metric import (
    MetricInput,
    left_out_turns,
    mean,
    not_evaluated,
    required_threshold,
    unscored_turn,
    verdict,
)
from evaltui.core.model.arg_rule import ANY_INDEX, parse_arg_path
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import ABSENT, value_at
from evaltui.core.model.judgement import Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult
from evaltui.core.prompts import Prompt
from evaltui.text.values import show_value

# Source: google-cloud-aiplatform 2.7.0, PromptTemplate.
_PLACEHOLDER = re.compile(r"\{([_a-zA-Z][_a-zA-Z0-9]*(?:[.\[][\w.\[\]]*)?)\}")


async def judged_by_template(inputs: MetricInput, judge: Judge) -> MetricResult:
    """The mean of the scores in a judge's answers to the prompt of a config of agents-cli.

    The conversation is judged as a whole, on its last turn. Raises CriterionError.
    """
    metric, definition = inputs.metric, inputs.metric.definition
    if definition is None or inputs.case is None or not inputs.actual:
        return not_evaluated(metric, "no turn to score")
    instance = instance_of(inputs.case, inputs.actual)
    if "response" not in instance:
        return not_evaluated(metric, NO_ANSWER)
    names = dict.fromkeys(_PLACEHOLDER.findall(definition.prompt_template))
    if missing := [f"{{{name}}}" for name in names if _member(instance, name) is ABSENT]:
        return not_evaluated(metric, f"the case has no {', '.join(missing)}, which prompt_template reads")
    values = {name: _filled(instance, name) for name in names}
    text = _PLACEHOLDER.sub(lambda match: values[match[1]], definition.prompt_template)
    # The prompt itself may state the answers word by word.
    material = "\n".join(values.values())
    options, last = judge_options(metric), len(inputs.actual) - 1
    samples = await ask_samples(
        judge, metric.metric_name, {last: text}, options, material=material, as_adk=inputs.as_adk
    )
    others = left_out_turns(inputs)
    turns = [
        unscored_turn(others.get(turn, f"judged with the whole conversation, on turn {last + 1}"))
        for turn in range(last)
    ]
    turns.append(_rated(inputs, definition.prompt_template, samples[last]))
    prompt = Prompt(definition.place or metric.metric_name, definition.prompt_template)
    return result_over_turns(inputs, turns, samples, options, prompt)


def _member(instance: Json, name: str) -> Any:
    """The member of an instance by its path, such as `metadata.user`; ABSENT for none."""
    try:
        steps = [step for step in parse_arg_path(name) if step is not ANY_INDEX]
    except ValueError:
        return ABSENT
    return value_at(instance, tuple(steps), ABSENT)


def _filled(instance: Json, name: str) -> str:
    """The value of a placeholder as a text."""
    value = _member(instance, name)
    if name == "reference" and isinstance(value, dict):
        value = value.get("response")
    parts = value.get("parts") if isinstance(value, dict) else None
    if isinstance(parts, list) and all(isinstance(part, dict) and part.keys() == {"text"} for part in parts):
        return "\n".join(part["text"] for part in parts)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _rated(inputs: MetricInput, template: str, samples: Sequence[Sample]) -> InvocationScore:
    votes = votes_of(samples, lambda text: _vote(text, template))
    scored = [vote for vote in votes if vote.score is not None]
    if not scored:
        return undecided_turn(
            inputs, votes[0].problem, (Judgement("", "the conversation", None, votes=votes),)
        )
    score = mean([vote.score for vote in scored if vote.score is not None])
    metric = inputs.metric
    status = verdict(score, required_threshold(metric), lower_is_better=metric.lower_is_better)
    nearest = min(scored, key=lambda vote: abs((vote.score or 0.0) - score))
    reasons = [nearest.rationale, votes_counted(votes)]
    judgement = Judgement("", "the conversation", score, nearest.rationale, votes=votes)
    return InvocationScore(score, status, "; ".join(filter(None, reasons)), (judgement,))


def _vote(text: str, template: str) -> Vote:
    """The score and the explanation in an answer; no score where there is none, two that differ, or text or a
    key beside it that the prompt does not name, which may quote or retract it."""
    try:
        answer = read_json(text)
    except NoVerdictError as error:
        return error.vote
    entries = [value for value in answer.values if isinstance(value, dict) and "score" in value]
    # Any other value may be a correction, or a quotation.
    if not entries or len(entries) < len(answer.values):
        return unreadable_vote(text)
    if not is_preamble(answer.prose):
        return Vote(None, problem=f"text beside the score, which must be JSON alone: {quote(answer.prose)}")
    scores = [value for entry in entries for name, value in entry.items() if name.casefold() == "score"]
    if len(set(map(str, scores))) > 1:
        return contradiction_vote(map(show_value, scores))
    keys = {name for entry in entries for name in entry if name not in ("score", *EXPLAINING_KEYS)}
    if others := sorted(name for name in keys if not re.search(rf"\b{re.escape(name)}\b", template)):
        return Vote(None, problem=f"unexpected key {quote(others[0])} beside score")
    explanation = str(entries[-1].get("explanation") or entries[-1].get("reason") or "")
    score = number_in(entries[-1]["score"])
    if score is None:
        shown = show_value(entries[-1]["score"])
        return Vote(None, explanation, shown, f"{shown} is not a score")
    return Vote(score, explanation)
