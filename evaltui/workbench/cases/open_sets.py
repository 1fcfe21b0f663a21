"""The eval sets of an agent: which there are, what is in them, and what is being edited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.files.configs import config_file, config_files, find_config
from evaltui.files.eval_set_file import EvalSetFile, edited, read_eval_set_file, stamp_of
from evaltui.files.folders import case_path, file_of
from evaltui.files.settings import remember_config, remembered_config
from evaltui.files.workspace import Workspace, open_workspace, tags_of, with_tags
from evaltui.text.values import visible
from evaltui.workbench.files.open_files import OpenFiles
from evaltui.workbench.messages import FilesChanged, Messages
from evaltui.workbench.state import SameConfig

if TYPE_CHECKING:
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.documents.case_file import CaseFile
    from evaltui.documents.open_file import OpenFile
    from evaltui.documents.saving import Fingerprint
    from evaltui.files.configs import ConfigInUse


# As many cases are validated between two keys that are typed.
_FEW = 20


class _Opened(NamedTuple):
    """A set that has been opened."""

    versions: tuple[object, object]
    """Of the set and of its config, as they were then."""
    config: ConfigInUse | EvalSetError
    file: EvalSetFile


class OpenSets:
    """The sets of the agent's folder and the `given` ones from elsewhere, files and folders.

    Says when something has been read.
    """

    def __init__(
        self,
        agent_dir: Path,
        given: Sequence[str | Path],
        config: Path | None,
        messages: Messages,
        *,
        read_only: bool = False,
    ) -> None:
        self.read_only = read_only
        """Whether no set and no config is edited."""
        self.config = config
        """The one config for all sets; None where each has its own."""
        self.workspace: Workspace | None = None
        """The sets as they are shown; None before they have been read."""
        self.files = OpenFiles(agent_dir, self._text)
        """The files that have been edited in this sitting."""
        self.agent_dir = agent_dir
        """The agent's folder."""
        self._given = given
        self._messages = messages
        self._opened: dict[Path, _Opened] = {}
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
        """The file of such a set, which may be gone by now, or not be written yet."""
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
        """A case as it is now, validated or not; None where there is none, or its set cannot be read."""
        eval_set = self.by_case_path(case.path)
        number = eval_set.number(case.eval_id) if eval_set else None
        return None if eval_set is None or number is None else eval_set.cases[number]

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
        self._configs = {one.path: self.config_now(one.path) for one in self.listed}

    def broken(self, path: str) -> tuple[str, ...]:
        """Which of a `set` and its `config` no run takes as they are on disk, as far as is known.

        A set that is being edited may be on its way to one that can be run: of its cases each speaks for
        itself.
        """
        file = self.file_of(path)
        eval_set, opened, open_file = self.by_case_path(path), self._opened.get(file), self.files.known(file)
        is_unreadable = eval_set is not None and eval_set.format is None
        has_errors = opened is not None and opened.file.is_validated and opened.file.eval_set is None
        is_edited = open_file is not None and open_file.dirty
        is_refused = isinstance(self._config_of(file), EvalSetError)
        return ("set",) * (is_unreadable or (has_errors and not is_edited)) + ("config",) * is_refused

    def find_case(self, case: CaseId, eval_set_id: str) -> CaseId | None:
        """The case of a run as it is called now; None where it is not any more."""
        by_label = case.path == eval_set_id
        return self.workspace.find(case, eval_set_id, by_label=by_label) if self.workspace else None

    # Opened: validated, and with what scores it

    def opened(self, path: Path | None) -> EvalSetFile | None:
        """A set as it is now; None while it is being opened, and observers are called when it has been."""
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
        known = self._opened.get(path)
        if known is not None and known.versions == self._versions(path):
            return known.file
        return self._open(path) if known is not None and self._is_quick(path) else None

    def now(self, path: Path) -> EvalSetFile | None:
        """As `opened`; one that is to be edited need not wait for being validated."""
        opened = self.opened(path)
        if opened is None and self.files.known(path) is not None:
            return self._read_already(path) or self.open(path)
        return opened

    def _was_read(self, path: Path) -> None:
        del self._reading[path]
        self._messages.publish(FilesChanged())

    def last_opened(self, path: Path) -> EvalSetFile | None:
        """A set as it was when it was last opened."""
        known = self._opened.get(path)
        return known.file if known else None

    def is_listed_otherwise(self, path: Path) -> bool:
        """Whether a set had other contents when it was last opened than it is listed with."""
        opened, listed = self.last_opened(path), self.by_path(path)
        return opened is not None and listed is not None and opened.fingerprint != listed.fingerprint

    def errors(self, eval_set: EvalSetFile) -> list[Problem]:
        """Why a set cannot be run, as far as is known: before it is opened not everything is."""
        return (self.last_opened(eval_set.path) or eval_set).errors

    @property
    def config_error(self) -> str:
        """Why the config of sets cannot be used, of the first one that cannot; "" where all can."""
        problems = ((one.path, problem) for one in self.listed for problem in self.errors(one)[:1])
        return next((problem.beside(path) for path, problem in problems if problem.is_elsewhere(path)), "")

    def open(self, path: Path) -> EvalSetFile:
        """A set as it is now, in any thread; slow unless only its edits have to be looked at.

        Never raises for what is in the files: problems are part of what it returns.
        """
        if self._is_quick(path):
            return self._open(path)
        # One at a time: two threads that build models only slow each other down.
        with self._lock:
            return self._open(path)

    def _open(self, path: Path) -> EvalSetFile:
        known = self._opened.get(path)
        versions = self._versions(path)
        if known is not None and known.versions == versions:
            return known.file
        file = self._validated(path)
        if known is not None and known.versions[1] == versions[1]:
            config = known.config
        else:
            config = self.config_now(path)
            # The same object as long as it says the same: what it scored need not be scored again.
            config = known.config if known is not None and known.config == config else config
        if known is None or file is not known.file or config is not known.config:
            file = file.scored_by(config)
        self._opened[path] = _Opened(versions, config, file)
        return file

    def _is_quick(self, path: Path) -> bool:
        """Whether no more is to be looked at than what was edited, and the config."""
        file, open_file = self._read_already(path), self.files.known(path)
        if open_file is None or (file is not None and file.is_validated):
            return file is not None and file.is_validated
        return sum(case.problems is None for case in open_file.document.cases) <= _FEW

    def _versions(self, path: Path) -> tuple[object, object]:
        """Of a set and of its config: others when what they say may have changed."""
        config = config_file(path, self.config)
        return self._version(path), (config, self._version(config))

    def _version(self, path: Path) -> object:
        file = self.files.known(path)
        return stamp_of(path) if file is None else file.document

    def _validated(self, path: Path) -> EvalSetFile:
        # It builds on pydantic, which the first frame does not wait for.
        from evaltui.workbench.cases.validating_apart import validated_apart

        file = self._read_already(path)
        open_file = self.files.known(path)
        if file is None and open_file is not None:
            return self._edited(path, open_file, validate=True)
        if file is None:
            before = self._known(path)
            file = read_eval_set_file(path, before.origin, self.agent_dir, before)
        return file if file.is_validated else validated_apart(file)

    def _edited(self, path: Path, open_file: OpenFile, *, validate: bool) -> EvalSetFile:
        return edited(self._known(path), open_file.document, validate=validate)

    def config_now(self, path: Path) -> ConfigInUse | EvalSetError:
        """What scores a set now, or what is wrong with that."""

        open_file = self.files.known(config_file(path, self.config))
        try:
            return find_config(path, self.config, open_file.document.text if open_file else None)
        except EvalSetError as error:
            return error

    def _known(self, path: Path) -> EvalSetFile:
        """A set as it was when it was last looked at, opened or not; an empty one where it never was."""
        return (
            self.last_opened(path)
            or self.by_path(path)
            or EvalSetFile(path, self.case_path(path), path.name, "", "agent directory", "eval set", ())
        )

    def _read_already(self, path: Path) -> EvalSetFile | None:
        """A set that was read or edited, opened or not, and is still the same."""
        version = self._version(path)
        for known in (self.last_opened(path), self.by_path(path)):
            if known is None:
                continue
            if known.document is not None and known.document is version:
                return known
            if known.stamp is not None and known.stamp == version:
                return known
        return None

    def _text(self, path: Path) -> tuple[CaseFile, Fingerprint] | None:
        """The text of a set that is on disk as it was read; None where that is not known."""
        file = self._read_already(path)
        if file is None or file.document is None or file.fingerprint is None:
            return None
        return file.document, file.fingerprint

    # Edited

    def config_path(self, set_path: Path) -> Path:
        """The file that is the config of a set, or would be if there were one."""
        return config_file(set_path, self.config)

    def known_path(self, path: Path) -> Path:
        """An absolute path of a set or a config as the sets have theirs, which need not be absolute."""
        sets = [eval_set.path for eval_set in self.listed]
        known = (*sets, *map(self.config_path, sets))
        real = path.resolve()
        return next((one for one in known if one.absolute() == path or one.resolve() == real), path)

    def sets_of_config(self, config: Path) -> list[EvalSetFile]:
        """The sets that a config scores."""
        config_of = config_files((eval_set.path for eval_set in self.listed), self.config)
        return [eval_set for eval_set in self.listed if config_of[eval_set.path] == config]

    def is_config(self, path: Path) -> bool:
        """Whether a file is a config and no set, wherever it is and however it is called."""
        return path == self.config or self.files.is_config(path)

    def scored_by(self, paths: Collection[Path]) -> set[Path]:
        """The sets that there are among these files, and those that configs among them score, or did."""
        sets = {eval_set.path for eval_set in self.listed}
        above = {path.parent for path in paths if path not in sets}
        is_for_all = self.config is not None and self.config in paths
        return {path for path in sets if path in paths or is_for_all or not above.isdisjoint(path.parents)}

    async def read(self) -> None:
        """Looks in a thread which sets there are; those that are edited are shown as they are here."""
        self.workspace = await asyncio.to_thread(
            open_workspace, self.agent_dir, self._given, self.workspace, self.config
        )
        self.follow([file.path for file in self.files])
        self._note_files()

    def follow(self, paths: Collection[Path]) -> None:
        """Shows files, sets and configs, as they are being edited; sets that a config scores with it."""
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
            open_file = self.files.known(path)
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
        """The set with its tags as its config has them now."""
        open_file = self.files.known(self.config_path(eval_set.path))
        if open_file is None:
            return next(with_tags([eval_set], self.config))
        return eval_set.but(tags=tags_of(open_file.document.value, eval_set.eval_set_id))

    def tags(self, case: CaseId) -> tuple[str, ...]:
        """The tags of a case."""
        eval_set = self.by_case_path(case.path)
        return eval_set.tags.get(case.eval_id, ()) if eval_set and eval_set.tags else ()

    def known_tags(self) -> list[str]:
        """The tags that cases of any set have, sorted."""
        found = {tag for one in self.listed for tags in (one.tags or {}).values() for tag in tags}
        return sorted(found)

    def _last_config(self, path: Path) -> Path | None:
        """The file that a set was scored by when it was last opened."""
        opened = self.last_opened(path)
        return opened.config.path if opened and opened.config else None

    def _note_files(self) -> None:
        self._file_of_path.update((eval_set.case_path, eval_set.path) for eval_set in self.listed)


OWN = "own"


@dataclass(frozen=True)
class ChosenConfig:
    """`path` is the one config for all sets, None where each has its own; `note` what is to be said of it."""

    path: Path | None
    note: str = ""


def choose_config(agent_dir: Path, given: str | None, *, remembers: bool = True) -> ChosenConfig:
    """What is `given` as `--config`, a file or `own`, and remembered then; None for what was given last.

    Raises ValueError for a file that is not there.
    """
    if given is None:
        last = remembered_config(agent_dir)
        if last is None:
            return ChosenConfig(None)
        name = visible(last.name)
        if not last.is_file():
            return ChosenConfig(None, f"{name} not found; each set uses its own config")
        return ChosenConfig(last, f"All sets use {name}, as last time (--config own resets)")
    path = None if given == OWN else Path(given)
    if path is not None and not path.is_file():
        raise ValueError(f"--config {given}: no such file")
    try:
        if remembers:
            remember_config(agent_dir, path)
    except OSError as error:
        return ChosenConfig(path, f"--config cannot be remembered: {error}")
    return ChosenConfig(path)
