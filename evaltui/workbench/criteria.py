"""The criteria of a set: what its `test_config.json` asks for, what it could ask for, and changing that."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.compare.rules import match_in_words
from evaltui.core.editing.criteria import (
    add_metric,
    criterion_path,
    new_config_text,
    remove_metric,
    set_option,
    set_repeats,
    set_thoughts,
    set_threshold,
)
from evaltui.core.editing.json_paths import dicts, get, list_at, place, value_at
from evaltui.core.editing.references import dangling, idle_rules, remove_from_block
from evaltui.core.jsondoc.edits import Edit, Remove
from evaltui.core.metrics.options import Option, options_of, options_of_own
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.config import DEFAULT_CRITERIA, PassIf
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status
from evaltui.core.model.own_metrics import MISPLACED
from evaltui.core.model.problems import EvalSetError, JsonPath, Problem
from evaltui.files.set_entry import SetEntry
from evaltui.text.wording import did_you_mean
from evaltui.workbench.state import CaseKey
from evaltui.workbench.workbench import Workbench

Interval = tuple[float, float]
# The scores of the runs of a case, by metric; None where a run has none.
_Scores = Mapping[str, Mapping[CaseKey, Sequence[float | None]]]


@dataclass(frozen=True)
class Trial:
    """What a threshold makes of the scores of the last run.

    `passing` of the `scored` cases pass; compared with the threshold that is saved, some `now_pass` and some
    `now_fail`.
    """

    mean: float | None = None
    scored: int = 0
    passing: int = 0
    now_pass: tuple[CaseKey, ...] = ()
    now_fail: tuple[CaseKey, ...] = ()


@dataclass(frozen=True)
class MetricRow:
    """A metric. `threshold` is None where it is not asked for, or has none that is a number.

    `why_not` says why it has no score here. One that is not `gates` is measured without being asked for. The
    `interval` of one that is `assumed` is only what ADK assumes, and does not bind.
    """

    name: str
    meaning: str
    asked: bool = False
    threshold: float | None = None
    saved: float | None = None
    interval: Interval | None = (0.0, 1.0)
    needs: tuple[str, ...] = ()
    why_not: str | None = None
    gates: bool = True
    ours: bool = False
    trial: Trial = Trial()
    assumed: bool = False
    lower_is_better: bool = False


@dataclass(frozen=True)
class OptionRow:
    """An option of a metric that is asked for; one that is not `given` has its default."""

    metric: str
    option: Option
    value: Any
    given: bool


@dataclass(frozen=True)
class RubricRow:
    metric: str
    index: int
    text: str


@dataclass(frozen=True)
class SettingRow:
    """`runs`, `pass_if` or `thoughts` of the `evaltui` block."""

    name: str
    value: Any
    given: bool
    meaning: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReferenceRow:
    """A mark on a turn or a rule; `dangling` says what it names that is not there, or why it says nothing."""

    block: str
    index: int
    text: str
    dangling: str | None


Row = MetricRow | OptionRow | RubricRow | SettingRow | ReferenceRow


@dataclass(frozen=True)
class Section:
    title: str
    rows: tuple[Row, ...]


_RUBRICS: JsonPath = ("rubrics",)
# Source: google-adk 2.13, the range of a custom metric without metric_info.
_ASSUMED: Interval = (0.0, 1.0)
_RUNS = "How often each case is run."
_PASS_IF = "How many runs of a case must pass: all, majority, or a share such as 0.6."
_THOUGHTS = "Whether thoughts count as text of the answer: ADK scores them, which is seldom meant."


class Criteria:
    """Of the sets of one folder: they share a config. Where it has none, ADK's defaults apply.

    Changes are unsaved until the files are saved; the first one makes the file where there is none.
    """

    def __init__(self, workbench: Workbench, set_path: Path) -> None:
        self._workbench = workbench
        self._set_path = set_path
        self.path = workbench.editing.config_path(set_path)

    # What there is

    @property
    def exists(self) -> bool:
        """Whether there is a config, on disk or unsaved."""
        return self._workbench.editing.draft(self.path) is not None or self.path.exists()

    @property
    def sets(self) -> list[SetEntry]:
        """The sets that the config applies to."""
        sets = self._workbench.sets
        config_of = self._workbench.editing.config_paths(entry.path for entry in sets)
        return [entry for entry in sets if config_of[entry.path] == self.path]

    def unreadable(self) -> str | None:
        """Why the config cannot be shown, as a sentence."""
        from evaltui.files.configs import unclear_config

        if not self.exists and (problem := unclear_config(self._set_path)):
            return str(problem)
        try:
            data = self._data()
        except (EvalSetError, OSError, ValueError) as error:
            return f"{self.path.name} cannot be read: {error}"
        return None if isinstance(data, dict) else f"{self.path.name} is not an object"

    def problems(self) -> list[Problem]:
        """What is wrong with the config as it is now."""
        from evaltui.core.model.validation import validate_config

        return validate_config(self._data())[1]

    def sections(self) -> list[Section]:
        """Everything that can be seen and changed. Raises what `unreadable` tells of."""
        config = self._data()
        scores = self._scores()
        asked = list(_asked(config))
        used: list[Row] = []
        for name in asked:
            used.append(self._metric(config, name, scores, asked=True))
            used += _options(config, name)
        known = dict.fromkeys((*_custom(config), *METRICS))
        others = [self._metric(config, name, scores, asked=False) for name in known if name not in asked]
        # What can be scored here comes first.
        others.sort(key=lambda row: row.why_not is not None)
        found = [
            Section("In use" if self.exists else "In use: the defaults of ADK", tuple(used)),
            Section("Not in use", tuple(others)),
            Section("Runs and verdicts", tuple(_settings(config))),
        ]
        problems = (*idle_rules(config, self._tools_of_sets()), *dangling(config, self._turns_of_sets()))
        wrong = {problem.path[:3]: problem.message for problem in problems}
        for block, title in (("turns", "Marks on turns"), ("rules", "Rules")):
            rows = tuple(
                ReferenceRow(block, index, _reference(entry), wrong.get(("evaltui", block, index)))
                for index, entry in dicts(list_at(config, ("evaltui", block)))
            )
            if rows:
                found.append(Section(title, rows))
        return found

    def _data(self) -> Any:
        config = self._workbench.editing.config_data(self._set_path)
        return json.loads(new_config_text()) if config is None else config

    def _saved_data(self) -> Any:
        """The config as it is on disk."""
        draft = self._workbench.editing.draft(self.path)
        if draft is None:
            return self._data()
        return {"criteria": DEFAULT_CRITERIA} if draft.saved_value is None else draft.saved_value

    def _turns_of_sets(self) -> dict[str, dict[str, int | None]]:
        return {entry.eval_set_id: {case.eval_id: case.turns for case in entry.cases} for entry in self.sets}

    def _tools_of_sets(self) -> dict[str, dict[str, tuple[str, ...]]]:
        return {entry.eval_set_id: {case.eval_id: case.tools for case in entry.cases} for entry in self.sets}

    def _metric(self, config: Any, name: str, scores: _Scores, *, asked: bool) -> MetricRow:
        info = METRICS.get(name)
        threshold = _threshold(config, name)
        saved = _threshold(self._saved_data(), name)
        lower = _is_own(config, name) and _is_lower_better(config, name)
        trial = _trial(scores.get(name, {}), threshold, saved, _pass_if(config), lower=lower)
        if _is_own(config, name):
            promised = _promised_interval(config, name)
            fits = threshold is None or _ASSUMED[0] <= threshold <= _ASSUMED[1]
            return MetricRow(
                name,
                _about_own(config, name),
                asked,
                threshold,
                saved,
                promised or (_ASSUMED if fits else None),
                ours=_short_form(config, name) is not None,
                trial=trial,
                assumed=promised is None,
                lower_is_better=lower,
            )
        if info is None:
            unknown = f"no metric is called so{did_you_mean(name, METRICS)}"
            if value_at(config, ("criteria", name, "function")) is not None:
                unknown = MISPLACED
            return MetricRow(name, "", asked, threshold, saved, why_not=unknown, trial=trial)
        return MetricRow(
            name,
            info.meaning,
            asked,
            threshold,
            saved,
            info.interval,
            info.needs,
            gates=info.gates,
            ours=info.source == "evaltui",
            trial=trial,
        )

    def _scores(self) -> _Scores:
        scores: dict[str, dict[CaseKey, list[float | None]]] = {}
        for entry in self.sets:
            for case in entry.cases:
                key = CaseKey(entry.path, case.eval_id)
                scored = self._workbench.results.get(key)
                for metrics in _runs(scored.result) if scored else ():
                    for metric in metrics:
                        scores.setdefault(metric.name, {}).setdefault(key, []).append(metric.score)
        return scores

    # Changes

    def add(self, row: Row) -> bool:
        """Ask for a metric that is not in use."""
        if not isinstance(row, MetricRow):
            return False
        first = DEFAULT_CRITERIA.get(row.name, _first_threshold(row))
        return self._do(f"add {row.name}", lambda config: add_metric(config, row.name, first))

    def add_rubric(self, metric: str, after: int, text: str) -> bool:
        """A rubric of a metric, behind the one with this index; -1 means before all."""

        def make(config: Any) -> list[Edit]:
            rubrics = _rubrics(config, metric)
            ids = {get(rubric, (), "rubric_id") for rubric in rubrics}
            new_id = next(name for number in count(1) if (name := f"rubric_{number}") not in ids)
            rubric = {"rubric_id": new_id, "rubric_content": {"text_property": text.strip()}}
            return set_option(
                config, metric, _RUBRICS, [*rubrics[: after + 1], rubric, *rubrics[after + 1 :]]
            )

        return self._do(f"add a rubric to {metric}", make)

    def remove(self, row: Row) -> bool:
        """Take out a metric, a rubric, a mark or a rule; of options and settings the default applies then."""
        match row:
            case MetricRow(name=name):
                return self._do(f"remove {name}", lambda config: remove_metric(config, name))
            case OptionRow(metric=metric, option=option):
                label = f"remove {option.name} of {metric}"
                return self._do(label, lambda config: set_option(config, metric, option.path, None))
            case RubricRow():
                return self._put_rubrics(f"remove a rubric of {row.metric}", row, None)
            case SettingRow(name=name):
                return self._do(f"remove {name}", lambda config: _without_setting(config, name))
            case ReferenceRow():
                label = "remove a mark" if row.block == "turns" else "remove a rule"
                return self._do(label, lambda config: remove_from_block(config, row.block, [row.index]))

    def move(self, row: Row, direction: int, *, far: bool = False) -> bool:
        """The next (1) or previous (-1) value: of a threshold by a step, of a choice the one beside it."""
        match row:
            case MetricRow(asked=True, threshold=float(threshold)):
                return self.set_threshold(row, _stepped(row, threshold, direction, far))
            case OptionRow(option=Option(kind="whole number")):
                return self._set(row, max(row.option.least or 0, int(row.value or 0) + direction))
            case OptionRow(option=Option(kind="flag")):
                return self._set(row, not row.value)
            case OptionRow(option=Option(kind="choice")):
                return self._set(row, _beside(row.option.choices, row.value, direction))
            case SettingRow(name="runs"):
                return self._set(row, max(1, int(row.value) + direction))
            case SettingRow():
                return self._set(row, _beside(row.choices, row.value, direction))
        return False

    def set_threshold(self, row: MetricRow, threshold: float) -> bool:
        return self._do(
            f"move the threshold of {row.name}",
            lambda config: set_threshold(config, row.name, threshold),
            typing=(self.path, "threshold", row.name),
        )

    def typed(self, row: Row) -> str | None:
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

    def check(self, row: Row, text: str) -> str | None:
        """Why a text is no value for a row, as a sentence."""
        try:
            _value(row, text)
        except ValueError as error:
            return str(error)
        return None

    def type(self, row: Row, text: str) -> bool:
        """Set a row to what was typed, which `check` has nothing against."""
        value = _value(row, text)
        if isinstance(row, MetricRow):
            label = f"set the threshold of {row.name}"
            return self._do(label, lambda config: set_threshold(config, row.name, value))
        if isinstance(row, RubricRow):
            return self._put_rubrics(f"edit a rubric of {row.metric}", row, value)
        return self._set(row, value)

    def _set(self, row: Row, value: Any) -> bool:
        match row:
            case OptionRow(metric=metric, option=option):
                return self._do(
                    f"set {option.name} of {metric}",
                    lambda config: set_option(config, metric, option.path, value),
                    typing=(self.path, metric, option.path),
                )
            case SettingRow(name=name):
                return self._do(
                    f"set {name}",
                    lambda config: _setting_edits(config, name, value),
                    typing=(self.path, name),
                )
        return False

    def _put_rubrics(self, label: str, row: RubricRow, text: str | None) -> bool:
        def make(config: Any) -> list[Edit]:
            rubrics = _rubrics(config, row.metric)
            if text is None:
                del rubrics[row.index]
            else:
                rubrics[row.index] = _with_text(rubrics[row.index], text)
            return set_option(config, row.metric, _RUBRICS, rubrics or None)

        return self._do(label, make)

    def _do(self, label: str, make: Callable[[Any], list[Edit]], *, typing: Hashable = None) -> bool:
        try:
            edits = make(self._data())
        except (EvalSetError, OSError, ValueError) as error:
            self._workbench.say(str(error))
            return False
        return bool(edits) and self._workbench.editing.do_edits(label, {self.path: edits}, typing=typing)


def _asked(config: Any) -> Iterator[str]:
    """The metrics that the config asks for, in the order in which they are scored."""
    names: dict[str, None] = {}
    for owner in (("criteria",), ("evaltui", "criteria")):
        holder = value_at(config, owner)
        names |= dict.fromkeys(holder if isinstance(holder, dict) else ())
    yield from names


def _criterion(config: Any, metric: str) -> Any:
    path = criterion_path(config, metric)
    return None if path is None else value_at(config, path)


def _threshold(config: Any, metric: str) -> float | None:
    criterion = _criterion(config, metric)
    value = criterion.get("threshold") if isinstance(criterion, dict) else criterion
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _custom(config: Any) -> Mapping[str, Any]:
    custom = get(config, (), "custom_metrics")
    return custom if isinstance(custom, dict) else {}


def _is_own(config: Any, name: str) -> bool:
    return name in _custom(config) or _short_form(config, name) is not None


def _short_form(config: Any, name: str) -> str | None:
    """The function of a metric in short form; None of any other."""
    function = value_at(config, ("evaltui", "criteria", name, "function"))
    return function if isinstance(function, str) else None


def _is_lower_better(config: Any, name: str) -> bool:
    return get(_criterion(config, name), (), "lower_is_better") is True


def _about_own(config: Any, name: str) -> str:
    if function := _short_form(config, name):
        return f"A metric of your own. Computed turn by turn by {function}."
    owner = (*place(config, (), "custom_metrics"), name)
    code = get(config, place(config, owner, "code_config"), "name")
    info = place(config, owner, "metric_info")
    said = get(config, info, "description") or get(config, owner, "description") or "A metric of your own."
    return f"{said} Computed by {code}."


def _promised_interval(config: Any, name: str) -> Interval | None:
    """The scores that the config says a metric of the user's may give."""
    interval: JsonPath = ("evaltui", "criteria", name, "interval")
    if _short_form(config, name) is None:
        owner = (*place(config, (), "custom_metrics"), name)
        values = place(config, place(config, owner, "metric_info"), "metric_value_info")
        interval = place(config, values, "interval")
    low, high = (get(config, interval, end) for end in ("min_value", "max_value"))
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        return None
    return float(low), float(high)


def _options(config: Any, metric: str) -> Iterator[OptionRow | RubricRow]:
    criterion = _criterion(config, metric)
    options = options_of(metric)
    if _is_own(config, metric):
        options = options_of_own(scores_turns=_short_form(config, metric) is not None)
    for option in options:
        value = _option_value(criterion, option)
        given = value is not None
        yield OptionRow(metric, option, value if given else option.default, given)
        if option.kind == "rubrics":
            for index, rubric in enumerate(_rubrics(config, metric)):
                text = get(rubric, place(rubric, (), "rubric_content"), "text_property")
                yield RubricRow(metric, index, text if isinstance(text, str) else "")


def _option_value(criterion: Any, option: Option) -> Any:
    path: JsonPath = ()
    for step in option.path:
        path = place(criterion, path, str(step))
    found = value_at(criterion, path)
    # The metric that looks for a single tool takes its name under another key as well.
    return get(criterion, (), "tool_name") if found is None and option.path == ("tool",) else found


def _rubrics(config: Any, metric: str) -> list[Any]:
    criterion = _criterion(config, metric)
    return list(list_at(criterion, place(criterion, (), "rubrics")))


def _with_text(rubric: Any, text: str) -> Any:
    if not isinstance(rubric, dict):
        return rubric
    content_key = place(rubric, (), "rubric_content")[-1]
    content = rubric.get(content_key)
    content = content if isinstance(content, dict) else {}
    text_key = place(rubric, (content_key,), "text_property")[-1]
    return {**rubric, content_key: {**content, text_key: text}}


def _settings(config: Any) -> Iterator[SettingRow]:
    repeats: JsonPath = ("evaltui", "repeats")
    runs = value_at(config, (*repeats, "runs"))
    pass_if = value_at(config, (*repeats, "pass_if"))
    thoughts = value_at(config, ("evaltui", "thoughts"))
    whole = isinstance(runs, int) and not isinstance(runs, bool)
    yield SettingRow("runs", runs if whole else 1, runs is not None, _RUNS)
    yield SettingRow(
        "pass_if",
        "all" if pass_if is None else pass_if,
        pass_if is not None,
        _PASS_IF,
        ("all", "majority"),
    )
    yield SettingRow("thoughts", thoughts or "ignore", thoughts is not None, _THOUGHTS, ("ignore", "score"))


def _setting_edits(config: Any, name: str, value: Any) -> list[Edit]:
    match name:
        case "runs":
            return set_repeats(config, runs=value)
        case "pass_if":
            return set_repeats(config, pass_if=value)
        case _:
            return set_thoughts(config, value)


def _without_setting(config: Any, name: str) -> list[Edit]:
    owner: JsonPath = ("evaltui",) if name == "thoughts" else ("evaltui", "repeats")
    holder = value_at(config, owner)
    if not isinstance(holder, dict) or name not in holder:
        return []
    return [Remove(owner if len(holder) == 1 and len(owner) > 1 else (*owner, name))]


def _reference(entry: Mapping[str, Any]) -> str:
    """A mark or a rule in words: `context  orders › late › turn 1`, `find query  regex a+  orders › late`."""
    what = str(entry["mode"]) if "mode" in entry else match_in_words(entry.get("match"))
    names = [str(entry[key]) for key in ("tool", "arg") if key in entry]
    places = [str(entry[key]) for key in ("set", "case") if key in entry]
    turn = entry.get("turn")
    places += [f"turn {turn + 1}"] if isinstance(turn, int) else []
    return "  ".join(part for part in (" ".join(names), what, " › ".join(places)) if part)


# Thresholds tried on what was scored


def _runs(result: CaseResult) -> list[Sequence[Any]]:
    return [repeat.metrics for repeat in result.repeats] or [result.metrics]


def _pass_if(config: Any) -> PassIf:
    value = value_at(config, ("evaltui", "repeats", "pass_if"))
    if value == "majority":
        return "majority"
    is_share = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
    return float(value) if is_share else "all"


def _trial(
    scores: Mapping[CaseKey, Sequence[float | None]],
    threshold: float | None,
    saved: float | None,
    pass_if: PassIf,
    *,
    lower: bool,
) -> Trial:
    scored = {key: runs for key, runs in scores.items() if any(score is not None for score in runs)}
    if not scored:
        return Trial()
    every = [score for runs in scored.values() for score in runs if score is not None]
    mean = math.fsum(every) / len(every)
    if threshold is None:
        return Trial(mean, len(scored))
    now = {key for key, runs in scored.items() if _passes(runs, threshold, pass_if, lower=lower)}
    before = now
    if saved is not None and saved != threshold:
        before = {key for key, runs in scored.items() if _passes(runs, saved, pass_if, lower=lower)}
    return Trial(
        mean,
        len(scored),
        len(now),
        tuple(key for key in scored if key in now and key not in before),
        tuple(key for key in scored if key in before and key not in now),
    )


def _passes(runs: Sequence[float | None], threshold: float, pass_if: PassIf, *, lower: bool) -> bool:
    passed = [score is not None and (score <= threshold if lower else score >= threshold) for score in runs]
    if len(passed) == 1:
        return passed[0]
    repeats = [RepeatResult(Status.PASSED if one else Status.FAILED) for one in passed]
    return case_over_repeats("", "", repeats, pass_if).policy_met


# Values


def _first_threshold(row: MetricRow) -> float:
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


def _stepped(row: MetricRow, threshold: float, direction: int, far: bool) -> float:
    step = steps_of(row.interval)[far]
    moved = round(threshold + direction * step, 4)
    low, high = row.interval or (-math.inf if row.assumed else 0.0, math.inf)
    # What is outside already is brought back, not moved further.
    return min(max(moved, low), high)


def _beside(choices: Sequence[str], value: Any, direction: int) -> str:
    here = choices.index(value) if value in choices else -1 if direction > 0 else 0
    return choices[(here + direction) % len(choices)]


def _value(row: Row, text: str) -> Any:
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
            number = _number(text, "must be all, majority, or a share such as 0.6")
            if not 0 < number <= 1:
                raise ValueError("a share must be above 0 and at most 1")
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
