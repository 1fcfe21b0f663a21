"""`evaltui metrics`: every metric there is, and which of them are computed here."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.commands.output import width, write_lines
from evaltui.core.metrics.registry import METRICS, MetricInfo
from evaltui.reports.details import MAX_WIDTH
from evaltui.reports.lines import Line, pad, wrap

_NAMES = max(map(len, METRICS))
_INDENT = 4
_BESIDE_THESE = (
    "Beside these, final_session_state is compared for every case that has one, and a config may name metric "
    "functions of your own under custom_metrics."
)


def metrics() -> int:
    """Print name, range, meaning and needs of every metric."""
    write_lines(_table(min(width(), MAX_WIDTH)))
    return 0


def _table(cells: int) -> Iterator[Line]:
    yield [(f"  {'METRIC':{_NAMES}}  RANGE       ASKED FOR IN", "bold")]
    for info in METRICS.values():
        mark = ("–", "yellow") if info.unmet_needs else ("✓", "green")
        row = f" {info.name:{_NAMES}}  {pad(_range(info), 10)}  {_asked_for_in(info)}"
        yield [mark, (row, "")]
        for line in wrap([(info.meaning, ""), (_needs(info), "dim")], cells - _INDENT):
            yield [(" " * _INDENT, ""), *line]
    yield []
    yield from wrap([(_BESIDE_THESE, "")], cells)


def _range(info: MetricInfo) -> str:
    if info.interval is None:
        return "0 and up"
    least, greatest = info.interval
    return f"{least:g} to {greatest:g}"


def _asked_for_in(info: MetricInfo) -> str:
    if not info.gates:
        return "always reported"
    return "criteria" if info.source == "adk" else "evaltui.criteria"


def _needs(info: MetricInfo) -> str:
    if info.unmet_needs:
        return f" Not computed by this version: needs {' and '.join(info.needs)}."
    return f" Needs {' and '.join(info.needs)}." if info.needs else ""
