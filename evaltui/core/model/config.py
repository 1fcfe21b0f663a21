"""ADK's eval config (`test_config.json`), with the `evaltui` block that ADK ignores."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
)
from pydantic.alias_generators import to_camel, to_snake
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from .adk_defaults import default_models
from .answer_rule import AnswerRule
from .arg_rule import ArgRule
from .base_model import DataModel
from .json_values import field_of
from .modes import ToolMode, TurnMode
from .placeholders import placeholders
from .tags import TAG_PATTERN, tag_problem, tags_by_case

_REQUIRED_NAMES = ("stop_signal", "conversation_plan", "conversation_history")
_AUDIO_REFUSAL = (
    'user_simulator_config has type "llm_audio", which evaltui does not support; use "type": "llm_backed"'
)


_SimulatorType = Literal["llm_backed", "llm_audio"]


class SimulatorConfig(DataModel):
    """The simulated user of scenarios. Unknown keys are kept, as in ADK."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    type: _SimulatorType = "llm_backed"
    """`llm_audio` is not supported."""
    model: StrictStr = default_models().simulated_user
    """One that google-genai reaches, or `module:callable`, a function of the user's from prompt to answer.
    By default that of the installed google-adk."""
    model_configuration: dict[str, Any] = Field(
        default_factory=lambda: {"thinking_config": {"include_thoughts": True, "thinking_budget": 10240}}
    )
    """A GenerateContentConfig as JSON."""
    max_allowed_invocations: int = 20
    """Maximum number of turns, the starting prompt included; a negative number means no limit."""
    custom_instructions: StrictStr | None = None
    """A prompt in place of the built-in one, with the same placeholders."""
    include_function_calls: bool = False
    """Whether the simulated user sees the calls of the agent."""

    @field_validator("type", mode="before", json_schema_input_type=_SimulatorType | None)
    @classmethod
    def _absent_type(cls, value: Any) -> Any:
        return "llm_backed" if value is None else value

    @field_validator("custom_instructions")
    @classmethod
    def _complete(cls, value: str | None) -> str | None:
        if value is not None and (
            missing := [name for name in _REQUIRED_NAMES if name not in placeholders(value)]
        ):
            raise ValueError(f"must contain {', '.join(f'{{{{ {name} }}}}' for name in missing)}")
        return value

    @property
    def refusal(self) -> str | None:
        """Why evaltui does not support such a user; None where it does."""
        return _AUDIO_REFUSAL if self.type == "llm_audio" else None


# Source: google-adk 2.13, what applies where no config file is found.
DEFAULT_CRITERIA: dict[str, float] = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}


class _Camel(DataModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _Strict(DataModel):
    model_config = ConfigDict(extra="forbid")


def _no_truth_value(value: Any) -> Any:
    # As a number, true would be 1 and false 0, which every score reaches.
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "is not a number")
    return value


# What pydantic takes for a number in quotes, about so.
_QuotedNumber = Annotated[str, Field(pattern=r"^\s*[+-]?\.?\d")]
Threshold = Annotated[
    float,
    BeforeValidator(_no_truth_value, json_schema_input_type=StrictFloat | _QuotedNumber),
    Field(allow_inf_nan=False),
]


class BaseCriterion(_Camel):
    """A threshold with further keys for the metric. Unknown keys are kept, as in ADK."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    threshold: Threshold
    """The lowest passing score."""
    include_intermediate_responses_in_final: bool = False
    """Whether texts before the answer are judged with it."""
    lower_is_better: bool = False
    """A key of evaltui: the threshold is the highest passing score.

    ADK passes it to custom functions, which give their own verdict, and so does evaltui.
    """


class Interval(_Camel, _Strict):
    """The possible scores of a metric."""

    min_value: float
    open_at_min: bool = False
    """Whether `min_value` itself is outside."""
    max_value: float
    open_at_max: bool = False
    """Whether `max_value` itself is outside."""

    def holds(self, score: float) -> bool:
        """Whether a score is in the interval; rounding errors at the ends are allowed."""
        if (self.open_at_min and score <= self.min_value) or (self.open_at_max and score >= self.max_value):
            return False
        return self.min_value - _ROUNDING <= score <= self.max_value + _ROUNDING

    def __str__(self) -> str:
        least = f"above {self.min_value:g}" if self.open_at_min else f"{self.min_value:g}"
        greatest = f"below {self.max_value:g}" if self.open_at_max else f"{self.max_value:g}"
        return f"{least} to {greatest}"


_ROUNDING = 1e-9


def criterion_data(criterion: Any) -> Any:
    """JSON data of a criterion that is an object of a class; other criteria unchanged."""
    if not isinstance(criterion, BaseModel) or type(criterion) in (BaseCriterion, OwnCriterion):
        return criterion
    return criterion.model_dump(mode="json", exclude_none=True, exclude_unset=True)


class OwnCriterion(BaseCriterion):
    """A criterion of a metric that ADK does not have."""

    function: StrictStr | None = None
    """The path of a custom function that scores one turn, called as `function(actual, expected, criterion)`;
    None for evaltui's own metrics."""
    interval: Interval | None = None
    """The possible scores."""

    @field_validator("function")
    @classmethod
    def _is_path(cls, value: str | None) -> str | None:
        if value is not None and not value.rpartition(".")[0]:
            raise ValueError(f"{value!r} is not the path of a function, such as my_agent.metrics.my_metric")
        return value


class DefinedMetric(_Strict):
    """A metric that a config of agents-cli runs: a function, a prompt of a judge, else a built-in metric."""

    not_evaluated: str = ""
    """Why evaltui does not evaluate it; "" where it does."""
    source: str = ""
    """Python code of the config that defines `evaluate(instance)`; "" for no such code."""
    file: str = ""
    """The path of the file with the code: of one of its own, or of the config, where lines of the code are
    lines of the config. "" for none."""
    first_line: int = 1
    """The line of `file` on which the code begins."""
    place: str = ""
    """The place of the code or of the prompt, as a reader of the config finds it: `eval_config.yaml:12`."""
    prompt_template: str = ""
    """The prompt of a judge, with `{placeholders}`; "" for no judge."""
    judge_model_options: dict[str, Any] = Field(default_factory=dict)
    """The judge, as a criterion has it."""

    @property
    def is_function(self) -> bool:
        """Whether code of the user's computes it."""
        return bool(self.source or self.file) and not self.prompt_template

    @property
    def anywhere(self) -> DefinedMetric:
        """The definition without paths of this machine, and lines that change with others."""
        file = self.place if self.is_function and not self.source else ""
        return self.model_copy(update={"file": file, "first_line": 1})

    @property
    def meaning(self) -> dict[str, Any]:
        """The parts that its scores depend on, as JSON; a function in a file by its name."""
        names = {"source", "prompt_template", "judge_model_options"}
        is_file = self.is_function and not self.source
        return self.model_dump(exclude_defaults=True, include={*names, *(["place"] if is_file else [])})


class EvalMetric(_Camel):
    """A metric in use, in the form that custom metric functions receive."""

    metric_name: StrictStr
    threshold: float | None = None
    """The threshold; None for a metric without a verdict."""
    criterion: BaseCriterion | None = None
    """The criterion, with the options of the metric in the config."""
    custom_function_path: str | None = None
    """`module.function` of a custom metric; None for a built-in one."""
    # ADK has no such field in what functions receive.
    interval: Interval | None = Field(default=None, exclude=True)
    """The possible scores, if the config has them."""
    definition: DefinedMetric | None = Field(default=None, exclude=True)
    """The metric as a config of agents-cli defines it; None for every other metric."""

    @property
    def is_defined(self) -> bool:
        """Whether the config defines it, as a custom function or as in a config of agents-cli."""
        return self.custom_function_path is not None or self.definition is not None

    @property
    def not_evaluated(self) -> str:
        """Why evaltui does not evaluate a metric of another program; "" for every other metric."""
        return self.definition.not_evaluated if self.definition else ""

    @property
    def prompt_template(self) -> str:
        """The prompt of its judge, where a config of agents-cli has it; "" for every other metric."""
        return self.definition.prompt_template if self.definition else ""

    @property
    def is_informational(self) -> bool:
        """Whether its score has no verdict: agents-cli has no thresholds, and evaltui was given none."""
        return self.definition is not None and self.threshold is None

    @property
    def scores_turns(self) -> bool:
        """Whether its function is in short form, which scores one turn at a time."""
        return isinstance(self.criterion, OwnCriterion) and self.criterion.function is not None

    @property
    def takes_direction(self) -> bool:
        """Whether its criterion says if lower scores are better: a function or a judge of the user's."""
        return bool(self.prompt_template) or self.custom_function_path is not None

    @property
    def lower_is_better(self) -> bool:
        return self.takes_direction and self.criterion is not None and self.criterion.lower_is_better


class CodeConfig(_Strict):
    name: StrictStr
    """The path of the function, `module.function`."""


class MetricValueInfo(_Camel, _Strict):
    interval: Interval | None = None


class MetricInfo(_Camel, _Strict):
    metric_name: StrictStr
    description: str | None = None
    metric_value_info: MetricValueInfo
    requires_threshold: bool = True


class CustomMetricConfig(_Camel):
    """A custom metric in ADK's form."""

    code_config: CodeConfig
    metric_info: MetricInfo | None = None
    """The possible scores; None where the config does not have them."""
    description: str = ""


class TurnMark(_Strict):
    """A mark on a turn."""

    set: StrictStr
    """The id of its set."""
    case: StrictStr
    """The id of its case."""
    turn: Annotated[StrictInt, Field(ge=0)]
    """Counted from 0."""
    mode: TurnMode
    """`context`: run, not scored. `skip`: calls are not checked."""


def _is_tag(value: str) -> str:
    if problem := tag_problem(value):
        raise ValueError(problem)
    return value


Tag = Annotated[StrictStr, AfterValidator(_is_tag), Field(json_schema_extra={"pattern": TAG_PATTERN})]


class TaggedCase(_Strict):
    """The tags of a case."""

    set: StrictStr
    """The id of its set."""
    case: StrictStr
    """The id of the case."""
    tags: list[Tag]
    """Tags by which the case can be selected, and is counted in reports."""


class MeantChange(_Strict):
    """A change of a recorded conversation that the case need not notice."""

    set: StrictStr
    """The id of its set."""
    case: StrictStr
    """The id of its case."""
    turn: Annotated[StrictInt, Field(ge=0)] | None = None
    """Counted from 0; None for the final state."""
    kind: StrictStr
    """The kind of change, as `evaltui gaps` names it."""
    digest: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{12}$")]
    """Digest of the kind, and of the changed part as it was recorded and as it was changed."""


class ImportedSource(_Strict):
    """A file of another tool whose rows or tests are cases of a set."""

    source: StrictStr
    """The path of the file, relative to the folder of the config."""
    set: StrictStr
    """The id of the set."""
    map: dict[StrictStr, StrictStr | list[StrictStr]] = Field(default_factory=dict)
    """Paths of rows by field of a case; empty for a suite, which needs none."""
    cases: dict[StrictStr, StrictStr] = Field(default_factory=dict)
    """Digests of the cases as they were imported, by case id."""


_Share = Annotated[float, BeforeValidator(_no_truth_value, json_schema_input_type=float), Field(gt=0, le=1)]
PassIf = Literal["all", "majority"] | _Share


class Repeats(_Strict):
    """The number of runs of each case, and the policy over them."""

    runs: Annotated[StrictInt, Field(ge=1)] = 1
    """Number of runs of each case."""
    pass_if: PassIf = "all"
    """The pass policy for a case whose runs differ: all pass, most pass, or a minimum share."""


def _no_text(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise PydanticCustomError("float_type", "is not a number")
    return value


Rate = Annotated[
    float,
    BeforeValidator(_no_text, json_schema_input_type=StrictFloat),
    Field(ge=0, allow_inf_nan=False),
]


class OwnPrice(_Strict):
    """Price of a model, in US dollars per million tokens."""

    input_mtok: Rate
    """Price of input."""
    output_mtok: Rate
    """Price of output, thoughts included."""
    cached_input_mtok: Rate | None = None
    """Price of input from the provider's cache; None for the price of other input."""


class EvaltuiBlock(_Strict):
    """Settings that ADK does not have. Unknown keys are errors, because a later version may give them a
    meaning."""

    criteria: dict[str, Threshold | OwnCriterion] = Field(default_factory=dict)
    """Metrics that ADK does not have, by name."""
    optional: list[StrictStr] = Field(default_factory=list)
    """Metrics that need not be evaluated for a case to pass; their errors count as any others."""
    metrics_to_run: SkipJsonSchema[dict[StrictStr, DefinedMetric]] = Field(default_factory=dict)
    """Metrics of a config of agents-cli, by name. No other config has them."""
    rules: list[ArgRule] = Field(default_factory=list)
    """Which arguments may differ, and how far."""
    answers: list[AnswerRule] = Field(default_factory=list)
    """Checks of answers, scored as `answer_rules`."""
    turns: list[TurnMark] = Field(default_factory=list)
    """Marks on turns; the last mark of a turn applies."""
    tags: list[TaggedCase] = Field(default_factory=list)
    """Tags of cases, which do not affect scoring."""
    meant_so: list[MeantChange] = Field(default_factory=list)
    """Changes that `evaltui gaps` does not count as gaps; they do not affect scoring."""
    imports: list[ImportedSource] = Field(default_factory=list)
    """Files that cases were imported from, which do not affect scoring."""
    repeats: Repeats = Field(default_factory=Repeats)
    """Number of runs of each case."""
    thoughts: Literal["ignore", "score"] = "ignore"
    """Whether thoughts are part of the scored answer."""
    outputs: Literal["ignore", "score"] = "ignore"
    """Whether an output of the agent, returned beside its texts, is the scored response."""
    tools: dict[StrictStr, ToolMode] = Field(default_factory=dict)
    """The mode of tools by name: called, recorded or stubbed."""
    prices: dict[StrictStr, OwnPrice] = Field(default_factory=dict)
    """Prices of models by name; other models have list prices."""


class EvalConfig(_Camel):
    """Criteria and settings that a set is scored by."""

    criteria: dict[str, Threshold | BaseCriterion] = Field(default_factory=dict)
    """Metrics by name: a threshold, or an object with `threshold`."""
    custom_metrics: dict[str, CustomMetricConfig] | None = None
    """The functions of metrics of the user's, by the metric's name."""
    user_simulator_config: SimulatorConfig | None = None
    """The simulated user of scenarios."""
    live_model_config: dict[str, Any] | None = None
    """Settings of live (audio) runs, which evaltui does not support."""
    evaltui: EvaltuiBlock = Field(default_factory=EvaltuiBlock)
    """Settings that ADK does not have."""

    @field_validator("criteria", mode="before")
    @classmethod
    def _as_data(cls, value: Any) -> Any:
        # Criteria of other classes, ADK's among them, as a config file has them: metrics read the keys.
        if not isinstance(value, dict):
            return value
        return {name: criterion_data(criterion) for name, criterion in value.items()}

    @field_validator("evaltui", mode="before", json_schema_input_type=EvaltuiBlock | None)
    @classmethod
    def _absent_block(cls, value: Any) -> Any:
        return {} if value is None else value

    @classmethod
    def default(cls) -> EvalConfig:
        return cls(criteria=dict(DEFAULT_CRITERIA))

    def metrics(self) -> list[EvalMetric]:
        """The metrics asked for: of agents-cli, `criteria` in file order, those of the `evaltui` block."""
        criteria = {**self.criteria, **self.evaltui.criteria}
        defined = self.evaltui.metrics_to_run
        others = {name: value for name, value in criteria.items() if name not in defined}
        return [
            *(_defined(name, definition, criteria.get(name)) for name, definition in defined.items()),
            *(_metric(name, value, self.custom_metrics or {}) for name, value in others.items()),
        ]

    def turn_mode(self, eval_set_id: str, eval_id: str, turn: int) -> TurnMode | None:
        """The last mark on a turn; None without one."""
        for mark in reversed(self.evaltui.turns):
            if (mark.set, mark.case, mark.turn) == (eval_set_id, eval_id, turn):
                return mark.mode
        return None

    def answer_rules(self, eval_set_id: str, eval_id: str) -> list[AnswerRule]:
        """The checks of answers that hold in a case, in the order of the file."""
        return [
            rule
            for rule in self.evaltui.answers
            if rule.set in (None, eval_set_id) and rule.case in (None, eval_id)
        ]

    def tags(self, eval_set_id: str) -> dict[str, tuple[str, ...]]:
        """The tags of the cases of a set."""
        entries = ((entry.set, entry.case, entry.tags) for entry in self.evaltui.tags)
        return tags_by_case(entries, eval_set_id)

    def scoring(self) -> dict[str, Any]:
        """The settings that cases are scored by, as JSON, without defaults and paths, and without the lists
        that do not affect scoring."""
        metrics = {name: metric.anywhere for name, metric in self.evaltui.metrics_to_run.items()}
        unscored: dict[str, Any] = {"tags": [], "imports": [], "meant_so": []}
        scored = self.evaltui.model_copy(update={**unscored, "metrics_to_run": metrics})
        return self.model_copy(update={"evaltui": scored}).model_dump(mode="json", exclude_defaults=True)


def _defined(name: str, definition: DefinedMetric, criterion: float | BaseCriterion | None) -> EvalMetric:
    """A metric of agents-cli, with the criterion that evaltui has for it."""
    metric = EvalMetric(metric_name=name) if criterion is None else _metric(name, criterion, {})
    metric.definition = definition
    if definition.is_function:
        metric.custom_function_path = definition.place
    if definition.judge_model_options:
        # The reference score of a metric without a threshold, which has no verdict.
        own = metric.criterion or BaseCriterion(threshold=1.0)
        metric.criterion = own.model_copy(update=_of_judge(definition.judge_model_options, own))
    return metric


def _of_judge(defined: dict[str, Any], criterion: BaseCriterion) -> dict[str, Any]:
    """The judge of a definition, with the options that the criterion has for it."""
    extra = criterion.model_extra or {}
    options = field_of(extra, "judge_model_options")
    if options is None:
        return {"judge_model_options": defined}
    if not isinstance(options, dict):
        return {}
    return {"judge_model_options": defined | {to_snake(key): value for key, value in options.items()}}


def _metric(name: str, value: float | BaseCriterion, custom: dict[str, CustomMetricConfig]) -> EvalMetric:
    criterion = value if isinstance(value, BaseCriterion) else BaseCriterion(threshold=value)
    metric = EvalMetric(metric_name=name, threshold=criterion.threshold, criterion=criterion)
    if isinstance(criterion, OwnCriterion) and criterion.function is not None:
        metric.custom_function_path, metric.interval = criterion.function, criterion.interval
    elif name in custom:
        metric.custom_function_path = custom[name].code_config.name
        if info := custom[name].metric_info:
            metric.interval = info.metric_value_info.interval
    return metric
