"""EvaluationDatasets in the workbench: shown and run, and never written."""

import json

from evaltui.workbench.actions import BY_ID
from evaltui.workbench.cases import set_editing
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench
from tests.project.layouts import AGENT, write

CASE = {"eval_case_id": "a", "prompt": {"role": "user", "parts": [{"text": "hi"}]}}


async def test_a_dataset_is_read_only_and_offers_to_be_migrated(tmp_path):
    write(tmp_path / "agent.py", AGENT)
    dataset = write(tmp_path / "eval" / "basic.json", json.dumps({"eval_cases": [CASE]}))
    write(tmp_path / "eval" / "eval_config.yaml", "metrics_to_run: [general_quality]")
    workbench = Workbench(tmp_path)
    await workbench.open()
    (shown,) = workbench.sets.listed
    assert (shown.path, shown.format, [case.eval_id for case in shown.cases]) == (dataset, "dataset", ["a"])
    opened = workbench.sets.open(dataset)
    assert [metric.metric_name for metric in opened.config.config.metrics()] == ["general_quality"]
    assert workbench.editing.refuses_to_edit(dataset) == (
        "basic.json is an EvaluationDataset, read-only; "
        "convert it with `evaltui migrate basic.json NEW.evalset.json`"
    )
    workbench.navigation.select(Selection(shown.case_path, "a"))
    assert BY_ID["convert"].refusal(workbench) is None
    assert set_editing.converted(dataset)[0].eval_cases[0].eval_id == "a"
    criteria = Criteria(workbench.editing, dataset)
    assert criteria.unreadable().startswith("eval_config.yaml is a config of agents-cli, read-only")
    assert criteria.refuses_text() == criteria.unreadable()
