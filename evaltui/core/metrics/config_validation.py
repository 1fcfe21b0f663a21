"""Problems in the data of a config, as sentences with paths.

Errors: anything that google-adk 2.13 refuses, thresholds outside of the range of scores, and criteria that no
metric can be computed by. Warnings: anything that it accepts silently but that has no effect. Paths have the
spelling of the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.metrics.judges.judge import judge_options
from evaltui.core.metrics.metric import CriterionError, effective_threshold
from evaltui.core.metrics.registry import METRICS, RUBRIC_TYPES, info_of, is_own
from evaltui.core.metrics.requirements import Facts, unmet_by_metric
from evaltui.core.model.config import (
    BaseCriterion,
    CustomMetricConfig,
    EvalConfig,
    EvalMetric,
    Interval,
    OwnCriterion,
)
from evaltui.core.model.json_values import (
    camel,
    field_of,
    indexed_objects,
    list_at,
    object_or_empty,
    spelled_path,
    spelling_in,
    spelling_pairs,
    value_at,
    values_in,
)
from evaltui.core.model.model_errors import spellings, validate_model
from evaltui.core.model.problems import (
    DANGLING_REFERENCE,
    DUPLICATE_KEY,
    INVALID_VALUE,
    UNKNOWN_KEY,
    Finding,
    JsonPath,
    LintRule,
    Problem,
    duplicate_key_text,
    has_error,
    likely_typos,
    problems_of,
    unknown_keys,
)
from evaltui.text.values import did_you_mean


class ModelEnd(NamedTuple):
    """The announced end of models."""

    names: tuple[str, ...]
    end: str
    """Day of the end, `2026-12-01`."""
    successor: str
    """The model that the source names instead; "" where it names none."""
    source: str
    read: str
    """Day of what the source says."""


_GOOGLE = "ai.google.dev/gemini-api/docs/deprecations"
_FIREBASE = "firebase.google.com/docs/ai-logic/locations"
_OPENAI = "developers.openai.com/api/docs/deprecations"
_CLAUDE = "platform.claude.com/docs/en/release-notes/overview"
# Of a page of its provider that could not be read itself, the page that quotes it.
_QUOTED = "dev.to/aideprecations"

MODEL_ENDS = (
    ModelEnd(("gemini-2.5-flash",), "2026-12-01", "gemini-3.5-flash-lite", _QUOTED, "2026-11-10"),
    ModelEnd(("gemini-2.5-pro",), "2026-12-01", "gemini-3.8-flash", _QUOTED, "2026-11-10"),
    ModelEnd(
        (
            "gemini-2.0-flash",
            "gemini-2.0-flash-001",
            "gemini-2.0-flash-lite",
            "gemini-2.0-flash-lite-001",
        ),
        "2026-06-01",
        "gemini-3.1-flash-lite",
        _FIREBASE,
        "2026-06-18",
    ),
    ModelEnd(("gemini-3-pro-preview",), "2026-03-09", "gemini-3.1-pro-preview", _GOOGLE, "2026-11-30"),
    ModelEnd(
        ("gemini-2.5-pro-preview-03-25", "gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview-06-05"),
        "2025-12-02",
        "gemini-3.1-pro-preview",
        _GOOGLE,
        "2026-11-30",
    ),
    ModelEnd(("gpt-5", "gpt-5-2025-08-07"), "2026-12-11", "gpt-6.1-sol", _OPENAI, "2026-11-30"),
    ModelEnd(("gpt-5-mini", "gpt-5-mini-2025-08-07"), "2026-12-11", "gpt-6.1-terra", _OPENAI, "2026-11-30"),
    ModelEnd(("gpt-5-nano", "gpt-5-nano-2025-08-07"), "2026-12-11", "", _OPENAI, "2026-11-30"),
    ModelEnd(("claude-sonnet-4-20250514",), "2026-06-15", "claude-sonnet-4-6", _CLAUDE, "2026-06-17"),
    ModelEnd(("claude-opus-4-20250514",), "2026-06-15", "claude-opus-4-8", _CLAUDE, "2026-06-17"),
)


def end_of(model: str) -> ModelEnd | None:
    """The announced end of a model; None where none is known."""
    name = model.removeprefix("models/").lower()
    return next((row for row in MODEL_ENDS if name in row.names), None)


_DIRECTION_KEYS = ("lower_is_better", "lowerIsBetter")
_NO_CRITERION = "is not a criterion, so it is not computed; add it to criteria with a threshold"
_NOT_IN_ADK = "google-adk has no such metric and refuses the config; write it under evaltui.criteria"
_IGNORED_DIRECTION = "allowed for custom metrics only; higher is better for this metric"

# Results beside those of metrics; another one of the same name could not be told apart.
_OTHER_RESULTS = (
    *("answer_rules", "conversation", "conversation_scenario", "eval_case", "final_session_state"),
    "live_model_config",
)

UNUSABLE_CRITERION = LintRule(
    "unusable-criterion", "A criterion cannot be evaluated as it is written", blocks=True
)
UNREACHABLE_THRESHOLD = LintRule(
    "unreachable-threshold", "A threshold is outside of its metric's range", blocks=True
)
NO_METRIC = LintRule("no-metric", "A config names no metric", blocks=False)
IGNORED_SETTING = LintRule(
    "ignored-setting", "A criterion or a setting of a metric is ignored, or refused by ADK", blocks=False
)

# A machine that lacks nothing: a metric that cannot run there has a mistake in its criterion.
_FACTS = Facts(GeminiAccess(serves_other_names=True), has_module=lambda module: True)


def validate_config(data: Any) -> tuple[EvalConfig | None, list[Problem]]:
    """The config in parsed JSON of a `test_config.json`, None for errors; and all problems."""
    config, problems = validate_model(EvalConfig, data)
    problems = [_placed_better(problem) for problem in problems]
    if isinstance(data, dict):
        refused = {problem.path for problem in problems}
        problems += [problem for problem in problems_of("config data", data) if problem.path not in refused]
    if config is not None:
        problems += [
            replace(problem, path=spelled_path(problem.path, data))
            for problem in problems_of("config", config)
        ]
    return None if has_error(problems) else config, [_named_for_the_block(problem) for problem in problems]


@INVALID_VALUE.checks("config data")
def _misspelt_keys(data: dict[str, Any]) -> Iterator[Finding]:
    """Keys of a config under another name, such as `criterias`: what they say would not count."""
    yield from likely_typos(data, spellings(EvalConfig))


@UNKNOWN_KEY.checks("config data")
def _unknown_keys(data: dict[str, Any]) -> Iterator[Finding]:
    yield from unknown_keys(data, spellings(EvalConfig), errors=_misspelt_keys(data))
    key = spelling_in("custom_metrics", data)
    for name, metric in object_or_empty(data.get(key)).items():
        if isinstance(metric, dict):
            yield from unknown_keys(metric, spellings(CustomMetricConfig), (key, name))


@DUPLICATE_KEY.checks("config data")
def _given_twice(data: Any) -> Iterator[Finding]:
    """Keys of the config, of its block and of criteria that stand beside their other spelling."""
    for path in ((), ("evaltui",)):
        block = value_at(data, path)
        if isinstance(block, dict):
            yield from _double_spellings(block, path)
            for key in ("user_simulator_config", "userSimulatorConfig"):
                yield from _nested_double_spellings(block.get(key), (*path, key))
            for key in ("criteria", "custom_metrics", "customMetrics"):
                for name, metric in object_or_empty(block.get(key)).items():
                    yield from _nested_double_spellings(metric, (*path, key, name))


@DUPLICATE_KEY.checks("config")
def _contradictory_marks(config: EvalConfig) -> Iterator[Finding]:
    """Marks on a turn that a later mark has otherwise."""
    last = {(mark.set, mark.case, mark.turn): mark.mode for mark in config.evaltui.turns}
    for index, mark in enumerate(config.evaltui.turns):
        if (mode := last[mark.set, mark.case, mark.turn]) != mark.mode:
            yield ("evaltui", "turns", index, "mode"), f"a later mark says {mode} for this turn; remove one"


def _nested_double_spellings(data: Any, path: JsonPath) -> Iterator[Finding]:
    for place, value in values_in(data, path):
        if isinstance(value, dict):
            yield from _double_spellings(value, place)


def _double_spellings(data: dict[str, Any], path: JsonPath) -> Iterator[Finding]:
    twice = (key for key in data if camel(key) != key and camel(key) in data)
    return (((*path, key), duplicate_key_text(camel(key))) for key in twice)


def _path_of(config: EvalConfig, metric: EvalMetric) -> JsonPath:
    """The path of the criterion that applies to a metric."""
    name = metric.metric_name
    block: JsonPath = ("evaltui",) if name in config.evaltui.criteria else ()
    return (*block, "criteria", name)


@NO_METRIC.checks("config")
def _no_metric(config: EvalConfig) -> Iterator[Finding]:
    if not config.metrics() and not config.evaltui.answers:
        yield (), "names no metric, so only final session states are scored"


@UNUSABLE_CRITERION.checks("config")
def _unusable(config: EvalConfig) -> Iterator[Finding]:
    """The metrics that are unknown, and those that cannot be computed by their criterion."""
    for metric in config.metrics():
        name, function = metric.metric_name, metric.custom_function_path
        if name in _OTHER_RESULTS and (function is not None or metric.definition is not None):
            yield _path_of(config, metric), f"{name} is a result of evaltui itself; choose another name"
        if metric.not_evaluated:
            continue
        if unmet := unmet_by_metric(metric, config, _FACTS, recorded=True):
            why = ". ".join(part for part in (unmet.why.removeprefix(f"{name}: "), unmet.fix) if part)
            path = _path_of(config, metric)
            yield (path if function is None else ("custom_metrics", name, "code_config", "name")), why


@UNUSABLE_CRITERION.checks("config")
def _other_direction(config: EvalConfig) -> Iterator[Finding]:
    """Criteria of evaltui whose metric does not read `lower_is_better`: its verdicts would be inverted."""
    for metric in config.metrics():
        criterion = config.evaltui.criteria.get(metric.metric_name)
        is_lower = isinstance(criterion, OwnCriterion) and criterion.lower_is_better
        if is_lower and not metric.takes_direction and not info_of(metric.metric_name).lower_is_better:
            yield ("evaltui", "criteria", metric.metric_name, "lower_is_better"), _IGNORED_DIRECTION


ENDING_MODEL = LintRule("ending-model", "A config names a model whose end is announced", blocks=False)


@ENDING_MODEL.checks("config")
def _ending_models(config: EvalConfig) -> Iterator[Finding]:
    """The models in the config whose end is announced; ADK's default models are not checked."""
    for path, model in _named_models(config):
        if (row := end_of(model)) is not None:
            instead = f", successor {row.successor}" if row.successor else ""
            source = f"{row.source}, {row.read}"
            yield path, f"{model}: announced end {row.end}{instead} ({source}). Name another model"


def _named_models(config: EvalConfig) -> Iterator[tuple[JsonPath, str]]:
    simulator = config.user_simulator_config
    if simulator is not None and "model" in simulator.model_fields_set:
        yield ("user_simulator_config", "model"), simulator.model
    for metric in config.metrics():
        with suppress(CriterionError):
            options = judge_options(metric)
            if "judge_model" in options.model_fields_set:
                path = *_path_of(config, metric), "judge_model_options", "judge_model"
                yield path, options.judge_model


@UNKNOWN_KEY.checks("config")
def _unknown_options(config: EvalConfig) -> Iterator[Finding]:
    """Unknown keys of criteria and of the simulated user's settings; custom functions may read any key."""
    for metric in config.metrics():
        criterion, name = metric.criterion, metric.metric_name
        if criterion is None or not criterion.model_extra:
            continue
        names = [*type(criterion).model_fields, *(str(option.path[0]) for option in info_of(name).options)]
        is_own = metric.custom_function_path is not None or name not in METRICS
        unknown = likely_typos if is_own else unknown_keys
        keys = dict.fromkeys(criterion.model_fields_set) | criterion.model_extra
        yield from unknown(keys, spelling_pairs(names), _path_of(config, metric))
    if (simulator := config.user_simulator_config) is not None:
        fields = spelling_pairs(type(simulator).model_fields)
        yield from unknown_keys(dict.fromkeys(simulator.model_fields_set), fields, ("user_simulator_config",))


@DANGLING_REFERENCE.checks("config")
def _of_optional(config: EvalConfig) -> Iterator[Finding]:
    metric_names = [metric.metric_name for metric in config.metrics()]
    for number, name in enumerate(config.evaltui.optional):
        if name not in metric_names:
            path = ("evaltui", "optional", number)
            yield path, f"{name!r} is not a criterion{did_you_mean(name, metric_names)}"


def _named_for_the_block(problem: Problem) -> Problem:
    if problem.path[:1] != ("evaltui",) or not problem.message.startswith("unknown key"):
        return problem
    message = problem.message.replace("unknown key", "not known to this version of evaltui", 1)
    return replace(problem, message=message)


def _placed_better(problem: Problem) -> Problem:
    if problem.path[:1] != ("custom_metrics",) or problem.path[-1] not in _DIRECTION_KEYS:
        return problem
    where = f"beside the threshold of {problem.path[1]}, under criteria"
    return replace(problem, message=f"google-adk refuses it here; write it {where}")


@UNREACHABLE_THRESHOLD.checks("config")
def outside_of_range(config: EvalConfig) -> Iterator[tuple[JsonPath, str]]:
    """Thresholds outside of the range of their metric's scores: the path and the reason as a sentence."""
    for metric in config.metrics():
        if why := _outside_reason(metric):
            yield _path_of(config, metric), why


def _outside_reason(metric: EvalMetric) -> str:
    threshold, interval = effective_threshold(metric), _interval(metric)
    if threshold is None:
        return ""
    if interval is None or interval.min_value > interval.max_value:
        return f"its threshold, {threshold:g}, is below 0" if threshold < 0 else ""
    if interval.holds(threshold):
        return ""
    return f"its threshold, {threshold:g}, is outside of its range, {interval}"


def _interval(metric: EvalMetric) -> Interval | None:
    """The range of a metric's scores; None where it is unknown."""
    if metric.custom_function_path:
        return metric.interval
    info = METRICS.get(metric.metric_name)
    if info is None or info.interval is None:
        return None
    return Interval(min_value=info.interval[0], max_value=info.interval[1])


@IGNORED_SETTING.checks("config")
def _misplaced(config: EvalConfig) -> Iterator[Finding]:
    custom = config.custom_metrics or {}
    for name, criterion in config.criteria.items():
        if is_own(name) and name not in custom and name not in config.evaltui.criteria:
            yield ("criteria", name), _NOT_IN_ADK
        elif isinstance(criterion, BaseCriterion) and name not in custom and criterion.lower_is_better:
            # A key that google-adk ignores.
            yield ("criteria", name, "lower_is_better"), _IGNORED_DIRECTION
    for name, criterion in config.evaltui.criteria.items():
        path: JsonPath = ("evaltui", "criteria", name)
        if name in config.criteria:
            yield ("criteria", name), "ignored: evaltui.criteria has it, too. Remove one"
        if not isinstance(criterion, OwnCriterion):
            continue
        if criterion.function is not None and name in custom:
            yield (*path, "function"), f"custom_metrics has a {name} too; this one counts"
        if criterion.interval is not None and criterion.function is None:
            yield (*path, "interval"), "is for metrics that name their function here, and this one does not"


@IGNORED_SETTING.checks("config")
def _of_custom_metrics(config: EvalConfig) -> Iterator[Finding]:
    for name, custom in (config.custom_metrics or {}).items():
        path: JsonPath = ("custom_metrics", name)
        if name not in config.criteria and name not in config.evaltui.criteria:
            yield path, _NO_CRITERION
        info = custom.metric_info
        if info is not None and info.metric_name != name:
            where = (*path, "metric_info", "metric_name")
            yield where, f"is {info.metric_name!r}, but the metric is called {name!r}"


@IGNORED_SETTING.checks("config")
def _thresholds_that_every_score_reaches(config: EvalConfig) -> Iterator[Finding]:
    """Thresholds at the lowest score of a range above 0, such as 1 of 1 to 5."""
    for metric in config.metrics():
        interval, threshold = _interval(metric), effective_threshold(metric)
        if interval and threshold == interval.min_value > 0 and not metric.lower_is_better:
            yield (
                _path_of(config, metric),
                f"every score from {interval} reaches its threshold, {threshold:g}",
            )


@IGNORED_SETTING.checks("config")
def _settings_of_models(config: EvalConfig) -> Iterator[Finding]:
    """Settings of a model for a judge that is a function."""
    for metric in config.metrics():
        with suppress(CriterionError):
            options = judge_options(metric)
            if ":" in options.judge_model and "judge_model_config" in options.model_fields_set:
                path = *_path_of(config, metric), "judge_model_options", "judge_model_config"
                yield path, f"ignored for {metric.metric_name}: {options.judge_model} gets the prompt alone"


@IGNORED_SETTING.checks("config")
def _checks_of_context(config: EvalConfig) -> Iterator[Finding]:
    """Checks of the response of a turn whose mark says that it is not scored."""
    context = {(mark.set, mark.case, mark.turn) for mark in config.evaltui.turns if mark.mode == "context"}
    for index, rule in enumerate(config.evaltui.answers):
        if (rule.set, rule.case, rule.turn) in context:
            yield (
                ("evaltui", "answers", index, "turn"),
                "not checked: evaltui.turns marks this turn as context",
            )


@IGNORED_SETTING.checks("config")
def _empty_intervals(config: EvalConfig) -> Iterator[Finding]:
    """Intervals that contain no score."""
    for metric in config.metrics():
        interval, name = metric.interval, metric.metric_name
        if interval is None:
            continue
        place: JsonPath = ("evaltui", "criteria", name, "interval")
        if not metric.scores_turns:
            place = ("custom_metrics", name, "metric_info", "metric_value_info", "interval")
        if interval.min_value > interval.max_value:
            yield place, f"no score is {interval}: min_value is greater than max_value"


# Source: google-adk 2.13 names it as an example, and has no metric for it.
_UNJUDGED_TYPE = "INSTRUCTION_ADHERENCE"


UNKNOWN_RUBRIC_TYPE = LintRule("unknown-rubric-type", "A rubric has an unknown type", blocks=True)
EMPTY_RUBRIC = LintRule("empty-rubric", "A rubric of a case has no text", blocks=True)
UNJUDGED_RUBRIC = LintRule("unjudged-rubric", "No criterion judges a rubric", blocks=False)


def rubric_problems(case: Mapping[str, Any], config: EvalConfig) -> list[Problem]:
    """The problems of a case's rubrics, as JSON data, under a config; paths are relative to the case."""
    return problems_of("case with rubrics", case, config)


@UNKNOWN_RUBRIC_TYPE.checks("case with rubrics")
def _unknown_types(case: Mapping[str, Any], config: EvalConfig) -> Iterator[Finding]:
    for path, kind in _unjudged_places(case, config):
        if _is_unknown(kind):
            hint = did_you_mean(kind.strip().upper(), RUBRIC_TYPES.values())
            types = ", ".join(RUBRIC_TYPES.values())
            yield (*path, "type"), f"unknown rubric type {kind!r}{hint or f'; types: {types}'}"


@EMPTY_RUBRIC.checks("case with rubrics")
def _without_text(case: Mapping[str, Any], config: EvalConfig) -> Iterator[Finding]:
    del config
    for path, rubric in _rubrics(case):
        text = field_of(field_of(rubric, "rubric_content"), "text_property")
        if text is None or not str(text).strip():
            content = spelling_in("rubric_content", rubric)
            yield (*path, content), "has no text; describe the requirement in its text_property"


@UNJUDGED_RUBRIC.checks("case with rubrics")
def _not_judged(case: Mapping[str, Any], config: EvalConfig) -> Iterator[Finding]:
    for path, kind in _unjudged_places(case, config):
        if not _is_unknown(kind):
            of_type = f"of type {kind}" if kind else "without a type"
            yield path, f"not judged: no criterion of the config is for rubrics {of_type}"


def _is_unknown(kind: str) -> bool:
    return bool(kind) and kind not in (*RUBRIC_TYPES.values(), _UNJUDGED_TYPE)


def _unjudged_places(case: Mapping[str, Any], config: EvalConfig) -> Iterator[tuple[JsonPath, str]]:
    """Paths and types of rubrics that no metric judges; none if there are custom functions, which may read
    any rubric."""
    metrics = config.metrics()
    if any(metric.custom_function_path is not None for metric in metrics):
        return
    judged = {
        RUBRIC_TYPES[name] for name in (metric.metric_name for metric in metrics) if name in RUBRIC_TYPES
    }
    for path, rubric in _rubrics(case):
        kind = rubric.get("type") or ""
        if not (kind in judged or (not kind and judged)):
            yield path, kind


def _rubrics(case: Mapping[str, Any]) -> Iterator[tuple[JsonPath, Mapping[str, Any]]]:
    conversation = spelling_in("conversation", case)
    owners: list[tuple[JsonPath, Any]] = [((), case)]
    owners += [
        ((conversation, number), turn) for number, turn in indexed_objects(list_at(case, (conversation,)))
    ]
    for path, owner in owners:
        for index, rubric in indexed_objects(list_at(owner, ("rubrics",))):
            yield (*path, "rubrics", index), rubric
