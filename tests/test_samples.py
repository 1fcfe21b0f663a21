"""Every sample agent comes out as the guide says: the transcripts show what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaltui.project.agents import agents_in

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| `(\w+)` \| .+ \| (\d+ passed.*) \|$", re.MULTILINE)
SAMPLES = dict(ROW.findall((ROOT / "evaltui/guide/agents.md").read_text()))
TRANSCRIPTS = "".join(path.read_text() for path in (ROOT / "tests/golden/transcripts").glob("*.txt"))


def test_the_guide_knows_every_sample():
    assert sorted(SAMPLES) == sorted(agents_in(ROOT / "sample_agents"))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_comes_out_as_the_guide_says(name):
    run = re.search(
        rf"^  \$ evaltui run {name}( --parallel .*)?\n(?:.*\n)*?  (.+) in N s", TRANSCRIPTS, re.MULTILINE
    )
    assert run[2] == SAMPLES[name]
