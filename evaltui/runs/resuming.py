"""What of an interrupted run need not be done again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.files.agent_files import changed_files, files_of
from evaltui.files.folders import agent_folder
from evaltui.runs.header import RunHeader
from evaltui.runs.history import stored_repeat
from evaltui.runs.log_reader import event_of, lines_of_cases

# What only the user writes. Other files an agent may change itself while it works.
_CODE = {".py", ".yaml", ".yml"}


def finished_repeats(log: Path) -> dict[CaseId, dict[int, RepeatResult]]:
    """The runs of cases that a log has a result of, with what the agent did; without those that had an error.

    Raises OSError, and ValueError for a log that is damaged.
    """
    finished: dict[CaseId, dict[int, RepeatResult]] = {}
    happened: dict[tuple[CaseId, int], list[Event]] = {}
    for line in lines_of_cases(log):
        run = line.case, line.repeat
        match line.kind:
            case "case_started":
                happened[run] = []
            case "repeat_result":
                result = stored_repeat(log, line.data["result"], happened.pop(run, []))
                if result.status is not Status.ERROR:
                    finished.setdefault(line.case, {})[line.repeat] = result
            case _:
                happened.setdefault(run, []).append(event_of(log, line.data))
    return finished


def files_changed_since(log: Path, header_files: Mapping[str, str], agent_dir: Path) -> tuple[str, ...]:
    """The agent's files that are not what they were when a run began.

    Data that changed before the end of its log was changed by the run itself. Raises OSError.
    """
    end = log.stat().st_mtime + 1.0
    folder = agent_folder(agent_dir)
    return tuple(
        name
        for name in changed_files(header_files, files_of(agent_dir))
        if Path(name).suffix in _CODE or not _changed_before(folder / name, end)
    )


def twins_in_words(header: RunHeader) -> str:
    """Why a run of an earlier version that ran twins cannot go on."""
    eval_set_id, eval_id = min(header.twins)
    return (
        f"several files had the set id {eval_set_id} and a case {eval_id}, and its log, which an earlier "
        "version wrote, does not say which of them a result is of"
    )


def _changed_before(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime <= moment
    except OSError:
        return False
