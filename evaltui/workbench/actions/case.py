"""Editing the case that is shown."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action

CASE: tuple[Action, ...] = ()
