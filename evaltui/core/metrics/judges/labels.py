"""What a judge's answer says: its verdicts, with the reasons that it gives for them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evaltui.core.metrics.judges.json_answers import json_values, objects_with
from evaltui.core.metrics.judges.rubrics import HeldRubric
from evaltui.core.outcome import Vote
from evaltui.core.show import cut, visible

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

    @property
    def _choice(self) -> str:
        return f"{self.positive[0]} or {self.negative[0]} was asked for"


VALIDITY = Labels(
    positive=("valid", "true"), negative=("invalid", "false", "almost", "partially valid", "partially")
)
FULFILMENT = Labels(positive=("yes", "true"), negative=("no", "false"))

VALIDITY_KEY = "is_the_agent_response_valid"
_BROKEN_VALIDITY = re.compile(rf"""{VALIDITY_KEY}["']?\s*:[\s\["']*(\w[\w ]*)""")


def read_validity(text: str) -> Vote:
    """The verdict on an answer; `label` is "" where there is none. Two that differ are none."""
    objects = [found for value in json_values(text) for found in objects_with(VALIDITY_KEY, value)]
    votes = [VALIDITY.vote(_only(found[VALIDITY_KEY]), _reason(found)) for found in objects]
    if not votes:
        # JSON that was cut off, or has a quote in its reasons that is not escaped.
        votes = [VALIDITY.vote(label) for label in _BROKEN_VALIDITY.findall(text)]
    return _one_of(votes) or unreadable(text)


def read_fulfilment(text: str, rubrics: Sequence[HeldRubric]) -> list[tuple[str, Vote]]:
    """The verdict on each of the rubrics that the text has one for, by id, in the order of the rubrics.

    The text is JSON, or lines such as `ID: short` and `Verdict: yes`. A rubric is known by its id, else by
    its text. Two verdicts on one that differ are none.
    """
    findings = _json_findings(text) or _line_findings(text)
    by_id = {rubric.id.strip(): rubric.id for rubric in rubrics}
    texts = Counter(_plain(rubric.text) for rubric in rubrics)
    by_text = {plain: rubric.id for rubric in rubrics if texts[plain := _plain(rubric.text)] == 1}
    votes: dict[str, list[Vote]] = {rubric.id: [] for rubric in rubrics}
    for finding in findings:
        subject = by_id.get(finding.id.strip(), by_text.get(_plain(finding.text)))
        if subject is not None:
            votes[subject].append(FULFILMENT.vote(_only(finding.verdict), finding.rationale))
    return [(subject, vote) for subject, given in votes.items() if (vote := _one_of(given))]


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


def _json_findings(text: str) -> list[_Finding]:
    return [
        _Finding(
            found["verdict"],
            str(found.get("id", found.get("rubric_id", ""))),
            str(found.get("rubric", found.get("property", ""))),
            _reason(found),
        )
        for value in json_values(text)
        for found in objects_with("verdict", value)
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


def _one_of(votes: Iterable[Vote]) -> Vote | None:
    """The vote of an answer that may have given it more than once; None where it gave none."""
    given = list(votes)
    if not given:
        return None
    if len({vote.score for vote in given}) > 1:
        labels = " and ".join(dict.fromkeys(vote.label for vote in given))
        return Vote(None, given[-1].rationale, labels, f"the judge contradicts itself: {labels}")
    return given[0]


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


def _plain(value: Any) -> str:
    """A text as it is compared: without case, decoration, and the look of blanks and quotes."""
    text = unicodedata.normalize("NFKC", str(value)).replace("_", " ")
    text = text.replace("’", "'").replace("“", '"').replace("”", '"')
    return " ".join(text.split()).strip(_DECORATION + "#>•-").casefold()


def _quote(value: Any) -> str:
    return repr(cut(visible(str(value).strip()), _LONGEST_QUOTE))
