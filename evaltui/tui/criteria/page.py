"""The page beside the criteria: the meaning of a row, the scores of the last run, and the pending changes."""

from __future__ import annotations

import json
from collections import Counter
from textwrap import dedent

from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import counted, score_figures, show_number, show_score, show_threshold
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, join_ends
from evaltui.text.outcomes import glyph
from evaltui.text.plots import bar, histogram
from evaltui.text.syntax import value_line
from evaltui.text.values import visible
from evaltui.tui.criteria.rows import Group, range_text
from evaltui.tui.dialogs.file_versions import write_line_changes
from evaltui.tui.widgets.writer import Page, write_code
from evaltui.workbench.criteria.effect import Effect, Flip, Flips
from evaltui.workbench.criteria.rows import (
    MetricRow,
    OptionRow,
    ReferenceRow,
    Row,
    RubricRow,
    SettingRow,
)

_MAX_CASES = 200
# Rows of the histogram, and those of the pane from which on it is tall.
_LOW_PLOT, _TALL_PLOT, _TALL_FROM = 4, 8, 36
_BAR_WIDTH = 10
# From here on the set of a case is named.
_MIN_WIDTH_WITH_SETS = 56


def write_row(
    page: Page, row: Row | Group | None, metric: MetricRow | None, effect: Effect, height: int
) -> dict[int, CaseId]:
    """Writes the page of a row of a metric in `height` rows; returns the lines of cases.

    In a low pane, the pending changes are above the scores.
    """
    is_low = height < _TALL_FROM // 2
    if row is not None:
        _write_meaning(page, row, in_short=is_low and bool(effect.change))
    if metric and not (metric.in_use or metric.trial.scored):
        metric = None
    if metric and not is_low:
        _write_scores(page, metric, _TALL_PLOT if height >= _TALL_FROM else _LOW_PLOT, effect.stale)
    places = _write_flips(page, effect)
    _write_change(page, effect)
    if metric and is_low:
        _write_scores(page, metric, _LOW_PLOT, effect.stale)
    if metric:
        places |= _write_cases(page, metric, effect)
    return places


def row_title(row: Row | Group) -> str:
    """The title of a row."""
    match row:
        case MetricRow(name=name):
            return visible(name)
        case OptionRow(option=option):
            return option.name
        case RubricRow(index=index):
            return f"Rubric {index + 1}"
        case SettingRow(title=title):
            return title
        case ReferenceRow(block=block):
            return "Mark on a turn" if block == "turns" else "Rule"
        case Group(subject=subject):
            return subject


_ABOUT = {
    "Calls": "Metrics of the calls that an agent makes.",
    "Response": "Metrics of the final response, computed without a model.",
    "Cost and time": "Limits for a case: cost and tokens of the agent, and seconds.",
    "Judge": "Metrics that a judge model decides.",
    "Simulated user": "Metrics of the simulated user of a scenario.",
    "Own": "Your own metrics, as the config names them.",
    "Informational": "Reported in every run, not judged.",
}


def _write_meaning(page: Page, row: Row | Group, *, in_short: bool) -> None:
    match row:
        case Group(subject=subject, rows=rows):
            page.text([(_ABOUT[subject], "")])
            page.blank()
            for metric in rows:
                page.text([(visible(metric.name), "bold"), ("  ", ""), (visible(metric.meaning), "muted")])
        case MetricRow():
            _write_metric(page, row, in_short=in_short)
        case OptionRow(option=option):
            page.text([(visible(option.meaning), "")])
            if option.default is not None and option.kind != "rubrics":
                page.labelled("default", value_line(option.default))
            if option.choices:
                page.labelled("choices", [(", ".join(option.choices), "")])
        case RubricRow(text=text):
            page.text([(visible(text), "")])
        case SettingRow(meaning=meaning):
            page.text([(meaning, "")])
            page.row(("In the evaltui block, which adk eval ignores", "muted"))
        case ReferenceRow(text=text, dangling=dangling):
            page.text([(visible(text), "")])
            if dangling:
                page.text([(visible(dangling), "")], [("! ", "warning")])
                page.row((key_of("delete"), "bold accent"), (" remove", "muted"))


def _write_metric(page: Page, row: MetricRow, *, in_short: bool) -> None:
    if row.meaning:
        page.text([(visible(row.meaning), "")])
    if row.why_not:
        page.text([(visible(row.why_not), "")], [glyph("NOT_EVALUATED"), (" ", "")])
        return
    if in_short:
        return
    facts = [("range ", range_text(row) if not row.assumed else "not in the config")]
    facts += [("", "lower is better")] if row.lower_is_better else []
    facts += [("needs ", ", ".join(row.needs))] if row.needs else []
    facts += [("", "adk eval ignores it")] if row.ours else []
    line: Line = []
    for label, text in facts:
        line += [("   ", ""), (label, "muted"), (text.replace(" ", "\xa0"), "")]
    page.text(line[1:])


def _write_scores(page: Page, row: MetricRow, height: int, stale: int) -> None:
    """Writes the scores of the last run as a histogram, and the number of passing cases."""
    trial = row.trial
    page.blank()
    if not trial.scored:
        page.section(("Last run", "bold"), ("  —", "muted"), *_stale_line(stale))
        page.row(("Not scored in the last run", "muted"))
        return
    scores = counted(sum(count for _, count in trial.scores), "score")
    mean = f"  {scores}, mean {show_score(trial.mean)}"
    page.section(("Last run", "bold"), (mean, "muted"), *_stale_line(stale))
    page.lines += histogram(
        trial.scores,
        row.interval or (0.0, max(1.0, trial.scores[-1][0], row.threshold or 0.0)),
        row.threshold if row.in_use else None,
        page.width,
        height,
        lower_is_better=row.lower_is_better,
    )
    if row.threshold is None:
        return
    mark, role = glyph("PASSED" if trial.passing == trial.scored else "FAILED")
    sign = "≤" if row.lower_is_better else "≥"
    left: Line = [
        (f"{mark} {trial.passing}/{trial.scored} pass", role),
        (f"  at {sign} {show_threshold(row.threshold)}", ""),
    ]
    saved = row.saved is not None and row.saved != row.threshold
    right: Line = [(f"saved {show_threshold(row.saved)}", "muted")] if saved and row.saved is not None else []
    page.lines.append(join_ends(left, right, page.width))


def _stale_line(number: int) -> Line:
    return [(f"   {show_number(number)} stale", "warning")] if number else []


def _write_cases(page: Page, row: MetricRow, effect: Effect) -> dict[int, CaseId]:
    """Writes the score of every case, the worst first."""
    places: dict[int, CaseId] = {}
    if not row.trial.cases:
        return places
    page.section(("Cases", "bold"), ("  by score", "muted"))
    for case, score in row.trial.cases[:_MAX_CASES]:
        places[len(page.lines)] = case
        status = "INFORMATIONAL"
        if row.in_use and row.threshold is not None:
            passes = score <= row.threshold if row.lower_is_better else score >= row.threshold
            status = "PASSED" if passes else "FAILED"
        figures: Line = [(f"{score_figures(score, row.threshold)[0]} ", "")]
        if row.interval is not None and row.interval[0] < row.interval[1]:
            low, high = row.interval
            at = None if row.threshold is None else (row.threshold - low) / (high - low)
            figures += bar((score - low) / (high - low), _BAR_WIDTH, glyph(status)[1], at)
        left: Line = [("  ", ""), glyph(status), (" ", ""), *_case_line(page, case, effect)]
        page.lines.append(join_ends(left, figures, page.width))
    page.more(row.trial.scored - min(len(row.trial.cases), _MAX_CASES))
    return places


def _write_flips(page: Page, effect: Effect) -> dict[int, CaseId]:
    """Writes the cases whose outcome changes, one per line, and those without a known outcome."""
    flips = effect.flips
    if flips.problem:
        page.section(("Outcomes", "bold"), ("  —", "muted"))
        page.text([(flips.problem, "")], [("! ", "error")])
        return {}
    if not effect.change:
        return {}
    page.section(("Outcomes", "bold"), *_counts_line(flips), *_stale_line(effect.stale))
    places: dict[int, CaseId] = {}
    for flip in flips.cases[:_MAX_CASES]:
        places[len(page.lines)] = flip.case
        reason = effect.why.get(flip.case, "")
        page.lines.append(
            join_ends(
                [("  ", ""), *_sides(flip), ("  ", ""), *_case_line(page, flip.case, effect)],
                [(visible(reason), "muted")] if reason else [],
                page.width,
            )
        )
    for case, status in effect.still_failing[:_MAX_CASES]:
        places[len(page.lines)] = case
        left: Line = [("  ", ""), glyph(status), ("      ", ""), *_case_line(page, case, effect)]
        reason = f"still fails: {effect.why[case]}" if effect.why.get(case) else "still fails"
        page.lines.append(join_ends(left, [(visible(reason), "muted")], page.width))
    page.more(max(0, len(flips.cases) - _MAX_CASES) + max(0, len(effect.still_failing) - _MAX_CASES))
    if flips.waiting:
        cases = counted(flips.waiting, "case")
        text = f"{cases} scored when applied" if flips.is_held else f"{cases} being scored"
        page.row(("  ◐ ", "accent"), (text, "muted"))
    elif flips.unknown:
        page.row(("  — ", "warning"), (f"{counted(flips.unknown, 'case')} without a run log", "muted"))
    elif not flips.scored:
        page.row(
            ("  —  Only stale results   " if effect.stale else "  —  No results yet   ", "muted"),
            (key_of("close"), "bold accent"),
            (" then ", "muted"),
            *_run_all_line(),
        )
    elif not flips.cases:
        page.row(("  No case flips", "muted"))
    return places


def _run_all_line() -> Line:
    return [(key_of("run_all"), "bold accent"), (" run all", "muted")]


def _counts_line(flips: Flips) -> Line:
    """The counts of changed outcomes: `  ✗ → ✓ 2   ✓ → ✗ 1`."""
    line: Line = []
    for sides, count in Counter((flip.before, flip.after) for flip in flips.cases).items():
        first, last = glyph(sides[0]), glyph(sides[1])
        line += [("   ", ""), first, (" → ", "muted"), last, (f" {count}", "bold")]
    return line


def _sides(flip: Flip) -> Line:
    return [glyph(flip.before), (" → ", "muted"), glyph(flip.after)]


def _case_line(page: Page, case: CaseId, effect: Effect) -> Line:
    """A case: `lights › movie_mode`; with the set where there is room, or several sets have this id."""
    name = (visible(case.eval_id), "bold")
    owner = effect.sets.get(case.path)
    if owner is None or (page.width < _MIN_WIDTH_WITH_SETS and case.eval_id not in effect.twins):
        return [name]
    return [(f"{visible(owner)} › ", "muted"), name]


def _write_change(page: Page, effect: Effect) -> None:
    """Writes the changed lines of the file, without the unchanged ones."""
    if effect.added:
        page.section(
            (key_of("add_criterion"), "bold accent"),
            (" adds to ", "muted"),
            (visible(effect.name), "bold"),
        )
        write_line_changes(page, effect.added)
    if not effect.change:
        if effect.written is not None:
            page.section((visible(effect.name), "bold"))
            written = json.dumps(effect.written, indent=2, ensure_ascii=False, default=repr)
            # The braces around it say nothing.
            write_code(page, dedent("\n".join(written.split("\n")[1:-1])), "json", 0)
        return
    gone = sum(line.op == "-" for line in effect.change)
    added = len(effect.change) - gone
    title: Line = [(visible(effect.name), "bold")]
    title += [
        (f"  {op}{count}", role)
        for op, count, role in (("−", gone, "error"), ("+", added, "success"))
        if count
    ]
    page.section(*title)
    write_line_changes(page, effect.change)
