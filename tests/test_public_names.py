"""The public names: what there is, and that models called as google-adk's are google-adk's."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest
from pydantic import BaseModel

import evaltui
import evaltui.adk

# Public models of google-adk's evaluation package that are none of what a test is written with, and why.
NOT_HERE = {
    # Results: ours are CaseResult, MetricResult and RunResult.
    "EvalCaseResult", "EvalSetResult", "EvalMetricResult", "EvalMetricResultDetails",
    "EvalMetricResultPerInvocation", "TokenUsageDetails", "DurationDetails", "RubricScores",
    # How its services talk to each other.
    "EvalBaseModel", "EvaluateConfig", "EvaluateRequest", "InferenceConfig", "InferenceRequest",
    "InferenceResult", "InferenceStatus",
    # In `evaltui.adk`, and what its judges read.
    "EvalCaseResponses", "AutoRaterScore", "Label", "RubricResponse",
    # Live (audio) runs, and scenarios that Vertex AI makes.
    "LiveModelConfig", "ConversationGenerationConfig", "ConversationScenarios",
}  # fmt: skip
# What google-adk's own efficiency metrics say, which evaltui computes itself.
OF_EFFICIENCY = ("token_usage_details", "duration_details")
EVALUATION = "google.adk.evaluation"
SEEDS = re.findall(
    r"\w+",
    """
    AgentDetails AppDetails BaseCriterion ConversationScenario CustomMetricConfig EvalCase EvalConfig
    EvalMetric EvalSet EvalStatus HallucinationsCriterion IntermediateData Invocation InvocationEvent
    InvocationEvents JudgeModelOptions LlmAsAJudgeCriterion PerInvocationResult PrebuiltMetrics Rubric
    RubricContent RubricScore RubricsBasedCriterion SessionInput ToolTrajectoryCriterion
    find_config_for_test_file
    """,
)


def test_every_name_is_there_and_declared_once():
    tree = ast.parse(Path(evaltui.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    declared = [alias.name for node in imports for alias in node.names]
    public = {name for name in declared if name in evaltui.__all__}
    assert sorted(public) == sorted(evaltui.__all__) == sorted(evaltui._HOMES)
    for name in evaltui.__all__:
        assert getattr(evaltui, name).__name__ in (name, "Status"), name
    for name in evaltui.adk.__all__:
        if name != "EvaltuiResultsManager":
            assert getattr(evaltui.adk, name) is not None
    assert set(SEEDS) <= set(evaltui.__all__)
    assert re.fullmatch(r"\d+\.\d+.*", evaltui.__version__)
    for module in (evaltui, evaltui.adk):
        with pytest.raises(AttributeError, match="no_such_name"):
            _ = module.no_such_name


# Modules of data, which are soon imported.
OF_DATA = {"app_details", "conversation_scenarios", "evaluator"}


def adk_models(thorough):
    """The public models and enums of google-adk's evaluation package, by name."""
    package = pytest.importorskip(EVALUATION)
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        is_of_data = info.name in OF_DATA or info.name.startswith("eval_")
        if info.name.startswith("_") or not (thorough or is_of_data):
            continue
        try:
            module = importlib.import_module(f"{EVALUATION}.{info.name}")
        except ImportError:
            # What needs Google Cloud's libraries.
            continue
        for name, one in vars(module).items():
            own = inspect.isclass(one) and one.__module__ == module.__name__ and not name.startswith("_")
            if own and issubclass(one, BaseModel | Enum):
                found[name] = one
    return found


@pytest.mark.adk
@pytest.mark.compat
def test_models_have_the_fields_of_google_adk(thorough):
    theirs = adk_models(thorough)
    assert {"EvalCase", "ToolTrajectoryCriterion"} <= theirs.keys()
    assert theirs.keys() - set(evaltui.__all__) - NOT_HERE == set()
    for name, model in theirs.items():
        if name in NOT_HERE:
            continue
        ours = getattr(evaltui, name)
        if issubclass(model, Enum):
            assert {one.name for one in model} <= {one.name for one in ours}, name
            continue
        fields = {
            field: one for field, one in model.model_fields.items() if not field.endswith(OF_EFFICIENCY)
        }
        assert fields.keys() <= ours.model_fields.keys(), name
        for field, declared in fields.items():
            own = ours.model_fields[field]
            assert own.is_required() == declared.is_required(), (name, field)
            if not isinstance(declared.default, BaseModel | Enum) and not declared.is_required():
                assert plain(own) == plain(declared), (name, field)


def plain(field):
    """The default of a field as JSON has it."""
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Enum):
        return value.name
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


@pytest.mark.adk
@pytest.mark.compat
def test_criteria_of_both_are_the_same_in_a_config():
    pytest.importorskip(EVALUATION)
    from google.adk.evaluation import eval_metrics as theirs

    rubric = {"rubric_id": "kind", "rubric_content": {"text_property": "It is kind."}}
    given = {
        "ToolTrajectoryCriterion": {"match_type": "ANY_ORDER", "ignore_args": True},
        "LlmAsAJudgeCriterion": {"judge_model_options": {"judge_model": "m:judge", "num_samples": 3}},
        "RubricsBasedCriterion": {"rubrics": [rubric], "judge_model_options": {"num_samples": 1}},
        "HallucinationsCriterion": {"evaluate_intermediate_nl_responses": True},
        "LlmBackedUserSimulatorCriterion": {"stop_signal": "bye"},
        "BaseCriterion": {"include_intermediate_responses_in_final": True, "own": [1]},
    }
    for name, keys in given.items():
        for home in (evaltui, theirs):
            criterion = getattr(home, name)(threshold=0.5, **keys)
            config = evaltui.EvalConfig(criteria={"metric": criterion})
            read = evaltui.EvalConfig.model_validate_json(config.model_dump_json())
            assert read.criteria == config.criteria, name
            said = read.criteria["metric"].model_dump(mode="json")
            for key, value in keys.items():
                assert said[key] in (value, 2), (name, key)


def test_evaluate_imports_what_a_run_needs_and_no_more():
    """Not the screens, the commands, the reports, what reads traces, or libraries that few runs need."""
    program = "import sys; from evaltui import evaluate; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    names = done.stdout.split()
    own = [name.split(".") for name in names if name.startswith("evaltui.")]
    assert {name[1] for name in own} == {"agents", "core", "documents", "project", "runner", "runs", "text"}
    assert len(own) < 220
    heavy = {"textual", "numpy", "jinja2", "nltk", "opentelemetry", "watchfiles", "jsonschema"}
    assert not heavy & {name.partition(".")[0] for name in names}
