from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.edits import Put
from evaltui.core.jsondoc.merge import Merged, merge
from evaltui.core.jsondoc.splices import Splice, inverted
from evaltui.files import journal as journals
from evaltui.files.journal import Journal, recoverable
from evaltui.files.saving import fingerprint
from tests.recovered_texts import after, before

CASES = '[{"eval_id": "a", "n": 1}, {"eval_id": "b"}]'
BASE = f'\ufeff{{\r\n  "eval_set_id": "é \\ud83d",\r\n  "eval_cases": {CASES}\r\n}}'

EDITOR = """
    import os, signal, sys
    from pathlib import Path
    from evaltui.core.jsondoc.document import JsonDocument
    from evaltui.core.jsondoc.edits import Put
    from evaltui.core.jsondoc.splices import inverted
    from evaltui.files.journal import Journal
    from evaltui.files.saving import read_source, save
    path = Path(sys.argv[1])
    source = read_source(path)
    document = JsonDocument(source.text)
    journal = Journal.open(path.parent, path, JsonDocument(source.text), source.fingerprint)
    done = []
    for word in sys.argv[2:]:
        if word == "undo":
            splices = inverted(done.pop())
            document.splice(splices)
            journal.append("Undo", splices)
        elif word == "save":
            save(path, document.text, source.fingerprint)
        elif word == "wait":
            print("ready", flush=True)
            sys.stdin.readline()
        else:
            done.append(document.apply([Put(("eval_cases", 0, "n"), int(word))]))
            journal.append(f"Set n to {word}", done[-1])
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def file(tmp_path) -> Path:
    return written(tmp_path, BASE)


def written(folder: Path, text: str) -> Path:
    path = folder / "a.evalset.json"
    path.write_bytes(text.encode())
    return path


def crashed(file: Path, *words: object, editor: str = EDITOR) -> None:
    """A process edits the file and dies."""
    command = [sys.executable, "-c", textwrap.dedent(editor), str(file), *map(str, words)]
    assert subprocess.run(command, check=False).returncode == -9


def edited(value: object) -> str:
    document = JsonDocument(BASE)
    document.apply([Put(("eval_cases", 0, "n"), value)])
    return document.text


def test_the_edits_of_a_process_that_died_can_be_recovered(file, tmp_path):
    crashed(file, 2, 3, "undo", 4)
    (found,) = recoverable(tmp_path)
    assert (found.path, before(found), found.matches) == (file, BASE, True)
    assert [step.label for step in found.steps()] == ["Set n to 2", "Set n to 3", "Undo", "Set n to 4"]
    assert timedelta(0) <= datetime.now(UTC) - found.when < timedelta(minutes=1)
    document = JsonDocument(before(found))
    for step in found.steps():
        document.splice(step.splices)
    assert document.text == after(found) == edited(4)
    # The steps are an undo history too.
    for step in reversed([*found.steps()]):
        document.splice(inverted(step.splices))
    assert document.text == BASE
    assert recoverable(tmp_path) == [found]
    found.discard()
    assert recoverable(tmp_path) == []
    assert (tmp_path / ".evaltui" / ".gitignore").read_text() == "*\n"


def test_a_file_that_changed_since_is_reported_with_what_a_merge_needs(file, tmp_path):
    crashed(file, 2)
    theirs = BASE.replace('"b"', '"other"')
    file.write_bytes(theirs.encode())
    (found,) = recoverable(tmp_path)
    assert not found.matches
    merged = merge(JsonDocument(before(found)), JsonDocument(after(found)), theirs)
    assert isinstance(merged, Merged)
    assert merged.text == theirs.replace('"n": 1', '"n": 2')
    file.unlink()
    assert [(one.matches, after(one)) for one in recoverable(tmp_path)] == [(False, edited(2))]


@pytest.mark.parametrize("words", [[], [2, "undo"], [2, 3, "save"]])
def test_with_nothing_to_recover_the_journal_goes(file, tmp_path, words):
    crashed(file, *words)
    assert recoverable(tmp_path) == []
    assert list((tmp_path / ".evaltui" / "recovery").iterdir()) == []


def test_edits_of_a_process_that_lives_are_its_own(file, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(EDITOR), str(file), "2", "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert recoverable(tmp_path) == []
        process.communicate("go\n")
    assert [after(one) for one in recoverable(tmp_path)] == [edited(2)]


def test_without_locks_the_process_id_tells(file, tmp_path, monkeypatch):
    def no_locks(descriptor, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(journals.fcntl, "flock", no_locks)
    own = Journal.open(tmp_path, file, JsonDocument(BASE), fingerprint(BASE))
    own.append("mine", [Splice(0, "\ufeff", "")])
    assert recoverable(tmp_path) == []
    crashed(file, 2)
    assert [after(one) for one in recoverable(tmp_path)] == [edited(2)]
    own.discard()


def test_a_journal_cut_anywhere_gives_the_edits_up_to_the_cut(file, tmp_path):
    crashed(file, 2, 3)
    (found,) = recoverable(tmp_path)
    data = found.journal.read_bytes()
    ends = [position + 1 for position, byte in enumerate(data) if byte == ord("\n")]
    for size in sorted(
        {*range(0, len(data), 7), *ends, *(end - 1 for end in ends), *(end + 1 for end in ends)}
    ):
        found.journal.write_bytes(data[:size])
        texts = [after(one) for one in recoverable(tmp_path)]
        whole = sum(end <= size for end in ends)
        assert texts == {0: [], 1: [], 2: [], 3: [edited(2)], 4: [edited(3)]}[whole]


def test_what_does_not_fit_ends_the_edits(file, tmp_path):
    crashed(file, 2, 3)
    (found,) = recoverable(tmp_path)
    lines = found.journal.read_text().splitlines(keepends=True)
    wrong = json.loads(lines[3])
    wrong["splices"][0][0] += 1
    found.journal.write_text("".join([*lines[:3], json.dumps(wrong) + "\n", lines[2]]))
    assert [after(one) for one in recoverable(tmp_path)] == [edited(2)]
    found.journal.write_text("".join([*lines[:3], "damaged\n", lines[3]]))
    assert [after(one) for one in recoverable(tmp_path)] == [edited(2)]


def test_other_files_and_versions_are_left_alone(file, tmp_path):
    crashed(file, 2)
    (found,) = recoverable(tmp_path)
    later = found.journal.read_text().replace('"version":3', '"version":4', 1)
    found.journal.write_text(later)
    (found.journal.parent / "note.jsonl").write_text("hello\n")
    (found.journal.parent / "list.jsonl").write_text("[1]\n")
    header = json.loads(later.splitlines()[0]) | {"version": 1, "base": "AAAA"}
    (found.journal.parent / "base.jsonl").write_text(json.dumps(header) + "\n")
    assert recoverable(tmp_path) == []
    assert found.journal.read_text() == later
    assert recoverable(tmp_path / "nowhere") == []


UNSAVED = BASE.removeprefix("\ufeff")


def left_behind(agent_dir: Path, file: Path) -> None:
    """An edit whose process is gone."""
    journal = Journal.open(agent_dir, file, JsonDocument(BASE), fingerprint(BASE))
    journal.append("mine", [Splice(0, "\ufeff", "")])
    # The lock ends with the process; this one goes on.
    journal._file.close()


def test_edits_follow_their_folder_when_it_is_moved_or_copied(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    left_behind(folder, written(folder, BASE))
    copied, moved = tmp_path / "copied", tmp_path / "moved"
    shutil.copytree(folder, copied)
    folder.rename(moved)
    for place in (copied, moved):
        (found,) = recoverable(place)
        assert (found.path, found.matches, after(found)) == (place / "a.evalset.json", True, UNSAVED)
    assert recoverable(folder) == []


def hostile_paths(folder: Path) -> Iterator[str]:
    """Paths in a journal of a folder that name no file of this folder."""
    outside = written(folder.parent, BASE)
    (folder / "link.json").symlink_to(outside)
    (folder / "linked").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe.json")
    yield from (str(outside), "../a.evalset.json", "link.json", "linked/a.evalset.json")
    yield from ("/dev/zero", "pipe.json", ".", "linked/new.json")


def test_no_file_outside_the_folder_is_offered(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    left_behind(folder, written(folder, BASE))
    (found,) = recoverable(folder)
    header, *lines = found.journal.read_text().splitlines()
    for version in (2, 3):
        for path in hostile_paths(folder) if version == 3 else (str(tmp_path / "a.evalset.json"),):
            forged = json.loads(header) | {"version": version, "path": path, "agent": str(folder)}
            found.journal.write_text("\n".join([json.dumps(forged), *lines, ""]))
            assert recoverable(folder) == [], path
            assert found.journal.exists()


def test_a_journal_that_is_no_file_of_this_user_is_left_alone(file, tmp_path, monkeypatch):
    left_behind(tmp_path, file)
    (found,) = recoverable(tmp_path)
    os.mkfifo(found.journal.with_name("pipe.jsonl"))
    found.journal.with_name("link.jsonl").symlink_to(found.journal)
    assert recoverable(tmp_path) == [found]
    monkeypatch.setattr(os, "getuid", lambda: found.journal.stat().st_uid + 1)
    assert recoverable(tmp_path) == []


def test_edits_of_a_file_beside_the_agent_are_kept_with_the_user_for_this_agent(file, tmp_path):
    agent, other = tmp_path / "agent", tmp_path / "other"
    agent.mkdir()
    other.mkdir()
    left_behind(agent, file)
    assert not (agent / ".evaltui").exists()
    (found,) = recoverable(agent)
    assert (found.path, found.name, after(found)) == (file, "../a.evalset.json", UNSAVED)
    assert recoverable(other) == []
    found.discard()
    assert recoverable(agent) == []


def test_a_saved_document_has_no_journal(file, tmp_path):
    journal = Journal.open(tmp_path, file, JsonDocument(BASE), fingerprint(BASE))
    journal.append("edit", [Splice(0, "\ufeff", "")])
    journal.discard()
    assert list((tmp_path / ".evaltui" / "recovery").iterdir()) == []
    journal.discard()


def test_a_disk_that_was_full_for_a_moment_costs_no_edit(file, tmp_path):
    """Killed at the end, after an edit that was kept by half, one that was not kept, and two that were."""
    program = """
        import os, resource, signal, sys
        from pathlib import Path
        from evaltui.core.jsondoc.document import JsonDocument
        from evaltui.core.jsondoc.edits import Put
        from evaltui.files.journal import Journal
        from evaltui.files.saving import read_source
        path = Path(sys.argv[1])
        source = read_source(path)
        document = JsonDocument(source.text)
        journal = Journal.open(path.parent, path, JsonDocument(source.text), source.fingerprint)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        for number in range(2, 7):
            room = journal.path.stat().st_size + 20 if number in (3, 4) else hard
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
            try:
                journal.append(f"Set n to {number}", document.apply([Put(("eval_cases", 0, "n"), number)]))
            except OSError:
                print(number, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    assert subprocess.run(command, check=False, capture_output=True).stdout.split() == [b"3", b"4"]
    (found,) = recoverable(tmp_path)
    assert [step.label for step in found.steps()] == [f"Set n to {number}" for number in range(2, 7)]
    assert after(found) == edited(6)


def test_a_journal_of_the_version_before_can_be_read(file, tmp_path):
    """Its first line has the text, always."""
    crashed(file, 2)
    (found,) = recoverable(tmp_path)
    header, base, *edits = map(json.loads, found.journal.read_text().splitlines())
    old = [header | base | {"version": 1, "fingerprint": fingerprint(BASE)}, *edits]
    found.journal.write_text("".join(f"{json.dumps(line)}\n" for line in old))
    file.write_bytes(BASE.replace('"b"', '"other"').encode())
    (found,) = recoverable(tmp_path)
    assert (before(found), after(found), found.matches) == (BASE, edited(2), False)


# A text of some megabytes is packed while edits go on

LARGE = BASE.replace('"eval_id": "b"', f'"eval_id": "b", "text": "{"word " * 300_000}"')

KILLED_WHILE_PACKING = """
    import os, signal, sys, threading
    from pathlib import Path
    from evaltui.core.jsondoc.document import JsonDocument
    from evaltui.core.jsondoc.edits import Put
    from evaltui.files import journal
    from evaltui.files.saving import read_source
    packing, packed = threading.Event(), journal._packed
    def pack(base):
        packing.set()
        return threading.Event().wait() if sys.argv[2] == "packing" else packed(base)
    journal._packed = pack
    path = Path(sys.argv[1])
    source = read_source(path)
    document = JsonDocument(source.text)
    own = journal.Journal.open(path.parent, path, document.copy(), source.fingerprint)
    own.append("Set n to 2", document.apply([Put(("eval_cases", 0, "n"), 2)]))
    packing.wait()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and sys.argv[2] == "packed":
            thread.join()
    own.append("Set n to 3", document.apply([Put(("eval_cases", 0, "n"), 3)]))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def large(tmp_path) -> Path:
    return written(tmp_path, LARGE)


def test_a_kill_while_a_large_text_is_packed_loses_no_edit(large, tmp_path):
    crashed(large, "packing", editor=KILLED_WHILE_PACKING)
    (found,) = recoverable(tmp_path)
    assert "base" not in "".join(line[:200] for line in found.journal.open())
    assert [step.label for step in found.steps()] == ["Set n to 2", "Set n to 3"]
    assert (before(found), found.matches) == (LARGE, True)
    assert after(found) == LARGE.replace('"n": 1', '"n": 3')


def test_a_large_text_that_was_packed_is_not_needed_on_disk(large, tmp_path):
    crashed(large, "packed", editor=KILLED_WHILE_PACKING)
    large.unlink()
    (found,) = recoverable(tmp_path)
    assert (before(found), found.matches) == (LARGE, False)
    assert after(found) == LARGE.replace('"n": 1', '"n": 3')


@pytest.mark.parametrize("theirs", [LARGE.replace('"b"', '"other"'), None])
def test_edits_of_a_large_text_that_nobody_has_any_more_are_kept_and_not_restored(large, tmp_path, theirs):
    crashed(large, "packing", editor=KILLED_WHILE_PACKING)
    if theirs is None:
        large.unlink()
    else:
        large.write_bytes(theirs.encode())
    (found,) = recoverable(tmp_path)
    assert (before(found), after(found), found.matches) == (None, "", False)
    assert [step.label for step in found.steps()] == ["Set n to 2", "Set n to 3"]
    assert found.journal.exists()
    # As it was again, its edits can be restored.
    large.write_bytes(LARGE.encode())
    assert [after(one) for one in recoverable(tmp_path)] == [LARGE.replace('"n": 1', '"n": 3')]


def test_a_text_that_was_packed_by_half_is_taken_from_the_file(large, tmp_path):
    crashed(large, "packed", editor=KILLED_WHILE_PACKING)
    (found,) = recoverable(tmp_path)
    header, *lines = found.journal.read_bytes().splitlines(keepends=True)
    (base,) = (line for line in lines if line.startswith(b'{"base":'))
    first, _ = (line for line in lines if line is not base)
    for size in (0, 1, len(base) // 2, len(base) - 1):
        found.journal.write_bytes(b"".join([header, first, base[:size]]))
        (torn,) = recoverable(tmp_path)
        assert (after(torn), torn.matches) == (LARGE.replace('"n": 1', '"n": 2'), True)


def test_a_journal_that_ends_while_its_text_is_packed_is_gone(tmp_path, monkeypatch):
    may_pack, packed = threading.Event(), journals._packed
    monkeypatch.setattr(journals, "_packed", lambda base: may_pack.wait(15) and packed(base))
    monkeypatch.setattr(journals, "_LARGE", 10)
    before = threading.active_count()
    journal = Journal.open(tmp_path, tmp_path / "a.evalset.json", JsonDocument(BASE), None)
    journal.discard()
    may_pack.set()
    for thread in threading.enumerate()[before:]:
        thread.join()
    assert list((tmp_path / ".evaltui" / "recovery").iterdir()) == []


# What is offered is found without texts


@pytest.fixture
def put_together(monkeypatch):
    """How often a text was cut into a document, and the longest piece that was read of one."""
    found = {"documents": 0, "longest": 0}
    whole, unpacked = JsonDocument.__init__, journals._unpacked

    def make(self, text, like=None):
        found["documents"] += isinstance(text, str)
        whole(self, text, like)

    def pieces(file, place):
        for piece in unpacked(file, place):
            found["longest"] = max(found["longest"], len(piece))
            yield piece

    monkeypatch.setattr(JsonDocument, "__init__", make)
    monkeypatch.setattr(journals, "_unpacked", pieces)
    return found


@pytest.mark.parametrize("theirs", [LARGE, LARGE.replace('"b"', '"other"'), None])
def test_several_journals_are_offered_without_putting_a_text_together(large, tmp_path, theirs, put_together):
    for _ in range(3):
        crashed(large, "packed", editor=KILLED_WHILE_PACKING)
    if theirs is None:
        large.unlink()
    else:
        large.write_bytes(theirs.encode())
    offered = recoverable(tmp_path)
    assert [one.labels for one in offered] == [("Set n to 2", "Set n to 3")] * 3
    assert put_together["documents"] == 0
    assert put_together["longest"] <= journals._PIECE
    document = JsonDocument(LARGE)
    put_together["documents"] = 0
    assert offered[2].edited(document).text == LARGE.replace('"n": 1', '"n": 3')
    assert put_together["documents"] == 0


def test_a_large_file_that_was_saved_with_others_changes_just_before_the_end_has_nothing_to_recover(
    large, tmp_path
):
    crashed(large, "packed", editor=KILLED_WHILE_PACKING)
    large.write_bytes(LARGE.replace('"n": 1', '"n": 3').encode())
    assert recoverable(tmp_path) == []


def test_an_old_text_that_is_damaged_is_offered_and_not_restored(file, tmp_path):
    crashed(file, 2)
    (found,) = recoverable(tmp_path)
    header, base, *edits = found.journal.read_bytes().splitlines(keepends=True)
    damaged = base[:20] + base[24:]
    found.journal.write_bytes(b"".join([header, damaged, *edits]))
    file.write_bytes(BASE.replace('"b"', '"other"').encode())
    (offered,) = recoverable(tmp_path)
    assert offered.labels == ("Set n to 2",)
    with pytest.raises(ValueError, match="damaged"):
        offered.base()
