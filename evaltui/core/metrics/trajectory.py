"""Metrics of tool calls: expected calls compared with actual ones.

Two calls are equal if their names and arguments are, by Python's equality of decoded JSON: `1`, `1.0` and
`true` are one value, absent arguments are not `{}`, ids are ignored. This and the three match types are those
of google-adk 2.13 (`TrajectoryEvaluator`). Calls with differences that rules allow (see
`core.matching.rules`) are also equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pydantic import ConfigDict, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from evaltui.core.matching.pairing import most_pairs
from evaltui.core.matching.rules import CaseRules, call_keys, same_args
from evaltui.core.metrics.declaration import DECLARED, IGNORE_ARGS, MetricInfo, Option, built_in, metric
from evaltui.core.metrics.metric import (
    CriterionError,
    MetricInput,
    TurnScore,
    criterion_extra,
    left_out_turns,
    not_evaluated,
    nothing_to_score,
    required_threshold,
    score_against_expected,
    unscored_turn,
    verdict,
)
from evaltui.core.model.base_model import DataModel
from evaltui.core.model.config import BaseCriterion, EvalMetric
from evaltui.core.model.content import FunctionCall
from evaltui.core.model.criteria import MatchType, MatchTypeByName
from evaltui.core.model.eval_set import Invocation, tool_calls
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.text.figures import counted, show_number

Calls = Sequence[FunctionCall]


class _CallCriterion(DataModel):
    """The keys that call metrics read from a criterion."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    match_type: MatchTypeByName = MatchType.EXACT
    ignore_args: bool = False


_DEFAULT_CRITERION = _CallCriterion.model_construct()


@dataclass(frozen=True)
class _Sameness:
    """Decides whether an expected call and an actual call are equal."""

    ignore_args: bool = False
    rules: CaseRules = field(default_factory=dict)

    def __call__(self, expected: FunctionCall, made: FunctionCall) -> bool:
        return expected.name == made.name and (
            self.ignore_args or same_args(expected.name or "", expected.args, made.args, self.rules)
        )

    def keys(self, call: FunctionCall) -> tuple[Hashable, Hashable]:
        """The keys of a call as by `call_keys`; two equal keys without rules."""
        if self.ignore_args:
            return call.name, call.name
        return call_keys(call.name or "", call.args, self.rules)


_SAME_BY_NAME = _Sameness(ignore_args=True)
_MATCH_TYPE = Option(
    ("match_type",),
    "choice",
    "EXACT: these calls and no others. IN_ORDER and ANY_ORDER allow further calls.",
    default="EXACT",
    choices=("EXACT", "IN_ORDER", "ANY_ORDER"),
)
_ALLOWED_TEXTS = {
    "match_type": "match_type must be EXACT, IN_ORDER or ANY_ORDER",
    "ignore_args": "ignore_args must be true or false",
}


@metric(
    MetricInfo(
        "Rate of turns whose calls match the expected calls.",
        ("expected turns",),
        (_MATCH_TYPE, IGNORE_ARGS),
        compares="calls",
        reads_calls=True,
        # Order and further calls matter to some match types only.
        call_differences=("changed", "missing", "extra", "moved"),
        label="trajectory",
    )
)
def tool_trajectory_avg_score(inputs: MetricInput) -> MetricResult:
    """Share of turns whose calls match the expected ones; `details` has the score by each match type.

    Raises CriterionError for an unusable criterion.
    """
    criterion = _call_criterion(inputs.metric)
    same = _Sameness(criterion.ignore_args, inputs.rules)
    without = left_out_turns(inputs, checks_calls=True, compares="calls")

    def score(match_type: MatchType, *, reasons: bool) -> MetricResult:
        score_turn = partial(_matching_turn, match_type, same, reasons=reasons)
        return score_against_expected(inputs, score_turn, without)

    result = score(criterion.match_type, reasons=True)
    if result.score is None:
        return result
    # What matches exactly matches in every way.
    if criterion.match_type is MatchType.EXACT and result.score == 1.0:
        return replace(result, details=dict.fromkeys(MatchType.__members__, 1.0))
    return replace(
        result, details={match_type.name: score(match_type, reasons=False).score for match_type in MatchType}
    )


@metric(
    MetricInfo(
        "Rate of actual calls that are expected.",
        ("expected turns",),
        (IGNORE_ARGS,),
        source="evaltui",
        compares="calls",
        reads_calls=True,
        call_differences=("changed", "extra"),
    )
)
def trajectory_precision(inputs: MetricInput) -> MetricResult:
    """Mean over turns of the share of actual calls that are expected; each expected call matches one actual
    call.

    A turn without calls scores 1.0 if none are expected, else 0.0. Raises CriterionError for an unusable
    criterion.
    """
    return _share_of_calls(inputs, _precision)


@metric(
    MetricInfo(
        "Rate of expected calls that were made.",
        ("expected turns",),
        (IGNORE_ARGS,),
        source="evaltui",
        compares="calls",
        reads_calls=True,
        call_differences=("changed", "missing"),
    )
)
def trajectory_recall(inputs: MetricInput) -> MetricResult:
    """Mean over turns of the share of expected calls that were made; each actual call matches one expected
    call.

    A turn without expected calls scores 1.0. Raises CriterionError for an unusable criterion.
    """
    return _share_of_calls(inputs, _recall)


@metric(
    MetricInfo(
        "1 if a turn calls the tool named in the criterion, else 0.",
        ("a tool name",),
        (Option(("tool",), "text", "The tool to be called in any turn."),),
        is_yes_or_no=True,
        source="evaltui",
        reads_calls=True,
    )
)
def trajectory_single_tool_use(inputs: MetricInput) -> MetricResult:
    """1.0 if any turn calls the tool in the criterion's key `tool`, else 0.0.

    Scores of turns show which turns call it; only the case has a verdict. Raises CriterionError for an
    unusable criterion.
    """
    threshold = required_threshold(inputs.metric)
    tool = _tool_name(inputs.metric)
    if tool is None:
        return not_evaluated(inputs.metric, 'needs the name of the tool: give the criterion a "tool" key')
    without = left_out_turns(inputs, checks_calls=True)
    turns: list[InvocationScore] = []
    for number, actual in enumerate(inputs.actual):
        if number in without:
            turns.append(unscored_turn(without[number]))
        else:
            used = any(call.name == tool for call in tool_calls(actual.intermediate_data))
            turns.append(InvocationScore(float(used), Status.INFORMATIONAL))
    scores = [turn.score for turn in turns if turn.score is not None]
    if not scores:
        return not_evaluated(inputs.metric, nothing_to_score(turns), tuple(turns))
    score = max(scores)
    reason = "" if score else f"no turn called {tool}"
    return MetricResult(
        inputs.metric.metric_name,
        score,
        threshold,
        verdict(score, threshold),
        per_invocation=tuple(turns),
        reason=reason,
    )


def takes_ignore_args(metric: EvalMetric) -> bool:
    """Whether a metric has the option to compare names only."""
    info = DECLARED.get(metric.metric_name)
    return info is not None and IGNORE_ARGS in info.options


def ignores_args(metric: EvalMetric) -> bool:
    """Whether a call metric compares names only; false for other metrics and for an unusable criterion."""
    if not takes_ignore_args(metric):
        return False
    try:
        return _call_criterion(metric).ignore_args
    except CriterionError:
        return False


def match_type_of(metric: EvalMetric) -> MatchType | None:
    """How a metric compares the order of calls; None for one that does not, or has an unusable criterion."""
    info = DECLARED.get(metric.metric_name)
    if info is None or _MATCH_TYPE not in info.options:
        return None
    try:
        return _call_criterion(metric).match_type
    except CriterionError:
        return None


def compares_order(metric: EvalMetric) -> bool | None:
    """Whether a metric compares the order of calls; None for one that does not compare calls, or has an
    unusable criterion."""
    info = built_in(metric)
    if info is None or info.compares != "calls":
        return None
    match_type = match_type_of(metric)
    if match_type is None and _MATCH_TYPE in info.options:
        return None
    return match_type in (MatchType.EXACT, MatchType.IN_ORDER)


def with_ignored_args(metric: EvalMetric) -> EvalMetric:
    """The metric that compares names only."""
    criterion = metric.criterion.model_dump() if metric.criterion else {"threshold": metric.threshold}
    return metric.model_copy(
        update={"criterion": BaseCriterion.model_validate({**criterion, "ignore_args": True})}
    )


def _call_criterion(metric: EvalMetric) -> _CallCriterion:
    extra = criterion_extra(metric)
    if not extra:
        return _DEFAULT_CRITERION
    try:
        return _CallCriterion.model_validate(extra)
    except ValidationError as error:
        wrong = [
            f"{_ALLOWED_TEXTS[to_snake(str(problem['loc'][0]))]}, not {problem['input']!r}"
            for problem in error.errors(include_url=False)
        ]
        raise CriterionError(f"{metric.metric_name}: {'; '.join(wrong)}") from None


def _tool_name(metric: EvalMetric) -> str | None:
    keys = criterion_extra(metric)
    tool = next((keys[name] for name in ("tool", "tool_name", "toolName") if name in keys), None)
    if tool is None or (isinstance(tool, str) and tool):
        return tool
    raise CriterionError(f"{metric.metric_name}: tool must be the name of a tool, not {tool!r}")


def _matching_turn(
    match_type: MatchType, same: _Sameness, expected: Invocation, actual: Invocation, *, reasons: bool
) -> TurnScore:
    expected_calls, actual_calls = (
        tool_calls(expected.intermediate_data),
        tool_calls(actual.intermediate_data),
    )
    matches = _matches(match_type, same, expected_calls, actual_calls)
    if matches:
        return TurnScore(1.0)
    return TurnScore(0.0, _mismatch_reason(expected_calls, actual_calls, match_type, same) if reasons else "")


def _matches(match_type: MatchType, same: _Sameness, expected: Calls, actual: Calls) -> bool:
    match match_type:
        case MatchType.EXACT:
            return len(expected) == len(actual) and _is_in_order(expected, actual, same)
        case MatchType.IN_ORDER:
            return _is_in_order(expected, actual, same)
    return not _unmatched_calls(expected, actual, same)[0]


def has_full_score(metric: EvalMetric, expected: Calls, actual: Calls, rules: CaseRules) -> bool:
    """Whether a metric that compares calls gives a turn with these calls its highest score.

    Raises CriterionError for an unusable criterion.
    """
    criterion = _call_criterion(metric)
    same = _Sameness(criterion.ignore_args, rules)
    match metric.metric_name:
        case "trajectory_precision":
            return _precision(expected, actual, same).score == 1.0
        case "trajectory_recall":
            return _recall(expected, actual, same).score == 1.0
    return _matches(criterion.match_type, same, expected, actual)


def allows_more_calls(metric: EvalMetric) -> bool:
    """Whether a metric that compares calls gives further calls no lower score."""
    match_type = match_type_of(metric)
    if match_type is None:
        return "extra" not in DECLARED[metric.metric_name].call_differences
    return match_type is not MatchType.EXACT


def _share_of_calls(
    inputs: MetricInput, share: Callable[[Calls, Calls, _Sameness], TurnScore]
) -> MetricResult:
    same = _Sameness(_call_criterion(inputs.metric).ignore_args, inputs.rules)

    def score_turn(expected: Invocation, actual: Invocation) -> TurnScore:
        return share(tool_calls(expected.intermediate_data), tool_calls(actual.intermediate_data), same)

    return score_against_expected(
        inputs, score_turn, left_out_turns(inputs, checks_calls=True, compares="calls")
    )


def _precision(expected: Calls, actual: Calls, same: _Sameness) -> TurnScore:
    if not actual:
        return TurnScore(0.0, "no tool called") if expected else TurnScore(1.0)
    _, extra = _unmatched_calls(expected, actual, same)
    reason = (
        f"{show_number(len(extra))} of {counted(len(actual), 'call')} unexpected: {_call_names(extra)}"
        if extra
        else ""
    )
    return TurnScore((len(actual) - len(extra)) / len(actual), reason)


def _recall(expected_calls: Calls, actual_calls: Calls, same: _Sameness) -> TurnScore:
    if not expected_calls:
        return TurnScore(1.0)
    missing, _ = _unmatched_calls(expected_calls, actual_calls, same)
    expected = counted(len(expected_calls), "expected call")
    reason = f"{show_number(len(missing))} of {expected} missing: {_call_names(missing)}" if missing else ""
    return TurnScore((len(expected_calls) - len(missing)) / len(expected_calls), reason)


def _is_in_order(expected: Calls, actual: Calls, same: _Sameness) -> bool:
    rest = iter(actual)
    return all(any(same(call, other) for other in rest) for call in expected)


def _unmatched_calls(
    expected: Calls, actual: Calls, same: _Sameness
) -> tuple[Sequence[FunctionCall], Sequence[FunctionCall]]:
    """The expected and the actual calls without a partner in the largest pairing of equal calls."""
    if not same.rules:
        return _difference(expected, actual, same), _difference(actual, expected, same)
    pairs = most_pairs(expected, actual, same, same.keys)
    met = set(pairs.values())
    return (
        [call for i, call in enumerate(expected) if i not in pairs],
        [call for j, call in enumerate(actual) if j not in met],
    )


def _difference(calls: Calls, others: Calls, same: _Sameness) -> list[FunctionCall]:
    """The calls without a partner when each other call is paired with its first equal one; for calls without
    rules."""
    unused = Counter(same.keys(other)[1] for other in others)
    left = []
    for call in calls:
        key = same.keys(call)[1]
        if unused[key]:
            unused[key] -= 1
        else:
            left.append(call)
    return left


def _mismatch_reason(expected: Calls, actual: Calls, match_type: MatchType, same: _Sameness) -> str:
    missing, extra = _unmatched_calls(expected, actual, same)
    gone = _difference(missing, extra, _SAME_BY_NAME)
    changed = _difference(missing, gone, _SAME_BY_NAME)
    findings = [
        *(f"{_name(call)}: arguments differ" for call in changed),
        *(f"{_name(call)} missing" for call in gone),
    ]
    if match_type is MatchType.EXACT:
        surplus = _difference(extra, changed, _SAME_BY_NAME)
        findings += [f"{_name(call)} unexpected" for call in surplus]
    return ", ".join(findings) or "calls out of order"


def _call_names(calls: Calls) -> str:
    return ", ".join(_name(call) for call in calls)


def _name(call: FunctionCall) -> str:
    return call.name or "a call without a name"
