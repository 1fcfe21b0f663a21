"""Values of the criteria rows: the next value up or down, and the value of a typed text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evaltui.core.metrics.declaration import Option
from evaltui.core.metrics.registry import info_of
from evaltui.workbench.criteria.rows import Interval, MetricRow, OptionRow, Row, RubricRow, SettingRow


def first_threshold(row: MetricRow) -> float:
    """The first threshold of an added metric: 80% of the interval; 1.0 for a pass/fail metric."""
    if info_of(row.name).is_yes_or_no or row.interval is None:
        return 1.0
    low, high = row.interval
    return round(low + 0.8 * (high - low), 1)


def steps_of(interval: Interval | None) -> Interval:
    """The small and the big step of a threshold."""
    if interval is None:
        return 1.0, 10.0
    return (0.01, 0.1) if interval[1] - interval[0] <= 1 else (0.1, 0.5)


def next_threshold(row: MetricRow, threshold: float, direction: int, *, far: bool) -> float:
    """One step up (1) or down (-1), within what the metric can give."""
    step = steps_of(row.interval)[far]
    moved = round(threshold + direction * step, 4)
    low, high = row.interval or (0.0, math.inf)
    # What is outside already is brought back, not moved further.
    return min(max(moved, low), high)


def next_choice(choices: Sequence[str], value: Any, direction: int) -> str:
    here = choices.index(value) if value in choices else -1 if direction > 0 else 0
    return choices[(here + direction) % len(choices)]


def text_of(row: Row) -> str | None:
    """The text to edit in a row; None for a row without a text."""
    match row:
        case MetricRow(in_use=True):
            return "" if row.threshold is None else f"{row.threshold:g}"
        case OptionRow(option=Option(kind="text" | "whole number")):
            return "" if row.value is None else str(row.value)
        case RubricRow():
            return row.text
        case SettingRow(name="runs" | "pass_if"):
            return str(row.value)
    return None


def value_of(row: Row, text: str) -> Any:
    """The value of a typed text for a row. Raises ValueError with a sentence."""
    text = text.strip()
    match row:
        case MetricRow(interval=interval, assumed=assumed):
            number = _number(text)
            if interval and not assumed and not interval[0] <= number <= interval[1]:
                raise ValueError(f"must be from {interval[0]:g} to {interval[1]:g}")
            if (assumed or not interval) and number < 0:
                raise ValueError("must be at least 0")
            return number
        case OptionRow(option=Option(kind="whole number", least=least)):
            return _whole(text, least or 0)
        case OptionRow(option=Option(path=("function",))) if not text.rpartition(".")[0]:
            raise ValueError("must be the path of a function, such as my_agent.metrics.my_metric")
        case SettingRow(name="runs"):
            return _whole(text, 1)
        case SettingRow(name="pass_if"):
            if text in row.choices:
                return text
            number = _number(text, "must be all, majority or a pass rate, e.g. 0.6")
            if not 0 < number <= 1:
                raise ValueError("a pass rate must be above 0 and at most 1")
            return number
    if not text:
        raise ValueError("must not be empty")
    return text


def _number(text: str, otherwise: str = "must be a number") -> float:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        raise ValueError(otherwise) from None
    if not math.isfinite(number):
        raise ValueError(otherwise)
    return number


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"must be an integer, at least {least}")
    return int(text)
