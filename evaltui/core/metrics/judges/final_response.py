"""`final_response_match_v2`: does the answer agree with the expected one?

Also has google-adk 2.13's reading of judges' answers for `--adk-verdicts`. Source: `_parse_critique` of its
final_response_match_v2 and the parser of its rubric_based_evaluator.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from evaltui.core.metrics.declaration import (
    JUDGE_MODEL,
    PARALLEL,
    SAMPLES,
    WITH_INTERMEDIATE,
    MetricInfo,
    metric,
)
from evaltui.core.metrics.judges.answers import unreadable_vote
from evaltui.core.metrics.judges.judge import (
    VALIDITY,
    Judge,
    Sample,
    ask_samples,
    judge_options,
    judgement,
    votes_counted,
    votes_of,
)
from evaltui.core.metrics.judges.rubrics import HeldRubric
from evaltui.core.metrics.judges.transcript import entries, transcript
from evaltui.core.metrics.judges.verdicts import (
    VALIDITY_KEY,
    read_validity,
    result_over_turns,
    turn_without_verdict,
    void_as_adk,
)
from evaltui.core.metrics.metric import (
    NO_EXPECTED_TURNS,
    MetricInput,
    left_out_turns,
    not_evaluated,
    required_threshold,
    unpaired_reason,
    unscored_turn,
    verdict,
)
from evaltui.core.model.eval_set import Invocation, scored_text, unscored_texts
from evaltui.core.model.judgement import Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult
from evaltui.core.model.text_diff import THOUGHT
from evaltui.core.prompts import fence, prompt
from evaltui.text.values import cut

_LABEL_AFTER_KEY = r'":\s*\[*\s*"*([^"^\]\s]*)"*\s*\]*\s*[,\n}]'
_VALID = re.compile(f'"{VALIDITY_KEY}{_LABEL_AFTER_KEY}')
_INVALID = re.compile('"is_the_agent_response_invalid' + _LABEL_AFTER_KEY)
_NEGATIVE_LABELS = ("invalid", "almost", "false", "partially_valid", "partially")

# google-adk's own begin at empty lines before, which takes forever where there are thousands.
_ID = re.compile(r"^[^\S\n]*ID: (.*)$", re.MULTILINE)
_PROPERTY = re.compile(r"^[^\S\n]*Property: (.*)$", re.MULTILINE)
_RATIONALE = re.compile(r"(?<=Rationale: ).*")
_VERDICT = re.compile(r"(?<=Verdict: ).*")

_ASCII_LOOKALIKES = str.maketrans("‘’“”–—", "''\"\"--")


def read_validity_as_adk(text: str) -> Vote:
    """The vote of an answer as google-adk reads it.

    The first label after the key decides; under the key `…_invalid`, every label except `true` and `invalid`
    is a yes.
    """
    if match := _VALID.search(text):
        label = match[1].rstrip(",}")
        if label in ("valid", "true"):
            return Vote(1.0, label=label)
        return Vote(0.0, label=label) if label in _NEGATIVE_LABELS else unreadable_vote(text)
    if match := _INVALID.search(text):
        label = match[1].rstrip(",}")
        return Vote(float(label not in ("true", "invalid")), label=label)
    return unreadable_vote(text)


def read_fulfilment_as_adk(text: str, rubrics: Sequence[HeldRubric]) -> list[tuple[str, Vote]]:
    """Verdicts in lines as google-adk reads them, in order, by rubric id, perhaps several for one.

    None if the numbers of properties, rationales and verdicts differ. A verdict with `yes` in it is positive,
    another one with `no` in it is negative, `unknown` included.
    """
    properties = list(_PROPERTY.finditer(text))
    rationales = _RATIONALE.findall(text)
    verdicts = _VERDICT.findall(text)
    if not len(properties) == len(rationales) == len(verdicts):
        return []
    by_id = {rubric.id: rubric.id for rubric in rubrics}
    by_text = {_normalise(rubric.text): rubric.id for rubric in rubrics}
    votes = []
    after = -1
    for stated, rationale, answer in zip(properties, rationales, verdicts, strict=True):
        ids = [match[1].strip() for match in _ID.finditer(text) if after < match.start() < stated.start()]
        subject = by_id.get(ids[-1]) if ids and ids[-1] else None
        if subject is None:
            subject = by_text.get(_normalise(stated[1]))
        if subject is not None:
            votes.append((subject, Vote(_score(answer), rationale.strip(), answer.strip())))
        after = stated.start()
    return votes


def _score(verdict: str) -> float | None:
    if "yes" in verdict.lower():
        return 1.0
    return 0.0 if "no" in verdict.lower() else None


def _normalise(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(_ASCII_LOOKALIKES)
    return re.sub(r"\s+", " ", plain).strip(" *_`#>-•\"'").lower()


_PROMPT = "final_response_match"
_MAX_SUBJECT_LENGTH = 300
_MAX_REASON_LENGTH = 160
_DISAGREES_REASON = "response does not match the expected one"
_NOTHING_EXPECTED = "no expected response for this turn; add a final_response or mark the turn as context"


@metric(
    MetricInfo(
        "Rate of turns whose response agrees with the expected one.",
        ("expected turns",),
        (JUDGE_MODEL, SAMPLES, PARALLEL, WITH_INTERMEDIATE),
        compares="response",
        judged_item="answer",
        label="judged response",
    )
)
async def final_response_match_v2(inputs: MetricInput, judge: Judge) -> MetricResult:
    """Share of turns whose answer agrees with the expected one by the majority of the judge's answers.

    Raises CriterionError for an unusable criterion.
    """
    required_threshold(inputs.metric)
    options = judge_options(inputs.metric)
    if inputs.expected is None:
        return not_evaluated(inputs.metric, NO_EXPECTED_TURNS)
    if problem := unpaired_reason(inputs):
        return not_evaluated(inputs.metric, problem)
    unscored = left_out_turns(inputs, compares="responses")
    turns = {number: unscored_turn(reason) for number, reason in unscored.items()}
    prompts: dict[int, str] = {}
    for number, expected in enumerate(inputs.expected):
        if number in turns:
            continue
        if inputs.as_adk or answer_of(expected, inputs):
            prompts[number] = _question(inputs, expected, number)
        else:
            # A judgement that is open: nobody can be asked.
            unasked = Judgement("", _subject(inputs, number), None, _NOTHING_EXPECTED)
            turns[number] = replace(unscored_turn(_NOTHING_EXPECTED), judgements=(unasked,))
    samples = await ask_samples(
        judge, inputs.metric.metric_name, prompts, options, VALIDITY, as_adk=inputs.as_adk
    )
    turns |= {number: _judged_turn(inputs, number, turn_samples) for number, turn_samples in samples.items()}
    shown = [turns[number] for number in sorted(turns)]
    return result_over_turns(inputs, shown, samples, options, prompt(_PROMPT))


def answer_of(invocation: Invocation, inputs: MetricInput) -> str:
    """The judged text of a turn, with earlier texts if the criterion says so."""
    answer = scored_text(invocation, thoughts=inputs.thoughts)
    if not (inputs.metric.criterion and inputs.metric.criterion.include_intermediate_responses_in_final):
        return answer
    before = unscored_texts(invocation, thoughts=inputs.thoughts)
    texts = [entry.text for entry in before if entry.author != THOUGHT]
    return "\n".join([*texts, *([answer] if answer else [])])


def _question(inputs: MetricInput, expected: Invocation, number: int) -> str:
    actual = inputs.actual[number]
    before = [
        entry
        for entry in entries(inputs.actual[: number + 1], thoughts=inputs.thoughts)
        if entry.turn < number or entry.kind == "user"
    ]
    return prompt(_PROMPT).fill(
        conversation=fence(transcript(before)),
        expected=fence(answer_of(expected, inputs)),
        answer=fence(answer_of(actual, inputs)),
    )


def _subject(inputs: MetricInput, number: int) -> str:
    return cut(answer_of(inputs.actual[number], inputs), _MAX_SUBJECT_LENGTH)


def _judged_turn(inputs: MetricInput, number: int, samples: Sequence[Sample]) -> InvocationScore:
    votes = votes_of(samples, read_validity_as_adk if inputs.as_adk else read_validity)
    judged = judgement("", _subject(inputs, number), votes)
    voided = void_as_adk(samples, (judged,), is_decided=judged.score is not None) if inputs.as_adk else None
    if voided is not None:
        return voided
    if judged.score is None:
        return turn_without_verdict(votes, (judged,))
    status = verdict(judged.score, required_threshold(inputs.metric))
    return InvocationScore(judged.score, status, _reason(judged), (judged,))


def _reason(judged: Judgement) -> str:
    parts = [votes_counted(judged.votes)]
    if judged.score == 0.0:
        why = cut(" ".join(judged.rationale.split()), _MAX_REASON_LENGTH)
        parts = [": ".join(filter(None, (_DISAGREES_REASON, why))), *parts]
    return "; ".join(filter(None, parts))
