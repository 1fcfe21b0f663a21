"""A killed run goes on with `evaltui run --resume`, and is compared with the next one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from environments import make_environment
from waiting import wait_until

from evaltui.core.model.case_id import CaseId
from evaltui.runs.history import open_run
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore
from tests.eval_data import make_case, make_turn, write_eval_set, write_test_config
from tests.stored_runs import change, count

# Answers as prompt.txt says, notes every message beside its folder, and waits there for a file named "go".
AGENT = """
    import asyncio
    from pathlib import Path

    HERE = Path(__file__).parent

    async def root_agent(message, session):
        number = int(message.split()[1])
        with (HERE.parent / "calls.txt").open("a") as calls:
            calls.write(f"{number}\\n")
        (HERE / "memory.txt").write_text(message)
        while number >= 8 and not (HERE.parent / "go").exists():
            await asyncio.sleep(0.01)
        words = (HERE / "prompt.txt").read_text().split()
        if f"raise:{number}" in words:
            raise RuntimeError("judge 500")
        return "wrong" if str(number) in words else "right"
"""


def one_case(number: int, expected: str = "right") -> dict[str, Any]:
    return make_case(f"case_{number}", make_turn(f"case {number}", expected))


@pytest.fixture
def agent(write_agent) -> Path:
    folder = write_agent(AGENT)
    (folder / "prompt.txt").write_text("3")
    write_eval_set(folder, "basics", *map(one_case, range(20)))
    return folder


def calls(agent: Path) -> list[int]:
    """The numbers of the cases that were run since the last look."""
    file = agent.parent / "calls.txt"
    numbers = [int(line) for line in file.read_text().split()] if file.exists() else []
    file.unlink(missing_ok=True)
    return numbers


def go(agent: Path) -> None:
    (agent.parent / "go").touch()


def killed(agent: Path, *words: str, until: tuple[str, int] = ("cases", 8)) -> str:
    """A run that is killed when its file has so many results of cases or repeats; returns its id."""
    command = [sys.executable, "-m", "evaltui", "run", str(agent), "--parallel", "1", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def has_come() -> bool:
        assert process.poll() is None, process.communicate()
        log = RunStore(agent).latest()
        table, number = until
        return log is not None and count(log, table) >= number

    wait_until(has_come)
    process.kill()
    process.communicate()
    log = RunStore(agent).latest()
    assert log is not None
    return log.stem


def report_of(capsys) -> dict[str, Any]:
    return json.loads(capsys.readouterr().out)


def test_interrupt_resume_compare(agent, capsys):
    first = killed(agent)
    assert calls(agent)[:8] == list(range(8))
    log = RunStore(agent).latest()
    assert log is not None
    note = "kb.json changed during the run"
    change(log, f"INSERT INTO notes (text) VALUES ('{note}')")
    go(agent)
    assert call("run", agent, "--resume", "last", "--report", "json") == 1
    assert sorted(calls(agent)) == list(range(8, 20))
    report = report_of(capsys)
    assert [case["eval_id"] for case in report["cases"]] == [f"case_{number}" for number in range(20)]
    assert [case["status"] for case in report["cases"]].count("PASSED") == 19
    assert report["notes"] == [f"resumes run {first}: 8 results kept", note]
    # What was taken over is as whole as what was run.
    assert report["cases"][0]["repeats"][0]["actual"][0]["final_response"]["parts"] == [{"text": "right"}]
    resumed = open_run(RunStore(agent).latest())
    assert (resumed.id != first, resumed.status) == (True, "FAILED")
    kinds = [event.kind for event in resumed.events(CaseId("basics.evalset.json", "case_0"))[0]]
    assert kinds == ["user", "text"]
    (said,) = resumed.case(CaseId("basics.evalset.json", "case_3")).repeats[0].actual
    assert said.final_response.parts[0].text == "wrong"

    (agent / "prompt.txt").write_text("5")
    edited = one_case(7, "Right!")
    kept = [one_case(number) for number in range(20) if number not in (7, 11)]
    write_eval_set(agent, "basics", *kept, edited, one_case(99))
    assert call("run", agent, "--report", "json") == 1
    report = report_of(capsys)
    assert [case["status"] for case in report["cases"]].count("PASSED") == 19

    assert call("compare", agent, resumed.id, "last", "--report", "json") == 0
    compared = report_of(capsys)
    changes = {case["eval_id"]: case["change"] for case in compared["cases"] if case["change"] != "unchanged"}
    assert changes == {
        "case_5": "broken",
        "case_3": "fixed",
        "case_99": "new",
        "case_11": "gone",
        "case_7": "expectation_changed",
    }
    assert compared["changed"] == ["agent: prompt.txt"]
    assert (compared["base"]["passing"], compared["candidate"]["passing"]) == (19, 19)
    assert call("compare", agent, resumed.id, "last", "--fail-on-regression") == 1
    out = capsys.readouterr().out
    assert "broken   case_5   ✓ → ✗  " in out
    assert "1 broken, 1 fixed, 1 expectation changed, 1 new, 1 gone, 16 unchanged" in out
    assert call("run", agent, "--baseline", resumed.id, "--fail-on-regression") == 1
    assert "1 broken, 1 fixed" in capsys.readouterr().out


def test_known_failures_of_the_baseline_are_excused(agent, capsys):
    go(agent)
    assert call("run", agent) == 1
    assert call("run", agent, "--baseline", "last") == 1
    assert call("run", agent, "--baseline", "last", "--fail-on-regression") == 0
    assert "20 unchanged (1 of them does not pass)" in capsys.readouterr().out
    write_eval_set(agent, "basics", *map(one_case, range(20)), one_case(99, "something else"))
    assert call("run", agent, "--baseline", "last", "--fail-on-regression", "--report", "json") == 1
    report = report_of(capsys)["comparison"]
    assert [case["eval_id"] for case in report["cases"] if case["regression"]] == ["case_99"]
    assert report["totals"]["new"] == 1


def test_single_runs_of_a_case_are_kept(agent, capsys):
    write_eval_set(agent, "basics", one_case(3), one_case(1))
    (agent / "prompt.txt").write_text("raise:3")
    # The third run of the second case waits for good.
    (agent / "agent.py").write_text((agent / "agent.py").read_text().replace("number >= 8", "_waits(number)"))
    with (agent / "agent.py").open("a") as file:
        file.write(
            "\n_seen = []\n\ndef _waits(number):\n    _seen.append(number)\n    return _seen.count(1) > 2\n"
        )
    killed(agent, "--runs", "4", "--pass-if", "0.5", until=("repeats", 6))
    assert calls(agent)[:6] == [3, 3, 3, 3, 1, 1]
    go(agent)
    assert call("run", agent, "--resume", "last", "--report", "json") == 3
    # The four that had an error, and the two that were missing.
    assert sorted(calls(agent)) == [1, 1, 3, 3, 3, 3]
    report = report_of(capsys)
    assert [(case["status"], case["policy"]["pass_if"]) for case in report["cases"]] == [
        ("ERROR", "0.5"),
        ("PASSED", "0.5"),
    ]
    assert [len(case["repeats"]) for case in report["cases"]] == [4, 4]


def test_a_complete_run_goes_on_with_what_had_an_error(agent, capsys):
    write_eval_set(agent, "basics", *map(one_case, range(6)))
    (agent / "prompt.txt").write_text("3 raise:4")
    (agent / "memory.txt").write_text("what the agent writes itself")
    assert call("run", agent) == 1
    calls(agent)
    capsys.readouterr()
    assert call("run", agent, "--resume", "last", "--report", "json") == 1
    assert calls(agent) == [4]
    statuses = {case["eval_id"]: case["status"] for case in report_of(capsys)["cases"]}
    assert (statuses["case_3"], statuses["case_4"]) == ("FAILED", "ERROR")


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    """An agent with a run of three cases, one of which had an error."""
    folder = tmp_path_factory.mktemp("agents") / "my_agent"
    folder.mkdir()
    (folder / "__init__.py").touch()
    source = AGENT.replace("\n    ", "\n").strip()
    (folder / "agent.py").write_text(source)
    (folder / "prompt.txt").write_text("raise:2")
    write_eval_set(folder, "basics", *map(one_case, range(3)))
    assert call("run", folder) == 3
    return folder


@pytest.fixture
def finished(finished_run, tmp_path) -> Path:
    """A copy of it that may be changed."""
    folder = tmp_path / "my_agent"
    command = ["cp", "-Rp", str(finished_run), str(folder)]
    subprocess.run(command, check=True)
    return folder


REFUSED = {
    "the agent": ("agent.py", "agent.py changed"),
    "a prompt": ("prompt.txt", "prompt.txt changed"),
    "new code": ("more.py", "more.py changed"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_another_agent_is_refused(finished, kind, capsys):
    name, says = REFUSED[kind]
    path = finished / name
    later = time.time() + 60
    path.write_text((path.read_text() if path.exists() else "") + "\n# changed\n")
    os.utime(path, (later, later))
    assert call("run", finished, "--resume", "last") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "--baseline" in err


def test_another_python_is_refused(finished, capsys):
    make_environment(finished.parent)
    for option in ("--resume=last", "--retry-errors=all"):
        assert call("run", finished, option) == 2
        assert f"its Python changed: {sys.executable} → {finished.parent}/.venv" in capsys.readouterr().err
    assert call("run", finished, "--resume", "last", "--python", sys.executable) == 3


def test_a_copy_of_a_run_is_of_the_same_moment(finished, capsys):
    change(RunStore(finished).latest(), "UPDATE run SET started = '2026-01-02T03:04:05+00:00'")
    (finished / "prompt.txt").write_text("4")
    copy = finished.parent / "copy.sqlite"
    copy.write_bytes(RunStore(finished).latest().read_bytes())
    assert call("run", finished, "--resume", copy) == 2
    assert "prompt.txt changed" in capsys.readouterr().err


def test_an_env_file_that_changed_is_refused_whenever_it_did(finished, capsys):
    change(RunStore(finished).latest(), "UPDATE run SET started = '2099-01-02T03:04:05+00:00'")
    (finished / ".env").write_text("TONE=rude\n")
    assert call("run", finished, "--resume", "last") == 2
    assert ".env changed" in capsys.readouterr().err


def test_a_prompt_edited_while_the_run_went_on_is_refused(finished, capsys):
    (finished / "prompt.txt").write_text("another")
    log = RunStore(finished).latest()
    os.utime(finished / "prompt.txt", (log.stat().st_mtime, log.stat().st_mtime))
    assert call("run", finished, "--resume", "last") == 2
    assert "prompt.txt changed" in capsys.readouterr().err


def test_what_the_agent_wrote_itself_is_no_reason(finished, capsys):
    (finished / "memory.txt").write_text("another")
    change(RunStore(finished).latest(), "UPDATE run SET started = '2099-01-02T03:04:05+00:00'")
    assert call("run", finished, "--resume", "last") == 3
    capsys.readouterr()


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        ([one_case(0), one_case(2)], "basics no longer has case_1"),
        ([one_case(0), one_case(1, "Right!"), one_case(2)], "finished cases changed: case_1"),
        (None, "basics.evalset.json was deleted"),
    ],
    ids=["deleted", "edited", "no file"],
)
def test_other_cases_are_refused(finished, cases, says, capsys):
    if cases is None:
        (finished / "basics.evalset.json").unlink()
    else:
        write_eval_set(finished, "basics", *cases)
    assert call("run", finished, "--resume", "last") == 2
    assert says in capsys.readouterr().err


def test_a_case_that_is_to_be_run_anyway_may_change(finished, capsys):
    write_eval_set(finished, "basics", one_case(0), one_case(1), one_case(2, "Right!"), one_case(7))
    assert call("run", finished, "--resume", "last", "--report", "json") == 3
    assert [case["eval_id"] for case in report_of(capsys)["cases"]] == ["case_0", "case_1", "case_2"]


def test_a_case_that_is_new_since_the_run_began_is_named(finished, capsys):
    write_eval_set(finished, "basics", *map(one_case, range(3)), one_case(7))
    assert call("run", finished, "--resume", "last") == 3
    note = "not run, new in basics.evalset.json since the run began: case_7"
    assert note in " ".join(capsys.readouterr().out.split())
    assert call("run", finished, "--resume", "last", "--report", "json") == 3
    assert note in report_of(capsys)["notes"]


def test_another_config_is_refused(finished, capsys):
    write_test_config(finished, response_match_score=0.5)
    assert call("run", finished, "--resume", "last") == 2
    err = capsys.readouterr().err
    assert "the scoring of basics changed: config: criteria.tool_trajectory_avg_score removed" in err
    assert "config: criteria.response_match_score 0.8 → 0.5" in err


def test_a_config_in_other_words_is_the_same(finished, capsys):
    criteria = {"response_match_score": {"threshold": 0.8}, "tool_trajectory_avg_score": {"threshold": 1.0}}
    prices = {"m": {"input_mtok": 1, "output_mtok": 2}}
    block = {"optional": ["safety_v1"], "prices": prices}
    write_test_config(finished, criteria=criteria, evaltui=block)
    assert call("run", finished, "--resume", "last") == 3
    capsys.readouterr()


def test_the_config_that_was_named_is_used_again(finished, tmp_path, capsys):
    config = tmp_path / "strict.json"
    config.write_text('{"criteria": {"response_match_score": 0.5}}')
    assert call("run", finished, "--config", config) == 3
    capsys.readouterr()
    assert call("run", finished, "--resume", "last", "--report", "json") == 3
    assert report_of(capsys)["sets"][0]["config"]["path"] == str(config)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["basics"], "leave out SET"),
        (["--runs", "3", "--failed"], "leave out --runs, --failed"),
    ],
)
def test_the_options_are_those_of_the_run(finished, words, says, capsys):
    assert call("run", finished, *words, "--resume", "last") == 2
    assert says in capsys.readouterr().err


def test_what_cannot_be_resumed(finished, capsys):
    def refused(run: object) -> str:
        assert call("run", finished, "--resume", run) == 2
        return capsys.readouterr().err

    assert "has no run 'nothing'" in refused("nothing")
    (result,) = (finished / ".adk" / "eval_history").iterdir()
    assert "ADK result files cannot be resumed" in refused(result)
    log = RunStore(finished).latest()
    (finished / "prompt.txt").write_text("")
    damaged = log.with_name("0damaged.sqlite")
    damaged.write_text("not a log\n")
    assert "is not a run of evaltui" in refused("0damaged")
    open_log = begin_run(RunStore(finished), RunHeader())
    assert "Run in progress" in refused(open_log.path.stem)
    open_log.close()


def test_without_a_baseline_there_is_no_regression(agent, capsys):
    assert call("run", agent, "--fail-on-regression") == 2
    assert "--fail-on-regression needs --baseline" in capsys.readouterr().err
    assert call("run", agent, "--baseline", "last") == 2
    assert "no runs of" in capsys.readouterr().err


def test_results_of_other_versions_are_named(agent, capsys):
    (agent.parent / "go").touch()
    call("run", agent, "basics:case_1,case_2")
    file = RunStore(agent).latest()
    change(
        file,
        "UPDATE run SET status = NULL, seconds = NULL, agent = json_set(agent, '$.python', '3.0.1')",
        "DELETE FROM repeats WHERE case_id = 2",
        "UPDATE cases SET status = NULL, runs = NULL, summary = NULL, report = NULL WHERE id = 2",
    )
    capsys.readouterr()
    assert call("run", agent, "--resume", "last", "--report", "json") == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("reused results are of other versions: python 3.0.1 → " in note for note in notes)
