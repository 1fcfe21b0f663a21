"""Every action with its keys and where they work: none comes, goes or changes its keys unseen.

`python -m tests.golden.actions` writes `actions.txt` again.
"""

from __future__ import annotations

from tests.golden.actions import FILE, action_lines


def test_the_actions_are_those_that_are_listed():
    assert action_lines() == FILE.read_text(encoding="utf-8").splitlines()
