"""The workbench shows what a run refuses: rubrics that nothing can judge, sets that cannot be read."""

import json

import pytest

from evaltui.core.model.problems import EvalSetError
from evaltui.workbench.runs.running import EditedSets
from evaltui.workbench.workbench import Workbench

JUDGED = {"rubric_based_final_response_quality_v1": 0.8}


async def test_a_rubric_of_an_unknown_type_keeps_its_set_from_running(write_agent, write_set):
    folder = write_agent("""
        def root_agent(message, session): return message
        def brief(actual, expected, criterion): return 1.0
    """)
    path = write_set(folder, one=("hi", "hi"))
    data = json.loads(path.read_text())
    rubric = {"rubric_id": "r", "rubric_content": {"text_property": "kind"}, "type": "KIND"}
    data["eval_cases"][0]["rubrics"] = [rubric]
    path.write_text(json.dumps(data))
    (folder / "gone.evalset.json").symlink_to("nowhere")
    config = folder / "test_config.json"
    config.write_text(json.dumps({"criteria": JUDGED}))
    workbench = Workbench(folder)
    try:
        await workbench.open()
        gone, shown = workbench.sets.listed
        assert [str(one) for one in gone.errors] == ["link to nowhere, which does not exist"]
        workbench.sets.open(path)
        [error] = workbench.sets.errors(shown)
        assert str(error).startswith("line 1: eval_cases[0].rubrics[0].type: unknown rubric type 'KIND'")
        with pytest.raises(EvalSetError) as refused:
            EditedSets(workbench.sets).open(path)
        assert refused.value.problems == [error]
        own = {"brief": {"threshold": 1, "function": "agent.brief"}}
        config.write_text(json.dumps({"evaltui": {"criteria": own}}))
        assert workbench.sets.open(path).errors == []
    finally:
        await workbench.close()
