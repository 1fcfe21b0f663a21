"""What differs between what a turn was expected to do and what it did: calls, arguments and state."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from evaltui.core.evalset import Intermediate, Invocation, tool_calls
from evaltui.core.outcome import (
    ArgDiff,
    ArgOp,
    Call,
    CallDiff,
    Expectation,
    ResponseDiff,
    StateDiff,
    TurnResult,
)
from evaltui.core.problems import JsonPath, format_path

# Beyond this many pairs of calls the optimal alignment costs more time than it is worth.
MAX_PAIRS = 1_000_000

_Identity = tuple[str, Hashable]
_ABSENT = object()


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
        ),
        response=ResponseDiff(expected_text, actual_text, response_score),
        unscored=tuple(unscored),
    )


def align_calls(
    expected: Sequence[Call], actual: Sequence[Call], *, ignore_args: bool = False
) -> tuple[CallDiff, ...]:
    """The two trajectories as rows, every call in exactly one of them.

    The rows are those that need the fewest changes: equal calls are `same`, calls of one name `changed` (with
    their argument differences), and what is left is `missing` or `extra`. A missing call that was made
    elsewhere is one `moved` row at the place where it was made. Calls are equal as in google-adk: names and
    decoded arguments by `==`, so `1 == 1.0 == True`, and `None` is not `{}`.

    Swapping the sides gives the same rows with their sides swapped.
    """
    expected, actual = tuple(expected), tuple(actual)
    expected_ids = [_identity(call, ignore_args) for call in expected]
    actual_ids = [_identity(call, ignore_args) for call in actual]
    # Of equally good alignments the choice must not depend on which side is called expected.
    if repr(expected) <= repr(actual):
        pairs = _aligned(expected_ids, actual_ids)
    else:
        pairs = [(i, j) for j, i in _aligned(actual_ids, expected_ids)]
    elsewhere = _moved(expected_ids, actual_ids, pairs)
    moved_from = set(elsewhere.values())

    rows: list[CallDiff] = []
    i = j = 0
    for next_i, next_j in [*pairs, (len(expected), len(actual))]:
        rows += (CallDiff("missing", expected[k], None) for k in range(i, next_i) if k not in moved_from)
        for k in range(j, next_j):
            if k in elsewhere:
                rows.append(CallDiff("moved", expected[elsewhere[k]], actual[k]))
            else:
                rows.append(CallDiff("extra", None, actual[k]))
        if next_i < len(expected) and next_j < len(actual):
            rows.append(
                _pair_row(expected[next_i], actual[next_j], expected_ids[next_i] == actual_ids[next_j])
            )
        i, j = next_i + 1, next_j + 1
    return tuple(rows)


def _pair_row(expected: Call, actual: Call, same: bool) -> CallDiff:
    if same:
        return CallDiff("same", expected, actual)
    return CallDiff("changed", expected, actual, diff_args(expected.args, actual.args))


def _identity(call: Call, ignore_args: bool) -> _Identity:
    """Two calls are equal when their identities are."""
    return call.name, None if ignore_args else _frozen(call.args)


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    hashable: Hashable = value
    return hashable


def _aligned(left: Sequence[_Identity], right: Sequence[_Identity]) -> list[tuple[int, int]]:
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
        *((start + i, start + j) for i, j in _aligned_inside(inner_left, inner_right)),
        *((len(left) - k, len(right) - k) for k in range(end, 0, -1)),
    ]


def _aligned_inside(left: Sequence[_Identity], right: Sequence[_Identity]) -> Iterator[tuple[int, int]]:
    if len(left) * len(right) <= MAX_PAIRS:
        yield from _cheapest(left, right)
        return
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(range(i, i_end), range(j, j_end), strict=True)
        elif (i_end - i) * (j_end - j) <= MAX_PAIRS:
            yield from ((i + k, j + m) for k, m in _cheapest(left[i:i_end], right[j:j_end]))


def _cheapest(left: Sequence[_Identity], right: Sequence[_Identity]) -> list[tuple[int, int]]:
    """Edit distance: a call on one side only costs 1, a change 1 to 1.5, another name is never paired."""
    costs: dict[_Identity, list[float]] = {}
    # Per cell: 0 leaves the left call alone, 1 the right call, 2 pairs them.
    steps: list[bytearray] = []
    above = [float(j) for j in range(len(right) + 1)]
    for i, identity in enumerate(left):
        if identity not in costs:
            costs[identity] = [_change_cost(identity, other) for other in right]
        row = [i + 1.0]
        step = bytearray(len(right))
        for j, cost in enumerate(costs[identity]):
            best, choice = above[j] + cost, 2
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


def _change_cost(left: _Identity, right: _Identity) -> float:
    """Less than removing and adding together; the more arguments are equal, the cheaper."""
    if left == right:
        return 0.0
    if left[0] != right[0]:
        return float("inf")
    mine, theirs = (
        args if isinstance(args, frozenset) else frozenset[Hashable]() for args in (left[1], right[1])
    )
    return 1 + 0.5 * len(mine ^ theirs) / max(1, len(mine) + len(theirs))


def _moved(
    expected: Sequence[_Identity], actual: Sequence[_Identity], pairs: Sequence[tuple[int, int]]
) -> dict[int, int]:
    """Positions of actual calls without a partner -> the position at which the equal call was expected."""
    paired_expected = {i for i, _ in pairs}
    paired_actual = {j for _, j in pairs}
    waiting: dict[_Identity, deque[int]] = {}
    for i, identity in enumerate(expected):
        if i not in paired_expected:
            waiting.setdefault(identity, deque()).append(i)
    return {
        j: waiting[identity].popleft()
        for j, identity in enumerate(actual)
        if j not in paired_actual and waiting.get(identity)
    }


def diff_args(expected: dict[str, Any] | None, actual: dict[str, Any] | None) -> tuple[ArgDiff, ...]:
    """The arguments of two calls, by path, in the order of the expected ones and then the extra ones.

    Objects and lists that both sides have are compared item by item; anything else is one row. `None` and
    `{}` differ as a whole: one `changed` row with the path "".
    """
    if not expected and not actual:
        return () if expected == actual else (ArgDiff("", "changed", expected, actual),)
    return tuple(_differences((), expected or {}, actual or {}))


def _differences(path: JsonPath, expected: Any, actual: Any) -> Iterator[ArgDiff]:
    if isinstance(expected, dict) and isinstance(actual, dict) and (expected or actual):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from _differences((*path, key), expected.get(key, _ABSENT), actual.get(key, _ABSENT))
    elif isinstance(expected, list) and isinstance(actual, list) and (expected or actual):
        for index in range(max(len(expected), len(actual))):
            yield from _differences((*path, index), _item(expected, index), _item(actual, index))
    else:
        yield ArgDiff(
            format_path(path),
            _op(expected, actual),
            None if expected is _ABSENT else expected,
            None if actual is _ABSENT else actual,
        )


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else _ABSENT


def _op(expected: Any, actual: Any) -> ArgOp:
    if expected is _ABSENT:
        return "extra"
    if actual is _ABSENT:
        return "missing"
    return "same" if expected == actual else "changed"


def diff_state(expected: dict[str, Any], actual: dict[str, Any]) -> tuple[StateDiff, ...]:
    """Where the final state is not what the expected keys say, by path; keys that nobody named may be there.

    A key that is absent counts as None, as it does for a tool that reads it with `get`.
    """
    return tuple(
        StateDiff(diff.path, diff.expected, diff.actual)
        for key, value in expected.items()
        for diff in _differences((key,), value, actual.get(key))
        if diff.op != "same"
    )
