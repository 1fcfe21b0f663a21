"""A text edited in the user's own editor, while the screen is put aside."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported


class EditorError(Exception):
    """Why nothing came back from the editor, as a sentence."""


def edit_outside(app: App[Any], text: str, suffix: str) -> str:
    """What the editor made of a text; `suffix` tells it what kind of text that is: `.json`.

    Raises EditorError where there is no editor, or it failed: the text is as it was then.
    """
    command = _command()
    with tempfile.TemporaryDirectory(prefix="evaltui-") as folder:
        path = Path(folder) / f"text{suffix}"
        try:
            path.write_text(text, encoding="utf-8", newline="")
        except UnicodeEncodeError:
            raise EditorError(
                "half a character, as \\ud83d, cannot be written to a file: edit it here"
            ) from None
        try:
            with app.suspend():
                # An exception that left this block would leave the terminal as the editor had it.
                problem = _run([*command, str(path)])
        except SuspendNotSupported:
            raise EditorError("no other program can be shown in this terminal") from None
        if problem:
            raise EditorError(problem)
        try:
            changed = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EditorError(f"what the editor wrote cannot be read: {error}") from None
    if text.endswith("\n") or not changed.endswith("\n"):
        return changed
    # Editors end a file with a newline, whether the text had one or not.
    return changed.removesuffix("\r\n" if "\r\n" in text else "\n")


def _command() -> list[str]:
    given = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = shlex.split(given)
    except ValueError as error:
        raise EditorError(f"$VISUAL or $EDITOR cannot be read as a command: {error}") from None
    if not command:
        raise EditorError("there is no editor: set $VISUAL or $EDITOR")
    return command


def _run(command: list[str]) -> str:
    """What went wrong; "" where nothing did."""
    try:
        ended = subprocess.run(command, check=False)
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror or error}"
    return f"{command[0]} ended with {ended.returncode}: nothing was changed" if ended.returncode else ""
