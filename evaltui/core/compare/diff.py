"""Differences between expected and actual calls, arguments and state."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from evaltui.core.matching.pairing import Pairs, Side, align, most_pairs, number_items
from evaltui.core.matching.rules import (
    NO_RULES,
    CaseRules,
    ToolRules,
    arg_places,
    call_keys,
    rule_in_words,
    same_args,
)
from evaltui.core.model.case_id import fingerprint
from evaltui.core.model.eval_set import Invocation, text_and_output, tool_calls
from evaltui.core.model.json_values import ABSENT, equal, hashable_value, side_by_side
from evaltui.core.model.outcome import (
    ArgDiff,
    ArgOp,
    Call,
    CallDiff,
    Expectation,
    StateDiff,
    TurnResult,
    calls_of,
)
from evaltui.core.model.problems import format_path
from evaltui.core.model.text_diff import AuthoredText, IntermediateDiff, ResponseDiff

# Equal calls are paired before those that rules make the same, of which a thousand weigh less than a change.
_SAME_BY_RULE = 0.001


@dataclass(frozen=True, slots=True)
class _Side:
    """A call on one side; two sides are equal if name and arguments are equal."""

    name: str
    args: Hashable
    call: Call = field(compare=False)


def expectation_of(invocation: Invocation) -> Literal["these calls", "no calls", "unspecified"]:
    """The kind of expectation that a turn has about its calls."""
    if invocation.intermediate_data is None:
        return "unspecified"
    return "these calls" if tool_calls(invocation.intermediate_data) else "no calls"


def texts_of_both(
    before: Invocation | None, after: Invocation | None, *, thoughts: bool = False
) -> tuple[str | None, str | None]:
    """The texts of the responses of two runs, None for a missing turn; where their files differ, with a line
    for each: `[image/png 3fb2c1a0d9e8]`."""
    files = [() if turn is None else _files(turn) for turn in (before, after)]
    texts = [None if turn is None else text_and_output(turn, thoughts=thoughts) for turn in (before, after)]
    if files[0] != files[1]:
        texts = [
            None if text is None else "\n".join(filter(None, (text, *own)))
            for text, own in zip(texts, files, strict=True)
        ]
    return texts[0], texts[1]


def _files(turn: Invocation) -> tuple[str, ...]:
    parts = (turn.final_response.parts if turn.final_response else None) or ()
    files = (file for part in parts if (file := part.inline_data or part.file_data))
    return tuple(f"[{file.mime_type or 'file'} {fingerprint(file.model_dump_json())}]" for file in files)


def turn_result(
    expected: Invocation | None,
    actual: Invocation | None,
    *,
    expectation: Expectation,
    expected_text: str | None,
    actual_text: str | None,
    response_score: float | None = None,
    unscored: Sequence[AuthoredText] = (),
    intermediate: Sequence[IntermediateDiff] = (),
    ignore_args: bool = False,
    any_order: bool = False,
    rules: CaseRules = NO_RULES,
    leaves_response: bool = False,
    has_unknown_response: bool = False,
) -> TurnResult:
    """A turn with both sides; None for a side without the turn.

    Calls are aligned also where the expectation is not checked. Unknown actual calls count as none.
    """
    return TurnResult(
        expectation=expectation,
        calls=align_calls(
            calls_of(expected.intermediate_data) if expected and expectation != "unknown" else (),
            calls_of(actual.intermediate_data) if actual else (),
            ignore_args=ignore_args,
            any_order=any_order,
            rules=rules,
        ),
        response=ResponseDiff(expected_text, actual_text, response_score, has_unknown_response),
        unscored=tuple(unscored),
        intermediate=tuple(intermediate),
        leaves_response=leaves_response,
    )


def align_calls(
    expected: Sequence[Call],
    actual: Sequence[Call],
    *,
    ignore_args: bool = False,
    any_order: bool = False,
    rules: CaseRules = NO_RULES,
) -> tuple[CallDiff, ...]:
    """Two trajectories as aligned rows with the fewest changes; every call is in exactly one row.

    Equal calls are `same`, calls of one name are `changed` with their argument differences, others are
    `missing` or `extra`. A missing call that was made elsewhere is one `moved` row at its actual place. Calls
    are equal as in google-adk: names and decoded arguments by `==`, so `1 == 1.0 == True`, and `None` is not
    `{}`. Calls that are equal because of rules are paired after those. Without rules, swapped arguments give
    the same rows with swapped sides. With `any_order`, two calls that changed places are two `moved` rows,
    even if fewer arguments differ between calls at one place.
    """
    expected, actual = tuple(expected), tuple(actual)
    mine = [_side(call, ignore_args) for call in expected]
    theirs = [_side(call, ignore_args) for call in actual]
    if mine == theirs:
        return tuple(map(partial(CallDiff, "same"), expected, actual))
    if ignore_args:
        rules = NO_RULES

    my_keys, their_keys = number_items(mine, theirs)
    side_of = dict(zip([*their_keys, *my_keys], [*theirs, *mine], strict=True))
    left, right = (
        Side(keys, [call_keys(item.name, item.call.args, rules)[0] for item in side] if rules else keys)
        for keys, side in ((my_keys, mine), (their_keys, theirs))
    )

    def cost(item: int, other: int) -> float:
        return 0.0 if item == other else _change_cost(side_of[item], side_of[other], rules)

    # Of equally good alignments the choice must not depend on which side is called expected.
    if repr(expected) <= repr(actual):
        pairs = align(left, right, cost)
    else:
        pairs = [(i, j) for j, i in align(right, left, lambda item, other: cost(other, item))]
    if any_order:
        pairs = _without_permuted(mine, theirs, pairs, rules)
    elsewhere = _moved_calls(mine, theirs, pairs, rules)
    moved_from = set(elsewhere.values())

    rows: list[CallDiff] = []
    i = j = 0
    for next_i, next_j in [*pairs, (len(expected), len(actual))]:
        rows += (CallDiff("missing", expected[k], None) for k in range(i, next_i) if k not in moved_from)
        for k in range(j, next_j):
            if k in elsewhere:
                place = elsewhere[k]
                rows.append(replace(_pair_row("moved", mine[place], theirs[k], rules), place=place))
            else:
                rows.append(CallDiff("extra", None, actual[k]))
        if next_i < len(expected) and next_j < len(actual):
            rows.append(_pair_row("same", mine[next_i], theirs[next_j], rules))
        i, j = next_i + 1, next_j + 1
    return tuple(rows)


def _pair_row(op: Literal["same", "moved"], mine: _Side, theirs: _Side, rules: CaseRules) -> CallDiff:
    """The row of two calls with one name; `changed` instead of `op` where their arguments differ."""
    expected, actual = mine.call, theirs.call
    if mine == theirs:
        return CallDiff(op, expected, actual)
    args = diff_args(expected.args, actual.args, rules.get(expected.name))
    return CallDiff(op if all(arg.op == "same" for arg in args) else "changed", expected, actual, args)


def _side(call: Call, ignore_args: bool) -> _Side:
    return _Side(call.name, None if ignore_args else hashable_value(call.args), call)


def _change_cost(expected: _Side, actual: _Side, rules: CaseRules) -> float:
    """The cost of pairing two calls, less than that of one missing and one extra call; lower for more equal
    arguments."""
    if expected.name != actual.name:
        return float("inf")
    if expected.name in rules and rules[expected.name].match(expected.call.args, actual.call.args):
        return _SAME_BY_RULE
    mine, theirs = (
        args if isinstance(args, frozenset) else frozenset[Hashable]()
        for args in (expected.args, actual.args)
    )
    return 1 + 0.5 * len(mine ^ theirs) / max(1, len(mine) + len(theirs))


def _without_permuted(
    expected: Sequence[_Side], actual: Sequence[_Side], pairs: Pairs, rules: CaseRules
) -> Pairs:
    """The pairs without those of different calls whose equals are elsewhere, where that gives no more rows:
    calls that changed places."""
    changed = {
        (i, j)
        for i, j in pairs
        if expected[i] != actual[j] and _change_cost(expected[i], actual[j], rules) > _SAME_BY_RULE
    }
    if not changed:
        return pairs
    moved = _moved_calls(expected, actual, [pair for pair in pairs if pair not in changed], rules)
    moved_to = {i: j for j, i in moved.items()}
    of_expected, of_actual = {pair[0]: pair for pair in changed}, {pair[1]: pair for pair in changed}
    apart: set[tuple[int, int]] = set()
    waiting = set(changed)
    while waiting:
        # Pairs whose calls are each other's equals. An end without an equal would be one more row, unless a
        # call that is alone is the equal of the other end.
        chain, ends = [waiting.pop()], []
        for i, j in chain:
            for place, others in ((moved_to.get(i), of_actual), (moved.get(j), of_expected)):
                neighbour = None if place is None else others.get(place)
                if neighbour is None:
                    ends.append(place is not None)
                elif neighbour in waiting:
                    waiting.remove(neighbour)
                    chain.append(neighbour)
        apart |= {*chain} if any(ends) or not ends else set()
    return [pair for pair in pairs if pair not in apart]


def _moved_calls(
    expected: Sequence[_Side],
    actual: Sequence[_Side],
    pairs: Sequence[tuple[int, int]],
    rules: CaseRules,
) -> dict[int, int]:
    """Unpaired actual calls that are expected at another place: actual position to expected position."""
    paired_expected = {i for i, _ in pairs}
    paired_actual = {j for _, j in pairs}
    left_expected = [i for i in range(len(expected)) if i not in paired_expected]
    left_actual = [j for j in range(len(actual)) if j not in paired_actual]
    waiting: dict[_Side, deque[int]] = {}
    for i in left_expected:
        waiting.setdefault(expected[i], deque()).append(i)
    moved = {j: waiting[actual[j]].popleft() for j in left_actual if waiting.get(actual[j])}
    if not rules:
        return moved
    moved_from = set(moved.values())
    left_expected = [i for i in left_expected if i not in moved_from]
    left_actual = [j for j in left_actual if j not in moved]
    by_rule = most_pairs(
        [expected[i] for i in left_expected],
        [actual[j] for j in left_actual],
        lambda side, other: same_args(side.name, side.call.args, other.call.args, rules),
        lambda side: call_keys(side.name, side.call.args, rules),
    )
    return moved | {left_actual[j]: left_expected[i] for i, j in by_rule.items()}


def diff_args(
    expected: dict[str, Any] | None, actual: dict[str, Any] | None, rules: ToolRules | None = None
) -> tuple[ArgDiff, ...]:
    """The argument differences of two calls by path, in the order of the expected ones, then the extra ones.

    Objects and lists on both sides are compared item by item. `None` and `{}` differ as a whole, in one
    `changed` row with the path "". A difference that rules allow is `same`.
    """
    rows: list[ArgDiff] = []
    for path, mine, theirs in arg_places(expected, actual) if expected or expected != actual else ():
        sides = None if mine is ABSENT else mine, None if theirs is ABSENT else theirs
        op = _arg_op(mine, theirs)
        rule = rules.passing(expected, actual, path) if rules and op != "same" else None
        if rule is None:
            rows.append(ArgDiff(format_path(path), op, *sides))
        else:
            # Both None and nothing are None here.
            absent = f" ({op})" if op in ("missing", "extra") else ""
            rows.append(ArgDiff(format_path(path), "same", *sides, rule_in_words(rule, path) + absent))
    return tuple(rows)


def _arg_op(expected: Any, actual: Any) -> ArgOp:
    if expected is ABSENT:
        return "extra"
    if actual is ABSENT:
        return "missing"
    return "same" if equal(expected, actual) else "changed"


def diff_state(expected: dict[str, Any], actual: dict[str, Any]) -> tuple[StateDiff, ...]:
    """The keys of the final state that differ from the expected ones, by path; other keys are ignored.

    An absent key, at any depth, equals None, as for a tool that reads it with `get`.
    """
    return tuple(
        StateDiff(format_path(path), None if mine is ABSENT else mine, None if theirs is ABSENT else theirs)
        for key, value in expected.items()
        for path, mine, theirs in side_by_side(value, actual.get(key), (key,))
        if not equal(mine, theirs) and not (isinstance(path[-1], str) and _is_none(mine) and _is_none(theirs))
    )


def _is_none(value: Any) -> bool:
    return value is None or value is ABSENT
