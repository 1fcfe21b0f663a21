"""Gaps of eval sets: changes of passing conversations that their cases do not notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from evaltui.core.gaps.answer_changes import is_english
from evaltui.core.gaps.coverage import CellCoverage, Coverage
from evaltui.core.gaps.mutants import MAX_PER_KIND, SUBJECTS, Mutant, RecordedCase, Subject
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import scored_text
from evaltui.core.model.outcome import Status
from evaltui.core.scoring import metric_results, status_of

NOT_ENGLISH = "not English as far as known: not negated, renamed or with a promise"


@dataclass(frozen=True, slots=True)
class MetricScore:
    """The score that a metric gives a changed conversation."""

    name: str
    score: float | None
    threshold: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """A change that its case did not notice."""

    eval_set_id: str
    path: str
    """The file of the set, as in `CaseId`."""
    eval_id: str
    turn: int | None
    """From 1; None for the final state."""
    before: str
    """The changed part, of a response all of it; "" for nothing."""
    after: str
    metrics: tuple[MetricScore, ...]
    """The metrics that look at it."""
    number: Annotated[int, Field(exclude=True)]
    """Its place among the mutants of its case, from 0; no report has it."""

    @property
    def case(self) -> CaseId:
        return CaseId(self.path, self.eval_id)


@dataclass(slots=True)
class KindOfChange:
    """The changes of a kind."""

    kind: str
    subject: Subject
    changes: int = 0
    noticed: int = 0
    gaps: list[Gap] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NotCounted:
    """A case or a turn that was not changed, or not in each way."""

    eval_set_id: str
    path: str
    eval_id: str
    """"" for all cases of the set."""
    turn: int | None
    """From 1; None for all of the case."""
    reason: str


@dataclass(frozen=True, slots=True)
class GapReport:
    """The gaps of eval sets."""

    changes: int
    noticed: int
    kinds: tuple[KindOfChange, ...]
    """The kinds with most gaps first."""
    not_counted: tuple[NotCounted, ...]
    left_out_metrics: tuple[str, ...]
    """Metrics of judges and of the user: they were not asked, and may notice more."""
    coverage: tuple[CellCoverage, ...]

    def by_subject(self) -> Mapping[Subject, tuple[int, int]]:
        """The number of noticed changes and of all, by subject, those that were changed."""
        sums = {
            subject: tuple(
                sum(getattr(kind, name) for kind in self.kinds if kind.subject == subject)
                for name in ("noticed", "changes")
            )
            for subject in SUBJECTS
        }
        return {subject: (noticed, changes) for subject, (noticed, changes) in sums.items() if changes}


class GapSearch:
    """Changes cases, one by one, and gathers what they do not notice."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self._kinds: dict[str, KindOfChange] = {}
        self._not_counted: dict[NotCounted, None] = {}
        self._left_out: dict[str, None] = {}

    def skip(self, case: CaseId, eval_set_id: str, reason: str, turn: int | None = None) -> None:
        """Counts a case, or a turn from 0, as not changed."""
        number = None if turn is None else turn + 1
        self._not_counted[NotCounted(eval_set_id, *case, number, reason)] = None

    async def add(self, case: CaseId, recorded: RecordedCase, most: int = MAX_PER_KIND) -> None:
        """Changes a conversation that passed and scores each change."""
        self._left_out |= dict.fromkeys(recorded.left_out_metrics)
        if problem := await _problem(recorded):
            self.skip(case, recorded.expected.eval_set_id, problem)
            return
        self._name_unscored(case, recorded)
        for number, mutant in enumerate(recorded.mutants(most)):
            names = recorded.seen_by[mutant.subject]
            if not names and recorded.left_out_metrics:
                why = f"{mutant.subject}: left to {', '.join(recorded.left_out_metrics)}"
                self.skip(case, recorded.expected.eval_set_id, why, mutant.turn)
                continue
            await self._score(case, recorded, mutant, number)

    async def _score(self, case: CaseId, recorded: RecordedCase, mutant: Mutant, number: int) -> None:
        kind = self._kinds.setdefault(mutant.kind, KindOfChange(mutant.kind, mutant.subject))
        kind.changes += 1
        names = recorded.seen_by[mutant.subject]
        results = (
            await metric_results(recorded.expected, mutant.turns, final_state=mutant.final_state, only=names)
            if names
            else []
        )
        if results and status_of(results, recorded.expected) is not Status.PASSED:
            kind.noticed += 1
            self.coverage.noticed.update(set(mutant.cells))
            return
        scores = tuple(MetricScore(result.name, result.score, result.threshold) for result in results)
        turn = None if mutant.turn is None else mutant.turn + 1
        eval_set_id = recorded.expected.eval_set_id
        kind.gaps.append(Gap(eval_set_id, *case, turn, mutant.before, mutant.after, scores, number))

    def _name_unscored(self, case: CaseId, recorded: RecordedCase) -> None:
        subjects: tuple[Subject, ...] = ("calls", "answers")
        for subject in subjects:
            for number, reason in recorded.unscored[subject].items():
                self.skip(case, recorded.expected.eval_set_id, reason, number)
        thoughts = recorded.expected.score_thoughts
        for number, turn in enumerate(recorded.turns):
            text = scored_text(turn, thoughts=thoughts)
            if number not in recorded.unscored["answers"] and text.strip() and not is_english(text):
                self.skip(case, recorded.expected.eval_set_id, NOT_ENGLISH, number)

    def report(self) -> GapReport:
        """The report on all cases so far, which a search that goes on leaves as it is."""
        kinds = [replace(kind, gaps=[*kind.gaps]) for kind in self._kinds.values()]
        kinds.sort(key=lambda kind: -len(kind.gaps))
        return GapReport(
            sum(kind.changes for kind in kinds),
            sum(kind.noticed for kind in kinds),
            tuple(kinds),
            tuple(self._not_counted),
            tuple(self._left_out),
            tuple(self.coverage.rows),
        )


async def _problem(recorded: RecordedCase) -> str:
    """Why a case cannot be changed; "" where it can."""
    if recorded.expected.case.conversation is None:
        return "simulated user: no turns are expected"
    names = frozenset[str]().union(*recorded.seen_by.values())
    if not names:
        left = ", ".join(recorded.left_out_metrics)
        return f"left to {left}" if left else "no metric decides"
    results = await metric_results(
        recorded.expected, recorded.turns, final_state=recorded.final_state, only=names
    )
    if status_of(results, recorded.expected) is Status.PASSED:
        return ""
    return "does not pass by its case and config of now"
