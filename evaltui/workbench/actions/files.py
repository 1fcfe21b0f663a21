"""Undo, saving, and the files themselves."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action

FILES: tuple[Action, ...] = ()
