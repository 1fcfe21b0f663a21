"""Drafts of what would notice a change: checks of a response, expected calls, criteria. Each is proven."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Any, NamedTuple

from evaltui.core.gaps.changes import (
    CUT,
    DATE,
    EMPTIED,
    NAME,
    NEGATED,
    NUMBER,
    PROMISE,
    UNIT,
    is_english,
)
from evaltui.core.gaps.gaps import is_noticed_by, passes, scores_of
from evaltui.core.gaps.mutants import (
    OTHER_AGENT,
    TOOL_RESPONSE,
    TOOL_RESPONSE_DROPPED,
    Mutant,
    RecordedCase,
    with_calls,
)
from evaltui.core.matching.pairing import common_ends
from evaltui.core.metrics.answer_rules import (
    NEGATIONS,
    check_in_words,
    has_text,
    names_in,
    plain,
    quantity_texts,
)
from evaltui.core.metrics.registry import METRICS
from evaltui.core.metrics.trajectory import ignores_args, match_type_of
from evaltui.core.model.answer_rule import AnswerRule, RuleScope
from evaltui.core.model.config import BaseCriterion, EvalConfig
from evaltui.core.model.content import FunctionCall
from evaltui.core.model.criteria import MatchType
from evaltui.core.model.eval_set import Invocation, scored_text, tool_calls
from evaltui.core.model.json_values import camel
from evaltui.core.model.outcome import MetricResult
from evaltui.core.scoring import Expected, metric_results
from evaltui.text.figures import show_threshold

TRAJECTORY = "tool_trajectory_avg_score"

_PROMISES = (
    *("refund", "refunds", "refunded", "reimburse", "reimbursed", "compensate", "compensated"),
    *("discount", "voucher", "free of charge", "guarantee", "guaranteed"),
)
_SENTENCE_END = r"[.!?…。！？][\s\"'”’»)\]*_`]*\Z"
_EDGES = " \t\n.,;:!?\"'“”‘’«»()[]*_`…。！？"
_TAIL_WORDS = (3, 2, 4, 1)
_CONTEXT_WORDS = (1, 2, 3)
_DECIMALS = (2, 3)


class Conversation(NamedTuple):
    """A recorded conversation, as it is scored."""

    turns: Sequence[Invocation]
    final_state: Mapping[str, Any] | None


@dataclass(frozen=True)
class Draft:
    """An edit that would notice a change: a check, a criterion, expected calls, or a rubric to be judged."""

    check: Mapping[str, Any] | None = None
    """A check of the response, without the names of its set, case and turn."""
    metric: str = ""
    """The metric whose criterion changes; "" for none."""
    options: Mapping[str, Any] | None = None
    """The keys of the criterion that change, `threshold` among them."""
    calls: Sequence[FunctionCall] | None = None
    """The recorded calls of the turn, to be expected."""
    rubric: str = ""
    """A rubric for a judge: its effect is unknown."""

    def __str__(self) -> str:
        """`numbers equal`; `response_match_score ≥ 0.94`"""
        parts = ["expect the recorded calls"] if self.calls is not None else []
        if self.check:
            parts.append(check_in_words(self.check))
        for name, value in (self.options or {}).items():
            text = f"≥ {show_threshold(value)}" if name == "threshold" else f"{name} {value}"
            parts.append(f"{self.metric} {text}")
        return ", ".join(parts) or self.rubric

    def rule(self, expected: Expected, turn: int | None, scope: RuleScope) -> dict[str, Any]:
        """The check as a config has it, of the turn, from 0, or of every response of the set or all sets."""
        names: dict[str, Any] = {} if scope == "all" else {"set": expected.eval_set_id}
        if scope == "case":
            names |= {"case": expected.case.eval_id} | ({} if turn is None else {"turn": turn})
        return {**names, **(self.check or {})}

    def applied(self, expected: Expected, turn: int | None, scope: RuleScope = "case") -> Expected:
        """The expectation after the edit for a change in a turn, from 0."""
        config, case = expected.config, expected.case
        if self.check is not None:
            rule = AnswerRule.model_validate(self.rule(expected, turn, scope))
            answers = [*config.evaltui.answers, rule]
            config = config.model_copy(
                update={"evaltui": config.evaltui.model_copy(update={"answers": answers})}
            )
        if self.options is not None:
            config = _with_options(config, self.metric, self.options)
        if self.calls is not None and turn is not None:
            turns = list(case.conversation or ())
            turns[turn] = with_calls(turns[turn], self.calls)
            case = case.model_copy(update={"conversation": turns})
        return replace(expected, config=config, case=case)


def _with_options(config: EvalConfig, name: str, options: Mapping[str, Any]) -> EvalConfig:
    """The config with these keys of a criterion, which is added to `criteria` where it is missing."""
    is_own = name in config.evaltui.criteria
    owner = config.evaltui.criteria if is_own else config.criteria
    old: Any = owner.get(name, {})
    data = old.model_dump(by_alias=False) if isinstance(old, BaseCriterion) else {"threshold": old}
    data = {key: value for key, value in data.items() if key not in {camel(option) for option in options}}
    criterion = BaseCriterion.model_validate({**data, **options})
    criteria = {**owner, name: criterion}
    if is_own:
        return config.model_copy(update={"evaltui": config.evaltui.model_copy(update={"criteria": criteria})})
    return config.model_copy(update={"criteria": criteria})


async def passing_results(recorded: RecordedCase, others: Iterable[Conversation]) -> list[Conversation]:
    """The original, and those other results of its case that pass by its case and config of now."""
    original = Conversation(recorded.turns, recorded.final_state)
    return [original, *[other for other in others if await passes(recorded, *other)]]


async def proven_drafts(
    recorded: RecordedCase, mutant: Mutant, passing: Sequence[Conversation]
) -> list[Draft]:
    """The drafts that notice a change, and let all passing results of its case pass.

    Those that notice most changes of its kind in its case come first, criteria last. Where there is none for
    another agent, a rubric is.
    """
    kin = [other for other in recorded.mutants() if other.kind == mutant.kind]
    proven: list[tuple[bool, int, Draft]] = []
    for draft in await _candidates(recorded, mutant, passing):
        after = replace(recorded, expected=draft.applied(recorded.expected, mutant.turn))
        if await is_noticed(after, mutant) and all([await passes(after, *result) for result in passing]):
            noticed = sum([await is_noticed(after, other) for other in kin])
            proven.append((draft.options is not None, -noticed, draft))
    drafts = [draft for *_, draft in sorted(proven, key=lambda item: item[:2])]
    if not drafts and mutant.subject == "agents":
        return [Draft(rubric=f"The response comes from the agent {mutant.before}.")]
    return drafts


async def is_noticed(recorded: RecordedCase, mutant: Mutant) -> bool:
    """Whether a case notices a change of it, as `GapSearch` decides."""
    return is_noticed_by(await scores_of(recorded, mutant), recorded)


async def _candidates(recorded: RecordedCase, mutant: Mutant, passing: Sequence[Conversation]) -> list[Draft]:
    """Drafts for a change, the most general ones first; they need not hold."""
    turn, thoughts = mutant.turn, recorded.expected.score_thoughts
    drafts: list[Draft] = []
    if mutant.subject == "answers" and turn is not None:
        reached = [result.turns[turn] for result in passing if turn < len(result.turns)]
        texts = [scored_text(invocation, thoughts=thoughts) for invocation in reached]
        drafts += (Draft(check=check) for check in _checks(mutant, texts))
    elif mutant.kind == OTHER_AGENT:
        drafts.append(Draft(check={"agent": mutant.before}))
    if mutant.subject != "answers" and turn is not None:
        drafts += _call_drafts(recorded, turn)
    drafts += await _thresholds(recorded, mutant, passing)
    return [draft for number, draft in enumerate(drafts) if draft not in drafts[:number]]


# Checks of a response


def _checks(mutant: Mutant, texts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Checks that a changed response breaks; all `texts`, the original one first, should hold them."""
    original, changed = mutant.before, mutant.after
    kind, shorter = mutant.kind, (EMPTIED, CUT, TOOL_RESPONSE_DROPPED)
    if kind == NEGATED:
        yield from _without(NEGATIONS, texts, changed)
    if kind == PROMISE:
        yield from _without(_PROMISES, texts, changed)
    if kind in (NUMBER, DATE, UNIT, TOOL_RESPONSE, PROMISE, *shorter):
        yield {"numbers": "equal"}
    if kind in (NAME, *shorter) and is_english(original):
        yield from _with(names_in(original), texts, changed)
    if kind in (NUMBER, DATE, UNIT, TOOL_RESPONSE, *shorter):
        yield from _with(quantity_texts(original), texts, changed)
    if kind in (EMPTIED, CUT):
        yield from _with(_tails(original), texts, changed, only_first=True)
        yield {"regex": _SENTENCE_END}
    else:
        yield from _with(_around(original, changed), texts, changed, only_first=True)
    if kind == PROMISE:
        added = changed.removeprefix(original.rstrip()).strip(_EDGES)
        yield from _without([added], texts, changed)


def _with(
    words: Iterable[str], texts: Sequence[str], changed: str, *, only_first: bool = False
) -> Iterator[dict[str, Any]]:
    """A check for those words that all texts have, if the changed one lacks any of them."""
    held = [word for word in dict.fromkeys(words) if word and all(has_text(text, word) for text in texts)]
    lacking = [word for word in held if not has_text(changed, word)]
    if lacking:
        yield {"contains": lacking[:1] if only_first else held}
    if len(held) > 1 and len(lacking) == 1 and not only_first:
        yield {"contains": lacking}


def _without(words: Iterable[str], texts: Sequence[str], changed: str) -> Iterator[dict[str, Any]]:
    """A check against those words that no text has, if the changed one has any of them."""
    absent = [word for word in words if word and not any(has_text(text, word) for text in texts)]
    if any(has_text(changed, word) for word in absent):
        yield {"not_contains": absent}


def _tails(text: str) -> Iterator[str]:
    """The last words of a text, less than all of it."""
    words = text.split()
    if len(words) == 1 and not text.isascii():
        # Of a script without spaces.
        words = [*text.strip(_EDGES)]
        yield "".join(words[-(len(words) // 3) :])
        return
    for count in _TAIL_WORDS:
        if count < len(words) or count == 1:
            yield " ".join(words[-count:]).strip(_EDGES)


def _around(original: str, changed: str) -> Iterator[str]:
    """The changed words of the original with words before and after them, less than all of it."""
    before, after = original.split(), changed.split()
    start, end = common_ends(before, after)
    for count in _CONTEXT_WORDS:
        phrase = " ".join(before[max(0, start - count) : len(before) - end + count])
        if plain(phrase) != plain(original):
            yield phrase.strip(_EDGES)


# Calls


def _call_drafts(recorded: RecordedCase, turn: int) -> Iterator[Draft]:
    """The recorded calls as expected, and all differences of calls as differences."""
    metric = next((metric for metric in recorded.metrics if metric.metric_name == TRAJECTORY), None)
    calls = tool_calls(recorded.turns[turn].intermediate_data)
    options: dict[str, Any] = {}
    if metric is None:
        options["threshold"] = 1.0
    else:
        options |= {"match_type": "EXACT"} if match_type_of(metric) is not MatchType.EXACT else {}
        options |= {"ignore_args": False} if ignores_args(metric) else {}
    if options:
        yield Draft(metric=TRAJECTORY, options=options)
    if _meanings(recorded.expected_calls(turn)) != _meanings(calls):
        yield Draft(metric=TRAJECTORY if options else "", options=options or None, calls=calls)


def _meanings(calls: Iterable[FunctionCall]) -> list[tuple[str | None, Mapping[str, Any] | None]]:
    return [(call.name, call.args) for call in calls]


# Thresholds


async def _thresholds(
    recorded: RecordedCase, mutant: Mutant, passing: Sequence[Conversation]
) -> Sequence[Draft]:
    """The least thresholds that a changed conversation misses and all passing results reach."""
    names = recorded.seen_by[mutant.subject] & {metric.metric_name for metric in recorded.metrics}
    if not names:
        return ()
    least: dict[str, float] = {}
    for result in passing:
        for metric in await metric_results(
            recorded.expected, result.turns, final_state=result.final_state, only=names
        ):
            if metric.score is not None:
                least[metric.name] = min(least.get(metric.name, metric.score), metric.score)
    return [
        Draft(metric=metric.name, options={"threshold": threshold})
        for metric in await scores_of(recorded, mutant)
        if metric.score is not None and metric.name in least
        for threshold in _between(metric, least[metric.name])
    ]


def _between(metric: MetricResult, least: float) -> Iterator[float]:
    """A threshold above a score, up to another one; not that of equal texts."""
    is_text = METRICS[metric.name].compares in ("response", "texts")
    for decimals in _DECIMALS:
        scale = 10**decimals
        threshold = (floor((metric.score or 0.0) * scale) + 1) / scale
        if threshold <= least and not (is_text and threshold >= 1.0):
            yield threshold
            return
