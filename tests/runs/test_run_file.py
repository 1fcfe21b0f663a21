"""A run's file: read back, read while it is written, killed, on a full disk, damaged, or no run at all."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from large_runs import SET, eval_id, write_run

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.compare.totals import totals_of
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.limits import Amount
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.model.spending import Cost
from evaltui.core.secrets import Secrets
from evaltui.project.run_settings import RunSettings
from evaltui.runs.history import case_of, open_run
from evaltui.runs.listing import read_row
from evaltui.runs.resuming import StoredRepeats, finished_repeats
from evaltui.runs.run_file import Ending, RunFile, is_being_written
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_tables import VERSION
from evaltui.runs.run_writer import RunWriter, begin_run, next_number
from evaltui.runs.store import RunStore
from tests.stored_runs import add_case, change, count, selected, store_run

PATH = 'a "quoted" folder/s.evalset.json'
IDS = ("plain", 'a "quoted" one', "grüße 🌻", "\udcff no Unicode", "", "'; DROP TABLE cases; --")
_NONE = Secrets()
HEADER = RunHeader(settings=RunSettings(runs=2), files={"agent.py": "1"})


def written(path: Path, secrets: Secrets = _NONE) -> RunWriter:
    """A run of cases with two repeats each, an event in each repeat, all of them mixed; still open."""
    selected = SelectedSet(PATH, "s", (*IDS, "not run"), {"criteria": {"m": 0.5}}, fingerprint="f")
    writer = RunWriter(path, replace(HEADER, sets=(selected,)), secrets)
    writer.set_agent({"name": "home", "model": "gemini"})
    for repeat in range(2):
        for case in IDS:
            writer.start(CaseId(PATH, case), "s", repeat)
            writer.add_event(Event("text", path=PATH, set="s", case=case, repeat=repeat, data={"n": repeat}))
    for case in IDS:
        for repeat in reversed(range(2)):
            writer.add_repeat(CaseId(PATH, case), "s", repeat, RepeatResult(Status.PASSED, seconds=repeat))
        add_case(writer, CaseSummary("s", case, Status.PASSED, runs=2, passed=2, path=PATH))
    writer.add_spending(Amount(0.5, 100))
    writer.commit()
    return writer


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "still open"])
def test_a_run_is_read_as_it_was_written(tmp_path, closed):
    writer = written(tmp_path / "run.sqlite")
    if closed:
        writer.close(Ending(Status.PASSED, 1.5))
        assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]
    file = RunFile(writer.path)
    assert file.ending == (Ending(Status.PASSED, 1.5) if closed else None)
    assert (file.agent, file.header.files) == ({"name": "home", "model": "gemini"}, {"agent.py": "1"})
    [selected] = file.header.sets
    assert (selected.path, selected.eval_ids, selected.whole) == (PATH, (*IDS, "not run"), False)
    assert (selected.config, selected.fingerprint) == ({"criteria": {"m": 0.5}}, "f")
    assert [case.id.eval_id for case in file.cases] == list(IDS)
    assert file.spent_without_result == Amount(0.5, 100)
    for case in file.cases:
        assert file.case(case.id) == file.case_at(case.number) == case
        assert [one.seconds for one in file.results(case.number)] == [0, 1]
        events = {number: [one.data for one in some] for number, some in file.events_of(case.id).items()}
        assert events == {0: [{"n": 0}], 1: [{"n": 1}]}
    assert file.case(CaseId(PATH, "not run")) is None
    assert file.case(CaseId(PATH, "nothing")) is None
    assert list(open_run(writer.path).summary.unfinished) == [CaseId(PATH, "not run")]


def test_a_repeat_that_begins_anew_leaves_nothing_of_the_earlier_try(tmp_path):
    writer = written(tmp_path / "run.sqlite")
    case = CaseId(PATH, "plain")
    writer.start(case, "s", 0)
    writer.add_event(Event("error", path=PATH, set="s", case="plain"))
    writer.add_repeat(case, "s", 0, RepeatResult(Status.ERROR, seconds=9))
    add_case(writer, CaseSummary("s", "plain", Status.ERROR, runs=2, passed=1, path=PATH))
    writer.commit()
    file = RunFile(writer.path)
    assert [event.kind for event in file.events_of(case)[0]] == ["error"]
    assert [one.seconds for one in file.results(1)] == [9, 1]
    assert [one.id.eval_id for one in file.cases] == list(IDS)
    assert file.case(case).summary.status is Status.ERROR


def test_what_is_committed_is_in_the_file_at_once_and_the_rest_soon(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr("evaltui.runs.run_writer.time.monotonic", lambda: now)
    writer = RunWriter(tmp_path / "run.sqlite", RunHeader((SelectedSet("s", "s", ("a",)),)), Secrets())
    event = Event("text", path="s", set="s", case="a")
    writer.add_event(event)
    file = RunFile(writer.path)
    assert file.events_of(CaseId("s", "a")) == {}
    add_case(writer, CaseSummary("s", "a", Status.FAILED))
    writer.commit()
    assert (len(list(file.cases)), len(file.events_of(CaseId("s", "a"))[0])) == (1, 1)
    now = 101.0
    writer.add_event(event)
    assert len(file.events_of(CaseId("s", "a"))[0]) == 2


@pytest.mark.parametrize("seed", range(20))
def test_totals_are_those_of_the_cases(tmp_path, seed):
    chance = random.Random(seed)
    costs = [{}, {"agent": Cost(0.25, None, 1)}, {"agent": Cost(unseen=1), "judge": Cost(0.5)}]
    summaries = [
        CaseSummary(
            "set",
            f"case {number}",
            chance.choice(list(Status)),
            2,
            policy="majority",
            policy_met=chance.random() < 0.5,
            seconds=chance.choice([None, 0.5, 2.0, 4.0]),
            tokens=None if chance.random() < 0.1 else 8.0,
            costs=chance.choice(costs),
            path="set.evalset.json",
        )
        for number in range(seed)
    ]
    selected = SelectedSet("set.evalset.json", "set", tuple(one.eval_id for one in summaries))
    writer = RunWriter(tmp_path / "run.sqlite", RunHeader((selected,)), Secrets())
    for one in summaries:
        add_case(writer, one)
    writer.commit()
    totals = RunFile(writer.path).totals
    in_memory = totals_of(summaries)
    for name in ("counts", "passed", "tokens", "total_cost"):
        assert getattr(totals, name) == getattr(in_memory, name), name
    assert read_row(writer.path).totals == totals


def test_secrets_are_masked_and_ids_are_not(tmp_path):
    secrets = Secrets({"API_KEY": "quoted-secret-value", "OTHER_TOKEN": "plain"}, named=["OTHER_TOKEN"])
    writer = written(tmp_path / "run.sqlite", secrets)
    event = Event("text", path=PATH, set="s", case="plain", data={"text": "a quoted-secret-value"})
    writer.add_event(event)
    writer.close()
    assert b"quoted-secret-value" not in writer.path.read_bytes()
    file = RunFile(writer.path)
    assert file.events_of(CaseId(PATH, "plain"))[0][-1].data == {"text": "a <API_KEY>"}
    assert next(file.cases).id == CaseId(PATH, "plain")


# What is no run


def test_what_is_no_run_is_refused(tmp_path):
    path = tmp_path / "x.sqlite"
    for content in (b"", b"{}\n", b"hello\n" * 1000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.sqlite"):
            RunFile(path)
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE run (header TEXT)")
    with pytest.raises(ValueError, match=r"x\.sqlite is not a run of evaltui"):
        RunFile(path)
    for name, step in (("a newer", 1), ("an older", -1)):
        file = tmp_path / f"{name}.sqlite"
        written(file).close()
        with sqlite3.connect(file) as other:
            other.execute(f"PRAGMA user_version = {VERSION + step}")
        with pytest.raises(ValueError, match=rf"{name}\.sqlite was written by {name} version of evaltui"):
            RunFile(file)
    with pytest.raises(OSError, match="none"):
        RunFile(tmp_path / "none.sqlite")


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, seed):
    writer = written(tmp_path / "run.sqlite")
    writer.close(Ending(Status.PASSED))
    chance, content = random.Random(seed), bytearray(writer.path.read_bytes())
    start = chance.randrange(100, len(content) - 3000)
    content[start : start + 3000] = chance.randbytes(3000)
    writer.path.write_bytes(content)

    def read() -> str:
        try:
            file = RunFile(writer.path)
            _ = file.header, file.agent, file.totals, list(file.cases), list(file.repeats)
            for case in IDS:
                file.events_of(CaseId(PATH, case))
        except (ValueError, OSError) as error:
            return str(error)
        return "run.sqlite"

    assert "run.sqlite" in read()


def test_a_damaged_header_is_named_with_its_place_in_one_line(tmp_path):
    path = store_run(tmp_path, [selected("s", "a")], [])
    change(path, "UPDATE run SET header = json_set(header, '$.settings.parallel', 'many')")
    problem = read_row(path).problem
    assert problem.startswith(f"{path} is damaged: header.settings.parallel: Input should be a valid integer")
    assert len(problem.splitlines()) == 1


@pytest.mark.parametrize("ending", [None, Ending(Status.PASSED)])
def test_a_part_of_a_run_is_refused_as_one_that_was_interrupted(tmp_path, ending):
    writer = written(tmp_path / "run.sqlite")
    writer.close(ending)
    with closing(sqlite3.connect(writer.path)) as database:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'events_of_repeats'"
        page = database.execute(query).fetchone()[0]
    # An index without entries, as in a copy that was made while the run was committed.
    content = bytearray(writer.path.read_bytes())
    content[(page - 1) * 4096 : (page - 1) * 4096 + 8] = bytes([0x0A, 0, 0, 0, 0, 0x10, 0, 0])
    writer.path.write_bytes(content)
    if ending is None:
        with pytest.raises(
            ValueError, match=r"run\.sqlite is damaged: .*; was it copied while the run went on"
        ):
            open_run(writer.path)
    else:
        # What was closed was whole, and is not looked through each time.
        open_run(writer.path)


# Folders


def test_the_folder_is_kept_out_of_git_and_the_users_own_gitignore_stays(tmp_path):
    begin_run(RunStore(tmp_path), RunHeader()).close()
    ignore = tmp_path / ".evaltui" / ".gitignore"
    assert ignore.read_text() == "*\n"
    ignore.write_text("runs/\n")
    begin_run(RunStore(tmp_path), RunHeader()).close()
    assert ignore.read_text() == "runs/\n"


def test_the_run_of_a_single_file_agent_is_beside_it(tmp_path):
    (tmp_path / "agent.py").touch()
    writer = begin_run(RunStore(tmp_path / "agent.py"), RunHeader())
    writer.close()
    assert writer.path.parent == tmp_path / ".evaltui" / "runs"
    assert writer.path.stat().st_mode & 0o777 == 0o600
    assert RunStore(tmp_path / "agent.py").latest() == writer.path


def test_where_a_folder_cannot_be_written_the_users_is(tmp_path):
    (tmp_path / ".evaltui").write_text("in the way")
    store = RunStore(tmp_path)
    writer = begin_run(store, RunHeader())
    writer.close()
    assert writer.elsewhere.startswith(f"Run stored in {store.folder_of_user}: ")
    assert store.files() == [writer.path]
    assert store.folder_of_user.stat().st_mode & 0o777 == 0o700
    writer.path.unlink()
    store.folder_of_user.rmdir()
    store.folder_of_user.write_text("in the way")
    with pytest.raises(OSError, match="runs"):
        begin_run(store, RunHeader())


def test_ids_sort_by_time_and_runs_are_numbered(tmp_path):
    store = RunStore(tmp_path)
    for number in (1, 2, 7):
        assert next_number(store) == min(number, 3)
        begin_run(store, RunHeader(number=number)).close()
    assert [RunFile(path).number for path in store.files()] == [1, 2, 7]
    assert next_number(store) == 8


# Other processes

_OTHER = """
    import sys
    from pathlib import Path
    from evaltui.core.compare.repeats import case_over_repeats
    from evaltui.core.compare.run_summary import summarize
    from evaltui.core.model.limits import Amount
    from evaltui.core.model.case_id import CaseId
    from evaltui.core.model.events import Event
    from evaltui.core.model.outcome import RepeatResult, Status
    from evaltui.runs.run_file import Ending
    from evaltui.runs.run_writer import begin_run
    from evaltui.runs.run_header import RunHeader, SelectedSet
    from evaltui.runs.store import RunStore
    store = RunStore(Path(sys.argv[1]))
    say = lambda text: print(text, flush=True)
    ids = tuple(map(str, range(2000)))
    selected = SelectedSet("s", "s", ids)
    def write(writer):
        for one in ids:
            case = CaseId("s", one)
            writer.start(case, "s", 0)
            for _ in range(5):
                writer.add_event(Event("text", path="s", set="s", case=one, data={"text": "x" * 999}))
            repeat = RepeatResult(Status.FAILED)
            writer.add_repeat(case, "s", 0, repeat)
            result = case_over_repeats("s", one, [repeat], "all")
            writer.add_case(summarize(result), result)
            writer.commit()
            say(one)
"""


def other_process(folder: Path, code: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(_OTHER) + code, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_run_of_another_process_is_being_written_until_it_is_killed(tmp_path):
    child = other_process(tmp_path, "say(begin_run(store, RunHeader()).path); sys.stdin.read()")
    path = Path(child.stdout.readline().strip())
    assert is_being_written(path)
    child.kill()
    child.communicate()
    assert not is_being_written(path)
    assert RunFile(path).ending is None


def test_a_run_is_being_written_also_while_it_commits(tmp_path):
    code = (
        "writer = begin_run(store, RunHeader())\nsay(writer.path)\nwhile True: writer.add_spending(Amount())"
    )
    child = other_process(tmp_path, code)
    path = Path(child.stdout.readline().strip())
    try:
        assert all(is_being_written(path) for _ in range(1000))
    finally:
        child.kill()
        child.communicate()


def test_a_run_that_is_about_to_write_much_locks_no_reader_out(tmp_path, monkeypatch):
    monkeypatch.setattr("evaltui.runs.run_writer.time.monotonic", lambda: 100.0)
    writer = written(tmp_path / "run.sqlite")
    writer.add_event(Event("text", path=PATH, set="s", case="plain", data={"text": "x" * 5_000_000}))
    with closing(sqlite3.connect(writer.path, timeout=0)) as db:
        assert db.execute("SELECT count(*) FROM cases WHERE status IS NOT NULL").fetchone() == (len(IDS),)


def test_a_reader_that_holds_the_file_loses_no_result(tmp_path, monkeypatch):
    monkeypatch.setattr("evaltui.runs.run_writer._PATIENCE", 0.01)
    monkeypatch.setattr("evaltui.runs.run_writer._RETRY_EVERY", 0.0)
    writer = written(tmp_path / "run.sqlite")
    locked = []
    writer.on_locked = locked.append
    with closing(sqlite3.connect(writer.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM run").fetchall()
        for number in range(3):
            writer.add_event(Event("text", path=PATH, set="s", case="plain", data={"n": number}))
            writer.commit()
    assert locked == ["run.sqlite is locked by another process; results wait until it ends"]
    writer.commit()
    assert len(RunFile(writer.path).events_of(CaseId(PATH, "plain"))[0]) == 4
    writer.close(Ending(Status.PASSED, 1.0))
    assert RunFile(writer.path).ending == Ending(Status.PASSED, 1.0)


@pytest.mark.parametrize("reported", [1, 37, 200])
def test_a_killed_run_has_every_case_that_it_reported(tmp_path, reported):
    child = other_process(tmp_path, "write(begin_run(store, RunHeader((selected,))))")
    last = [child.stdout.readline().strip() for _ in range(reported)][-1]
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate()
    last = (rest.split() or [last])[-1]
    path = RunStore(tmp_path).latest()
    # Until it is read, what a killed run was about to write is in the journal beside it.
    assert RunFile(path).ending is None
    copy = tmp_path / "copy.sqlite"
    shutil.copyfile(path, copy)
    copy.chmod(0o400)
    for one in (copy, path):
        file = RunFile(one)
        done = [case.id.eval_id for case in file.cases]
        # The last line may have been cut off.
        assert done[: int(last) or 1] == [str(number) for number in range(int(last) or 1)]
        assert [case.id.eval_id for case in file.cases if len(file.events(case.number)[0]) != 5] == []
        assert file.ending is None


def test_a_full_disk_ends_a_run_behind_what_it_reported(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\n"
    code = (
        limit
        + "writer = begin_run(store, RunHeader((selected,)))\ntry: write(writer)\nexcept OSError: say('full')"
    )
    said, _ = other_process(tmp_path, code).communicate()
    *reported, last = said.split()
    assert (last, len(reported) > 1) == ("full", True)
    file = RunFile(RunStore(tmp_path).latest())
    assert [case.id.eval_id for case in file.cases] == reported
    assert not is_being_written(file.path)


def test_runs_that_begin_at_once_in_several_processes_have_numbers_of_their_own(tmp_path):
    code = (
        "say('ready'); sys.stdin.readline()\n"
        "for _ in range(20): begin_run(store, RunHeader(number=1)).close()\n"
    )
    writers = [other_process(tmp_path, code) for _ in range(2)]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    numbers = [RunFile(file).number for file in RunStore(tmp_path).files()]
    assert sorted(numbers) == list(range(1, 41))


@pytest.mark.thorough
def test_runs_killed_at_any_moment_leave_what_they_reported(tmp_path):
    chance = random.Random(1)
    for number in range(200):
        folder = tmp_path / str(number)
        folder.mkdir()
        test_a_killed_run_has_every_case_that_it_reported(folder, chance.randint(1, 1500))


# Resuming


def test_the_results_of_an_interrupted_run_are_read_when_they_are_asked_for(tmp_path):
    file = RunFile(write_run(tmp_path / "run.sqlite", 20, failed=2))
    finished, _ = finished_repeats(file)
    assert list(finished) == [CaseId(SET, eval_id(number)) for number in range(20)]
    case = CaseId(SET, eval_id(1))
    assert finished[case] == {0: (f"{1:012x}", "", Amount())}
    repeats = StoredRepeats(file, case, (0,))
    assert (list(repeats), 0 in repeats, 1 in repeats) == ([0], True, False)
    result = repeats[0]
    assert (result.status, result.turns[0].response.score) == (Status.PASSED, 1.0)
    assert "please say 1 to me" in str(result.actual)


def test_repeats_that_are_taken_over_are_what_they_were(tmp_path, monkeypatch):
    monkeypatch.setattr("evaltui.runs.run_writer._COMMIT_SECONDS", 0.0)
    earlier = RunFile(write_run(tmp_path / "run.sqlite", 20, failed=2))
    later = RunWriter(tmp_path / "later.sqlite", earlier.header, Secrets())
    for stored in earlier.repeats:
        later.copy_repeat(earlier, stored)
    # Until they are in the file, they are in memory.
    assert count(later.path, "repeats") == 20
    for case in earlier.cases:
        add_case(later, case.summary)
    later.close()
    again = RunFile(later.path)
    assert list(again.cases) == list(earlier.cases)
    for case in earlier.cases:
        assert case_of(again, case.id, case.summary) == case_of(earlier, case.id, case.summary)
