"""Working on sets and cases as a whole, in their list."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action

TREE: tuple[Action, ...] = ()
