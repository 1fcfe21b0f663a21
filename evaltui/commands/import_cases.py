"""`evaltui import` of rows and promptfoo suites: shown, then merged into the set."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evaltui.commands.exit_codes import NOT_WRITTEN
from evaltui.commands.output import UsageError, complain, confirmed, save_all, write_lines, write_stderr
from evaltui.commands.target_set import find_set, require_free
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.base_model import dump
from evaltui.core.model.config import DEFAULT_CRITERIA
from evaltui.core.model.datasets import OWN_KEY, UNSPECIFIED, without_original
from evaltui.core.model.eval_set import EvalCase, full_text, scored_text, tool_calls
from evaltui.core.model.json_values import list_at
from evaltui.core.model.model_errors import validate_model
from evaltui.core.model.problems import EvalSetError, errors_in
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.case_file import CASES, CaseFile
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.config import ConfigEditor, new_config_text
from evaltui.documents.editing.references import BLOCK, BlockList, CaseRef, References
from evaltui.documents.editing.set import new_set_text
from evaltui.documents.edits import Edit, Insert, Put, Remove
from evaltui.documents.files import target_of
from evaltui.documents.merge import Choices, Clash, Conflict, Side, merge
from evaltui.documents.saving import Source, Write, read_source
from evaltui.documents.values import copy_of, edits_of
from evaltui.exchange.imported import (
    ImportedCase,
    ImportedCases,
    Json,
    NotTaken,
    UnusableSourceError,
    not_taken_lines,
)
from evaltui.exchange.promptfoo import cases_of_suite, is_suite
from evaltui.exchange.row_cases import cases_of_rows
from evaltui.exchange.row_mapping import RowMapping, parse_mapping
from evaltui.project.configs import config_file
from evaltui.project.eval_set_file import read_eval_set_file
from evaltui.project.eval_sets import changes, read_eval_set, set_kind, set_name
from evaltui.project.folders import json_files
from evaltui.text.figures import counted, short_list, show_number
from evaltui.text.lines import Line
from evaltui.text.values import cut, show_value, visible

_SHOWN = 5
_LONGEST_TEXT = 60
_WORDS: Mapping[Outcome, str] = {
    "new": "new",
    "changed": "changed",
    "gone": "gone from the file",
    "edited": "edited here, kept",
    "unchanged": "unchanged",
}


@dataclass(frozen=True)
class _Target:
    """The set and the config that an import changes, as they are on disk."""

    path: Path
    set_id: str
    document: CaseFile
    source: Source | None
    """None for a new set."""
    config_path: Path
    config: JsonDocument
    config_source: Source | None
    """None for a new config."""
    others: Sequence[str]
    """Names of the other sets that a new config would score."""

    @property
    def keeps_defaults(self) -> bool:
        """Whether a new config has ADK's default criteria, by which other cases were scored before."""
        return bool(self.others) or bool(self.source is not None and self.document.cases)


def import_cases(options: argparse.Namespace, path: Path) -> int:
    """Shows the cases of a file, asks, and merges them into the set; returns the exit code."""
    try:
        target = _target(find_set(options.agent_dir, options.into))
        name = os.path.relpath(target_of(path), target_of(target.config_path.parent))
        last = References(target.config.value).imported(target.set_id, name) or {}
        imported = _read(path, _mapping(options.map), last)
        before = _digests(last)
        merged = merge_import(
            target.document, imported.cases, {key: old.case for key, old in before.items()}, options.conflicts
        )
        config, refused_criteria, changed = _config(target, imported, merged, before, name)
        notes = list(not_taken_lines([*imported.not_taken, *refused_criteria]))
        for note in (*notes, *_never_evaluated(target, imported)):
            write_stderr(f"evaltui import: {visible(note)}")
        write_lines(_lines(target, imported, merged, changed))
        if merged.conflicts:
            write_stderr(f"evaltui import: {visible(_conflict(target.path, path, merged.conflicts))}")
            return NOT_WRITTEN
        if options.strict and notes:
            write_stderr(
                f"evaltui import: nothing written: {counted(len(notes), 'part')} not taken (--strict)"
            )
            return NOT_WRITTEN
        if options.dry_run:
            return 0
        writes = _writes(target, merged.document, config)
        if not writes:
            return 0
        question = f"Write these cases to {visible(str(target.path))}?"
        if not options.yes and not confirmed(question, "nothing changed: without a terminal, --yes imports"):
            return NOT_WRITTEN
        save_all(writes, "nothing changed")
    except (UnusableSourceError, UnmergeableImportError) as error:
        return complain("import", error)
    write_stderr(f"evaltui import: written: {short_list([visible(str(write.path)) for write in writes])}")
    return 0


def _mapping(words: Sequence[str]) -> RowMapping:
    """Raises UsageError."""
    try:
        return parse_mapping(words)
    except ValueError as error:
        raise UsageError(f"--map: {error}") from error


def _read(path: Path, chosen: RowMapping, last: Mapping[str, Any]) -> ImportedCases:
    if set_kind(path) == "dataset":
        return _cases_of_dataset(path)
    if is_suite(path) and not chosen.paths:
        return cases_of_suite(path)
    return cases_of_rows(path, chosen, RowMapping.of(last["map"]) if last.get("map") else None)


def _cases_of_dataset(path: Path) -> ImportedCases:
    """The cases of an EvaluationDataset with what they expect. Raises EvalSetError."""
    loaded = read_eval_set(path)
    if loaded.eval_set is None:
        raise EvalSetError(errors_in(loaded.problems))
    not_taken = [
        NotTaken(f"{path}:{problem.line}", problem.path, problem.message)
        for problem in (*loaded.problems, *changes(path))
    ]
    eval_cases = map(without_original, loaded.data["eval_cases"])
    return ImportedCases([ImportedCase(case, str(path)) for case in eval_cases], not_taken)


def _target(path: Path) -> _Target:
    """Raises UsageError, EvalSetError."""
    set_id = set_name(path)
    source = None
    document: CaseFile = JsonDocument(new_set_text(set_id, time.time()))
    if path.exists():
        require_free(path, ())
        file = read_eval_set_file(path, "given", path.parent)
        if file.document is None:
            raise UsageError(f"{path} cannot be edited; check it with `evaltui lint`")
        if not isinstance(file.document, JsonDocument):
            raise UsageError(
                f"{path} is an EvaluationDataset; import into an eval set, NAME.evalset.json, instead"
            )
        set_id, source = file.eval_set_id, read_source(path)
        document = JsonDocument(source.text)
    config_path = config_file(path)
    try:
        config_source = read_source(config_path) if config_path.exists() else None
        config = JsonDocument(config_source.text if config_source else new_config_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{config_path} cannot be read: {error}") from error
    if not isinstance(config.value, dict):
        raise UsageError(f"{config_path} is not a config; check it with `evaltui lint`")
    others = (
        []
        if config_source
        else [other.name for other in json_files(config_path.parent) if other != path and set_kind(other)]
    )
    return _Target(path, set_id, document, source, config_path, config, config_source, others)


# The entry in the config


class _Stamp(NamedTuple):
    """Digests of a case as it was last imported, and of its tags, rules and checks."""

    case: str = ""
    entries: tuple[str, ...] = ()
    """Digests of the entries in the file."""
    applied: tuple[str, ...] = ()
    """Digests of the entries that the config got: of an earlier import, where the set's case was preferred
    since."""

    @classmethod
    def of(cls, text: str) -> _Stamp:
        """A stamp from its text in a config, such as `3f.a1-b2~a1`."""
        case, _, rest = text.partition(".")
        entries, is_other, applied = rest.partition("~")
        digests = tuple(filter(None, entries.split("-")))
        return cls(case, digests, tuple(filter(None, applied.split("-"))) if is_other else digests)

    def __str__(self) -> str:
        other = f"~{'-'.join(self.applied)}" if self.applied != self.entries else ""
        return ".".join(filter(None, (self.case, "-".join(self.entries) + other)))


def _digests(last: Mapping[str, Any]) -> dict[str, _Stamp]:
    """Stamps of the last import by case."""
    stored = last.get("cases")
    items = stored.items() if isinstance(stored, dict) else ()
    return {eval_id: _Stamp.of(text) for eval_id, text in items}


def _entry_digest(entry: Any) -> str:
    """Digest of the tags, a rule or a check of a case."""
    text = json.dumps(entry, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _entry_digests(case: ImportedCase) -> tuple[str, ...]:
    """Digests of the tags, and of each rule and check of a case."""
    return tuple(_entry_digest(entry) for entry in ([*case.tags], *case.rules, *case.answers) if entry)


def _config(
    target: _Target,
    imported: ImportedCases,
    merged: MergedImport,
    before: Mapping[str, _Stamp],
    name: str,
) -> tuple[JsonDocument, list[NotTaken], list[str]]:
    """The config with the mapping, digests, tags, rules and checks of an import, and criteria if it is new.

    Also the criteria of the file that are not taken, since an existing config scores other sets, too, and
    the ids of known cases whose tags, rules or checks the file has changed.
    """
    editor = ConfigEditor(copy_of(target.config.value))
    not_taken: list[NotTaken] = []
    is_new = target.config_source is None
    if is_new and not target.keeps_defaults:
        _put_criteria(editor, imported)
    else:
        not_taken = list(_refused_criteria(editor, imported, target.config_path))
    present = {case.eval_id for case in merged.document.cases} - {*merged.preferred}
    stamps: dict[str, str] = {}
    changed: list[str] = []
    new, replaced = merged.ids("new"), merged.ids("new", "changed")
    for case in imported.cases:
        now, last = _entry_digests(case), before.get(case.eval_id, _Stamp())
        applied, old = last.applied, last.applied if case.eval_id in replaced else last.entries
        if case.eval_id in present and (now != old or case.eval_id in new):
            reference = target.set_id, case.eval_id
            _change_entries(editor, reference, case, old, is_new=case.eval_id in new)
            changed += [case.eval_id] if case.eval_id in before else []
            applied = (*(entry for entry in applied if entry not in old), *now)
        stamps[case.eval_id] = str(_Stamp(digest(case.case), now, applied))
    # Those of a case that the set has not, too: they would be for a later one with its id.
    gone = before.keys() - stamps.keys() - present
    editor.remove_cases(target.set_id, {*merged.ids("gone"), *gone})
    entry = {"source": name, "set": target.set_id, "map": dict(imported.mapping), "cases": stamps}
    editor.put_import({key: value for key, value in entry.items() if value != {}})
    return target.config.edited(edits_of(editor.config)), not_taken, changed


def _change_entries(
    editor: ConfigEditor, reference: CaseRef, case: ImportedCase, last: Collection[str], *, is_new: bool
) -> None:
    """Takes over the changes of a file since its `last` import, of whose entries these are the digests.

    Entries that the user has changed or removed stay so, but in a case that `is_new` in the set.
    """
    editor.change_tags([reference], case.tags, ())
    gone = {*last} - {*_entry_digests(case)}
    lists: tuple[tuple[BlockList, Sequence[Json]], ...] = (("rules", case.rules), ("answers", case.answers))
    for name, entries in lists:
        new = [entry for entry in entries if is_new or _entry_digest(entry) not in last]
        editor.replace_entries(name, reference, lambda entry: _entry_digest(entry) in gone, new)


def _put_criteria(editor: ConfigEditor, imported: ImportedCases) -> None:
    """Puts the criteria of the file into a new config, else ADK's defaults for what its cases state."""
    criteria = imported.criteria or {
        metric: threshold
        for metric, threshold in DEFAULT_CRITERIA.items()
        if any(_states(case.case, metric) for case in imported.cases)
    }
    criteria = criteria or DEFAULT_CRITERIA
    for metric in editor.metrics:
        editor.remove_metric(metric)
    for metric, criterion in criteria.items():
        editor.add_metric(metric, criterion)


def _refused_criteria(editor: ConfigEditor, imported: ImportedCases, path: Path) -> Iterator[NotTaken]:
    for metric, criterion in imported.criteria.items():
        if editor.criterion(metric) != criterion:
            has = "another criterion" if editor.criterion_path(metric) else "no such criterion"
            reason = f"the file asks for {show_value(criterion)}, the config has {has}"
            yield NotTaken(str(path), ("criteria", metric), reason)


def _states(case: Json, metric: str) -> bool:
    """Whether a case states what a metric compares or judges."""
    info, turns = METRICS.get(metric), case.get("conversation") or ()
    if info is not None and info.compares in ("calls", "response"):
        key = "intermediate_data" if info.compares == "calls" else "final_response"
        return any(key in turn for turn in turns)
    if info is not None and "rubrics" in info.needs:
        rubrics = [rubric for holder in (case, *turns) for rubric in holder.get("rubrics", ())]
        return any(rubric.get("type") in (None, info.rubric_type) for rubric in rubrics)
    return True


def _never_evaluated(target: _Target, imported: ImportedCases) -> Iterator[str]:
    """Sentences on the criteria of an existing config that some imported cases state nothing for."""
    editor = ConfigEditor(target.config.value)
    optional = list_at(target.config.value, (*BLOCK, "optional"))
    for metric in editor.metrics if target.config_source else ():
        cases = [
            case.eval_id
            for case in imported.cases
            if case.case.get(OWN_KEY) != UNSPECIFIED and not _states(case.case, metric)
        ]
        if cases and metric not in optional:
            yield (
                f"{counted(len(cases), 'case')} ({short_list(cases)}) cannot pass: {metric} has nothing to "
                f"compare; list it under evaltui.optional in {target.config_path}"
            )


# Output


def _lines(
    target: _Target, imported: ImportedCases, merged: MergedImport, changed: Sequence[str]
) -> Iterator[Line]:
    counts = [
        f"{show_number(len(merged.ids(outcome)))} {words}"
        for outcome, words in _WORDS.items()
        if merged.ids(outcome)
    ]
    if merged.conflicts:
        counts.append(counted(len(merged.conflicts), "conflict"))
    total = counted(len(imported.cases), "case")
    yield [(f"{visible(str(target.path))}: {total}: {', '.join(counts)}", "bold")]
    if imported.mapping:
        words = [f"{name}={path}" for name, paths in imported.mapping.items() for path in _listed(paths)]
        shape = f"  ({imported.shape})" if imported.shape else ""
        yield [(f"  {visible('  '.join(words))}{shape}", "muted")]
    if target.others:
        names = visible(short_list(target.others))
        yield [(f"  {visible(str(target.config_path))} is new; it scores {names}, too", "warning")]
    if imported.criteria:
        yield [(f"  criteria: {', '.join(imported.criteria)}", "muted")]
    written = [case for case in imported.cases if case.eval_id in merged.ids("new", "changed")]
    for case in written[:_SHOWN]:
        yield from _case_lines(case)
    if len(written) > _SHOWN:
        yield [(f"  and {counted(len(written) - _SHOWN, 'more case')}", "muted")]
    if changed:
        yield [(f"  tags, rules or checks changed: {visible(short_list(changed))}", "warning")]
    if gone := merged.ids("gone"):
        yield [(f"  gone: {visible(short_list(gone))}", "warning")]


def _listed(paths: Any) -> Sequence[str]:
    return [paths] if isinstance(paths, str) else paths


def _case_lines(imported: ImportedCase) -> Iterator[Line]:
    case = EvalCase.model_validate(imported.case)
    tags = "".join(f"  #{tag}" for tag in imported.tags)
    yield [
        ("  ", ""),
        (visible(case.eval_id), "bold"),
        (f"  {visible(imported.source)}{visible(tags)}", "muted"),
    ]
    for number, turn in enumerate(case.conversation or (), start=1):
        calls = [visible(str(call.name)) for call in tool_calls(turn.intermediate_data)]
        names = f"   → {short_list(calls)}" if calls else ""
        yield [(f"    {number}  ", "muted"), (_short(full_text(turn.user_content)), ""), (names, "muted")]
        if answer := scored_text(turn, thoughts=False):
            yield [("       ", ""), (_short(answer), "muted")]


def _short(text: str) -> str:
    return visible(cut(" ".join(text.split()), _LONGEST_TEXT))


def _conflict(set_path: Path, path: Path, conflicts: Sequence[Clash]) -> str:
    names = short_list([clash.name for clash in conflicts])
    return (
        f"nothing changed: {set_path} and {path} have both changed {names} since the last import. "
        f"--conflicts mine keeps the cases of the set, --conflicts theirs takes those of the file"
    )


# Files


def _writes(target: _Target, document: CaseFile, config: JsonDocument) -> list[Write]:
    """The files whose text changes."""
    writes = []
    if target.source is None or document.text != target.source.text:
        seen = target.source.fingerprint if target.source else None
        writes.append(Write(target.path, document.text, seen))
    if target.config_source is None or config.text != target.config_source.text:
        seen = target.config_source.fingerprint if target.config_source else None
        writes.append(Write(target.config_path, config.text, seen))
    return writes


Outcome = Literal["new", "changed", "gone", "edited", "unchanged"]
"""Outcome of an import for a case; `edited` is changed in the set only, and stays as it is."""
_DIGITS = 16


class UnmergeableImportError(ValueError):
    """The reason why the cases of a set cannot be merged, as a sentence."""


@dataclass(frozen=True)
class MergedImport:
    """A set with the cases of a file."""

    document: CaseFile
    """The set; unchanged where there are conflicts."""
    outcomes: Mapping[str, Outcome]
    """Outcomes of cases by id, in the order of the file; cases that are gone come last."""
    conflicts: tuple[Clash, ...] = ()
    """Cases that both the set and the file have changed since the last import."""
    preferred: tuple[str, ...] = ()
    """Conflicting cases of which the version of the set was preferred."""

    def ids(self, *outcomes: Outcome) -> list[str]:
        return [eval_id for eval_id, outcome in self.outcomes.items() if outcome in outcomes]


def digest(case: Any) -> str:
    """A short digest of a case, the same for every spelling of its keys and with defaults written or not."""
    model, _ = validate_model(EvalCase, case)
    data = case if model is None else dump(model)
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def merge_import(
    mine: CaseFile, cases: Sequence[ImportedCase], before: Mapping[str, str], prefer: Side | None = None
) -> MergedImport:
    """The set `mine` with the cases of a file, of which `before` has the digests of the last import.

    Cases that only the file or only the set has changed get that change; `prefer` decides about the others.
    Raises UnmergeableImportError.
    """
    own = {case.eval_id: case for case in mine.cases}
    imported = {case.eval_id: _spelt_as(own.get(case.eval_id), case.case) for case in cases}
    gone = [eval_id for eval_id in before if eval_id not in imported]
    base = _with_cases(mine, {eval_id: None for eval_id in imported if eval_id not in before})
    bases = {eval_id: _base(old, own.get(eval_id), imported.get(eval_id)) for eval_id, old in before.items()}
    base = _with_cases(base, bases)
    theirs = _with_cases(mine, {**dict.fromkeys(gone), **imported})
    everything = [*imported, *(eval_id for eval_id in gone if eval_id in own)]
    merged = merge(base, mine, theirs, Choices({}))
    preferred: tuple[str, ...] = ()
    if prefer is not None and isinstance(merged, Conflict):
        preferred = tuple(clash.name for clash in merged.cases) if prefer == "mine" else ()
        merged = merge(base, mine, theirs, Choices(dict.fromkeys(everything, prefer)))
    conflicts: tuple[Clash, ...] = ()
    if isinstance(merged, Conflict):
        if merged.reason or merged.members or merged.orders:
            raise UnmergeableImportError(merged.reason or "the order of its cases is ambiguous")
        conflicts = tuple(
            replace(clash, base=clash.base if bases.get(clash.name) is not None else None)
            for clash in merged.cases
        )
        # For the outcomes of the other cases.
        merged = merge(base, mine, theirs, Choices({clash.name: "mine" for clash in conflicts}))
        assert not isinstance(merged, Conflict)
    after = {case.eval_id: case for case in merged.cases}
    outcomes = {
        eval_id: _outcome(own.get(eval_id), after.get(eval_id), imported.get(eval_id))
        for eval_id in everything
        if eval_id not in {clash.name for clash in conflicts}
    }
    return MergedImport(mine if conflicts else merged, outcomes, conflicts, preferred)


def _spelt_as(mine: StoredCase | None, theirs: Json) -> Json:
    """A case of the file; that of the set where it is the same in another spelling."""
    return mine.value if mine is not None and digest(mine.value) == digest(theirs) else theirs


def _base(old: str, mine: StoredCase | None, theirs: Json | None) -> Json | None:
    """The case of the last import, of which only the digest is stored.

    Where neither side has it any more, a case that is like neither stands for it.
    """
    if mine is not None and digest(mine.value) == old:
        return dict(mine.value)
    if theirs is not None and digest(theirs) == old:
        return theirs
    eval_id = mine.eval_id if mine is not None else (theirs or {}).get("eval_id")
    return None if eval_id is None else {"eval_id": eval_id, "digest": old}


def _with_cases(document: CaseFile, cases: Mapping[str, Json | None]) -> CaseFile:
    """A set with other cases of these ids, None for none; new ones come last."""
    key = document.key or CASES
    edits: list[Edit] = []
    numbers = {case.eval_id: number for number, case in enumerate(document.cases)}
    for eval_id in sorted(cases.keys() & numbers.keys(), key=numbers.__getitem__, reverse=True):
        case = cases[eval_id]
        if case is None:
            edits.append(Remove((key, numbers[eval_id])))
        elif case != document.cases[numbers[eval_id]].value:
            edits.append(Put((key, numbers[eval_id]), case))
    count = len(document.cases) - sum(isinstance(edit, Remove) for edit in edits)
    new = [case for eval_id, case in cases.items() if eval_id not in numbers and case is not None]
    edits += [Insert((key,), count + number, case) for number, case in enumerate(new)]
    return document.edited(edits)


def _outcome(before: StoredCase | None, after: StoredCase | None, theirs: Json | None) -> Outcome:
    if after is None:
        return "gone" if before is not None else "edited"
    if before is None:
        return "new"
    if after is not before and after.value != before.value:
        return "changed"
    return "unchanged" if theirs is not None and digest(after.value) == digest(theirs) else "edited"
