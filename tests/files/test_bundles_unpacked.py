"""The files of an agent on a worker: they stay for as long as some run uses them, and are whole."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaltui.files.agent_address import AgentAddress
from evaltui.files.bundles import Bundle, bundle_of
from evaltui.files.interpreters import InterpreterError
from tests.files.layouts import write


@pytest.fixture
def desk(tmp_path) -> Path:
    write(tmp_path / "desk" / "agent.py", "PRICE = 3\n")
    write(tmp_path / "desk" / "data" / "prices.csv", "tea,3\n")
    return tmp_path / "desk"


@pytest.fixture
def below(tmp_path) -> Path:
    return tmp_path / "scratch" / "evaltui"


def changed(desk: Path) -> Bundle:
    write(desk / "agent.py", "PRICE = 4\n")
    return bundle_of(desk, [])


def written(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_text(), path.stat().st_ino)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_files_are_written_once(desk, below):
    bundle = bundle_of(desk, [])
    folder = bundle.unpack(below).folder
    before = written(folder)
    assert {name: text for name, (text, _) in before.items()} == {
        "desk/agent.py": "PRICE = 3\n",
        "desk/data/prices.csv": "tea,3\n",
    }
    assert bundle.unpack(below).folder == folder
    assert written(folder) == before


def test_what_was_removed_or_cut_off_is_written_again(desk, below):
    write(desk / "whole.txt", "whole")
    bundle = bundle_of(desk, [])
    folder = bundle.unpack(below).folder
    before = written(folder)
    shutil.rmtree(folder / "desk" / "data")
    (folder / "desk" / "agent.py").write_text("PRI")
    after = written(bundle.unpack(below).folder)
    assert {name: text for name, (text, _) in after.items()} == {
        name: text for name, (text, _) in before.items()
    }
    assert after["desk/whole.txt"] == before["desk/whole.txt"]


def test_files_that_no_run_uses_are_removed_when_others_come(desk, below):
    one = bundle_of(desk, []).unpack(below)
    other = changed(desk)
    second = other.unpack(below)
    assert {one.folder, second.folder} == set(below.iterdir())
    one.release()
    third = other.unpack(below)
    assert {third.folder} == set(below.iterdir())
    second.release()
    # A third run still has it.
    write(desk / "agent.py", "PRICE = 5\n")
    bundle_of(desk, []).unpack(below)
    assert third.folder.is_dir()


def test_only_what_is_in_its_own_folder_is_removed(desk, below, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / "one.txt")
    below.mkdir(parents=True)
    (below / "link").symlink_to(elsewhere)
    write(below.parent / "beside" / "one.txt")
    bundle_of(desk, []).unpack(below)
    assert (elsewhere / "one.txt").is_file()
    assert (below.parent / "beside" / "one.txt").is_file()


def test_files_that_are_written_anew_just_before_they_are_removed_stay(desk, below, monkeypatch):
    """By another process, after a third one has removed them."""
    old = bundle_of(desk, []).unpack(below)
    old.release()
    lock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        if how & fcntl.LOCK_EX:
            shutil.rmtree(old.folder)
            write(old.folder / "new.txt")
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    changed(desk).unpack(below)
    assert (old.folder / "new.txt").is_file()


def test_files_that_are_removed_just_before_they_are_used_are_written(desk, below, monkeypatch):
    """By another process, which has found that nobody uses them."""
    bundle = bundle_of(desk, [])
    files = bundle.unpack(below)
    files.release()
    lock = fcntl.flock
    removed: list[Path] = []

    def late(descriptor: int, how: int) -> None:
        if how == fcntl.LOCK_SH and not removed:
            removed.append(files.folder)
            shutil.rmtree(files.folder)
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    again = bundle.unpack(below)
    assert removed == [again.folder]
    assert (again.folder / "desk" / "agent.py").is_file()
    assert os.path.samestat(os.fstat(again.descriptor), again.folder.stat())


@pytest.mark.parametrize("is_used", [False, True])
def test_a_full_disk_leaves_nothing(desk, below, monkeypatch, is_used):
    bundle = bundle_of(desk, [])
    if is_used:
        folder = bundle.unpack(below).folder
        (folder / "desk" / "data" / "prices.csv").unlink()

    def full(path: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        bundle.unpack(below)
    left = [path for path in below.rglob("*") if path.is_file()]
    assert left == ([folder / "desk" / "agent.py"] if is_used else [])
    assert is_used or not list(below.iterdir())


async def test_a_worker_that_cannot_begin_holds_no_files(desk, tmp_path, monkeypatch):
    on_worker = pytest.importorskip("evaltui.runner.dask.worker")

    def differs(*given: object) -> tuple[str, ...]:
        raise InterpreterError("/usr/bin/python: cannot be started")

    monkeypatch.setattr(on_worker, "differing", differs)
    run = on_worker.ClusterRun("1", AgentAddress(desk), 1.0, 0.0, 1, 1, bundle=bundle_of(desk, []))
    worker = SimpleNamespace(local_directory=str(tmp_path / "scratch"), address="tcp://10.0.0.7:1234")
    with pytest.raises(OSError, match=r"10\.0\.0\.7: /usr/bin/python: cannot be started"):
        await on_worker.RunOnWorker(run).setup(worker)
    (folder,) = (tmp_path / "scratch" / "evaltui").iterdir()
    changed(desk).unpack(tmp_path / "scratch" / "evaltui").release()
    assert not folder.exists()
