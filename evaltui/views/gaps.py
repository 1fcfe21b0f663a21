"""Gaps of eval sets as rows: changes that were not noticed, coverage, and what was not counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from evaltui.core.gaps.cells import CELL_KINDS, CellKind
from evaltui.core.gaps.gaps import Gap, GapReport, KindOfChange, ToJudge
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    short_list,
    show_money,
    show_number,
    show_score,
    show_threshold,
)
from evaltui.text.values import visible
from evaltui.text.word_diff import WordOp
from evaltui.views.rows import common_words

# Characters that are shown beside a change.
_AROUND = 12


class GapRow(NamedTuple):
    """A change that was not noticed."""

    place: str
    """`thermostat:set_bedroom turn 1`"""
    words: Sequence[tuple[WordOp, str]]
    """Both texts word for word; empty where they have little in common."""
    before: str
    after: str


def changed_part(gap: Gap) -> str:
    """`turn 1`, or `final state`."""
    return "final state" if gap.turn is None else f"turn {gap.turn}"


def gap_row(gap: Gap, *, with_set: bool = True) -> GapRow:
    """The row of a change; without its set where all are of one."""
    of_set = f"{gap.eval_set_id}:" if with_set else ""
    place = visible(f"{of_set}{gap.eval_id} {changed_part(gap)}")
    before, after = (text.replace("\n", " ") for text in (gap.before, gap.after))
    if gap.subject != "answers":
        return GapRow(place, (), before, _without_common_start(before, after))
    return GapRow(place, list(_near_changes(common_words(before, after))), before, after)


def _without_common_start(before: str, after: str) -> str:
    """A change of a call without its beginning: `"Oslo other"` of `find city "Oslo other"`."""
    if after.startswith(f"{before} "):
        return after[len(before) + 1 :]
    tool, argument, *_ = (*before.split(" "), "", "")
    return after.removeprefix(f"{tool} {argument} ")


def _near_changes(words: Sequence[tuple[WordOp, str]]) -> Iterator[tuple[WordOp, str]]:
    """The changed words with a little of what stands around them."""
    for place, (op, text) in enumerate(words):
        if op == "same" and len(text) > 2 * _AROUND:
            before = f"{text[:_AROUND]}…" if place else ""
            after = f"…{text[-_AROUND:]}" if place < len(words) - 1 else ""
            text = f"{before}{' ' if before and after else ''}{after}"
        yield op, text


def still_gives(kind: KindOfChange) -> str:
    """`response_match_score ≥ 0.80 still gives 0.92 to 0.97`, of the metrics that look at the changes."""
    scores: dict[tuple[str, float | None], list[float]] = {}
    for metric in (metric for gap in kind.gaps for metric in gap.metrics):
        values = scores.setdefault((metric.name, metric.threshold), [])
        values += [] if metric.score is None else [metric.score]
    texts = []
    for (name, threshold), values in scores.items():
        least, most = (show_score(end(values)) if values else UNKNOWN for end in (min, max))
        limit = "" if threshold is None else f" ≥ {show_threshold(threshold)}"
        texts.append(f"{visible(name)}{limit} still gives {least if least == most else f'{least} to {most}'}")
    return short_list(texts) or "no metric looks at it"


class CoverageRow(NamedTuple):
    """The cells of a kind: how many there are, and how many at each level."""

    kind: CellKind
    cells: int
    reached: int
    expected: int | None
    """None for cells that no case names."""
    noticed: int | None
    """None for cells that are not changed."""

    @property
    def title(self) -> str:
        """`tools`"""
        return f"{self.kind}s"


def coverage_rows(report: GapReport) -> Iterator[CoverageRow]:
    """A row for each kind that has cells."""
    for kind in CELL_KINDS:
        cells = [cell for cell in report.coverage if cell.kind == kind]
        if cells:
            yield CoverageRow(
                kind,
                len(cells),
                sum(cell.reached > 0 for cell in cells),
                _above_zero(cell.expected for cell in cells),
                _above_zero(cell.noticed for cell in cells),
            )


def _above_zero(counts: Iterable[int | None]) -> int | None:
    values = [count for count in counts if count is not None]
    return sum(count > 0 for count in values) if values else None


def uncovered(report: GapReport) -> Iterator[tuple[str, Sequence[str]]]:
    """Cells that no case reaches, and those that no case expects, each with a title. Errors of tools are not
    named: most tools have none."""
    cells = [cell for cell in report.coverage if not cell.reached and cell.kind != "tool error"]
    # The arguments of a tool that is not called are not either.
    tools = tuple(f"{cell.name}." for cell in cells if cell.kind == "tool")
    unreached = sorted(
        (cell for cell in cells if cell.kind not in ("argument", "value") or not cell.name.startswith(tools)),
        key=lambda cell: cell.kind != "tool",
    )
    if unreached:
        yield "never reached", [cell_name(cell.kind, cell.name) for cell in unreached]
    unexpected = [cell for cell in report.coverage if cell.reached and cell.expected == 0]
    if unexpected:
        yield "reached, not expected", [cell_name(cell.kind, cell.name) for cell in unexpected]


def cell_name(kind: CellKind, name: str) -> str:
    """`tool set_light`, `set_light.on true`, `transfer to heating`"""
    words = {"argument": "", "value": "", "transfer": "transfer to "}.get(kind, f"{kind} ")
    return f"{words}{visible(name)}"


def not_counted(report: GapReport) -> Iterator[tuple[str, Sequence[str]]]:
    """Reasons why cases or turns are not counted, each with these."""
    places: dict[str, list[str]] = {}
    for item in report.not_counted:
        name = ":".join(filter(None, (item.eval_set_id, item.eval_id)))
        turn = "" if item.turn is None else f" turn {item.turn}"
        places.setdefault(item.reason, []).append(visible(f"{name}{turn}"))
    yield from places.items()


def headline(report: GapReport) -> str:
    """`58 of 70 changes noticed, 3 not judged`"""
    not_judged = f", {show_number(report.not_judged)} not judged" if report.not_judged else ""
    return f"{show_number(report.noticed)} of {counted(report.changes, 'change')} noticed{not_judged}"


def no_changes(report: GapReport) -> str:
    """Why a report counts no changes, as a clause."""
    if report.meant_so:
        return f"nothing counted: {counted(report.meant_so, 'change')} meant so"
    return "nothing to change: no passing case with calls, responses or state"


def in_words(to_judge: ToJudge) -> str:
    """`14 changes: at most 70 model calls of gemini-2.5-flash, about $0.012`"""
    models = f" of {visible(short_list(to_judge.models))}" if to_judge.models else ""
    cost = "price unknown" if to_judge.usd is None else f"about {show_money(to_judge.usd)}"
    calls = counted(to_judge.calls, "model call")
    price = (
        f"at most {calls}{models}, {cost}" if to_judge.calls else "no model call, all answers are recorded"
    )
    return f"{counted(to_judge.changes, 'change')}: {price}"


def judges_in_words(report: GapReport) -> str:
    """`12 model calls of judges, 3 replayed, $0.0031`; `no model call` where none was made."""
    spent = report.spent
    if spent is None or not spent.calls + spent.replayed:
        return "no model call"
    replayed = f", {show_number(spent.replayed)} replayed" if spent.replayed else ""
    cost = f", {spent.cost.short}" if spent.calls else ""
    return f"{counted(spent.calls, 'model call')} of judges{replayed}{cost}"


def noticed_by(report: GapReport) -> Iterator[str]:
    """`response_match_score 13`, for each metric, the one that noticed most changes first."""
    sums: Counter[str] = Counter()
    for kind in report.kinds:
        sums.update(kind.noticed_by)
    yield from (f"{visible(name)} {show_number(number)}" for name, number in sums.most_common())


def not_judged(report: GapReport) -> Iterator[tuple[str, Sequence[str]]]:
    """Reasons why judges gave no verdict, each with the changes."""
    changes: dict[str, list[str]] = {}
    for kind in report.kinds:
        for change in kind.not_judged:
            changes.setdefault(change.reason, []).append(f"{gap_row(change).place} ({kind.kind})")
    yield from changes.items()
