"""A set that is being edited, as the list and the panes see it: only what was edited is looked at anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.jsondoc.chunks import Chunk
from evaltui.core.model.aliases import spelt
from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.files.config_files import config_file, config_files
from evaltui.files.set_entry import CaseInfo, SetEntry, case_info
from evaltui.files.workspace import Workspace
from evaltui.workbench.documents import Documents, OpenSet, stamp_of
from evaltui.workbench.draft import Draft
from evaltui.workbench.drafts import Drafts

if TYPE_CHECKING:
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.files.configs import ConfigInUse


@dataclass(frozen=True)
class _Known:
    """What is known of a case; `stored` is None where it has errors. Paths are relative to the case."""

    info: CaseInfo
    info_problems: tuple[Problem, ...]
    stored: StoredCase | None
    problems: tuple[Problem, ...]


class LiveSet:
    """`entry` and `opened` are the set as it was read: what is the same in them is not read again."""

    def __init__(self, draft: Draft, entry: SetEntry, opened: OpenSet | None) -> None:
        self.draft = draft
        self.entry = entry
        # The chunks of a document that were not edited stay the same objects.
        self._known: dict[Chunk, _Known] = {}
        stored = opened.stored if opened and len(opened.stored) == len(entry.cases) else ()
        found = _by_case(opened.problems if opened else ())
        # As it was before the first edit, so that the cases are in the order of `entry`.
        chunks = draft.saved.cases if draft.saved else ()
        for number, (chunk, info, case) in enumerate(zip(chunks, entry.cases, stored, strict=False)):
            self._known[chunk] = _Known(info, (), case, tuple(found[number]))

    def follow(self, config: ConfigInUse | EvalSetError) -> OpenSet:
        """The set as the draft has it now; `entry` is renewed as well."""
        from evaltui.core.model.stored_cases import StoredCases
        from evaltui.core.model.validation import validate_set_level

        data = self.draft.document.value
        chunks = self.draft.document.cases
        known = [self._known.get(chunk) or _look_at(chunk.value) for chunk in chunks]
        self._known = dict(zip(chunks, known, strict=True))
        head, problems = validate_set_level(data)
        key = spelt("eval_cases", data) if isinstance(data, dict) else "eval_cases"
        for number, one in enumerate(known):
            problems += [_placed(problem, key, number) for problem in one.problems]
        path = self.draft.path
        problems = [self._located(problem) for problem in problems]
        self.entry = replace(
            self.entry,
            # Whatever has become of the file meanwhile.
            format="eval set",
            eval_set_id=str(data.get(spelt("eval_set_id", data)) or self.entry.eval_set_id),
            cases=tuple(one.info for one in known),
            problems=tuple(
                self._located(_placed(problem, key, number))
                for number, one in enumerate(known)
                for problem in one.info_problems
            ),
        )
        stored = [one.stored for one in known if one.stored is not None]
        usable = head is not None and len(stored) == len(known) and not _has_error(problems)
        of_config = config.problems
        return OpenSet.of(
            path,
            head if usable else None,
            None if isinstance(config, EvalSetError) else config,
            (*problems, *of_config),
            StoredCases(stored if usable else ()),
        )

    def _located(self, problem: Problem) -> Problem:
        # Finding a line takes a look at the whole text, which warnings in their thousands are not worth.
        error = problem.severity is Severity.ERROR
        line = self.draft.document.line_of(problem.path) if error else None
        return replace(problem, line=line, file=str(self.draft.path))


def _look_at(raw: Any) -> _Known:
    from evaltui.core.model.stored_cases import StoredCase, head_of
    from evaltui.core.model.validation import validate_case

    found: list[Problem] = []
    info = case_info(raw, (), found)
    model, problems = validate_case(raw)
    stored = None if model is None else StoredCase(head_of(model), raw)
    return _Known(info, tuple(found), stored, tuple(problems))


def _by_case(problems: Iterable[Problem]) -> defaultdict[int, list[Problem]]:
    """The problems of a set that are in its cases, as they are seen from each case."""
    found: defaultdict[int, list[Problem]] = defaultdict(list)
    for problem in problems:
        match problem.path:
            case ("eval_cases" | "evalCases", int(number), *below):
                found[number].append(replace(problem, path=tuple(below), line=None))
    return found


def _placed(problem: Problem, key: str, number: int) -> Problem:
    return replace(problem, path=(key, number, *problem.path))


def _has_error(problems: Iterable[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


class LiveSets:
    """Every set that is being edited. `documents` and the workspace have what they show.

    A `config` is one for all sets, instead of their own.
    """

    def __init__(self, drafts: Drafts, documents: Documents, config: Path | None) -> None:
        self._drafts = drafts
        self._documents = documents
        self._explicit_config = config
        self._live: dict[Path, LiveSet] = {}
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
        sets = [path for path in paths if path not in configs and not self._drafts.is_config(path)]
        for path in dict.fromkeys((*sets, *scored)):
            entries[path] = self._followed(path, entries.get(path))
        return replace(workspace, sets=tuple(sorted(entries.values(), key=lambda entry: entry.path)))

    def _followed(self, path: Path, entry: SetEntry | None) -> SetEntry:
        draft = self._drafts.known(path)
        config = self._config(path)
        if draft is None:
            # Only its config was edited.
            opened = self._documents.open(path)
            of_set = tuple(problem for problem in opened.problems if problem.file == str(path))
            changed = replace(opened, config=None if isinstance(config, EvalSetError) else config)
            self._documents.edited(path, replace(changed, problems=(*of_set, *config.problems)))
            assert entry is not None
            return entry
        if path not in self._live or self._live[path].draft is not draft:
            self._live[path] = LiveSet(draft, entry or _new_entry(path), self._documents.last(path))
        live = self._live[path]
        self._documents.edited(path, live.follow(config))
        return live.entry

    def _last_config(self, set_path: Path) -> Path | None:
        """The file that the set was scored by when it was last looked at."""
        opened = self._documents.last(set_path)
        return opened.config.path if opened and opened.config else None

    def _config(self, set_path: Path) -> ConfigInUse | EvalSetError:
        """The same object as long as the config is the same: what it scored need not be scored again."""
        path = config_file(set_path, self._explicit_config)
        draft = self._drafts.known(path)
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


def _config_of(draft: Draft) -> ConfigInUse | EvalSetError:
    from evaltui.core.model.validation import validate_config
    from evaltui.files.configs import ConfigInUse

    config, problems = validate_config(draft.document.value)
    found = [
        replace(problem, file=str(draft.path), line=draft.document.line_of(problem.path))
        for problem in problems
    ]
    return EvalSetError(found) if config is None else ConfigInUse(draft.path, config, False, tuple(found))


def _new_entry(path: Path) -> SetEntry:
    return SetEntry(path, path.name, "", "agent directory", "eval set", ())
