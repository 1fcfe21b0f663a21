"""Files mended where a problem has exactly one solution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.core.model.file_kinds import file_kind
from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.documents.document import JsonDocument
from evaltui.documents.json_text import duplicate_keys, locate, parse, without_comments
from evaltui.documents.saving import Source, read_source
from evaltui.documents.values import copy_of, edits_of
from evaltui.files.lint import files_to_lint, is_config_by_content


@dataclass(frozen=True)
class MendedFile:
    """A file that can be mended."""

    source: Source
    """The file as it is."""
    text: str
    """The mended text."""
    mends: tuple[Problem, ...]
    """A problem for each mended place, with the change as its message."""


def mended_files(paths: Sequence[str | Path]) -> Iterator[MendedFile]:
    """The files that `lint` looks at and that can be mended."""
    for path in files_to_lint(paths)[0]:
        if (mended := mended_file(path)) is not None:
            yield mended


def mended_file(path: Path) -> MendedFile | None:
    """A file mended; None where there is nothing to mend, or it cannot be read."""
    # Models load slowly, and reading this module must not wait for them.
    from evaltui.documents.editing.mending import mend_config, mend_set

    try:
        source = read_source(path)
    except (OSError, EvalSetError):
        return None
    text, removals = source.text, tuple[Problem, ...]()
    if isinstance(parse(text), Problem):
        text, removals = without_comments(text)
    data = parse(text)
    if isinstance(data, Problem) or file_kind(data) is not None:
        return None
    removed = tuple(replace(removal, file=str(path)) for removal in removals)
    # Edits would not leave both of two members with one key.
    if duplicate_keys(text):
        return MendedFile(source, text, removed) if removed else None
    mend = mend_config if is_config_by_content(path, text) else mend_set
    document = JsonDocument(text)
    data, mends = copy_of(document.value), list[Problem]()
    while more := [Problem.warning(*mended) for mended in mend(data)]:
        mends += more
    located = (*removed, *locate(mends, text, str(path)))
    return MendedFile(source, document.edited(edits_of(data)).text, located) if located else None
