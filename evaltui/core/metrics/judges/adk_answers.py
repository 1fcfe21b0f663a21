"""What google-adk 2.13 makes of a judge's answer, its quirks included: `--adk-verdicts` reads answers so.

Source: `_parse_critique` of its final_response_match_v2 and the parser of its rubric_based_evaluator; the
parity tests hold both sides against each other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from evaltui.core.metrics.judges.labels import VALIDITY_KEY, unreadable
from evaltui.core.metrics.judges.rubrics import HeldRubric
from evaltui.core.model.outcome import Vote

_AFTER_KEY = r'":\s*\[*\s*"*([^"^\]\s]*)"*\s*\]*\s*[,\n}]'
_VALID = re.compile(f'"{VALIDITY_KEY}{_AFTER_KEY}')
_INVALID = re.compile('"is_the_agent_response_invalid' + _AFTER_KEY)
_NEGATIVE = ("invalid", "almost", "false", "partially_valid", "partially")

# google-adk's own begin at empty lines before, which takes forever where there are thousands.
_ID = re.compile(r"^[^\S\n]*ID: (.*)$", re.MULTILINE)
_PROPERTY = re.compile(r"^[^\S\n]*Property: (.*)$", re.MULTILINE)
_RATIONALE = re.compile(r"(?<=Rationale: ).*")
_VERDICT = re.compile(r"(?<=Verdict: ).*")

_ASCII_LOOKALIKES = str.maketrans("‘’“”–—", "''\"\"--")


def read_validity_as_adk(text: str) -> Vote:
    """The first label behind the key decides; under the key `…_invalid`, everything but `true` and `invalid`
    is a yes."""
    if found := _VALID.search(text):
        label = found[1].rstrip(",}")
        if label in ("valid", "true"):
            return Vote(1.0, label=label)
        return Vote(0.0, label=label) if label in _NEGATIVE else unreadable(text)
    if found := _INVALID.search(text):
        label = found[1].rstrip(",}")
        return Vote(float(label not in ("true", "invalid")), label=label)
    return unreadable(text)


def read_fulfilment_as_adk(text: str, rubrics: Sequence[HeldRubric]) -> list[tuple[str, Vote]]:
    """The verdicts in lines, in their order, by the id of the rubric; one may come more than once.

    Nothing where there are not as many rationales and verdicts as properties. A verdict that holds `yes` is
    one, else one that holds `no` is none, `unknown` among them.
    """
    properties = list(_PROPERTY.finditer(text))
    rationales = _RATIONALE.findall(text)
    verdicts = _VERDICT.findall(text)
    if not len(properties) == len(rationales) == len(verdicts):
        return []
    by_id = {rubric.id: rubric.id for rubric in rubrics}
    by_text = {_normalised(rubric.text): rubric.id for rubric in rubrics}
    votes = []
    after = -1
    for stated, rationale, said in zip(properties, rationales, verdicts, strict=True):
        ids = [found[1].strip() for found in _ID.finditer(text) if after < found.start() < stated.start()]
        subject = by_id.get(ids[-1]) if ids and ids[-1] else None
        if subject is None:
            subject = by_text.get(_normalised(stated[1]))
        if subject is not None:
            votes.append((subject, Vote(_score(said), rationale.strip(), said.strip())))
        after = stated.start()
    return votes


def _score(verdict: str) -> float | None:
    if "yes" in verdict.lower():
        return 1.0
    return 0.0 if "no" in verdict.lower() else None


def _normalised(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(_ASCII_LOOKALIKES)
    return re.sub(r"\s+", " ", plain).strip(" *_`#>-•\"'").lower()
