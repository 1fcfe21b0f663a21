"""The default models of judges and simulated users are those of the installed google-adk."""

import pytest

from evaltui.core.model.adk_defaults import DefaultModels, default_models, default_models_in
from evaltui.core.model.config import SimulatorConfig
from evaltui.core.model.criteria import JudgeModelOptions

LATER = {
    "evaluation/eval_metrics.py": """
class Other(EvalBaseModel):
  judge_model: str = Field(default="other")

class JudgeModelOptions(EvalBaseModel):
  \"\"\"Options.\"\"\"
  judge_model: str = Field(
      default="gemini-9-flash",
      description="The judge.",
  )
""",
    "evaluation/simulation/llm_backed_user_simulator.py": """
class LlmBackedUserSimulatorConfig(BaseUserSimulatorConfig):
  model: str = "gemini-9-pro"
""",
}


def test_they_follow_the_source(tmp_path):
    for name, source in LATER.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    assert default_models_in(tmp_path) == ("gemini-9-flash", "gemini-9-pro")
    assert default_models_in(tmp_path / "elsewhere") == DefaultModels()


def test_they_are_those_of_google_adk():
    metrics = pytest.importorskip("google.adk.evaluation.eval_metrics")
    simulator = pytest.importorskip("google.adk.evaluation.simulation.llm_backed_user_simulator")
    judge = metrics.JudgeModelOptions().judge_model
    assert judge == default_models().judge == JudgeModelOptions().judge_model
    user = simulator.LlmBackedUserSimulatorConfig().model
    assert user == default_models().simulated_user == SimulatorConfig().model
