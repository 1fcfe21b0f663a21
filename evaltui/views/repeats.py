"""The repeats of a case as rows: their outcomes, the estimate for further repeats, and their calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from evaltui.core.compare.repeats import trajectory_text
from evaltui.core.model.outcome import CaseResult, TrajectoryGroup, worst_status
from evaltui.text.figures import UNKNOWN, plural, show_number, show_score
from evaltui.text.lines import Line
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut

# More kinds of trajectories than this are noise, and so are longer lines of one, and more numbers of repeats.
_MAX_GROUPS, _MAX_CALLS, _MAX_NUMBERS = 8, 2_000, 6


@dataclass(frozen=True)
class RepeatRow:
    """A labelled line about the repeats of a case."""

    label: str
    line: Line
    head: Line = field(default_factory=list)
    """The number of repeats and their outcomes, before the line."""
    repeats: tuple[int, ...] = ()
    """The repeats that made the calls of the line, from 0; empty for other lines."""


def repeat_rows(case: CaseResult) -> Iterator[RepeatRow]:
    """The rows about the repeats of a case, without the outcome of each; none for a case with one run."""
    if len(case.repeats) < 2 and case.decision is None:
        return
    yield RepeatRow("pass rate", [(str(case.rate or UNKNOWN), "")])
    rates = case.pass_rates
    yield RepeatRow("k", [("".join(f"{rate.k:<6}" for rate in rates), "muted")])
    yield RepeatRow("pass@k", [("".join(f"{show_score(rate.pass_at_k):<6}" for rate in rates), "")])
    yield RepeatRow("pass^k", [("".join(f"{show_score(rate.pass_hat_k):<6}" for rate in rates), "")])
    groups = case.trajectories
    if not groups:
        yield RepeatRow("calls", [(UNKNOWN, "")])
        return
    if len(groups) == 1:
        yield RepeatRow("calls", [("the same in every repeat", "")])
        return
    yield RepeatRow("calls", [(f"{len(groups)} distinct trajectories", "")])
    yield from map(_group, groups[:_MAX_GROUPS])
    if len(groups) > _MAX_GROUPS:
        yield RepeatRow("", [(f"and {show_number(len(groups) - _MAX_GROUPS)} more", "muted")])


def _group(group: TrajectoryGroup) -> RepeatRow:
    """The row of a group: ` 2× ✓✗ set_light, list_lights repeats 1, 3`."""
    outcomes = [glyph(status) for status in dict.fromkeys(group.statuses)]
    numbers = ", ".join(str(number + 1) for number in group.repeats[:_MAX_NUMBERS])
    more = ", …" if len(group.repeats) > _MAX_NUMBERS else ""
    head: Line = [(f"{len(group.repeats):>3}×  ", ""), *outcomes, (" " * (3 - len(outcomes)), "")]
    line: Line = [
        (cut(trajectory_text(group.calls), _MAX_CALLS), ""),
        (f"  {plural(len(group.repeats), 'repeat')} {numbers}{more}", "muted"),
    ]
    return RepeatRow("", line, head, tuple(group.repeats))


def repeat_title(case: CaseResult, shown: int | None = None) -> str:
    """The title of a repeat: `repeat 1 of 10 (worst)`; `shown` is its index, from 0, None for the deciding
    one."""
    number = case.deciding_repeat if shown is None else shown
    statuses = {repeat.status for repeat in case.repeats}
    is_worst = len(statuses) > 1 and case.repeats[number].status is worst_status(statuses)
    word = " (worst)" if is_worst and shown is None else ""
    return f"repeat {number + 1} of {len(case.repeats)}{word}"
