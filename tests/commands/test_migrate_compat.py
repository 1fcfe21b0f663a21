"""google-adk reads what was migrated as it reads what it migrates itself."""

import json
from pathlib import Path

import pytest

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from command_line import call
from google.adk.evaluation.agent_evaluator import AgentEvaluator
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.local_eval_sets_manager import LocalEvalSetsManager

pytestmark = [pytest.mark.adk, pytest.mark.compat]

TURN = {
    "query": "Turn off the lamp",
    "expected_tool_use": [{"tool_name": "set_device", "tool_input": {"id": "lamp", "on": None}}],
    "expected_intermediate_agent_responses": [{"author": "helper", "text": "moment"}],
    "reference": "It is off – grüße.",
}
SHARED = Path(__file__).parents[3] / "shared" / "evalsets" / "adk-python_v0.1.0_old_schema"
OLD_FILES = sorted(SHARED.rglob("*.test.json"))


def as_read(text):
    """A set without its ids and times, which ADK makes up; a reference that is null says the same as ""."""
    data = EvalSet.model_validate_json(text).model_dump(mode="json")
    data |= {"eval_set_id": "", "name": "", "creation_timestamp": 0}
    for case in data["eval_cases"]:
        case |= {"eval_id": "", "creation_timestamp": 0}
        for turn in case["conversation"]:
            turn |= {"invocation_id": "", "creation_timestamp": 0}
            (answer,) = turn["final_response"]["parts"]
            answer["text"] = answer["text"] or ""
    return data


@pytest.mark.parametrize("old", [None, *OLD_FILES], ids=lambda old: old.stem if old else "own")
def test_both_migrations_give_the_same(tmp_path, old):
    if old is None:
        old = tmp_path / "lamps.test.json"
        old.write_text(json.dumps([TURN, TURN]), encoding="utf-8")
    session = tmp_path / "session.json"
    session.write_text('{"app_name": "home", "user_id": "u", "state": {"mode": "night"}}')
    copy = tmp_path / "theirs" / "old.test.json"
    copy.parent.mkdir()
    copy.write_bytes(old.read_bytes())
    theirs, ours = tmp_path / "theirs.json", tmp_path / "ours.evalset.json"
    AgentEvaluator.migrate_eval_data_to_new_schema(str(copy), str(theirs), str(session))
    assert call("migrate", old, ours, "--initial-session", session) == 0
    assert as_read(ours.read_text()) == as_read(theirs.read_text())


def test_the_file_is_to_the_letter_what_adk_would_write(tmp_path):
    agent = tmp_path / "home"
    agent.mkdir()
    old, new = tmp_path / "old.json", agent / "lamps.evalset.json"
    state = {"app_name": "home", "user_id": "u", "state": {}}
    sessions = [{"name": "one", "data": [TURN, {"query": "And?"}], "initial_session": state}]
    old.write_text(json.dumps(sessions))
    assert call("migrate", old, new) == 0
    written = new.read_text()
    manager = LocalEvalSetsManager(str(tmp_path))
    eval_set = manager.get_eval_set("home", "lamps")
    manager._save_eval_set("home", "lamps", eval_set)
    assert new.read_text() == written.rstrip("\n")
