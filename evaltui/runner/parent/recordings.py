"""The recordings of a run, in the parent: what hosts and judges are told of them, and what they tell is
written."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Json
from evaltui.core.model.modes import Modes, modes_of
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.core.recordings.entry import (
    JUDGE_OF,
    Entry,
    ModelCall,
    Shared,
    ToolCall,
    entry_from_json,
    written,
)
from evaltui.core.recordings.given import stubs_of_case
from evaltui.core.secrets import Secrets
from evaltui.runner.call_recorder import CallRecorder, CaseRecording
from evaltui.runner.plan import RunPlan
from evaltui.runner.recordings import (
    Key,
    Recordings,
    read_recordings,
    save_recordings,
)


def merged(old: Sequence[Entry], made: Sequence[Entry], modes: Modes, *, complete: bool) -> list[Entry]:
    """The entries of one case and repeat after a run of it.

    `made` are those that the run used or made, in order. They replace what the run was to keep; of a run
    that did not come to its end, only the answers to what it did ask, and no answer by an error. What the run
    was not to keep (models while only tools are recorded, tools that are called live) stays. Where the same
    answers came, the order stays too: what runs side by side comes in another one each time.
    """
    replaced = [entry for entry in old if _is_kept_by(entry, modes)]
    kept = [entry for entry in old if not _is_kept_by(entry, modes)]
    # What a stubbed tool took from the recording is in there already.
    made = [entry for entry in made if _is_kept_by(entry, modes)]
    if not complete:
        made = _without_worse(made, replaced)
        kept += _not_asked_again(replaced, made)
    elif Counter(map(written, made)) == Counter(map(written, replaced)):
        return list(old)
    return sorted([*made, *kept], key=lambda entry: entry.turn)


def _without_worse(made: Sequence[Entry], before: Sequence[Entry]) -> list[Entry]:
    """Without the errors of what was answered before: a key that is missing today is no reason to forget."""
    answered = {entry.keys[0] for entry in before if entry.error is None}
    return [entry for entry in made if entry.error is None or entry.keys[0] not in answered]


def _not_asked_again(before: Sequence[Entry], made: Sequence[Entry]) -> list[Entry]:
    asked = Counter(entry.keys[0] for entry in made)
    left: list[Entry] = []
    for entry in before:
        if asked[entry.keys[0]]:
            asked[entry.keys[0]] -= 1
        else:
            left.append(entry)
    return left


def _is_kept_by(entry: Entry, modes: Modes) -> bool:
    if isinstance(entry, ModelCall):
        return modes.keeps_models
    return modes.of_tool(entry.tool) == "record"


# Seconds for which a crash may lose what models have answered.
_SAVE_EVERY = 5.0
_MOST_NAMED = 5


@dataclass
class _Part:
    """What was recorded of a run of a case, and what the run has used and made so far, by place."""

    old: list[Entry]
    made: list[tuple[int, Entry]] = field(default_factory=list)

    @property
    def made_in_order(self) -> list[Entry]:
        return [entry for _, entry in sorted(self.made, key=lambda item: item[0])]


@dataclass
class _CaseRun:
    """One run of a case: what its agents did, and what judges said of it."""

    agents: _Part
    judges: _Part
    recorded: str
    """The fingerprint of its recording."""


def _judge(entry: Entry) -> str:
    """Which judge was asked; "" for what an agent did."""
    return entry.agent if isinstance(entry, ModelCall) and entry.agent.startswith(JUDGE_OF) else ""


def _by_judge(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(_judge(entry), []).append(entry)
    return found


class SetRecordings:
    """The recordings of one set while it is run, in the file `path`. `modes` says how.

    `note` gets remarks for the user, a sentence each.
    """

    def __init__(
        self,
        path: Path,
        set_path: Path,
        modes: Modes,
        note: Callable[[str], None],
    ) -> None:
        self._path = path
        self._file = path.relative_to(set_path.parent).as_posix()
        self.modes = modes
        self._note = note
        self._known = Recordings(self._path)
        self._runs_begun: dict[Key, _CaseRun] = {}
        self._changes: dict[Key, Sequence[Entry]] = {}
        self._shared: dict[str, Shared] = {}

    async def open(self) -> None:
        """Reads the file. Raises EvalSetError for lines that are none, and where it cannot be read."""
        self._known = await asyncio.to_thread(read_recordings, self._path)

    def note_others(self, eval_ids: Iterable[str]) -> None:
        """Say which cases have recordings and are not among those of the set: they stay, and take up room."""
        if others := sorted(self._known.cases.difference(eval_ids)):
            names = ", ".join(others[:_MOST_NAMED]) + (", …" if len(others) > _MOST_NAMED else "")
            self._note(f"{self._path} has recordings of unknown cases: {names}")

    def begin(self, case: EvalCase, repeat: int) -> Json:
        """What a host is told before it runs a case. A run that was begun before counts no more."""
        case_run = self._begun(case.eval_id, repeat)
        stubs = stubs_of_case(case) if self.modes.stubs else ()
        return self._recorded(case.eval_id, repeat, case_run.agents.old, stubs).to_json()

    def judging(self, eval_id: str, repeat: int, secrets: Secrets) -> CallRecorder:
        """What the judges of a case are recorded on, in the same recording as what was run."""
        case_run = self._runs_begun.get((eval_id, repeat)) or self._begun(eval_id, repeat)
        recorded = self._recorded(eval_id, repeat, case_run.judges.old)
        return CallRecorder(recorded, lambda line: self._keep(case_run.judges, line), secrets)

    def _begun(self, eval_id: str, repeat: int) -> _CaseRun:
        agents: list[Entry] = []
        judges: list[Entry] = []
        for entry in self._known.entries(eval_id, repeat):
            (judges if _judge(entry) else agents).append(entry)
        self._runs_begun[eval_id, repeat] = case_run = _CaseRun(
            _Part(agents), _Part(judges), self._known.fingerprint(eval_id, repeat)
        )
        return case_run

    def _recorded(
        self, eval_id: str, repeat: int, entries: Sequence[Entry], stubs: Sequence[ToolCall] = ()
    ) -> CaseRecording:
        return CaseRecording(
            case=eval_id,
            repeat=repeat,
            file=self._file,
            modes=self.modes,
            entries=entries,
            shared=self._known.shared_by(entries),
            stubs=stubs,
            renamed=self._known.renamed,
        )

    def keep(self, eval_id: str, repeat: int, line: Json) -> None:
        """What a host tells, see `CallRecorder`."""
        self._keep(self._runs_begun[eval_id, repeat].agents, line)

    def _keep(self, part: _Part, line: Json) -> None:
        if "note" in line:
            self._note(line["note"])
            return
        if "used" in line:
            part.made.append((line["at"], part.old[line["used"]]))
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
        metrics whose judge has answered everything: what others have of old stays.

        Returns the fingerprint of its recording, "" for a run that was not begun.
        """
        case_run = self._runs_begun.pop((eval_id, repeat), None)
        if case_run is None or not self.modes.writes:
            return case_run.recorded if case_run is not None else ""
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
            return case_run.recorded
        self._changes[eval_id, repeat] = entries
        made_now = Recordings(self._path, shared=dict(self._known.shared))
        made_now.put(eval_id, repeat, entries, self._shared.values())
        return made_now.fingerprint(eval_id, repeat)

    async def save(self) -> None:
        """Write what has changed. That a file cannot be written is a remark: results are worth more."""
        changes, self._changes = self._changes, {}
        if not changes:
            return
        try:
            self._known = await asyncio.to_thread(save_recordings, self._path, changes, self._shared)
        except (OSError, EvalSetError) as error:
            self._note(f"recordings not saved: {error}")

    def abandon(self) -> None:
        """End what is still being run."""
        for eval_id, repeat in list(self._runs_begun):
            self.end(eval_id, repeat, complete=False)


class SavedNowAndThen:
    """Saves while a run goes on, so that a crash does not cost every answer."""

    def __init__(self, recordings: Sequence[SetRecordings]) -> None:
        self._recordings = recordings
        self._saved = time.monotonic()

    async def save_if_due(self) -> None:
        if self._recordings and time.monotonic() - self._saved > _SAVE_EVERY:
            await self.save()

    async def save(self) -> None:
        self._saved = time.monotonic()
        for one in self._recordings:
            await one.save()


RecordingsOfSets = Mapping[Path | None, SetRecordings]
"""The recordings of the sets of a run that need them, by their files."""


async def open_recordings(plan: RunPlan, note: Callable[[str], None]) -> RecordingsOfSets:
    """Read the recordings of a run, which is done before its agent is imported.

    Raises ValueError for a set without a file, EvalSetError for recordings that cannot be read.
    """
    recordings = _recordings_of(plan, note)
    for one in plan.sets:
        if of_set := recordings.get(one.path):
            await of_set.open()
            if one.whole:
                of_set.note_others(eval_id for eval_id, _ in ids_and_turns(one.cases))
    return recordings


def _recordings_of(plan: RunPlan, note: Callable[[str], None]) -> dict[Path | None, SetRecordings]:
    found: dict[Path | None, SetRecordings] = {}
    scored = plan.held is not None
    for one in plan.sets:
        # Of conversations that were held, only what judges say is new.
        modes = (
            Modes(plan.settings.record)
            if scored
            else modes_of(plan.settings.record, plan.settings.tools, one.config.evaltui.tools)
        )
        if modes.is_off:
            continue
        path = plan.recordings_path(one)
        if path is None or one.path is None:
            raise ValueError(
                f"eval set {one.eval_set_id!r} has no file, so recordings have no place. Give its path"
            )
        found[one.path] = SetRecordings(path, one.path, modes, note)
    return found
