"""The README's sentence on what the cases of the samples do not notice."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from command_line import call

ROOT = Path(__file__).parents[2]
SENTENCE = re.compile(
    r"(\d+) of (\d+) changed calls were noticed, but (\d+) of (\d+) negated answers, (\d+) of (\d+) changed"
    r" numbers and (\d+) of (\d+) invented promises"
)


def test_the_readme_tells_the_gaps_of_the_samples(tmp_path, capsys):
    pytest.importorskip("google.adk")
    counts: Counter[str] = Counter()
    for sample in ("calculator", "home_automation", "travel_desk"):
        agent = shutil.copytree(ROOT / "sample_agents" / sample, tmp_path / sample)
        call("run", agent)
        call("gaps", agent, "--report", f"json={tmp_path / 'gaps.json'}")
        for kind in json.loads((tmp_path / "gaps.json").read_text())["kinds"]:
            for name in {kind["subject"], kind["kind"]} - {"answers"}:
                counts[f"{name} noticed"] += kind["noticed"]
                counts[name] += kind["changes"]
    sentence = SENTENCE.search(" ".join((ROOT / "README.md").read_text("utf-8").split()))
    assert sentence is not None
    assert [int(number) for number in sentence.groups()] == [
        counts[name]
        for kind in ("calls", "answer negated", "another number", "an invented promise")
        for name in (f"{kind} noticed", kind)
    ]
