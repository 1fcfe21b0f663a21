"""The criteria of the sets in a folder: metrics in use, other metrics, settings, and changes to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.metrics.declaration import SUBJECTS, Option
from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.metrics.registry import METRICS, info_of
from evaltui.core.metrics.requirements import Facts, unmet_by_metric
from evaltui.core.model.config import DEFAULT_CRITERIA, EvalConfig
from evaltui.core.model.json_values import value_at
from evaltui.core.model.problems import EvalSetError, JsonPath, Problem, errors_in, problems_of
from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.editing.references import BlockList
from evaltui.documents.edits import EditError
from evaltui.documents.formats import WholeText
from evaltui.documents.line_changes import LineChange, changed_lines
from evaltui.project.config_references import ScoredSets
from evaltui.project.configs import choice_problems
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.workbench.case.case_plan import change_config, preview_config
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.case.steps import Step
from evaltui.workbench.criteria.rows import (
    MetricRow,
    OptionRow,
    ReferenceRow,
    Row,
    RubricRow,
    SettingRow,
    custom_metrics,
    first_threshold,
    metric_row,
    next_choice,
    next_threshold,
    option_rows,
    reference_text,
    setting_rows,
    value_of,
)
from evaltui.workbench.result.latest_scores import LatestScores

# What the machine lacks is no error of the config.
_FACTS = Facts(GeminiAccess(), has_module=lambda module: True)


def config_problems(data: Any) -> list[Problem]:
    """The problems of a config, problems of the whole config first."""
    model, problems = validate_config(data)
    editor = ConfigEditor(data)
    named = {problem.path[: len(path)] for problem in problems for path in _paths(editor)}
    for path in _paths(editor):
        if path not in named and (why := _criterion_problem(editor, path, model)):
            problems.append(Problem.error(path, why))
    return problems


def _paths(editor: ConfigEditor) -> list[JsonPath]:
    return [path for name in editor.metrics if (path := editor.criterion_path(name)) is not None]


def _criterion_problem(editor: ConfigEditor, path: JsonPath, model: EvalConfig | None) -> str:
    """Why a metric cannot be computed by its criterion, and how to mend that; "" where it can."""
    name = str(path[-1])
    if model is None:
        # Another part of the config has errors.
        alone = {key: value for key, value in editor.config.items() if key.startswith("custom")}
        criterion = {name: value_at(editor.config, path)}
        alone |= {"evaltui": {"criteria": criterion}} if path[0] == "evaltui" else {"criteria": criterion}
        model, problems = validate_config(alone)
        if model is None:
            return next((problem.message for problem in problems if problem.path[: len(path)] == path), "")
    metric = next(
        (config_metric for config_metric in model.metrics() if config_metric.metric_name == name), None
    )
    unmet = metric and unmet_by_metric(metric, model, _FACTS, recorded=True)
    return ". ".join(part.rstrip(".") for part in (unmet.why, unmet.fix) if part) if unmet else ""


_ENTRY_WORDS = {"turns": "mark", "rules": "rule", "answers": "check", "meant_so": "mark"}
POLICY = "Run policy"
"""The title of the settings for runs."""


@dataclass(frozen=True)
class Section:
    title: str
    rows: tuple[Row, ...]


class Criteria:
    """The criteria of the sets in one folder, which share a config. Without a config, ADK's defaults apply.

    Changes are unsaved until the files are saved; the first change creates a missing config.
    """

    def __init__(self, editing: Editing, set_path: Path) -> None:
        self._sets = editing.sets
        self.outcomes = editing.outcomes
        self._editing = editing
        self._set_path = set_path
        self.path = self._sets.config_path(set_path)
        self.scores = LatestScores(self.outcomes)
        """The scores of the last results of the sets."""
        # Where there is no file; the same object each time, which is validated once.
        self._defaults = {"criteria": DEFAULT_CRITERIA}
        # Data that was validated, and the config that it is.
        self._validated: dict[str, tuple[Any, EvalConfig | None]] = {}
        # What is being moved by keys, and the step that is.
        self._moving: tuple[object, Step | None] = (None, None)

    # What there is

    @property
    def exists(self) -> bool:
        """Whether the config exists, on disk or unsaved."""
        return self._editing.is_there(self.path)

    @property
    def sets(self) -> list[EvalSetFile]:
        """The sets that use the config."""
        return self._sets.sets_of_config(self.path)

    def refuses_text(self) -> str | None:
        """Why the text of the config cannot be edited, as a sentence."""

        if not self.exists and (errors := errors_in(choice_problems(self._set_path))):
            return str(errors[0])
        return None

    def unreadable(self) -> str | None:
        """Why the config cannot be shown, as a sentence."""
        if reason := self.refuses_text():
            return reason
        try:
            data = self._data()
        except EvalSetError as error:
            return f"{self.path.name} is unreadable: {error.problems[0]}"
        except (OSError, ValueError) as error:
            return f"{self.path.name} is unreadable: {error}"
        return None if isinstance(data, dict) else f"{self.path.name} is not an object"

    def problems(self) -> list[Problem]:
        """The problems of the current config."""
        return config_problems(self._data())

    def written(self, row: Row) -> Any:
        """The JSON of a row in the current config; None for none."""
        config = ConfigEditor(self._data())
        match row:
            case MetricRow(name=name) | OptionRow(metric=name) | RubricRow(metric=name):
                criterion = config.criterion(name)
                return None if criterion is None else {name: criterion}
            case SettingRow(name="thoughts" | "outputs", is_set=True):
                return {row.name: row.value}
            case SettingRow(is_set=True):
                return {"repeats": value_at(config.config, ("evaltui", "repeats"))}
            case ReferenceRow(block=block, index=index):
                return dict(config.entries(block)).get(index)
        return None

    def config(self) -> EvalConfig | None:
        """The current config; None where it has errors. Raises the errors described by `unreadable`."""
        return self._config_of("edited", self._data())

    def saved_config(self) -> EvalConfig | None:
        """The config on disk; None where it has errors. Raises the errors described by `unreadable`."""
        return self._config_of("saved", self._saved_data())

    def _config_of(self, side: str, data: Any) -> EvalConfig | None:

        cached = self._validated.get(side)
        if cached is None or cached[0] is not data:
            cached = self._validated[side] = data, validate_config(data)[0]
        return cached[1]

    def change(self) -> tuple[LineChange, ...]:
        """The lines of the file that a save changes."""
        file = self._editing.open_file(self.path)
        if file is None or not file.dirty:
            return ()
        return changed_lines(file.saved or WholeText(""), file.document)

    def text(self) -> str:
        """The text of the file on disk; "" where it is unreadable."""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def sections(self) -> list[Section]:
        """All rows, by section. Raises the errors described by `unreadable`."""
        config, saved = ConfigEditor(self._data()), ConfigEditor(self._saved_data())
        self.scores.follow(self.sets, self.saved_config(), self.config())
        trial = self.scores.trial
        in_use = config.metrics
        used: list[Row] = []
        for name in in_use:
            used.append(metric_row(config, saved, name, trial))
            used += option_rows(config, name)
        names = dict.fromkeys((*custom_metrics(config), *METRICS))
        others = [metric_row(config, saved, name, trial) for name in names if name not in in_use]
        others.sort(key=lambda row: SUBJECTS.index(row.subject))
        return [
            Section("In use" if self.exists else "In use: ADK defaults", tuple(used)),
            Section("Not in use", tuple(others)),
            Section(POLICY, tuple(setting_rows(config))),
            *self._references(config),
        ]

    def _references(self, config: ConfigEditor) -> list[Section]:
        blocks: tuple[tuple[BlockList, str], ...] = (
            ("turns", "Marks on turns"),
            ("rules", "Rules"),
            ("answers", "Checks of answers"),
            ("meant_so", "Changes meant so"),
        )
        if not any(list(config.entries(block)) for block, _ in blocks):
            # Of a hundred thousand cases it takes long to look into each.
            return []
        sets = self.sets
        turns = {
            eval_set.eval_set_id: {case.eval_id: case.outline.turns for case in eval_set.cases}
            for eval_set in sets
        }
        calls = {
            eval_set.eval_set_id: {
                case.eval_id: dict.fromkeys(case.outline.tools, ()) for case in eval_set.cases
            }
            for eval_set in sets
        }
        problems = problems_of("references", config.config, ScoredSets(turns, calls))
        # The first problem of an entry counts.
        wrong = {problem.path[:3]: problem.message for problem in reversed(problems)}
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
        return self._defaults if config is None else config

    def _saved_data(self) -> Any:
        """The data of the config on disk."""
        draft = self._editing.open_file(self.path)
        if draft is None:
            return self._data()
        return self._defaults if draft.saved is None else draft.saved.value

    # Changes

    def add(self, row: MetricRow, text: str = "") -> bool:
        """Adds a metric that is not in use; `text` is the value of its needed option."""
        return self._do(f"add {row.name}", lambda config: _add(config, row, text))

    def addition(self, row: MetricRow) -> tuple[LineChange, ...]:
        """The lines of the file that adding a metric changes; none where it is in use."""
        try:
            before, after = preview_config(
                self._editing, self._set_path, lambda config: _add(config, row, "…")
            )
        except EditError:
            return ()
        return changed_lines(before, after)

    def add_rubric(self, metric: str, after: int, text: str) -> bool:
        """Adds a rubric to a metric after the rubric with this index; -1 adds it before all."""
        label = f"add rubric to {metric}"
        return self._do(label, lambda config: config.insert_rubric(metric, after + 1, text))

    def remove(self, row: Row) -> bool:
        """Removes a metric, a rubric, a mark or a rule; resets an option or a setting to its default."""
        match row:
            case MetricRow(name=name):
                return self._do(f"remove {name}", lambda config: config.remove_metric(name))
            case OptionRow(metric=metric, option=option):
                if option.default is None:
                    self._editing.say(f"{metric} needs {option.name}; remove the metric")
                    return False
                label = f"remove {option.name} of {metric}"
                return self._do(label, lambda config: config.set_option(metric, option.path, None))
            case RubricRow(metric=metric, index=index):
                label = f"remove rubric of {metric}"
                return self._do(label, lambda config: config.remove_rubric(metric, index))
            case SettingRow(name=setting):
                return self._do(f"remove {setting}", lambda config: config.remove_setting(setting))
            case ReferenceRow():
                label = _ENTRY_WORDS.get(row.block, row.block)
                return self._do(
                    f"remove {label}", lambda config: config.remove_entries(row.block, [row.index])
                )

    def move(self, row: Row, direction: int, *, far: bool = False) -> bool:
        """Sets the next (1) or previous (-1) value: a threshold by a step, a choice to the one beside it."""
        match row:
            case MetricRow(in_use=True, threshold=float(threshold)):
                return self.set_threshold(row, next_threshold(row, threshold, direction, far=far))
            case MetricRow(in_use=True, gates=True, threshold=None):
                return self.set_threshold(row, first_threshold(row))
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
            moves=("threshold", row.name),
            scores_later=True,
        )

    def end_move(self) -> None:
        """Ends a series of moves: the next one is a step of its own, and results are scored by the current
        value."""
        self._moving = None, None
        self.outcomes.rescore_now()

    def check(self, row: Row, text: str) -> str | None:
        """Why a text is no value for a row, as a sentence."""
        try:
            value_of(row, text)
        except ValueError as error:
            return str(error)
        return None

    def type(self, row: Row, text: str) -> bool:
        """Sets a row to a typed text that `check` accepts."""
        value = value_of(row, text)
        if isinstance(row, MetricRow):
            label = f"set threshold of {row.name}"
            return self._do(label, lambda config: config.set_threshold(row.name, value))
        if isinstance(row, RubricRow):
            label = f"edit rubric of {row.metric}"
            return self._do(label, lambda config: config.set_rubric_text(row.metric, row.index, value))
        return self._set(row, value)

    def _set(self, row: Row, value: Any) -> bool:
        match row:
            case OptionRow(metric=metric, option=option):
                return self._do(
                    f"set {option.name} of {metric}",
                    lambda config: config.set_option(metric, option.path, value),
                    moves=(metric, option.path),
                )
            case SettingRow(name=name):
                return self._do(
                    f"set {name}",
                    lambda config: (
                        config.set_scored(name, value)
                        if name == "thoughts" or name == "outputs"
                        else config.set_repeats(**{name: value})
                    ),
                    moves=name,
                )
        return False

    def _do(
        self,
        label: str,
        change: Callable[[ConfigEditor], object],
        *,
        moves: object = None,
        scores_later: bool = False,
    ) -> bool:
        """Applies a change; consecutive changes with the same `moves` are one step."""
        extends = self._moving[1] if moves is not None and moves == self._moving[0] else None
        done = change_config(
            self._editing, label, self._set_path, change, extends=extends, scores_later=scores_later
        )
        if done:
            self._moving = moves, self._editing.last_step
        return done


def needed_option(metric: MetricRow) -> OptionRow | None:
    """The option that is required to add a metric; None for none."""
    options = (OptionRow(metric.name, option, None, False) for option in info_of(metric.name).options)
    return next((row for row in options if row.option.default is None), None)


def _add(config: ConfigEditor, row: MetricRow, text: str) -> None:
    """Adds a metric. Raises EditError for one that cannot be added."""
    threshold, needed = DEFAULT_CRITERIA.get(row.name, first_threshold(row)), needed_option(row)
    criterion = {"threshold": threshold, needed.option.name: text} if needed else threshold
    config.add_metric(row.name, criterion)
