"""Judgements, and the judges that made them."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaltui.core.model.base_model import LEFT_OUT_IF_EMPTY, TextOrNull, keys_first


@dataclass(frozen=True)
class Vote:
    """A judge's answer on one subject."""

    score: float | None
    """None where the answer gives no verdict."""
    rationale: str = ""
    label: str = ""
    """The verdict in the judge's word, such as `valid`."""
    problem: TextOrNull = ""
    """Why it does not count; none where it does."""
    version: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """The model that answered, as its response names it; "" where it names none."""

    _keys = keys_first("score", "label")


@dataclass(frozen=True)
class Evidence:
    """A text that speaks for or against what was judged."""

    kind: str
    """Kind of evidence, such as `contradicting`."""
    text: str


@dataclass(frozen=True)
class Judgement:
    """Judgement of one subject: an answer, a rubric, a sentence."""

    id: str
    """The rubric's or the sentence's; "" for an answer."""
    subject: str
    """The text that was judged."""
    score: float | None
    """None where it was not judged."""
    rationale: str = ""
    evidence: tuple[Evidence, ...] = ()
    votes: tuple[Vote, ...] = ()
    """The answers that it was decided by."""


@dataclass(frozen=True)
class JudgedBy:
    """Who judged by which prompt, and how many questions came to what."""

    model: str
    """The judge."""
    prompt: str
    """Its name and version, `final_response_match/1`."""
    asked: int = 0
    """Questions."""
    answered: int = 0
    """Questions that were answered."""
    replayed: int = 0
    """Answers that came from a recording."""
    unasked: int = 0
    """Questions put to nobody: a replay had no answer to them."""
    versions: tuple[str, ...] = field(default=(), metadata=LEFT_OUT_IF_EMPTY)
    """Models that answered, as their responses name them, each once; none where they name none."""

    @property
    def live(self) -> int:
        """How many questions a judge was asked, those included that it failed to answer."""
        return self.asked - self.replayed - self.unasked
