"""google-adk loads a set and a config with rules, and scores by its own criteria as before."""

import json

import pytest
from eval_data import make_case, make_turn, new_rule

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from google.adk.evaluation.eval_config import get_eval_metrics_from_config, get_evaluation_criteria_or_default
from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file

from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.config import ConfigEditor
from evaltui.documents.values import copy_of, edits_of

pytestmark = [pytest.mark.adk, pytest.mark.compat]

CONFIG = (
    '{\n  "criteria": {\n    "tool_trajectory_avg_score": 1.0,\n    "response_match_score": 0.5\n  }\n}\n'
)
MATCHES = [
    "ignore",
    "type",
    "subset",
    "case_insensitive",
    {"regex": r"\d+"},
    {"approx": {"abs": 1}},
    {"any_of": [1]},
]


def test_adk_reads_set_and_config_with_rules(tmp_path):
    eval_set = {
        "eval_set_id": "orders",
        "eval_cases": [
            make_case("late", make_turn("what is late?", calls=[{"name": "find", "args": {"query": "late"}}]))
        ],
    }
    set_file, config_file = tmp_path / "orders.evalset.json", tmp_path / "test_config.json"
    set_file.write_text(json.dumps(eval_set))
    document = JsonDocument(CONFIG)
    for number, match in enumerate(MATCHES):
        rule = new_rule("find", f"arg_{number}", match, ("orders", "late") if number % 2 else None)
        config = ConfigEditor(copy_of(document.value))
        config.put_rule(rule)
        document = document.edited(edits_of(config.config))
    config_file.write_text(document.text)
    assert len(json.loads(document.text)["evaltui"]["rules"]) == len(MATCHES)

    loaded = load_eval_set_from_file(str(set_file), "orders")
    assert [case.eval_id for case in loaded.eval_cases] == ["late"]
    plain_file = tmp_path / "plain.json"
    plain_file.write_text(CONFIG)
    with_rules, plain = (get_evaluation_criteria_or_default(str(file)) for file in (config_file, plain_file))
    assert with_rules == plain
    assert get_eval_metrics_from_config(with_rules) == get_eval_metrics_from_config(plain)
