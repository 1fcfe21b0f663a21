"""Ids of what is reported: of no use to anybody who guesses them, so they cost no call of the system."""

import os
import random

from evaltui.agents.adapters.base import Reporter


def test_an_agent_that_seeds_its_chances_does_not_repeat_ids():
    ids = []
    reporter = Reporter(lambda event: ids.append(event.id))
    for _ in range(100):
        random.seed(7)
        reporter.event("text")
    assert len(set(ids)) == 100
    assert {len(one) for one in ids} == {12}


def test_the_system_is_not_asked_for_each_of_them(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or bytes(size))
    reporter = Reporter(lambda event: None)
    for _ in range(100):
        reporter.event("text")
    assert asked == []
