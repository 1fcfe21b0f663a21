"""Copying: to the terminal's clipboard, and into a file for terminals that have none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.app import App

from evaltui.files.atomic import write_privately
from evaltui.files.folders import make_own_folder
from evaltui.files.settings import secrets_of
from evaltui.text.values import show_size, visible, visible_text
from evaltui.tui.pane import Copied

# Terminals drop longer sequences, many of them without a word.
_MOST = 70_000


def copy(app: App[Any], agent_dir: Path, copied: Copied) -> str:
    """What was copied and where it went, as a sentence. No terminal tells whether it took it."""
    # What an agent says must not command the terminal that it is pasted into.
    text = visible_text(copied.text)
    size = len(text.encode())
    places = []
    if size <= _MOST:
        app.copy_to_clipboard(text)
        places.append("the terminal's clipboard")
    try:
        kept = secrets_of(agent_dir).in_text(text)
        write_privately(make_own_folder(agent_dir) / "copied.txt", kept)
        places.append(".evaltui/copied.txt")
    except OSError as error:
        if not places:
            return f"not copied: it is too long for a clipboard, and copied.txt cannot be written: {error}"
    return f"copied {visible(copied.what)} ({show_size(size)}) to {' and '.join(places)}"
