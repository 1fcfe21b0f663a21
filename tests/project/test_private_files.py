"""What is kept beside an agent is for its user alone, stays out of git, and never goes where a link leads."""

from __future__ import annotations

import stat
import subprocess
from dataclasses import replace

import pytest
from stored_runs import add_case, selected

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.documents.document import JsonDocument
from evaltui.documents.recovery import RecoveryFile, recoverable
from evaltui.project.settings import remember_config
from evaltui.runner.recording_files import save_recordings
from evaltui.runs.adk_results import write_adk_result
from evaltui.runs.history import name_run
from evaltui.runs.run_file import Ending, RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import begin_run
from evaltui.runs.store import RunStore


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


def write_everything(agent):
    log = begin_run(RunStore(agent), RunHeader((selected("s", "c"),)))
    log.close(Ending(Status.PASSED))
    recovery = RecoveryFile.open(agent, agent / "x.evalset.json", JsonDocument("{}"), None)
    recovery.write(JsonDocument('{"a": 1}'), ["edit"], ())
    remember_config(agent, agent / "x.json")
    name_run(RunStore(agent), "last", "before")
    result = write_adk_result(agent, "r", "{}")
    own = agent / ".evaltui"
    return [
        log.path,
        *sorted(recovery.path.parent.iterdir()),
        own / "settings.json",
        own / "runs" / "names.json",
        result,
    ]


@pytest.mark.parametrize("is_there", [False, True])
def test_files_and_folders_are_for_their_user(tmp_path, is_there):
    if is_there:
        for folder in (".evaltui", ".evaltui/runs", ".evaltui/unsaved"):
            (tmp_path / folder).mkdir(mode=0o755)
    files = write_everything(tmp_path)
    assert [mode(file) for file in files] == ["0o600"] * 7
    folders = {folder for file in files for folder in file.relative_to(tmp_path).parents}
    assert {mode(tmp_path / folder) for folder in folders if folder.name} == {"0o700"}


def test_git_sees_nothing_of_it(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    write_everything(tmp_path)
    status = subprocess.run(
        ["git", "-C", tmp_path, "status", "--porcelain", "--untracked-files=all"],
        capture_output=True,
        check=True,
    )
    assert status.stdout == b""


def test_an_adk_folder_of_the_user_stays_as_it_is(tmp_path):
    (tmp_path / ".adk").mkdir(mode=0o755)
    write_adk_result(tmp_path, "r", "{}")
    assert mode(tmp_path / ".adk") == "0o755"
    assert not (tmp_path / ".adk" / ".gitignore").exists()


LINKS = [".evaltui", ".evaltui/runs", ".evaltui/unsaved", "recordings", "recordings/score"]
LINKS += [".adk", ".adk/eval_history"]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_is_not_followed(tmp_path, link):
    agent, elsewhere = tmp_path / "agent", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (agent / ".evaltui").parent.mkdir()
    (elsewhere / "20260101T000000.000Z-abcdef.sqlite").write_text("{}\n")
    (agent / link).parent.mkdir(exist_ok=True)
    (agent / link).symlink_to(elsewhere, target_is_directory=True)
    writers = {
        ".evaltui/runs": lambda: RunStore(agent).make(),
        ".evaltui/unsaved": lambda: RecoveryFile.open(agent, agent / "x", JsonDocument("{}"), None),
        "recordings/score": lambda: save_recordings(agent / "recordings" / "score" / "a.jsonl", {}, {}),
        ".adk/eval_history": lambda: write_adk_result(agent, "r", "{}"),
    }
    for place, write in writers.items():
        if place.startswith(link):
            with pytest.raises(OSError, match="is a link, which is not followed"):
                write()
    assert [file.name for file in elsewhere.iterdir()] == ["20260101T000000.000Z-abcdef.sqlite"]
    if link in (".evaltui", ".evaltui/runs"):
        assert RunStore(agent).files() == []
    assert recoverable(agent) == []


def test_a_run_has_no_secrets_and_keeps_its_ids(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "correct horse")
    (tmp_path / ".env").write_text("DB_PASSWORD='tr0ub4dor&3'\n")
    case, set_id = CaseId("correct horse.test.json", "AKIAIOSFODNN7EXAMPLE"), "correct horse"
    one = SelectedSet(case.path, set_id, (case.eval_id,), {"criteria": {"x": "correct horse"}})
    run = begin_run(RunStore(tmp_path), RunHeader((one,)))
    run.start(case, set_id, 0)
    text = {"text": "tr0ub4dor&3, correct horse"}
    run.add_event(Event("text", text, path=case.path, set=set_id, case=case.eval_id))
    error = ErrorInfo("E", "AKIAIOSFODNN7EXAMPLE", kind=None)
    failed = RepeatResult(Status.ERROR, error=error, final_state={"path": "correct horse"})
    run.add_repeat(case, set_id, 0, failed)
    judges = {"quality": "judge with correct horse"}
    add_case(run, CaseSummary(set_id, case.eval_id, Status.FAILED, judges=judges, path=case.path))
    run.close(Ending(Status.FAILED))
    file = RunFile(run.path)
    assert file.header.sets == (replace(one, config={"criteria": {"x": "<SHOP_API_KEY>"}}),)
    (read,) = file.cases
    assert (read.id, read.summary.eval_set_id) == (case, set_id)
    assert read.summary.judges == {"quality": "judge with <SHOP_API_KEY>"}
    [event] = file.events_of(case)[0]
    assert (event.case, event.content) == (case.eval_id, {"text": "<DB_PASSWORD>, <SHOP_API_KEY>"})
    (repeat,) = file.repeats
    assert repeat.case == case
    result = file.result(repeat.data)
    assert (result.error.message, result.final_state) == ("<key>", {"path": "<SHOP_API_KEY>"})
