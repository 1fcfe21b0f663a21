"""What an interrupted run left to do, and whether it can still be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaltui.core.compare.changes_between_runs import config_changes
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.fingerprints import case_fingerprint
from evaltui.core.model.outcome import RepeatResult
from evaltui.files.case_paths import case_path
from evaltui.files.workspace import SetEntry
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.header import LoggedSet, RunHeader
from evaltui.runs.history import run_id
from evaltui.runs.log import is_being_written
from evaltui.runs.log_reader import read_header, read_run
from evaltui.runs.resuming import files_changed_since, finished_repeats, twins_in_words
from evaltui.workbench.documents import Documents

_MOST_NAMES = 3


@dataclass(frozen=True)
class Resumption:
    """A run that is to be brought to its end.

    `chosen` are the cases that it was begun with, `known` the runs of cases that it has a result of,
    `missing` how many it has not.
    """

    path: Path
    header: RunHeader
    chosen: Mapping[Path, tuple[str, ...]]
    known: Mapping[CaseId, Mapping[int, RepeatResult]]
    missing: int

    @property
    def id(self) -> str:
        return run_id(self.path)

    def carried(self) -> Iterator[tuple[CaseId, int]]:
        for case, repeats in self.known.items():
            yield from ((case, number) for number in repeats)


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
    if header.data.get("initial_session"):
        raise ValueError("it was begun with --initial-session: `evaltui run --resume` goes on with it")
    if header.twins:
        raise ValueError(f"it cannot go on: {twins_in_words(header)}")
    if changed := files_changed_since(path, header.files, agent_dir):
        raise ValueError(f"it cannot go on, the agent was changed since: {_some(changed)}")
    finished = finished_repeats(path)
    chosen: dict[Path, tuple[str, ...]] = {}
    known: dict[CaseId, Mapping[int, RepeatResult]] = {}
    missing = 0
    for began_with in header.sets:
        eval_set_id = began_with.eval_set_id
        entry = _entry(agent_dir, began_with, sets)
        opened = documents.open(entry.path)
        if opened.config is None:
            raise ValueError(f"{entry.path.name} cannot be run: {opened.errors[0]}")
        config = opened.config.config
        now = config.model_dump(mode="json", exclude_defaults=True)
        if different := list(config_changes(began_with.config, now)):
            raise ValueError(f"it cannot go on, {eval_set_id} is scored otherwise: {'; '.join(different)}")
        runs = header.data.get("runs") or config.evaltui.repeats.runs
        for eval_id in began_with.eval_ids:
            stored = opened.case(eval_id)
            if stored is None:
                raise ValueError(f"it cannot go on, {eval_set_id} has no {eval_id} any more")
            case = CaseId(case_path(agent_dir, entry.path), eval_id)
            done = finished.get(case, {})
            mine = {number: result for number, result in done.items() if number < runs}
            if any(result.expects != case_fingerprint(stored) for result in mine.values()):
                raise ValueError(f"it cannot go on, the case {eval_id} was changed since")
            known[case] = mine
            missing += runs - len(mine)
        chosen[entry.path] = began_with.eval_ids
    if not chosen:
        raise ValueError("its log does not say which cases it was begun with")
    if not missing and read_run(path).complete:
        raise ValueError("this run is complete and had no errors: nothing is left to run")
    return Resumption(path, header, chosen, known, missing)


def _entry(agent_dir: Path, one: LoggedSet, sets: Sequence[SetEntry]) -> SetEntry:
    for entry in sets:
        if entry.eval_set_id == one.eval_set_id and case_path(agent_dir, entry.path) == one.path:
            return entry
    raise ValueError(f"it cannot go on, there is no set {one.eval_set_id} in {one.path} any more")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
