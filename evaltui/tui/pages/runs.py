"""Earlier runs: one as a line and in full, two compared, and the history of a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from evaltui.core.compare.comparison_lines import side_line
from evaltui.core.compare.run_comparison import KINDS, CaseChange, Comparison, Kind, ScoreChange
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import Status
from evaltui.runs.listing import RunRow
from evaltui.text.figures import UNKNOWN, counted, show_clock, show_duration, show_rate, show_score
from evaltui.text.lines import Line, Span, cells, cut, pad
from evaltui.text.outcomes import COUNTED, ROLES, RUNNING, WORDS, counts, glyph
from evaltui.text.plots import bar, column_plot
from evaltui.text.values import visible
from evaltui.tui.pages.writer import Page
from evaltui.workbench.kept_runs import Compared, KindTitle

_WHEN = 19
_NAME, _LONG_NAME = 12, 24
_STATE = 24
# From here on there is room for names of files.
_ROOMY = 90
_COUNTS = 20
_SECONDS = 11
_RATE = 16
# From here on there is room for the pass rate, and for the failures of a run beside the list.
_WITH_RATE = 110


def runs_head(width: int) -> Line:
    """The heads of the columns of `run_line`."""
    roomy = width >= _ROOMY
    name = _LONG_NAME if roomy else _NAME
    columns = [f"  {'run':{_WHEN}}  {'name':{name}}  {'outcomes':{_COUNTS}}"]
    columns += [f"{'pass rate':{_RATE}}"] if width >= _WITH_RATE else []
    columns += [f"{'time':>{_SECONDS}}  ", f"{'agent':{_STATE}}  sets" if roomy else "agent"]
    return [("".join(columns), "muted")]


def run_line(row: RunRow, width: int) -> Line:
    """How it ended, when it began, its name, outcomes, pass rate, time, and the agent's state."""
    name = "google-adk" if row.is_of_adk and not row.name else row.name
    roomy = width >= _ROOMY
    head: Line = [
        _mark(row),
        (f" {show_clock(row.started, datetime.now(UTC)):{_WHEN}}  ", ""),
        (pad(visible(name), _LONG_NAME if roomy else _NAME), "bold" if row.name else "muted"),
        ("  ", ""),
    ]
    if row.problem:
        return [*head, (f"unreadable: {visible(row.problem)}", "error")]
    figures = counts({status: row.counts.get(status, 0) for status in COUNTED}) or [("no case", "muted")]
    return [
        *head,
        *figures,
        (" " * max(1, _COUNTS - cells(figures)), ""),
        *(_rate(row) if width >= _WITH_RATE else []),
        (f"{_lasted(row):>{_SECONDS}}", "warning" if row.ending == "interrupted" else "muted"),
        *_state_columns(row, roomy=roomy),
    ]


def _rate(row: RunRow) -> Line:
    """` 44% ━━━━─────`"""
    done, passed = sum(row.counts.values()), row.counts.get("PASSED", 0)
    if not done:
        return [(" " * _RATE, "")]
    shown = bar(passed / done, _RATE - 7, "success" if passed == done else "warning")
    return [(f"{show_rate(passed / done):>4} ", "bold"), *shown, ("  ", "")]


def _state_columns(row: RunRow, *, roomy: bool) -> Line:
    state = _agent_state(row, roomy=roomy)
    if not roomy:
        return [(f"  {state}", "muted")]
    return [(f"  {pad(state, _STATE)}  {', '.join(visible(one.eval_set_id) for one in row.sets)}", "muted")]


def _mark(row: RunRow) -> tuple[str, str]:
    if row.problem:
        return glyph("ERROR")
    if row.ending == "going on":
        return glyph(RUNNING)
    return ("…", "warning") if row.status is None else glyph(row.status)


def _lasted(row: RunRow) -> str:
    if row.ending != "over":
        return row.ending
    return "" if row.seconds is None else show_duration(row.seconds)


def _agent_state(row: RunRow, *, roomy: bool) -> str:
    """Whether the agent is what it was then."""
    if row.changed is None:
        return ""
    if not row.changed:
        return "unchanged" if roomy else "same"
    one, *more = row.changed
    if not roomy:
        return "changed"
    return f"{f'{1 + len(more)} files' if more else visible(one)} changed since"


def rates_plot(rows: Sequence[RunRow], current: Path | None, width: int, height: int) -> list[Line]:
    """The pass rates of runs, of which the newest come first; one without cases is left out."""
    done = [(row, sum(row.counts.values())) for row in reversed(rows)]
    rates = [(row.path, row.counts.get("PASSED", 0) / count) for row, count in done if count]
    roles = ["accent" if path == current else "line" for path, _ in rates]
    return column_plot([rate for _, rate in rates], roles, width, height) if rates else []


def write_run(page: Page, row: RunRow) -> None:
    page.labelled("run", [(visible(row.id), "")])
    if row.problem:
        page.labelled("problem", [(visible(row.problem), "error")])
        return
    done = sum(row.counts.values())
    sets = ", ".join(visible(one.eval_set_id) for one in row.sets)
    all_of_them = counted(row.selected, "case")
    how_many = f"{done} of {all_of_them}" if done != row.selected else all_of_them
    rest = ", r resumes it" if row.ending == "interrupted" and done != row.selected else ""
    page.labelled("cases", [(how_many, ""), (f" of {sets}{rest}" if sets else rest, "muted")])
    if row.model:
        page.labelled("model", [(visible(row.model), "")])
    if row.changed:
        page.labelled("changed", [(", ".join(map(visible, row.changed)), ""), (" since then", "muted")])


class FailedCase(NamedTuple):
    """A case of a run that did not pass."""

    eval_id: str
    status: Status
    why: str


def write_failures(page: Page, failed: Sequence[FailedCase]) -> None:
    """The cases of a run that did not pass, each with why."""
    page.row((f"{counted(len(failed), 'case')} did not pass" if failed else "All cases passed", "muted"))
    for case in failed:
        page.blank()
        page.row(glyph(case.status), (f" {visible(case.eval_id)}", "bold"))
        page.block([(visible(case.why), "muted")], 2)


_ROLES: Mapping[Kind, str] = {"broken": "error", "fixed": "success", "flaky": "warning"}
_MEANINGS: Mapping[Kind, str] = {
    "broken": "passed in the base",
    "fixed": "did not pass in the base",
    "flaky": "repeats differ",
    "expectation changed": "verdicts are not comparable",
    "new": "not in the base",
    "gone": "only in the base",
    "not run": "run in one of them only",
    "unchanged": "same verdict",
}
# Room for `≈ 3/5 → ✗ 0/5`.
_VERDICTS = 15
_TIME = 20
_TOKENS = 24
_WITH_FIGURES = 110


def kind_line(title: KindTitle) -> Line:
    """`▾ broken  2  passed before`"""
    return [
        ("▸ " if title.folded else "▾ ", "muted"),
        (title.kind, _ROLES.get(title.kind, "bold")),
        (f"  {title.count}", "bold"),
        (f"  {_MEANINGS[title.kind]}", "muted"),
    ]


def change_line(change: CaseChange, name: str, names: int, width: int) -> Line:
    """A case in both runs: its name in so many cells, verdicts, what moved most, time and tokens."""
    left: Line = [(pad(name, names), ""), ("  ", ""), *_padded(_verdicts(change), _VERDICTS), ("  ", "")]
    right: Line = []
    if width >= _WITH_FIGURES:
        right = [
            (f"{_both(change, 'seconds', show_duration):>{_TIME}}", "muted"),
            (f"{_both(change, 'tokens', _tokens):>{_TOKENS}}", "muted"),
        ]
    room = width - cells(left) - cells(right) - 1
    return [*left, *_padded(cut(_what(change), max(1, room)), room), (" ", ""), *right]


def _padded(line: Line, width: int) -> Line:
    return [*line, (" " * max(0, width - cells(line)), "")]


def _verdicts(change: CaseChange) -> Line:
    sides = [side_line(side) for side in (change.base, change.candidate) if side is not None]
    return [*sides[0], (" → ", "muted"), *sides[1]] if len(sides) > 1 else sides[0]


def _what(change: CaseChange) -> Line:
    if change.reasons:
        return [(visible("; ".join(change.reasons)), "")]
    moved = [score for score in change.scores if score.base != score.candidate]
    if not moved or change.base is None or change.candidate is None:
        return []
    most = max(moved, key=lambda score: abs((score.candidate or 0.0) - (score.base or 0.0)))
    return [(f"{visible(most.metric)} ", "muted"), *_score_change(most)]


def _score_change(score: ScoreChange) -> Line:
    before, after = show_score(score.base), show_score(score.candidate)
    return [(before, ""), (" → ", "muted"), (after, "" if before == after else "bold")]


def _both(change: CaseChange, what: Literal["seconds", "tokens"], show: Callable[[float], str]) -> str:
    values = [getattr(side, what) if side else None for side in (change.base, change.candidate)]
    if values == [None, None]:
        return ""
    return " → ".join(UNKNOWN if value is None else show(value) for value in values)


def _tokens(count: float) -> str:
    return f"{count:,.0f} tok"


# Around it


def sums_line(comparison: Comparison) -> Line:
    """`2 broken  1 fixed  ·  time 3.1 s → 4.0 s (+29%)`"""
    line: Line = []
    for kind in KINDS:
        if count := len(comparison.of(kind)):
            line += [("  ", "")] if line else []
            line.append((f"{count} {kind}", _ROLES.get(kind, "muted" if kind == "unchanged" else "")))
    return line or [("No cases in either run", "muted")]


def spent_line(compared: Compared) -> Line:
    """What the cases that are in both took, and what is different between the runs besides."""
    parts: list[str] = []
    if seconds := compared.comparison.seconds:
        both = f"{show_duration(seconds.base)} → {show_duration(seconds.candidate)}"
        parts.append(f"time {both}{seconds.growth}")
    if tokens := compared.comparison.tokens:
        parts.append(f"tokens {tokens.base:,.0f} → {tokens.candidate:,.0f}{tokens.growth}")
    line: Line = [(" · ".join(parts), "muted")] if parts else []
    if between := compared.between:
        line += [("  changed: " if parts else "changed: ", "muted"), ("; ".join(map(visible, between)), "")]
    elif not parts:
        line = [("no other changes found", "muted")]
    return line


def write_change(page: Page, change: CaseChange) -> None:
    """All of it: why it is of its kind, and every figure."""
    where = " · ".join(dict.fromkeys((change.eval_set_id, change.case.path)))
    page.row((visible(change.case.eval_id), "bold"), (f"  {visible(where)}", "muted"))
    page.labelled("verdict", [*_in_words(change.base), (" → ", "muted"), *_in_words(change.candidate)])
    if change.reasons:
        page.labelled("why", [(visible("; ".join(change.reasons)), "")])
    for score in change.scores:
        page.labelled("score", [*_score_change(score), (f"  {visible(score.metric)}", "muted")])
    spent = (_both(change, "seconds", show_duration), _both(change, "tokens", _tokens))
    if any(spent):
        page.labelled("spent", [(", ".join(filter(None, spent)), "")])


def _in_words(summary: CaseSummary | None) -> Iterator[Span]:
    if summary is None:
        yield "—", "muted"
        return
    mark, role = glyph(summary.status)
    yield f"{mark} {WORDS[summary.status]}", role
    if summary.runs > 1:
        yield f" {summary.passed}/{summary.runs}", ROLES[summary.status]
