"""What agents find on workers that do not have their folder."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands.command_line import call
from runner.cluster.clusters import cluster_here

from tests.project.layouts import write

AGENT = """
    from pathlib import Path
    import shared

    def root_agent(message, session):
        import shared.data
        is_beside = Path.cwd() == Path(__file__).parent
        return f"{shared.data.TABLE}, {Path('data.txt').read_text()}, {is_beside}"
"""
DATA = """
    from pathlib import Path
    TABLE = Path(__file__).with_name("table.txt").read_text()
"""
METRIC = """
    from pathlib import Path
    from evaltui import EvalStatus, EvaluationResult, PerInvocationResult

    def is_here(metric, actual, expected, scenario):
        status = EvalStatus.PASSED if Path.cwd() == Path(__file__).parent else EvalStatus.FAILED
        turns = [PerInvocationResult(actual_invocation=one, score=1.0, eval_status=status) for one in actual]
        return EvaluationResult(overall_score=1.0, overall_eval_status=status, per_invocation_results=turns)
"""
CASE = {"eval_id": "one", "conversation": [{"user_content": {"role": "user", "parts": [{"text": "hi"}]}}]}
CONFIG = {
    "criteria": {"is_here": 1.0},
    "custom_metrics": {"is_here": {"code_config": {"name": "metric.is_here"}}},
}


@pytest.fixture
def project(tmp_path) -> Path:
    for name, text in {
        "pyproject.toml": "[project]\nname = 'shop'\n",
        "shared/__init__.py": "",
        "shared/data.py": DATA,
        "shared/table.txt": "table",
        "desk/agent.py": AGENT,
        "desk/metric.py": METRIC,
        "desk/data.txt": "data",
        "desk/one.evalset.json": json.dumps({"eval_set_id": "one", "eval_cases": [CASE]}),
        "desk/test_config.json": json.dumps(CONFIG),
    }.items():
        write(tmp_path / "shop" / name, textwrap.dedent(text))
    return tmp_path / "shop"


@pytest.fixture(scope="module")
def worker() -> Iterator[tuple[str, Path]]:
    """The address of a scheduler with one worker, and where that has what is sent to it."""
    with cluster_here(1) as cluster:
        (one,) = cluster.workers.values()
        yield cluster.scheduler_address, Path(one.local_directory, "evaltui")


def said(address: str, agent: Path) -> str:
    """What the agent said in its only case, which passes."""
    report = agent.resolve().parent / "report.json"
    assert call("run", agent, "--record", "off", "--scheduler", address, "--report", f"json={report}") == 0
    (case,) = json.loads(report.read_text())["cases"]
    text: str = case["repeats"][0]["actual"][0]["final_response"]["parts"][0]["text"]
    return text


def test_packages_and_the_current_folder_are_there(project, worker, monkeypatch):
    monkeypatch.chdir(project / "desk")
    assert said(worker[0], Path()) == "table, data, True"


def test_files_are_sent_anew_and_removed_after_the_run(project, worker, monkeypatch):
    monkeypatch.chdir(project / "desk")
    address, below = worker
    for text in ("one", "two"):
        write(project / "desk" / "data.txt", text)
        assert f", {text}, " in said(address, Path())
        assert list(below.iterdir()) == []


def test_an_env_file_is_named_as_not_sent(project, worker, monkeypatch, capsys):
    monkeypatch.chdir(project / "desk")
    note = ".env is not sent to workers: --ship-env sends variables of it"
    call("run", Path(), "--record", "off", "--scheduler", worker[0])
    assert note not in capsys.readouterr().out
    write(project / "desk" / ".env", "MODE=brief")
    call("run", Path(), "--record", "off", "--scheduler", worker[0])
    assert note in capsys.readouterr().out
    call("run", Path(), "--record", "off", "--scheduler", worker[0], "--ship-env", "MODE")
    assert note not in capsys.readouterr().out
