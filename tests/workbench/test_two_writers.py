"""Two programs and one of google-adk change one set and its config: whoever saves, nobody's work is lost."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from processes_at_once import let_go

from evaltui.core.model.case_id import CaseId
from evaltui.documents.editing.set import SetEditor
from evaltui.documents.edits import Put
from evaltui.documents.merge import Choices, Conflict, merge
from evaltui.documents.values import put
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

BASE_CASES = ("a", "b", "c", "d", "e")
METRICS = ("response_match_score", "tool_trajectory_avg_score", "safety_v1")


def case(eval_id: str) -> dict[str, Any]:
    turns = [{"user_content": {"role": "user", "parts": [{"text": "hello"}]}}]
    return {"eval_id": eval_id, "conversation": turns, "creation_timestamp": 0.0}


def files(folder: Path) -> tuple[Path, Path]:
    path, config = folder / "talk.evalset.json", folder / "test_config.json"
    data = {"eval_set_id": "talk", "eval_cases": [case(eval_id) for eval_id in BASE_CASES]}
    path.write_text(json.dumps(data, indent=2), encoding="utf-8")
    marks = [{"set": "talk", "case": "b", "turn": 0, "mode": "context"}]
    criteria = {"response_match_score": 0.5}
    config.write_text(json.dumps({"criteria": criteria, "evaltui": {"turns": marks}}, indent=2))
    return path, config


class Seen(NamedTuple):
    """A file on disk, and as one program has it, at one moment."""

    disk: str
    mine: str
    dirty: bool
    merged: str | None
    """What a save makes of both; None where the user has to choose."""


class Program:
    """A workbench without a screen. What it does in a step is one action that a user can do."""

    def __init__(self, name: str, workbench: Workbench, path: Path, rng: random.Random) -> None:
        self.name = name
        self.editing = workbench.editing
        self.workbench = workbench
        self.path = path
        self.config = path.parent / "test_config.json"
        self._rng = rng
        self._count = 0

    def set_data(self) -> Any:
        return self.editing.data(self.path)

    def config_data(self) -> Any:
        return self.editing.config_data(self.path) or {}

    def word(self) -> str:
        self._count += 1
        return f"{self.name}{self._count}"

    def _case(self) -> int | None:
        ids = SetEditor(self.set_data()).eval_ids
        return self._rng.randrange(len(ids)) if ids else None

    def edit(self) -> None:
        if (number := self._case()) is not None:
            where = ("eval_cases", number, "conversation", 0, "user_content", "parts", 0, "text")
            word = self.word()
            self.editing.do("edit", self.path, lambda one: put(one.data, where, word))

    def add(self) -> None:
        word = self.word()
        self.editing.do("add", self.path, lambda eval_set: eval_set.add_case(None, word))

    def move(self) -> None:
        if (number := self._case()) is not None:
            to = self._rng.randrange(len(SetEditor(self.set_data()).eval_ids))
            self.editing.do("move", self.path, lambda one: one.move_cases([(number, to)]))

    def rename(self) -> None:
        if (number := self._case()) is not None:
            old, new = SetEditor(self.set_data()).eval_ids[number], self.word()
            moved = {CaseId(self.path.name, old): CaseId(self.path.name, new)}
            self.editing.do(
                "rename",
                self.path,
                lambda eval_set: eval_set.rename_case(number, new),
                moved=moved,
                after=Selection(self.path.name, new),
            )

    def delete(self) -> None:
        if (number := self._case()) is not None and len(SetEditor(self.set_data()).eval_ids) > 2:
            self.editing.do("delete", self.path, lambda eval_set: eval_set.delete_cases([number]))

    def mark(self) -> None:
        if (number := self._case()) is not None:
            on = self._rng.random() < 0.7
            self.editing.do(
                "mark", self.path, lambda eval_set: eval_set.case(number).turn(0).set_context(on=on)
            )

    def threshold(self) -> None:
        self._count += 1
        where = ("criteria", self._rng.choice(METRICS))
        self.editing.do_edits("threshold", {self.config: [Put(where, self._count / 1000)]})

    def undo(self) -> None:
        self.editing.undo()

    def redo(self) -> None:
        self.editing.redo()

    async def save(self) -> None:
        await self.editing.save_all()

    async def look(self) -> None:
        await self.editing.merge_outside_changes()

    async def decide(self) -> None:
        for clash in self.editing.conflicts:
            conflict = clash.conflict
            if conflict.reason is not None:
                await self.editing.settle(clash, Choices(), "mine")
                continue
            sides = [
                {one.name: self._rng.choice(["mine", "theirs"]) for one in clashes}
                for clashes in (conflict.cases, conflict.members, conflict.orders)
            ]
            await self.editing.settle(clash, Choices(*sides))

    def seen(self) -> dict[Path, Seen]:
        return {path: self._seen(path) for path in (self.path, self.config)}

    def _seen(self, path: Path) -> Seen:
        file, disk = self.editing.open_file(path), path.read_text(encoding="utf-8")
        if file is None or file.saved is None:
            return Seen(disk, disk, False, disk)
        both = merge(file.saved, file.document, disk, is_config=path == self.config)
        return Seen(disk, file.document.text, file.dirty, None if isinstance(both, Conflict) else both.text)


class Round:
    """`seed` says what happens; `log` what has happened."""

    STEPS = ("edit", "edit", "add", "move", "rename", "delete", "mark", "mark", "threshold", "threshold",
             "undo", "undo", "redo", "save", "save", "look", "decide")  # fmt: skip

    def __init__(self, folder: Path, seed: int) -> None:
        self._rng = random.Random(seed)
        self._folder = folder
        self.path, self.config = files(folder)
        self.log: list[str] = []
        self.merges = 0
        self.asked = 0
        # Programs with an unsaved step in both files.
        self._in_both: set[str] = set()

    async def play(self, steps: int) -> None:
        programs = []
        for name in ("P", "Q"):
            workbench = Workbench(self._folder)
            await workbench.open()
            programs.append(Program(name, workbench, self.path, self._rng))
        for _ in range(steps):
            if self._rng.random() < 0.1:
                self.log.append("adk")
                self._adk()
                continue
            program = self._rng.choice(programs)
            await self._check(program, self._rng.choice(self.STEPS))
        for program in programs:
            for _ in range(20):
                if await program.editing.save_all():
                    break
                await self._check(program, "decide")
            assert not program.editing.unsaved()
            await program.editing.discard()

    def _adk(self) -> None:
        from google.adk.evaluation.eval_case import EvalCase
        from google.adk.evaluation.local_eval_sets_manager import LocalEvalSetsManager

        manager = LocalEvalSetsManager(str(self._folder.parent))
        app = self._folder.name
        cases = manager.get_eval_set(app, "talk").eval_cases
        kind = self._rng.choice(["add", "update", "delete"])
        name = f"adk{len(self.log)}"
        if kind == "add" or len(cases) < 3:
            manager.add_eval_case(app, "talk", EvalCase.model_validate(case(name)))
        elif kind == "update":
            chosen = self._rng.choice(cases)
            chosen.conversation[0].user_content.parts[0].text = name
            manager.update_eval_case(app, "talk", chosen)
        else:
            manager.delete_eval_case(app, "talk", self._rng.choice(cases).eval_id)

    async def _check(self, program: Program, step: str) -> None:
        self.log.append(f"{program.name} {step}")
        before, asked_before = program.seen(), bool(program.editing.conflicts)
        if asyncio.iscoroutine(done := getattr(program, step)()):
            await done
        await program.editing.finished()
        after, asked = program.seen(), {clash.path for clash in program.editing.conflicts}
        if step == "save":
            self._check_save(program, before, after, asked)
        elif step != "decide":
            assert all(after[path].disk == before[path].disk for path in before)
        if step == "look":
            for path, seen in after.items():
                assert seen.mine == (before[path].mine if path in asked else before[path].merged)
        # Where something is asked, going back may take over what is outside, in both files.
        takes_over = step in ("save", "look", "decide") or (step in ("undo", "redo") and asked_before)
        if not takes_over and all(before[path].mine != after[path].mine for path in before):
            self._in_both.add(program.name)
        if not any(seen.dirty for seen in after.values()):
            self._in_both.discard(program.name)

    def _check_save(
        self, program: Program, before: dict[Path, Seen], after: dict[Path, Seen], asked: set[Path]
    ) -> None:
        self.asked += len(asked)
        unsaved = [path for path, seen in before.items() if seen.dirty]
        for path in unsaved:
            self.merges += before[path].disk not in (before[path].merged, None)
            if after[path].dirty:
                # Nothing is written: what it is about is asked, here or in the file that belongs to it.
                assert asked
                assert after[path].disk == before[path].disk
                assert after[path].mine in (before[path].mine, before[path].merged)
            else:
                assert after[path].disk == after[path].mine == before[path].merged
        if program.name in self._in_both and len(unsaved) == 2:
            assert len({after[path].dirty for path in unsaved}) == 1


@pytest.mark.timeout(3_600)
async def test_nothing_of_two_programs_and_google_adk_is_lost(tmp_path, thorough):
    pytest.importorskip("google.adk.evaluation.local_eval_sets_manager", exc_type=ImportError)
    merges = asked = 0
    for seed in range(1_000 if thorough else 20):
        folder = tmp_path / f"round_{seed}"
        folder.mkdir()
        (folder / "agent.py").write_text("def root_agent(message, session):\n    return message\n")
        played = Round(folder, seed)
        try:
            await played.play(40)
        except BaseException:
            print(f"seed {seed}:", ", ".join(played.log))
            raise
        merges += played.merges
        asked += played.asked
    assert merges
    assert asked
    print(f"{merges} merges, {asked} clashes asked about")


PROGRAM = """
    import asyncio, sys
    from pathlib import Path
    from evaltui.workbench.workbench import Workbench

    async def main(folder, name, count):
        workbench = Workbench(folder)
        await workbench.open()
        path = folder / "talk.evalset.json"
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(count):
            word = f"{name}{number}"
            assert workbench.editing.do("add", path, lambda eval_set: eval_set.add_case(None, word))
            while not await workbench.editing.save_all():
                assert not workbench.editing.conflicts, workbench.messages.notice

    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""
MANAGER = """
    import sys, time
    from pathlib import Path
    from google.adk.evaluation.eval_case import EvalCase
    from google.adk.evaluation.local_eval_sets_manager import LocalEvalSetsManager

    folder = Path(sys.argv[1])
    manager = LocalEvalSetsManager(str(folder.parent))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[3])):
        case = {"eval_id": f"{sys.argv[2]}{number}", "conversation": []}
        manager.add_eval_case(folder.name, "talk", EvalCase.model_validate(case))
        time.sleep(0.01)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("with_adk", [False, True])
def test_processes_that_save_at_once_lose_nothing(tmp_path, with_adk):
    """google-adk's manager writes what it read before, whatever came since: what it adds itself stays."""
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "agent.py").write_text("def root_agent(message, session):\n    return message\n")
    path, _ = files(folder)
    if with_adk:
        pytest.importorskip("google.adk.evaluation.local_eval_sets_manager", exc_type=ImportError)
    count = 100
    programs = {"P": PROGRAM, "Q": PROGRAM, **({"adk": MANAGER} if with_adk else {})}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), str(folder), name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, program in programs.items()
    ]
    let_go(processes)
    ids = SetEditor(json.loads(path.read_text())).eval_ids
    kept = ("adk",) if with_adk else ("P", "Q")
    assert {f"{name}{number}" for name in kept for number in range(count)} <= set(ids)
    assert len(ids) == len(set(ids))
