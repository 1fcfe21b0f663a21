"""The eval sets of an agent: which there are, what is in them, and what is being edited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import Problem, Severity
from evaltui.files.case_paths import case_path, file_of
from evaltui.files.config_files import config_file, config_files
from evaltui.files.eval_set_file import EvalSetFile
from evaltui.files.open_file import OpenFile
from evaltui.files.saving import Fingerprint
from evaltui.files.workspace import SetEntry, Workspace, open_workspace
from evaltui.workbench.documents import Documents
from evaltui.workbench.live_sets import LiveSets
from evaltui.workbench.open_files import OpenFiles


class OpenSets:
    """The sets of the agent's folder and the `given` ones from elsewhere, files and folders.

    `changed` is called when something has been read; `say` shows a sentence.
    """

    def __init__(
        self,
        agent_dir: Path,
        given: Sequence[str | Path],
        config: Path | None,
        changed: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self.config = config
        """The one config for all sets; None where each has its own."""
        self.workspace: Workspace | None = None
        """The sets as they are shown; None before they have been read."""
        self.documents = Documents(config)
        """The sets as models."""
        self.files = OpenFiles(agent_dir, say, self._read_already)
        """The files that have been edited in this sitting."""
        self.agent_dir = agent_dir
        """The agent's folder."""
        self._given = given
        self._changed = changed
        self._live = LiveSets(self.files, self.documents, config)
        # As the sets had them, which need not be absolute; of those that are gone, too.
        self._file_of_path: dict[str, Path] = {}
        self._reading: dict[Path, asyncio.Task[EvalSetFile]] = {}

    @property
    def is_read(self) -> bool:
        return self.workspace is not None

    @property
    def entries(self) -> tuple[SetEntry, ...]:
        return self.workspace.sets if self.workspace else ()

    def entry(self, file: Path | None) -> SetEntry | None:
        """The set in a file."""
        return next((entry for entry in self.entries if entry.path == file), None)

    def entry_of(self, path: str | None) -> SetEntry | None:
        """The set whose cases have this path in their `CaseId`."""
        return None if path is None or self.workspace is None else self.workspace.by_case_path.get(path)

    def file_of(self, path: str) -> Path:
        """The file of such a set, which may be gone by now, or not be written yet."""
        return self._file_of_path.get(path) or file_of(self.agent_dir, path)

    def case_path(self, file: Path) -> str:
        """The path that the cases of a file have in their `CaseId`."""
        return case_path(self.agent_dir, file)

    def every_case(self) -> Iterator[CaseId]:
        """The cases of all sets, in their order."""
        for entry in self.entries:
            for case in entry.cases:
                yield CaseId(entry.case_path, case.eval_id)

    def find_case(self, case: CaseId, eval_set_id: str) -> CaseId | None:
        """The case of a run as it is called now; None where it is not any more."""
        by_label = case.path == eval_set_id
        return self.workspace.find(case, eval_set_id, by_label=by_label) if self.workspace else None

    def opened(self, path: Path | None) -> EvalSetFile | None:
        """A set as models; None while it is being read, and observers are called when it has been."""
        if path is None:
            return None
        if known := self.documents.known(path):
            return known
        if path not in self._reading:
            task = asyncio.create_task(asyncio.to_thread(self.documents.open, path))
            self._reading[path] = task
            task.add_done_callback(lambda _: self._was_read(path))
        return None

    def _was_read(self, path: Path) -> None:
        del self._reading[path]
        self._changed()

    def errors(self, entry: SetEntry) -> list[Problem]:
        """Why a set cannot be run, as far as is known: without its models not everything is."""
        opened = self.documents.last(entry.path)
        if opened is not None:
            return opened.errors
        return [problem for problem in entry.problems if problem.severity is Severity.ERROR]

    def _read_already(self, path: Path) -> tuple[JsonDocument, Fingerprint] | None:
        known = self.documents.known(path)
        if known is None or known.document is None or known.fingerprint is None:
            return None
        return known.document.copy(), known.fingerprint

    def open_file(self, path: Path) -> OpenFile | None:
        """The file as it is being edited; None where it has not been edited."""
        return self.files.known(path)

    def config_path(self, set_path: Path) -> Path:
        """The file that is the config of a set, or would be if there were one."""
        return config_file(set_path, self.config)

    def sets_of_config(self, config: Path) -> list[SetEntry]:
        """The sets that a config scores."""
        config_of = config_files((entry.path for entry in self.entries), self.config)
        return [entry for entry in self.entries if config_of[entry.path] == config]

    def is_config(self, path: Path) -> bool:
        """Whether a file is a config and no set, wherever it is and however it is called."""
        return path == self.config or self.files.is_config(path)

    def scored_by(self, paths: Collection[Path]) -> set[Path]:
        """The sets that there are among these files, and those that configs among them score, or did."""
        sets = {entry.path for entry in self.entries}
        above = {path.parent for path in paths if path not in sets}
        is_for_all = self.config is not None and self.config in paths
        return {path for path in sets if path in paths or is_for_all or not above.isdisjoint(path.parents)}

    async def read(self) -> None:
        """Looks in a thread which sets there are."""
        self.workspace = await asyncio.to_thread(open_workspace, self.agent_dir, self._given)
        self._note_files()

    def follow(self, paths: Iterable[Path]) -> None:
        """Shows files, sets and configs, as they are being edited."""
        if self.workspace is not None:
            self.workspace = self._live.follow(self.workspace, paths)
            self._note_files()

    def _note_files(self) -> None:
        self._file_of_path.update((entry.case_path, entry.path) for entry in self.entries)
