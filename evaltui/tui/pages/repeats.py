"""What several runs of a case say together."""

from __future__ import annotations

from evaltui.core.compare.repeats import TrajectoryGroup, in_words, pass_rates, trajectory_groups
from evaltui.core.model.outcome import CaseResult
from evaltui.text.lines import Span, pad
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut
from evaltui.tui.pages.writer import LABEL, Page, RepeatAt
from evaltui.workbench.state import CaseOutcome

# More kinds of trajectories than this are noise, and so are longer lines of one.
_MOST_GROUPS = 8
_LONGEST_CALLS = 2_000
_MOST_NUMBERS = 6
# Cells of the glyph of a run.
_GLYPH = 3


def repeats_verdict(result: CaseResult) -> list[Span]:
    """`≈ 3/5 FLAKY, fails policy all`"""
    meets = "meets" if result.policy_met else "fails"
    mark, tone = glyph(result.status)
    return [
        (f"{mark} {result.passed_repeats}/{len(result.repeats)} {result.status.value}", tone),
        (f"  {meets} policy {result.policy}", ""),
    ]


def write_repeats(page: Page, scored: CaseOutcome) -> None:
    """How each of them came out, what that says of the next ones, and which calls they made."""
    result = scored.result
    _write_runs(page, result, scored.repeat, chosen=scored.chosen is not None)
    rates = pass_rates(result)
    page.labelled("k", [("".join(f"{rate.k:<6}" for rate in rates), "dim")])
    page.labelled("pass@k", [("".join(f"{rate.at_least_one:<6.2f}" for rate in rates), "")])
    page.labelled("pass^k", [("".join(f"{rate.all:<6.2f}" for rate in rates), "")])
    groups = trajectory_groups(result)
    if len(groups) == 1:
        page.labelled("calls", [("the same in every run", "")])
        return
    page.labelled("calls", [(f"{len(groups)} different trajectories", "")])
    for group in groups[:_MOST_GROUPS]:
        _write_group(page, group, scored.repeat)
    if len(groups) > _MOST_GROUPS:
        page.labelled("", [(f"and {len(groups) - _MOST_GROUPS} more", "dim")])


def _write_runs(page: Page, result: CaseResult, shown: int, *, chosen: bool) -> None:
    margin = 1 + LABEL
    in_row = max(1, (page.width - margin) // _GLYPH)
    for first in range(0, len(result.repeats), in_row):
        spans: list[Span] = [(pad("  runs" if first == 0 else "", margin), "dim")]
        for number in range(first, min(first + in_row, len(result.repeats))):
            mark, tone = glyph(result.repeats[number].status)
            around = ("[", "]") if number == shown else (" ", " ")
            start = margin + (number - first) * _GLYPH
            page.repeats.append(RepeatAt(number, len(page.lines), start, start + _GLYPH))
            spans += [(around[0], "accent"), (mark, tone), (around[1], "accent")]
        page.row(*spans)
    differ = len({repeat.status for repeat in result.repeats}) > 1
    which = ", the gravest" if differ and not chosen else ""
    page.row((" " * (margin + 1), ""), (f"run {shown + 1} is shown{which}: [ ] others", "dim"))


def _write_group(page: Page, group: TrajectoryGroup, shown: int) -> None:
    here = shown in group.repeats
    outcomes = [glyph(status) for status in dict.fromkeys(group.statuses)]
    numbers = ", ".join(str(number + 1) for number in group.repeats[:_MOST_NUMBERS])
    more = ", …" if len(group.repeats) > _MOST_NUMBERS else ""
    head: list[Span] = [
        ("  ▌ " if here else "    ", "accent"),
        (f"{len(group.repeats):>3}×  ", ""),
        *outcomes,
        (pad("", 3 - len(outcomes)), ""),
    ]
    page.text([(cut(in_words(group.calls), _LONGEST_CALLS), ""), (f"  run {numbers}{more}", "dim")], head)
