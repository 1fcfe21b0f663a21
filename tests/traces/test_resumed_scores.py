"""A score of traces that was interrupted, or had errors, goes on with the same conversations."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from threading import Thread

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.runs.history import open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn, write_eval_set
from tests.waiting import wait_until

# Notes each question that it is asked, waits at the last two for a file named "go", and fails where told to.
JUDGE = """
import time
from pathlib import Path

HERE = Path(__file__).parent


def judge(prompt):
    number = next(number for number in range(10) if f"Question {number}" in prompt)
    with (HERE / "asked.txt").open("a") as asked:
        asked.write(f"{number}\\n")
    while number >= 2 and not (HERE / "go").exists():
        time.sleep(0.005)
    if str(number) in (HERE / "failing.txt").read_text():
        raise ConnectionError("the judge is out of order")
    return '{"reasoning": "So it is.", "is_the_agent_response_valid": "valid"}'
"""
CONFIG = {
    "criteria": {
        "final_response_match_v2": {
            "threshold": 1.0,
            "judge_model_options": {"judge_model": "judging:judge", "num_samples": 1},
        }
    }
}


def messages(role, text):
    return {"stringValue": json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])}


def conversation(session, question, answer, second):
    """A span of a model, which is all of its conversation."""
    values = {
        "gen_ai.operation.name": {"stringValue": "chat"},
        "gen_ai.conversation.id": {"stringValue": session},
        "gen_ai.input.messages": messages("user", question),
        "gen_ai.output.messages": messages("assistant", answer),
        "gen_ai.request.model": {"stringValue": "gemini-2.5-flash"},
        "gen_ai.usage.input_tokens": {"intValue": "5000"},
        "gen_ai.usage.output_tokens": {"intValue": "50"},
    }
    name = session.encode().hex()
    return {
        "traceId": name.rjust(32, "0")[:32],
        "spanId": name.rjust(16, "0")[:16],
        "name": "chat",
        "startTimeUnixNano": str(second * 10**9),
        "endTimeUnixNano": str((second + 1) * 10**9),
        "attributes": [{"key": key, "value": value} for key, value in values.items()],
    }


def write_trace(path, *spans):
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}))


def write_set(folder, questions):
    write_eval_set(
        folder,
        "desk",
        *(
            make_case(f"case_{number}", make_turn(question, "Right."))
            for number, question in questions.items()
        ),
    )


QUESTIONS = {number: f"Question {number}" for number in range(4)}
SCORE = ("score", "traces", "--sets", "desk.evalset.json", "--parallel", "1")


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Four cases, the second of which two conversations are of."""
    monkeypatch.chdir(tmp_path)
    write_set(tmp_path, QUESTIONS)
    (tmp_path / "test_config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "judging.py").write_text(JUDGE)
    (tmp_path / "failing.txt").write_text("")
    (tmp_path / "traces").mkdir()
    for number, question in QUESTIONS.items():
        write_trace(tmp_path / f"traces/{number}.json", conversation(f"s{number}", question, "Yes.", number))
    write_trace(tmp_path / "traces/again.json", conversation("again", "Question 1", "No.", 9))
    return tmp_path


def asked(desk):
    """The questions that the judge was asked since the last look."""
    file = desk / "asked.txt"
    numbers = sorted(int(line) for line in file.read_text().split()) if file.exists() else []
    file.unlink(missing_ok=True)
    return numbers


def interrupted(desk, *words):
    """Ctrl-C while the judge is slow at the third case; the log."""
    words = words or SCORE
    process = subprocess.Popen(
        [sys.executable, "-m", "evaltui", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )

    def is_waiting():
        assert process.poll() is None, process.communicate()
        return (desk / "asked.txt").exists() and "2\n" in (desk / "asked.txt").read_text()

    wait_until(is_waiting)
    process.send_signal(signal.SIGINT)
    told = process.communicate()
    assert process.returncode == 130, told
    return RunStore(desk).latest()


def report(desk):
    data = json.loads((desk / "report.json").read_text())
    return {one["eval_id"]: [repeat["status"] for repeat in one["repeats"]] for one in data["cases"]}, data


ALL = {"case_0": ["PASSED"], "case_1": ["PASSED"] * 2, "case_2": ["PASSED"], "case_3": ["PASSED"]}


def test_interrupted_scores_are_resumed_without_judging_anything_twice(desk, capsys):
    log = interrupted(desk)
    assert asked(desk) == [0, 1, 1, 2]
    header = RunFile(log).header
    assert header.trace_files == {
        f"traces/{name}.json": hashlib.sha256((desk / f"traces/{name}.json").read_bytes()).hexdigest()
        for name in ("0", "1", "2", "3", "again")
    }
    assert header.sets[0].conversations == {
        "case_0": ("s0",),
        "case_1": ("s1", "again"),
        "case_2": ("s2",),
        "case_3": ("s3",),
    }
    (desk / "go").touch()
    # A file that came later is no part of the score, an unpaired one would be exit 3.
    write_trace(desk / "traces/later.json", conversation("later", "What else?", "Nothing.", 20))
    assert call("score", "--resume", log, "--report", "json=report.json") == 0
    assert asked(desk) == [2, 3]
    statuses, data = report(desk)
    assert statuses == ALL
    assert f"resumes run {log.stem}: 3 results kept" in data["notes"]
    # What was taken over is as whole as what was scored.
    resumed = open_run(RunStore(desk).latest())
    case = CaseId("desk.evalset.json", "case_1")
    answers = [one.actual[0].final_response.parts[0].text for one in resumed.case(case).repeats]
    assert (resumed.status, answers) == ("PASSED", ["Yes.", "No."])
    capsys.readouterr()
    assert call("score", "--resume", "last") == 2
    assert "Nothing to resume: run is complete" in capsys.readouterr().err


def test_errors_of_a_kind_are_scored_again(desk, capsys):
    (desk / "go").touch()
    (desk / "failing.txt").write_text("3")
    assert call(*SCORE) == 3
    asked(desk)
    capsys.readouterr()
    assert call("score", "--retry-errors=timeout") == 2
    assert "run has no errors of kind timeout" in capsys.readouterr().err
    (desk / "failing.txt").write_text("")
    kinds = {
        repeat.error_kinds
        for name in QUESTIONS
        for repeat in open_run(RunStore(desk).latest())
        .case(CaseId("desk.evalset.json", f"case_{name}"))
        .repeats
    }
    (kind,) = frozenset().union(*kinds)
    retry = ("score", f"--retry-errors={kind}", "--report", "json=report.json", "--resume", "last")
    # What the conversations cost when they were held is no part of a budget.
    assert call(*retry, "--budget", "5ktok") == 0
    assert asked(desk) == [3]
    assert report(desk)[0] == ALL


def changed(desk):
    write_trace(desk / "traces/3.json", conversation("s3", "Question 3", "Something else.", 3))


def deleted(desk):
    (desk / "traces/3.json").unlink()


def ambiguous(desk):
    write_set(desk, {**QUESTIONS, 5: "Question 1"})


def judged_otherwise(desk):
    (desk / "judging.py").write_text(JUDGE.replace('"valid"', '"invalid"'))


REFUSALS = {
    judged_otherwise: "cannot be resumed: functions changed: judging.judge. Run all cases instead",
    changed: "cannot be resumed: traces/3.json changed. Run all cases instead",
    deleted: "cannot be resumed: traces/3.json not found in .. Run all cases instead",
    ambiguous: "case_1 of run {} had other conversations",
}


def test_other_conversations_than_before_are_refused(desk, capsys):
    (desk / "go").touch()
    (desk / "failing.txt").write_text("2 3")
    assert call(*SCORE) == 3
    log = RunStore(desk).latest()
    (desk / "failing.txt").write_text("")
    asked(desk)
    for change, why in REFUSALS.items():
        before = {
            file: file.read_bytes()
            for file in [*desk.glob("traces/*"), desk / "desk.evalset.json", desk / "judging.py"]
        }
        change(desk)
        assert call("score", "--resume", "last") == 2
        assert why.format(log.stem) in capsys.readouterr().err
        for file, content in before.items():
            file.write_bytes(content)
    assert asked(desk) == []
    assert call("score", "traces", "--resume", "last", "--case-from", "x", "--only-paired") == 2
    assert "leave out TRACE, --case-from, --only-paired" in capsys.readouterr().err
    assert call("score") == 2
    assert "TRACE" in capsys.readouterr().err
    # Unfinished cases may change.
    write_set(desk, {**QUESTIONS, 3: "Question 7"})
    assert call("score", "--resume", "last") == 3
    assert asked(desk) == [2]


def test_runs_and_scores_are_resumed_by_their_own_command(desk, capsys):
    (desk / "go").touch()
    (desk / "agent.py").write_text("def root_agent(message, session):\n    return 'Right.'\n")
    assert call(*SCORE) == 0
    run = RunStore(desk).latest().stem
    capsys.readouterr()
    assert call("run", ".", "--resume", "last") == 2
    assert f"traces were scored: use `evaltui score --resume {run}`" in capsys.readouterr().err
    assert call("run", ".") == 0
    run = RunStore(desk).latest().stem
    capsys.readouterr()
    assert call("score", "--resume", "last") == 2
    assert f"the agent was run: use `evaltui run --resume {run}`" in capsys.readouterr().err


def test_a_part_is_resumed_as_a_part_and_merged_with_its_repeats(desk, capsys):
    (desk / "go").touch()
    (desk / "failing.txt").write_text("0 1 2 3")
    for number in (1, 2):
        assert call(*SCORE, "--shard", f"{number}/2") == 3
    (desk / "failing.txt").write_text("")
    parts = [log.stem for log in RunStore(desk).files()]
    for part in parts:
        assert call("score", "--resume", part) == 0
    *_, first, second = RunStore(desk).files()
    capsys.readouterr()
    assert call("merge", ".", first, second, "--report", "json=report.json") == 0
    assert report(desk)[0] == ALL
    merged = RunFile(RunStore(desk).latest())
    assert merged.ending is not None
    assert len(merged.header.trace_files) == 5


def test_parts_of_other_traces_are_not_merged(desk, capsys):
    (desk / "go").touch()
    assert call(*SCORE, "--shard", "1/2") == 0
    write_trace(desk / "traces" / "0.json", conversation("s0", "Question 0", "No.", 0))
    assert call(*SCORE, "--shard", "2/2") == 0
    capsys.readouterr()
    assert call("merge", ".", *RunStore(desk).files()) == 2
    assert "traces/0.json changed" in capsys.readouterr().err


def test_merged_scores_name_traces_that_changed(desk, capsys):
    (desk / "go").touch()
    for number in (0, 1):
        write_trace(desk / "traces.json", conversation(f"s{number}", f"Question {number}", "Yes.", number))
        assert call("score", "traces.json", "--sets", f"desk.evalset.json:case_{number}") == 0
    capsys.readouterr()
    assert call("merge", ".", *RunStore(desk).files()) == 0
    assert "traces.json" in capsys.readouterr().out


def test_what_can_be_read_only_once_is_not_resumed(desk, capsys):
    (desk / "go").touch()
    (desk / "failing.txt").write_text("0")
    pipe = desk / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=[(desk / "traces/0.json").read_bytes()])
    writer.start()
    assert call("score", pipe, "--sets", "desk.evalset.json:case_0") == 3
    writer.join()
    capsys.readouterr()
    assert call("score", "--resume", "last") == 2
    assert "pipe can be read only once" in capsys.readouterr().err


def test_a_budget_ends_a_score_which_goes_on_with_a_higher_one(desk, capsys):
    """The judge is a function, which does not tell its tokens: each question counts with its estimate."""
    (desk / "go").touch()
    assert call(*SCORE, "--budget", "900tok") == 3
    printed = capsys.readouterr().out
    assert "not run: budget of 900 tokens reached" in printed
    assert "error" not in printed
    before = len(asked(desk))
    assert 1 <= before < 5
    assert call("score", "--resume", "last", "--budget", "1Mtok") == 0
    assert "4 passed" in capsys.readouterr().out


def write_with_rest(path, rest):
    """A document of no agent, and something behind it."""
    write_trace(path, conversation("other", "", "", 90) | {"attributes": []})
    path.write_text(path.read_text() + "\n" + rest)


STRAY = {
    "traceId": "7" * 32,
    "spanId": "7" * 16,
    "eventName": "gen_ai.choice",
    "body": {"stringValue": "No."},
}
UNSCORED = {
    "no case": (
        lambda path: write_trace(path, conversation("other", "something else", "yes", 90)),
        "1 of 6 conversations matches no case:",
        "1 conversation matches no case",
    ),
    "cut off": (
        lambda path: write_with_rest(path, '{"resourceSpans": [{"scopeSp'),
        "traces/other.json: the rest after 1 document is cut off and was left out",
    ),
    "of lost spans": (
        lambda path: write_with_rest(
            path, json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [STRAY]}]}]})
        ),
        "1 log record with messages left out: of no span that is here",
    ),
}


@pytest.mark.parametrize("kind", UNSCORED)
def test_what_of_traces_is_not_scored_is_told_by_parts_their_whole_and_reports(desk, capsys, kind):
    (desk / "go").touch()
    write, note = UNSCORED[kind][:2]
    write(desk / "traces" / "other.json")
    for number in (1, 2):
        assert call(*SCORE, "--shard", f"{number}/2") == 3
    capsys.readouterr()
    assert call("merge", ".", *RunStore(desk).files()) == 3
    assert capsys.readouterr().out.count(note) == 1
    capsys.readouterr()
    assert call("report", ".", "--report", "json=report.json", "--report", "junit") == 0
    junit = capsys.readouterr().out
    assert 'errors="1"' in junit.partition("<testsuite ")[0]
    assert f'message="{UNSCORED[kind][-1]}" type="NOT_EVALUATED"' in junit
    assert call("compare", ".", "last", "last", "--fail-on-regression") == 3
    assert UNSCORED[kind][-1] in capsys.readouterr().err
    assert call("runs", ".") == 0
    assert "not evaluated" in capsys.readouterr().out.splitlines()[0]
    assert call("report", ".", "--report", "markdown") == 0
    assert "## – 4 cases passed" in capsys.readouterr().out
    report = json.loads((desk / "report.json").read_text())
    assert report["status"] == "NOT_EVALUATED"
    notes = report["notes"]
    assert notes[0] == note
    assert kind != "no case" or notes[1] == '  other  "something else"  no case is like it'
    assert notes == RunFile(RunStore(desk).files()[0]).notes
