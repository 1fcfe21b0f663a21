"""Two runs compared: the changed cases, a line per case, and both runs of a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from evaltui.core.compare.run_comparison import KINDS, CaseChange, Comparison, Kind
from evaltui.core.compare.run_summary import CaseSummary
from evaltui.text.figures import UNKNOWN, counted
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells, fill_line, join_ends, pad
from evaltui.text.outcomes import ROLES, WORDS, counts_line, glyph
from evaltui.text.syntax import JSON
from evaltui.text.values import visible, visible_block
from evaltui.tui.result.rows import write_calls, write_heads, write_text
from evaltui.tui.widgets.writer import Folding, Lines, Page, fold_mark
from evaltui.views.comparison import (
    KIND_ROLES,
    change_row,
    served_lines,
    spent_rows,
    unfinished_runs,
    verdicts_line,
)
from evaltui.views.rows import response_row
from evaltui.workbench.runs.compared_runs import ComparedRuns, KindTitle, Trajectories, TurnOfBoth

_TINTS: Mapping[Kind, str] = {"broken": "act", "fixed": "exp"}
_MEANINGS: Mapping[Kind, str] = {
    "broken": "passed in the base",
    "unclear": "passes in neither, no verdict in one at least",
    "fixed": "did not pass in the base",
    "flaky": "repeats differ",
    "expectation changed": "verdicts are not comparable",
    "new": "no result in the base",
    "gone": "only in the base",
    "not run": "run in one of them only",
    "unchanged": "same verdict",
}
# Room for `≈ 3/5 → ✗ 0/5`.
_VERDICTS_WIDTH = 15
_SCORE_WIDTH, _TIME_WIDTH, _TOKENS_WIDTH = 32, 19, 17
_COST_WIDTH = 19
_MIN_WIDTH_WITH_TIME, _MIN_WIDTH_WITH_SCORE = 76, 130
_GAP = 2
_MIN_WHY = 14


def chip_parts(comparison: Comparison) -> Iterator[tuple[str, Line]]:
    """A chip per group with its count, each with its click action."""
    for kind in KINDS:
        if count := len(comparison.of(kind)):
            role = f"bold {KIND_ROLES.get(kind, 'muted')} {_TINTS.get(kind, 'panel')}"
            yield f"screen.go_to_kind('{kind}')", [(f" {kind.capitalize()} {count} ", role)]
            yield "", [("  ", "")]
    if not comparison.cases:
        yield "", [("No cases in either run", "muted")]


def spent_line(compared: ComparedRuns) -> Line:
    """The totals of a comparison: changed cases, other differences between the runs, spending, missing
    cases."""
    facts: list[Line] = []
    if (pairs := compared.comparison.paired).cases:
        role = "error" if pairs.is_worse(compared.comparison.alpha) else ""
        facts.append([(str(pairs), role)])
    facts += (served := [[(line.strip(), "warning")] for line in served_lines(compared.comparison)])
    changed = "; ".join(map(visible, compared.between))
    if changed:
        facts.append([("changed ", "muted"), (changed, "")])
    elif not served:
        facts.append([("no other changes found", "muted")])
    facts += [[(f"{row.name} ", "muted"), (row.figures, "")] for row in spent_rows(compared.comparison)]
    for words, _ in unfinished_runs(compared.base.summary, compared.candidate.summary):
        facts.append([(words, "warning")])
    return [span for number, fact in enumerate(facts) for span in ([("   ", "")] if number else []) + fact]


def kind_line(title: KindTitle) -> Line:
    """The title of a group: `▾ Broken  2   passed in the base`."""
    return [
        fold_mark(not title.folded),
        (title.kind.capitalize(), f"bold {KIND_ROLES.get(title.kind, '')}".strip()),
        (f"  {title.count}", "bold"),
        (f"   {_MEANINGS[title.kind]}", "muted"),
    ]


class Columns(NamedTuple):
    """The widths of the columns in a table of cases; 0 for a hidden or empty one."""

    name: int
    score: int = 0
    time: int = 0
    tokens: int = 0
    cost: int = 0

    @classmethod
    def for_width(
        cls, width: int, names: int, *, tokens: bool, costs: bool = False, scores: bool = True
    ) -> Columns:
        """For lines of `width` cells, names of cases of up to so many cells, and runs that tell tokens and
        costs, and scores that differ, or not."""
        name = max(8, min(names, width * 2 // 5))
        room = width - name - 2 - _VERDICTS_WIDTH - 2 - _MIN_WHY - _GAP

        def fitting(cells: int, gap: int, *, is_told: bool) -> int:
            nonlocal room
            is_shown = is_told and gap + cells <= room
            room -= gap + cells if is_shown else 0
            return cells if is_shown else 0

        time = fitting(_TIME_WIDTH, _GAP, is_told=width >= _MIN_WIDTH_WITH_TIME)
        score = fitting(_SCORE_WIDTH, 0, is_told=scores and width >= _MIN_WIDTH_WITH_SCORE)
        shown = fitting(_TOKENS_WIDTH, _GAP, is_told=tokens and width >= _MIN_WIDTH_WITH_SCORE)
        return cls(
            name,
            score,
            time,
            shown,
            fitting(_COST_WIDTH, _GAP, is_told=costs and width >= _MIN_WIDTH_WITH_SCORE),
        )


def change_line(change: CaseChange, name: str, why: str | None, columns: Columns, width: int) -> Line:
    """A case in both runs: its name, both verdicts, the reason, the most changed score, time and tokens.

    `why` is None while it is being read.
    """
    left: Line = [
        (pad(name, columns.name), ""),
        ("  ", ""),
        *fill_line(verdicts_line(change), _VERDICTS_WIDTH),
        ("  ", ""),
    ]
    row = change_row(change)
    moved = [span for score in row.scores[:1] for span in (*score.figures, (f"  {score.metric}", "muted"))]
    right: Line = fill_line(moved, columns.score) if columns.score else []
    for text, size in ((row.time, columns.time), (row.tokens, columns.tokens), (row.cost, columns.cost)):
        right += [(f"  {text:>{size}}", "muted")] if size else []
    what: Line = [("…" if why is None else visible(why), "muted")]
    if row.reasons:
        what = [(row.reasons, "")]
    elif row.served:
        what = [(f"{row.served}  ", "warning"), *what]
    elif why == "" and not columns.score:
        what = moved
    return join_ends([*left, *what], right, width, least=cells(left) + _MIN_WHY)


def change_heads(columns: Columns, width: int) -> Line:
    """The heads of the columns of `change_line`."""
    left = f"{'case':<{columns.name}}  {'base → now':<{_VERDICTS_WIDTH}}  why"
    right = f"{'score':<{columns.score}}" if columns.score else ""
    right += f"  {'time':>{columns.time}}" if columns.time else ""
    right += f"  {'tokens':>{columns.tokens}}" if columns.tokens else ""
    right += f"  {'cost':>{columns.cost}}" if columns.cost else ""
    return join_ends([(left, "muted")], [(right, "muted")] if right else [], width)


# One group, one case


def write_group(page: Page, compared: ComparedRuns, kind: Kind) -> None:
    """Writes the number of cases in a group, their statuses, and the other differences between the runs."""
    changes = compared.comparison.of(kind)
    now = Counter(change.candidate.status.value for change in changes if change.candidate)
    page.row((counted(len(changes), "case"), "bold"), (f"   {_MEANINGS[kind]}", "muted"))
    if now:
        page.row(("now  ", "muted"), *counts_line(now))
    page.blank()
    for number, text in enumerate(compared.between or ("no other changes found",)):
        page.labelled("" if number else "changed", [(visible(text), "")])
    page.blank()
    page.row((f"  {key_of('toggle_fold')}", "bold accent"), ("  fold or unfold the group", "muted"))


def write_change(page: Page, change: CaseChange) -> None:
    """Writes both outcomes, why they are not comparable, and every figure."""
    outcomes: Line = [*_verdict_spans(change.base), (" → ", "muted"), *_verdict_spans(change.candidate)]
    row = change_row(change)
    spent = [
        f"{name} {text}" for name, text in (("time", row.time), ("tokens", row.tokens)) if text != UNKNOWN
    ]
    page.ends(outcomes, [("   ".join(spent), "muted")])
    if row.reasons:
        page.text([(row.reasons, "warning")])
    for served in change.served:
        page.text([(visible(served.in_words), "warning")])
    if row.evidence:
        page.text([(f"{row.evidence} by its repeats (Fisher's exact test)", "muted")])
    line: Line = []
    for score in row.scores:
        line += [("   " if line else "", ""), (f"{score.metric} ", "muted"), *score.figures]
    if line:
        page.text(line)


def _verdict_spans(summary: CaseSummary | None) -> Iterator[Span]:
    if summary is None:
        yield "— no result", "muted"
        return
    mark, role = glyph(summary.status)
    yield f"{mark} {WORDS[summary.status]}", role
    if summary.runs > 1:
        yield f" {summary.passed}/{summary.runs}", ROLES[summary.status]


def write_trajectories(
    page: Page, both: Trajectories, titles: tuple[str, str], height: int, toggled: Collection[str] = ()
) -> None:
    """Writes both runs of a case, turn by turn, side by side where there is room.

    Equal turns are folded where not everything fits in the height; a click folds or opens a turn.
    """
    base, candidate = (", ".join(filter(None, side)) for side in zip(titles, both.repeats, strict=True))
    titles = base, candidate
    for side, problem in zip(titles, both.problems, strict=True):
        if problem:
            page.row((f"{visible(side)}: {visible(problem)}", "muted"))
    folding = Folding(toggled=frozenset(toggled))
    above = Lines(page.lines)
    _write_turns(page, both, titles, folding, opens_equal=True)
    if len(page.lines) > height:
        page.add_page(Page(page.width, page.widest, lines=Lines(above)))
        _write_turns(page, both, titles, folding, opens_equal=False)


def _write_turns(
    page: Page, both: Trajectories, titles: tuple[str, str], folding: Folding, *, opens_equal: bool
) -> None:
    heads = False
    for number, turn in enumerate(both.turns):
        usual = opens_equal or not turn.is_equal
        page.part(is_open=usual)
        is_open = _write_head(page, turn, number, folding, usual=usual)
        if not is_open:
            continue
        if not heads:
            heads = True
            write_heads(page, ("base", titles[0]), ("candidate", titles[1]))
        write_turn(page, turn, number, folding)
    write_state(page, both.state)
    if both.turns and all(turn.is_equal for turn in both.turns) and not both.state:
        page.blank()
        both_sides = "Both runs" if both.repeats == ("", "") else "These repeats"
        limit = "" if all(turn.is_known for turn in both.turns) else ", as far as known"
        text = f"{both_sides} made the same calls and gave the same responses{limit}"
        page.row(("= ", "muted"), (text, "muted"))


def write_turn(page: Page, turn: TurnOfBoth, number: int, folding: Folding) -> None:
    """Writes the calls and the response of a turn, from 0."""
    write_calls(page, turn.result, number, folding)
    if turn.result.calls:
        page.blank()
    op = "" if turn.says_the_same else "changed"
    if (response := response_row(turn.result, number, op)) is not None:
        write_text(page, response)


def write_state(page: Page, state: Iterable[tuple[str, str, str]]) -> None:
    """Writes the differences of a final state: their paths, and both values as JSON."""
    for number, (path, before, after) in enumerate(state):
        if not number:
            page.blank()
        label = "Final state  " if not number else " " * len("Final state  ")
        change: Line = [(before, JSON), (" → ", "muted"), (after, JSON)]
        page.row((label, "bold"), ("≠ ", "error"), (f"{visible(path)}  ", "key"), *change)


def _write_head(page: Page, turn: TurnOfBoth, number: int, folding: Folding, *, usual: bool) -> bool:
    key = f"turn {number}"
    is_open = folding.is_open(key, usual=usual)
    mark: Span = ("=", "muted") if turn.is_equal else ("≠", "error")
    head: Line = [fold_mark(is_open), (f"Turn {number + 1}", "bold"), (" ", ""), mark]
    message = " ".join(visible_block(turn.user).split())
    page.turns[number] = len(page.lines)
    page.fold(key, [*head, (f"  {message}", "muted")], [(_calls_in_words(turn), "muted")])
    return is_open


def _calls_in_words(turn: TurnOfBoth) -> str:
    """The number of calls: `2 calls`, `2 → 3 calls`, `2 calls → not run` where one side has no turn, `calls
    unknown` where there are none as far as known."""
    calls, response = turn.result.calls, turn.result.response
    before, after = (
        sum(getattr(diff, side) is not None for diff in calls) for side in ("expected", "actual")
    )
    if response.expected is None:
        return f"not run → {counted(after, 'call')}"
    if response.actual is None:
        return f"{counted(before, 'call')} → not run"
    if not (turn.is_known or before or after):
        return "calls unknown"
    return counted(after, "call") if before == after else f"{before} → {counted(after, 'call')}"
