"""Texts and files to and from other programs: the clipboard, the user's editor, attached files."""

from __future__ import annotations

import mimetypes
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.app import App, SuspendNotSupported

from evaltui.documents.files import write_privately
from evaltui.documents.own_folder import make_own_folder
from evaltui.project.folders import agent_folder
from evaltui.project.settings import secrets_of
from evaltui.text.figures import show_size
from evaltui.text.values import visible, visible_text
from evaltui.tui.pane import CopiedText
from evaltui.workbench.case.editors import IN_BROWSER, NO_EDITOR, command_at_line, editor_of, refuses_editor
from evaltui.workbench.state import READ_ONLY
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.project.agent_source import SourcePlace

# Terminals drop longer sequences, many of them without a word.
_MAX_SEQUENCE_LENGTH = 70_000


def copy(app: App[Any], workbench: Workbench, copied: CopiedText) -> str:
    """Copies a text; returns a sentence with the text and its targets. No terminal reports whether it has
    taken it."""
    # What an agent says must not command the terminal that it is pasted into.
    text = visible_text(copied.text)
    size = len(text.encode())
    places = []
    if size <= _MAX_SEQUENCE_LENGTH:
        app.copy_to_clipboard(text)
        places.append(f"the {'browser' if os.environ.get(IN_BROWSER) else 'terminal'}'s clipboard")
    try:
        if workbench.read_only:
            raise PermissionError(READ_ONLY)
        masked = secrets_of(workbench.agent.dir).mask_text(text)
        write_privately(make_own_folder(agent_folder(workbench.agent.dir)) / "copied.txt", masked)
        places.append(".evaltui/copied.txt")
    except OSError as error:
        if not places:
            return f"not copied: it is too long for a clipboard, and copied.txt cannot be written: {error}"
    return f"copied {visible(copied.what)} ({show_size(size)}) to {' and '.join(places)}"


class EditorError(Exception):
    """Why the editor returned no text, as a sentence."""


def edit_outside(app: App[Any], text: str, suffix: str) -> str:
    """Returns a text as changed in the user's editor; `suffix` is its file type: `.json`.

    Raises EditorError where there is no editor, or it failed: the text is unchanged then.
    """
    command = _command()
    with tempfile.TemporaryDirectory(prefix="evaltui-") as folder:
        path = Path(folder) / f"text{suffix}"
        try:
            path.write_text(text, encoding="utf-8", newline="")
        except UnicodeEncodeError:
            raise EditorError(
                "Half a character such as \\ud83d cannot be written to a file; edit it here"
            ) from None
        if problem := _run_in_terminal(app, [*command, str(path)]):
            raise EditorError(problem)
        try:
            changed = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EditorError(f"Cannot read the edited file: {error}") from None
    if text.endswith("\n") or not changed.endswith("\n"):
        return changed
    # Editors end a file with a newline, whether the text had one or not.
    return changed.removesuffix("\r\n" if "\r\n" in text else "\n")


def _command() -> list[str]:
    if reason := refuses_editor():
        raise EditorError(reason)
    try:
        command = shlex.split(editor_of(os.environ))
    except ValueError as error:
        raise EditorError(f"$VISUAL or $EDITOR cannot be read as a command: {error}") from None
    if not command:
        raise EditorError(NO_EDITOR)
    return command


def open_source(app: App[Any], agent_dir: Path, place: SourcePlace | None) -> str:
    """Opens a file at a line in the user's editor; returns a sentence about it."""
    if place is None:
        return "No source here: select a call, an agent or an error"
    try:
        call = command_at_line(_command(), place)
        problem = _run_in_terminal(app, call.words) if call.in_terminal else _start(call.words)
    except EditorError as error:
        return str(error)
    return problem or f"Opened {visible(place.shown(agent_dir))}"


def _start(command: list[str]) -> str:
    """Starts an editor with a window of its own; returns its error, "" for none."""
    try:
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror or error}"
    return ""


def _run_in_terminal(app: App[Any], command: list[str]) -> str:
    """Runs an editor in the terminal; returns its error, "" for none. Raises EditorError where the terminal
    cannot be lent."""
    try:
        with app.suspend():
            # An exception that left this block would leave the terminal as the editor had it.
            return _run(command)
    except SuspendNotSupported:
        raise EditorError("Cannot open another program in this terminal") from None


def _run(command: list[str]) -> str:
    """Runs a command; returns its error, "" for none."""
    try:
        ended = subprocess.run(command, check=False)
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror or error}"
    return f"{command[0]} ended with {ended.returncode}: nothing was changed" if ended.returncode else ""


_MAX_FILE = 20 * 1024 * 1024


class Attached(NamedTuple):
    """A file as it was when it was attached."""

    name: str
    mime_type: str
    payload: bytes

    @property
    def notice(self) -> str:
        return f"attached {self.name} ({self.mime_type}, {show_size(len(self.payload))})"


def attach_problem(text: str) -> str | None:
    """Why the file with this path cannot be attached, as a sentence."""
    path = Path(text).expanduser()
    try:
        if not path.is_file():
            return "No such file"
        if path.stat().st_size > _MAX_FILE:
            return f"File is larger than {show_size(_MAX_FILE)}"
    except (OSError, ValueError) as error:
        return str(error)
    return None


def read_attached(text: str) -> Attached:
    """Reads the file with this path. Raises OSError."""
    path = Path(text).expanduser()
    mime_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Attached(path.name, mime_type, path.read_bytes())
