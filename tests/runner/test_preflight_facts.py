"""What is known of a machine and an agent before a run, and that runs go by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltui import EvalConfig, EvalSet, Status, evaluate
from evaltui.project.agent_address import AgentAddress
from evaltui.project.configs import ConfigInUse
from evaltui.project.run_settings import RunSettings
from evaltui.runner.metric_checks import checked, facts_of
from evaltui.runner.plan import RunPlan, SetPlan
from evaltui.runner.recording_files import recordings_path

AGENT = "def root_agent(message, session): return message"
SAID = {"parts": [{"text": "hi"}]}
SET = {
    "eval_set_id": "s",
    "eval_cases": [{"eval_id": "one", "conversation": [{"user_content": SAID, "final_response": SAID}]}],
}


@pytest.fixture(autouse=True)
def a_home_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLOUDSDK_CONFIG", "ADK_DISABLE_LOAD_DOTENV", "GOOGLE_GENAI_USE_ENTERPRISE"):
        monkeypatch.delenv(name, raising=False)


def can_ask(agent: Path) -> bool:
    return not facts_of(agent).gemini.problem


def test_a_key_may_be_in_the_environment_or_the_env_file(write_agent, monkeypatch):
    agent = write_agent(AGENT)
    assert not can_ask(agent)
    (agent / ".env").write_text("GOOGLE_API_KEY=k\n")
    assert can_ask(agent)
    assert can_ask(agent / "agent.py")
    # What is set already wins, also if it is empty.
    monkeypatch.setenv("GOOGLE_API_KEY", "")
    assert not can_ask(agent)
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    assert can_ask(agent)


def test_the_env_file_may_be_switched_off(write_agent, monkeypatch):
    agent = write_agent(AGENT)
    (agent / ".env").write_text("GOOGLE_API_KEY=k\n")
    monkeypatch.setenv("ADK_DISABLE_LOAD_DOTENV", "true")
    assert not can_ask(agent)


def test_credentials_of_google_cloud_are_files(write_agent, monkeypatch, tmp_path):
    agent = write_agent(AGENT)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    login = tmp_path / "home" / ".config" / "gcloud" / "application_default_credentials.json"
    login.parent.mkdir(parents=True)
    assert not can_ask(agent)
    login.touch()
    assert can_ask(agent)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nowhere.json"))
    assert not can_ask(agent)


def test_modules_are_those_of_the_agent(write_agent):
    has_module = facts_of(write_agent(AGENT, judges="raise SystemExit")).has_module
    assert has_module("my_agent.judges")
    assert not has_module("my_agent.nothing")


def test_a_set_with_recordings_is_known(write_agent):
    agent = write_agent(AGENT)
    path = agent / "s.evalset.json"
    config = EvalConfig(criteria={"safety_v1": 0.5})
    cases = tuple(EvalSet.model_validate(SET).eval_cases)
    plan = RunPlan(
        AgentAddress(agent),
        (SetPlan("s", "s", cases, ConfigInUse(None, config), path),),
        RunSettings(record="auto"),
    )
    assert checked(plan).checks[0].readiness == "CANNOT"
    recordings = recordings_path(path, "s")
    recordings.parent.mkdir()
    recordings.touch()
    assert checked(plan).checks[0].readiness == "RUNS"


async def test_a_run_from_python_asks_nobody_in_vain(write_agent):
    judge = {"threshold": 0.5, "judge_model_options": {"judge_model": "my_agent.nothing:ask"}}
    config = EvalConfig(criteria={"safety_v1": judge, "response_match_score": 0.8})
    result = await evaluate(write_agent(AGENT), EvalSet.model_validate_json(json.dumps(SET)), config)
    safety, match, *_ = result.cases[0].metrics
    assert (safety.status, match.status) == (Status.NOT_EVALUATED, Status.PASSED)
    assert safety.reason.startswith("no module my_agent.nothing")
    assert safety.judge is None
