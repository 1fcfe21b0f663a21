"""The effect of unsaved criteria on the last results, and on the lines of their file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.core.thresholds import rejudge
from evaltui.documents.line_changes import LineChange
from evaltui.text.outcomes import STALE
from evaltui.views.cause import cause_text
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.rows import MetricRow, Row

# Cases of which it is said why they fail: more than there are on a screen.
_MAX_CASES = 60


class Flip(NamedTuple):
    """A case whose outcome would change."""

    case: CaseId
    before: Status
    """The status by the criteria on disk."""
    after: Status
    """The status by the edited criteria."""
    passes: bool
    """Whether it would pass."""


@dataclass(frozen=True)
class Flips:
    """The effect of the unsaved criteria on the last results."""

    cases: tuple[Flip, ...] = ()
    """The cases whose outcome changes: first those that would pass, in the order of the sets."""
    failing: Mapping[CaseId, Status] = field(default_factory=dict)
    """The statuses of cases that pass by neither config and have a score with another verdict."""
    scored: int = 0
    """Number of cases with scores by both configs."""
    waiting: int = 0
    """Number of cases that have to be scored first."""
    is_held: bool = False
    """Whether they are scored only when the draft is applied."""
    unknown: int = 0
    """Number of cases that lack scores by one of the configs."""
    problem: str = ""
    """Why the results cannot be compared, as a sentence; "" where they can."""


@dataclass(frozen=True)
class Effect:
    """The effect of the unsaved changes of a config, and the details of a row."""

    name: str
    """The name of the file."""
    flips: Flips
    still_failing: tuple[tuple[CaseId, Status], ...] = ()
    """Cases that pass the current metric and fail by another, with their status."""
    why: Mapping[CaseId, str] = field(default_factory=dict)
    """Why cases would fail, for the first ones."""
    change: tuple[LineChange, ...] = ()
    """The changed lines of the file."""
    written: object = None
    """The JSON of the current row in the config; None for none."""
    added: tuple[LineChange, ...] = ()
    """The lines that adding the current metric would change."""
    sets: Mapping[str, str] = field(default_factory=dict)
    """The names of the sets by their path, where several use the config."""
    twins: frozenset[str] = frozenset()
    """Ids of cases that several sets have."""
    stale: int = 0
    """Number of results that are stale: only another run can score them."""


def flips_of(criteria: Criteria) -> Flips:
    """The effect of the edited criteria on the last results, as far as it is known."""
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
    """The content of the page of a row."""
    sets = criteria.sets
    metric = row if isinstance(row, MetricRow) else None
    can_be_added = metric is not None and not metric.in_use and metric.gates and not metric.why_not
    labels = Counter(eval_set.eval_set_id for eval_set in sets)
    # The cases of a single set need no name of a set.
    several = sets if len(sets) > 1 else ()
    cases = Counter(case.eval_id for eval_set in several for case in eval_set.cases)
    now_pass = metric.trial.now_pass if metric else ()
    still_failing = tuple((case, flips.failing[case]) for case in now_pass if case in flips.failing)
    failing = [flip.case for flip in flips.cases if not flip.passes][:_MAX_CASES]
    failing += [case for case, _ in still_failing[:_MAX_CASES]]
    return Effect(
        name=criteria.path.name,
        flips=flips,
        still_failing=still_failing,
        why=dict(_why(criteria, failing)),
        change=criteria.change(),
        written=criteria.written(row) if row else None,
        added=criteria.addition(metric) if can_be_added and metric else (),
        sets={
            eval_set.case_path: eval_set.eval_set_id
            if labels[eval_set.eval_set_id] == 1
            else eval_set.case_path
            for eval_set in several
        },
        twins=frozenset(eval_id for eval_id, count in cases.items() if count > 1),
        stale=sum(criteria.outcomes.counts_of(eval_set.case_path)[STALE] for eval_set in sets),
    )


def _why(criteria: Criteria, cases: list[CaseId]) -> Iterator[tuple[CaseId, str]]:
    config = criteria.config() if cases else None
    for case in cases:
        scored = criteria.outcomes.get(case)
        if scored is not None and config is not None:
            yield case, cause_text(rejudge(scored.result, scored.config, config, scored.pass_if))
