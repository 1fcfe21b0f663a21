"""The folder in which google-adk keeps the results of eval runs."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.problems import Problem
from evaltui.documents.files import write_privately
from evaltui.documents.json_text import parse, read_text
from evaltui.documents.own_folder import keep_out_of_git, make_private_folder, refuse_link
from evaltui.project.folders import agent_file, agent_folder

if TYPE_CHECKING:
    from evaltui.runs.adk_reader import AdkRun

# Source: google-adk 2.13, LocalEvalSetResultsManager.
FOLDER = Path(".adk", "eval_history")
SUFFIX = ".evalset_result.json"
# Of the results that were written here the run logs say more.
OWN_SESSIONS = "evaltui-"
# Of the result that google-adk left, and that is kept as a run besides: the id of that run.
KEPT_AS = "evaltui_run"


def write_adk_result(agent_dir: Path, result_id: str, text: str | Iterable[str]) -> Path:
    """Keep an `EvalSetResult`, its text or pieces of it, under its id; returns the file.

    Raises OSError where the agent's folder cannot be written, also for links in it.
    """
    folder = agent_folder(agent_dir) / FOLDER
    refuse_link(folder.parent)
    refuse_link(folder)
    if not folder.parent.exists():
        make_private_folder(folder.parent)
        # google-adk makes it without, and leaves it to its user.
        keep_out_of_git(folder.parent)
    if not folder.exists():
        make_private_folder(folder)
    path = folder / f"{result_id}{SUFFIX}"
    write_privately(path, chain([text] if isinstance(text, str) else text, ["\n"]))
    return path


def adk_results(agent_dir: Path) -> list[Path]:
    """The result files of an agent, those written here among them, the oldest one first; none of a file
    beside others, as google-adk runs folders."""
    if agent_file(agent_dir):
        return []
    paths = (agent_folder(agent_dir) / FOLDER).glob(f"*{SUFFIX}")
    files = [file for file in paths if file.is_file()]
    return sorted(files, key=lambda file: (file.stat().st_mtime, file.name))


def is_own(path: Path) -> bool:
    """Whether there is a run log of the same results. Raises OSError."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return False
        # Such a file may be large, and of one that was written here the beginning is enough.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            marks = (f'"session_id": "{OWN_SESSIONS}', f'"{KEPT_AS}": "')
            return any(text.find(mark.encode()) >= 0 for mark in marks)


def read_adk_result(path: Path) -> AdkRun:
    """A result file of any version of google-adk; those of the first ones are JSON inside a JSON text.

    Raises OSError, and ValueError for what is no result file.
    """
    from evaltui.runs.adk_reader import run_from_adk

    text = read_text(path)
    data = parse(text) if isinstance(text, str) else text
    if isinstance(data, str):
        data = parse(data)
    if isinstance(data, Problem):
        raise ValueError(f"{path} is not a result file of google-adk: {data}")
    try:
        return run_from_adk(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a result file of google-adk: {error}") from error
