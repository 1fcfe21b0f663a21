"""`evaltui rename`: a tool, an argument or an agent gets another name in all files that have it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from evaltui.commands.exit_codes import NOT_WRITTEN
from evaltui.commands.output import UsageError, confirmed, save_all, write_stderr
from evaltui.core.model.renaming import NameKind, Renaming, new_name_problem
from evaltui.documents.formats import read_any_text
from evaltui.documents.line_changes import diff_lines
from evaltui.documents.saving import Source, Write, read_source
from evaltui.project.folders import RECORDING_SUFFIX
from evaltui.runner.renaming import RenamedFiles, files_with_names, names_like, rename_in_files
from evaltui.text.figures import short_list
from evaltui.text.values import did_you_mean, visible, without_commands


def rename(options: argparse.Namespace) -> int:
    """Shows the changes, asks, and writes all files or none; returns the exit code."""
    renaming = _renaming(options.what, options.old, options.new)
    paths: Sequence[Path] = options.paths or [Path()]
    sources = _sources(paths)
    renamed = _renamed(renaming, sources, paths)
    writes = [Write(file.path, file.after.text, sources[file.path].fingerprint) for file in renamed.files]
    if options.yes:
        # A reader that has seen enough, as `head`, does not keep the files from being written.
        save_all(writes, "nothing renamed")
        _show(renamed)
    else:
        _show(renamed)
        question = f"Rename {visible(renaming.words)}: {renamed.counts}?"
        refusal = f"nothing changed: without a terminal, --yes renames ({renamed.counts})"
        if not confirmed(question, refusal):
            return NOT_WRITTEN
        save_all(writes, "nothing renamed")
    write_stderr(f"renamed {renaming.words}: {renamed.counts}")
    return 0


def _renaming(what: NameKind, old: str, new: str) -> Renaming:
    """Raises UsageError."""
    renaming = Renaming.of(what, old, new)
    if what == "argument" and not (renaming.tool and renaming.old):
        raise UsageError("name the argument with its tool, such as find_order.order_id")
    if problem := new_name_problem(what, renaming.old, renaming.new):
        raise UsageError(problem)
    return renaming


def _sources(paths: Sequence[Path]) -> dict[Path, Source]:
    """The files that may have the name. Raises UsageError, EvalSetError."""
    if missing := next((path for path in paths if not path.exists()), None):
        raise UsageError(f"{missing} does not exist")
    try:
        return {path: read_source(path) for path in files_with_names(paths)}
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from error


def _renamed(renaming: Renaming, sources: dict[Path, Source], paths: Sequence[Path]) -> RenamedFiles:
    """Raises EvalSetError, and UsageError where nothing has the name."""
    documents = {path: read_any_text(source.text) for path, source in sources.items()}
    renamed = rename_in_files(renaming, documents)
    for path in renamed.skipped:
        write_stderr(f"{path} has {renaming.old!r} and stays: not an eval set or config that can be edited")
    if renamed.files:
        return renamed
    names = names_like(renaming, documents)
    hint = did_you_mean(renaming.full_name, names)
    hint = hint or (f". There: {short_list(names)}" if names else "")
    where = short_list([str(path) for path in paths])
    raise UsageError(f"no {renaming.what} {renaming.full_name!r} in {where}{hint}")


def _show(renamed: RenamedFiles) -> None:
    for file in renamed.files:
        # A line of a recording has a screenful.
        context = 0 if file.path.suffix == RECORDING_SUFFIX else 3
        lines = diff_lines(str(file.path), file.before.text, file.after.text, context)
        sys.stdout.writelines(map(without_commands, lines))
    sys.stdout.flush()
