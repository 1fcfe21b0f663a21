import json

import pytest
from command_line import call
from eval_data import make_case, write_eval_set

from evaltui.core.metrics.registry import METRICS


def test_with_a_key_every_metric_can_run(capsys, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    call("metrics")
    out = capsys.readouterr().out
    assert out.count("✓") == len(METRICS)
    assert "Cannot" not in out


OTHER_MODEL = {"threshold": 0.5, "judge_model_options": {"judge_model": "gpt-4"}}
CONFIG = {
    "criteria": {"response_match_score": 0.5, "hallucinations_v1": OTHER_MODEL},
    "evaltui": {"optional": ["hallucinations_v1"]},
}
SAID = {"parts": [{"text": "hi"}]}


@pytest.fixture
def agent(write_agent):
    folder = write_agent("def root_agent(message, session): return message")
    evals = folder / "evals"
    evals.mkdir()
    (evals / "test_config.json").write_text(json.dumps(CONFIG))
    write_eval_set(evals, "hi", make_case("one", {"user_content": SAID, "final_response": SAID}))
    return folder


@pytest.mark.parametrize("place", ["", "evals/hi.evalset.json"])
def test_what_the_configs_of_an_agent_or_a_set_ask_for_comes_first(agent, place, capsys):
    (agent / ".env").write_text("GOOGLE_API_KEY=k\n")
    assert call("metrics", agent / place) == 0
    asked, _, every = capsys.readouterr().out.partition("All metrics")
    lines = [line.rstrip() for line in asked.splitlines()]
    assert "✓ response_match_score  1 case" in lines
    assert "– hallucinations_v1     none of 1 case  optional" in lines
    assert "the judge gpt-4 is not a Gemini model" in asked
    # The key is in the agent's .env file.
    assert "Cannot" not in every
