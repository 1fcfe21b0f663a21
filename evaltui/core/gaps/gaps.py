"""Gaps of eval sets: changes of passing conversations that their cases do not notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evaltui.core.gaps.answer_changes import is_english
from evaltui.core.gaps.coverage import CellCoverage, Coverage
from evaltui.core.gaps.mutants import MAX_PER_KIND, SUBJECTS, Mutant, RecordedCase, Subject
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation, scored_text
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.core.scoring import is_passed_over, metric_results, status_of

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
    digest: str
    """The digest of its kind and its content, by which it is marked as meant so."""

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
    meant_so: list[Gap] = field(default_factory=list)
    """Changes that need not be noticed, and are not counted."""


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
    meant_so: int
    """Changes that need not be noticed, and are not counted."""

    def with_case(self, case: CaseId, again: GapReport) -> GapReport:
        """The report with the gaps of a case as another search found them, with the same changes."""
        kinds = []
        for kind in self.kinds:
            new = next((other for other in again.kinds if other.kind == kind.kind), KindOfChange("", "calls"))
            before, after = (
                [sum(gap.case == case for gap in gaps) for gaps in (side.gaps, side.meant_so)]
                for side in (kind, new)
            )
            kinds.append(
                replace(
                    kind,
                    changes=kind.changes + before[1] - after[1],
                    noticed=kind.noticed + sum(before) - sum(after),
                    gaps=_replaced(kind.gaps, case, new.gaps),
                    meant_so=_replaced(kind.meant_so, case, new.meant_so),
                )
            )
        return replace(self, kinds=tuple(kinds)).counted()

    def counted(self) -> GapReport:
        """The report with the sums of its kinds as they are now."""
        return GapReport(
            **_sums(self.kinds),
            kinds=self.kinds,
            not_counted=self.not_counted,
            left_out_metrics=self.left_out_metrics,
            coverage=self.coverage,
        )

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
        for mutant in recorded.mutants(most):
            await self._score(case, recorded, mutant)

    async def _score(self, case: CaseId, recorded: RecordedCase, mutant: Mutant) -> None:
        results = await scores_of(recorded, mutant)
        if not results and recorded.left_out_metrics:
            why = f"{mutant.subject}: left to {', '.join(recorded.left_out_metrics)}"
            self.skip(case, recorded.expected.eval_set_id, why, mutant.turn)
            return
        kind = self._kinds.setdefault(mutant.kind, KindOfChange(mutant.kind, mutant.subject))
        if is_noticed_by(results, recorded):
            kind.changes += 1
            kind.noticed += 1
            self.coverage.noticed.update(set(mutant.cells))
            return
        scores = tuple(MetricScore(result.name, result.score, result.threshold) for result in results)
        turn = None if mutant.turn is None else mutant.turn + 1
        eval_set_id = recorded.expected.eval_set_id
        digest = recorded.digest(mutant)
        gap = Gap(eval_set_id, *case, turn, mutant.before, mutant.after, scores, digest)
        if (mutant.turn, digest) in recorded.meant_so:
            kind.meant_so.append(gap)
            return
        kind.changes += 1
        kind.gaps.append(gap)

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
        kinds = [replace(kind, gaps=[*kind.gaps], meant_so=[*kind.meant_so]) for kind in self._kinds.values()]
        kinds.sort(key=lambda kind: -len(kind.gaps))
        return GapReport(
            **_sums(kinds),
            kinds=tuple(kinds),
            not_counted=tuple(self._not_counted),
            left_out_metrics=tuple(self._left_out),
            coverage=tuple(self.coverage.rows),
        )


def _replaced(gaps: Sequence[Gap], case: CaseId, new: Sequence[Gap]) -> list[Gap]:
    """Gaps with others for those of a case, in their place."""
    place = next((number for number, gap in enumerate(gaps) if gap.case == case), len(gaps))
    return [*gaps[:place], *new, *(gap for gap in gaps[place:] if gap.case != case)]


def _sums(kinds: Sequence[KindOfChange]) -> dict[str, int]:
    return {
        "changes": sum(kind.changes for kind in kinds),
        "noticed": sum(kind.noticed for kind in kinds),
        "meant_so": sum(len(kind.meant_so) for kind in kinds),
    }


async def scores_of(recorded: RecordedCase, mutant: Mutant) -> Sequence[MetricResult]:
    """The results of the metrics that see a change and decide; none where no metric does."""
    expected, names = recorded.expected, recorded.seen_by[mutant.subject]
    if not names:
        return ()
    results = await metric_results(expected, mutant.turns, final_state=mutant.final_state, only=names)
    return [result for result in results if not is_passed_over(result, expected)]


def is_noticed_by(results: Sequence[MetricResult], recorded: RecordedCase) -> bool:
    """Whether a case notices a change that has these results."""
    return bool(results) and status_of(results, recorded.expected) is not Status.PASSED


async def passes(
    recorded: RecordedCase, turns: Sequence[Invocation], final_state: Mapping[str, Any] | None
) -> bool:
    """Whether a conversation passes by the computed metrics of a case."""
    names = frozenset[str]().union(*recorded.seen_by.values())
    results = await metric_results(recorded.expected, turns, final_state=final_state, only=names)
    return status_of(results, recorded.expected) is Status.PASSED


async def _problem(recorded: RecordedCase) -> str:
    """Why a case cannot be changed; "" where it can."""
    if recorded.expected.case.conversation is None:
        return "simulated user: no turns are expected"
    names = frozenset[str]().union(*recorded.seen_by.values())
    if not names:
        left = ", ".join(recorded.left_out_metrics)
        return f"left to {left}" if left else "no metric decides"
    if await passes(recorded, recorded.turns, recorded.final_state):
        return ""
    return "does not pass by its case and config of now"
