"""The screens of the workbench as text, at two sizes: what its keys lead to is golden.

`python -m tests.golden.screens` writes them again.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from evaltui.tui.app import WorkbenchApp
from tests.golden.scenes import WALKS, Walk
from tests.golden.screens import FOLDER, SIZES, play, screen_of, until
from tests.tui.conftest import frames_when_looked_at

__all__ = ["frames_when_looked_at"]

_HAS_ADK = importlib.util.find_spec("google.adk") is not None
# Seconds for what is still to be drawn once the scene shows what it waits for.
_PATIENCE = 15.0


# Every day; all others with --thorough.
_EVERY_DAY = {
    ("house", "160x45"),
    ("clinic", "80x24"),
    ("runs", "80x24"),
    ("edit", "80x24"),
    ("conflict", "160x45"),
    ("running", "80x24"),
    ("chat", "80x24"),
    ("start", "80x24"),
}


def _walks() -> Iterator[ParameterSet]:
    for name in WALKS:
        for label in SIZES:
            marks = () if (name, label) in _EVERY_DAY else pytest.mark.thorough
            yield pytest.param(name, label, marks=marks, id=f"{name} {label}")


@pytest.mark.parametrize(("name", "label"), _walks())
async def test_each_scene_is_as_it_was(name, label):
    walk = WALKS[name]
    if walk.needs_adk and not _HAS_ADK:
        pytest.skip("google-adk is not installed")
    assert not await _differing(walk, label)


async def _differing(walk: Walk, label: str) -> str:
    """The scenes that are not as they were, as diffs."""
    found = [
        await _difference(app, FOLDER / f"{scene.name}.{label}.txt")
        async for scene, app in play(walk, SIZES[label])
        if scene.name
    ]
    return "".join(found)


async def _difference(app: WorkbenchApp, path: Path) -> str:
    golden = path.read_text(encoding="utf-8")
    try:
        await until(app, lambda: screen_of(app) == golden, _PATIENCE)
    except TimeoutError:
        lines = screen_of(app).splitlines()
        diff = difflib.unified_diff(golden.splitlines(), lines, path.name, "now", n=0, lineterm="")
        return "\n".join(["", *diff])
    return ""


def test_each_screen_belongs_to_a_scene():
    names = [scene.name for walk in WALKS.values() for scene in walk.scenes if scene.name]
    assert len(names) == len(set(names))
    assert {path.name for path in FOLDER.iterdir()} == {
        f"{name}.{label}.txt" for name in names for label in SIZES
    }
