"""Gaps of eval sets: changes of passing conversations that their cases do not notice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, TypedDict

from pydantic import Field

from evaltui.core.gaps.cells import Cell
from evaltui.core.gaps.changes import is_english
from evaltui.core.gaps.coverage import CellCoverage, Coverage
from evaltui.core.gaps.judged_changes import JudgedChange
from evaltui.core.gaps.mutants import MAX_PER_KIND, SUBJECTS, Mutant, RecordedCase, Subject
from evaltui.core.model.base_model import Dollars
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.eval_set import Invocation, scored_text
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.core.model.spending import Spending
from evaltui.core.scoring import is_passed_over, metric_results, status_of

LOST_MARK = "a change marked as meant so is no longer there"
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
    subject: Annotated[Subject, Field(exclude=True)]
    """The subject of its kind, with which reports have it."""

    @property
    def case(self) -> CaseId:
        return CaseId(self.path, self.eval_id)


@dataclass(frozen=True, slots=True)
class NotJudged(Gap):
    """A change that no computed metric noticed, and on which judges gave no verdict."""

    reason: str

    @classmethod
    def of(cls, gap: Gap, reason: str) -> NotJudged:
        sides = gap.before, gap.after
        return cls(gap.eval_set_id, *gap.case, gap.turn, *sides, gap.metrics, gap.digest, gap.subject, reason)


@dataclass(slots=True)
class KindOfChange:
    """The changes of a kind."""

    kind: str
    subject: Subject
    changes: int = 0
    """Changes with a verdict."""
    noticed: int = 0
    noticed_by: dict[str, int] = field(default_factory=dict)
    """Noticed changes by metric; several may notice one, but judges are asked only where no other did."""
    gaps: list[Gap] = field(default_factory=list)
    meant_so: list[Gap] = field(default_factory=list)
    """Changes that need not be noticed, and are not counted."""
    not_judged: list[NotJudged] = field(default_factory=list)

    def notice(self, *metrics: str) -> None:
        """Counts a change that these metrics noticed."""
        self.changes += 1
        self.noticed += 1
        for name in metrics:
            self.noticed_by[name] = self.noticed_by.get(name, 0) + 1


NO_RESULT = "no result"
"""The reason for which a case that no run has is not counted."""


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
class ToJudge:
    """The changes that a judge may still notice, and what asking takes."""

    metrics: tuple[str, ...]
    changes: int
    calls: int
    """Calls at most: a metric that notices a change ends the questions about it."""
    models: tuple[str, ...]
    usd: Dollars | None
    """US dollars, by prices and an estimate of tokens; None where a price is unknown."""


@dataclass(frozen=True, slots=True)
class GapReport:
    """The gaps of eval sets."""

    changes: int
    """Changes with a verdict."""
    noticed: int
    not_judged: int
    """Changes on which judges gave no verdict: they count as neither."""
    kinds: tuple[KindOfChange, ...]
    """The kinds with most gaps first."""
    not_counted: tuple[NotCounted, ...]
    left_out_metrics: tuple[str, ...]
    """Metrics of judges that were not asked, and of the user: they may notice more."""
    coverage: tuple[CellCoverage, ...]
    meant_so: int
    """Changes that need not be noticed, and are not counted."""
    to_judge: ToJudge | None = None
    """None where nothing is left to judge, or where that is unknown."""
    spent: Spending | None = None
    """Spending on judges; None where none was asked."""

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
        return replace(self, **_sums(self.kinds))

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


class _Unjudged(NamedTuple):
    """A change that no computed metric noticed, and that a judge may notice."""

    kind: KindOfChange
    gap: Gap
    number: int
    """The place of the change among all of its case, from 0."""
    cells: frozenset[Cell]
    left_to: tuple[str, ...]
    """Metrics of the user that may notice it, where no computed metric looks at it."""


class GapSearch:
    """Changes cases, one by one, and gathers what they do not notice."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self.unjudged: dict[CaseId, list[_Unjudged]] = {}
        """The changes that a judge may notice, by case."""
        self.spent: Spending | None = None
        """Spending on judges so far; None before they are asked."""
        self._kinds: dict[str, KindOfChange] = {}
        self._not_counted: dict[NotCounted, None] = {}
        self._left_out: dict[str, None] = {}
        self._judged: dict[str, None] = {}
        # Cases without a computed metric.
        self._only_judged: set[CaseId] = set()
        # The places of judged cases among all, whose verdicts come in another order each time.
        self._places: dict[CaseId, int] = {}

    def skip(self, case: CaseId, eval_set_id: str, reason: str, turn: int | None = None) -> None:
        """Counts a case, or a turn from 0, as not changed."""
        number = None if turn is None else turn + 1
        self._not_counted[NotCounted(eval_set_id, *case, number, reason)] = None

    async def add(self, case: CaseId, recorded: RecordedCase, most: int = MAX_PER_KIND) -> None:
        """Changes a conversation that passed and scores each change."""
        self._left_out |= dict.fromkeys(recorded.left_out_metrics)
        self._judged |= dict.fromkeys(recorded.judged_metrics)
        if problem := await _problem(recorded):
            self.skip(case, recorded.expected.eval_set_id, problem)
            return
        self._name_unscored(case, recorded)
        if not recorded.deciding:
            self._only_judged.add(case)
        marks = set(recorded.meant_so)
        for number, mutant in enumerate(recorded.mutants(most)):
            await self._score(case, recorded, mutant, number)
            if marks:
                marks.discard((mutant.turn, recorded.digest(mutant)))
        for turn in sorted(-1 if turn is None else turn for turn, _ in marks):
            self.skip(case, recorded.expected.eval_set_id, LOST_MARK, None if turn < 0 else turn)

    async def _score(self, case: CaseId, recorded: RecordedCase, mutant: Mutant, number: int) -> None:
        results = await scores_of(recorded, mutant)
        if not results and recorded.left_out_metrics and not recorded.judged_metrics:
            why = _left_to(mutant.subject, recorded.left_out_metrics)
            self.skip(case, recorded.expected.eval_set_id, why, mutant.turn)
            return
        kind = self._kinds.setdefault(mutant.kind, KindOfChange(mutant.kind, mutant.subject))
        if is_noticed_by(results, recorded):
            kind.notice(*(item.name for item in results if item.status is Status.FAILED))
            self.coverage.noticed.update(set(mutant.cells))
            return
        turn = None if mutant.turn is None else mutant.turn + 1
        eval_set_id = recorded.expected.eval_set_id
        sides, scores, digest = (mutant.before, mutant.after), _scores(results), recorded.digest(mutant)
        gap = Gap(eval_set_id, *case, turn, *sides, scores, digest, mutant.subject)
        if (mutant.turn, digest) in recorded.meant_so:
            kind.meant_so.append(gap)
        elif recorded.judged_metrics:
            self._places.setdefault(case, len(self._places))
            left_to = () if results else tuple(recorded.left_out_metrics)
            item = _Unjudged(kind, gap, number, frozenset(mutant.cells), left_to)
            self.unjudged.setdefault(case, []).append(item)
        else:
            kind.changes += 1
            kind.gaps.append(gap)

    def mutants_to_judge(self, recorded: RecordedCase, case: CaseId) -> Iterator[Mutant]:
        """The `unjudged` changes of a case, made again, in their order."""
        numbers = {item.number for item in self.unjudged[case]}
        return (mutant for number, mutant in enumerate(recorded.mutants()) if number in numbers)

    @property
    def judged_metrics(self) -> tuple[str, ...]:
        """Names of the metrics of judges."""
        return tuple(self._judged)

    def judge(self, case: CaseId, verdicts: Sequence[JudgedChange]) -> None:
        """Counts the `unjudged` changes of a case with their verdicts."""
        for item, verdict in zip(self.unjudged.pop(case), verdicts, strict=True):
            kind, gap = item.kind, item.gap
            if verdict.noticed_by:
                kind.notice(verdict.noticed_by)
                self.coverage.noticed.update(item.cells)
            elif verdict.reason:
                kind.not_judged.append(NotJudged.of(gap, verdict.reason))
            elif item.left_to:
                turn = None if gap.turn is None else gap.turn - 1
                self.skip(case, gap.eval_set_id, _left_to(kind.subject, item.left_to), turn)
            else:
                kind.changes += 1
                kind.gaps.append(replace(gap, metrics=(*gap.metrics, *_scores(verdict.results))))

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
        by_name = {
            name: replace(kind, gaps=[*kind.gaps], meant_so=[*kind.meant_so], not_judged=[*kind.not_judged])
            for name, kind in self._kinds.items()
        }
        not_counted = dict(self._not_counted)
        for item in (item for items in self.unjudged.values() for item in items):
            kind, gap = by_name[item.kind.kind], item.gap
            if gap.metrics:
                kind.changes += 1
                kind.gaps.append(gap)
            else:
                turn, subject = (None, "") if gap.case in self._only_judged else (gap.turn, kind.subject)
                why = _left_to(subject, [*self._judged, *item.left_to])
                not_counted[NotCounted(gap.eval_set_id, *gap.case, turn, why)] = None
        if self.spent is not None:
            for kind in by_name.values():
                for changes in (kind.gaps, kind.not_judged):
                    changes.sort(key=lambda gap: self._places.get(gap.case, -1))
        kinds = sorted(by_name.values(), key=lambda kind: -len(kind.gaps))
        return GapReport(
            **_sums(kinds),
            kinds=tuple(kind for kind in kinds if kind.changes or kind.meant_so or kind.not_judged),
            not_counted=tuple(not_counted),
            left_out_metrics=(*(self._judged if self.spent is None else ()), *self._left_out),
            coverage=tuple(self.coverage.rows),
            spent=self.spent,
        )


def _scores(results: Iterable[MetricResult]) -> tuple[MetricScore, ...]:
    return tuple(MetricScore(result.name, result.score, result.threshold) for result in results)


def _left_to(subject: str, metrics: Iterable[str]) -> str:
    """`answers: left to safety_v1`; without a subject for all changes of a case."""
    of_subject = f"{subject}: " if subject else ""
    return f"{of_subject}left to {', '.join(metrics)}"


def _replaced(gaps: Sequence[Gap], case: CaseId, new: Sequence[Gap]) -> list[Gap]:
    """Gaps with others for those of a case, in their place."""
    place = next((number for number, gap in enumerate(gaps) if gap.case == case), len(gaps))
    return [*gaps[:place], *new, *(gap for gap in gaps[place:] if gap.case != case)]


class _Sums(TypedDict):
    changes: int
    noticed: int
    not_judged: int
    meant_so: int


def _sums(kinds: Sequence[KindOfChange]) -> _Sums:
    return {
        "changes": sum(kind.changes for kind in kinds),
        "noticed": sum(kind.noticed for kind in kinds),
        "not_judged": sum(len(kind.not_judged) for kind in kinds),
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
    results = await metric_results(recorded.expected, turns, final_state=final_state, only=recorded.deciding)
    return status_of(results, recorded.expected) is Status.PASSED


async def _problem(recorded: RecordedCase) -> str:
    """Why a case cannot be changed; "" where it can."""
    if recorded.expected.case.conversation is None:
        return "simulated user: no turns are expected"
    if not recorded.deciding:
        left = ", ".join(recorded.left_out_metrics)
        if not recorded.judged_metrics:
            return f"left to {left}" if left else "no metric decides"
    if not recorded.deciding or await passes(recorded, recorded.turns, recorded.final_state):
        return ""
    return "does not pass by its case and config of now"
