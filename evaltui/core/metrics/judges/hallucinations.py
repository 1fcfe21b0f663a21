"""`hallucinations_v1`: every sentence of an answer, compared with the agent's information.

google-adk asks a judge to split a text into sentences and then to judge them; here rules split it, and the
judge is asked once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from evaltui.core.metrics.declaration import JUDGE_MODEL, PARALLEL, SAMPLES, MetricInfo, Option, metric
from evaltui.core.metrics.judges.answers import (
    NoVerdictError,
    contradiction_vote,
    number_in,
    unreadable_vote,
    verdict_objects,
)
from evaltui.core.metrics.judges.judge import (
    SENTENCES,
    Answer,
    Judge,
    Question,
    Sample,
    Statement,
    ask_all,
    deciding_vote,
    judge_options,
    votes_counted,
)
from evaltui.core.metrics.judges.transcript import (
    Entry,
    agents,
    entries,
    event_entries,
    json_line,
    transcript,
    turn_entries,
)
from evaltui.core.metrics.judges.verdicts import (
    NO_ANSWER,
    Labels,
    result_over_turns,
    undecided_turn,
)
from evaltui.core.metrics.metric import (
    MetricInput,
    criterion_option,
    left_out_turns,
    not_evaluated,
    required_threshold,
    typed_option,
    unpaired_reason,
    unscored_turn,
    verdict,
)
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.criteria import JudgeModelOptions
from evaltui.core.model.eval_set import Invocation, InvocationEvents, full_text, scored_text
from evaltui.core.model.judgement import Evidence, Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.prompts import Prompt, fence, prompt
from evaltui.text.figures import counted, short_list, show_number
from evaltui.text.values import cut, visible

_FENCE = re.compile(r"\s*(```|~~~)")
_TABLE_ROW = re.compile(r"\s*\|")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s")
_HEADING = re.compile(r"\s*#{1,6}\s")
_CLOSING = "[\"'”’»)\\]*_`]*"
# From the first mark of a row: to begin at each of thousands would take forever.
_END = re.compile(rf"(?:(?<![.!?…।؟۔])[.!?…।؟۔]++{_CLOSING}(?=\s)|[。！？｡]+[」』”’）)\"]*)")
_NEXT = re.compile(r"\S")
_LAST_WORD = re.compile(r"(\w+(?:\.\w+)*)\.$")
# More than any abbreviation has.
_MAX_WORD_LENGTH = 40
_ABBREVIATIONS = frozenset(["approx", "ca", "cf", "dr", "fig", "mr", "mrs", "ms", "nr", "prof", "st", "vs"])


def sentences(text: str) -> list[str]:
    """The sentences of a text, unchanged and in order; parts without letters and digits are skipped.

    A table or a block of code is one sentence; each item of a list and each heading is at least one.
    """
    pieces = (piece.strip() for block in _blocks(text) for piece in _cut_sentences(block))
    return [piece for piece in pieces if any(character.isalnum() for character in piece)]


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, items, headings, tables and code blocks, which no sentence crosses."""
    block, kind = "", ""
    for line in text.splitlines(keepends=True):
        if kind == "code":
            block += line
            if _FENCE.match(line):
                yield block
                block, kind = "", ""
            continue
        here = _kind(line)
        ended = block.rstrip().endswith((".", "!", "?", ":", "…"))
        # A line that was broken to fit a width goes on in the next one.
        broken = here == "text" and kind in ("text", "item") and not ended and line.lstrip()[0].islower()
        if broken or here == kind == "table":
            block += line
        else:
            yield block
            block, kind = line, here
    yield block


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    if _FENCE.match(line):
        return "code"
    if _TABLE_ROW.match(line):
        return "table"
    if _HEADING.match(line):
        return "heading"
    return "item" if _ITEM.match(line) else "text"


def _cut_sentences(block: str) -> Iterator[str]:
    if _FENCE.match(block) or _TABLE_ROW.match(block):
        yield block
        return
    start = 0
    for end in _END.finditer(block):
        following = _NEXT.search(block, end.end())
        if _ends_sentence(block[start : end.end()], following[0] if following else ""):
            yield block[start : end.end()]
            start = end.end()
    yield block[start:]


def _ends_sentence(sentence: str, following: str) -> bool:
    if following.islower():
        return False
    word = _LAST_WORD.search(sentence[-_MAX_WORD_LENGTH:])
    return word is None or not (_is_shortened(word[1].lower()) or _ITEM.fullmatch(f"{sentence} "))


def _is_shortened(word: str) -> bool:
    """Whether the dot after a word belongs to it: an initial, "e.g.", "Dr."."""
    letters = word.split(".")
    return word in _ABBREVIATIONS or (
        all(letter.isalpha() for letter in letters)
        and (len(word) == 1 or max(map(len, letters)) < 3 > len(letters) > 1)
    )


SUPPORT = Labels(
    positive=("supported", "not applicable"),
    negative=("unsupported", "contradictory", "disputed"),
    undecided=(),
)
# The words of judges for no passage.
_NO_PASSAGE = ("", "-", "—", "n/a", "none", "null")
_MAX_QUOTE_LENGTH = 80
_MAX_NAMED = 2


@dataclass(frozen=True)
class Step:
    """A text of a turn, which counts from 0, and the information that the agent had before it."""

    turn: int
    sentences: tuple[str, ...]
    context: tuple[Entry, ...]


_EVERY_TEXT = "evaluate_intermediate_nl_responses"
_EVERY_SENTENCE = Option(
    (_EVERY_TEXT,),
    "flag",
    "Check the intermediate responses, too.",
    default=False,
)


@metric(
    MetricInfo(
        "Rate of sentences in the responses that the context supports.",
        # google-adk asks once, whatever the samples are.
        options=(
            JUDGE_MODEL,
            replace(SAMPLES, meaning="Votes per sentence; the majority decides.", default=1),
            PARALLEL,
            _EVERY_SENTENCE,
        ),
        # Responses are held against what tools returned.
        reads_calls=True,
        judged_item="sentence",
    )
)
async def hallucinations_v1(inputs: MetricInput, judge: Judge) -> MetricResult:
    """The share of sentences that a judge finds supported, or without a claim.

    The score of a turn is the mean over its texts, with `evaluate_intermediate_nl_responses` also over those
    before the answer; the score of the case is the mean over turns. A judge is asked once about each text,
    unless `num_samples` is set: then the majority decides about each sentence. Raises CriterionError.
    """
    required_threshold(inputs.metric)
    if problem := unpaired_reason(inputs):
        return not_evaluated(inputs.metric, problem)
    options = _options(inputs)
    template = prompt("hallucinations")
    without = left_out_turns(inputs)
    every_text = typed_option(inputs.metric, _EVERY_TEXT, False)
    steps = [step for step in steps_of(inputs, every_text=every_text) if step.turn not in without]
    schema = None if inputs.as_adk else SENTENCES
    questions = [
        Question(inputs.metric.metric_name, step.turn, _text(template, inputs, step), options, schema)
        for step in steps
        for _ in range(options.num_samples)
    ]
    answers = iter(await ask_all(judge, questions, as_adk=inputs.as_adk))
    samples = [[next(answers) for _ in range(options.num_samples)] for _ in steps]
    judged: dict[int, list[tuple[Step, list[Sample]]]] = {}
    for step, some in zip(steps, samples, strict=True):
        judged.setdefault(step.turn, []).append((step, some))
    turns = [
        _turn(inputs, judged[number])
        if number in judged
        else unscored_turn(without.get(number) or f"{NO_ANSWER}, or none with words")
        for number in range(len(inputs.actual))
    ]
    scores = [turn.score for turn in turns if turn.score is not None]
    return result_over_turns(
        inputs,
        turns,
        {number: [sample for _, some in group for sample in some] for number, group in judged.items()},
        options,
        template,
        score=mean(scores) if scores else None,
    )


def steps_of(inputs: MetricInput, *, every_text: bool) -> list[Step]:
    """The texts to be judged: the answers, with `every_text` also each text before them.

    The agent's information includes earlier turns, unlike in google-adk.
    """
    if inputs.as_adk:
        return [
            step
            for turn, invocation in enumerate(inputs.actual)
            for step in _steps_as_adk(invocation, turn, every_text)
        ]
    happened = entries(inputs.actual, thoughts=inputs.thoughts)
    kinds = ("answer", "text") if every_text else ("answer",)
    return [
        Step(entry.turn, tuple(pieces), tuple(happened[:place]))
        for place, entry in enumerate(happened)
        if entry.kind in kinds
        for text in entry.parts or (entry.value,)
        if (pieces := sentences(text))
    ]


def _steps_as_adk(invocation: Invocation, turn: int, every_text: bool) -> Iterator[Step]:
    """The texts to be judged as in google-adk 2.13: each part of an event, and the answer again if it is
    among the events; no texts outside of events."""
    answer = scored_text(invocation, thoughts=True)
    data = invocation.intermediate_data
    if not isinstance(data, InvocationEvents):
        context = [entry for entry in turn_entries(invocation, turn, thoughts=True) if entry.kind != "answer"]
        texts = [(answer, context)]
    else:
        context = [Entry(turn, "user", full_text(invocation.user_content))]
        texts = []
        for event in data.invocation_events:
            happened = list(event_entries(event, turn, thoughts=True))
            grounding = [entry for entry in happened if entry.kind == "grounding"]
            parts = (event.content.parts if event.content else None) or []
            if every_text:
                texts += [(part.text, [*context, *grounding]) for part in parts if part.text]
            context = [*context, *happened]
        texts.append((answer, context))
    for text, before in texts:
        if pieces := sentences(text):
            yield Step(turn, tuple(pieces), tuple(before))


def _options(inputs: MetricInput) -> JudgeModelOptions:
    options = judge_options(inputs.metric)
    as_given = "num_samples" in options.model_fields_set and not inputs.as_adk
    return options if as_given else options.model_copy(update={"num_samples": 1})


def judges_texts(metric: EvalMetric) -> bool:
    """Whether a criterion also has the texts before the answer judged."""
    return bool(
        criterion_option(metric, _EVERY_TEXT)
        or (metric.criterion and metric.criterion.include_intermediate_responses_in_final)
    )


def _text(template: Prompt, inputs: MetricInput, step: Step) -> str:
    first = step.turn if inputs.as_adk else 0
    numbered = (
        json_line({"sentence": number, "text": sentence})
        for number, sentence in enumerate(step.sentences, start=1)
    )
    return template.fill(
        agents=fence(agents(inputs.actual[first : step.turn + 1])),
        context=fence(transcript(step.context)),
        sentences=fence("\n".join(numbered)),
    )


def _turn(inputs: MetricInput, steps: Sequence[tuple[Step, Sequence[Sample]]]) -> InvocationScore:
    judgements: list[Judgement] = []
    scores: list[float] = []
    for step, samples in steps:
        step_judgements = _judgements(step.sentences, samples)
        judgements += step_judgements
        if step_scores := [judgement.score for judgement in step_judgements if judgement.score is not None]:
            scores.append(mean(step_scores))
    missing = [judgement for judgement in judgements if judgement.score is None]
    if not scores or (missing and not inputs.as_adk):
        return undecided_turn(inputs, _missing_reason(missing, judgements), tuple(judgements))
    # Without rounding errors, as in google-adk for this metric.
    score = mean(scores)
    status = verdict(score, required_threshold(inputs.metric))
    return InvocationScore(score, status, _reason(status, judgements), tuple(judgements))


def _judgements(pieces: Sequence[str], samples: Sequence[Sample]) -> list[Judgement]:
    count = len(pieces)
    read = [
        [finding.by(sample.version) for finding in read_findings(sample.text, count)]
        if isinstance(sample, Answer)
        else [Statement(Vote(None, problem=str(sample)))] * count
        for sample in samples
    ]
    judgements = []
    for number, sentence in enumerate(pieces):
        findings = [sample[number] for sample in read]
        votes = tuple(finding.vote for finding in findings)
        vote = deciding_vote(votes)
        if vote is None:
            judgements.append(Judgement("", sentence, None, votes=votes))
            continue
        evidence = next(finding.evidence for finding in findings if finding.vote is vote)
        judgements.append(Judgement("", sentence, vote.score, vote.rationale, evidence, votes))
    return judgements


def read_findings(text: str, count: int) -> list[Statement]:
    """The statements of a judge's JSON answer about `count` sentences.

    A statement has no score where the answer is missing, contradictory, or has an unknown label.
    """
    by_number: dict[int, list[Statement]] = {}
    try:
        verdicts = verdict_objects(text, "label", SENTENCES)
    except NoVerdictError as error:
        return [Statement(error.vote)] * count
    for entry in verdicts:
        by_number.setdefault(_number(entry.get("sentence"), count), []).append(_read_finding(entry))
    if not by_number.keys() & set(range(1, count + 1)):
        return [Statement(unreadable_vote(text))] * count
    left_out = Statement(Vote(None, problem="no vote on this sentence"))
    # A label of no sentence: what came before it may have been a quotation.
    of_none = by_number.get(0, [])
    return [
        _only_finding([*by_number[number], *of_none]) if number in by_number else left_out
        for number in range(1, count + 1)
    ]


def _number(value: Any, count: int) -> int:
    """The number of a sentence from 1 to `count`; 0 for an invalid value."""
    number = number_in(value)
    return int(number) if number is not None and number in range(1, count + 1) else 0


def _read_finding(entry: dict[str, Any]) -> Statement:
    reason = str(entry.get("reason") or entry.get("rationale") or "").strip()
    evidence = tuple(
        Evidence(side, passage)
        for side in ("supporting", "contradicting")
        if (passage := _passage(entry.get(side)))
    )
    vote = SUPPORT.vote(entry["label"], reason)
    # Where the evidence says both, the sentence is disputed.
    if vote.score and any(passage.kind == "contradicting" for passage in evidence):
        vote = contradiction_vote([vote.label, "contradicting passage"], reason)
    return Statement(vote, evidence)


def _passage(excerpt: object) -> str:
    """A passage, which judges without a schema give as a list or an object, too; "" for none."""
    items = excerpt.values() if isinstance(excerpt, dict) else excerpt
    if isinstance(items, str) or not isinstance(items, Iterable):
        items = (items,)
    texts = (str(item).strip() for item in items if item not in (None, False))
    return "; ".join(text for text in texts if text.lower() not in _NO_PASSAGE)


def _only_finding(findings: Sequence[Statement]) -> Statement:
    alike = len({finding.vote.score for finding in findings}) == 1
    return findings[0] if alike else Statement(contradiction_vote(finding.vote.label for finding in findings))


def _missing_reason(missing: Sequence[Judgement], judgements: Sequence[Judgement]) -> str:
    problem = next(vote.problem for vote in missing[0].votes if vote.problem)
    if len(missing) == len(judgements):
        return problem
    how_many = f"{show_number(len(missing))} of {counted(len(judgements), 'sentence')}"
    return f"no verdict on {how_many}: {_quote(missing[0])}: {problem}"


def _reason(status: Status, judgements: Sequence[Judgement]) -> str:
    wrong = [judgement for judgement in judgements if judgement.score == 0.0]
    reasons = []
    if status is Status.FAILED and wrong:
        deciders = ((judgement, deciding_vote(judgement.votes)) for judgement in wrong)
        named = [f"{_quote(judgement)} ({vote.label if vote else ''})" for judgement, vote in deciders]
        text = f"{show_number(len(wrong))} of {counted(len(judgements), 'sentence')} are not supported"
        reasons.append(f"{text}: {short_list(named, _MAX_NAMED)}")
    short = (votes_counted(judgement.votes) for judgement in judgements if judgement.score is not None)
    reasons += [worst] if (worst := min(filter(None, short), default="")) else []
    return "; ".join(reasons)


def _quote(judgement: Judgement) -> str:
    return f"“{cut(visible(judgement.subject), _MAX_QUOTE_LENGTH)}”"
