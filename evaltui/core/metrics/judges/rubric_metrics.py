"""Metrics of rubrics: the share that an answer, a turn's tool calls, or a conversation fulfils, as a judge
decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evaltui.core.metrics.declaration import (
    JUDGE_MODEL,
    PARALLEL,
    RUBRICS,
    SAMPLES,
    WITH_INTERMEDIATE,
    MetricInfo,
    metric,
)
from evaltui.core.metrics.judges.answers import unreadable_vote
from evaltui.core.metrics.judges.final_response import answer_of, read_fulfilment_as_adk
from evaltui.core.metrics.judges.judge import (
    FULFILMENT,
    Answer,
    Judge,
    Sample,
    ask_samples,
    judge_options,
    judgement,
)
from evaltui.core.metrics.judges.rubrics import (
    HeldRubric,
    no_rubrics,
    rubrics_of_conversation,
    rubrics_of_turn,
)
from evaltui.core.metrics.judges.transcript import agents, entries, transcript
from evaltui.core.metrics.judges.verdicts import (
    read_fulfilment,
    result_over_turns,
    too_few_votes,
    turn_without_verdict,
    void_as_adk,
    with_enough_votes,
)
from evaltui.core.metrics.metric import (
    MetricInput,
    left_out_turns,
    mean,
    not_evaluated,
    required_threshold,
    unpaired_reason,
    unscored_turn,
    verdict,
)
from evaltui.core.model.judgement import Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult
from evaltui.core.prompts import fence, prompt
from evaltui.text.figures import counted

Material = Callable[[MetricInput, int], dict[str, str]]
"""Returns the texts about a turn (from 0) for a prompt, by placeholder."""

Rubrics = Mapping[int, list[HeldRubric]]

_OPTIONS = (RUBRICS, JUDGE_MODEL, SAMPLES, PARALLEL)


@metric(
    MetricInfo(
        "Rate of rubrics that the responses fulfil.",
        ("rubrics",),
        (RUBRICS, JUDGE_MODEL, SAMPLES, PARALLEL, WITH_INTERMEDIATE),
        judged_item="rubric",
        rubric_type="FINAL_RESPONSE_QUALITY",
        label="rubric",
    )
)
async def rubric_based_final_response_quality_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """Share of rubrics that the answers fulfil. Raises CriterionError for an unusable criterion."""
    return await _turn_by_turn(inputs, judge, "rubric_final_response", _answer, left_out_turns(inputs))


@metric(
    MetricInfo(
        "Rate of rubrics that the calls fulfil.",
        ("rubrics",),
        _OPTIONS,
        reads_calls=True,
        judged_item="rubric",
        rubric_type="TOOL_USE_QUALITY",
        label="tool rubric",
    )
)
async def rubric_based_tool_use_quality_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """Share of rubrics that the tool calls fulfil. Raises CriterionError for an unusable criterion."""
    without = left_out_turns(inputs, checks_calls=True)
    return await _turn_by_turn(inputs, judge, "rubric_tool_use", _calls, without)


@metric(
    MetricInfo(
        "Rate of rubrics that the whole conversation fulfils.",
        ("rubrics",),
        _OPTIONS,
        reads_calls=True,
        whole_conversation=True,
        judged_item="rubric",
        rubric_type="TRAJECTORY_QUALITY",
        label="conversation rubric",
    )
)
async def rubric_based_multi_turn_trajectory_quality_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """Share of rubrics that the whole conversation fulfils, at the last scored turn. Raises
    CriterionError."""
    if problem := unpaired_reason(inputs):
        return not_evaluated(inputs.metric, problem)
    without = left_out_turns(inputs)
    scored = [number for number in range(len(inputs.actual)) if number not in without]
    if scored:
        last = scored[-1]
        without |= dict.fromkeys(scored[:-1], f"judged with the whole conversation, at turn {last + 1}")
        # google-adk looks at those of the last turn only.
        rubrics = {last: rubrics_of_conversation(inputs, [last] if inputs.as_adk else scored)}
    else:
        rubrics = {}
    return await _judge_turns(inputs, judge, "rubric_trajectory", _conversation, rubrics, without)


async def _turn_by_turn(
    inputs: MetricInput, judge: Judge, name: str, material: Material, without: Mapping[int, str]
) -> MetricResult:
    if problem := unpaired_reason(inputs):
        return not_evaluated(inputs.metric, problem)
    scored = [number for number in range(len(inputs.actual)) if number not in without]
    rubrics = {number: rubrics_of_turn(inputs, number) for number in scored}
    return await _judge_turns(inputs, judge, name, material, rubrics, without)


def _answer(inputs: MetricInput, turn: int) -> dict[str, str]:
    answer = fence(answer_of(inputs.actual[turn], inputs))
    return _conversation(inputs, turn) | {"turn": str(turn + 1), "answer": answer}


def _calls(inputs: MetricInput, turn: int) -> dict[str, str]:
    shown = inputs.actual[: turn + 1]
    happened = entries(shown, thoughts=inputs.thoughts)
    return {
        "turn": str(turn + 1),
        "agents": fence(agents(shown)),
        "earlier": fence(transcript(entry for entry in happened if entry.turn < turn)),
        "conversation": fence(transcript(entry for entry in happened if entry.turn == turn)),
    }


def _conversation(inputs: MetricInput, turn: int) -> dict[str, str]:
    shown = inputs.actual[: turn + 1]
    return {
        "agents": fence(agents(shown)),
        "conversation": fence(transcript(entries(shown, thoughts=inputs.thoughts))),
    }


async def _judge_turns(
    inputs: MetricInput,
    judge: Judge,
    name: str,
    material: Material,
    rubrics: Rubrics,
    without: Mapping[int, str],
) -> MetricResult:
    """Asks a judge about the turns with `rubrics`; `without` are the reasons for turns that are not
    judged."""
    required_threshold(inputs.metric)
    options = judge_options(inputs.metric)
    bare = [number for number, held in rubrics.items() if not held]
    # google-adk evaluates nothing where one turn has none.
    if bare and (inputs.as_adk or len(bare) == len(rubrics)):
        return not_evaluated(inputs.metric, no_rubrics(inputs))
    turns = {number: unscored_turn(reason) for number, reason in without.items()}
    turns |= {number: unscored_turn("no rubric holds in this turn") for number in bare}
    question, asks = prompt(name), prompt("rubric_answer_lines" if inputs.as_adk else "rubric_answer_json")
    prompts = {
        number: question.fill(
            **material(inputs, number), rubrics=_rubric_list(held), answer_format=asks.template
        )
        for number, held in rubrics.items()
        if held
    }
    samples = await ask_samples(
        judge, inputs.metric.metric_name, prompts, options, FULFILMENT, as_adk=inputs.as_adk
    )
    for number, turn_samples in samples.items():
        # google-adk reads all answers as if they were about its last turn.
        held = rubrics[max(rubrics)] if inputs.as_adk else rubrics[number]
        turns[number] = (
            _turn_as_adk(inputs, held, turn_samples) if inputs.as_adk else _turn(inputs, held, turn_samples)
        )
    shown = [turns[number] for number in sorted(turns)]
    scores = [
        judgement.score for turn in shown for judgement in turn.judgements if judgement.score is not None
    ]
    return result_over_turns(
        inputs,
        shown,
        samples,
        options,
        replace(question, id=f"{question.id}, {asks.id}"),
        score=mean(scores) if scores else None,
    )


def _rubric_list(rubrics: Sequence[HeldRubric]) -> str:
    listed = [{"id": rubric.id, "rubric": rubric.text} for rubric in rubrics]
    return fence(json.dumps(listed, ensure_ascii=False, indent=1))


def _turn(inputs: MetricInput, rubrics: Sequence[HeldRubric], samples: Sequence[Sample]) -> InvocationScore:
    votes = [_votes(sample, rubrics) for sample in samples]
    every = (judgement(rubric.id, rubric.text, [of_one[rubric.id] for of_one in votes]) for rubric in rubrics)
    judgements = with_enough_votes(tuple(every))
    if all(entry.score is None for entry in judgements):
        return turn_without_verdict([vote for entry in judgements for vote in entry.votes], judgements)
    turn = _score_turn(inputs, judgements)
    readable = sum(any(vote.label for vote in of_one.values()) for of_one in votes)
    lost = f"{readable} of {counted(len(votes), 'vote')} counted" if readable < len(votes) else ""
    return replace(turn, reason="; ".join(filter(None, (turn.reason, lost))))


def _turn_as_adk(
    inputs: MetricInput, rubrics: Sequence[HeldRubric], samples: Sequence[Sample]
) -> InvocationScore:
    texts = {rubric.id: rubric.text for rubric in rubrics}
    votes: dict[str, list[Vote]] = {}
    for answer in (sample for sample in samples if isinstance(sample, Answer)):
        for subject, vote in read_fulfilment_as_adk(answer.text, rubrics):
            votes.setdefault(subject, []).append(replace(vote, version=answer.version))
    judgements = tuple(
        judgement(subject, texts[subject], rubric_votes) for subject, rubric_votes in votes.items()
    )
    is_decided = any(entry.score is not None for entry in judgements)
    voided = void_as_adk(samples, judgements, is_decided=is_decided)
    return _score_turn(inputs, judgements) if voided is None else voided


def _score_turn(inputs: MetricInput, judgements: tuple[Judgement, ...]) -> InvocationScore:
    score = mean([judgement.score for judgement in judgements if judgement.score is not None])
    return InvocationScore(
        score, verdict(score, required_threshold(inputs.metric)), _reason(judgements), judgements
    )


def _votes(sample: Sample, rubrics: Sequence[HeldRubric]) -> dict[str, Vote]:
    """The votes of one answer by rubric; a vote with a `label` was readable."""
    if not isinstance(sample, Answer):
        return dict.fromkeys((rubric.id for rubric in rubrics), Vote(None, problem=str(sample)))
    votes = dict(read_fulfilment(sample.text, rubrics))
    absent = Vote(None, problem="no vote on it") if votes else unreadable_vote(sample.text)
    return {rubric.id: replace(votes.get(rubric.id, absent), version=sample.version) for rubric in rubrics}


def _reason(judgements: Sequence[Judgement]) -> str:
    broken = [judgement.id for judgement in judgements if judgement.score == 0.0]
    silent = [judgement for judgement in judgements if judgement.score is None]
    few = list(filter(None, map(too_few_votes, silent)))
    silent = [judgement for judgement in silent if not too_few_votes(judgement)]
    undecided = [judgement.id for judgement in silent if any(vote.label for vote in judgement.votes)]
    left_out = [judgement.id for judgement in silent if judgement.id not in undecided]
    parts = (
        ("not fulfilled: ", broken),
        ("not judged by the judge: ", left_out),
        ("no verdict of the judge on ", undecided),
    )
    return "; ".join([*(start + ", ".join(named) for start, named in parts if named), *few])
