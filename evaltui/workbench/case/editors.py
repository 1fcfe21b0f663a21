"""The user's editor, and the command that opens a file at a line in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evaltui.project.agent_source import SourcePlace, function_place, instruction_place, root_place

if TYPE_CHECKING:
    from evaltui.workbench.agent.agent_state import AgentState


NO_EDITOR = "No editor: set $VISUAL or $EDITOR"
NOT_IN_BROWSER = "No $EDITOR in a browser; open evaltui in a terminal for it"
IN_BROWSER = "EVALTUI_IN_BROWSER"
"""A variable that `evaltui serve` sets for its sessions, which are shown in a browser."""

# Editors with a window of their own.
_GOTO_EDITORS = ("code", "code-insiders", "codium", "cursor", "windsurf")
_COLON_EDITORS = ("subl", "zed")
_LINE_OPTION_EDITORS = ("idea", "pycharm", "charm")
_WINDOW_EDITORS = (*_GOTO_EDITORS, *_COLON_EDITORS, *_LINE_OPTION_EDITORS)
_PLUS_EDITORS = (
    "vi",
    "vim",
    "nvim",
    "nano",
    "emacs",
    "emacsclient",
    "hx",
    "helix",
    "kak",
    "micro",
    "ne",
    "joe",
    "jed",
)
_WAIT_OPTIONS = ("--wait", "-w")


def editor_of(environ: Mapping[str, str], which: Callable[[str], str | None] = shutil.which) -> str:
    """The command of $VISUAL or $EDITOR; in the terminal of VS Code and similar, their command; "" for
    none."""
    if editor := environ.get("VISUAL") or environ.get("EDITOR"):
        return editor
    if environ.get("TERM_PROGRAM") == "vscode":
        return next((f"{name} --wait" for name in _GOTO_EDITORS if which(name)), "")
    return ""


def refuses_editor() -> str | None:
    """Why no file can be opened in an editor; None where one can."""
    if os.environ.get(IN_BROWSER):
        return NOT_IN_BROWSER
    return None if editor_of(os.environ) else NO_EDITOR


class EditorCall(NamedTuple):
    """An editor command, and whether it takes over the terminal until it ends."""

    words: list[str]
    in_terminal: bool


def command_at_line(command: Sequence[str], place: SourcePlace) -> EditorCall:
    """The command that opens a file at a line; an unknown editor opens the file only."""
    name, path, line = Path(command[0]).stem.lower(), str(place.path), place.line
    words = list(command)
    if name in _WINDOW_EDITORS:
        words = [word for word in words if word not in _WAIT_OPTIONS]
    if name in _GOTO_EDITORS:
        words += ["--goto", f"{path}:{line}"]
    elif name in _COLON_EDITORS:
        words.append(f"{path}:{line}")
    elif name in _LINE_OPTION_EDITORS:
        words += ["--line", str(line), path]
    elif name in _PLUS_EDITORS:
        words += [f"+{line}", path]
    else:
        words.append(path)
    return EditorCall(words, name not in _WINDOW_EDITORS)


def place_of_tool(agent: AgentState, name: str) -> SourcePlace | None:
    """The place of the function of a tool; None for a tool that is no function of the agent."""

    place = ((agent.info or {}).get("places") or {}).get(name)
    if place is not None:
        return SourcePlace(Path(place[0]), place[1])
    return function_place(agent.dir, name) or instruction_place(agent.dir, name)


def place_of_agent(agent: AgentState, name: str = "") -> SourcePlace | None:
    """The place of the instruction of an agent (the root agent for ""); else of its definition."""

    name = name or str((agent.info or {}).get("name") or "")
    return instruction_place(agent.dir, name) or root_place(agent.dir)
