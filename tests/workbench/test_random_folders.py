"""A verdict is that of a run of now, or stale for a true reason, whatever changes in a folder, and when.

Beside edits in the workbench, files of every kind change on disk: between and during runs, while it is open
and closed. What is current is compared with a run of a copy of the folder.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_runs import FakeRuns, says
from test_freshness import CONFIG, SET, case, config, open_with_results, turn
from test_random_verdicts import CRITERIA, OTHER, WORDS, Sitting

from evaltui.agents.protocol import FilesOpened
from evaltui.core.model.case_id import CaseId
from evaltui.documents.edits import Put
from evaltui.workbench.workbench import Workbench

# The files that the agent may have its word from, beside its code, as seen from its folder.
SOURCES = ("agent.py", "prompt.md", "words.txt", ".env", "../lib.py", "../data/words.txt")
SETTINGS = ("", 'tools = "stub"\n', "prices = {m = {input_mtok = 1, output_mtok = 2}}\n", "parallel = 2\n")
NOTES = "notes.txt"
STEPS = [
    *("expect", "expect", "user", "threshold", "undo", "undo", "redo", "rename", "move", "outside", "mark"),
    *("run", "run", "run one", "cancel", "change in run", "other run", "restart", "open", "leave"),
    *("file", "file", "file", "touch", "revert", "back", "between", "moved folder", "settings"),
    *("copy", "delete", "add", "order", "away"),
]
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(4, 80))]
OWN_REASONS = {"case", "config", "set", "settings", "tool mode", "record mode", "prices", "recording"}


class Agent(FakeRuns):
    """Says the word of the file that its code names, and may add to its notes; `begun` gets the contents."""

    def __init__(self, desk: Desk, before_case: Callable[[int], object] = lambda case: None) -> None:
        super().__init__()
        self._desk, self._before_case, self._cases = desk, before_case, 0

    async def _act(self, one: Any, case: Any, number: int) -> Any:
        self._before_case(self._cases)
        self._cases += 1
        await asyncio.sleep(0)
        folder = self._desk.folder
        code = (folder / "agent.py").read_text()
        source = folder / re.search('SOURCE = "(.*)"', code)[1]
        self.act = says(re.search("red|green", source.read_text())[0])
        written = [folder / NOTES] if "NOTES" in code else []
        for path in written:
            with path.open("a") as notes:
                notes.write("heard\n")
        self._on_update(FilesOpened(frozenset({folder / "agent.py", source.resolve()}), frozenset(written)))
        return await super()._act(one, case, number)

    async def follow(self, plan: Any, on_update: Any, **others: object) -> Any:
        self._on_update, self._desk.begun = on_update, self._desk.contents()
        return await super().follow(plan, on_update, **others)


class Desk(Sitting):
    """A workbench on a project whose files change."""

    steps = STEPS

    def __init__(self, root: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root / "desk", seed, monkeypatch)
        self._copy = root.with_name("copy")
        self._before: list[tuple[Path, str]] = []
        self._truth: dict[CaseId, str] = {}
        self.begun: dict[str, str] = {}
        self._meanwhile = set[str]()
        self._restored: dict[CaseId, set[str]] = {}
        # By the names of runs: what there was at the start, and what changed meanwhile.
        self._begun: dict[str, tuple[dict[str, str], set[str]]] = {}
        for source in SOURCES:
            (self.folder / source).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / source).touch()
            self.write(source, "red", has_notes=seed % 2 == 1)
        self._before = [(path, path.read_text()) for path, _ in self._before]

    def contents(self) -> dict[str, str]:
        files = ((name, self.folder / name) for name in (*SOURCES, NOTES))
        return {name: path.read_text() for name, path in files if path.exists()}

    def write(self, source: str, word: str, *, has_notes: bool) -> None:
        text = {".env": f"WORD={word}\n", "../lib.py": f'WORD = "{word}"\n'}.get(source, f"{word}\n")
        if source == "agent.py":
            named = self._rng.choice(SOURCES)
            text = f'import lib\nSOURCE = "{named}"\nWORD = "{word}"\n{"# NOTES" * has_notes}\n'
        self.put(self.folder / source, text)

    def put(self, path: Path, text: str) -> None:
        self._before.append((path, path.read_text()))
        path.write_text(text)

    def change(self) -> str:
        has_notes = ("NOTES" in (self.folder / "agent.py").read_text()) ^ (self._rng.random() < 0.1)
        source = self._rng.choice(SOURCES)
        self.write(source, self._rng.choice(WORDS), has_notes=has_notes)
        return source

    async def look(self) -> None:
        """What follows a change on disk."""
        await self._rng.choice([self.bench.open, self.bench.outcomes.compare_files])()
        await self.bench.outcomes.restore()

    async def run(self, bench: Workbench, keys: list[CaseId], before_case: Any = lambda case: None) -> None:
        self._patch.setattr("evaltui.runs.execution.follow_plan", Agent(self, before_case).follow)
        bench.runs.run_cases("some", keys)
        await bench.runs.finished()
        for log in bench.agent.store.files():
            self._begun.setdefault(log.name, (self.begun, self._meanwhile))
        self._meanwhile = set[str]()

    async def do(self, what: str) -> None:
        bench, rng = self.bench, self._rng
        keys = self.cases()
        key = rng.choice(keys)
        eval_set = bench.sets.by_case_path(key.path)
        number, at = eval_set.number(key.eval_id), rng.randrange(len(keys))
        match what:
            case "run" | "run one" | "cancel" | "change in run":
                await bench.editing.save_all()
                acts = {
                    "cancel": bench.runs.cancel,
                    "change in run": lambda: self._meanwhile.add(self.change()),
                }
                act = acts.get(what, str)
                await self.run(bench, [key] if what == "run one" else keys, lambda case: case == at and act())
            case "other run":
                await bench.editing.save_all()
                other = await open_with_results(self.folder)
                await self.run(other, [key])
                await other.close()
                await bench.reload()
            case "file":
                self.change()
                await self.look()
            case "touch":
                path = self.folder / rng.choice(SOURCES)
                path.write_text(path.read_text())
                await self.look()
            case "revert" | "back":
                self.put(*(self._before[-1] if what == "revert" else rng.choice(self._before)))
                await self.look()
            case "away":
                # As another branch of git has no such set.
                await bench.editing.save_all()
                path = self.folder / rng.choice([SET, OTHER])
                text = path.read_text()
                path.unlink()
                await bench.open()
                if rng.random() < 0.3:
                    self.change()
                path.write_text(text)
                await bench.open()
            case "settings":
                self.put(self.folder.parent / "pyproject.toml", f"[tool.evaltui]\n{rng.choice(SETTINGS)}")
                await self.look()
            case "mark":
                marks = {"set": eval_set.eval_set_id, "case": key.eval_id, "turn": 0, "mode": "skip"}
                block = rng.choice([{}, {"turns": [marks]}, {"tools": {"look_up": "stub"}}])
                bench.editing.do_edits("mark", {self.folder / CONFIG: [Put(("evaltui",), block)]})
            case "copy":
                self.copy(key, key.path)
            case "delete" if len(keys) > 1:
                bench.editing.do("delete", eval_set.path, lambda editor: editor.delete_cases([number]))
            case "add" if eval_set.number("a") is None:
                # Perhaps with the id of one that was deleted or renamed.
                text = json.dumps(case("a", conversation=[turn(*rng.choices(WORDS, k=2))]))
                bench.editing.do("add", eval_set.path, lambda editor: editor.add_case(None, "a", text))
            case "order" if len(eval_set.cases) > 1:
                bench.editing.do("order", eval_set.path, lambda editor: editor.move_cases([(number, 0)]))
            case "between" | "moved folder":
                await bench.editing.save_all()
                await bench.close()
                if what == "between":
                    self.change()
                else:
                    root = self.folder.parent
                    moved = root.rename(root.with_name(f"r{len(self.log)}"))
                    self.folder = moved / "desk"
                    self._before = [(moved / path.relative_to(root), text) for path, text in self._before]
                await self.begin()
            case _:
                await super().do(what)

    def truth(self, key: CaseId) -> str:
        return self._truth[key]

    async def run_copy(self) -> None:
        """Runs a copy of the folder with its unsaved edits."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self.folder.parent, self._copy, ignore=shutil.ignore_patterns(".evaltui", ".adk"))
        folder, bench = self._copy / "desk", self.bench
        for eval_set in bench.sets.listed:
            cases = [
                json.loads(bench.sets.case_now(key).text)
                for key in self.cases()
                if key.path == eval_set.case_path
            ]
            text = json.dumps({"eval_set_id": eval_set.eval_set_id, "eval_cases": cases})
            (folder / eval_set.case_path).write_text(text)
        (folder / CONFIG).write_text(json.dumps(bench.editing.data(self.folder / CONFIG)))
        copied = await open_with_results(folder)
        own, self.folder = self.folder, folder
        try:
            begun = self.begun
            self._patch.setattr("evaltui.runs.execution.follow_plan", Agent(self).follow)
            copied.runs.run_all()
            await copied.runs.finished()
            self._truth = {key: str(copied.outcomes.status(key)) for key in self.cases()}
        finally:
            self.folder, self.begun = own, begun
            await copied.close()

    async def restart_beside(self) -> None:
        """Notes the files that results are stale for in another workbench on the folder as it is saved."""
        self._restored = {}
        if not self.bench.editing.unsaved():
            other = await open_with_results(self.folder)
            # What was renamed or moved in the workbench has a result there alone.
            known = [key for key in other.sets.every_case() if other.outcomes.get(key) is not None]
            self._restored = {key: _files(other, key) for key in known}
            await other.close()

    def check(self) -> None:
        super().check()
        outcomes, now = self.bench.outcomes, self.contents()
        for key in self.cases() if outcomes.previous_run is None else ():
            if (scored := outcomes.get(key)) is None:
                assert key not in self._restored, key
                continue
            begun, meanwhile = self._begun[scored.logged.file.path.name]
            named = _files(self.bench, key)
            different = {name for name in {*begun, *now} if begun.get(name) != now.get(name)}
            assert named <= different | meanwhile, (key, named, different)
            # Data that changes during a run may be the agent's own, and elsewhere counts where it was read.
            may_be_own = {NOTES, "../data/words.txt", *(meanwhile & {"words.txt"})}
            assert different - named <= may_be_own, (key, named, different)
            # While it is open, files elsewhere count for all runs.
            restored = self._restored.get(key, named) | (named & meanwhile)
            assert restored - meanwhile <= named, (key, named, restored)
            assert all(name.startswith("../") for name in named - restored), (key, named, restored)


def _files(bench: Workbench, key: CaseId) -> set[str]:
    freshness = bench.outcomes.freshness(key)
    return {name for name in (freshness.reasons if freshness else ()) if name not in OWN_REASONS}


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_verdict_is_that_of_a_run_of_now_or_stale_for_a_true_reason(seed, tmp_path, monkeypatch):
    desk = Desk(tmp_path / "r", seed, monkeypatch)
    (desk.folder.parent / "pyproject.toml").write_text("[tool.evaltui]\n")
    for name, ids in ((SET, "ab"), (OTHER, "ac")):
        cases = [
            case(eval_id, conversation=[turn(WORDS[0], word)])
            for eval_id, word in zip(ids, WORDS, strict=True)
        ]
        (desk.folder / name).write_text(json.dumps({"eval_set_id": name[0], "eval_cases": cases}))
    (desk.folder / CONFIG).write_text(json.dumps(config(CRITERIA)))
    await desk.begin()
    try:
        for _ in range(20):
            await desk.step()
            await desk.run_copy()
            await desk.restart_beside()
            try:
                desk.check()
            except AssertionError as error:
                raise AssertionError(f"{' '.join(desk.log)}: {error}") from error
    finally:
        await desk.bench.close()
