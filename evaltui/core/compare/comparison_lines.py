"""Two compared runs as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from evaltui.core.compare.run_comparison import (
    KINDS,
    CaseChange,
    Comparison,
    Kind,
    ScoreChange,
    case_name,
    what_changed,
)
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.text.figures import (
    counted,
    plural,
    show_duration,
    show_money,
    show_number,
    show_p,
    show_score,
    some_of,
)
from evaltui.text.lines import Line, cut, pad, wrap
from evaltui.text.outcomes import glyph
from evaltui.text.values import visible

_LISTED: dict[Kind, tuple[str, str]] = {
    "broken": ("broken", "error"),
    "unclear": ("unclear", "warning"),
    "fixed": ("fixed", "success"),
    "flaky": ("flaky", "warning"),
    "expectation changed": ("changed", "warning"),
    "new": ("new", ""),
    "gone": ("gone", ""),
    "unchanged": ("score", "muted"),
}
_KIND_WIDTH = max(len(word) for word, _ in _LISTED.values())
# Of each kind.
_MOST_CASES = 30
# Scores that look the same are.
_SAME_SCORE = 0.005
# What time and tokens vary by from run to run is not worth a word.
_MUCH = 0.25
_SECONDS = 0.1


def comparison_lines(comparison: Comparison, width: int) -> Iterator[Line]:
    """What changed, case by case, and the sum; a line per case."""
    base, candidate = comparison.base, comparison.candidate
    passing = sum(case.passes for case in base.cases.values())
    head = f" ({counted(len(base.cases), 'case')}, {passing} pass)"
    yield cut([("compared with ", "bold"), (visible(base.id), "bold"), (head, "")], width)
    changed = "; ".join(visible(text) for text in what_changed(base, candidate))
    if changed:
        yield from _indented("  between them  ", changed, width)
    listed = [change for kind in KINDS for change in _shown(comparison, kind)]
    ids = min(width // 3, max((cell_len(_name(change, comparison)) for change in listed), default=0))
    for kind in KINDS:
        shown = _shown(comparison, kind)
        for change in shown[:_MOST_CASES]:
            yield cut(_case(change, pad(_name(change, comparison), ids)), width)
        if len(shown) > _MOST_CASES:
            yield [(f"  {'':{_KIND_WIDTH}}  and {show_number(len(shown) - _MOST_CASES)} more", "muted")]
    yield from _indented("  ", ", ".join(_sums(comparison)), width)
    for run, name in ((base, "base"), (candidate, "candidate")):
        if missing := run.unfinished:
            text = f"{name}: {counted(len(missing), 'case')} without a result: "
            yield from _indented("  ", text + visible(some_of([case.eval_id for case in missing])), width)
    if comparison.paired.cases:
        yield from _indented("  ", f"{comparison.paired} (exact McNemar test)", width)
    rarer = [change for change in comparison.regressions if change.passes_less_often]
    for what, changes in (
        ("regression, failed before and passes less often", rarer),
        (f"without evidence (p > {comparison.alpha:g})", comparison.without_evidence),
    ):
        if changes:
            names = some_of([_name(change, comparison) for change in changes])
            yield from _indented("  ", f"{what}: {names}", width)
    if spent := ", ".join(_spent(comparison)):
        yield from _indented("  ", f"{spent}, of the cases in both", width)


def _shown(comparison: Comparison, kind: Kind) -> Sequence[CaseChange]:
    if kind not in _LISTED:
        return ()
    cases = comparison.of(kind)
    return [one for one in cases if any(map(_differs, one.scores))] if kind == "unchanged" else cases


def _differs(score: ScoreChange) -> bool:
    if score.base is None or score.candidate is None:
        return score.base is not score.candidate
    return abs(score.base - score.candidate) >= _SAME_SCORE


def _name(change: CaseChange, comparison: Comparison) -> str:
    return visible(case_name(change, comparison))


def _case(change: CaseChange, name: str) -> Line:
    word, style = _LISTED[change.kind]
    sides = [side_line(side) for side in (change.base, change.candidate) if side is not None]
    arrow: Line = [(" → ", "muted")]
    verdicts = [*sides[0], *(arrow + sides[1] if len(sides) > 1 else [])]
    details = "; ".join(_details(change))
    line: Line = [(f"  {word:{_KIND_WIDTH}}  ", style), (f"{name}  ", ""), *verdicts]
    return [*line, (f"  {details}", "muted")] if details else line


def side_line(summary: CaseSummary) -> Line:
    """How a case came out in one of the runs: its glyph, of several repeats how many passed."""
    mark, role = glyph(summary.status)
    return [(f"{mark} {summary.passed}/{summary.runs}" if summary.runs > 1 else mark, role)]


def _details(change: CaseChange) -> Iterator[str]:
    yield from map(visible, change.reasons)
    if change.p is not None:
        yield show_p(change.p)
    for score in change.scores:
        if change.base and change.candidate and _differs(score):
            yield f"{visible(score.metric)} {show_score(score.base)} → {show_score(score.candidate)}"
    if change.base and change.candidate:
        before, after = change.base, change.candidate
        if _much_more(before.seconds, after.seconds, _SECONDS):
            yield f"{show_duration(before.seconds)} → {show_duration(after.seconds)}"
        if _much_more(before.tokens, after.tokens, 1.0):
            yield _tokens(before.tokens, after.tokens)


def _tokens(before: float | None, after: float | None) -> str:
    figures = (show_number(count and round(count)) for count in (before, after))
    return f"tokens {' → '.join(figures)}"


def _much_more(before: float | None, after: float | None, least: float) -> bool:
    if before is None or after is None:
        return False
    return abs(after - before) >= max(least, _MUCH * before)


def _sums(comparison: Comparison) -> Iterator[str]:
    for kind in KINDS:
        cases = comparison.of(kind)
        failing = sum(change.candidate is not None and not change.candidate.passes for change in cases)
        if kind == "unchanged" and failing:
            do = plural(failing, "does", "do")
            yield f"{show_number(len(cases))} unchanged ({show_number(failing)} of them {do} not pass)"
        elif cases:
            yield f"{show_number(len(cases))} {kind}"
    if not comparison.cases:
        yield "no case in either run"


def _spent(comparison: Comparison) -> Iterator[str]:
    if seconds := comparison.seconds:
        yield f"time {show_duration(seconds.base)} → {show_duration(seconds.candidate)}{seconds.growth}"
    if tokens := comparison.tokens:
        yield f"{_tokens(tokens.base, tokens.candidate)}{tokens.growth}"
    if usd := comparison.usd:
        yield f"cost {show_money(usd.base)} → {show_money(usd.candidate)}{usd.growth}"


def _indented(margin: str, text: str, width: int) -> Iterator[Line]:
    for number, line in enumerate(wrap([(text, "")], max(20, width - len(margin)))):
        yield [(margin if number == 0 else " " * len(margin), "muted"), *line]
