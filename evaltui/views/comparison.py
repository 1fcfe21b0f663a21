"""A comparison of two runs as lines of a report, and the rows and words that the screen shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len

from evaltui.core.compare.run_comparison import (
    KINDS,
    CaseChange,
    Comparison,
    Kind,
    ScoreChange,
    case_name,
    circumstance_changes,
)
from evaltui.core.compare.run_summary import CaseSummary, RunSummary
from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    plural,
    short_list,
    show_duration,
    show_money,
    show_number,
    show_p,
    show_score,
)
from evaltui.text.lines import Line, cut, pad, wrap
from evaltui.text.outcomes import NOT_RUN, glyph
from evaltui.text.values import visible

KIND_ROLES: Mapping[Kind, str] = {
    "broken": "error",
    "unclear": "warning",
    "fixed": "success",
    "flaky": "warning",
    "expectation changed": "warning",
}
# A case that is unchanged is listed where a score moved.
_KIND_ORDER: tuple[Kind, ...] = (*KIND_ROLES, "new", "gone", "unchanged")
_SHORT_KINDS: Mapping[Kind, str] = {"unchanged": "score", "expectation changed": "changed"}
_KIND_WIDTH = max(len(_SHORT_KINDS.get(kind, kind)) for kind in _KIND_ORDER)
# Of each kind.
_MAX_CASES = 30
# Scores that look the same are.
_SAME_SCORE = 0.005
# What time and tokens vary by from run to run is not worth a word.
_MUCH_MORE_SHARE = 0.25
_MIN_SECONDS = 0.1


def comparison_lines(comparison: Comparison, width: int) -> Iterator[Line]:
    """The lines of a comparison: a line for each changed case, then the totals."""
    base, candidate = comparison.base, comparison.candidate
    passing = sum(case.passes for case in base.cases.values())
    head = f" ({counted(len(base.cases), 'case')}, {passing} pass)"
    yield cut([("compared with ", "bold"), (visible(base.title), "bold"), (head, "")], width)
    changed = "; ".join(visible(text) for text in circumstance_changes(base, candidate))
    if changed:
        yield from _indented("  between them  ", changed, width)
    listed = {kind: changes for kind in KINDS if (changes := _listed_changes(comparison, kind))}
    names = [_name(change, comparison) for changes in listed.values() for change in changes]
    ids = min(width // 3, max(map(cell_len, names), default=0))
    for kind, changes in listed.items():
        for change in changes[:_MAX_CASES]:
            word: Line = [
                (f"  {_SHORT_KINDS.get(kind, kind):{_KIND_WIDTH}}  ", KIND_ROLES.get(kind, "muted"))
            ]
            yield cut([*word, *_case(change, pad(_name(change, comparison), ids))], width)
        if len(changes) > _MAX_CASES:
            yield [(f"  {'':{_KIND_WIDTH}}  and {show_number(len(changes) - _MAX_CASES)} more", "muted")]
    yield from _indented("  ", ", ".join(_sum_texts(comparison)), width)
    for words, cases in unfinished_runs(base, candidate):
        text = f"{words}: {visible(short_list([case.eval_id for case in cases]))}"
        yield from _indented("  ", text, width)
    if others := comparison.not_in_candidate:
        some = short_list([_name(change, comparison) for change in others])
        yield from _indented("  ", f"not in the candidate: {some}", width)
    if comparison.cases and comparison.compares_nothing:
        yield [("  nothing compared: no case has a result in both runs", "warning")]
    if comparison.paired.cases:
        yield from _indented("  ", f"{comparison.paired} (exact McNemar test)", width)
    rarer = [change for change in comparison.regressions if change.passes_less_often]
    for what, changes in (
        ("regression, failed before and passes less often", rarer),
        (f"without evidence (p > {comparison.alpha:g})", comparison.without_evidence),
        ("no verdict in each repeat", comparison.partly_judged),
    ):
        if changes:
            some = short_list([_name(change, comparison) for change in changes])
            yield from _indented("  ", f"{what}: {some}", width)
    for line in served_lines(comparison):
        yield from _indented("  ", line, width)
    if spent := ", ".join(f"{row.name} {row.figures}" for row in spent_rows(comparison)):
        yield from _indented("  ", f"{spent}, of the cases in both", width)


def unfinished_runs(base: RunSummary, candidate: RunSummary) -> Iterator[tuple[str, Sequence[CaseId]]]:
    """The cases without a result of each run, with a label: `base: 3 cases without a result`."""
    for run, name in ((base, "base"), (candidate, "candidate")):
        if missing := run.unfinished:
            yield f"{name}: {counted(len(missing), 'case')} without a result", missing


def regressions_text(comparison: Comparison) -> str:
    """The number of regressions, and of cases that may be one: `1 regression, 2 cases without a verdict`."""
    if comparison.compares_nothing and not comparison.regressions:
        return "nothing compared"
    lacking = sum(change.lacks_verdict and not change.regression for change in comparison.cases)
    missing = len(comparison.candidate.unfinished)
    parts = [counted(len(comparison.regressions), "regression")]
    parts += [f"{counted(lacking, 'case')} without a verdict"] if lacking else []
    parts += [f"{counted(missing, 'case')} without a result"] if missing else []
    return ", ".join(parts)


def served_lines(comparison: Comparison) -> Iterator[str]:
    """The cases that differ, and are not called regressions because another model answered than in the base,
    and a line for each of these models: `gemini-2.5-flash (agent): gemini-2.5-flash-001 → gemini-3.5-flash`.
    """
    changes = comparison.of_other_models
    if changes:
        names = short_list([_name(change, comparison) for change in changes])
        yield f"other model served, not called {plural(len(changes), 'a regression', 'regressions')}: {names}"
    words = dict.fromkeys(served.in_words for change in changes for served in change.served)
    yield from (f"  {visible(text)}" for text in words)


class SpentRow(NamedTuple):
    """The totals of a cost or a time in both runs, over the cases that are in both."""

    name: str
    """`time`, `tokens` or `cost`"""
    figures: str
    """`1.2 s → 1.9 s (+58%)`"""


def spent_rows(comparison: Comparison) -> Iterator[SpentRow]:
    """The costs and times that are known of both runs, with the number of their cases where these are not
    all; a case with repeats counts with its means."""
    both = comparison.both_count
    for name, total, show in (
        ("time", comparison.seconds, show_duration),
        ("tokens", comparison.tokens, _show_tokens),
        ("cost", comparison.usd, show_money),
    ):
        if total:
            some = f" of {show_number(total.cases)}/{counted(both, 'case')}" if total.cases < both else ""
            yield SpentRow(name, f"{show(total.base)} → {show(total.candidate)}{total.growth}{some}")


def _listed_changes(comparison: Comparison, kind: Kind) -> Sequence[CaseChange]:
    if kind not in _KIND_ORDER:
        return ()
    # Of many cases, regressions are in the rows that are shown.
    cases = sorted(comparison.of(kind), key=lambda change: not change.regression)
    return [change for change in cases if _moved_scores(change)] if kind == "unchanged" else cases


class ScoreRow(NamedTuple):
    """A score that differs between the two runs."""

    metric: str
    figures: Line
    """`1.00 → 0.67`"""


class ChangeRow(NamedTuple):
    """A case in two runs, as text."""

    reasons: str
    """Why its verdicts cannot be compared; "" where they can."""
    evidence: str
    """The p-value of a change in its repeats, `p = 0.5`; "" without repeats."""
    served: str
    """`other model served`; "" where none is known to have."""
    scores: Sequence[ScoreRow]
    """The scores that differ, the largest difference first."""
    time: str
    """Times in both runs: `1 s → 1.2 s`, `— → 1.2 s`; `—` where neither is known."""
    tokens: str
    cost: str


def change_row(change: CaseChange) -> ChangeRow:
    scores = sorted(_moved_scores(change), key=lambda score: -abs((score.candidate or 0) - (score.base or 0)))
    return ChangeRow(
        visible("; ".join(change.reasons)),
        "" if change.p is None else show_p(change.p),
        "other model served" if change.served else "",
        [ScoreRow(visible(score.metric), _figures(score)) for score in scores],
        _both_sides(change, "seconds", show_duration),
        _both_sides(change, "tokens", _show_tokens),
        _both_sides(change, "usd", show_money),
    )


def moves_scores(comparison: Comparison) -> bool:
    """Whether a score differs in any case."""
    return any(_moved_scores(change) for change in comparison.cases)


def _moved_scores(change: CaseChange) -> list[ScoreChange]:
    """The differing scores of a case that is in both runs, the largest difference first."""
    return [score for score in change.scores if change.base and change.candidate and _differs(score)]


def _differs(score: ScoreChange) -> bool:
    if score.base is None or score.candidate is None:
        return score.base is not score.candidate
    return abs(score.base - score.candidate) >= _SAME_SCORE


def _figures(score: ScoreChange) -> Line:
    before, after = show_score(score.base), show_score(score.candidate)
    return [(before, ""), (" → ", "muted"), (after, "" if before == after else "bold")]


def _both_sides(
    change: CaseChange, what: Literal["seconds", "tokens", "usd"], show: Callable[[float], str]
) -> str:
    values = [getattr(side, what) if side else None for side in (change.base, change.candidate)]
    if values == [None, None]:
        return UNKNOWN
    return " → ".join(UNKNOWN if value is None else show(value) for value in values)


def _show_tokens(count: float) -> str:
    """A number of tokens as text, rounded: `1,412`."""
    return show_number(round(count))


def _name(change: CaseChange, comparison: Comparison) -> str:
    return visible(case_name(change, comparison))


def _case(change: CaseChange, name: str) -> Line:
    line: Line = [(f"{name}  ", ""), *verdicts_line(change)]
    for number, detail in enumerate(_details(change)):
        line += [("; " if number else "  ", "muted"), *detail]
    return line


def verdicts_line(change: CaseChange) -> Line:
    """The verdicts of a case in both runs: `✓ → ✗`, `≈ 3/5 → ✗ 0/5`, `✓ → ○` if it did not run now; the
    outcome of a case that is new or gone; `○` for a case without a result."""
    sides = [side_line(side) for side in (change.base, change.candidate) if side is not None]
    if sides and change.kind == "not run":
        sides = [
            [glyph(NOT_RUN)] if side is None else side_line(side) for side in (change.base, change.candidate)
        ]
    if not sides:
        return [glyph(NOT_RUN)]
    return [*sides[0], (" → ", "muted"), *sides[1]] if len(sides) > 1 else sides[0]


def side_line(summary: CaseSummary) -> Line:
    """The outcome of a case in one of the runs: its glyph; with several repeats, also the number of passed
    ones."""
    mark, role = glyph(summary.status)
    return [(f"{mark} {summary.passed}/{summary.runs}" if summary.runs > 1 else mark, role)]


def _details(change: CaseChange) -> Iterator[Line]:
    row = change_row(change)
    yield from ([(text, "muted")] for text in (row.reasons, row.evidence, row.served) if text)
    yield from ([(f"{score.metric} ", "muted"), *score.figures] for score in row.scores)
    if change.base and change.candidate:
        before, after = change.base, change.candidate
        if _is_much_more(before.seconds, after.seconds, _MIN_SECONDS):
            yield [(row.time, "muted")]
        if _is_much_more(before.tokens, after.tokens, 1.0):
            yield [(f"tokens {row.tokens}", "muted")]


def _is_much_more(before: float | None, after: float | None, least: float) -> bool:
    if before is None or after is None:
        return False
    return abs(after - before) >= max(least, _MUCH_MORE_SHARE * before)


def _sum_texts(comparison: Comparison) -> Iterator[str]:
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


def _indented(margin: str, text: str, width: int) -> Iterator[Line]:
    for number, line in enumerate(wrap([(text, "")], max(20, width - len(margin)))):
        yield [(margin if number == 0 else " " * len(margin), "muted"), *line]
