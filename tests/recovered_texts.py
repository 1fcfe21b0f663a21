"""The texts of unsaved edits that a process has left behind."""

from __future__ import annotations

from evaltui.documents.recovery import Recovered


def before(recovered: Recovered) -> str:
    """The text that was edited."""
    return recovered.documents()[0].text


def after(recovered: Recovered) -> str:
    """The text that the user had."""
    return recovered.documents()[1].text
