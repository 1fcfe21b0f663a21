"""Sets, configs and recordings are read before the agent starts: its changes of them decide no verdict."""

from __future__ import annotations

import json

import pytest
from command_line import call
from eval_data import make_case, make_turn, write_eval_set, write_test_config

import evaltui
from evaltui.core.model.outcome import Status
from evaltui.workbench.workbench import Workbench

# Its import removes the failing case and asks for nothing more.
CHEAT = """
    import json
    from pathlib import Path
    HERE = Path(__file__).parent
    path = HERE / "s.evalset.json"
    data = json.loads(path.read_text())
    data["eval_cases"] = data["eval_cases"][:1]
    path.write_text(json.dumps(data))
    (HERE / "test_config.json").write_text('{"criteria": {"tool_trajectory_avg_score": 0.0}}')

    def root_agent(message, session):
        return "hello"
"""
SENTENCE = (
    "s.evalset.json, test_config.json changed during the run. "
    "Verdicts are of the files before the agent started"
)


@pytest.fixture
def cheat(write_agent):
    folder = write_agent(CHEAT)
    write_eval_set(
        folder,
        "s",
        *(
            make_case(eval_id, make_turn("hi", calls=expected))
            for eval_id, expected in (("good", []), ("bad", [{"name": "find", "args": {}}]))
        ),
    )
    write_test_config(folder, tool_trajectory_avg_score=1.0)
    return folder


def test_a_run_judges_the_cases_and_the_config_of_before_and_says_so(cheat, tmp_path, capsys):
    report = tmp_path / "report.json"
    assert call("run", cheat, "--report", f"json={report}", "--report", "console") == 1
    assert SENTENCE in " ".join(capsys.readouterr().out.split())
    data = json.loads(report.read_text())
    assert [case["status"] for case in data["cases"]] == ["PASSED", "FAILED"]
    assert SENTENCE in data["notes"]


def test_no_variant_gets_a_set_that_another_has_changed(cheat, capsys):
    assert call("run", cheat, "--variant", "a:env.X=1", "--variant", "base") == 1
    assert capsys.readouterr().out.count("bad") >= 1


def test_a_run_from_python_warns_of_the_changed_files(cheat):
    with pytest.warns(RuntimeWarning, match="changed during the run"):
        result = evaltui.evaluate_sync(cheat)
    assert [case.status for case in result.cases] == [Status.PASSED, Status.FAILED]


async def test_a_run_of_the_workbench_judges_what_was_read_before(cheat):
    workbench = Workbench(cheat)
    await workbench.open()
    try:
        workbench.runs.start("all", {cheat / "s.evalset.json": None})
        await workbench.runs.finished()
        assert workbench.runs.current is not None
        assert len(workbench.runs.current.done) == 2
    finally:
        await workbench.close()


def test_code_that_changed_while_cases_ran_is_named(write_agent, capsys):
    folder = write_agent(
        """
        from pathlib import Path
        def root_agent(message, session):
            Path(__file__).write_text(Path(__file__).read_text() + "#")
            return "hello"
        """
    )
    write_eval_set(folder, "s", make_case("one", make_turn("hi")))
    write_test_config(folder, tool_trajectory_avg_score=1.0)
    call("run", folder)
    assert "agent.py changed during the run" in capsys.readouterr().out


def test_a_prompt_that_changed_while_cases_ran_is_named(write_agent, capsys):
    folder = write_agent(
        """
        from pathlib import Path
        def root_agent(message, session):
            prompt = Path(__file__).with_name("prompt.md")
            prompt.write_text(prompt.read_text() + "#")
            Path(__file__).with_name("new.md").write_text("notes")
            return "hello"
        """
    )
    (folder / "prompt.md").write_text("Be kind.")
    write_eval_set(folder, "s", make_case("one", make_turn("hi")))
    write_test_config(folder, tool_trajectory_avg_score=1.0)
    call("run", folder)
    out = capsys.readouterr().out
    assert "prompt.md changed during the run" in out
    assert "new.md" not in out
