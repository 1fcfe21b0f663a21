"""What a process that is gone has left unsaved: found again, for its folder and its user alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import Duplicate, Insert, Move, Put, Remove, Rename
from evaltui.documents.recovery import Draft, RecoveryFile, recoverable
from evaltui.documents.saving import fingerprint
from tests.recovered_texts import after, before

CASES = ", ".join(f'{{"eval_id": "{name}", "n": 1.00}}' for name in "abcdef")
BASE = f'\ufeff{{\r\n  "eval_set_id": "é \\ud83d",\r\n  "eval_cases": [{CASES}]\r\n}}'
EDIT = Put(("eval_cases", 0, "n"), 2)


def written(folder: Path, text: str = BASE) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "a.evalset.json"
    path.write_bytes(text.encode())
    return path


def opened(folder: Path, path: Path, text: str = BASE) -> RecoveryFile:
    return RecoveryFile.open(folder, path, JsonDocument(text), fingerprint(text))


def left_behind(folder: Path, path: Path, *edits, text: str = BASE) -> str:
    """Edits whose process is gone; the text that they made."""
    recovery, document = opened(folder, path, text), JsonDocument(text).edited(edits or [EDIT])
    recovery.write(document, ["mine"], ())
    # The lock ends with the process; this one goes on.
    recovery.lock.release()
    return document.text


@pytest.mark.parametrize(
    "edits",
    [
        [EDIT],
        [EDIT, Put(("eval_cases", 4, "n"), 5), Put(("eval_cases", 5, "n"), 6)],
        [Put(("eval_set_id",), "other"), Remove(("eval_cases", 2)), EDIT],
        [Insert(("eval_cases",), 3, {"eval_id": "new"}), Duplicate(("eval_cases",), 1)],
        [Move(("eval_cases",), 5, 0)],
        [Rename(("eval_cases",), "evalCases")],
        [Put((), [1])],
    ],
)
def test_the_text_comes_back_to_the_byte(tmp_path, edits):
    file = written(tmp_path)
    text = left_behind(tmp_path, file, *edits)
    (recovered,) = recoverable(tmp_path)
    assert (before(recovered), after(recovered)) == (BASE, text)
    assert (recovered.path, recovered.name, recovered.labels, recovered.matches) == (
        file,
        file.name,
        ("mine",),
        True,
    )
    file.write_text("{}")
    (recovered,) = recoverable(tmp_path)
    assert (before(recovered), after(recovered), recovered.matches) == (BASE, text, False)


def test_of_a_large_set_the_changed_cases_are_written(tmp_path):
    text = json.dumps({"eval_cases": [{"eval_id": str(n), "text": "x" * 500} for n in range(400)]})
    left_behind(tmp_path, written(tmp_path, text), Put(("eval_cases", 3, "text"), "y"), text=text)
    (recovered,) = recoverable(tmp_path)
    assert recovered.file.stat().st_size < 2_000


def test_saved_just_before_the_end_there_is_nothing_to_recover(tmp_path):
    file = written(tmp_path)
    file.write_bytes(left_behind(tmp_path, file).encode())
    assert recoverable(tmp_path) == []
    assert list((tmp_path / ".evaltui" / "unsaved").iterdir()) == []


def test_killed_before_the_first_change_was_written_nothing_is_left(tmp_path):
    opened(tmp_path, written(tmp_path)).lock.release()
    assert recoverable(tmp_path) == []
    assert list((tmp_path / ".evaltui" / "unsaved").iterdir()) == []


def test_changes_of_a_process_that_lives_are_its_own(tmp_path):
    recovery = opened(tmp_path, written(tmp_path))
    recovery.write(JsonDocument(BASE).edited([EDIT]), ["mine"], ())
    assert recoverable(tmp_path) == []
    recovery.discard()
    assert list(recovery.path.parent.iterdir()) == []
    recovery.discard()


def test_changes_follow_their_folder_when_it_is_moved_or_copied(tmp_path):
    folder, copied, moved = tmp_path / "agent", tmp_path / "copied", tmp_path / "moved"
    text = left_behind(folder, written(folder))
    shutil.copytree(folder, copied)
    folder.rename(moved)
    for place in (copied, moved):
        (recovered,) = recoverable(place)
        assert (recovered.path, after(recovered)) == (place / "a.evalset.json", text)
    assert recoverable(folder) == []


def test_changes_of_a_file_beside_the_agent_stay_with_the_user_for_this_agent(tmp_path):
    agent, other = tmp_path / "agent", tmp_path / "other"
    agent.mkdir()
    other.mkdir()
    file = written(tmp_path)
    text = left_behind(agent, file)
    assert not (agent / ".evaltui").exists()
    (recovered,) = recoverable(agent)
    assert (recovered.path, recovered.name, after(recovered)) == (file, "../a.evalset.json", text)
    assert recoverable(other) == []
    recovered.discard()
    assert recoverable(agent) == []


def hostile_paths(folder: Path) -> Iterator[str]:
    """Paths in a recovery file of a folder that name no file of this folder."""
    outside = written(folder.parent)
    (folder / "link.json").symlink_to(outside)
    (folder / "linked").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe.json")
    yield from (str(outside), "../a.evalset.json", "link.json", "linked/a.evalset.json")
    yield from ("/dev/zero", "pipe.json", ".", "linked/new.json")


def test_no_file_outside_the_folder_is_offered(tmp_path):
    folder = tmp_path / "agent"
    left_behind(folder, written(folder))
    (recovered,) = recoverable(folder)
    stored = json.loads(recovered.file.read_text())
    for path in hostile_paths(folder):
        recovered.file.write_text(json.dumps({**stored, "path": path, "agent": str(folder)}))
        assert recoverable(folder) == [], path
        assert recovered.file.exists()


@pytest.mark.parametrize("suffix", [".json", ".base", ".lock"])
def test_a_file_that_is_not_this_users_is_left_alone(tmp_path, suffix):
    left_behind(tmp_path, written(tmp_path))
    (recovered,) = recoverable(tmp_path)
    file = recovered.file.with_suffix(suffix)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert recoverable(tmp_path) == []
    assert file.is_symlink()


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"version": 2}', '{"version": 1, "draft": "x"}'])
def test_a_damaged_file_and_another_version_are_left_alone(tmp_path, damage):
    left_behind(tmp_path, written(tmp_path))
    (recovered,) = recoverable(tmp_path)
    recovered.file.write_text(damage)
    assert recoverable(tmp_path) == []
    assert recovered.file.read_text() == damage


def test_a_draft_is_there_without_edits(tmp_path):
    recovery, draft = opened(tmp_path, written(tmp_path)), Draft("a", ("turn", 0), "value", "{\ud83d", "x")
    recovery.write(JsonDocument(BASE), [], draft)
    recovery.lock.release()
    (recovered,) = recoverable(tmp_path)
    assert (recovered.draft, recovered.labels, after(recovered)) == (draft, (), BASE)


EDITOR = """
    import asyncio, sys
    from pathlib import Path
    from evaltui.documents.values import put
    from evaltui.workbench.workbench import Workbench

    async def main(folder):
        workbench = Workbench(folder)
        await workbench.open()
        path = folder / "a.evalset.json"
        for number in range(1, 100_000):
            where = ("eval_cases", number % 6, "n")
            assert workbench.editing.do("set n", path, lambda one: put(one.data, where, number))
            print(number, flush=True)
            if number % 5 == 0:
                assert await workbench.editing.save_all()

    asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.timeout(3_600)
def test_no_applied_edit_is_lost_by_a_kill_while_typing_and_saving(tmp_path, thorough):
    rng = random.Random(3)
    file = written(tmp_path, BASE.replace('"é \\ud83d"', '"s"'))
    for _ in range(300 if thorough else 4):
        command = [sys.executable, "-c", textwrap.dedent(EDITOR), str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(rng.randint(1, 30)):
            last = int(process.stdout.readline())
        process.kill()
        last = int([last, *process.communicate()[0].split()][-1])
        left = recoverable(tmp_path)
        text = after(left[0]) if left else file.read_bytes().decode()
        values = [case["n"] for case in json.loads(text.removeprefix("\ufeff"))["eval_cases"]]
        # The edit after the last that was heard of may be there, too.
        assert max(values) - last in (0, 1)
        for recovered in left:
            recovered.discard()
        file.write_bytes(BASE.replace('"é \\ud83d"', '"s"').encode())
