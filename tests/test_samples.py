"""Every sample agent comes out as the guide says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from evaltui import evaluate
from evaltui.files.projects import agents_in
from evaltui.files.workspace import open_workspace

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (\d+ passed.*) \|$", re.MULTILINE)
SAMPLES = {
    name: (about, result)
    for name, about, result in ROW.findall((ROOT / "evaltui/guide/agents.md").read_text())
}


def test_the_guide_knows_every_sample():
    assert sorted(SAMPLES) == sorted(agents_in(ROOT / "sample_agents"))


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_sample_comes_out_as_the_guide_says(name):
    about, result = SAMPLES[name]
    if "google-adk" in about:
        pytest.importorskip("google.adk")
    agent = ROOT / "sample_agents" / name
    paths = [entry.path for entry in open_workspace(agent).sets]
    ran = await evaluate(agent, paths)
    counts = Counter(case.status for case in ran.cases)
    assert {f"{number} {status.lower()}" for status, number in counts.items()} == set(result.split(", "))
