"""The runs that were kept, as a list: what is seen of it is read, the newest first."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from evaltui.core.model.outcome import Status, worst_status
from evaltui.files.agent_files import changed_files, files_of
from evaltui.runs import log_reader as logs
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.adk_results import adk_results, is_own, read_adk_result
from evaltui.runs.history import run_id, run_names
from evaltui.runs.log import is_being_written, run_logs
from evaltui.workbench.past_titles import run_title

Ending = Literal["over", "interrupted", "going on"]

# At a time, so that what is looked at now does not wait for what was looked at before.
_MOST_AT_ONCE = 8


@dataclass(frozen=True)
class KeptRow:
    """A run as the list shows it.

    `selected` is how many cases it was begun with, `counts` how those that are done came out. `changed` are
    the agent's files that are not what they were, None where nobody knows. `problem` says why it cannot be
    read; nothing else is known then.
    """

    path: Path
    started: datetime
    name: str = ""
    ending: Ending = "over"
    status: Status | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    selected: int = 0
    sets: tuple[str, ...] = ()
    seconds: float | None = None
    model: str = ""
    changed: tuple[str, ...] | None = None
    problem: str = ""

    @property
    def id(self) -> str:
        return run_id(self.path)

    @property
    def is_of_adk(self) -> bool:
        return self.path.name.endswith(ADK_SUFFIX)

    @property
    def title(self) -> str:
        return run_title(self.started, self.name)


class KeptRuns:
    """`changed` is called when more is known."""

    def __init__(self, agent_dir: Path, changed: Callable[[], None]) -> None:
        self._agent_dir = agent_dir
        self._changed = changed
        self.paths: Sequence[Path] | None = None
        self._names: Mapping[str, str] = {}
        self._files: Mapping[str, str] = {}
        self._rows: dict[Path, KeptRow] = {}
        self._wanted: dict[Path, None] = {}
        self._reading: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Look which runs there are, the newest first; what is known of those that are over stays."""
        self.paths, self._names, self._files = await asyncio.to_thread(self._look)
        # Names and the agent's files may have changed.
        self._rows.clear()
        self._changed()
        # Which files google-adk has left is told by what is in them, and they may be large.
        self.paths = await asyncio.to_thread(kept_runs, self._agent_dir)
        self._changed()

    def row(self, path: Path) -> KeptRow | None:
        """What is known of a run; None while it is being read."""
        known = self._rows.get(path)
        if known is None:
            # The last one wished for is looked at now.
            self._wanted.pop(path, None)
            self._wanted[path] = None
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
        return known

    async def _read(self) -> None:
        while self._wanted:
            newest = list(self._wanted)[-_MOST_AT_ONCE:]
            rows = await asyncio.to_thread(lambda paths: [self._read_row(path) for path in paths], newest)
            for row in rows:
                self._wanted.pop(row.path, None)
                self._rows[row.path] = row
            self._changed()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    # In a thread

    def _look(self) -> tuple[list[Path], dict[str, str], dict[str, str]]:
        names = {run: name for name, run in run_names(self._agent_dir).items()}
        return _newest_first(run_logs(self._agent_dir)), names, files_of(self._agent_dir)

    def _read_row(self, path: Path) -> KeptRow:
        name = self._names.get(run_id(path), "")
        try:
            return read_row(path, name, self._files)
        except (OSError, ValueError) as error:
            return KeptRow(path, began(path), name, problem=str(error))


def kept_runs(agent_dir: Path) -> list[Path]:
    """The run logs, and the result files that google-adk has left, the newest first."""
    of_adk = (path for path in adk_results(agent_dir) if not is_own(path))
    return _newest_first([*run_logs(agent_dir), *of_adk])


def _newest_first(paths: Sequence[Path]) -> list[Path]:
    return sorted(paths, key=began, reverse=True)


def began(path: Path) -> datetime:
    """When a run began, going by the name of its log; else when its file was written."""
    try:
        return datetime.strptime(path.name[:19], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    except ValueError:
        pass
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return datetime.fromtimestamp(0, UTC)


def read_row(path: Path, name: str, files: Mapping[str, str]) -> KeptRow:
    """`files` are those of the agent now. Raises OSError, and ValueError for what is no run."""
    if path.name.endswith(ADK_SUFFIX):
        adk = read_adk_result(path)
        statuses = [case.status for case in adk.cases]
        return KeptRow(
            path,
            adk.started if adk.created else began(path),
            name,
            status=worst_status(statuses),
            counts=Counter(status.value for status in statuses),
            selected=len(adk.cases),
            sets=(adk.eval_set_id,),
        )
    run = logs.read_run(path)
    header = run.header
    counts = Counter(one.summary.status.value for one in run.results)
    ending: Ending = "over"
    if run.footer is None:
        ending = "going on" if is_being_written(path) else "interrupted"
    return KeptRow(
        path,
        header.started,
        name,
        ending,
        run.footer.status if run.footer else None,
        counts,
        sum(len(one.eval_ids) for one in header.sets),
        tuple(one.eval_set_id for one in header.sets),
        run.footer.seconds if run.footer else None,
        str(logs.read_agent(path).get("model") or ""),
        changed_files(header.files, files) if header.files else None,
    )
