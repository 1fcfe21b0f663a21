"""The recordings of a run, in the parent: what hosts are told of them, and what they tell is written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaltui.core.evalset import EvalCase
from evaltui.core.events import Json
from evaltui.core.recordings.entry import Entry, Shared, entry_from_json
from evaltui.core.recordings.merging import merged
from evaltui.core.recordings.modes import Modes
from evaltui.core.recordings.stubs import stubs_of_case
from evaltui.files.recordings import (
    EvalSetError,
    Key,
    Recordings,
    read_recordings,
    recordings_path,
    save_recordings,
)
from evaltui.runner.tape import Recorded

# Seconds for which a crash may lose what models have answered.
_SAVE_EVERY = 5.0
_MOST_NAMED = 5


@dataclass
class _Take:
    """One run of a case: what was recorded of it, and what it has used and made so far, by place."""

    old: Sequence[Entry]
    made: list[tuple[int, Entry]] = field(default_factory=list)


class SetRecordings:
    """The recordings of one set while it is run. `modes` says how.

    `tell` gets remarks for the user, a sentence each.
    """

    def __init__(self, set_path: Path, eval_set_id: str, modes: Modes, tell: Callable[[str], None]) -> None:
        self._path = recordings_path(set_path, eval_set_id)
        self.modes = modes
        self._tell = tell
        self._known = Recordings(self._path)
        self._takes: dict[Key, _Take] = {}
        self._changes: dict[Key, Sequence[Entry]] = {}
        self._shared: dict[str, Shared] = {}

    async def open(self) -> None:
        """Read the file. Raises EvalSetError or OSError where that cannot be done."""
        self._known = await asyncio.to_thread(read_recordings, self._path)
        if self._known.problem:
            self._tell(self._known.problem)

    def tell_of_others(self, eval_ids: Iterable[str]) -> None:
        """Say which cases have recordings and are not among those of the set: they stay, and take place."""
        if others := sorted(self._known.cases.difference(eval_ids)):
            names = ", ".join(others[:_MOST_NAMED]) + (", …" if len(others) > _MOST_NAMED else "")
            self._tell(f"{self._path} also has recordings of cases that the set does not have: {names}")

    def begin(self, case: EvalCase, repeat: int) -> Json:
        """What a host is told before it runs a case. A run that was begun before counts no more."""
        old = self._known.entries(case.eval_id, repeat)
        self._takes[case.eval_id, repeat] = _Take(old)
        return Recorded(
            case=case.eval_id,
            repeat=repeat,
            file=f"{self._path.parent.name}/{self._path.name}",
            modes=self.modes,
            entries=old,
            shared=self._known.shared_by(old),
            stubs=stubs_of_case(case) if self.modes.stubs else (),
        ).to_json()

    def take(self, eval_id: str, repeat: int, line: Json) -> None:
        """What a host tells, see `tape.Tape`."""
        if "note" in line:
            self._tell(line["note"])
            return
        take = self._takes[eval_id, repeat]
        if "used" in line:
            take.made.append((line["at"], take.old[line["used"]]))
            return
        entry = entry_from_json(line["entry"])
        assert not isinstance(entry, Shared)
        take.made.append((line["at"], entry))
        for data in line["shared"]:
            shared = entry_from_json(data)
            assert isinstance(shared, Shared)
            self._shared[shared.id] = shared

    def end(self, eval_id: str, repeat: int, *, complete: bool) -> None:
        """A run of a case is over; `complete` where it came to its end without an error."""
        take = self._takes.pop((eval_id, repeat), None)
        if take is None or not self.modes.writes:
            return
        made = [entry for _, entry in sorted(take.made, key=lambda item: item[0])]
        entries = merged(take.old, made, self.modes, complete=complete)
        if entries != take.old:
            self._changes[eval_id, repeat] = entries

    async def save(self) -> None:
        """Write what has changed. That a file cannot be written is a remark: results are worth more."""
        changes, self._changes = self._changes, {}
        if not changes:
            return
        try:
            self._known = await asyncio.to_thread(save_recordings, self._path, changes, self._shared)
        except (OSError, EvalSetError) as error:
            self._tell(f"what was recorded is lost: {error}")

    def abandon(self) -> None:
        """End what is still being run."""
        for eval_id, repeat in list(self._takes):
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
