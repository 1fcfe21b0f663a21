"""Votes read from judges' answers, and a metric's result over turns."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from evaltui.core.metrics.judges.answers import (
    FIELD,
    REASON_KEYS,
    NoVerdictError,
    Schema,
    contradiction_vote,
    is_preamble,
    quote,
    unreadable_vote,
    verdict_objects,
)
from evaltui.core.metrics.judges.judge import (
    FULFILMENT,
    VALIDITY,
    JudgeFailedError,
    Sample,
    judged_by,
)
from evaltui.core.metrics.judges.rubrics import HeldRubric
from evaltui.core.metrics.metric import (
    MetricInput,
    mean,
    not_evaluated,
    nothing_to_score,
    required_threshold,
    turn_reasons,
    verdict,
)
from evaltui.core.model.criteria import JudgeModelOptions
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.json_values import only_item
from evaltui.core.model.judgement import JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import ErrorInfo, InvocationScore, MetricResult, Status
from evaltui.core.prompts import Prompt
from evaltui.text.figures import counted, show_number
from evaltui.text.values import cut

_DECORATION = " \t*_`'\"()[]{}<>#>•-"
_MAX_LABEL_LENGTH = 80


@dataclass(frozen=True)
class Labels:
    """The words, in lower case, for a positive, a negative and an undecided verdict."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]
    undecided: tuple[str, ...] = ("unknown", "unclear", "cannot tell")

    def vote(self, label: Any, rationale: str = "") -> Vote:
        """The vote for a label; without a score for any other word.

        Case, quotes, emphasis and a full stop are ignored.
        """
        word = _normalise_text(label).rstrip(".!").strip(_DECORATION)
        if word in self.undecided:
            return Vote(None, rationale, word, "judge cannot tell")
        if word not in self.positive + self.negative:
            expected = f"expected {self.positive[0]} or {self.negative[0]}"
            return Vote(
                None, rationale, cut(word, _MAX_LABEL_LENGTH), f"{quote(label)} is not a verdict: {expected}"
            )
        return Vote(float(word in self.positive), rationale, word)


VALID_OR_NOT = Labels(
    positive=("valid", "true"), negative=("invalid", "false", "almost", "partially valid", "partially")
)
YES_OR_NO = Labels(positive=("yes", "true"), negative=("no", "false"))

VALIDITY_KEY = "is_the_agent_response_valid"


def read_validity(text: str) -> Vote:
    """The vote on an answer; `label` is "" without a verdict. Two different verdicts count as none."""
    return read_label(text, VALIDITY_KEY, VALIDITY)


def read_label(text: str, key: str, schema: Schema) -> Vote:
    """The vote of a JSON answer with a label under `key`."""
    try:
        votes = [
            VALID_OR_NOT.vote(only_item(entry[key]), _reason(entry))
            for entry in verdict_objects(text, key, schema)
        ]
    except NoVerdictError as error:
        return error.vote
    return only_vote(votes) or unreadable_vote(text)


def read_fulfilment(text: str, rubrics: Sequence[HeldRubric]) -> list[tuple[str, Vote]]:
    """The votes on rubrics by id, in the order of the rubrics, without rubrics that have no verdict.

    The text is JSON, or lines such as `ID: short` and `Verdict: yes`. A rubric is identified by its id or its
    text. Two different verdicts count as none; other text beside the verdicts invalidates all.
    """
    try:
        findings = _line_findings(text) or _json_findings(text)
    except NoVerdictError as error:
        return [(rubric.id, error.vote) for rubric in rubrics]
    ids = Counter(_normalise_text(rubric.id) for rubric in rubrics)
    by_id = {plain: rubric.id for rubric in rubrics if ids[plain := _normalise_text(rubric.id)] == 1}
    by_id.pop("", None)
    by_id |= {rubric.id.strip(): rubric.id for rubric in rubrics}
    texts = Counter(_normalise_text(rubric.text) for rubric in rubrics)
    by_text = {plain: rubric.id for rubric in rubrics if texts[plain := _normalise_text(rubric.text)] == 1}
    votes: dict[str, list[Vote]] = {rubric.id: [] for rubric in rubrics}
    of_all: list[Vote] = []
    for finding in findings:
        vote = YES_OR_NO.vote(only_item(finding.verdict), finding.rationale)
        of_id = by_id.get(finding.id.strip(), by_id.get(_normalise_text(finding.id)))
        of_text = by_text.get(_normalise_text(finding.text))
        subject = of_id or of_text
        if of_text not in (None, subject):
            vote = replace(
                vote, score=None, problem=f"the verdict has the id of {of_id}, the text of {of_text}"
            )
        if subject is not None:
            votes[subject].append(vote)
        elif not finding.id.strip() and not finding.text.strip():
            # A verdict on nothing: what came before it may have been a quotation.
            of_all.append(vote)
    return [(subject, only) for subject, own in votes.items() if own and (only := only_vote([*own, *of_all]))]


@dataclass(frozen=True)
class _Finding:
    verdict: Any
    id: str = ""
    text: str = ""
    rationale: str = ""


def _json_findings(text: str) -> list[_Finding]:
    return [
        _Finding(
            entry["verdict"],
            str(entry.get("id", entry.get("rubric_id", ""))),
            str(entry.get("rubric", entry.get("property", ""))),
            _reason(entry),
        )
        for entry in verdict_objects(text, "verdict", FULFILMENT)
    ]


def _line_findings(text: str) -> list[_Finding]:
    """Blocks of `Name: value` lines, each ended by its verdict; a repeated name starts a new block.

    The last verdict may have its reasons behind it. None if any other line is more than a preamble, or names
    something without a verdict.
    """
    findings: list[_Finding] = []
    block: dict[str, str] = {}
    for line in text.splitlines():
        match = FIELD.fullmatch(line)
        if not match:
            if not is_preamble(line):
                return []
            continue
        name, value = match[1].lower(), match[2].strip()
        if name in block:
            block = {}
        block[name] = value
        if name == "verdict":
            stated = block.get("property", block.get("rubric", ""))
            findings.append(_Finding(value, block.get("id", ""), stated, block.get("rationale", "")))
            block = {}
    return findings if block.keys() <= {"rationale"} else []


def only_vote(votes: Sequence[Vote]) -> Vote | None:
    """The vote of an answer that may repeat it; None without a vote."""
    if len({vote.score for vote in votes}) > 1:
        return contradiction_vote([vote.label for vote in votes], votes[-1].rationale)
    return votes[0] if votes else None


def _reason(entry: dict[str, Any]) -> str:
    reason = next((entry[key] for key in REASON_KEYS if entry.get(key)), "")
    return reason.strip() if isinstance(reason, str) else str(only_item(reason))


def _normalise_text(value: Any) -> str:
    """A text for comparison: without case, decoration, and typographic blanks and quotes."""
    text = unicodedata.normalize("NFKC", str(value)).replace("_", " ")
    text = text.replace("’", "'").replace("“", '"').replace("”", '"')
    return " ".join(text.split()).strip(_DECORATION).casefold()


def turn_without_verdict(votes: Sequence[Vote], judgements: tuple[Judgement, ...]) -> InvocationScore:
    """The score of a turn without any verdict.

    An ERROR where no question was answered or no answer was readable; NOT_EVALUATED where the judge was
    undecided.
    """
    if stated := next((vote for vote in votes if vote.label), None):
        reason = f"no verdict from the judge: {stated.problem}"
        return InvocationScore(None, Status.NOT_EVALUATED, reason, judgements)
    return InvocationScore(None, Status.ERROR, votes[0].problem, judgements)


def void_as_adk(
    samples: Sequence[Sample], judgements: tuple[Judgement, ...], *, is_decided: bool
) -> InvocationScore | None:
    """The score of a turn that google-adk 2.13 does not score, because a question failed or no answer was
    readable; None where it scores the turn."""
    failed = next((sample for sample in samples if isinstance(sample, JudgeFailedError)), None)
    if failed is None and is_decided:
        return None
    reason = (
        f"a judge request failed, so the turn is not scored: {failed}" if failed else "no readable response"
    )
    unscored = tuple(replace(judgement, score=None) for judgement in judgements)
    return InvocationScore(None, Status.NOT_EVALUATED, reason, unscored)


def require_judged(result: MetricResult) -> MetricResult:
    """A metric has no score while a part of what should have been judged was not, and it cannot pass.

    That is, while a judgement has no score. The metric fails only if it fails with all open judgements
    fulfilled; the same holds for each turn.
    """
    open_turns = {
        number: turn
        for number, turn in enumerate(result.per_invocation)
        if any(judgement.score is None for judgement in turn.judgements)
    }
    if not open_turns:
        return result
    turns = tuple(
        replace(turn, score=None, status=_open_status([turn], result.threshold))
        if number in open_turns and turn.status is not Status.ERROR
        else turn
        for number, turn in enumerate(result.per_invocation)
    )
    status = _open_status(turns, result.threshold)
    if result.status is Status.ERROR or (result.status, status) == (Status.NOT_EVALUATED,) * 2:
        return replace(result, per_invocation=turns)
    shown = open_turns
    if status is Status.FAILED:
        shown = {number: turn for number, turn in enumerate(turns) if turn.status is status}
    reason = turn_reasons({number: turn.reason for number, turn in shown.items()}) or result.reason
    return replace(result, score=None, status=status, reason=reason, per_invocation=turns, error=None)


def _open_status(turns: Sequence[InvocationScore], threshold: float | None) -> Status:
    """FAILED if the mean over judgements is too low even with all open ones fulfilled, else NOT_EVALUATED."""
    scores = [
        1.0 if judgement.score is None else judgement.score for turn in turns for judgement in turn.judgements
    ]
    can_pass = threshold is None or verdict(mean(scores), threshold) is Status.PASSED
    return Status.NOT_EVALUATED if can_pass else Status.FAILED


NO_ANSWER = "no response text"


def undecided_turn(
    inputs: MetricInput, reason: str, judgements: tuple[Judgement, ...] = ()
) -> InvocationScore:
    """The score of a judged turn without a verdict: an error, which google-adk ignores."""
    status = Status.NOT_EVALUATED if inputs.as_adk else Status.ERROR
    return InvocationScore(None, status, reason, judgements)


def result_over_turns(
    inputs: MetricInput,
    turns: Sequence[InvocationScore],
    samples: Mapping[int, Sequence[Sample]],
    options: JudgeModelOptions,
    prompt: Prompt,
    *,
    score: float | None = None,
) -> MetricResult:
    """The result of a metric by `score`, else by the mean over scored turns; ERROR if a turn is an ERROR.

    NOT_EVALUATED where fewer than half of the votes on a subject have a verdict. `samples` are the outcomes
    of questions by turn. Raises CriterionError without a threshold.
    """
    threshold = required_threshold(inputs.metric)
    name, record = (
        inputs.metric.metric_name,
        judged_by(options, prompt, chain.from_iterable(samples.values())),
    )
    judge = record if record.asked else None
    turns = [_without_recording(turn, samples.get(number, ())) for number, turn in enumerate(turns)]
    short = {} if inputs.as_adk else _short_turns(turns)
    turns = [_drop_score(turn, short[n]) if n in short else turn for n, turn in enumerate(turns)]
    blank = MetricResult(name, None, threshold, Status.ERROR, per_invocation=tuple(turns), judge=judge)
    if reason := _reasons(turns, Status.ERROR):
        error = _judge_error(turns, samples, Status.ERROR)
        error = error or ErrorInfo("UnreadableAnswerError", reason, kind=ErrorKind.JUDGE)
        return replace(blank, reason=reason, error=error)
    failed = _judge_error(turns, samples, Status.NOT_EVALUATED)
    if short:
        reason = turn_reasons(short)
        if any(map(_has_unreadable, turns)) and (failed is None or str(failed) not in reason):
            failed = ErrorInfo("UnreadableAnswerError", "", kind=ErrorKind.JUDGE)
        return _unjudged_result(inputs, reason, turns, judge, failed)
    scores = [turn.score for turn in turns if turn.score is not None]
    if not scores:
        reason = _reasons(turns, Status.NOT_EVALUATED) or nothing_to_score(turns)
        return _unjudged_result(inputs, reason, turns, judge, failed)
    overall = mean(scores) if score is None else score
    status = verdict(overall, threshold, lower_is_better=inputs.metric.lower_is_better)
    reason = _reasons(turns, Status.FAILED)
    if status is Status.FAILED and not reason:
        side = "above" if inputs.metric.lower_is_better else "below"
        reason = f"the mean over turns, {overall!r}, is {side} {threshold!r}"
    return replace(blank, score=overall, status=status, reason=reason)


def _without_recording(turn: InvocationScore, samples: Sequence[Sample]) -> InvocationScore:
    """An error where a replay lacks the response to a question; else the turn."""
    failed = (str(sample) for sample in samples if isinstance(sample, JudgeFailedError) and sample.is_missed)
    reason = next(failed, None)
    if reason is None:
        return turn
    judgements = tuple(replace(entry, score=None, rationale="", evidence=()) for entry in turn.judgements)
    return InvocationScore(None, Status.ERROR, reason, judgements)


def too_few_votes(judgement: Judgement) -> str:
    """Why too few votes on a subject have a verdict to decide; "" for at least half of them, and for none."""
    silent = [vote for vote in judgement.votes if vote.score is None]
    if len(silent) == len(judgement.votes) or 2 * len(silent) <= len(judgement.votes):
        return ""
    about = f"{judgement.id}: " if judgement.id else ""
    votes = counted(len(judgement.votes), "vote")
    return f"{about}{show_number(len(silent))} of {votes} without a verdict: {silent[0].problem}"


def with_enough_votes(judgements: tuple[Judgement, ...]) -> tuple[Judgement, ...]:
    """The judgements without the scores of those that too few votes decide, unless none has enough."""
    decided = _without_short(judgements)
    return decided if any(entry.score is not None for entry in decided) else judgements


def _without_short(judgements: Sequence[Judgement]) -> tuple[Judgement, ...]:
    return tuple(
        replace(entry, score=None, rationale="", evidence=()) if too_few_votes(entry) else entry
        for entry in judgements
    )


def _short_turns(turns: Sequence[InvocationScore]) -> dict[int, str]:
    """The turns with a score that too few votes decide, with the reasons."""
    short: dict[int, str] = {}
    for number, turn in enumerate(turns):
        for entry in turn.judgements:
            if entry.score is not None and (text := too_few_votes(entry)):
                short.setdefault(number, text)
    return short


def _drop_score(turn: InvocationScore, reason: str) -> InvocationScore:
    judgements = _without_short(turn.judgements)
    status = Status.ERROR if turn.status is Status.ERROR else Status.NOT_EVALUATED
    return InvocationScore(None, status, turn.reason if status is Status.ERROR else reason, judgements)


def _reasons(turns: Sequence[InvocationScore], status: Status) -> str:
    return turn_reasons({number: turn.reason for number, turn in enumerate(turns) if turn.status is status})


def _unjudged_result(
    inputs: MetricInput,
    reason: str,
    turns: Sequence[InvocationScore],
    judge: JudgedBy | None,
    failed: ErrorInfo | None,
) -> MetricResult:
    """The result of a metric without a verdict; `failed` is the error of a question that may be the
    reason."""
    error = None if failed is None else replace(failed, message=reason)
    return replace(not_evaluated(inputs.metric, reason, tuple(turns)), judge=judge, error=error)


def _has_unreadable(turn: InvocationScore) -> bool:
    """Whether an answer of a turn without a verdict was unreadable, rather than undecided."""
    return turn.status is Status.NOT_EVALUATED and any(
        vote.score is None and not vote.label for judgement in turn.judgements for vote in judgement.votes
    )


def _judge_error(
    turns: Sequence[InvocationScore], samples: Mapping[int, Sequence[Sample]], status: Status
) -> ErrorInfo | None:
    """The error of the judge in the first turn with this status."""
    return next(
        (
            sample.error
            for number, turn in enumerate(turns)
            if turn.status is status
            for sample in samples.get(number, ())
            if isinstance(sample, JudgeFailedError)
        ),
        None,
    )
