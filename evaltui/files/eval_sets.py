"""Reading eval set files of every format, and writing those of other formats anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.model import datasets
from evaltui.core.model.file_kinds import file_kind
from evaltui.core.model.old_formats import (
    Format,
    Json,
    from_old_eval_set,
    from_old_test,
    kind_of,
    left_out,
    session_input,
    texts_without_author,
)
from evaltui.core.model.problems import (
    NOT_AN_EVAL_SET,
    UNREADABLE_FILE,
    EvalSetError,
    Problem,
    errors_in,
    has_error,
)
from evaltui.documents.json_text import duplicate_keys, locate, parse, read_text, why_unreadable
from evaltui.files.folders import SET_SUFFIXES
from evaltui.files.recognition import recognised
from evaltui.text.values import in_words

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet


InitialSession = str | Path | Mapping[str, Any] | None


@dataclass(frozen=True)
class LoadedSet:
    """The eval set in a file. `eval_set` is None where there are errors, `format` where it is unknown."""

    path: Path
    eval_set: EvalSet | None
    format: Format | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class SetData:
    """A file as JSON data in the shape of the EvalSet schema, without models.

    `data` is None where the file cannot be read as any format. `text` is what the lines of paths are
    counted in; the paths of problems are those of the file's own format.
    """

    format: Format | None
    data: Any
    text: str
    problems: tuple[Problem, ...]


def load_eval_set(path: str | Path, initial_session: InitialSession = None) -> EvalSet:
    """The eval set of a file, in the EvalSet schema or one of the two formats before it.

    `initial_session` is for the old `.test.json` format: `{"app_name", "user_id", "state"}`, or the path of a
    file with that. Raises EvalSetError with every error found, each with path and line; warnings pass.
    """
    loaded = read_eval_set(Path(path), initial_session)
    if loaded.eval_set is None:
        raise EvalSetError(errors_in(loaded.problems))
    return loaded.eval_set


def read_eval_set(
    path: Path, initial_session: InitialSession = None, mend: Callable[[Any], Any] | None = None
) -> LoadedSet:
    """The eval set of a file and every problem it has; never raises for what is in the file.

    `mend` may change its JSON data before they are read, not where things are in them.
    """
    session, problems = _read_session(initial_session)
    return loaded_set(path, read_set_data(path, session, mend), problems)


def loaded_set(path: Path, read: SetData, problems: Sequence[Problem] = ()) -> LoadedSet:
    """The eval set of a file that was read, with `problems` that are known already."""
    from evaltui.core.model.validation import validate_eval_set

    problems = [*problems, *read.problems]
    eval_set = None
    if read.data is not None and not has_error(problems):
        eval_set, set_problems = validate_eval_set(read.data)
        if read.format == "eval set":
            problems += locate(set_problems, read.text, str(path))
        elif eval_set is None:
            # Paths into converted data are not paths of the file.
            problems += [_at_file(path, Problem.error((), str(problem))) for problem in set_problems]
    return LoadedSet(path, eval_set, read.format, tuple(problems))


def read_set_data(
    path: Path, session: Json | None = None, mend: Callable[[Any], Any] | None = None
) -> SetData:
    """A file as JSON data; old formats are converted, an old test with `session` as its session input.

    For `mend` see `read_eval_set`.
    """
    try:
        text = read_text(path)
    except OSError as error:
        text = UNREADABLE_FILE.at((), why_unreadable(path, error))
    return set_data(path, text, session, mend)


def set_data(
    path: Path, text: str | Problem, session: Json | None = None, mend: Callable[[Any], Any] | None = None
) -> SetData:
    """The data of an eval set from the text of a file, or from the problem of reading it."""
    data = parse(text) if isinstance(text, str) else text
    if isinstance(text, Problem) or isinstance(data, Problem):
        other = recognised(path)
        wrong = data if other is None else NOT_AN_EVAL_SET.at((), f"not an eval set, but {other.sentence}")
        return SetData(None, None, "", (_at_file(path, wrong),))
    if mend is not None:
        data = mend(data)
    kind = kind_of(data)
    if kind == "eval set":
        converted, problems = data, _misplaced(session, "the EvalSet schema")
    elif kind == "dataset":
        converted, problems = datasets.from_dataset(data, set_name(path))
        problems += _misplaced(session, "session_inputs of its own")
    elif kind == "old test":
        converted, problems = from_old_test(data, set_name(path), session)
    elif kind == "old eval set":
        converted, problems = from_old_eval_set(data, set_name(path))
        problems += _misplaced(session, "sessions of its own")
    else:
        converted, problems = None, [_no_format(data)]
    return SetData(kind, converted, text, tuple(locate([*duplicate_keys(text), *problems], text, str(path))))


def set_name(path: Path) -> str:
    """The id that a set of an old format gets: the file's name without its suffix."""
    for suffix in SET_SUFFIXES:
        if path.name.lower().endswith(suffix):
            return path.name[: -len(suffix)]
    return path.stem


def _read_session(source: InitialSession) -> tuple[Json | None, list[Problem]]:
    if source is None:
        return None, []
    if not isinstance(source, str | Path):
        session, problems = session_input(dict(source))
        return session, [_at_file("initial_session", problem) for problem in problems]
    try:
        text = read_text(Path(source))
    except OSError as error:
        text = UNREADABLE_FILE.at((), why_unreadable(Path(source), error))
    data = parse(text) if isinstance(text, str) else text
    if isinstance(text, Problem) or isinstance(data, Problem):
        return None, [_at_file(source, data)]
    session, problems = session_input(data)
    return session, locate([*duplicate_keys(text), *problems], text, str(source))


def _misplaced(session: Json | None, format: str) -> list[Problem]:
    if session is None:
        return []
    message = f"an initial session needs the old .test.json format; this file has {format}"
    return [Problem.error((), message)]


def _no_format(data: Any) -> Problem:
    if (other := file_kind(data)) is not None:
        return NOT_AN_EVAL_SET.at((), f"not an eval set, but {other.sentence}")
    if isinstance(data, list):
        description = "a list of something else" if data else "an empty list"
    else:
        description = in_words(data)
    return NOT_AN_EVAL_SET.at(
        (),
        "not an eval set: expected an object with eval_set_id and eval_cases, or (old formats) "
        f"a list of turns with query or a list of sessions with name and data; found {description}",
    )


def _at_file(path: str | Path, problem: Problem) -> Problem:
    return replace(problem, file=str(path))


def changes(old: Path) -> list[Problem]:
    """Warnings for what a converted set has not, or has otherwise than the file of an old format."""
    try:
        text = read_text(old)
    except OSError:
        return []
    data = parse(text) if isinstance(text, str) else text
    if not isinstance(text, str) or isinstance(data, Problem):
        return []
    problems = [*texts_without_author(data), *left_out(data), *datasets.left_out(data)]
    return locate(problems, text, str(old))


def migrated_text(eval_set: EvalSet, new: Path) -> str:
    """The text of a converted set as the file `new`.

    The set is named after the new file: google-adk looks sets up by their file's name.
    """
    # Models load slowly, and reading this module must not wait for them.
    from evaltui.core.model.base_model import dump

    named = eval_set.model_copy(update={"eval_set_id": set_name(new), "name": set_name(new)})
    return json.dumps(dump(named), indent=2, ensure_ascii=False) + "\n"
