"""`evaltui migrate` and `new`: converting old formats, creating a starter."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaltui.commands.output import UsageError, complain, refused, write_stderr
from evaltui.core.model.eval_set import EvalSet
from evaltui.core.model.old_formats import with_authors
from evaltui.core.model.problems import EvalSetError, Problem, errors_in
from evaltui.documents.saving import ChangedOutsideError, save
from evaltui.project.config_references import left_behind
from evaltui.project.eval_sets import changes, migrated_text, read_eval_set
from evaltui.project.folders import is_json
from evaltui.project.lint import format_problem
from evaltui.project.templates import TemplateError, create_starter, remark_of
from evaltui.text.figures import counted


def migrate(options: argparse.Namespace) -> int:
    """Writes what one file holds to another, which must not exist; 2 with the reason where it cannot."""
    old, new = options.old, options.new
    eval_set, left_out = _read(old, options.initial_session)
    left_out += left_behind(old, eval_set.eval_set_id, new)
    if left_out:
        write_stderr(*map(format_problem, left_out))
        if options.strict:
            return refused("migrate", left_out)
    _write(new, migrated_text(eval_set, new))
    print(f"{new}: {counted(len(eval_set.eval_cases), 'case')} of {old}")
    if not is_json(new):
        note = "run it by its path: only names that end in .json are found automatically"
        print(f"evaltui migrate: {note}", file=sys.stderr)
    return 0


def _read(old: Path, initial_session: Path | None) -> tuple[EvalSet, list[Problem]]:
    """The converted set, and what of it is left out or changed. Raises UsageError or EvalSetError."""
    loaded = read_eval_set(old, initial_session, with_authors)
    if loaded.format == "eval set":
        raise UsageError(
            f"{old} has the current format, nothing to migrate; `evaltui export --set {old} --format "
            "dataset -o NEW` makes a dataset of agents-cli of it"
        )
    if loaded.eval_set is None:
        raise EvalSetError(errors_in(loaded.problems))
    return loaded.eval_set, [*loaded.problems, *changes(old)]


def _write(new: Path, text: str) -> None:
    refusal = f"{new} already exists; name a new file"
    if new.exists():
        raise UsageError(refusal)
    try:
        save(new, text, None)
    except ChangedOutsideError as error:
        raise UsageError(refusal) from error
    except OSError as error:
        raise UsageError(f"{new} cannot be written: {error.strerror or error}") from error


def new(options: argparse.Namespace) -> int:
    """Writes a starter and prints its files and the next commands; 2 where nothing could be written."""
    try:
        written = create_starter(options.folder, options.kind)
    except TemplateError as error:
        return complain("new", error)
    width = max(len(str(path)) for path in written)
    for path in written:
        print(f"{path!s:{width}}  {remark_of(path.name, path.read_text(encoding='utf-8'))}".rstrip())
    print("\nNext:")
    print(f"  evaltui {options.folder}      open the workbench")
    print(f"  evaltui run {options.folder}  run the cases")
    return 0
