"""What happens while a thread reads, merges or writes: nothing is lost, whatever is done meanwhile."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaltui.documents import open_file, recovery
from evaltui.documents.edits import Put
from evaltui.documents.recovery import recoverable
from evaltui.documents.values import put
from evaltui.workbench.agent import background
from evaltui.workbench.files import open_files
from evaltui.workbench.files.open_files import OpenFiles
from evaltui.workbench.files.saves import SavedSets
from evaltui.workbench.state import Selection
from tests.recovered_texts import after

ECHO = "def root_agent(message, session):\n    return message\n"
THEIRS, MINE = 0, 1
HERE = Selection("talk.evalset.json")

STEPS = (
    "mine",
    "mine",
    "both",
    "typed",
    "undo",
    "redo",
    "save",
    "save",
    "theirs",
    "look",
    "work",
    "work",
    "done",
)


@dataclass
class Threads:
    """Stands for `asyncio.to_thread`: the test says when a thread works, and when its result is heard of."""

    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    ended: bool = False

    async def run(self, work: Any, *args: Any) -> Any:
        await self._gate()
        try:
            done, error = work(*args), None
        except Exception as raised:
            done, error = None, raised
        await self._gate()
        if error is not None:
            raise error
        return done

    def end(self) -> None:
        """Nothing is held up any more."""
        self.ended = True
        for gate in self.waiting:
            gate.set_result(None)

    async def _gate(self) -> None:
        if self.ended:
            return
        gate = asyncio.get_running_loop().create_future()
        self.waiting.append(gate)
        await gate

    async def next(self) -> None:
        if self.waiting:
            self.waiting.pop(0).set_result(None)
        for _ in range(10):
            await asyncio.sleep(0)

    async def until_done(self, work: asyncio.Future[Any]) -> Any:
        while not work.done():
            await self.next()
        return work.result()


class Sitting:
    """One set and its config. Here only the second case is edited, outside only the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set, self.config = folder / "talk.evalset.json", folder / "test_config.json"
        cases = [{"eval_id": "theirs", "n": 0}, {"eval_id": "mine", "n": 0}]
        self.set.write_text(json.dumps({"eval_set_id": "talk", "eval_cases": cases, "both": 0}, indent=2))
        self.config.write_text(json.dumps({"criteria": {}, "both": 0}, indent=2))
        self.files = OpenFiles(folder, lambda path: None)
        self.threads = Threads()
        self.tasks: list[asyncio.Task[Any]] = []
        self.theirs = self.count = 0
        # What the second case and both files say.
        self.done = [(0, 0)]
        self.undone: list[tuple[int, int]] = []
        for path in (self.set, self.config):
            self.files.open(path)

    def step(self, name: str) -> None:
        self.count += 1
        n, both = self.done[-1]
        of_mine = {self.set: [Put(("eval_cases", MINE, "n"), self.count)]}
        if name == "mine":
            self._do(of_mine, (self.count, both))
        elif name == "both":
            put = [Put(("both",), self.count)]
            self._do({self.set: put, self.config: put}, (n, self.count))
        elif name == "undo" and len(self.done) > 1:
            self.files.undo()
            self.undone.append(self.done.pop())
        elif name == "redo" and self.undone:
            self.files.redo()
            self.done.append(self.undone.pop())
        elif name == "save":
            self.start(self.files.save(self.set, lambda path: None))
        elif name == "look":
            self.start(self.files.refresh(self.set))
        elif name == "theirs":
            data = json.loads(self.set.read_text())
            data["eval_cases"][THEIRS]["n"] = self.theirs = self.count
            self.set.write_text(json.dumps(data, indent=2))

    def _do(self, edits: Any, now: tuple[int, int]) -> None:
        assert self.files.do("step", edits, HERE, HERE)
        self.done.append(now)
        self.undone.clear()

    def start(self, work: Any) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def check(self) -> None:
        mine, _, both = self.here()
        assert (mine, both) == self.done[-1]
        # Written together or not at all.
        assert json.loads(self.set.read_text())["both"] == json.loads(self.config.read_text())["both"]
        recovered = {self.folder / one.name: after(one) for one in self.recovered()}
        for path in (self.set, self.config):
            file = self.files.get(path)
            if file.is_being_written and file.document.has_text_of(file.saved):
                # All was undone meanwhile: there is nothing to recover.
                assert path not in recovered
            elif file.dirty:
                # What a crash would leave.
                assert recovered.get(path, path.read_text()) == file.document.text
            else:
                assert path not in recovered
                assert file.saved.text == file.document.text

    def here(self) -> tuple[int, int, int]:
        data = self.files.get(self.set).document.value
        n = [data["eval_cases"][number]["n"] for number in (MINE, THEIRS)]
        assert data["both"] == self.files.get(self.config).document.value["both"]
        return (*n, data["both"])

    def recovered(self) -> list[recovery.Recovered]:
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder, copy, ignore=lambda *_: ["copy"])
        return recoverable(copy)

    async def settle(self) -> None:
        for task in self.tasks:
            assert await self.threads.until_done(task) is None
        self.tasks.clear()


async def play(folder: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sitting = Sitting(folder)
    monkeypatch.setattr(open_files.asyncio, "to_thread", sitting.threads.run)
    # As if this process were gone.
    monkeypatch.setattr(recovery, "_is_in_use", lambda lock: False)
    for name in steps:
        if name == "work":
            await sitting.threads.next()
        elif name == "done":
            await sitting.settle()
        else:
            sitting.step(name)
            await asyncio.sleep(0)
        sitting.check()
    await sitting.settle()
    sitting.check()
    for path in (sitting.set, sitting.config):
        sitting.start(sitting.files.save(path, lambda path: None))
        sitting.start(sitting.files.refresh(path))
        await sitting.settle()
    sitting.check()
    assert not sitting.files.unsaved()
    assert sitting.here() == (sitting.done[-1][0], sitting.theirs, sitting.done[-1][1])
    for path in (sitting.set, sitting.config):
        assert path.read_text() == sitting.files.get(path).document.text
    assert not sitting.recovered()


@given(steps=st.lists(st.sampled_from(STEPS), max_size=40))
@example(steps=["mine", "save", "work", "work", "mine", "work"])
@example(steps=["mine", "save", "work", "undo", "work", "redo"])
@example(steps=["mine", "save", "save", "theirs", "work", "work", "both", "work", "work", "undo"])
@example(steps=["mine"] * 12 + ["theirs", "look", "work", "work", "undo", "undo"])
def test_whatever_is_done_while_a_thread_works_nothing_is_lost(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("agent")
    with pytest.MonkeyPatch.context() as monkeypatch:
        asyncio.run(play(folder, steps, monkeypatch))


# In the workbench


@pytest.fixture
async def talk(write_agent, write_set, open_workbench):
    folder = write_agent(ECHO)
    path = write_set(folder, one=("hello", "hello"), two=("hi", "hi"))
    workbench = await open_workbench(folder)
    return workbench, path


@pytest.fixture
def held(monkeypatch):
    """Threads of open files that wait until they are let go."""
    threads = Threads()
    monkeypatch.setattr(open_files.asyncio, "to_thread", threads.run)

    yield threads
    threads.end()


def say(workbench, path, text, case=0):
    where = ("eval_cases", case, "conversation", 0, "final_response", "parts", 0, "text")
    assert workbench.editing.do("answer", path, lambda one: put(one.data, where, text))


def answers(path):
    cases = json.loads(path.read_text())["eval_cases"]
    return [case["conversation"][0]["final_response"]["parts"][0]["text"] for case in cases]


async def test_what_is_typed_while_a_save_runs_stays_unsaved(talk, held):
    workbench, path = talk
    say(workbench, path, "first")
    saving = workbench.editing.save_all()
    await asyncio.sleep(0)
    say(workbench, path, "second")
    assert await held.until_done(saving)
    assert workbench.messages.notice.text == f"Saved {path.name}"
    assert answers(path) == ["first", "hi"]
    assert workbench.editing.dirty_cases(path) == {"one"}
    workbench.editing.undo()
    assert not workbench.editing.is_dirty(path)


async def test_what_is_undone_while_a_save_runs_can_be_saved_right_away(talk, held):
    workbench, path = talk
    say(workbench, path, "first")
    saving = workbench.editing.save_all()
    await asyncio.sleep(0)
    workbench.editing.undo()
    assert workbench.editing.unsaved() == [path]
    again = workbench.editing.save_all()
    assert await held.until_done(saving)
    assert await held.until_done(again)
    assert answers(path) == ["hello", "hi"]
    assert not workbench.editing.unsaved()


async def test_saving_again_and_again_writes_once(talk, held, monkeypatch):
    workbench, path = talk
    writes, save_together = [], open_file.save_together
    monkeypatch.setattr(
        open_file, "save_together", lambda files: writes.append(files) or save_together(files)
    )
    say(workbench, path, "first")
    saves = [workbench.editing.save_all() for _ in range(5)]
    for save in saves:
        assert await held.until_done(save)
    assert [len(files) for files in writes if files] == [1]
    assert answers(path) == ["first", "hi"]


async def test_leaving_waits_for_what_is_being_saved(talk, held):
    workbench, path = talk
    say(workbench, path, "first")
    saving = workbench.editing.save_all()
    closing = asyncio.create_task(workbench.close())
    await asyncio.sleep(0)
    assert not closing.done()
    assert await held.until_done(saving)
    await closing
    assert answers(path) == ["first", "hi"]


async def test_who_waits_for_a_save_can_be_cancelled_the_save_cannot(talk, held):
    workbench, path = talk
    say(workbench, path, "first")
    saving = workbench.editing.save_all()
    waiting = asyncio.ensure_future(saving)
    await asyncio.sleep(0)
    waiting.cancel()
    finished = asyncio.create_task(workbench.editing.finished())
    await held.until_done(finished)
    assert answers(path) == ["first", "hi"]
    assert not workbench.editing.is_dirty(path)


async def test_a_merge_is_shown_before_anything_else_can_be_edited(talk, held):
    """A case that came before the others outside: what is typed next goes where it was meant to."""
    workbench, path = talk
    say(workbench, path, "first")
    data = json.loads(path.read_text())
    data["eval_cases"].insert(0, data["eval_cases"][1] | {"eval_id": "new"})
    path.write_text(json.dumps(data))
    saving = workbench.editing.save_all()
    shown = []
    while not saving.done():
        await asyncio.sleep(0)
        entry = workbench.sets.by_path(path)
        shown.append([case.eval_id for case in entry.cases])
        assert shown[-1] == [case["eval_id"] for case in workbench.editing.data(path)["eval_cases"]]
        await held.next()
    assert shown[0] == ["one", "two"]
    assert shown[-1] == ["new", "one", "two"]


async def test_a_save_that_takes_long_is_said_to_run(talk, held, until, monkeypatch):
    workbench, path = talk
    monkeypatch.setattr(background, "_NOTICEABLE_SECONDS", 0)
    say(workbench, path, "first")
    saving = workbench.editing.save_all()
    await until(lambda: workbench.messages.notice)
    assert workbench.messages.notice.text == f"Saving {path.name}…"
    assert await held.until_done(saving)
    assert workbench.messages.notice.text == f"Saved {path.name}"


async def test_watching_does_not_take_a_save_from_here_for_one_from_outside(talk, held):
    """It hears of the new text before the save is over."""
    workbench, path = talk
    say(workbench, path, "first")
    saving = workbench.editing.save_all()
    await asyncio.sleep(0)
    await held.next()
    assert answers(path) == ["first", "hi"]
    end_of_save = held.waiting.pop()
    watching = SavedSets(workbench.sets, workbench.outcomes, workbench.open)
    taking = asyncio.ensure_future(watching.take_over([path]))
    for _ in range(5):
        await held.next()
    assert not saving.done()
    end_of_save.set_result(None)
    assert not (await held.until_done(taking)).from_outside
    assert await saving
