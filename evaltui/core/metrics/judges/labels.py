"""What a judge's answer says: its verdicts, with the reasons that it gives for them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.metrics.judges.json_answers import JudgeAnswer, read_json
from evaltui.core.metrics.judges.rubrics import HeldRubric
from evaltui.core.model.outcome import Vote
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
            return Vote(None, rationale, word, "the judge cannot tell")
        opposite = self.negative if word in self.positive else self.positive
        if word not in self.positive + self.negative or set(re.findall(r"\w+", after)) & set(opposite):
            return Vote(None, rationale, word, f"{_quote(label)} is no verdict: {self._choice}")
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
        said = rf"\b(?:{_either(self.denials)})\b"
        return re.compile(f"{said}|{negated}", re.IGNORECASE)

    @property
    def _choice(self) -> str:
        return f"{self.positive[0]} or {self.negative[0]} was asked for"


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
    said = f"it begins {_quote(text)}" if text.strip() else "it is empty"
    return Vote(None, problem=f"the judge's answer could not be read: {said}")


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
