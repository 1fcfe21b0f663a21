"""Telling what is saved in the folders of an agent, with real files."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import asynccontextmanager

import pytest

from evaltui.project.watching import WatchedFiles
from tests.project.layouts import nested_agents


@asynccontextmanager
async def watched(agent_dir, given=(), modules=()):
    """What changed, from now on, as a queue."""
    files = WatchedFiles(agent_dir, given)
    files.modules = frozenset(modules)
    changes: asyncio.Queue = asyncio.Queue()
    ready = asyncio.Event()
    task = asyncio.create_task(files.follow(changes.put, ready.set))
    await ready.wait()
    try:
        yield changes
    finally:
        task.cancel()
        await asyncio.wait([task])


async def code_changed(changes, *names):
    """Waits until each of these was told, and nothing else was."""
    seen = set()
    while not seen >= set(names):
        seen |= set((await changes.get()).code)
    assert seen == set(names)


@pytest.fixture
def agent(tmp_path):
    folder = tmp_path / "project" / "agent"
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text("a = 1\n")
    (folder / "basic.evalset.json").write_text("{}")
    return folder


async def test_tells_code_prompts_sets_and_configs_apart(agent):
    async with watched(agent) as changes:
        (agent / "prompt.txt").write_text("be kind")
        assert (await changes.get()).code == ("prompt.txt",)
        (agent / "basic.evalset.json").write_text('{"eval_cases": []}')
        change = await changes.get()
        assert (change.code, change.sets) == ((), (agent / "basic.evalset.json",))
        (agent / "test_config.json").write_text("{}")
        assert (await changes.get()).sets == (agent / "test_config.json",)
        (agent / "prompt.txt").unlink()
        assert (await changes.get()).code == ("prompt.txt",)


async def test_is_silent_about_what_is_no_change(agent):
    (agent / ".evaltui" / "runs").mkdir(parents=True)
    (agent / "__pycache__").mkdir()
    (agent / "recordings").mkdir()
    async with watched(agent) as changes:
        for name in (
            ".evaltui/runs/x.json",
            "__pycache__/agent.py",
            "recordings/basic.json",
            ".agent.py.swp",
            ".#agent.py",
            "agent.py~",
            "4913",
            "server.log",
        ):
            (agent / name).write_text("{}")
        os.utime(agent / "agent.py", (1, 1))
        (agent / "agent.py").write_text("a = 1\n")
        (agent / "last.py").write_text("")
        await code_changed(changes, "last.py")


async def test_a_save_that_replaces_the_file_is_seen(agent):
    async with watched(agent) as changes:
        for number in range(2, 5):
            (agent / "agent.py.new").write_text(f"a = {number}\n")
            (agent / "agent.py.new").replace(agent / "agent.py")
            assert (await changes.get()).code == ("agent.py",)


async def test_files_of_one_size_that_follow_at_once_are_told_apart(agent):
    async with watched(agent) as changes:
        for number in range(2, 10):
            (agent / "agent.py").write_text(f"a = {number}\n")
            await changes.get()


async def test_a_save_that_follows_is_seen_before_it_is_told(agent):
    sets = agent / "basic.evalset.json"
    async with watched(agent) as changes:
        (agent / "agent.py").write_text("a = 2\n")
        of_code = await changes.get()
        sets.write_text('{"eval_cases": []}')
        of_set = await changes.get()
    for change, path in ((of_code, agent / "agent.py"), (of_set, sets)):
        assert not change.saved_again()
        os.utime(path, (change.saved + 0.07, change.saved + 0.07))
        assert change.saved_again()
    (agent / "agent.py").unlink()
    assert not of_code.saved_again()


async def test_new_folders_are_watched_too(agent):
    async with watched(agent) as changes:
        (agent / "tools" / "deep").mkdir(parents=True)
        (agent / "tools" / "deep" / "first.py").write_text("")
        await code_changed(changes, "tools/deep/first.py")
        (agent / "tools" / "deep" / "second.py").write_text("")
        await code_changed(changes, "tools/deep/second.py")


async def test_a_folder_that_is_replaced_is_watched_again(agent):
    (agent / "tools").mkdir()
    async with watched(agent) as changes:
        shutil.rmtree(agent / "tools")
        (agent / "tools").mkdir()
        (agent / "tools" / "first.py").write_text("")
        await code_changed(changes, "tools/first.py")
        (agent / "tools" / "second.py").write_text("")
        await code_changed(changes, "tools/second.py")


async def test_sets_beside_the_agent_and_from_elsewhere_are_watched(agent, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "sets"
    elsewhere.mkdir(parents=True)
    single = tmp_path / "single.json"
    single.write_text("{}")
    (agent.parent / "pyproject.toml").touch()
    async with watched(agent, [elsewhere, single]) as changes:
        for path in (
            agent.parent / "tests" / "one.evalset.json",
            agent / "eval" / "deep" / "two.test.json",
            elsewhere / "three.evalset.json",
            single,
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('{"eval_cases": []}')
            assert (await changes.get()).sets == (path,)


async def test_what_is_imported_from_elsewhere_and_the_env_above_are_watched(agent, tmp_path):
    module = tmp_path / "shared" / "lib.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    (module.parent / "other.py").write_text("")
    async with watched(agent, modules=[module]) as changes:
        (module.parent / "other.py").write_text("y = 1\n")
        module.write_text("x = 2\n")
        await code_changed(changes, "../../shared/lib.py")
        (tmp_path / "project" / ".env").write_text("KEY=1\n")
        await code_changed(changes, "../.env")
        (tmp_path / "project" / ".env").write_text("KEY=2\n")
        await code_changed(changes, "../.env")


async def test_a_single_file_is_watched_with_what_is_beside_it(agent):
    async with watched(agent / "agent.py") as changes:
        (agent / "helper.py").write_text("")
        await code_changed(changes, "helper.py")


async def test_modules_that_the_agent_imports_from_its_project_are_followed_at_once(tmp_path):
    folder = nested_agents(tmp_path)
    async with watched(folder) as changes:
        tools = tmp_path / "src" / "my_app" / "tools.py"
        tools.write_text("def shout(text):\n    return text\n")
        await code_changed(changes, "../../tools.py")
        # From now on it imports another one, too.
        (tools.parent / "prices.py").write_text("PRICE = 1\n")
        tools.write_text("from .prices import PRICE\ndef shout(text):\n    return text\n")
        await code_changed(changes, "../../tools.py", "../../prices.py")
        (tools.parent / "prices.py").write_text("PRICE = 2\n")
        await code_changed(changes, "../../prices.py")
