from __future__ import annotations

import errno
import json
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import platformdirs
import pytest

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.model.problems import EvalSetError
from evaltui.files import atomic
from evaltui.files.atomic import write_atomically
from evaltui.files.saving import (
    ChangedOutsideError,
    Write,
    add_cases,
    fingerprint,
    read_source,
    save,
    save_together,
)
from evaltui.files.workspace import sets_below

TEXT = '\ufeff{\r\n "eval_set_id": "é", "eval_cases": [] }'


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


def test_a_file_is_saved_to_the_byte(tmp_path):
    file = tmp_path / "a.evalset.json"
    saved = save(file, TEXT, None)
    assert file.read_bytes() == TEXT.encode()
    assert read_source(file) == saved
    assert saved.fingerprint == fingerprint(TEXT)
    again = save(file, TEXT + "\n", saved.fingerprint)
    assert read_source(file) == again
    assert again.fingerprint != saved.fingerprint
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_changed_outside_is_left_alone(tmp_path):
    file = tmp_path / "a.evalset.json"
    seen = save(file, "1", None).fingerprint
    file.write_text("2")
    with pytest.raises(
        ChangedOutsideError, match=r"a\.evalset\.json was changed by another program"
    ) as raised:
        save(file, "3", seen)
    assert file.read_text() == "2"
    assert raised.value.theirs_text == "2"
    with pytest.raises(ChangedOutsideError):
        save(file, "3", None)
    # What is wanted is there already.
    assert save(file, "2", seen).fingerprint == raised.value.fingerprint
    save(file, "3", raised.value.fingerprint)
    assert file.read_text() == "3"


def test_a_file_that_was_deleted_or_is_no_text_any_more_is_changed_too(tmp_path):
    file = tmp_path / "a.evalset.json"
    seen = save(file, "1", None).fingerprint
    file.write_bytes(b"\xff")
    with pytest.raises(ChangedOutsideError) as raised:
        save(file, "2", seen)
    assert raised.value.theirs_text is None
    assert raised.value.fingerprint is not None
    with pytest.raises(EvalSetError, match=r"a\.evalset\.json:1: not UTF-8"):
        read_source(file)
    file.unlink()
    with pytest.raises(ChangedOutsideError, match="was deleted") as raised:
        save(file, "2", seen)
    assert (raised.value.theirs_text, raised.value.fingerprint) == (None, None)
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        save(tmp_path / "nowhere" / "a.json", "1", None)


def test_the_mode_stays_and_a_link_stays_a_link(tmp_path):
    real = tmp_path / "elsewhere" / "real.json"
    real.parent.mkdir()
    real.write_text("1")
    real.chmod(0o640)
    link = tmp_path / "a.evalset.json"
    link.symlink_to(Path("elsewhere") / "real.json")
    save(link, "2", read_source(link).fingerprint)
    assert link.is_symlink()
    assert link.readlink() == Path("elsewhere") / "real.json"
    assert real.read_text() == "2"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(tmp_path.rglob("*")) == sorted([link, real.parent, real])


def test_a_new_file_has_the_mode_that_any_new_file_has(tmp_path):
    (tmp_path / "plain").touch()
    write_atomically(tmp_path / "new", "1")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_content_and_folder_reach_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(stat.S_IFMT(os.fstat(descriptor).st_mode))
    )
    write_atomically(tmp_path / "new", "1")
    assert synced == [stat.S_IFREG, stat.S_IFDIR]


SAVER = """
    import sys
    from pathlib import Path
    from evaltui.files.saving import read_source, save
    path, size = Path(sys.argv[1]), int(sys.argv[2])
    print("ready", flush=True)
    number = 0
    while True:
        number += 1
        save(path, f"{number:09}" * size, read_source(path).fingerprint)
        print(number, flush=True)
"""


def test_a_save_that_is_killed_leaves_the_old_text_or_the_new_one(tmp_path):
    file = tmp_path / "a.evalset.json"
    size = 200_000
    rng = random.Random(4)
    for _ in range(16):
        file.write_text(f"{0:09}" * size)
        process = start(SAVER, file, size)
        assert process.stdout is not None
        process.stdout.readline()
        begin = time.monotonic()
        process.stdout.readline()
        taken = time.monotonic() - begin
        # At any moment of the next save or of the one after it.
        moment = time.monotonic() + taken * 2 * rng.random()
        while time.monotonic() < moment:
            pass
        process.send_signal(signal.SIGKILL)
        saved = ["1", *process.communicate()[0].split()][-1]
        text = file.read_text()
        assert text == text[:9] * size
        assert int(text[:9]) - int(saved) in (0, 1)
        assert [entry.path.name for entry in sets_below(tmp_path, tmp_path)] == ["a.evalset.json"]
        left = [one for one in tmp_path.iterdir() if one != file]
        assert all(one.name.startswith(".") and one.name.endswith(".tmp") for one in left)
    # The lock of a process that was killed is free.
    save(file, "{}", read_source(file).fingerprint)


ADDER = """
    import sys
    from pathlib import Path
    from evaltui.files.saving import add_cases
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(25):
        add_cases(Path(sys.argv[1]), [{"eval_id": f"{sys.argv[2]} {number}", "conversation": []}])
"""


def test_processes_that_add_cases_at_once_lose_none(tmp_path):
    file = tmp_path / "a.evalset.json"
    before = '{\n  "eval_set_id": "s",\n  "odd" : 1.00,\n  "eval_cases": [ ]\n}\n'
    file.write_text(before)
    processes = [start(ADDER, file, name) for name in "abc"]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    text = file.read_text()
    ids = [case["eval_id"] for case in json.loads(text)["eval_cases"]]
    assert sorted(ids) == sorted(f"{name} {number}" for name in "abc" for number in range(25))
    for name in "abc":
        assert [one for one in ids if one[0] == name] == [f"{name} {number}" for number in range(25)]
    assert text.startswith(before.partition("[")[0])
    assert list(tmp_path.iterdir()) == [file]


def test_a_case_is_added_in_the_style_of_the_file(tmp_path):
    file = tmp_path / "a.evalset.json"
    file.write_text('{"evalSetId": "s", "evalCases": [{"evalId": "a"}]}')
    added = add_cases(file, [{"eval_id": "b"}])
    assert added == read_source(file)
    assert added.text == '{"evalSetId": "s", "evalCases": [{"evalId": "a"}, {"eval_id": "b"}]}'
    with pytest.raises(EvalSetError, match="already has a case 'a'"):
        add_cases(file, [{"eval_id": "a"}])
    assert read_source(file) == added


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be a list of cases"),
        ("{,}", "not valid JSON"),
        ('{"eval_cases": {}}', "must be a list of cases"),
    ],
)
def test_a_case_is_added_to_eval_sets_only(tmp_path, text, message):
    file = tmp_path / "a.evalset.json"
    file.write_text(text)
    with pytest.raises(EvalSetError, match=message):
        add_cases(file, [{"eval_id": "a"}])
    assert file.read_text() == text
    with pytest.raises(FileNotFoundError):
        add_cases(tmp_path / "none.evalset.json", [{"eval_id": "a"}])


def test_a_save_waits_for_another_one_and_not_for_ever(tmp_path, monkeypatch):
    file = tmp_path / "a.evalset.json"
    with atomic.locked(tmp_path):
        monkeypatch.setattr(atomic, "_LONGEST_WAIT", 0.0)
        with pytest.raises(TimeoutError, match="another process is saving in"):
            save(file, "1", None)
        monkeypatch.setattr(atomic, "_LONGEST_WAIT", 60.0)
        waiting = threading.Thread(target=save, args=(file, "1", None))
        waiting.start()
        assert not file.exists()
    waiting.join()
    assert file.read_text() == "1"


def test_where_a_folder_cannot_be_locked_a_file_in_the_cache_is(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: cache / name)
    flock = atomic.fcntl.flock

    def on_files_only(descriptor, operation):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(9, "Bad file descriptor")
        flock(descriptor, operation)

    monkeypatch.setattr(atomic.fcntl, "flock", on_files_only)
    folder = tmp_path / "evals"
    folder.mkdir()
    with atomic.locked(folder):
        monkeypatch.setattr(atomic, "_LONGEST_WAIT", 0.0)
        with pytest.raises(TimeoutError):
            save(folder / "b.json", "1", None)
    save(folder / "b.json", "1", None)
    assert [one.name for one in folder.iterdir()] == ["b.json"]
    assert len(list((cache / "evaltui" / "locks").iterdir())) == 1


EVAL_SETS = Path(__file__).parents[2].parent / "shared" / "evalsets"


@pytest.mark.skipif(not EVAL_SETS.is_dir(), reason="the real eval sets are not here")
def test_real_files_are_loaded_and_saved_to_the_byte(tmp_path):
    for number, file in enumerate(sorted(EVAL_SETS.rglob("*.json"))):
        copy = tmp_path / f"{number}.json"
        save(copy, JsonDocument(read_source(file).text).text, None)
        assert copy.read_bytes() == file.read_bytes()


# Between the comparison and the moment of the replacement


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("moment", ["while it is written", "right before it is replaced"])
def test_a_change_that_lands_during_a_save_is_seen(tmp_path, monkeypatch, moment, exchange):
    file = tmp_path / "a.evalset.json"
    seen = save(file, "1", None).fingerprint
    if not exchange:
        monkeypatch.setattr(atomic, "_renameat2", lambda: None)
        if moment != "while it is written":
            pytest.skip("what cannot be exchanged is compared once more, and no later")
    name = "_written_beside" if moment == "while it is written" else "_exchange"
    function = getattr(atomic, name)

    def late(*arguments):
        monkeypatch.setattr(atomic, name, function)
        file.write_text("theirs")
        return function(*arguments)

    monkeypatch.setattr(atomic, name, late)
    with pytest.raises(ChangedOutsideError) as raised:
        save(file, "mine", seen)
    assert raised.value.theirs_text == file.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_does_not_replace_one_that_came_meanwhile(tmp_path, monkeypatch):
    file = tmp_path / "a.evalset.json"
    link = os.link

    def late(*arguments):
        file.write_text("theirs")
        link(*arguments)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(ChangedOutsideError):
        save(file, "mine", None)
    assert file.read_text() == "theirs"


WRITER = """
    import sys, time
    from pathlib import Path
    # As google-adk's manager does: read, change, write in place.
    path = Path(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[2])):
        while True:
            lines = path.read_text().split("\\n")
            if lines[-1] == "end":
                break
        path.write_text("\\n".join([*lines[:-1], f"w{number}", "end"]))
        time.sleep(0.003)
"""


def test_what_a_program_without_locks_adds_meanwhile_is_not_lost(tmp_path, thorough):
    """Of a program that writes in place, at the worst moments that there are."""
    file = tmp_path / "a.txt"
    file.write_text("end")
    count = 400 if thorough else 40
    process = start(WRITER, file, count)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    process.stdin.write("go\n")
    process.stdin.flush()
    saved = 0
    while process.poll() is None:
        source = read_source(file)
        lines = source.text.split("\n")
        if lines[-1] != "end":
            continue
        with suppress(ChangedOutsideError):
            save(file, "\n".join(["mine", *(line for line in lines if line != "mine")]), source.fingerprint)
            saved += 1
    assert saved
    left = [line for line in file.read_text().split("\n") if line.startswith("w")]
    assert left == [f"w{number}" for number in range(count)]


# Several files


def test_several_files_are_written_or_none(tmp_path, monkeypatch):
    files = [tmp_path / name for name in ("a.json", "b.json", "new.json")]
    seen = [save(file, "1", None).fingerprint for file in files[:2]] + [None]
    writes = [Write(file, "2", one) for file, one in zip(files, seen, strict=True)]
    link = os.link

    def late(*arguments):
        # The last of them cannot be written any more.
        files[2].write_text("theirs")
        link(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", late)
        with pytest.raises(ChangedOutsideError):
            save_together(writes)
    assert [file.read_text() for file in files] == ["1", "1", "theirs"]
    assert sorted(tmp_path.iterdir()) == files
    files[2].unlink()
    assert [source.text for source in save_together(writes)] == ["2", "2", "2"]
    assert [file.read_text() for file in files] == ["2", "2", "2"]


# Files that are not like others


def test_owner_and_group_stay(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    seen = save(file, "1", None).fingerprint
    file.chmod(0o664)
    if os.geteuid():
        pytest.skip("only root may give files away")
    os.chown(file, 1234, 4321)
    save(file, "2", seen)
    found = file.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o664)


def test_what_killed_saves_left_goes_with_the_next_save(tmp_path):
    file = tmp_path / "a.json"
    left = tmp_path / f".evaltui-{'0' * 32}.tmp"
    left.write_text("half")
    others = [tmp_path / ".other.tmp", tmp_path / ".evaltui", tmp_path / f".{'0' * 32}.tmp"]
    for other in others:
        other.write_text("theirs")
    save(file, "1", None)
    assert sorted(tmp_path.iterdir()) == sorted([file, *others])


def test_a_read_only_file_is_not_replaced(tmp_path):
    file = tmp_path / "a.json"
    seen = save(file, "1", None).fingerprint
    file.chmod(0o444)
    with pytest.raises(PermissionError, match=r"^a.json is read-only; run `chmod u\+w a.json`"):
        save(file, "2", seen)
    assert file.read_text() == "1"


def test_a_hard_link_stays_one(tmp_path):
    file, other = tmp_path / "a.json", tmp_path / "b.json"
    seen = save(file, "a long text", None).fingerprint
    other.hardlink_to(file)
    seen = save(file, "short", seen).fingerprint
    assert other.read_text() == "short"
    assert file.samefile(other)
    other.write_text("theirs")
    with pytest.raises(ChangedOutsideError):
        save(file, "mine", seen)


def test_a_file_that_cannot_be_replaced_is_written_in_place(tmp_path, monkeypatch):
    """As one that is mounted into a container."""
    file = tmp_path / "a.json"
    seen = save(file, "1", None).fingerprint
    inode = file.stat().st_ino

    def busy(*_):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(atomic, "_exchange", busy)
    save(file, "2", seen)
    assert file.read_text() == "2"
    assert file.stat().st_ino == inode
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    seen = save(file, "1", None).fingerprint
    open_path = Path.open

    def refused(self, *arguments, **options):
        if self != file:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return open_path(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(PermissionError, match=f"^the folder {tmp_path} cannot be written"):
        save(file, "2", seen)


def test_a_full_disk_is_told_of_the_file_that_is_saved(tmp_path, monkeypatch):
    file = tmp_path / "a.json"

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/a\.json'"):
        save(file, "1", None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    file = tmp_path / "a.json"
    seen = save(file, "1", None).fingerprint
    file.unlink()
    if kind == "a pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    with pytest.raises(OSError, match=f"{kind} has this name"):
        save(file, "2", seen)
    with pytest.raises(OSError, match=f"{kind} has this name"):
        read_source(file)
    with pytest.raises(OSError, match=f"{kind} has this name"):
        write_atomically(file, "2")
