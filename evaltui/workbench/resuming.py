"""What an interrupted run left to do, and whether it can still be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.compare import Key, config_changes
from evaltui.core.fingerprints import case_fingerprint
from evaltui.core.outcome import RepeatResult
from evaltui.files.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.files.folders import agent_folder
from evaltui.files.history import run_id
from evaltui.files.resuming import files_changed_since, finished_repeats
from evaltui.files.runs import is_being_written, read_header, read_run
from evaltui.files.workspace import SetEntry
from evaltui.workbench.documents import Documents

Json = dict[str, Any]
_MOST_NAMES = 3


@dataclass(frozen=True)
class Resumption:
    """A run that is to be brought to its end.

    `chosen` are the cases that it was begun with, `known` the runs of cases that it has a result of,
    `missing` how many it has not.
    """

    path: Path
    header: Json
    chosen: Mapping[Path, tuple[str, ...]]
    known: Mapping[Key, Mapping[int, RepeatResult]]
    missing: int

    @property
    def id(self) -> str:
        return run_id(self.path)

    def carried(self) -> Iterator[tuple[str, str, int]]:
        for (eval_set_id, eval_id), repeats in self.known.items():
            yield from ((eval_set_id, eval_id, number) for number in repeats)


def read_resumption(
    agent_dir: Path, path: Path, sets: Sequence[SetEntry], documents: Documents
) -> Resumption:
    """In a thread. Raises OSError, and ValueError with a sentence where the run cannot go on: half of its
    results would be about something else than the other half."""
    if path.name.endswith(ADK_SUFFIX):
        raise ValueError("a result file of google-adk does not say what is missing")
    header = read_header(path)
    if is_being_written(path):
        raise ValueError("this run is still going on")
    if header.get("initial_session"):
        raise ValueError("it was begun with --initial-session: `evaltui run --resume` goes on with it")
    if changed := files_changed_since(path, header.get("files", {}), agent_dir):
        raise ValueError(f"it cannot go on, the agent was changed since: {_some(changed)}")
    finished = finished_repeats(path)
    chosen: dict[Path, tuple[str, ...]] = {}
    known: dict[Key, Mapping[int, RepeatResult]] = {}
    missing = 0
    for eval_set_id, eval_ids in header["selected"].items():
        began_with = header["sets"][eval_set_id]
        entry = _entry(agent_dir, eval_set_id, began_with.get("path"), sets)
        opened = documents.open(entry.path)
        if opened.config is None:
            raise ValueError(f"{entry.path.name} cannot be run: {opened.errors[0]}")
        config = opened.config.config
        now = config.model_dump(mode="json", exclude_defaults=True)
        if different := list(config_changes(began_with["config"], now)):
            raise ValueError(f"it cannot go on, {eval_set_id} is scored otherwise: {'; '.join(different)}")
        runs = header.get("runs") or config.evaltui.repeats.runs
        for eval_id in eval_ids:
            case = opened.case(eval_id)
            if case is None:
                raise ValueError(f"it cannot go on, {eval_set_id} has no {eval_id} any more")
            done = finished.get((eval_set_id, eval_id), {})
            mine = {number: result for number, result in done.items() if number < runs}
            if mine and case_fingerprint(case) != next(iter(mine.values())).expects:
                raise ValueError(f"it cannot go on, the case {eval_id} was changed since")
            known[eval_set_id, eval_id] = mine
            missing += runs - len(mine)
        chosen[entry.path] = tuple(eval_ids)
    if not missing and read_run(path).complete:
        raise ValueError("this run is complete and had no errors: nothing is left to run")
    return Resumption(path, header, chosen, known, missing)


def _entry(agent_dir: Path, eval_set_id: str, given: str | None, sets: Sequence[SetEntry]) -> SetEntry:
    wanted = (agent_folder(agent_dir) / given).resolve() if given else None
    for entry in sets:
        if entry.eval_set_id == eval_set_id and wanted in (None, entry.path.resolve()):
            return entry
    raise ValueError(f"it cannot go on, there is no set {eval_set_id} any more")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
