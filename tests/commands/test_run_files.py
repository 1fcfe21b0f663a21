"""What a run leaves behind: reports in files, the log, results for google-adk."""

import csv
import json

import pytest
from command_line import call

from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore

AGENT = """
    async def root_agent(message, session):
        if message == "raise":
            raise RuntimeError("judge 500")
        return message
"""


def one_case(eval_id, says, expected):
    return {
        "eval_id": eval_id,
        "conversation": [
            {
                "user_content": {"role": "user", "parts": [{"text": says}]},
                "final_response": {"role": "model", "parts": [{"text": expected}]},
            }
        ],
    }


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


def history(agent):
    files = sorted((agent / ".adk" / "eval_history").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    return [(file.name, json.loads(file.read_text())) for file in files]


@pytest.mark.parametrize("kind", ["console", "json", "junit", "csv", "markdown", "html"])
def test_files_and_ids_that_are_a_secret_are_names_none_the_less(agent, tmp_path, kind):
    (agent / ".env").write_text("SHOP_API_KEY=basics.evalset.json\nHOUSE_API_KEY=raising_\n")
    out = tmp_path / "out"
    assert call("run", agent, "--report", f"{kind}={out}") == 1
    assert all(name in out.read_text(encoding="utf-8") for name in ("basics", "other", "raising"))


def test_csv_in_a_file(agent, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert call("run", agent, "--runs", "2", "--report", f"csv={out}") == 1
    # Where reports go to files, one still sees what happened.
    assert "✗ other" in capsys.readouterr().out
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["eval_id"], row["repeat"]) for row in rows} == {
        (eval_id, repeat) for eval_id in ("fine", "other", "raising") for repeat in ("1", "2")
    }
    answer = next(
        row for row in rows if (row["eval_id"], row["metric_name"]) == ("other", "response_match_score")
    )
    assert (answer["prompt"], answer["expected_response"], answer["actual_response"]) == (
        "all is well",
        "something entirely different",
        "all is well",
    )


def test_every_run_leaves_a_result_file_for_adk(agent, capsys):
    assert call("run", agent) == 1
    assert call("run", agent, "basics:fine") == 0
    (_, whole), (name, one) = history(agent)
    assert name == f"{one['eval_set_result_id']}.evalset_result.json"
    assert name.startswith("my_agent_basics_")
    statuses = {entry["eval_id"]: entry["final_eval_status"] for entry in whole["eval_case_results"]}
    assert statuses == {"fine": 1, "other": 2, "raising": 2}
    assert [entry["eval_id"] for entry in one["eval_case_results"]] == ["fine"]
    assert "adk" not in capsys.readouterr().out


def test_where_no_result_file_can_be_written_the_report_says_so(agent, capsys):
    (agent / ".adk").write_text("in the way")
    assert call("run", agent, "basics:fine") == 0
    assert "no result file for adk web" in capsys.readouterr().out


def test_the_log_says_how_long_it_took(agent):
    call("run", agent, "basics:fine")
    footer = RunFile(RunStore(agent).latest()).ending
    assert footer.status == "PASSED"
    assert 0 < footer.seconds < 60
