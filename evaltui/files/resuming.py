"""What of an interrupted run need not be done again."""

from __future__ import annotations

from pathlib import Path

from evaltui.core.compare import Key
from evaltui.core.events import Event
from evaltui.core.outcome import RepeatResult, Status
from evaltui.core.record import invocations_from_events
from evaltui.core.stored_results import repeat_from_json
from evaltui.files.agent_files import changed_files
from evaltui.files.folders import agent_folder
from evaltui.files.history import files_of
from evaltui.files.runs import lines_of_cases

# What only the user writes. Other files an agent may change itself while it works.
_CODE = {".py", ".yaml", ".yml"}


def finished_repeats(log: Path) -> dict[Key, dict[int, RepeatResult]]:
    """The runs of cases that a log has a result of, with what the agent did; without those that had an error.

    Raises OSError, and ValueError for a log that is damaged.
    """
    finished: dict[Key, dict[int, RepeatResult]] = {}
    happened: dict[tuple[Key, int], list[Event]] = {}
    for line in lines_of_cases(log):
        key, repeat = (line.get("set", ""), line["case"]), line.get("repeat", 0)
        match line["kind"]:
            case "case_started":
                happened[key, repeat] = []
            case "repeat_result":
                events = happened.pop((key, repeat), [])
                result = repeat_from_json(line["result"], invocations_from_events(events))
                if result.status is not Status.ERROR:
                    finished.setdefault(key, {})[repeat] = result
            case _:
                happened.setdefault((key, repeat), []).append(Event.from_json(line))
    return finished


def files_changed_since(log: Path, header_files: dict[str, str], agent_dir: Path) -> tuple[str, ...]:
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


def _changed_before(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime <= moment
    except OSError:
        return False
