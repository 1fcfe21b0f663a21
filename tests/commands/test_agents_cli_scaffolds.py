"""Scaffolds of four versions of google-agents-cli (Apache-2.0): run, edited, saved and run again."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from gemini_server import says

from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call
from tests.project.layouts import PYPROJECT, write

# Its templates of `tests/eval`, by version; Copyright Google LLC, Apache License 2.0.
SCAFFOLDS = Path(__file__).with_name("agents_cli")
AGENT = 'def root_agent(message, session):\n    return "Paris." if "France" in message else "Hello!"\n'
DATASET = "tests/eval/datasets/basic-dataset.json"
CONFIG = "tests/eval/eval_config.yaml"


@pytest.fixture(params=sorted(path.name for path in SCAFFOLDS.iterdir()))
def scaffold(request, tmp_path, monkeypatch):
    """A project as a version of agents-cli makes it, around an agent without a model."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pyproject.toml", PYPROJECT.format(name="app"))
    write(tmp_path / "app" / "agent.py", AGENT)
    (tmp_path / DATASET).parent.mkdir(parents=True)
    for path in (SCAFFOLDS / request.param).iterdir():
        # With another ending, they are no files of this project.
        target = tmp_path / "tests" / "eval" / path.name.removesuffix(".txt")
        shutil.copy(path, tmp_path / DATASET if target.suffix == ".json" else target)
    return tmp_path


def run() -> tuple[int, list[dict]]:
    code = call("run", "app", "--report", "json=report.json")
    return code, json.loads(Path("report.json").read_text(encoding="utf-8"))["cases"]


async def give_threshold(scaffold: Path, threshold: str) -> None:
    """Gives the first metric a threshold in the workbench."""
    workbench = Workbench(scaffold / "app")
    await workbench.open()
    criteria = Criteria(workbench.editing, scaffold / DATASET)
    (metric, *_), *_ = (section.rows for section in criteria.sections())
    assert criteria.type(metric, threshold)
    assert await workbench.editing.save_all()
    await workbench.close()


def test_a_scaffold_is_run_given_a_threshold_and_saved(scaffold, gemini, capsys):
    assert call("lint", ".") == 0
    before = (scaffold / CONFIG).read_text(encoding="utf-8")
    gemini.respond = lambda request: says('{"score": 4, "explanation": "clear"}')
    code, cases = run()
    (scored,) = {case["metrics"][0]["score"] for case in cases}
    assert (code, scored, cases[0]["metrics"][0]["name"]) == (3, 4.0, "custom_response_quality")
    assert {case["status"] for case in cases} == {"NOT_EVALUATED"}
    # A judge was shown what the agent did.
    assert all("Hello!" in request.said or "Paris." in request.said for request in gemini.requests)
    asyncio.run(give_threshold(scaffold, "4"))
    added = "evaltui:\n  criteria:\n    custom_response_quality: 4.0\n"
    assert (scaffold / CONFIG).read_text(encoding="utf-8") == before.rstrip("\n") + "\n" + added
    code, cases = run()
    assert (code, {case["status"] for case in cases}) == (0, {"PASSED"})


def test_a_conversation_is_recorded_into_a_dataset(scaffold, capsys):
    types = pytest.importorskip("agentplatform._genai.types")
    before = (scaffold / DATASET).read_text(encoding="utf-8")
    write(scaffold / "turns.txt", "Hi\n\nThe capital of France?\n")
    assert call("record", "app", DATASET, "--case", "capital", "--turns", "turns.txt") == 0
    assert "calls of turn 1 are not checked; a dataset cannot say" in capsys.readouterr().err
    after = (scaffold / DATASET).read_text(encoding="utf-8")
    assert after.startswith(before.rstrip().removesuffix("]\n}").rstrip())
    case = types.EvaluationDataset.model_validate_json(after).eval_cases[-1]
    assert case.eval_case_id == "capital"
    assert [turn.events[0].content.parts[0].text for turn in case.agent_data.turns] == [
        "Hi",
        "The capital of France?",
    ]
    assert case.reference.response.parts[0].text == "Paris."
    assert call("record", "app", DATASET, "--case", "capital", "--turns", "turns.txt") == 2
    assert "already has a case 'capital'" in capsys.readouterr().err
