"""What differs between what a turn was expected to do and what it did: calls, arguments and state."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

from evaltui.core.compare.matching import most_pairs
from evaltui.core.compare.rules import NO_RULES, CaseRules, ToolRules, arg_places, rule_in_words, same_args
from evaltui.core.compare.values import ABSENT, equal, side_by_side
from evaltui.core.model.eval_set import Intermediate, Invocation, tool_calls
from evaltui.core.model.outcome import (
    ArgDiff,
    ArgOp,
    Call,
    CallDiff,
    Expectation,
    ResponseDiff,
    StateDiff,
    TurnResult,
)
from evaltui.core.model.problems import format_path

# Beyond this many pairs of calls the optimal alignment costs more time than it is worth.
MAX_PAIRS = 1_000_000
# Equal calls are paired before those that rules make the same, of which a thousand weigh less than a change.
_SAME_BY_RULE = 0.001


@dataclass(frozen=True, slots=True)
class _Side:
    """A call on one side. Two of them are equal when their names and arguments are."""

    name: str
    args: Hashable
    call: Call = field(compare=False)


_Cost = Callable[[_Side, _Side], float]


def expectation_of(invocation: Invocation) -> Literal["these calls", "no calls", "unspecified"]:
    """What the expected side of a turn says of tool calls."""
    if invocation.intermediate_data is None:
        return "unspecified"
    return "these calls" if tool_calls(invocation.intermediate_data) else "no calls"


def calls_of(data: Intermediate | None) -> tuple[Call, ...]:
    """The tool calls of a turn by name and arguments; ids say nothing."""
    return tuple(Call(call.name or "", call.args) for call in tool_calls(data))


def turn_result(
    expected: Invocation | None,
    actual: Invocation | None,
    *,
    expectation: Expectation,
    expected_text: str | None,
    actual_text: str | None,
    response_score: float | None = None,
    unscored: Sequence[tuple[str, str]] = (),
    ignore_args: bool = False,
    rules: CaseRules = NO_RULES,
) -> TurnResult:
    """One turn side by side; a side that has no such turn is None.

    Calls are aligned in every turn, whether its expectation says that they are checked or not.
    """
    return TurnResult(
        expectation=expectation,
        calls=align_calls(
            calls_of(expected.intermediate_data) if expected else (),
            calls_of(actual.intermediate_data) if actual else (),
            ignore_args=ignore_args,
            rules=rules,
        ),
        response=ResponseDiff(expected_text, actual_text, response_score),
        unscored=tuple(unscored),
    )


def align_calls(
    expected: Sequence[Call],
    actual: Sequence[Call],
    *,
    ignore_args: bool = False,
    rules: CaseRules = NO_RULES,
) -> tuple[CallDiff, ...]:
    """The two trajectories as rows, every call in exactly one of them.

    The rows are those that need the fewest changes: equal calls are `same`, calls of one name `changed` (with
    their argument differences), and what is left is `missing` or `extra`. A missing call that was made
    elsewhere is one `moved` row at the place where it was made. Calls are equal as in google-adk: names and
    decoded arguments by `==`, so `1 == 1.0 == True`, and `None` is not `{}`. Calls that rules make the same
    count as equal, too; equal ones are paired before them.

    Without rules, swapping the sides gives the same rows with their sides swapped.
    """
    expected, actual = tuple(expected), tuple(actual)
    mine = [_side(call, ignore_args) for call in expected]
    theirs = [_side(call, ignore_args) for call in actual]
    if ignore_args:
        rules = NO_RULES

    def cost(one: _Side, other: _Side) -> float:
        return _change_cost(one, other, rules)

    # Of equally good alignments the choice must not depend on which side is called expected.
    if repr(expected) <= repr(actual):
        pairs = _aligned(mine, theirs, cost)
    else:
        pairs = [(i, j) for j, i in _aligned(theirs, mine, lambda one, other: cost(other, one))]
    elsewhere = _moved(mine, theirs, pairs, rules)
    moved_from = set(elsewhere.values())

    rows: list[CallDiff] = []
    i = j = 0
    for next_i, next_j in [*pairs, (len(expected), len(actual))]:
        rows += (CallDiff("missing", expected[k], None) for k in range(i, next_i) if k not in moved_from)
        for k in range(j, next_j):
            if k in elsewhere:
                rows.append(_pair_row("moved", mine[elsewhere[k]], theirs[k], rules))
            else:
                rows.append(CallDiff("extra", None, actual[k]))
        if next_i < len(expected) and next_j < len(actual):
            rows.append(_pair_row("same", mine[next_i], theirs[next_j], rules))
        i, j = next_i + 1, next_j + 1
    return tuple(rows)


def _pair_row(op: Literal["same", "moved"], mine: _Side, theirs: _Side, rules: CaseRules) -> CallDiff:
    """Two calls of one name; `op` is what they are unless their arguments differ."""
    expected, actual = mine.call, theirs.call
    if mine == theirs:
        return CallDiff(op, expected, actual)
    args = diff_args(expected.args, actual.args, rules.get(expected.name))
    return CallDiff(op if all(arg.op == "same" for arg in args) else "changed", expected, actual, args)


def _side(call: Call, ignore_args: bool) -> _Side:
    return _Side(call.name, None if ignore_args else _frozen(call.args), call)


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    hashable: Hashable = value
    return hashable


def _aligned(left: Sequence[_Side], right: Sequence[_Side], cost: _Cost) -> list[tuple[int, int]]:
    """The pairs of positions that belong together, ascending on both sides."""
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    inner_left, inner_right = left[start : len(left) - end], right[start : len(right) - end]
    return [
        *((k, k) for k in range(start)),
        *((start + i, start + j) for i, j in _aligned_inside(inner_left, inner_right, cost)),
        *((len(left) - k, len(right) - k) for k in range(end, 0, -1)),
    ]


def _aligned_inside(left: Sequence[_Side], right: Sequence[_Side], cost: _Cost) -> Iterator[tuple[int, int]]:
    if len(left) * len(right) <= MAX_PAIRS:
        yield from _cheapest(left, right, cost)
        return
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        elif (i_end - i) * (j_end - j) <= MAX_PAIRS:
            yield from ((i + k, j + m) for k, m in _cheapest(left[i:i_end], right[j:j_end], cost))


def _cheapest(left: Sequence[_Side], right: Sequence[_Side], cost: _Cost) -> list[tuple[int, int]]:
    """Edit distance: a call on one side only costs 1, a change 1 to 1.5, another name is never paired."""
    costs: dict[_Side, list[float]] = {}
    # Per cell: 0 leaves the left call alone, 1 the right call, 2 pairs them.
    steps: list[bytearray] = []
    above = [float(j) for j in range(len(right) + 1)]
    for i, side in enumerate(left):
        if side not in costs:
            costs[side] = [cost(side, other) for other in right]
        row = [i + 1.0]
        step = bytearray(len(right))
        for j, change in enumerate(costs[side]):
            best, choice = above[j] + change, 2
            if above[j + 1] + 1 < best:
                best, choice = above[j + 1] + 1, 0
            if row[j] + 1 < best:
                best, choice = row[j] + 1, 1
            row.append(best)
            step[j] = choice
        steps.append(step)
        above = row

    pairs: deque[tuple[int, int]] = deque()
    i, j = len(left), len(right)
    while i and j:
        choice = steps[i - 1][j - 1]
        if choice == 2:
            pairs.appendleft((i - 1, j - 1))
        i -= choice != 1
        j -= choice != 0
    return list(pairs)


def _change_cost(expected: _Side, actual: _Side, rules: CaseRules) -> float:
    """Less than removing and adding together; the more arguments are equal, the cheaper."""
    if expected == actual:
        return 0.0
    if expected.name != actual.name:
        return float("inf")
    if expected.name in rules and rules[expected.name].match(expected.call.args, actual.call.args):
        return _SAME_BY_RULE
    mine, theirs = (
        args if isinstance(args, frozenset) else frozenset[Hashable]()
        for args in (expected.args, actual.args)
    )
    return 1 + 0.5 * len(mine ^ theirs) / max(1, len(mine) + len(theirs))


def _moved(
    expected: Sequence[_Side],
    actual: Sequence[_Side],
    pairs: Sequence[tuple[int, int]],
    rules: CaseRules,
) -> dict[int, int]:
    """Positions of actual calls without a partner -> the position at which the same call was expected."""
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
    taken = set(moved.values())
    left_expected = [i for i in left_expected if i not in taken]
    left_actual = [j for j in left_actual if j not in moved]
    by_rule = most_pairs(
        left_expected, left_actual, lambda i, j: _same_by_rule(expected[i], actual[j], rules)
    )
    return moved | {left_actual[j]: left_expected[i] for i, j in by_rule.items()}


def _same_by_rule(expected: _Side, actual: _Side, rules: CaseRules) -> bool:
    return expected.name == actual.name and same_args(
        expected.name, expected.call.args, actual.call.args, rules
    )


def diff_args(
    expected: dict[str, Any] | None, actual: dict[str, Any] | None, rules: ToolRules | None = None
) -> tuple[ArgDiff, ...]:
    """The arguments of two calls, by path, in the order of the expected ones and then the extra ones.

    Objects and lists that both sides have are compared item by item; anything else is one row. `None` and
    `{}` differ as a whole: one `changed` row with the path "". What the rules let pass is `same`.
    """
    if expected == actual and not expected:
        return ()
    return tuple(_arg_rows(expected, actual, rules))


def _arg_rows(
    expected: dict[str, Any] | None, actual: dict[str, Any] | None, rules: ToolRules | None
) -> Iterator[ArgDiff]:
    for path, mine, theirs in arg_places(expected, actual):
        sides = None if mine is ABSENT else mine, None if theirs is ABSENT else theirs
        op = _op(mine, theirs)
        rule = rules.passing(expected, actual, path) if rules and op != "same" else None
        if rule is None:
            yield ArgDiff(format_path(path), op, *sides)
        else:
            # Both None and nothing are None here.
            absent = f" ({op})" if op in ("missing", "extra") else ""
            yield ArgDiff(format_path(path), "same", *sides, rule_in_words(rule, path) + absent)


def _op(expected: Any, actual: Any) -> ArgOp:
    if expected is ABSENT:
        return "extra"
    if actual is ABSENT:
        return "missing"
    return "same" if equal(expected, actual) else "changed"


def diff_state(expected: dict[str, Any], actual: dict[str, Any]) -> tuple[StateDiff, ...]:
    """Where the final state is not what the expected keys say, by path; keys that nobody named may be there.

    A key that is absent counts as None, as it does for a tool that reads it with `get`.
    """
    return tuple(
        StateDiff(format_path(path), None if mine is ABSENT else mine, None if theirs is ABSENT else theirs)
        for key, value in expected.items()
        for path, mine, theirs in side_by_side(value, actual.get(key), (key,))
        if not equal(mine, theirs)
    )
