"""What unsaved criteria make of the last results, and of the lines of their file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.core.thresholds import judged_by
from evaltui.documents.line_changes import LineChange
from evaltui.text.outcomes import STALE
from evaltui.views.cause import why
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.rows import MetricRow, Row

# Cases of which it is said why they fail: more than there are on a screen.
_MOST_CASES = 60


class Flip(NamedTuple):
    """A case that would have another outcome."""

    case: CaseId
    before: Status
    """By the criteria on disk."""
    after: Status
    """By the criteria as they are edited."""
    passes: bool
    """Whether it would pass."""


@dataclass(frozen=True)
class Flips:
    """What the unsaved criteria make of the last results."""

    cases: tuple[Flip, ...] = ()
    """Those that would pass first, each in the order of the sets."""
    failing: Mapping[CaseId, Status] = field(default_factory=dict)
    """How cases come out that pass by neither, of those of which a score has another verdict."""
    scored: int = 0
    """Cases that are known by both."""
    waiting: int = 0
    """Cases that scores do not tell of, and that are to be scored."""
    is_held: bool = False
    """Whether they are scored only when what is typed is applied."""
    unknown: int = 0
    """Cases without scores by one of both."""
    problem: str = ""
    """Why nothing can be compared, as a sentence; "" where it can."""


@dataclass(frozen=True)
class Effect:
    """What the unsaved changes of a config do, and what it says of a row."""

    name: str
    """The file's."""
    flips: Flips
    still_failing: tuple[tuple[CaseId, Status], ...] = ()
    """Cases that pass the current metric now, and fail by another, and how they come out."""
    why: Mapping[CaseId, str] = field(default_factory=dict)
    """Why cases would fail, of the first ones."""
    change: tuple[LineChange, ...] = ()
    """Lines of the file."""
    written: object = None
    """What the config says of the current row; None for nothing."""
    added: tuple[LineChange, ...] = ()
    """Lines that adding the current metric would change."""
    sets: Mapping[str, str] = field(default_factory=dict)
    """Names of the sets by their path, where the config is that of several."""
    twins: frozenset[str] = frozenset()
    """Ids of cases that more than one set has."""
    stale: int = 0
    """How many of the results only another run can tell of now."""


def flips_of(criteria: Criteria) -> Flips:
    """What the criteria as they are edited make of the last results, as far as is known."""
    if criteria.unreadable():
        return Flips(problem="Config is unreadable; results stay as they were")
    saved, edited = criteria.saved_config(), criteria.config()
    if edited is None:
        return Flips(problem="Config has errors; results stay as they were")
    if saved is None:
        return Flips(problem="Config on disk has errors; outcomes cannot be compared")
    scores = criteria.scores
    scores.follow(criteria.sets, saved, edited)
    before, after = scores.verdicts()
    flips = [
        Flip(case, before[case].status, now.status, now.passes)
        for case, now in after.items()
        if case in before and before[case] != now
    ]
    flipped = {flip.case for flip in flips}
    return Flips(
        tuple(sorted(flips, key=lambda flip: not flip.passes)),
        {case: now.status for case, now in after.items() if not now.passes and case not in flipped},
        scores.compared,
        len(scores.waiting),
        criteria.outcomes.is_scored_later,
        len(scores.unknown),
    )


def effect_of(criteria: Criteria, flips: Flips, row: Row | None) -> Effect:
    """Everything that the page of a row shows."""
    sets = criteria.sets
    metric = row if isinstance(row, MetricRow) else None
    can_be_added = metric is not None and not metric.asked and metric.gates and not metric.why_not
    labels = Counter(one.eval_set_id for one in sets)
    # The cases of a single set need no name of a set.
    several = sets if len(sets) > 1 else ()
    cases = Counter(case.eval_id for one in several for case in one.cases)
    now_pass = metric.trial.now_pass if metric else ()
    still_failing = tuple((case, flips.failing[case]) for case in now_pass if case in flips.failing)
    failing = [flip.case for flip in flips.cases if not flip.passes][:_MOST_CASES]
    failing += [case for case, _ in still_failing[:_MOST_CASES]]
    return Effect(
        name=criteria.path.name,
        flips=flips,
        still_failing=still_failing,
        why=dict(_why(criteria, failing)),
        change=criteria.change(),
        written=criteria.written(row) if row else None,
        added=criteria.addition(metric) if can_be_added and metric else (),
        sets={
            one.case_path: one.eval_set_id if labels[one.eval_set_id] == 1 else one.case_path
            for one in several
        },
        twins=frozenset(eval_id for eval_id, count in cases.items() if count > 1),
        stale=sum(criteria.outcomes.counts_of(one.case_path)[STALE] for one in sets),
    )


def _why(criteria: Criteria, cases: list[CaseId]) -> Iterator[tuple[CaseId, str]]:
    config = criteria.config() if cases else None
    for case in cases:
        scored = criteria.outcomes.get(case)
        if scored is not None and config is not None:
            yield case, why(judged_by(scored.result, scored.config, config, scored.pass_if))
