"""The rows of a config: metrics in use and others, options, settings, marks and rules, with trial
thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evaltui.core.compare.repeats import is_pass_rate
from evaltui.core.matching.rules import match_in_words
from evaltui.core.metrics.answer_rules import check_in_words
from evaltui.core.metrics.declaration import Option, Subject, own_metric_options
from evaltui.core.metrics.metric import MISPLACED_FUNCTION
from evaltui.core.metrics.registry import METRICS, info_of
from evaltui.core.model.config import PassIf
from evaltui.core.model.json_values import field_of, object_or_empty, text_or_empty, value_at
from evaltui.core.model.problems import JsonPath
from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.editing.json_paths import field_path, field_value
from evaltui.documents.editing.references import BlockList
from evaltui.runs.score_table import Trial, TriedThreshold
from evaltui.text.values import did_you_mean

Interval = tuple[float, float]
Setting = Literal["runs", "pass_if", "thoughts", "outputs"]


@dataclass(frozen=True)
class MetricRow:
    """A metric."""

    name: str
    meaning: str
    in_use: bool = False
    """Whether the config has a criterion for it."""
    threshold: float | None = None
    """None where it is not in use, or has no number as threshold."""
    saved: float | None = None
    """The threshold that is on disk."""
    interval: Interval | None = (0.0, 1.0)
    """The lowest and the highest possible score."""
    needs: tuple[str, ...] = ()
    why_not: str | None = None
    """Why it cannot be scored here."""
    gates: bool = True
    """False for a metric that is measured without a criterion."""
    ours: bool = False
    """Whether its criterion is in the `evaltui` block because ADK does not have it."""
    trial: Trial = field(default_factory=Trial)
    assumed: bool = False
    """Whether the interval is ADK's default, which does not limit the score."""
    lower_is_better: bool = False
    subject: Subject = "Own"
    """The subject that it scores."""


@dataclass(frozen=True)
class OptionRow:
    """An option of a metric in use."""

    metric: str
    option: Option
    value: Any
    is_set: bool
    """False for the default."""


@dataclass(frozen=True)
class RubricRow:
    metric: str
    index: int
    text: str


@dataclass(frozen=True)
class SettingRow:
    """A setting of the `evaltui` block."""

    name: Setting
    title: str
    value: Any
    is_set: bool
    """False for the default."""
    meaning: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReferenceRow:
    """A mark on a turn, or a rule."""

    block: BlockList
    index: int
    text: str
    dangling: str | None
    """Why the mark or rule has no effect, or the missing name in it."""


Row = MetricRow | OptionRow | RubricRow | SettingRow | ReferenceRow

# Source: google-adk 2.13, the range of a custom metric without metric_info.
_DEFAULT_INTERVAL: Interval = (0.0, 1.0)


# Metrics


def metric_row(
    config: ConfigEditor, saved: ConfigEditor, name: str, trial: Callable[[TriedThreshold], Trial]
) -> MetricRow:
    """The row of a metric; `saved` is the config on disk; `trial` tries a threshold on the last results."""
    row = _row(config, saved, name)
    tried = TriedThreshold(
        name, row.threshold, row.saved, _pass_if(config), row.interval, lower_is_better=row.lower_is_better
    )
    return replace(row, trial=trial(tried))


def _row(config: ConfigEditor, saved: ConfigEditor, name: str) -> MetricRow:
    own = OwnMetric(config, name)
    definition = config.definition(name)
    in_use = definition is not None or config.criterion_path(name) is not None
    threshold, saved_threshold = config.threshold(name), saved.threshold(name)
    info = METRICS.get(name)
    # A definition without a body is that of a built-in metric.
    is_defined = definition is not None and bool(definition.keys() & {"source", "file", "prompt_template"})
    is_own = own.exists or is_defined
    lower = own.lower_is_better if is_own else info is not None and info.lower_is_better
    row = MetricRow(name, "", in_use, threshold, saved_threshold, lower_is_better=lower)
    if own.exists:
        fits = threshold is None or _DEFAULT_INTERVAL[0] <= threshold <= _DEFAULT_INTERVAL[1]
        interval = own.interval or (_DEFAULT_INTERVAL if fits else None)
        ours, assumed = own.function is not None, own.interval is None
        return replace(row, meaning=own.meaning, interval=interval, ours=ours, assumed=assumed)
    if definition is not None and (info is None or is_defined or definition.get("not_evaluated")):
        meaning = _meaning_of(definition)
        return replace(
            row, meaning=meaning, why_not=definition.get("not_evaluated"), interval=None, ours=True
        )
    if info is None:
        unknown = f"Unknown metric{did_you_mean(name, METRICS)}"
        if value_at(config.config, ("criteria", name, "function")) is not None:
            unknown = MISPLACED_FUNCTION
        return replace(row, why_not=unknown)
    ours = info.source == "evaltui"
    return replace(
        row,
        meaning=info.meaning,
        interval=info.interval,
        needs=info.needs,
        gates=info.gates,
        ours=ours,
        subject=info.subject,
    )


def _meaning_of(definition: Mapping[str, Any]) -> str:
    """A metric that a config of agents-cli defines, in a sentence."""
    if definition.get("prompt_template"):
        return "Judge of agents-cli, with its own prompt."
    if place := definition.get("place"):
        return f"Function of agents-cli: {place}."
    return "Metric of Google's evaluation service."


def custom_metrics(config: ConfigEditor) -> Mapping[str, Any]:
    return object_or_empty(field_of(config.config, "custom_metrics"))


@dataclass(frozen=True)
class OwnMetric:
    """A custom metric, in ADK's form or in the short form of the `evaltui` block."""

    config: ConfigEditor
    name: str

    @property
    def exists(self) -> bool:
        return self.function is not None or self.name in custom_metrics(self.config)

    @property
    def function(self) -> str | None:
        """The function of a metric in short form; None for the other form."""
        function = value_at(self.config.config, ("evaltui", "criteria", self.name, "function"))
        return function if isinstance(function, str) else None

    @property
    def lower_is_better(self) -> bool:
        return field_value(self.config.criterion(self.name), (), "lower_is_better") is True

    @property
    def meaning(self) -> str:
        if function := self.function:
            return f"Custom metric. Computed turn by turn by {function}."
        data, owner = self.config.config, self._custom_path
        code = field_value(data, field_path(data, owner, "code_config"), "name")
        info = field_path(data, owner, "metric_info")
        descriptions = (field_value(data, path, "description") for path in (info, owner))
        description = next(filter(None, descriptions), "Custom metric.")
        return f"{description} Computed by {code}."

    @property
    def interval(self) -> Interval | None:
        """The interval of scores in the config."""
        data = self.config.config
        path: JsonPath = ("evaltui", "criteria", self.name, "interval")
        if self.function is None:
            values = field_path(data, field_path(data, self._custom_path, "metric_info"), "metric_value_info")
            path = field_path(data, values, "interval")
        low, high = (field_value(data, path, end) for end in ("min_value", "max_value"))
        if not (isinstance(low, int | float) and isinstance(high, int | float)):
            return None
        return float(low), float(high)

    @property
    def _custom_path(self) -> JsonPath:
        return (*field_path(self.config.config, (), "custom_metrics"), self.name)


def option_rows(config: ConfigEditor, metric: str) -> Iterator[OptionRow | RubricRow]:
    criterion = config.criterion(metric)
    own = OwnMetric(config, metric)
    options = (
        own_metric_options(scores_turns=own.function is not None) if own.exists else info_of(metric).options
    )
    for option in options:
        value = _option_value(criterion, option)
        is_set = value is not None
        default = value_at(config.definition(metric), option.path, option.default)
        yield OptionRow(metric, option, value if is_set else default, is_set)
        if option.kind == "rubrics":
            for index, rubric in enumerate(config.rubrics(metric)):
                text = field_value(rubric, field_path(rubric, (), "rubric_content"), "text_property")
                yield RubricRow(metric, index, text_or_empty(text))


def _option_value(criterion: Any, option: Option) -> Any:
    path: JsonPath = ()
    for step in option.path:
        path = field_path(criterion, path, str(step))
    value = value_at(criterion, path)
    # The metric that looks for a single tool takes its name under another key as well.
    is_tool = value is None and option.path == ("tool",)
    return field_value(criterion, (), "tool_name") if is_tool else value


# Settings, marks and rules


def setting_rows(config: ConfigEditor) -> Iterator[SettingRow]:
    runs = value_at(config.config, ("evaltui", "repeats", "runs"))
    pass_if = value_at(config.config, ("evaltui", "repeats", "pass_if"))
    thoughts = value_at(config.config, ("evaltui", "thoughts"))
    outputs = value_at(config.config, ("evaltui", "outputs"))
    whole = isinstance(runs, int) and not isinstance(runs, bool)
    yield SettingRow("runs", "Runs", runs if whole else 1, runs is not None, "Number of runs of each case.")
    yield SettingRow(
        "pass_if",
        "Pass if",
        "all" if pass_if is None else pass_if,
        pass_if is not None,
        "Runs of a case that must pass: all, majority or a pass rate, e.g. 0.6.",
        ("all", "majority"),
    )
    yield SettingRow(
        "thoughts",
        "Thoughts",
        thoughts or "ignore",
        thoughts is not None,
        "Thoughts as part of the response: ADK scores them, seldom on purpose.",
        ("ignore", "score"),
    )
    yield SettingRow(
        "outputs",
        "Outputs",
        outputs or "ignore",
        outputs is not None,
        "Output of a workflow or function node as the response: ADK scores texts only.",
        ("ignore", "score"),
    )


def _pass_if(config: ConfigEditor) -> PassIf:
    value = value_at(config.config, ("evaltui", "repeats", "pass_if"))
    if value == "majority":
        return "majority"
    return float(value) if is_pass_rate(value) else "all"


def reference_text(entry: Mapping[str, Any]) -> str:
    """A mark, a rule, a check of answers or a change meant so in words: `context  orders › late › turn 1`,
    `find query  regex a+`, `contains "19 °C"  orders › late`."""
    if "mode" in entry:
        what = str(entry["mode"])
    elif "match" in entry or "tool" in entry:
        what = match_in_words(entry.get("match"))
    elif "digest" in entry:
        what = str(entry.get("kind", ""))
    else:
        what = check_in_words(entry)
    names = [str(entry[key]) for key in ("tool", "arg") if key in entry]
    scope = [str(entry[key]) for key in ("set", "case") if key in entry]
    turn = entry.get("turn")
    scope += [f"turn {turn + 1}"] if isinstance(turn, int) else []
    return "  ".join(part for part in (" ".join(names), what, " › ".join(scope)) if part)


# Values


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
            return _whole_number(text, least or 0)
        case OptionRow(option=Option(path=("function",))) if not text.rpartition(".")[0]:
            raise ValueError("must be the path of a function, such as my_agent.metrics.my_metric")
        case SettingRow(name="runs"):
            return _whole_number(text, 1)
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


def _whole_number(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"must be an integer, at least {least}")
    return int(text)
