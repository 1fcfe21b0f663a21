"""`per_turn_user_simulator_quality_v1`: does the simulated user keep to its scenario?

The rule is that of google-adk 2.13, `PerTurnUserSimulatorQualityV1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evaltui.core.metrics.declaration import JUDGE_MODEL, PARALLEL, SAMPLES, MetricInfo, Option, metric
from evaltui.core.metrics.judges.answers import contradiction_vote, unreadable_vote, verdict_objects
from evaltui.core.metrics.judges.judge import (
    SIMULATED_USER,
    Judge,
    JudgeFailedError,
    Sample,
    ask_samples,
    deciding_vote,
    judge_options,
    votes_counted,
    votes_of,
)
from evaltui.core.metrics.judges.transcript import json_line
from evaltui.core.metrics.judges.verdicts import (
    YES_OR_NO,
    read_label,
    result_over_turns,
    undecided_turn,
)
from evaltui.core.metrics.metric import (
    MetricInput,
    not_evaluated,
    required_threshold,
    typed_option,
    verdict,
)
from evaltui.core.model.eval_set import ConversationScenario, Invocation, UserPersona, full_text, scored_text
from evaltui.core.model.judgement import Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.model.placeholders import fill_placeholders
from evaltui.core.played_users import STOP_SIGNAL
from evaltui.core.prompts import fence, prompt
from evaltui.core.simulated_users import persona_of

_VERDICT_KEY = "is_valid"
# What google-adk takes for the label, quirks included.
_LABEL_OF_ADK = re.compile(rf'"{_VERDICT_KEY}":\s*\[*\s*"*([^"\]]*)"*\s*\]*\s*[,\n}}]')
_WORDS_OF_ADK = {
    **dict.fromkeys(("valid", "true"), 1.0),
    **dict.fromkeys(("invalid", "almost", "false", "partially_valid", "partially valid", "partially"), 0.0),
}


_STOP_SIGNAL = Option(
    ("stop_signal",),
    "text",
    "Message of the simulated user that ends the conversation.",
    default=STOP_SIGNAL,
)


@metric(
    MetricInfo(
        "Rate of turns in which the simulated user kept to the scenario.",
        ("a scenario",),
        (JUDGE_MODEL, SAMPLES, PARALLEL, _STOP_SIGNAL),
        judged_item="user",
        label="simulated user",
    )
)
async def per_turn_user_simulator_quality_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """The share of turns in which the simulated user kept to its scenario.

    The first message must be the starting prompt, apart from blanks. Later messages are judged, and also the
    unsent stop signal after the last one: if the conversation should not have ended, the last turn fails.
    Raises CriterionError.
    """
    threshold = required_threshold(inputs.metric)
    if inputs.scenario is None:
        return not_evaluated(inputs.metric, "needs a simulated user; this case has no conversation_scenario")
    if not inputs.actual:
        return not_evaluated(inputs.metric, "no turn to score")
    options = judge_options(inputs.metric)
    template = prompt("user_simulator")
    stop = typed_option(inputs.metric, "stop_signal", STOP_SIGNAL)
    messages = [full_text(turn.user_content) for turn in inputs.actual] + [stop]
    end = len(inputs.actual)
    texts = {
        number: template.fill(
            plan=fence(inputs.scenario.conversation_plan),
            persona=_persona(inputs.scenario, stop),
            criteria=_criteria(inputs.scenario, stop),
            history=fence(_history(inputs, inputs.actual[:number])),
            message=fence(messages[number]),
            stop_signal=stop,
        )
        for number in range(1, end + 1)
    }
    samples = await ask_samples(
        judge, inputs.metric.metric_name, texts, options, SIMULATED_USER, as_adk=inputs.as_adk
    )
    failed = [sample for some in samples.values() for sample in some if isinstance(sample, JudgeFailedError)]
    if inputs.as_adk and failed:
        return replace(not_evaluated(inputs.metric, str(failed[0])), error=failed[0].error)
    turns = [_first_turn(messages[0], inputs.scenario, threshold)]
    turns += [
        _judged_message(inputs, messages[number], samples[number], threshold) for number in range(1, end)
    ]
    ending = _judged_message(inputs, f"the end of the conversation ({stop})", samples[end], threshold)
    turns[-1] = _with_ending(inputs, turns[-1], ending)
    # What was asked about the end belongs to the last turn.
    by_turn = {min(number, end - 1): list(some) for number, some in samples.items()}
    by_turn[end - 1] = [*(samples[end - 1] if end > 1 else ()), *samples[end]]
    good = [turn.score for turn in turns if turn.status is Status.PASSED and turn.score is not None]
    return result_over_turns(inputs, turns, by_turn, options, template, score=sum(good) / len(turns))


def _first_turn(message: str, scenario: ConversationScenario, threshold: float) -> InvocationScore:
    same = message.strip() == scenario.starting_prompt.strip()
    reason = "" if same else "first message is not the starting prompt"
    return InvocationScore(float(same), verdict(float(same), threshold), reason)


def _judged_message(
    inputs: MetricInput, subject: str, samples: Sequence[Sample], threshold: float
) -> InvocationScore:
    votes = votes_of(samples, read_as_adk if inputs.as_adk else read_is_valid)
    vote = deciding_vote(votes)
    if vote is None or vote.score is None:
        return undecided_turn(inputs, votes[0].problem, (Judgement("", subject, None, votes=votes),))
    status = verdict(vote.score, threshold)
    reasons = [vote.rationale or "simulated user left its scenario"] if status is Status.FAILED else []
    reasons += [short] if (short := votes_counted(votes)) else []
    judgement = Judgement("", subject, vote.score, vote.rationale, votes=votes)
    return InvocationScore(vote.score, status, "; ".join(reasons), (judgement,))


def _with_ending(inputs: MetricInput, last: InvocationScore, ending: InvocationScore) -> InvocationScore:
    """The score of the last turn, combined with the verdict on the end of the conversation.

    A bad end counts whatever the threshold is, unlike in google-adk.
    """
    both = last.judgements + ending.judgements
    if Status.ERROR in (last.status, ending.status):
        reason = last.reason if last.status is Status.ERROR else ending.reason
        return InvocationScore(None, Status.ERROR, reason, both)
    if ending.status is Status.FAILED or (ending.score == 0.0 and not inputs.as_adk):
        reason = f"the conversation should not have ended here: {ending.reason}"
        return InvocationScore(ending.score, ending.status, reason, both)
    reason = "; ".join(filter(None, (last.reason, ending.reason)))
    return InvocationScore(last.score, last.status, reason, both)


def read_is_valid(text: str) -> Vote:
    """The vote in a judge's JSON answer; without a score for no verdict, two different ones, or one that its
    criteria contradict."""
    vote = read_label(text, _VERDICT_KEY, SIMULATED_USER)
    if vote.score is None:
        return vote
    for entry in verdict_objects(text, _VERDICT_KEY, SIMULATED_USER):
        criteria = entry.get("criteria")
        if criteria not in (None, []):
            is_met = isinstance(criteria, list) and all(map(_is_met, criteria))
            if is_met is not bool(vote.score):
                stated = "every criterion passes" if is_met else "a criterion is broken"
                return contradiction_vote([vote.label, stated], vote.rationale)
    return vote


def _is_met(criterion: Any) -> bool:
    """Whether a criterion in an answer is said to pass; False for any other form of it."""
    return isinstance(criterion, dict) and YES_OR_NO.vote(criterion.get("passes")).score == 1.0


def read_as_adk(text: str) -> Vote:
    """Reads a judge's answer as google-adk 2.13 does."""
    match = _LABEL_OF_ADK.search(text)
    label = match[1].strip("}").replace(",", "").strip().lower() if match else ""
    return Vote(_WORDS_OF_ADK[label], label=label) if label in _WORDS_OF_ADK else unreadable_vote(text)


def _history(inputs: MetricInput, turns: Sequence[Invocation]) -> str:
    lines = []
    for turn in turns:
        lines.append({"user": full_text(turn.user_content)})
        if answer := scored_text(turn, thoughts=inputs.thoughts):
            lines.append({"agent": answer})
    return "\n".join(json_line(line) for line in lines)


def _persona(scenario: ConversationScenario, stop: str) -> str:
    persona = persona_of(scenario)
    return fence(_with_signal(persona.description, stop)) if persona else "(nobody in particular)"


def _criteria(scenario: ConversationScenario, stop: str) -> str:
    persona = persona_of(scenario)
    if persona is None:
        return prompt("user_simulator_criteria").fill(stop_signal=stop)
    return fence(_with_signal(_violations(persona), stop))


def _violations(persona: UserPersona) -> str:
    """The violations in a persona, one paragraph per behavior."""
    return "\n\n".join(
        "\n".join(
            [
                f"{behavior.name}. {behavior.description} It is broken by any of these:",
                *(f"- {violation}" for violation in behavior.violation_rubrics),
            ]
        )
        for behavior in persona.behaviors
    )


def _with_signal(text: str, stop: str) -> str:
    return fill_placeholders(text, {"stop_signal": stop})
