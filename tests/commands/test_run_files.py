"""What a run leaves behind: reports in files, the log, results for google-adk."""

import json

import pytest
from command_line import call
from eval_data import make_case, make_turn

AGENT = """
    async def root_agent(message, session):
        if message == "raise":
            raise RuntimeError("judge 500")
        return message
"""


def one_case(eval_id, says, expected):
    return make_case(eval_id, make_turn(says, expected))


@pytest.fixture
def agent(write_agent):
    folder = write_agent(AGENT)
    cases = [
        one_case("fine", "all is well", "all is well"),
        one_case("other", "all is well", "something entirely different"),
        one_case("raising", "raise", "raise"),
    ]
    text = json.dumps({"eval_set_id": "basics", "eval_cases": cases})
    (folder / "basics.evalset.json").write_text(text)
    return folder


@pytest.mark.parametrize("kind", ["console", "json", "junit", "csv", "markdown", "html"])
def test_files_and_ids_that_are_a_secret_are_names_none_the_less(agent, tmp_path, kind):
    (agent / ".env").write_text("SHOP_API_KEY=basics.evalset.json\nHOUSE_API_KEY=raising_\n")
    out = tmp_path / "out"
    assert call("run", agent, "--report", f"{kind}={out}") == 1
    assert all(name in out.read_text(encoding="utf-8") for name in ("basics", "other", "raising"))


def test_where_no_result_file_can_be_written_the_report_says_so(agent, capsys):
    (agent / ".adk").write_text("in the way")
    assert call("run", agent, "basics:fine") == 0
    assert "no result file for adk web" in capsys.readouterr().out


def test_a_run_whose_folder_is_moved_meanwhile_is_reported(write_agent, tmp_path, capsys):
    folder = write_agent("""
        from pathlib import Path

        def root_agent(message, session):
            if message == "move":
                Path(__file__).parent.rename(Path(__file__).parent.with_name("moved"))
            return message
    """)
    cases = [
        one_case("before", "hi", "bye"),
        one_case("moves", "move", "move"),
        one_case("after", "hi", "hi"),
    ]
    (folder / "basics.evalset.json").write_text(json.dumps({"eval_set_id": "basics", "eval_cases": cases}))
    out = tmp_path / "out.json"
    assert call("run", folder, "--parallel", 1, "--report", f"json={out}") == 1
    report = json.loads(out.read_text())
    statuses = {case["eval_id"]: case["status"] for case in report["cases"]}
    assert statuses == {"before": "FAILED", "moves": "PASSED", "after": "PASSED"}
    assert any("moved or deleted during the run" in note for note in report["notes"])


def test_a_run_whose_log_is_emptied_meanwhile_says_so(write_agent, capsys):
    folder = write_agent("""
        import os
        from pathlib import Path

        def root_agent(message, session):
            [os.truncate(log, 0) for log in Path(__file__).parent.glob(".evaltui/runs/*.sqlite")]
            return message
    """)
    cases = [one_case("one", "hi", "hi"), one_case("two", "hi", "hi")]
    (folder / "basics.evalset.json").write_text(json.dumps({"eval_set_id": "basics", "eval_cases": cases}))
    assert call("run", folder) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(".sqlite: emptied or damaged during the run, which lost its results")
