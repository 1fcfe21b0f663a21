"""Judgements and their judges."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaltui.core.model.base_model import LEFT_OUT_IF_EMPTY, TextOrNull, keys_first


class Decided:
    """A result that is true if it passed, so that it can be asserted."""

    __slots__ = ()
    # A `Status`, which each has in its own words.
    status: str

    def __bool__(self) -> bool:
        return self.status == "PASSED"


@dataclass(frozen=True)
class Vote:
    """A judge's answer about one subject."""

    score: float | None
    """The score; None for an answer without a verdict."""
    rationale: str = ""
    label: str = ""
    """The verdict in the judge's own word, such as `valid`."""
    problem: TextOrNull = ""
    """Why the vote does not count; "" for one that counts."""
    version: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """The model that answered, as its response names it; "" where it names none."""

    _keys = keys_first("score", "label")


@dataclass(frozen=True)
class Evidence:
    """A text for or against the judged subject."""

    kind: str
    """Kind of evidence, such as `contradicting`."""
    text: str


@dataclass(frozen=True)
class Judgement:
    """The judgement of a subject: an answer, a rubric, a sentence."""

    id: str
    """The id of the rubric or sentence; "" for an answer."""
    subject: str
    """The judged text."""
    score: float | None
    """The score; None without a judgement."""
    rationale: str = ""
    evidence: tuple[Evidence, ...] = ()
    votes: tuple[Vote, ...] = ()
    """The votes."""


@dataclass(frozen=True)
class JudgedBy:
    """A judge, its prompt, and the numbers of its questions and answers."""

    model: str
    """The judge model."""
    prompt: str
    """Name and version of the prompt, `final_response_match/1`."""
    asked: int = 0
    """Number of questions."""
    answered: int = 0
    """Number of answered questions."""
    replayed: int = 0
    """Number of answers from a recording."""
    unasked: int = 0
    """Number of questions without an answer in a replay, which no judge was asked."""
    versions: tuple[str, ...] = field(default=(), metadata=LEFT_OUT_IF_EMPTY)
    """Models that answered, as their responses name them, each once; none where they name none."""

    @property
    def live(self) -> int:
        """Number of questions to a judge, including failed ones."""
        return self.asked - self.replayed - self.unasked
