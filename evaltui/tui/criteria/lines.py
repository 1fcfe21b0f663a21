"""The criteria rows as lines: metrics with sliders, options, settings, marks and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evaltui.core.metrics.declaration import Subject
from evaltui.project.run_settings import RunSettings
from evaltui.text.figures import counted, show_number, show_score, show_threshold
from evaltui.text.glyphs import BAR, EMPTY_BAR
from evaltui.text.lines import Line, both_ends, cells, pad
from evaltui.text.outcomes import glyph
from evaltui.text.syntax import value_line
from evaltui.text.values import visible
from evaltui.workbench.criteria.rows import (
    MetricRow,
    OptionRow,
    ReferenceRow,
    Row,
    RubricRow,
    SettingRow,
)

# What all metrics of a group need.
_SHARED: Mapping[Subject, tuple[str, ...]] = {
    "Judge": ("a judge model",),
    "Simulated user": ("a scenario", "a judge model"),
}
# Cells of a slider, of what stands around it, and of the mean.
_SHORT, _LONG = 8, 12
_FIGURES, _MEAN = 25, 11
_LEAST_NAME = 12
_LEAST_PREVIEW = 12
# Cells of the range and the requirements of a metric that is not in use.
_RANGE = 30


class Group(NamedTuple):
    """Metrics that are not in use, with the same subject."""

    subject: Subject
    rows: tuple[MetricRow, ...]
    is_open: bool


class Columns(NamedTuple):
    """The widths of the columns of a metric in use."""

    name: int
    slider: int
    mean: bool
    """Whether the mean is shown."""
    unused: int
    """Cells of the names of metrics that are not in use."""


def columns_of(rows: Sequence[MetricRow], width: int) -> Columns:
    """The widest columns that fit: the slider is shortened first, then the mean is dropped, then names are
    cut."""
    longest, unused = (
        max((len(visible(row.name)) for row in rows if row.in_use is in_use), default=0)
        for in_use in (True, False)
    )
    name = max(longest, _LEAST_NAME)
    unused = min(unused, max(_LEAST_NAME, width - _RANGE))
    for slider, mean in ((_LONG, True), (_SHORT, True), (_SHORT, False)):
        room = width - _FIGURES - slider - (_MEAN if mean else 0)
        if name <= room:
            return Columns(name, slider, mean, unused)
    return Columns(max(_LEAST_NAME, room), _SHORT, False, unused)


def row_line(row: Row | Group, columns: Columns, width: int, *, here: bool) -> Line:
    """A row without its marker; `here` tells whether it is current."""
    match row:
        case Group():
            return _group_line(row, width)
        case MetricRow(in_use=True):
            return _used_line(row, columns, here=here)
        case MetricRow():
            return _unused_line(row, columns)
        case OptionRow(option=option):
            label = pad(option.name, max(columns.name - 2, len(option.name)))
            return [("  ", ""), (label, "muted"), ("  ", ""), *_option_value(row, here=here)]
        case RubricRow(text=text):
            return [("    ", ""), (f"{row.index + 1} ", "muted"), (visible(text), "")]
        case SettingRow(title=title):
            return [(pad(title, columns.name), ""), ("  ", ""), *_setting_value(row, here=here)]
        case ReferenceRow(text=text, dangling=dangling):
            wrong: Line = [(f"  ! {visible(dangling)}", "warning")] if dangling else []
            return [(visible(text), ""), *wrong]


def _group_line(group: Group, width: int) -> Line:
    """A group: `▸ Judge  11  needs a judge model   safety_v1, …`."""
    line: Line = [
        ("▾ " if group.is_open else "▸ ", "muted"),
        (group.subject, ""),
        (f"  {len(group.rows)}", "muted"),
    ]
    if shared := _SHARED.get(group.subject):
        line.append((f"  needs {', '.join(shared)}", "muted"))
    if group.subject == "Informational":
        line.append(("  in every run", "muted"))
    if group.is_open:
        return line
    names = ", ".join(visible(row.name) for row in group.rows)
    room = width - cells(line) - 3
    return line if room < _LEAST_PREVIEW else both_ends([*line, ("   ", ""), (names, "faint")], [], width)


def _used_line(row: MetricRow, columns: Columns, *, here: bool) -> Line:
    number = "—" if row.threshold is None else show_threshold(row.threshold)
    line: Line = [
        (pad(visible(row.name), columns.name), "" if here else "foreground"),
        ("  ", ""),
        *_slider(row, columns.slider, here=here),
        (f" {number:>5}", "bold"),
    ]
    line.append((" ●" if row.saved != row.threshold else "  ", "warning"))
    line += [("  ", ""), *_passing(row)]
    if columns.mean and row.trial.mean is not None:
        shown = f"mean {show_score(row.trial.mean)}"
        line += [(" " * max(2, columns.name + columns.slider + _FIGURES - cells(line)), ""), (shown, "muted")]
    return line


def _slider(row: MetricRow, width: int, *, here: bool) -> Line:
    """The slider of a threshold: `━━━━●──`; empty where the metric has no interval."""
    if row.threshold is None or row.interval is None:
        return [(" " * width, "")]
    low, high = row.interval
    share = (row.threshold - low) / (high - low) if high > low else 0.0
    knob = round(min(max(share, 0.0), 1.0) * (width - 1))
    role = "bold accent" if here else ""
    return [
        (BAR * knob, "accent" if here else "muted"),
        ("●", role),
        (EMPTY_BAR * (width - 1 - knob), "line"),
    ]


def _passing(row: MetricRow) -> Line:
    """The passing cases of the last run: `✗ 5/9 pass`."""
    if row.why_not:
        return [glyph("NOT_EVALUATED"), (f" {visible(row.why_not)}", "muted")]
    trial = row.trial
    if not trial.scored or row.threshold is None:
        return [("— not scored" if row.threshold is not None else "— no threshold", "muted")]
    mark, role = glyph("PASSED" if trial.passing == trial.scored else "FAILED")
    return [(f"{mark} {trial.passing}/{trial.scored} pass", role)]


def _unused_line(row: MetricRow, columns: Columns) -> Line:
    name = (f"  {pad(visible(row.name), columns.unused)}  ", "muted" if row.why_not else "")
    if row.why_not:
        return [name, glyph("NOT_EVALUATED"), (f" {visible(row.why_not)}", "muted")]
    if not row.gates:
        return [name, (f"mean {show_score(row.trial.mean)}" if row.trial.scored else "—", "muted")]
    needs = [need for need in row.needs if need not in _SHARED.get(row.subject, ())]
    return [name, (range_text(row), "muted"), (f"  needs {', '.join(needs)}" if needs else "", "muted")]


def range_text(row: MetricRow) -> str:
    """The interval in words: `0 to 1`, `0 and up`."""
    if row.interval is None:
        return "0 and up"
    return f"{show_number(row.interval[0])} to {show_number(row.interval[1])}"


def _option_value(row: OptionRow, *, here: bool) -> Line:
    if row.option.kind == "rubrics":
        return [(counted(len(row.value), "rubric"), "" if row.value else "muted")]
    if row.value is None:
        return [("— required", "warning")]
    chosen = here and row.option.kind in ("choice", "flag")
    return _value(row.value, is_set=row.is_set, chosen=chosen)


def _setting_value(row: SettingRow, *, here: bool) -> Line:
    return _value(row.value, is_set=row.is_set, chosen=here and bool(row.choices))


def _value(value: object, *, is_set: bool, chosen: bool) -> Line:
    """A value as JSON; a choice for `←→` is between arrows."""
    shown = value_line(value)
    if chosen:
        shown = [("‹ ", "accent"), *shown, (" ›", "accent")]
    return shown if is_set else [*shown, ("  default", "faint")]


def fact_lines(name: int, settings: RunSettings) -> list[Line]:
    """The run settings that no config has, with the option for each."""
    facts = (
        ("Timeout", f"{settings.timeout:g} s per case"),
        ("Parallel", counted(settings.parallel, "case")),
    )
    return [
        [(f" {pad(title, name)}  ", "muted"), (f"{value}  --{title.lower()}", "faint")]
        for title, value in facts
    ]
