from __future__ import annotations

import errno
import json
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import platformdirs
import pytest
from processes_at_once import let_go

from evaltui.commands.target_set import add_cases
from evaltui.core.model.problems import EvalSetError
from evaltui.documents import files
from evaltui.documents.document import JsonDocument
from evaltui.documents.files import write_atomically
from evaltui.documents.saving import (
    ChangedOutsideError,
    Write,
    fingerprint,
    read_source,
    save,
    save_together,
)
from evaltui.project.workspace import sets_below

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
    from evaltui.documents.saving import read_source, save
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
    from evaltui.commands.target_set import add_cases
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
    let_go(processes)
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
    link = tmp_path / "link.evalset.json"
    link.symlink_to(file)
    with files.locked([link]):
        monkeypatch.setattr(files, "_MAX_WAIT", 0.0)
        with pytest.raises(TimeoutError, match="another process is saving"):
            save(file, "1", None)
        monkeypatch.setattr(files, "_MAX_WAIT", 60.0)
        waiting = threading.Thread(target=save, args=(file, "1", None))
        waiting.start()
        assert not file.exists()
    waiting.join()
    assert file.read_text() == "1"


def test_a_home_that_cannot_be_written_keeps_nobody_from_saving(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    save(tmp_path / "b.json", "1", None)
    assert (tmp_path / "b.json").read_text() == "1"


EVAL_SETS = Path(__file__).parents[2].parent / "shared" / "evalsets"


@pytest.mark.skipif(not EVAL_SETS.is_dir(), reason="the real eval sets are not here")
def test_real_files_are_loaded_and_saved_to_the_byte(tmp_path):
    for number, file in enumerate(sorted(EVAL_SETS.rglob("*.json"))):
        copy = tmp_path / f"{number}.json"
        save(copy, JsonDocument(read_source(file).text).text, None)
        assert copy.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_change_that_lands_while_the_text_is_written_is_seen(tmp_path, monkeypatch, is_new):
    file = tmp_path / "a.evalset.json"
    seen = None if is_new else save(file, "1", None).fingerprint
    written_beside = files._temporary_copy

    def late(*arguments):
        file.write_text("theirs")
        return written_beside(*arguments)

    monkeypatch.setattr(files, "_temporary_copy", late)
    with pytest.raises(ChangedOutsideError) as raised:
        save(file, "mine", seen)
    assert raised.value.theirs_text == file.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [file]


def test_several_files_are_written_or_none(tmp_path, monkeypatch):
    paths = [tmp_path / name for name in ("a.json", "b.json", "new.json")]
    seen = [save(path, "1", None).fingerprint for path in paths[:2]] + [None]
    writes = [Write(path, "2", one) for path, one in zip(paths, seen, strict=True)]
    replace = Path.replace

    def refused(temporary, target):
        if target == paths[2]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(temporary, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refused)
        with pytest.raises(OSError, match="No space left"):
            save_together(writes)
    assert [path.read_text() for path in paths[:2]] == ["1", "1"]
    assert sorted(tmp_path.iterdir()) == paths[:2]
    assert [source.text for source in save_together(writes)] == ["2", "2", "2"]
    assert [path.read_text() for path in paths] == ["2", "2", "2"]


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


def test_a_read_only_file_is_not_replaced(tmp_path):
    file = tmp_path / "a.json"
    seen = save(file, "1", None).fingerprint
    file.chmod(0o444)
    with pytest.raises(PermissionError, match=r"^a.json is read-only; run `chmod u\+w a.json`"):
        save(file, "2", seen)
    assert file.read_text() == "1"


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
