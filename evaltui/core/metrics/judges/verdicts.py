"""Verdicts read from judges' answers: labels as words, votes for them, and a metric's result over turns."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from evaltui.core.metrics.judges.judge import (
    Answer,
    JudgeAnswer,
    JudgeFailedError,
    Sample,
    judged_by,
    read_json,
)
from evaltui.core.metrics.judges.rubrics import HeldRubric
from evaltui.core.metrics.metric import (
    MetricInput,
    in_turns,
    mean,
    not_evaluated,
    nothing_to_score,
    required_threshold,
    verdict,
)
from evaltui.core.model.criteria import JudgeModelOptions
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.judgement import Judgement, Vote
from evaltui.core.model.outcome import ErrorInfo, InvocationScore, MetricResult, Status
from evaltui.core.prompts import Prompt
from evaltui.text.values import cut, visible

_LONGEST_QUOTE = 80
_DECORATION = " \t*_`'\"()[]{}<>"
_END_OF_CLAUSE = re.compile(r"[.,;:!(]|\s[-–—]\s")
_REASON_KEYS = ("reasoning", "rationale", "reason", "explanation")


@dataclass(frozen=True)
class Labels:
    """The words, in lower case, by which a judge says yes, no, or that it cannot tell."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]
    undecided: tuple[str, ...] = ("unknown", "unclear", "cannot tell")
    denials: tuple[str, ...] = ()
    """Words that say no wherever they stand beside the JSON."""
    affirmed: tuple[str, ...] = ()
    """Words that say no there after a `not`."""

    def vote(self, label: Any, rationale: str = "") -> Vote:
        """The vote that a label stands for; without a score where it is none of the words.

        Case, quotes and emphasis count for nothing, and so does a reason after the word, unless it holds the
        opposite: `**Yes**, because …`.
        """
        word, after = _clauses(label)
        if word in self.undecided:
            return Vote(None, rationale, word, "judge cannot tell")
        opposite = self.negative if word in self.positive else self.positive
        if word not in self.positive + self.negative or set(re.findall(r"\w+", after)) & set(opposite):
            asked = f"expected {self.positive[0]} or {self.negative[0]}"
            return Vote(None, rationale, word, f"{_quote(label)} is not a verdict: {asked}")
        return Vote(float(word in self.positive), rationale, word)

    def unless_denied(self, vote: Vote, prose: str, *names: str) -> Vote:
        """The vote, or none where the prose beside the JSON says something else.

        That is another label behind one of `names` (`Verdict: invalid`), and of a positive vote a denial.
        """
        if vote.score is None or not prose:
            return vote
        stated = [(match["label"], bool(match["not"])) for match in self._statements(names).finditer(prose)]
        others = [
            label for label, denied in stated if denied or self.vote(label).score not in (None, vote.score)
        ]
        if vote.score and (denial := self._denial.search(prose)):
            others.append(denial[0])
        return contradiction([vote.label, *(_plain(other) for other in others)]) if others else vote

    def _statements(self, names: tuple[str, ...]) -> re.Pattern[str]:
        return re.compile(
            rf"\b(?:{_either(names)})\W+(?:(?:is|was)\W+)?(?P<not>not\W+)?"
            rf"(?P<label>{_either(self.positive + self.negative)})\b",
            re.IGNORECASE,
        )

    @cached_property
    def _denial(self) -> re.Pattern[str]:
        negated = rf"\b(?:not|never|\w+n['’]t)\s+(?:\w+\s+){{0,2}}(?:{_either(self.affirmed)})\b"
        denied = rf"\b(?:{_either(self.denials)})\b"
        return re.compile(f"{denied}|{negated}", re.IGNORECASE)


VALIDITY = Labels(
    positive=("valid", "true"),
    negative=("invalid", "false", "almost", "partially valid", "partially"),
    denials=("invalid", "partially valid"),
    affirmed=("valid", "correct", "agree", "agrees"),
)
FULFILMENT = Labels(
    positive=("yes", "true"),
    negative=("no", "false"),
    denials=("unfulfilled",),
    affirmed=("yes", "fulfilled", "fulfilling", "fulfil", "fulfill", "met", "satisfied"),
)

VALIDITY_KEY = "is_the_agent_response_valid"


def read_validity(text: str) -> Vote:
    """The verdict on an answer; `label` is "" where there is none. Two that differ are none."""
    answer = read_json(text)
    found = answer.objects_with(VALIDITY_KEY)
    votes = [VALIDITY.vote(_only(one[VALIDITY_KEY]), _reason(one)) for one in found]
    vote = only_vote(votes) or without_verdict(answer, text)
    return VALIDITY.unless_denied(vote, answer.prose, VALIDITY_KEY, "verdict")


def without_verdict(answer: JudgeAnswer, text: str) -> Vote:
    """An answer that holds no verdict, or two in one object."""
    return contradiction([answer.contradiction]) if answer.contradiction else unreadable(text)


def read_fulfilment(text: str, rubrics: Sequence[HeldRubric]) -> list[tuple[str, Vote]]:
    """The verdict on each of the rubrics that the text has one for, by id, in the order of the rubrics.

    The text is JSON, or lines such as `ID: short` and `Verdict: yes`. A rubric is known by its id, else by
    its text. Two verdicts on one that differ are none.
    """
    answer = read_json(text)
    if answer.contradiction:
        return [(rubric.id, without_verdict(answer, text)) for rubric in rubrics]
    findings = [*_json_findings(answer), *_line_findings(answer.prose)]
    by_id = {rubric.id.strip(): rubric.id for rubric in rubrics}
    texts = Counter(_plain(rubric.text) for rubric in rubrics)
    by_text = {plain: rubric.id for rubric in rubrics if texts[plain := _plain(rubric.text)] == 1}
    votes: dict[str, list[Vote]] = {rubric.id: [] for rubric in rubrics}
    of_all: list[Vote] = []
    for finding in findings:
        vote = FULFILMENT.vote(_only(finding.verdict), finding.rationale)
        subject = by_id.get(finding.id.strip(), by_text.get(_plain(finding.text)))
        if subject is not None:
            votes[subject].append(vote)
        elif not finding.id.strip() and not finding.text.strip():
            # A verdict on nothing: what came before it may have been a quotation.
            of_all.append(vote)
    prose = "" if not answer.values else answer.prose
    return [
        (subject, FULFILMENT.unless_denied(only, prose, "verdict"))
        for subject, given in votes.items()
        if given and (only := only_vote([*given, *of_all]))
    ]


def unreadable(text: str) -> Vote:
    """An answer without a verdict, with its beginning."""
    beginning = f"{_quote(text)}" if text.strip() else "empty"
    return Vote(None, problem=f"unreadable judge response: {beginning}")


@dataclass(frozen=True)
class _Finding:
    verdict: Any
    id: str = ""
    text: str = ""
    rationale: str = ""


def _json_findings(answer: JudgeAnswer) -> list[_Finding]:
    return [
        _Finding(
            found["verdict"],
            str(found.get("id", found.get("rubric_id", ""))),
            str(found.get("rubric", found.get("property", ""))),
            _reason(found),
        )
        for found in answer.objects_with("verdict")
    ]


_FIELD = re.compile(
    r"^[ \t*_#>•-]*(ID|Property|Rubric|Evidence|Rationale|Verdict)[*_ ]*:[*_]*(.*)$",
    re.MULTILINE | re.IGNORECASE,
)


def _line_findings(text: str) -> list[_Finding]:
    """Blocks of `Name: value` lines, each ended by its verdict; a name that comes again begins a new one."""
    findings: list[_Finding] = []
    block: dict[str, str] = {}
    for match in _FIELD.finditer(text):
        name, value = match[1].lower(), match[2].strip()
        if name in block:
            block = {}
        block[name] = value
        if name == "verdict":
            stated = block.get("property", block.get("rubric", ""))
            findings.append(_Finding(value, block.get("id", ""), stated, block.get("rationale", "")))
            block = {}
    return findings


def only_vote(votes: Sequence[Vote]) -> Vote | None:
    """The vote of an answer that may have given it more than once; None where it gave none."""
    if len({vote.score for vote in votes}) > 1:
        return contradiction([vote.label for vote in votes], votes[-1].rationale)
    return votes[0] if votes else None


def contradiction(labels: Iterable[str], rationale: str = "") -> Vote:
    """An answer that says two things at once, which is no verdict."""
    both = " and ".join(dict.fromkeys(labels))
    return Vote(None, rationale, both, f"the judge contradicts itself: {both}")


def _only(value: Any) -> Any:
    """The one item of a list that has one: `["yes"]`."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _reason(found: dict[str, Any]) -> str:
    reason = next((found[key] for key in _REASON_KEYS if found.get(key)), "")
    return reason.strip() if isinstance(reason, str) else str(_only(reason))


def _clauses(label: Any) -> tuple[str, str]:
    """A label in lower case as its first clause and the rest."""
    first, *rest = _END_OF_CLAUSE.split(_plain(label), maxsplit=1)
    return first.strip(_DECORATION), "".join(rest)


def _either(words: Iterable[str]) -> str:
    """A pattern for one of the words; for none where there are none."""
    return "|".join(re.escape(word).replace(r"\ ", r"[\s_]+") for word in words) or "(?!)"


def _plain(value: Any) -> str:
    """A text as it is compared: without case, decoration, and the look of blanks and quotes."""
    text = unicodedata.normalize("NFKC", str(value)).replace("_", " ")
    text = text.replace("’", "'").replace("“", '"').replace("”", '"')
    return " ".join(text.split()).strip(_DECORATION + "#>•-").casefold()


def _quote(value: Any) -> str:
    return repr(cut(visible(str(value).strip()), _LONGEST_QUOTE))


def turn_without_verdict(
    samples: Sequence[Sample], judgements: tuple[Judgement, ...], *, is_readable: Callable[[str], bool]
) -> InvocationScore:
    """A turn of which no answer says anything that counts.

    An ERROR where no question was answered, or no readable response; NOT_EVALUATED where the judge would
    not tell.
    """
    answers = [sample.text for sample in samples if isinstance(sample, Answer)]
    if any(is_readable(text) for text in answers):
        return InvocationScore(None, Status.NOT_EVALUATED, "no verdict from the judge", judgements)
    reason = unreadable(answers[0]).problem if answers else str(samples[0])
    return InvocationScore(None, Status.ERROR, reason, judgements)


def voided_as_adk(
    samples: Sequence[Sample], judgements: tuple[Judgement, ...], *, is_decided: bool
) -> InvocationScore | None:
    """In google-adk 2.13 one failed question voids the turn, and one without a verdict is passed over."""
    failed = next((sample for sample in samples if isinstance(sample, JudgeFailedError)), None)
    if failed is None and is_decided:
        return None
    reason = (
        f"a judge request failed, so the turn is not scored: {failed}" if failed else "no readable response"
    )
    unscored = tuple(replace(judgement, score=None) for judgement in judgements)
    return InvocationScore(None, Status.NOT_EVALUATED, reason, unscored)


def unless_open(result: MetricResult, unasked: Container[int] = ()) -> MetricResult:
    """A metric cannot pass while a part of what should have been judged was not.

    That is, a turn with a judgement that has no score, and one that nobody could be asked about.
    """
    reasons = {
        number: turn.reason
        for number, turn in enumerate(result.per_invocation)
        if number in unasked or any(judgement.score is None for judgement in turn.judgements)
    }
    if result.status is not Status.PASSED or not reasons:
        return result
    return replace(result, status=Status.NOT_EVALUATED, reason=in_turns(reasons))


NO_ANSWER = "no response text"


def undecided(given: MetricInput, reason: str, judgements: tuple[Judgement, ...] = ()) -> InvocationScore:
    """A turn on which a judge was asked and gave no verdict: an error, which google-adk passes over."""
    status = Status.NOT_EVALUATED if given.as_adk else Status.ERROR
    return InvocationScore(None, status, reason, judgements)


def result_over_turns(
    given: MetricInput,
    turns: Sequence[InvocationScore],
    samples: Mapping[int, Sequence[Sample]],
    options: JudgeModelOptions,
    prompt: Prompt,
    *,
    score: float | None = None,
) -> MetricResult:
    """The verdict by `score`, else by the mean over the turns that have one; ERROR where a turn is.

    `samples` are those of each turn that was asked about. Raises CriterionError where the metric has no
    threshold.
    """
    threshold = required_threshold(given.metric)
    name, asked = given.metric.metric_name, judged_by(options, prompt, chain.from_iterable(samples.values()))
    judge = asked if asked.asked else None
    if reason := _reasons(turns, Status.ERROR):
        error = _error(turns, samples) or ErrorInfo("UnreadableAnswerError", reason, kind=ErrorKind.JUDGE)
        return MetricResult(name, None, threshold, Status.ERROR, tuple(turns), reason, error, judge=judge)
    scores = [turn.score for turn in turns if turn.score is not None]
    if not scores:
        reason = _reasons(turns, Status.NOT_EVALUATED) or nothing_to_score(turns)
        return replace(not_evaluated(given.metric, reason, tuple(turns)), judge=judge)
    overall = mean(scores) if score is None else score
    status = verdict(overall, threshold)
    reason = _reasons(turns, Status.FAILED)
    if status is Status.FAILED and not reason:
        reason = f"the mean over turns, {overall!r}, is below {threshold!r}"
    return MetricResult(name, overall, threshold, status, tuple(turns), reason, judge=judge)


def _reasons(turns: Sequence[InvocationScore], status: Status) -> str:
    return in_turns({number: turn.reason for number, turn in enumerate(turns) if turn.status is status})


def _error(turns: Sequence[InvocationScore], samples: Mapping[int, Sequence[Sample]]) -> ErrorInfo | None:
    """Why a judge did not answer, of the first turn that is without a verdict for this."""
    return next(
        (
            sample.error
            for number, turn in enumerate(turns)
            if turn.status is Status.ERROR
            for sample in samples.get(number, ())
            if isinstance(sample, JudgeFailedError)
        ),
        None,
    )
