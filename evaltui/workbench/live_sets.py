"""A set that is being edited, as the list and the panes see it: only what was edited is looked at anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.aliases import spelt
from evaltui.core.model.problems import EvalSetError
from evaltui.core.model.stored_cases import Listed, StoredCase
from evaltui.files.case_paths import case_path
from evaltui.files.config_files import config_file, config_files
from evaltui.files.eval_set_file import SetEntry
from evaltui.files.open_file import OpenFile
from evaltui.files.workspace import Workspace
from evaltui.workbench.documents import Documents, stamp_of
from evaltui.workbench.open_files import OpenFiles

if TYPE_CHECKING:
    from evaltui.files.configs import ConfigInUse
    from evaltui.files.eval_set_file import EvalSetFile


def _listed(entry: SetEntry, opened: EvalSetFile, before: Sequence[StoredCase]) -> SetEntry:
    """The set as a list shows it. `before` are the cases that the entry is of, not looked at again."""
    if len(before) == len(entry.cases):
        for case, info in zip(before, entry.cases, strict=True):
            if case.listed is None and case.eval_id == info.eval_id:
                case.listed = Listed(info, ())
    document = opened.document
    assert document is not None
    data, path = document.value, opened.path
    key = spelt("eval_cases", data) if isinstance(data, dict) else "eval_cases"
    cases = [case.look_up() for case in document.cases]
    problems = [
        replace(one, path=(key, number, *one.path))
        for number, case in enumerate(cases)
        for one in case.problems
    ]
    return replace(
        entry,
        # Whatever has become of the file meanwhile.
        format="eval set",
        eval_set_id=str(data.get(spelt("eval_set_id", data)) or entry.eval_set_id),
        cases=tuple(case.info for case in cases),
        problems=tuple(replace(one, line=document.line_of(one.path), file=str(path)) for one in problems),
    )


class LiveSets:
    """Every set that is being edited. `documents` and the workspace have what they show.

    A `config` is one for all sets, instead of their own.
    """

    def __init__(self, files: OpenFiles, documents: Documents, config: Path | None) -> None:
        self._files = files
        self._documents = documents
        self._explicit_config = config
        self._configs: dict[Path, tuple[object, ConfigInUse | EvalSetError]] = {}

    def follow(self, workspace: Workspace, paths: Iterable[Path]) -> Workspace:
        """The workspace with these sets, and those that these configs score, as they are now."""
        entries = {entry.path: entry for entry in workspace.sets}
        others = {path for path in paths if path not in entries}
        config_of = config_files(entries, self._explicit_config) if others else {}
        scored = [
            path
            for path, config in config_of.items()
            if config in others or self._last_config(path) in others
        ]
        configs = {self._explicit_config, *config_of.values()}
        sets = [path for path in paths if path not in configs and not self._files.is_config(path)]
        for path in dict.fromkeys((*sets, *scored)):
            entries[path] = self._followed(path, entries.get(path), workspace.folder)
        return replace(workspace, sets=tuple(sorted(entries.values(), key=lambda entry: entry.path)))

    def _followed(self, path: Path, entry: SetEntry | None, folder: Path) -> SetEntry:
        draft = self._files.known(path)
        config = self._config(path)
        if draft is None:
            # Only its config was edited.
            opened = self._documents.open(path)
            self._documents.edited(path, opened.scored_by(config))
            assert entry is not None
            return entry
        from evaltui.files.eval_set_file import edited_eval_set_file

        opened = edited_eval_set_file(path, draft.document.copy()).scored_by(config)
        before = draft.saved.cases if draft.saved and not self._documents.is_edited(path) else ()
        self._documents.edited(path, opened)
        return _listed(entry or _new_entry(path, folder), opened, before)

    def _last_config(self, set_path: Path) -> Path | None:
        """The file that the set was scored by when it was last looked at."""
        opened = self._documents.last(set_path)
        return opened.config.path if opened and opened.config else None

    def _config(self, set_path: Path) -> ConfigInUse | EvalSetError:
        """The same object as long as the config is the same: what it scored need not be scored again."""
        path = config_file(set_path, self._explicit_config)
        draft = self._files.known(path)
        version = stamp_of(path) if draft is None else draft.document.value
        known = self._configs.get(path)
        if known is None and draft is None:
            opened = self._documents.known(set_path)
            # Another file may have become its config since.
            if opened and opened.config and opened.config.path == (path if version else None):
                known = self._configs[path] = version, opened.config
        if known is None or (known[0] is not version and known[0] != version):
            config = _config_on_disk(set_path, self._explicit_config) if draft is None else _config_of(draft)
            known = self._configs[path] = version, config
        return known[1]


def _config_on_disk(set_path: Path, explicit: Path | None) -> ConfigInUse | EvalSetError:
    from evaltui.files.configs import find_config

    try:
        return find_config(set_path, explicit)
    except EvalSetError as error:
        return error


def _config_of(draft: OpenFile) -> ConfigInUse | EvalSetError:
    from evaltui.core.metrics.config_validation import validate_config
    from evaltui.files.configs import ConfigInUse

    config, problems = validate_config(draft.document.value)
    found = [
        replace(problem, file=str(draft.path), line=draft.document.line_of(problem.path))
        for problem in problems
    ]
    return EvalSetError(found) if config is None else ConfigInUse(draft.path, config, False, tuple(found))


def _new_entry(path: Path, folder: Path) -> SetEntry:
    return SetEntry(path, case_path(folder, path), path.name, "", "agent directory", "eval set", ())
