"""The verdict on a variant against the base of its matrix: better, worse or undecided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal

from pydantic import computed_field

from evaltui.core.compare.run_comparison import CaseChange, Comparison, case_name
from evaltui.core.compare.run_summary import RunSummary
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.base_model import keys_first
from evaltui.core.statistics import ALPHA, mcnemar_exact

Answer = Literal["better", "worse", "same", "undecided"]

# Scores that look the same are.
_SAME_SCORE = 0.005


def _answer(better: int, worse: int, alpha: float, *, is_open: bool = False) -> Answer:
    if not better and not worse:
        return "undecided" if is_open else "same"
    if mcnemar_exact(better, worse) > alpha:
        return "undecided"
    return "better" if better > worse else "worse"


@dataclass(frozen=True, slots=True)
class MetricVerdict:
    """A metric of a variant against the base, over the cases that have a score of it in both."""

    metric: str
    answer: Answer
    base: float
    """Mean of the scores."""
    variant: float
    better: int
    """Cases with a better score in the variant."""
    worse: int
    cases: int
    p: float
    """p-value of the sign test, two-sided."""


@dataclass(frozen=True)
class VariantVerdict:
    """A variant against the base of its matrix."""

    answer: Answer
    better: tuple[str, ...]
    """Ids of the cases that pass in the variant and not in the base; with evidence, if they were repeated.
    Where there are several sets, behind that of their set, or its file where sets share an id."""
    worse: tuple[str, ...]
    undecided: tuple[str, ...]
    """Ids of the cases without a verdict in one of them, without evidence, or that cannot be compared."""
    same: int
    """Cases with the same verdict."""
    metrics: tuple[MetricVerdict, ...]
    judges: Mapping[str, str]
    """The judge and its prompt by metric, as the variant has it."""
    judge_is_same: bool
    """Whether the base has the same judges."""

    _keys = keys_first("answer", "p")

    @computed_field
    @property
    def p(self) -> float:
        """p-value of McNemar's exact test over the cases that are better or worse."""
        return mcnemar_exact(len(self.better), len(self.worse))


def verdict_on(comparison: Comparison) -> VariantVerdict:
    """The verdict on the candidate."""
    base, candidate = comparison.base, comparison.candidate
    alpha = min((ALPHA, *(1 - case.decision.level for case in candidate.cases.values() if case.decision)))
    # A case that did not run in one of them is undecided, not left out.
    in_both = base.cases.keys() & candidate.cases.keys()
    both = [change for change in comparison.cases if change.case in in_both]
    answers = [(case_name(change, comparison), case_answer(change, alpha)) for change in both]

    def named(answer: Answer) -> tuple[str, ...]:
        return tuple(name for name, of_case in answers if of_case == answer)

    better, worse, undecided, same = named("better"), named("worse"), named("undecided"), named("same")
    judges = _judges(candidate)
    return VariantVerdict(
        _answer(len(better), len(worse), alpha, is_open=bool(undecided) or not same),
        better,
        worse,
        undecided,
        len(same),
        tuple(_metric_verdicts(both, candidate, alpha)),
        judges,
        judges == _judges(base),
    )


def case_answer(change: CaseChange, alpha: float) -> Answer:
    """How a case that both runs selected came out in the candidate, by its verdicts."""
    before, after = change.base, change.candidate
    if before is None or after is None or change.reasons or change.served:
        return "undecided"
    decisions = [case.decision for case in (before, after) if case.decision is not None]
    is_open = any(decision.answer == "undecided" for decision in decisions)
    if is_open or not (before.is_judged and after.is_judged):
        return "undecided"
    if before.passes == after.passes:
        return "same"
    fall = change if before.passes else replace(change, kind="broken", base=after, candidate=before)
    # Of a rate between those of a sequential test, either answer is right: two of them are no evidence.
    if fall.may_be_chance(alpha):
        return "undecided"
    return "worse" if before.passes else "better"


def _judges(run: RunSummary) -> dict[str, str]:
    return {metric: judge for case in run.results.values() for metric, judge in case.judges.items()}


def _metric_verdicts(
    changes: Iterable[CaseChange], candidate: RunSummary, alpha: float
) -> Iterator[MetricVerdict]:
    pairs: dict[str, list[tuple[float, float]]] = {}
    is_open = False
    for change in changes:
        if change.reasons or change.served or change.base is None or change.candidate is None:
            is_open = True
            continue
        for score in change.scores:
            if score.base is not None and score.candidate is not None:
                pairs.setdefault(score.metric, []).append((score.base, score.candidate))
    for metric, scores in pairs.items():
        sign = -1 if _lower_is_better(metric, candidate) else 1
        steps = [sign * (after - before) for before, after in scores]
        better, worse = (sum(way * step >= _SAME_SCORE for step in steps) for way in (1, -1))
        base, variant = (fsum(side) / len(scores) for side in zip(*scores, strict=True))
        answer, p = _answer(better, worse, alpha, is_open=is_open), mcnemar_exact(better, worse)
        yield MetricVerdict(metric, answer, base, variant, better, worse, len(scores), p)


def _lower_is_better(metric: str, run: RunSummary) -> bool:
    """Whether lower scores are better: by its criterion for a metric of the user's, also one with the name of
    a built-in metric, else by the declaration of the metric."""
    configs = run.circumstances.configs.values()
    blocks = [block for config in configs for block in (config, config.get("evaltui") or {})]
    criteria = [(block.get("criteria") or {}).get(metric) for block in blocks]
    own = [criterion for criterion in criteria if isinstance(criterion, dict)]
    functions = [(block.get("custom_metrics") or {}).get(metric) for block in blocks]
    definitions = [(block.get("metrics_to_run") or {}).get(metric) for block in blocks]
    # A managed metric of agents-cli has no definition of its own.
    is_of_user = any(functions) or any(isinstance(definition, dict) for definition in definitions)
    info = METRICS.get(metric)
    if info and not is_of_user and not any("function" in criterion for criterion in own):
        return info.lower_is_better
    return any(criterion.get("lower_is_better") for criterion in own)
