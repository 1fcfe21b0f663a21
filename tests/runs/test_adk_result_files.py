import json
from pathlib import Path

from evaltui.project.folders import app_name
from evaltui.runs.adk_results import write_adk_result

RESULT = "home_lights_1.5", '{"note": "grüße 🌻"}'


def test_a_result_is_kept_under_its_id(tmp_path):
    path = write_adk_result(tmp_path, *RESULT)
    assert path == tmp_path / ".adk" / "eval_history" / "home_lights_1.5.evalset_result.json"
    assert json.loads(path.read_text(encoding="utf-8")) == {"note": "grüße 🌻"}
    assert list(path.parent.iterdir()) == [path]


def test_an_agent_in_a_single_file_has_its_results_beside_it(tmp_path):
    file = tmp_path / "agent.py"
    file.touch()
    assert write_adk_result(file, *RESULT).is_relative_to(tmp_path / ".adk")
    assert app_name(file) == tmp_path.name


def test_the_app_is_named_as_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert app_name(Path()) == tmp_path.name
