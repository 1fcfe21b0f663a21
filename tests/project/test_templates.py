"""The agents that come with evaltui are in what is installed."""

import subprocess
from pathlib import Path

import pytest

import evaltui
from evaltui.project.templates import KINDS, TemplateError, create_starter, starter_files, starter_problem

ROOT = Path(evaltui.__file__).parents[1]
TEMPLATES = [path for path in (ROOT / "evaltui" / "templates").rglob("*") if path.is_file()]


def test_no_template_is_left_out_of_the_wheel():
    """Hatch takes every file of the package that git does not ignore."""
    assert len(TEMPLATES) > 5
    ignored = subprocess.run(
        ["git", "check-ignore", *map(str, TEMPLATES)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ignored.stdout == ""
    assert not [path for path in TEMPLATES if path.suffix == ".py"], "it would be a module of evaltui"


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_has_an_agent_a_set_and_a_config(kind):
    files = starter_files(kind)
    assert next(iter(files)) == "agent.py"
    assert {"orders.evalset.json", "test_config.json"} <= files.keys()


def test_a_starter_never_overwrites_and_is_written_as_a_whole(tmp_path):
    (tmp_path / "test_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(TemplateError, match=r"test_config\.json already exists"):
        create_starter(tmp_path, "native")
    assert [path.name for path in tmp_path.iterdir()] == ["test_config.json"]


def test_a_starter_may_stand_beside_other_files(tmp_path):
    (tmp_path / "tools.py").write_text("", encoding="utf-8")
    written = create_starter(tmp_path, "native")
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in written} | {"tools.py"}


@pytest.mark.parametrize("name", ["order.desk", "json"])
def test_a_folder_that_python_cannot_import_is_refused(tmp_path, name):
    assert "cannot be imported" in starter_problem(tmp_path / name, "native")


def test_the_adk_starter_needs_google_adk(tmp_path, monkeypatch):
    monkeypatch.setattr("evaltui.project.templates.find_spec", lambda name: None)
    assert "pip install google-adk" in starter_problem(tmp_path / "desk", "adk")
    assert starter_problem(tmp_path / "desk", "native") is None
