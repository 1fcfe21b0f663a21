"""How a case came out in one run and in another, in a line and in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from evaltui.core.compare.run_comparison import KINDS, CaseChange, Comparison, Kind, ScoreChange
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.text.lines import Line, Span, cells, cut, pad
from evaltui.text.outcomes import TONES, WORDS, glyph
from evaltui.text.values import show_duration, show_score, visible
from evaltui.tui.pages.writer import Page
from evaltui.workbench.kept_runs import Compared, KindTitle

_TONES: Mapping[Kind, str] = {"broken": "red", "fixed": "green", "flaky": "yellow"}
_MEANINGS: Mapping[Kind, str] = {
    "broken": "passed before",
    "fixed": "did not pass before",
    "flaky": "its runs differ",
    "expectation changed": "the verdicts cannot be held against each other",
    "new": "was not there before",
    "gone": "is not there any more",
    "not run": "in one of them only",
    "unchanged": "same verdict",
}
# Room for `≈ 3/5 → ✗ 0/5`.
_VERDICTS = 15
_TIME = 20
_TOKENS = 24
_ROOMY = 110


def kind_line(title: KindTitle) -> Line:
    """`▾ broken  2  passed before`"""
    return [
        ("▸ " if title.folded else "▾ ", "dim"),
        (title.kind, _TONES.get(title.kind, "bold")),
        (f"  {title.count}", "bold"),
        (f"  {_MEANINGS[title.kind]}", "dim"),
    ]


def change_line(change: CaseChange, name: str, names: int, width: int) -> Line:
    """A case in both runs: its name in so many cells, verdicts, what moved most, time and tokens."""
    left: Line = [(pad(name, names), ""), ("  ", ""), *_padded(_verdicts(change), _VERDICTS), ("  ", "")]
    right: Line = []
    if width >= _ROOMY:
        right = [
            (f"{_both(change, 'seconds', show_duration):>{_TIME}}", "dim"),
            (f"{_both(change, 'tokens', _tokens):>{_TOKENS}}", "dim"),
        ]
    room = width - cells(left) - cells(right) - 1
    return [*left, *_padded(cut(_what(change), max(1, room)), room), (" ", ""), *right]


def _padded(line: Line, width: int) -> Line:
    return [*line, (" " * max(0, width - cells(line)), "")]


def _verdicts(change: CaseChange) -> Line:
    sides = [_side(side) for side in (change.base, change.candidate) if side is not None]
    return [*sides[0], (" → ", "dim"), *sides[1]] if len(sides) > 1 else sides[0]


def _side(summary: CaseSummary) -> Line:
    mark, tone = glyph(summary.status)
    return [(f"{mark} {summary.passed}/{summary.runs}" if summary.runs > 1 else mark, tone)]


def _what(change: CaseChange) -> Line:
    if change.reasons:
        return [(visible("; ".join(change.reasons)), "")]
    moved = [score for score in change.scores if score.base != score.candidate]
    if not moved or change.base is None or change.candidate is None:
        return []
    most = max(moved, key=lambda score: abs((score.candidate or 0.0) - (score.base or 0.0)))
    return [(f"{visible(most.metric)} ", "dim"), *_score_change(most)]


def _score_change(score: ScoreChange) -> Line:
    before, after = show_score(score.base), show_score(score.candidate)
    return [(before, ""), (" → ", "dim"), (after, "" if before == after else "bold")]


def _both(change: CaseChange, what: Literal["seconds", "tokens"], show: Callable[[float], str]) -> str:
    values = [getattr(side, what) if side else None for side in (change.base, change.candidate)]
    if values == [None, None]:
        return ""
    return " → ".join("–" if value is None else show(value) for value in values)


def _tokens(count: float) -> str:
    return f"{count:,.0f} tok"


# Around it


def sums_line(comparison: Comparison) -> Line:
    """`2 broken  1 fixed  ·  time 3.1 s → 4.0 s (+29%)`"""
    line: Line = []
    for kind in KINDS:
        if count := len(comparison.of(kind)):
            line += [("  ", "")] if line else []
            line.append((f"{count} {kind}", _TONES.get(kind, "dim" if kind == "unchanged" else "")))
    return line or [("no case in either run", "dim")]


def spent_line(compared: Compared) -> Line:
    """What the cases that are in both took, and what is different between the runs besides."""
    parts: list[str] = []
    if seconds := compared.comparison.seconds:
        both = f"{show_duration(seconds.base)} → {show_duration(seconds.candidate)}"
        parts.append(f"time {both}{seconds.growth}")
    if tokens := compared.comparison.tokens:
        parts.append(f"tokens {tokens.base:,.0f} → {tokens.candidate:,.0f}{tokens.growth}")
    line: Line = [(" · ".join(parts), "dim")] if parts else []
    if between := compared.between:
        line += [("  changed: " if parts else "changed: ", "dim"), ("; ".join(map(visible, between)), "")]
    elif not parts:
        line = [("nothing else is known to be different", "dim")]
    return line


def write_change(page: Page, change: CaseChange) -> None:
    """All of it: why it is of its kind, and every figure."""
    where = " · ".join(dict.fromkeys((change.eval_set_id, change.key.path)))
    page.row((visible(change.key.eval_id), "bold"), (f"  {visible(where)}", "dim"))
    page.labelled("verdict", [*_in_words(change.base), (" → ", "dim"), *_in_words(change.candidate)])
    if change.reasons:
        page.labelled("why", [(visible("; ".join(change.reasons)), "")])
    for score in change.scores:
        page.labelled("score", [*_score_change(score), (f"  {visible(score.metric)}", "dim")])
    spent = (_both(change, "seconds", show_duration), _both(change, "tokens", _tokens))
    if any(spent):
        page.labelled("spent", [(", ".join(filter(None, spent)), "")])


def _in_words(summary: CaseSummary | None) -> Iterator[Span]:
    if summary is None:
        yield "not there", "dim"
        return
    mark, tone = glyph(summary.status)
    yield f"{mark} {WORDS[summary.status]}", tone
    if summary.runs > 1:
        yield f" {summary.passed}/{summary.runs}", TONES[summary.status]
