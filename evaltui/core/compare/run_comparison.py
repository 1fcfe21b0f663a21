"""The comparison of two runs case by case, and their other differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import PlainSerializer, computed_field

from evaltui.core.compare.evidence import (
    Paired,
    chance_of_fall,
    chance_of_rate,
    fell_to_none,
    pair_cases,
    passes_less_often,
)
from evaltui.core.compare.run_summary import CaseSummary, Circumstances, RunSummary, different_files
from evaltui.core.model.base_model import LEFT_OUT_IF_EMPTY, NOT_REPORTED, keys_first
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import Status
from evaltui.core.model.served import ServedChange, served_changes
from evaltui.core.model.variants import BASE, Variant
from evaltui.core.statistics import ALPHA
from evaltui.text.figures import counted, show_growth, show_number
from evaltui.text.values import show_change

_MAX_DETAILS = 3


def expectation_changes(
    before: CaseSummary, after: CaseSummary, then: Circumstances, now: Circumstances
) -> Iterator[str]:
    """Reasons why the verdicts of a case cannot be compared: its expectation changed."""
    if before.expects and after.expects and before.expects != after.expects:
        yield "case changed"
    # Where the repeats of both agree, every policy says the same.
    if before.policy != after.policy and Status.FLAKY in (before.status, after.status):
        yield f"policy {before.policy} → {after.policy}"
    yield from _option_changes(then, now)
    yield from _function_changes(then, now, _config_of(now, after))
    changes = list(config_changes(_config_of(then, before), _config_of(now, after)))
    # What the config says of judges need not be said twice.
    yield from changes or _judge_changes(before, after)


def _option_changes(then: Circumstances, now: Circumstances) -> Iterator[str]:
    if then.adk_verdicts != now.adk_verdicts:
        yield f"--adk-verdicts was {'left out' if then.adk_verdicts else 'added'}"


def _function_changes(then: Circumstances, now: Circumstances, config: Json | None) -> Iterator[str]:
    """The functions of metrics, judges and simulated users in a config whose code differs."""
    in_use = {value.replace(":", ".") for _, value in _leaves(config or {}) if isinstance(value, str)}
    for function in sorted(then.functions.keys() & now.functions.keys() & in_use):
        if then.functions[function] != now.functions[function]:
            yield f"the code of {function} changed"


def _judge_changes(before: CaseSummary, after: CaseSummary) -> Iterator[str]:
    for metric, judge in after.judges.items():
        if before.judges.get(metric, judge) != judge:
            yield f"{metric} was judged by {before.judges[metric]}, now by {judge}"


def _config_of(circumstances: Circumstances, case: CaseSummary) -> Json | None:
    config = circumstances.configs.get(case.id.path)
    return None if config is None else config_of(config, case.eval_set_id, case.eval_id)


def config_of(config: Json, eval_set_id: str, eval_id: str) -> Json:
    """The part of a set's config that affects a case, without the number of runs."""
    own = {
        name: [entry for entry in value if _is_about(entry, eval_set_id, eval_id)]
        if isinstance(value, list)
        else value
        for name, value in config.get("evaltui", {}).items()
        if name != "repeats"
    }
    return {**config, "evaltui": {name: value for name, value in own.items() if value != []}}


def _is_about(rule: Any, eval_set_id: str, eval_id: str) -> bool:
    if not isinstance(rule, dict):
        return True
    return rule.get("set") in (None, eval_set_id) and rule.get("case") in (None, eval_id)


def config_changes(before: Json | None, after: Json | None) -> Iterator[str]:
    """The differences between two configs in words; none where a config is unknown."""
    if before is None or after is None or before == after:
        return
    mine, theirs = dict(_leaves(before)), dict(_leaves(after))
    changed = [path for path in {**mine, **theirs} if mine.get(path, ...) != theirs.get(path, ...)]
    for path in changed[:_MAX_DETAILS]:
        if path not in mine:
            yield f"config: {path} added"
        elif path not in theirs:
            yield f"config: {path} removed"
        else:
            yield f"config: {path} {' → '.join(show_change(mine[path], theirs[path], 24))}"
    if len(changed) > _MAX_DETAILS:
        yield f"config: {show_number(len(changed) - _MAX_DETAILS)} more changes"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        # An empty object says as much as none. The threshold of a criterion may stand for all of it.
        for name, item in value.items():
            inner = f"{path}.{name}" if path else str(name)
            yield from _leaves(item, path if name == "threshold" else inner)
    else:
        yield path, value


def circumstance_changes(
    base: RunSummary, candidate: RunSummary, case: CaseId | None = None
) -> tuple[str, ...]:
    """The differences between two runs besides the agent's behavior, in words: the variant, the agent's
    files, its model, and the config of a case; without a `case` the configs of the sets."""
    then, now = base.circumstances, candidate.circumstances
    differences = [*_variant_changes(base.variant, candidate.variant), *_agent_changes(then, now)]
    if case is None:
        labels = {
            summary.id.path: summary.eval_set_id
            for run in (base, candidate)
            for summary in run.cases.values()
        }
        for path in dict.fromkeys([*then.configs, *now.configs]):
            label = labels.get(path, path)
            name = label if list(labels.values()).count(label) == 1 else path
            # No case has this id: rules for single cases are left out.
            whole = then.configs.get(path), now.configs.get(path)
            configs = [None if config is None else config_of(config, label, "") for config in whole]
            # What is about single cases is said where nothing else is.
            changes = [*config_changes(*configs)] or config_changes(*whole)
            differences += [f"{name}: {change}" for change in changes]
        differences += _option_changes(then, now)
    elif (before := base.results.get(case)) and (after := candidate.results.get(case)):
        differences += expectation_changes(before, after, then, now)
    return tuple(differences)


def _variant_changes(then: Variant | None, now: Variant | None) -> Iterator[str]:
    mine, theirs = (
        {change.key: change.value for change in variant.changes} if variant else {} for variant in (then, now)
    )
    if keys := [key for key in {**mine, **theirs} if mine.get(key, ...) != theirs.get(key, ...)]:
        names = (variant.name if variant else BASE for variant in (then, now))
        yield f"variant {' → '.join(names)} ({', '.join(keys)})"


def _agent_changes(then: Circumstances, now: Circumstances) -> Iterator[str]:
    for what, file, earlier, later, own_data in (
        ("agent", "file", then.files, now.files, then.own_data | now.own_data),
        ("packages", "package", then.packages, now.packages, frozenset[str]()),
    ):
        changed = different_files(earlier, later, own_data) if earlier and later else ()
        if words := [f"{name}{_new_or_gone(name, earlier, later)}" for name in changed]:
            yield f"{what}: {_first(words, f'more {file}')}"
    options = ((name, then.options.get(name, ""), option) for name, option in now.options.items())
    for what, mine, theirs in (
        ("agent", then.agent, now.agent),
        ("model", then.model, now.model),
        *options,
    ):
        if mine and theirs and mine != theirs:
            yield f"{what} {mine} → {theirs}"


def _first(words: Sequence[str], what: str) -> str:
    more = [counted(len(words) - _MAX_DETAILS, what)] if len(words) > _MAX_DETAILS else []
    return ", ".join([*words[:_MAX_DETAILS], *more])


def _new_or_gone(name: str, then: Mapping[str, str], now: Mapping[str, str]) -> str:
    if name not in then:
        return " (new)"
    return "" if name in now else " (gone)"


# In the order in which they matter.
Kind = Literal[
    "broken", "unclear", "fixed", "flaky", "expectation changed", "new", "gone", "not run", "unchanged"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Key = Literal[
    "broken", "unclear", "fixed", "flaky", "expectation_changed", "new", "gone", "not_run", "unchanged"
]
"""A kind of change, as in reports."""


def _key(kind: Kind) -> Key:
    return cast("Key", kind.replace(" ", "_"))


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """A metric of a case in both runs; None for a score that is missing."""

    metric: str
    base: float | None
    candidate: float | None


@dataclass(frozen=True)
class CaseChange:
    """A case in two runs, with the kind of its change.

    - broken, fixed: it passes in one run only, a flaky case by its policy;

    - unclear: it passes in neither run, and has no verdict in at least one of them because of an error;

    - flaky: both verdicts are the same, and its repeats differ in at least one run;

    - expectation changed: the case or its config differs;

    - new, gone: it did not exist in the other run, or has no result in the base and does not pass;

    - not run: it was not selected or not finished in the other run.
    """

    kind: Annotated[Kind, PlainSerializer(_key)] = field(metadata={"serialization_alias": "change"})
    case: CaseId = field(metadata=NOT_REPORTED)
    eval_set_id: str
    base: CaseSummary | None
    """Its result in the base; None for none. Likewise `candidate`."""
    candidate: CaseSummary | None
    reasons: tuple[str, ...] = ()
    """Reasons why the two verdicts cannot be compared."""
    regression: bool = False
    """Whether it does not pass, the base run does not excuse that, no other model served it, and it is no
    chance: a case that was repeated needs evidence, its own or, if it broke, that of all cases together."""
    served: tuple[ServedChange, ...] = field(default=(), metadata=LEFT_OUT_IF_EMPTY)
    """Requests that other models answered than in the base, which may be why it differs."""

    @computed_field
    @property
    def path(self) -> str:
        return self.case.path

    @computed_field
    @property
    def eval_id(self) -> str:
        return self.case.eval_id

    _keys = keys_first("eval_set_id", "path", "eval_id", "change", "regression", "p", "reasons")

    @computed_field
    @property
    def scores(self) -> tuple[ScoreChange, ...]:
        """The metrics of either run, in the order of the candidate."""
        mine, theirs = (side.scores if side else {} for side in (self.base, self.candidate))
        return tuple(ScoreChange(name, mine.get(name), theirs.get(name)) for name in {**theirs, **mine})

    @computed_field
    @property
    def p(self) -> float | None:
        """One-sided p-value of Fisher's exact test: the probability by chance that it broke or passes less
        often.

        None where it did neither, or was not repeated in both runs.
        """
        if self.base is None or self.candidate is None:
            return None
        if self.passes_less_often:
            return chance_of_rate(self.base, self.candidate)
        return chance_of_fall(self.base, self.candidate) if self.kind == "broken" else None

    @property
    def passes_less_often(self) -> bool:
        """Whether it failed in both runs by its policy, and fewer of its repeats pass now."""
        if self.base is None or self.candidate is None or self.reasons:
            return False
        return passes_less_often(self.base, self.candidate)

    @property
    def may_be_regression(self) -> bool:
        """Whether it does not pass now, and neither the base run nor another model excuses that.

        A failure is excused by an equally frequent failure of the same expectation; an error or a missing
        verdict by another one.
        """
        return self._is_worse and not self._is_excused

    @property
    def lacks_verdict(self) -> bool:
        """Whether the candidate has no verdict, or does not pass and has repeats without a verdict, which
        failed repeats of the base do not excuse."""
        if self.candidate is None or self.candidate.passes:
            return False
        _, judged = self.candidate.judged_repeats
        return not self.candidate.is_judged or judged < self.candidate.runs

    @property
    def _is_excused(self) -> bool:
        """Whether another model answered that may be the reason."""
        return any(own.is_excuse for own in self.served)

    @property
    def _is_worse(self) -> bool:
        if self.candidate is None or self.candidate.passes:
            return False
        if self.base is None or self.kind in ("broken", "new", "expectation changed"):
            return True
        return self.passes_less_often or self.base.failed is not self.candidate.failed

    def may_be_chance(self, alpha: float) -> bool:
        """Whether its own repeats give no evidence that it became worse."""
        if self.p is None or self.base is None or self.candidate is None:
            return False
        return self.p > alpha and not fell_to_none(self.base, self.candidate)


@dataclass(frozen=True)
class Total:
    """A sum over the cases for which both runs have the value."""

    base: float
    candidate: float
    cases: int = field(default=0, metadata=NOT_REPORTED)
    """Number of these cases."""

    @property
    def growth(self) -> str:
        """Relative growth: ` (+29%)`; "" for a base of 0."""
        return f" ({show_growth(self.base, self.candidate)})" if self.base else ""


@dataclass(frozen=True)
class Comparison:
    """A comparison of two runs with every case once, those of the candidate first, in its order."""

    base: RunSummary
    candidate: RunSummary
    cases: tuple[CaseChange, ...]
    paired: Paired
    """The cases with a comparable verdict in both runs."""
    alpha: float = ALPHA
    """The highest p-value that counts as evidence."""

    @computed_field
    @property
    def changed(self) -> tuple[str, ...]:
        """Differences of agent, model and options."""
        return circumstance_changes(self.base, self.candidate)

    @computed_field
    @property
    def totals(self) -> dict[str, int]:
        """Numbers of cases by kind of change."""
        return {_key(kind): len(self.of(kind)) for kind in KINDS}

    @computed_field(alias="regressions")
    @property
    def regression_count(self) -> int:
        return len(self.regressions)

    @computed_field(alias="other_model_served")
    @property
    def other_model_count(self) -> int:
        """Cases that differ, and that other models served than in the base: no regressions."""
        return len(self.of_other_models)

    _keys = keys_first(
        "base",
        "candidate",
        "changed",
        "totals",
        "regressions",
        "other_model_served",
        "alpha",
        "paired",
        "seconds",
        "tokens",
        "usd",
    )

    @cached_property
    def set_names(self) -> Mapping[str, str]:
        """The prefix of case ids by path of their set: `orders:`; "" for a single set."""
        labels = {change.case.path: change.eval_set_id for change in self.cases}
        if len(labels) < 2:
            return dict.fromkeys(labels, "")
        shared = Counter(labels.values())
        return {path: f"{label if shared[label] == 1 else path}:" for path, label in labels.items()}

    def of(self, kind: Kind) -> tuple[CaseChange, ...]:
        return tuple(change for change in self.cases if change.kind == kind)

    @property
    def regressions(self) -> tuple[CaseChange, ...]:
        return tuple(change for change in self.cases if change.regression)

    @property
    def of_other_models(self) -> tuple[CaseChange, ...]:
        """Cases that differ, and that other models served than in the base, without regressions."""
        others = (change for change in self.cases if change.served and not change.regression)
        return tuple(change for change in others if change.kind != "unchanged" or change.passes_less_often)

    @property
    def without_evidence(self) -> tuple[CaseChange, ...]:
        """Cases that broke or pass less often, perhaps by chance."""
        return tuple(change for change in self.cases if change.may_be_regression and not change.regression)

    @property
    def broken_without_evidence(self) -> tuple[CaseChange, ...]:
        """Cases that broke, perhaps by chance."""
        return tuple(change for change in self.without_evidence if change.kind == "broken")

    @property
    def partly_judged(self) -> tuple[CaseChange, ...]:
        """Cases that failed in some repeats and have no verdict in others."""
        failed = (change for change in self.cases if change.candidate and change.candidate.failed)
        return tuple(change for change in failed if change.lacks_verdict)

    @property
    def lacks_verdicts(self) -> bool:
        """Whether a case of the candidate has no verdict because of an error, or was not evaluated."""
        return any(change.lacks_verdict for change in self.cases)

    @property
    def compares_nothing(self) -> bool:
        """Whether no case has a result in both runs."""
        return not any(self._in_both())

    @property
    def both_count(self) -> int:
        """Number of cases with a result in both runs."""
        return sum(1 for _ in self._in_both())

    @property
    def not_in_candidate(self) -> list[CaseChange]:
        """Cases of the base that the candidate did not select, or does not have."""
        return [change for change in self.of("not run") if change.case not in self.candidate.cases]

    @computed_field
    @property
    def seconds(self) -> Total | None:
        """Sum over cases of the mean wall time of a run, in seconds."""
        return _sum_pairs([(a.seconds, b.seconds) for a, b in self._in_both()])

    @computed_field
    @property
    def tokens(self) -> Total | None:
        return _sum_pairs([(a.tokens, b.tokens) for a, b in self._in_both()])

    @computed_field
    @property
    def usd(self) -> Total | None:
        """Sum over cases of the mean cost of a run in US dollars; None without costs."""
        total = _sum_pairs([(a.usd, b.usd) for a, b in self._in_both()])
        return total if total and (total.base or total.candidate) else None

    def _in_both(self) -> Iterator[tuple[CaseSummary, CaseSummary]]:
        for change in self.cases:
            if change.base is not None and change.candidate is not None:
                yield change.base, change.candidate


def case_name(change: CaseChange, comparison: Comparison) -> str:
    """The id of a case, with its set where there are several, or with its file where sets share an id."""
    return comparison.set_names[change.case.path] + change.case.eval_id


def _sum_pairs(pairs: Sequence[tuple[float | None, float | None]]) -> Total | None:
    complete = [(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
    # Exact, so that the order of the cases, which is that of the candidate, does not matter.
    return (
        Total(fsum(mine for mine, _ in complete), fsum(theirs for _, theirs in complete), len(complete))
        if complete
        else None
    )


def compare(base: RunSummary, candidate: RunSummary, alpha: float = ALPHA) -> Comparison:
    """Compares two runs.

    Swapped runs give swapped kinds: broken and fixed, new and gone; the other kinds are unchanged.
    """
    base, candidate = _with_paths(base, candidate), _with_paths(candidate, base)
    cases = dict.fromkeys([*candidate.cases, *base.cases])
    changes = [change for case in cases for change in _changes(case, base, candidate)]
    both = ((change.base, change.candidate) for change in changes if not change.reasons and not change.served)
    pairs = pair_cases((before, after) for before, after in both if before and after)
    judged = (replace(change, regression=_is_regression(change, pairs, alpha)) for change in changes)
    return Comparison(base, candidate, tuple(judged), pairs, alpha)


def _is_regression(change: CaseChange, pairs: Paired, alpha: float) -> bool:
    if not change.may_be_regression:
        return False
    return not change.may_be_chance(alpha) or (change.kind == "broken" and pairs.is_worse(alpha))


def compare_case(case: CaseId, base: RunSummary, candidate: RunSummary) -> CaseChange:
    """Compares a single case of the candidate, as `compare` does."""
    return next(_changes(case, _with_paths(base, candidate), _with_paths(candidate, base)))


def _with_paths(run: RunSummary, other: RunSummary) -> RunSummary:
    """A run that has only set ids, with the paths of another run's sets.

    A case is ambiguous if several sets of the other run have its set id.
    """
    if not run.by_label:
        return run
    paths: dict[str, set[str]] = {}
    if not other.by_label:
        for summary in other.cases.values():
            paths.setdefault(summary.eval_set_id, set()).add(summary.id.path)
    cases: dict[CaseId, CaseSummary] = {}
    ambiguous = set(run.ambiguous)
    for case, summary in run.cases.items():
        candidates = paths.get(summary.eval_set_id, set())
        if case not in ambiguous and len(candidates) == 1 and not summary.path:
            summary = replace(summary, path=next(iter(candidates)))
        elif len(candidates) > 1:
            ambiguous.add(summary.id)
        cases[summary.id] = summary
    return replace(run, cases=cases, ambiguous=frozenset(ambiguous))


def _changes(case: CaseId, base: RunSummary, candidate: RunSummary) -> Iterator[CaseChange]:
    unclear = [run for run in (base, candidate) if case in run.ambiguous]
    if not unclear:
        yield _change(case, base, candidate)
        return
    reasons = tuple(f"several files have it, and {run.id} does not say which one it ran" for run in unclear)
    before, after = base.results.get(case), candidate.results.get(case)
    if after is not None:
        yield CaseChange("not run" if after.passes else "new", case, after.eval_set_id, None, after, reasons)
    if before is not None:
        yield CaseChange("not run", case, before.eval_set_id, before, None, reasons)


def _change(case: CaseId, base: RunSummary, candidate: RunSummary) -> CaseChange:
    before, after = base.results.get(case), candidate.results.get(case)
    label = next(run.cases[case].eval_set_id for run in (candidate, base) if case in run.cases)
    if before is None or after is None:
        kind: Kind = "not run"
        if after is not None and (base.lacks(case) or not after.passes):
            kind = "new"
        elif before is not None and candidate.lacks(case):
            kind = "gone"
        return CaseChange(kind, case, label, before, after)
    reasons = tuple(expectation_changes(before, after, base.circumstances, candidate.circumstances))
    if not (reasons or before.passes or after.passes):
        # A failure excuses another one only of the same expectation.
        sides = (("baseline", base, before), ("candidate", candidate, after))
        unknown = (name for name, run, summary in sides if run.of_adk and not summary.expects)
        reasons = tuple(f"the {name} does not say what was expected" for name in unknown)[:1]
    kind = _kind(before, after, reasons)
    served = _served_changes(before, after, is_same_expectation=not reasons)
    return CaseChange(kind, case, label, before, after, reasons, served=served)


def _served_changes(
    before: CaseSummary, after: CaseSummary, *, is_same_expectation: bool
) -> tuple[ServedChange, ...]:
    """The requests that other models answered, if these may be why the case differs.

    Judges alone may be, where the expectation is the same, no score has changed but those that they gave, and
    no repeat ended with an error, which no judge causes. Where the expectation differs and no score has
    changed, the expectation is the reason.
    """
    changes = served_changes(before.served, after.served)
    has_error = Status.ERROR in after.outcomes
    both = {**before.scores, **after.scores}
    changed = {name for name in both if before.scores.get(name) != after.scores.get(name)}
    if not (is_same_expectation or changed or has_error):
        return ()
    if any(change.is_excuse and not change.metric for change in changes):
        return changes
    may_be_judges = is_same_expectation and not has_error
    is_of_judges = may_be_judges and changed <= {change.metric for change in changes}
    is_excused = may_be_judges and changed <= {change.metric for change in changes if change.is_excuse}
    return tuple(
        change
        for change in changes
        if not change.metric or (is_of_judges and (is_excused or not change.is_excuse))
    )


def _kind(before: CaseSummary, after: CaseSummary, reasons: Sequence[str]) -> Kind:
    if reasons:
        return "expectation changed"
    if before.passes != after.passes:
        return "broken" if before.passes else "fixed"
    if not (before.is_judged and after.is_judged):
        return "unclear"
    return "flaky" if Status.FLAKY in (before.status, after.status) else "unchanged"
