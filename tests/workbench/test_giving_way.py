"""Reading a large set leaves the lock to the screen while keys are answered, and only then."""

from __future__ import annotations

import json

import pytest

from evaltui.workbench import giving_way
from evaltui.workbench.reading import read_cases

CASES = 100


@pytest.fixture
def rests(monkeypatch):
    """How long work has rested so far, rest by rest."""
    slept: list[float] = []
    monkeypatch.setattr(giving_way.time, "sleep", slept.append)
    return slept


@pytest.fixture
def large_set(tmp_path):
    turn = {"user_content": {"parts": [{"text": "hello"}]}}
    cases = [{"eval_id": f"case_{number}", "conversation": [turn]} for number in range(CASES)]
    path = tmp_path / "large.evalset.json"
    path.write_text(json.dumps({"eval_set_id": "large", "eval_cases": cases}))
    return path


def test_reading_rests_while_a_key_is_answered(rests, large_set):
    giving_way.key_pressed()
    assert len(read_cases(large_set).cases) == CASES
    assert 2 <= len(rests) < CASES


def test_reading_does_not_rest_when_no_key_was_pressed(rests, large_set, monkeypatch):
    giving_way.key_pressed()
    later = giving_way.time.monotonic() + 60
    monkeypatch.setattr(giving_way.time, "monotonic", lambda: later)
    assert len(read_cases(large_set).cases) == CASES
    assert rests == []
