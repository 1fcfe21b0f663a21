"""The eval sets of an agent: their list, their contents, and their unsaved edits."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.project.configs import ConfigInUse, config_file, config_files, find_config
from evaltui.project.eval_set_file import EvalSetFile, edited, read_eval_set_file, stamp_of, validated
from evaltui.project.folders import case_path, file_of
from evaltui.project.settings import remember_config, remembered_config
from evaltui.project.workspace import Workspace, open_workspace, tags_of, with_tags
from evaltui.text.values import visible
from evaltui.workbench.files.open_files import OpenFiles
from evaltui.workbench.messages import FilesChanged, Messages
from evaltui.workbench.state import SameConfig

if TYPE_CHECKING:
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.documents.case_file import CaseFile
    from evaltui.documents.open_file import OpenFile
    from evaltui.documents.saving import Fingerprint


# As many cases are validated between two keys that are typed.
_FEW_CASES = 20


class _OpenedSet(NamedTuple):
    """A set that has been opened."""

    versions: tuple[object, object]
    """The versions of the set and of its config at that moment."""
    config: ConfigInUse | EvalSetError
    file: EvalSetFile


class OpenSets:
    """The sets of the agent's folder and those of `paths`, files and folders elsewhere.

    Publishes a message when a file has been read.
    """

    def __init__(
        self,
        agent_dir: Path,
        paths: Sequence[str | Path],
        config: Path | None,
        messages: Messages,
        *,
        read_only: bool = False,
        in_project: bool = True,
    ) -> None:
        self.read_only = read_only
        """Whether sets and configs cannot be edited."""
        self.config = config
        """The config for all sets; None where each has its own."""
        self.workspace: Workspace | None = None
        """The listed sets; None before they have been read."""
        self.files = OpenFiles(agent_dir, self._text)
        """The files that have been edited in this session."""
        self.agent_dir = agent_dir
        """The agent's folder, for an agent with a URL its home."""
        self._in_project = in_project
        self._paths = paths
        self._messages = messages
        self._opened: dict[Path, _OpenedSet] = {}
        # As they were before their sets were opened.
        self._configs: dict[Path, ConfigInUse | EvalSetError] = {}
        self._same_configs: dict[str, SameConfig] = {}
        self._lock = threading.Lock()
        # As the sets had them, which need not be absolute; of those that are gone, too.
        self._file_of_path: dict[str, Path] = {}
        self._reading: dict[Path, asyncio.Task[EvalSetFile]] = {}

    @property
    def is_read(self) -> bool:
        return self.workspace is not None

    @property
    def listed(self) -> tuple[EvalSetFile, ...]:
        return self.workspace.sets if self.workspace else ()

    def by_path(self, path: Path | None) -> EvalSetFile | None:
        """The set in a file."""
        return next((eval_set for eval_set in self.listed if eval_set.path == path), None)

    def by_case_path(self, path: str | None) -> EvalSetFile | None:
        """The set whose cases have this path in their `CaseId`."""
        return None if path is None or self.workspace is None else self.workspace.by_case_path.get(path)

    def file_of(self, path: str) -> Path:
        """The file of the set with such a path; it may be deleted by now, or not be written yet."""
        return self._file_of_path.get(path) or file_of(self.agent_dir, path)

    def case_path(self, file: Path) -> str:
        """The path that the cases of a file have in their `CaseId`, or that a config would have."""
        path = case_path(self.agent_dir, file)
        self._file_of_path.setdefault(path, file)
        return path

    def every_case(self) -> Iterator[CaseId]:
        """The cases of all sets, in their order."""
        for eval_set in self.listed:
            for case in eval_set.cases:
                yield CaseId(eval_set.case_path, case.eval_id)

    def case_now(self, case: CaseId) -> StoredCase | None:
        """A case as it is now, validated or not; None where it is missing, or its set is unreadable."""
        eval_set = self.by_case_path(case.path)
        number = eval_set.number(case.eval_id) if eval_set else None
        return None if eval_set is None or number is None else eval_set.cases[number]

    def is_gone(self, case: CaseId) -> bool:
        """Whether a case is deleted, renamed or moved; False where its set is unreadable."""
        eval_set = self.by_case_path(case.path)
        return eval_set is None or (eval_set.format is not None and eval_set.number(case.eval_id) is None)

    def config_scoring(self, path: str) -> SameConfig | None:
        """The config that scores the cases of a set; None where it has errors, and before it is read."""
        in_use = self._config_of(self.file_of(path))
        if in_use is None or isinstance(in_use, EvalSetError):
            return None
        config, same = in_use.config, self._same_configs.get(path)
        if same is None or same.config is not config:
            same = self._same_configs[path] = SameConfig(config)
        return same

    def _config_of(self, file: Path) -> ConfigInUse | EvalSetError | None:
        opened = self._opened.get(file)
        return opened.config if opened else self._configs.get(file)

    def read_configs(self) -> None:
        """Reads the configs of all sets, in a thread: opening a large set takes longer."""
        self._configs = {eval_set.path: self.config_now(eval_set.path) for eval_set in self.listed}

    def broken(self, path: str) -> tuple[str, ...]:
        """Which of a `set` and its `config` cannot be run as they are on disk, as far as is known.

        A set with unsaved edits is not broken: each of its cases is checked on its own.
        """
        file = self.file_of(path)
        eval_set, opened, open_file = self.by_case_path(path), self._opened.get(file), self.files.get(file)
        is_unreadable = eval_set is not None and eval_set.format is None
        has_errors = opened is not None and opened.file.is_validated and opened.file.eval_set is None
        is_edited = open_file is not None and open_file.dirty
        is_refused = isinstance(self._config_of(file), EvalSetError)
        return ("set",) * (is_unreadable or (has_errors and not is_edited)) + ("config",) * is_refused

    def find_case(self, case: CaseId, eval_set_id: str) -> CaseId | None:
        """The current id of a case of a run; None where the case is deleted."""
        by_label = case.path == eval_set_id
        return self.workspace.find(case, eval_set_id, by_label=by_label) if self.workspace else None

    # Opened: validated, and with what scores it

    def opened(self, path: Path | None) -> EvalSetFile | None:
        """A set as it is now; None while it is being opened, with a message when it is ready."""
        if path is None:
            return None
        if (file := self.opened_already(path)) is not None:
            return file
        if path not in self._reading:
            task = asyncio.create_task(asyncio.to_thread(self.open, path))
            self._reading[path] = task
            task.add_done_callback(lambda _: self._was_read(path))
        return None

    def opened_already(self, path: Path) -> EvalSetFile | None:
        """A set as it is now; None where opening it takes time."""
        last = self._opened.get(path)
        if last is not None and last.versions == self.versions(path):
            return last.file
        return self._open(path) if last is not None and self._is_quick(path) else None

    def now(self, path: Path) -> EvalSetFile | None:
        """A set as it is now; an edited set is returned before it is validated. None while it is being
        opened."""
        opened = self.opened(path)
        if opened is None and self.files.get(path) is not None:
            return self._read_already(path) or self.open(path)
        return opened

    def _was_read(self, path: Path) -> None:
        del self._reading[path]
        self._messages.publish(FilesChanged())

    def last_opened(self, path: Path) -> EvalSetFile | None:
        """A set as it was when it was last opened."""
        last = self._opened.get(path)
        return last.file if last else None

    def differs_from_list(self, path: Path) -> bool:
        """Whether a set had other contents when it was last opened than in the list."""
        opened, listed = self.last_opened(path), self.by_path(path)
        return opened is not None and listed is not None and opened.fingerprint != listed.fingerprint

    def errors(self, eval_set: EvalSetFile) -> list[Problem]:
        """Why a set cannot be run, as far as is known: some errors are only found when it is opened."""
        return (self.last_opened(eval_set.path) or eval_set).errors

    @property
    def config_error(self) -> str:
        """Why the first unusable config cannot be used; "" where all configs can be."""
        problems = (
            (eval_set.path, problem) for eval_set in self.listed for problem in self.errors(eval_set)[:1]
        )
        return next((problem.beside(path) for path, problem in problems if problem.is_elsewhere(path)), "")

    def open(self, path: Path) -> EvalSetFile:
        """A set as it is now, in any thread; slow unless only its edits have to be validated.

        Never raises for the contents of files: problems are part of the result.
        """
        if self._is_quick(path):
            return self._open(path)
        # One at a time: two threads that build models only slow each other down.
        with self._lock:
            return self._open(path)

    def _open(self, path: Path) -> EvalSetFile:
        last = self._opened.get(path)
        versions = self.versions(path)
        if last is not None and last.versions == versions:
            return last.file
        file = self._validated(path)
        if last is not None and last.versions[1] == versions[1]:
            config = last.config
        else:
            config = self.config_now(path)
            # The same object as long as it says the same: what it scored need not be scored again.
            config = last.config if last is not None and last.config == config else config
        if last is None or file is not last.file or config is not last.config:
            file = file.scored_by(config)
        self._opened[path] = _OpenedSet(versions, config, file)
        return file

    def _is_quick(self, path: Path) -> bool:
        """Whether opening is fast: only edited cases and the config have to be validated."""
        file, open_file = self._read_already(path), self.files.get(path)
        if open_file is None or (file is not None and file.is_validated):
            return file is not None and file.is_validated
        return sum(case.problems is None for case in open_file.document.cases) <= _FEW_CASES

    def versions(self, path: Path) -> tuple[object, object]:
        """The versions of a set and of its config; they change when the contents may have changed."""
        config = config_file(path, self.config)
        return self._version(path), (config, self._version(config))

    def _version(self, path: Path) -> object:
        file = self.files.get(path)
        # A link to nowhere is no absent file.
        return (stamp_of(path) or os.path.lexists(path)) if file is None else file.document

    def _validated(self, path: Path) -> EvalSetFile:

        file = self._read_already(path)
        open_file = self.files.get(path)
        if file is None and open_file is not None:
            return self._edited(path, open_file, validate=True)
        if file is None:
            before = self._last_seen(path)
            file = read_eval_set_file(path, before.origin, self.agent_dir, before)
        return file if file.is_validated else validated(file)

    def _edited(self, path: Path, open_file: OpenFile, *, validate: bool) -> EvalSetFile:
        return edited(self._last_seen(path), open_file.document, validate=validate)

    def config_now(self, path: Path) -> ConfigInUse | EvalSetError:
        """The current config of a set, or its error."""

        open_file = self.files.get(config_file(path, self.config))
        try:
            return find_config(path, self.config, open_file.document.text if open_file else None)
        except EvalSetError as error:
            return error

    def _last_seen(self, path: Path) -> EvalSetFile:
        """The set as last opened or listed; an empty one where it was never read."""
        return (
            self.last_opened(path)
            or self.by_path(path)
            or EvalSetFile(path, self.case_path(path), path.name, "", "agent directory", "eval set", ())
        )

    def _read_already(self, path: Path) -> EvalSetFile | None:
        """A set that was read or edited, opened or not, if it has not changed since; else None."""
        version = self._version(path)
        for file in (self.last_opened(path), self.by_path(path)):
            if file is None:
                continue
            if file.document is not None and file.document is version:
                return file
            if file.stamp is not None and file.stamp == version:
                return file
        return None

    def _text(self, path: Path) -> tuple[CaseFile, Fingerprint] | None:
        """The text of a set as it was read from disk, if it has not changed since; else None."""
        file = self._read_already(path)
        if file is None or file.document is None or file.fingerprint is None:
            return None
        return file.document, file.fingerprint

    # Edited

    def config_path(self, set_path: Path) -> Path:
        """The path of the config of a set, also if it does not exist."""
        return config_file(set_path, self.config)

    def known_path(self, path: Path) -> Path:
        """The path that the sets use for a file, which may be relative, for an absolute path."""
        sets = [eval_set.path for eval_set in self.listed]
        paths = (*sets, *map(self.config_path, sets))
        real = path.resolve()
        return next(
            (listed for listed in paths if listed.absolute() == path or listed.resolve() == real), path
        )

    def sets_of_config(self, config: Path) -> list[EvalSetFile]:
        """The sets that a config scores."""
        config_of = config_files((eval_set.path for eval_set in self.listed), self.config)
        return [eval_set for eval_set in self.listed if config_of[eval_set.path] == config]

    def is_config(self, path: Path) -> bool:
        """Whether a file is a config and no set, independent of its name and folder."""
        return path == self.config or self.files.is_config(path)

    def scored_by(self, paths: Collection[Path]) -> set[Path]:
        """The sets among these files, and the sets of the configs among them, also of deleted configs."""
        sets = {eval_set.path for eval_set in self.listed}
        above = {path.parent for path in paths if path not in sets}
        is_for_all = self.config is not None and self.config in paths
        return {path for path in sets if path in paths or is_for_all or not above.isdisjoint(path.parents)}

    async def read(self) -> None:
        """Lists the sets in a thread; edited sets keep their unsaved edits."""
        self.workspace = await asyncio.to_thread(
            open_workspace,
            self.agent_dir,
            self._paths,
            self.workspace,
            self.config,
            in_project=self._in_project,
        )
        self.follow([file.path for file in self.files])
        self._note_files()

    def follow(self, paths: Collection[Path]) -> None:
        """Shows sets and configs with their unsaved edits, and the other sets of these configs."""
        if self.workspace is None:
            return
        listed = {eval_set.path: eval_set for eval_set in self.listed}
        others = {path for path in paths if path not in listed}
        config_of = config_files(listed, self.config) if others else {}
        scored = [
            path
            for path, config in config_of.items()
            if config in others or self._last_config(path) in others
        ]
        configs = {self.config, *config_of.values()}
        sets = [path for path in paths if path not in configs and not self.files.is_config(path)]
        for path in dict.fromkeys((*sets, *scored)):
            self._configs.pop(path, None)
            open_file = self.files.get(path)
            if path in self._opened or self._is_quick(path):
                listed[path] = self.open(path)
            elif open_file is not None:
                # Who edits a large set before it is validated need not wait for that.
                listed[path] = self._edited(path, open_file, validate=False)
            else:
                listed[path] = listed[path].scored_by(self.config_now(path))
            listed[path] = self._tagged(listed[path])
        self.workspace = replace(
            self.workspace, sets=tuple(sorted(listed.values(), key=lambda eval_set: eval_set.path))
        )
        self._note_files()

    def _tagged(self, eval_set: EvalSetFile) -> EvalSetFile:
        """The set with the tags of its current config."""
        open_file = self.files.get(self.config_path(eval_set.path))
        if open_file is None:
            return next(with_tags([eval_set], self.config))
        return eval_set.but(tags=tags_of(open_file.document.value, eval_set.eval_set_id))

    def tags(self, case: CaseId) -> tuple[str, ...]:
        """The tags of a case."""
        eval_set = self.by_case_path(case.path)
        return eval_set.tags.get(case.eval_id, ()) if eval_set and eval_set.tags else ()

    def known_tags(self) -> list[str]:
        """The tags that cases of any set have, sorted."""
        tags_in_use = {
            tag for eval_set in self.listed for tags in (eval_set.tags or {}).values() for tag in tags
        }
        return sorted(tags_in_use)

    def _last_config(self, path: Path) -> Path | None:
        """The file that a set was scored by when it was last opened."""
        opened = self.last_opened(path)
        return opened.config.path if opened and opened.config else None

    def _note_files(self) -> None:
        self._file_of_path.update((eval_set.case_path, eval_set.path) for eval_set in self.listed)


OWN_CONFIG = "own"


@dataclass(frozen=True)
class ChosenConfig:
    """The config choice: `path` is the config for all sets, None where each has its own; `note` is a message
    about it."""

    path: Path | None
    note: str = ""


def choose_config(agent_dir: Path, option: str | None, *, remembers: bool = True) -> ChosenConfig:
    """The config for `--config`, a file or `own`, which is remembered; None for the remembered one.

    Raises ValueError for a missing file.
    """
    if option is None:
        last = remembered_config(agent_dir)
        if last is None:
            return ChosenConfig(None)
        name = visible(last.name)
        if not last.is_file():
            return ChosenConfig(None, f"{name} not found; each set uses its own config")
        return ChosenConfig(last, f"All sets use {name}, as last time (--config own resets)")
    path = None if option == OWN_CONFIG else Path(option)
    if path is not None and not path.is_file():
        raise ValueError(f"--config {option}: no such file")
    try:
        if remembers:
            remember_config(agent_dir, path)
    except OSError as error:
        return ChosenConfig(path, f"--config cannot be remembered: {error}")
    return ChosenConfig(path)
