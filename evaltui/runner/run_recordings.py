"""The recordings of a run, in the parent: handed to hosts and judges, and written with their new lines."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaltui.agents.call_recorder import CallRecorder, CaseRecording
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Json
from evaltui.core.model.modes import Modes, modes_of
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.served import is_other_model
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.core.recordings.entry import (
    JUDGE_OF,
    Entry,
    ModelCall,
    Shared,
    ToolCall,
    answer_text,
    entry_from_json,
    line_text,
)
from evaltui.core.recordings.given import stubs_of_case
from evaltui.core.secrets import Secrets
from evaltui.runner.plan import RunPlan, WorkItem
from evaltui.runner.recording_files import (
    Key,
    Recordings,
    read_recordings,
    save_recordings,
)
from evaltui.text.figures import short_list


def merged(old: Sequence[Entry], made: Sequence[Entry], modes: Modes, *, complete: bool) -> list[Entry]:
    """The entries of one case and repeat after a run of it.

    `made` are those that the run used or made, in order. They replace the old entries of what is recorded; of
    a run that did not come to its end, only the entries of equal requests, and no answer by an error. Entries
    of what is not recorded (models while only tools are, tools that are called live) stay. Where the answers
    are the same, the order stays too: it differs each time where calls run side by side.
    """
    replaced = [entry for entry in old if _is_recorded(entry, modes)]
    others = [entry for entry in old if not _is_recorded(entry, modes)]
    # A stubbed tool's entries, taken from the recording, are in there already.
    made = [entry for entry in made if _is_recorded(entry, modes)]
    if not complete:
        # An error replaces no answer: a key that is missing today is no reason to forget.
        answered = {entry.keys[0] for entry in replaced if entry.error is None}
        made = [entry for entry in made if entry.error is None or entry.keys[0] not in answered]
        others += _not_repeated(replaced, made)
    elif Counter(map(_answer_line, made)) == Counter(map(_answer_line, replaced)):
        return list(old)
    return sorted([*made, *others], key=lambda entry: entry.turn)


def _answer_line(entry: Entry) -> str:
    """The line of an entry without its day and the order of its end."""
    return line_text(replace(entry, recorded="") if isinstance(entry, ModelCall) else replace(entry, ended=0))


def _not_repeated(before: Sequence[Entry], made: Sequence[Entry]) -> list[Entry]:
    """The entries whose requests were not made again."""
    requests = Counter(entry.keys[0] for entry in made)
    rest: list[Entry] = []
    for entry in before:
        if requests[entry.keys[0]]:
            requests[entry.keys[0]] -= 1
        else:
            rest.append(entry)
    return rest


def _is_recorded(entry: Entry, modes: Modes) -> bool:
    if isinstance(entry, ModelCall):
        return modes.keeps_models
    return modes.of_tool(entry.tool) == "record"


# Seconds for which a crash may lose what models have answered.
_SAVE_EVERY = 5.0
_MAX_NAMED = 5


@dataclass
class _Part:
    """Recorded entries of a run of a case, and those that the run has used or made so far."""

    old: list[Entry]
    made: list[tuple[int, Entry]] = field(default_factory=list)
    """Each with its place in the run."""
    used: set[int] = field(default_factory=set)
    """Indexes of the old entries that were replayed."""

    @property
    def made_in_order(self) -> list[Entry]:
        return [entry for _, entry in sorted(self.made, key=lambda item: item[0])]

    @property
    def other_answer(self) -> Entry | None:
        """The first unused entry with another answer than the replayed one before it; None for none."""
        replayed = {(_agent(self.old[index]), self.old[index].keys[0]): index for index in sorted(self.used)}
        for index, entry in enumerate(self.old):
            before = replayed.get((_agent(entry), entry.keys[0]), index)
            if before < index and answer_text(entry) != answer_text(self.old[before]):
                return entry
        return None


@dataclass
class _CaseRun:
    """Recordings of one run of a case: of its agents, and of its judges."""

    agents: _Part
    judges: _Part
    fingerprint: str
    """Fingerprint of the recording before the run."""


def _agent(entry: Entry) -> str:
    return entry.agent if isinstance(entry, ModelCall) else ""


def _judge(entry: Entry) -> str:
    """The judge of an entry; "" for an entry of an agent."""
    return entry.agent if isinstance(entry, ModelCall) and entry.agent.startswith(JUDGE_OF) else ""


def _by_judge(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    by_judge: dict[str, list[Entry]] = {}
    for entry in entries:
        by_judge.setdefault(_judge(entry), []).append(entry)
    return by_judge


class SetRecordings:
    """The recordings of one set while it is run, in the file `path`."""

    def __init__(
        self,
        path: Path,
        set_path: Path,
        modes: Modes,
        note: Callable[[str], None],
        others: Sequence[Path] = (),
    ) -> None:
        """`others` are files whose answers of judges are used where `path` lacks one."""
        self._path = path
        self._file = path.relative_to(set_path.parent).as_posix()
        self.modes = modes
        self._note = note
        self._recorded = Recordings()
        self._others = others
        self._of_others: list[Recordings] = []
        self._runs: dict[Key, _CaseRun] = {}
        self._changes: dict[Key, Sequence[Entry]] = {}
        self._shared: dict[str, Shared] = {}
        # By the requested name the versions in the file before the run; None until they are asked for.
        self._versions: dict[str, dict[str, str]] | None = None

    async def open(self) -> None:
        """Reads the file. Raises EvalSetError for lines that are none, and where it cannot be read."""
        self._recorded = await asyncio.to_thread(read_recordings, self._path)
        self._of_others = [await asyncio.to_thread(read_recordings, path) for path in self._others]

    def note_others(self, eval_ids: Iterable[str]) -> None:
        """Note the cases with recordings that are not in the set: these stay, and take up room."""
        if others := sorted(self._recorded.cases.difference(eval_ids)):
            names = ", ".join(others[:_MAX_NAMED]) + (", …" if len(others) > _MAX_NAMED else "")
            self._note(f"{self._path} has recordings of unknown cases: {names}")

    def start(self, case: EvalCase, repeat: int) -> Json:
        """The `CaseRecording` as JSON for a host that will run a case. Starts its recording anew."""
        case_run = self._start(case.eval_id, repeat)
        stubs = stubs_of_case(case) if self.modes.stubs else ()
        return self._for_host(case.eval_id, repeat, case_run.agents.old, stubs).to_json()

    def judging(self, eval_id: str, repeat: int, secrets: Secrets) -> CallRecorder:
        """The recorder of the judges of a case, into the same recording as its run."""
        case_run = self._runs.get((eval_id, repeat)) or self._start(eval_id, repeat)
        recorded = self._for_host(eval_id, repeat, case_run.judges.old)
        return CallRecorder(recorded, lambda line: self._add(case_run.judges, line), secrets)

    def _start(self, eval_id: str, repeat: int) -> _CaseRun:
        agents: list[Entry] = []
        judges: list[Entry] = []
        for entry in self._recorded.entries(eval_id, repeat):
            (judges if _judge(entry) else agents).append(entry)
        for other in self._of_others:
            judges += filter(_judge, other.entries(eval_id, repeat))
        self._runs[eval_id, repeat] = case_run = _CaseRun(
            _Part(agents), _Part(judges), self._recorded.fingerprint(eval_id, repeat)
        )
        return case_run

    def _for_host(
        self, eval_id: str, repeat: int, entries: Sequence[Entry], stubs: Sequence[ToolCall] = ()
    ) -> CaseRecording:
        return CaseRecording(
            case=eval_id,
            repeat=repeat,
            file=self._file,
            modes=self.modes,
            entries=entries,
            shared=self._recorded.shared_by(entries),
            stubs=stubs,
            renamed=self._recorded.renamed,
        )

    def add(self, eval_id: str, repeat: int, line: Json) -> None:
        """Add a host's line, see `CallRecorder`."""
        self._add(self._runs[eval_id, repeat].agents, line)

    def _add(self, part: _Part, line: Json) -> None:
        if "note" in line:
            self._note(line["note"])
            return
        if "used" in line:
            part.made.append((line["at"], part.old[line["used"]]))
            part.used.add(line["used"])
            return
        entry = entry_from_json(line["entry"])
        assert isinstance(entry, Entry)
        part.made.append((line["at"], entry))
        for data in line["shared"]:
            shared = entry_from_json(data)
            assert isinstance(shared, Shared)
            self._shared[shared.id] = shared

    def end(self, eval_id: str, repeat: int, *, complete: bool, judged: Collection[str] = ()) -> str:
        """A run of a case is over; `complete` where it came to its end without an error. `judged` are the
        metrics whose judge has answered everything: the old entries of others stay.

        Returns the fingerprint of its recording, "" for a run that was not started.
        """
        case_run = self._runs.pop((eval_id, repeat), None)
        if case_run is not None and complete and (other := case_run.agents.other_answer):
            self._note_other_answer(eval_id, repeat, other)
        if case_run is None or not self.modes.writes:
            return case_run.fingerprint if case_run is not None else ""
        entries = merged(case_run.agents.old, case_run.agents.made_in_order, self.modes, complete=complete)
        old, made = _by_judge(case_run.judges.old), _by_judge(case_run.judges.made_in_order)
        for judge in old | made:
            entries += merged(
                old.get(judge, ()),
                made.get(judge, ()),
                self.modes,
                complete=judge.removeprefix(JUDGE_OF) in judged,
            )
        if entries == [*case_run.agents.old, *case_run.judges.old]:
            return case_run.fingerprint
        self._changes[eval_id, repeat] = entries
        made_now = Recordings(shared=dict(self._recorded.shared))
        made_now.put(eval_id, repeat, entries, self._shared.values())
        return made_now.fingerprint(eval_id, repeat)

    def _note_other_answer(self, eval_id: str, repeat: int, entry: Entry) -> None:
        of = f"model {entry.model}" if isinstance(entry, ModelCall) else f"tool {entry.tool}"
        self._note(
            f"{self._path}: case {eval_id}, run {repeat + 1}, turn {entry.turn + 1}: a request has several "
            f"answers of {of}, and the last was not used. After a merge, delete the wrong one; "
            "--record record replaces all"
        )

    async def save(self) -> None:
        """Write changes. A file that cannot be written is a remark: results are worth more."""
        changes, self._changes = self._changes, {}
        if not changes:
            return
        if self.modes.models == "auto":
            for text in await asyncio.to_thread(lambda: list(self._other_versions(changes))):
                self._note(text)
        try:
            self._recorded = await asyncio.to_thread(save_recordings, self._path, changes, self._shared)
        except (OSError, EvalSetError) as error:
            self._note(f"recordings not saved: {error}")

    def _other_versions(self, changes: Mapping[Key, Sequence[Entry]]) -> Iterator[str]:
        """Notes on models whose recorded answers are of other versions than the new ones, each once."""
        made = {
            (entry.model, entry.version): None
            for entries in changes.values()
            for entry in entries
            if isinstance(entry, ModelCall) and entry.version
        }
        if self._versions is None:
            self._versions = self._recorded.versions()
        for model, version in made:
            recorded = self._versions.get(model, {})
            if recorded and all(is_other_model(other, version) for other in recorded):
                # Known from now on, so that it is said once.
                self._versions[model] = {**recorded, version: ""}
                days = [f"{other} ({day})" if day else other for other, day in recorded.items()]
                yield (
                    f"{self._path} has answers of {model} by {short_list(days)}, new ones are by {version}. "
                    "--record record replaces all"
                )

    def forget(self) -> None:
        """Leave the file as it is, whatever runs that are under way have used."""
        self._runs.clear()

    def abandon(self) -> None:
        """End the recordings of runs that are still under way."""
        for eval_id, repeat in list(self._runs):
            self.end(eval_id, repeat, complete=False)


class RunRecordings:
    """The recordings of a run's sets, saved while it goes on, so that a crash does not cost every answer."""

    def __init__(self, sets: Mapping[Path | None, SetRecordings]) -> None:
        self.sets = sets
        """By the files of the sets; those that are neither recorded nor replayed have none."""
        self._saved = time.monotonic()

    def of(self, item: WorkItem) -> SetRecordings | None:
        return self.sets.get(item.set.path)

    async def save_if_due(self) -> None:
        if self.sets and time.monotonic() - self._saved > _SAVE_EVERY:
            await self.save()

    async def save(self) -> None:
        self._saved = time.monotonic()
        for recordings in self.sets.values():
            await recordings.save()

    def abandon(self) -> None:
        """End the recordings of cases that are still being run."""
        for recordings in self.sets.values():
            recordings.abandon()


async def open_recordings(plan: RunPlan, note: Callable[[str], None]) -> RunRecordings:
    """Read the recordings of a run, before its agent is imported.

    `note` gets remarks for the user. Raises ValueError for a set without a file, EvalSetError for recordings
    that cannot be read.
    """
    sets: dict[Path | None, SetRecordings] = {}
    for eval_set in plan.sets:
        # Of conversations that were held elsewhere, only what judges say is new.
        modes = (
            modes_of(plan.settings.record, plan.settings.tools, eval_set.config.evaltui.tools)
            if plan.held is None
            else Modes(plan.settings.record)
        )
        if modes.is_off:
            continue
        path = plan.recordings_path(eval_set)
        if path is None or eval_set.path is None:
            raise ValueError(
                f"eval set {eval_set.eval_set_id!r} has no file, so recordings have no place. Give its path"
            )
        sets[eval_set.path] = SetRecordings(path, eval_set.path, modes, note)
    for eval_set in plan.sets:
        if recordings := sets.get(eval_set.path):
            await recordings.open()
            if eval_set.whole:
                recordings.note_others(eval_id for eval_id, _ in ids_and_turns(eval_set.cases))
    return RunRecordings(sets)
