"""The criteria of the sets of one folder, seen and changed, and what can be typed or chosen in their rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from evaltui.core.editing.config import ConfigEditor, new_config
from evaltui.core.editing.json_paths import field_path, field_value
from evaltui.core.editing.references import BlockList, dangling, idle_rules
from evaltui.core.jsondoc.edits import Edit
from evaltui.core.metrics.registry import METRICS, Option
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import DEFAULT_CRITERIA
from evaltui.core.model.problems import EvalSetError, JsonPath, Problem
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.workbench.criteria_rows import (
    Interval,
    MetricRow,
    OptionRow,
    ReferenceRow,
    Row,
    RubricRow,
    Scores,
    SettingRow,
    custom_metrics,
    metric_row,
    option_rows,
    reference_text,
    rubrics_of,
    setting_rows,
)
from evaltui.workbench.editing import Editing
from evaltui.workbench.open_sets import OpenSets
from evaltui.workbench.outcomes import Outcomes


def first_threshold(row: MetricRow) -> float:
    """Where nothing else is known: four fifths of what can be reached, all of what is reached or not."""
    if row.name == "trajectory_single_tool_use" or row.interval is None:
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
    low, high = row.interval or (-math.inf if row.assumed else 0.0, math.inf)
    # What is outside already is brought back, not moved further.
    return min(max(moved, low), high)


def next_choice(choices: Sequence[str], value: Any, direction: int) -> str:
    here = choices.index(value) if value in choices else -1 if direction > 0 else 0
    return choices[(here + direction) % len(choices)]


def text_of(row: Row) -> str | None:
    """What there is to be edited as text; None where the row has no text to type."""
    match row:
        case MetricRow(asked=True):
            return "" if row.threshold is None else f"{row.threshold:g}"
        case OptionRow(option=Option(kind="text" | "whole number")):
            return "" if row.value is None else str(row.value)
        case RubricRow():
            return row.text
        case SettingRow(name="runs" | "pass_if"):
            return str(row.value)
    return None


def value_of(row: Row, text: str) -> Any:
    """What a text means for a row. Raises ValueError with a sentence."""
    text = text.strip()
    match row:
        case MetricRow(interval=interval, assumed=assumed):
            number = _number(text)
            if interval and not assumed and not interval[0] <= number <= interval[1]:
                raise ValueError(f"must be from {interval[0]:g} to {interval[1]:g}")
            return number
        case OptionRow(option=Option(kind="whole number", least=least)):
            return _whole(text, least or 0)
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
        raise ValueError(f"must be a whole number, at least {least}")
    return int(text)


_RUBRICS: JsonPath = ("rubrics",)


@dataclass(frozen=True)
class Section:
    title: str
    rows: tuple[Row, ...]


class Criteria:
    """Of the sets of one folder: they share a config. Where it has none, ADK's defaults apply.

    Changes are unsaved until the files are saved; the first one makes the file where there is none.
    """

    def __init__(
        self,
        sets: OpenSets,
        outcomes: Outcomes,
        editing: Editing,
        set_path: Path,
        say: Callable[[str], None],
    ) -> None:
        self._sets = sets
        self._outcomes = outcomes
        self._editing = editing
        self._say = say
        self._set_path = set_path
        self.path = sets.config_path(set_path)

    # What there is

    @property
    def exists(self) -> bool:
        """Whether there is a config, on disk or unsaved."""
        return self._editing.open_file(self.path) is not None or self.path.exists()

    @property
    def sets(self) -> list[EvalSetFile]:
        """The sets that the config applies to."""
        return self._sets.sets_of_config(self.path)

    def unreadable(self) -> str | None:
        """Why the config cannot be shown, as a sentence."""
        from evaltui.files.configs import unclear_config

        if not self.exists and (problem := unclear_config(self._set_path)):
            return str(problem)
        try:
            data = self._data()
        except EvalSetError as error:
            return f"{self.path.name} is unreadable: {error.problems[0]}"
        except (OSError, ValueError) as error:
            return f"{self.path.name} is unreadable: {error}"
        return None if isinstance(data, dict) else f"{self.path.name} is not an object"

    def problems(self) -> list[Problem]:
        """What is wrong with the config as it is now."""
        from evaltui.core.metrics.config_validation import validate_config

        return validate_config(self._data())[1]

    def sections(self) -> list[Section]:
        """Everything that can be seen and changed. Raises what `unreadable` tells of."""
        config, saved = ConfigEditor(self._data()), ConfigEditor(self._saved_data())
        scores = self._scores()
        asked = config.metrics
        used: list[Row] = []
        for name in asked:
            used.append(metric_row(config, saved, name, scores.get(name, {})))
            used += option_rows(config, name)
        known = dict.fromkeys((*custom_metrics(config), *METRICS))
        others = [
            metric_row(config, saved, name, scores.get(name, {})) for name in known if name not in asked
        ]
        # What can be scored here comes first.
        others.sort(key=lambda row: row.why_not is not None)
        return [
            Section("In use" if self.exists else "In use: ADK defaults", tuple(used)),
            Section("Not in use", tuple(others)),
            Section("Run policy", tuple(setting_rows(config))),
            *self._references(config),
        ]

    def _references(self, config: ConfigEditor) -> list[Section]:
        sets = self.sets
        turns = {one.eval_set_id: {case.eval_id: case.outline.turns for case in one.cases} for one in sets}
        tools = {one.eval_set_id: {case.eval_id: case.outline.tools for case in one.cases} for one in sets}
        problems = (*idle_rules(config.config, tools), *dangling(config.config, turns))
        wrong = {problem.path[:3]: problem.message for problem in problems}
        blocks: tuple[tuple[BlockList, str], ...] = (("turns", "Marks on turns"), ("rules", "Rules"))
        sections = [
            Section(
                title,
                tuple(
                    ReferenceRow(block, index, reference_text(entry), wrong.get(("evaltui", block, index)))
                    for index, entry in config.entries(block)
                ),
            )
            for block, title in blocks
        ]
        return [section for section in sections if section.rows]

    def _data(self) -> Any:
        config = self._editing.config_data(self._set_path)
        return new_config() if config is None else config

    def _saved_data(self) -> Any:
        """The config as it is on disk."""
        draft = self._editing.open_file(self.path)
        if draft is None:
            return self._data()
        return {"criteria": DEFAULT_CRITERIA} if draft.saved is None else draft.saved.value

    def _scores(self) -> Mapping[str, Scores]:
        """By metric."""
        scores: dict[str, dict[CaseId, list[float | None]]] = {}
        for eval_set in self.sets:
            for case in eval_set.cases:
                key = CaseId(eval_set.case_path, case.eval_id)
                scored = self._outcomes.get(key)
                # A result without repeats has the metrics of its only run itself.
                for run in (scored.result.repeats or [scored.result]) if scored else ():
                    for metric in run.metrics:
                        scores.setdefault(metric.name, {}).setdefault(key, []).append(metric.score)
        return scores

    # Changes

    def add(self, row: Row) -> bool:
        """Ask for a metric that is not in use."""
        if not isinstance(row, MetricRow):
            return False
        first = DEFAULT_CRITERIA.get(row.name, first_threshold(row))
        return self._do(f"add {row.name}", lambda config: config.add_metric(row.name, first))

    def add_rubric(self, metric: str, after: int, text: str) -> bool:
        """A rubric of a metric, behind the one with this index; -1 means before all."""

        def edit(config: ConfigEditor) -> list[Edit]:
            rubrics = rubrics_of(config, metric)
            ids = {field_value(rubric, (), "rubric_id") for rubric in rubrics}
            new_id = next(name for number in count(1) if (name := f"rubric_{number}") not in ids)
            rubric = {"rubric_id": new_id, "rubric_content": {"text_property": text.strip()}}
            rubrics.insert(after + 1, rubric)
            return config.set_option(metric, _RUBRICS, rubrics)

        return self._do(f"add rubric to {metric}", edit)

    def remove(self, row: Row) -> bool:
        """Take out a metric, a rubric, a mark or a rule; of options and settings the default applies then."""
        match row:
            case MetricRow(name=name):
                return self._do(f"remove {name}", lambda config: config.remove_metric(name))
            case OptionRow(metric=metric, option=option):
                label = f"remove {option.name} of {metric}"
                return self._do(label, lambda config: config.set_option(metric, option.path, None))
            case RubricRow():
                return self._put_rubric(f"remove rubric of {row.metric}", row, None)
            case SettingRow(name=setting):
                return self._do(f"remove {setting}", lambda config: config.remove_setting(setting))
            case ReferenceRow():
                label = "remove mark" if row.block == "turns" else "remove rule"
                return self._do(label, lambda config: config.remove_entries(row.block, [row.index]))

    def move(self, row: Row, direction: int, *, far: bool = False) -> bool:
        """The next (1) or previous (-1) value: of a threshold by a step, of a choice the one beside it."""
        match row:
            case MetricRow(asked=True, threshold=float(threshold)):
                return self.set_threshold(row, next_threshold(row, threshold, direction, far=far))
            case OptionRow(option=Option(kind="whole number")):
                return self._set(row, max(row.option.least or 0, int(row.value or 0) + direction))
            case OptionRow(option=Option(kind="flag")):
                return self._set(row, not row.value)
            case OptionRow(option=Option(kind="choice")):
                return self._set(row, next_choice(row.option.choices, row.value, direction))
            case SettingRow(name="runs"):
                return self._set(row, max(1, int(row.value) + direction))
            case SettingRow():
                return self._set(row, next_choice(row.choices, row.value, direction))
        return False

    def set_threshold(self, row: MetricRow, threshold: float) -> bool:
        return self._do(
            f"change threshold of {row.name}",
            lambda config: config.set_threshold(row.name, threshold),
            typing=(self.path, "threshold", row.name),
        )

    def check(self, row: Row, text: str) -> str | None:
        """Why a text is no value for a row, as a sentence."""
        try:
            value_of(row, text)
        except ValueError as error:
            return str(error)
        return None

    def type(self, row: Row, text: str) -> bool:
        """Set a row to what was typed, which `check` has nothing against."""
        value = value_of(row, text)
        if isinstance(row, MetricRow):
            label = f"set threshold of {row.name}"
            return self._do(label, lambda config: config.set_threshold(row.name, value))
        if isinstance(row, RubricRow):
            return self._put_rubric(f"edit rubric of {row.metric}", row, value)
        return self._set(row, value)

    def _set(self, row: Row, value: Any) -> bool:
        match row:
            case OptionRow(metric=metric, option=option):
                return self._do(
                    f"set {option.name} of {metric}",
                    lambda config: config.set_option(metric, option.path, value),
                    typing=(self.path, metric, option.path),
                )
            case SettingRow(name=name):
                return self._do(
                    f"set {name}",
                    lambda config: (
                        config.set_thoughts(value)
                        if name == "thoughts"
                        else config.set_repeats(**{name: value})
                    ),
                    typing=(self.path, name),
                )
        return False

    def _put_rubric(self, label: str, row: RubricRow, text: str | None) -> bool:
        """Another text for a rubric; None takes it out."""

        def edit(config: ConfigEditor) -> list[Edit]:
            rubrics = rubrics_of(config, row.metric)
            if text is None:
                del rubrics[row.index]
            else:
                rubrics[row.index] = _with_text(rubrics[row.index], text)
            return config.set_option(row.metric, _RUBRICS, rubrics or None)

        return self._do(label, edit)

    def _do(self, label: str, edit: Callable[[ConfigEditor], list[Edit]], *, typing: Hashable = None) -> bool:
        try:
            edits = edit(ConfigEditor(self._data()))
        except (EvalSetError, OSError, ValueError) as error:
            self._say(str(error))
            return False
        return bool(edits) and self._editing.do_edits(label, {self.path: edits}, typing=typing)


def _with_text(rubric: Any, text: str) -> Any:
    if not isinstance(rubric, dict):
        return rubric
    content_key = field_path(rubric, (), "rubric_content")[-1]
    content = rubric.get(content_key)
    content = content if isinstance(content, dict) else {}
    text_key = field_path(rubric, (content_key,), "text_property")[-1]
    return {**rubric, content_key: {**content, text_key: text}}
