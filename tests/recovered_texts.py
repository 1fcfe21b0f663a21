"""The texts of unsaved edits that a process has left behind."""

from __future__ import annotations

from evaltui.files.journal import Recovered


def before(recovered: Recovered) -> str | None:
    """What was edited; None where nobody has it."""
    return None if recovered.fingerprint is None else recovered.base().text


def after(recovered: Recovered) -> str:
    """What the user had; "" where that cannot be restored."""
    return "" if recovered.fingerprint is None else recovered.edited(recovered.base()).text
