"""Two programs and one of google-adk change one set and its config: whoever saves, nobody's work is lost."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from processes_at_once import let_go

from evaltui.core.model.case_id import CaseId
from evaltui.documents.editing.set import SetEditor
from evaltui.documents.edits import Put
from evaltui.documents.merge import Choices
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


Items = dict[tuple[str, str], str]


def items(path: Path, text: str) -> Items:
    """What a file holds, by what can be changed on its own."""
    data = json.loads(text)
    found: dict[tuple[str, str], Any] = {}
    if path.name == "test_config.json":
        block = data.get("evaltui", {})
        found |= {("criterion", name): value for name, value in data.get("criteria", {}).items()}
        found |= {("list", name): block[name] for name in ("turns", "rules") if name in block}
    else:
        found |= {("case", one["eval_id"]): one for one in data["eval_cases"]}
        found |= {("member", key): value for key, value in data.items() if key != "eval_cases"}
    return {key: json.dumps(value, sort_keys=True) for key, value in found.items()}


def order(path: Path, text: str) -> list[str]:
    return [name for kind, name in items(path, text) if kind == "case"]


def merged(base: Items, mine: Items, theirs: Items, choices: Choices | None = None) -> tuple[Items, set[str]]:
    """Every item as the side has it that changed it, and the names of those that both sides changed."""
    chosen = {**choices.cases, **choices.members} if choices else {}
    found, both = {}, set()
    for key in {*base, *mine, *theirs}:
        one, ours, other = base.get(key), mine.get(key), theirs.get(key)
        name = {"criterion": f"criteria.{key[1]}", "list": f"evaltui.{key[1]}"}.get(key[0], key[1])
        side = "mine" if other == one else "theirs" if ours in (one, other) else chosen.get(name)
        if side is None:
            both.add(name)
        value = ours if side == "mine" else other
        if value is not None:
            found[key] = value
    return found, both


def turned_round(base: list[str], now: list[str], common: set[str]) -> set[tuple[str, str]]:
    at = {name: number for number, name in enumerate(now)}
    names = [name for name in base if name in common]
    return {
        (one, other)
        for number, one in enumerate(names)
        for other in names[number + 1 :]
        if at[one] > at[other]
    }


def check_order(base: list[str], mine: list[str], theirs: list[str], now: list[str]) -> None:
    """What either side moved is moved."""
    common = set(base) & set(mine) & set(theirs) & set(now)
    ours, other, here = (turned_round(base, one, common) for one in (mine, theirs, now))
    assert ours | other <= here


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


class View:
    """What is on disk, and what one program has of it, at one moment."""

    def __init__(self, program: Program) -> None:
        self.disk: dict[Path, str] = {}
        self.mine: dict[Path, str] = {}
        self.base: dict[Path, str] = {}
        self.dirty: set[Path] = set()
        for path in (program.path, program.config):
            draft = program.editing.open_file(path)
            self.disk[path] = text = path.read_text(encoding="utf-8")
            self.mine[path] = draft.document.text if draft else text
            self.base[path] = draft.saved.text if draft and draft.saved else text
            if draft and draft.dirty:
                self.dirty.add(path)

    def items(self, program: Program) -> Items:
        """Of both files as the program has them."""
        return self.items_of(self.mine)

    @staticmethod
    def items_of(texts: dict[Path, str]) -> Items:
        return {key: item for path, text in texts.items() for key, item in items(path, text).items()}

    def merged(self, path: Path, choices: Choices | None = None) -> tuple[Items, set[str]]:
        return merged(*(items(path, side[path]) for side in (self.base, self.mine, self.disk)), choices)


Change = dict[tuple[str, str], tuple[str | None, str | None]]


def difference(before: Items, after: Items) -> Change:
    keys = {*before, *after}
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


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
        self._done: dict[str, list[Change]] = {}
        self._undone: dict[str, list[Change]] = {}
        # Programs with an unsaved step in both files.
        self._in_both: set[str] = set()

    async def play(self, steps: int) -> None:
        programs = []
        for name in ("P", "Q"):
            workbench = Workbench(self._folder)
            await workbench.open()
            programs.append(Program(name, workbench, self.path, self._rng))
            self._done[name], self._undone[name] = [], []
        for _ in range(steps):
            if self._rng.random() < 0.1:
                self.log.append("adk")
                self._adk()
                continue
            program = self._rng.choice(programs)
            step = self._rng.choice(self.STEPS)
            self.log.append(f"{program.name} {step}")
            await self._check(program, step)
        for program in programs:
            for _ in range(20):
                if await program.editing.save_all():
                    break
                self.log.append(f"{program.name} decide at the end")
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
        before = View(program)
        clashes = {clash.path: clash for clash in program.editing.conflicts}
        if asyncio.iscoroutine(done := getattr(program, step)()):
            await done
        await program.editing.finished()
        after = View(program)
        change = difference(before.items(program), after.items(program))
        # Where something is asked, going back may take over what is outside, in both files.
        is_own_step = step not in ("save", "look", "decide") and not (step in ("undo", "redo") and clashes)
        if is_own_step and all(before.mine[path] != after.mine[path] for path in before.mine):
            self._in_both.add(program.name)
        if step == "save":
            self._check_save(program, before, after)
        elif step == "look":
            assert after.disk == before.disk
            self._check_taken_over(program, before, after)
        elif step == "decide":
            self._check_decided(program, before, after, clashes)
        elif step in ("undo", "redo"):
            self._check_back(program, step, change, before, after, clashes)
        else:
            assert after.disk == before.disk
            if after.mine != before.mine:
                self._done[program.name].append(change)
                self._undone[program.name].clear()
        if not after.dirty:
            self._in_both.discard(program.name)

    def _check_save(self, program: Program, before: View, after: View) -> None:
        asked = {clash.path for clash in program.editing.conflicts}
        self.asked += len(asked)
        for path in before.dirty:
            wanted, both = before.merged(path)
            self.merges += before.disk[path] != before.base[path]
            if after.disk[path] == before.disk[path] and path in after.dirty:
                # Nothing is written: what it is about is asked, here or in the file that belongs to it.
                assert asked
                assert after.mine[path] == before.mine[path] or items(path, after.mine[path]) == wanted
                continue
            assert not both
            assert items(path, after.disk[path]) == items(path, after.mine[path]) == wanted
            if path == self.path:
                check_order(
                    *(order(path, side[path]) for side in (before.base, before.mine, before.disk, after.disk))
                )

        if program.name in self._in_both and len(before.dirty) == 2:
            written = {path for path in before.dirty if path not in after.dirty}
            assert written == before.dirty or after.disk == before.disk

    def _check_taken_over(self, program: Program, before: View, after: View) -> None:
        asked = {clash.path for clash in program.editing.conflicts}
        for path in after.mine:
            wanted, both = before.merged(path)
            if path in asked:
                assert after.mine[path] == before.mine[path]
            else:
                assert not both
                assert items(path, after.mine[path]) == wanted

    def _check_decided(self, program: Program, before: View, after: View, clashes: dict[Path, Any]) -> None:
        for path, clash in clashes.items():
            if path in {clash.path for clash in program.editing.conflicts}:
                continue
            # Chosen at random: each item is one that somebody had.
            now = items(path, after.mine[path])
            texts = (before.mine[path], before.disk[path], clash.theirs)
            sides = [items(path, text) for text in texts]
            wanted, _ = before.merged(path)
            for key in set(now).union(*sides):
                assert now.get(key) in (wanted.get(key), *(side.get(key) for side in sides))

    def _check_back(
        self,
        program: Program,
        step: str,
        change: Change,
        before: View,
        after: View,
        clashes: dict[Path, Any],
    ) -> None:
        assert after.disk == before.disk
        # What was asked about may be no question any more: then what is outside is taken over.
        outside = View.items_of(before.disk) if clashes else None
        done, undone = self._done[program.name], self._undone[program.name]
        source, target = (done, undone) if step == "undo" else (undone, done)
        if not source:
            assert not change
            return
        record = source.pop()
        if (
            program.workbench.messages.notice
            and "stays" in program.workbench.messages.notice.text
            and not change
        ):
            return
        target.append(record)
        for key, (was, now) in change.items():
            if outside is not None and now == outside.get(key):
                continue
            # Only what the step changed, and only where nobody has changed it since.
            assert key in record
            old, new = record[key] if step == "undo" else record[key][::-1]
            assert (was, now) == (new, old)


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
