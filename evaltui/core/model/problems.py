"""Problems in user data: severity, place, and description."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from ...text.figures import counted
from ...text.values import nearest_word, value_in_words, visible

JsonPath = tuple[str | int, ...]


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class LintRule:
    """A kind of problem. A new rule adds itself to `RULES`; `checks` adds a check to it."""

    id: str
    meaning: str
    """A sentence for the table in the guide, and for code scanning services."""
    blocks: bool
    """Whether its problems are errors, which prevent running a set or config."""

    def __post_init__(self) -> None:
        RULES[self.id] = self

    def checks(self, subject: Subject) -> Callable[[_Check], _Check]:
        """Declares a function as a check of a subject; it yields a `Finding` for each problem."""
        return partial(self._declare, CHECKS[subject])

    def mends(self, subject: Mendable) -> Callable[[_Check], _Check]:
        """Declares a function that mends data in place where only one change is possible.

        It yields the path of each place before the change, and the change as a clause: `renamed to
        eval_cases`.
        """
        return partial(self._declare, MENDS[subject])

    def _declare(self, checks: Checks, check: _Check) -> _Check:
        # By its name, so that a module that is imported again declares nothing twice.
        checks[f"{check.__module__}.{check.__qualname__}"] = self, check
        return check

    def at(
        self, path: JsonPath, message: str, file: str | None = None, *, line: int | None = None
    ) -> Problem:
        return Problem(self, path, message, line, file)


Finding = tuple[JsonPath, str] | tuple[JsonPath, str, str]
"""The path and message of a problem, and its file if it is not the checked one."""
Check = Callable[..., Iterable[Finding]]
_Check = TypeVar("_Check", bound=Check)
Subject = Literal[
    "set",
    "case data",
    "case",
    "case with rubrics",
    "scored case",
    "values",
    "config data",
    "config",
    "references",
    "choice of config",
    "set ids",
    "search",
]
Mendable = Literal["set", "config"]

RULES: dict[str, LintRule] = {}
"""The rules of imported modules by id; `evaltui.project.lint.lint_rules` imports all of them."""
Checks = dict[str, tuple[LintRule, Check]]
"""Checks or mends by name of their function, each with its rule, in the order of declaration."""
CHECKS: dict[Subject, Checks] = {subject: {} for subject in get_args(Subject)}
MENDS: dict[Mendable, Checks] = {subject: {} for subject in get_args(Mendable)}


def problems_of(subject: Subject, *arguments: Any) -> list[Problem]:
    """The problems that the checks of a subject find; `arguments` are the arguments of each check."""
    return [rule.at(*finding) for rule, check in CHECKS[subject].values() for finding in check(*arguments)]


def mend(subject: Mendable, data: Any) -> list[Problem]:
    """Mends data in place with every mend once, and returns a problem for each changed place."""
    return [rule.at(*finding) for rule, mend in MENDS[subject].values() for finding in mend(data)]


# Found while a file is read, so without a check of their own.
UNREADABLE_FILE = LintRule("unreadable-file", "A file or folder cannot be read", blocks=True)
NOT_JSON = LintRule("not-json", "A file is not JSON", blocks=True)
NOT_AN_EVAL_SET = LintRule("not-an-eval-set", "A file is not an eval set", blocks=True)
INVALID_VALUE = LintRule("invalid-value", "A key is missing or misspelt, or ADK refuses it", blocks=True)
IGNORED_VALUE = LintRule("ignored-value", "A value is ignored or replaced", blocks=False)

UNKNOWN_KEY = LintRule("unknown-key", "A key is read by nothing", blocks=False)
DUPLICATE_KEY = LintRule("duplicate-key", "A key is given twice", blocks=True)
DUPLICATE_ID = LintRule("duplicate-id", "Two cases of a set have the same id", blocks=True)
DANGLING_REFERENCE = LintRule(
    "dangling-reference",
    "A rule or mark names a set, case, turn, tool or argument that is not there",
    blocks=False,
)
NOTHING_TO_RUN = LintRule("nothing-to-run", "A set or case has nothing to run", blocks=False)


@dataclass(frozen=True)
class Problem:
    """A problem at a place."""

    rule: LintRule
    path: JsonPath
    message: str
    """A sentence, without the place."""
    line: int | None = None
    """Line from 1; None without the text."""
    file: str | None = None

    @classmethod
    def error(
        cls, path: JsonPath, message: str, *, line: int | None = None, file: str | None = None
    ) -> Problem:
        return cls(INVALID_VALUE, path, message, line, file)

    @classmethod
    def warning(cls, path: JsonPath, message: str) -> Problem:
        return cls(IGNORED_VALUE, path, message)

    @property
    def severity(self) -> Severity:
        return Severity.ERROR if self.rule.blocks else Severity.WARNING

    def __str__(self) -> str:
        """Line, path and message: `line 41: eval_cases[2].eval_id: missing`."""
        return f"line {self.line}: {self.sentence}" if self.line else self.sentence

    @property
    def sentence(self) -> str:
        """Path and message: `eval_cases[2].eval_id: missing`."""
        where = format_path(self.path)
        return f"{where}: {self.message}" if where else self.message

    def is_elsewhere(self, path: Path) -> bool:
        """Whether the problem is in another file than `path`, such as its config."""
        return self.file not in (None, str(path))

    def beside(self, path: Path) -> str:
        """The problem as text for a file; a problem in another file names it: `test_config.json:1: no
        JSON`."""
        if self.file is None or not self.is_elsewhere(path):
            return str(self)
        return replace(self, file=Path(self.file).name).located()

    def stops(self, path: Path) -> str:
        """Why the set at `path` cannot be run; a problem of its config names the config."""
        name = "" if self.is_elsewhere(path) else f" {path.name}"
        return f"Cannot run{name}: {self.beside(path)}"

    def located(self, severity: str = "") -> str:
        """The problem with its file: `a.evalset.json:41: error: eval_cases[2].eval_id: missing`; no severity
        if it is ""."""
        sentence = f"{severity}: {self.sentence}" if severity else self.sentence
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        return f"{place}: {sentence}" if place else sentence


class EvalSetError(ValueError):
    """An unusable eval set or config, with all problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(problem.located() for problem in self.problems))


class SelectionError(ValueError):
    """The selection is missing, ambiguous or empty; the message is one line for the user."""


_PLAIN_KEY = re.compile(r"[^\W\d][\w:-]*")


def format_path(path: JsonPath) -> str:
    """A path as text: `eval_cases[2].conversation[0]` for `("eval_cases", 2, "conversation", 0)`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text


def likely_typos(
    data: Mapping[str, Any], fields: Iterable[Sequence[str]], path: JsonPath = (), likeness: float = 0.75
) -> Iterator[Finding]:
    """Keys that resemble an absent field; `fields` has all spellings of each field. 1.0 is the likeness of
    equal names.

    Other unknown keys are allowed, as in ADK.
    """
    fields = [tuple(field) for field in fields]
    spellings = {spelling for field in fields for spelling in field}
    absent = [spelling for field in fields if not data.keys() & set(field) for spelling in field]
    for key in data:
        if key in spellings:
            continue
        forms = (key, key.strip().lower())
        if hit := next(filter(None, (nearest_word(form, absent, likeness=likeness) for form in forms)), None):
            yield (*path, key), f"unknown key. Did you mean {visible(hit)}?"


IGNORED_KEY = "unknown key, ignored"

# Keys that people and editors write as comments.
_COMMENT_PREFIXES = ("$", "_", "#", "//")


def unknown_keys(
    data: Mapping[str, Any],
    fields: Iterable[Sequence[str]],
    path: JsonPath = (),
    errors: Iterable[Finding] = (),
) -> Iterator[Finding]:
    """Unknown keys, each with the most similar field, but for those that are errors already."""
    fields = [tuple(field) for field in fields]
    typos = {typo[0][-1]: typo for typo in likely_typos(data, fields, path)}
    spellings = {spelling for field in fields for spelling in field}
    refused = {place for place, *_ in errors}
    for key in data:
        if (*path, key) in refused:
            continue
        if key in typos:
            yield typos[key]
        elif key not in spellings and not key.startswith(_COMMENT_PREFIXES):
            yield (*path, key), IGNORED_KEY


_KIND_NAMES: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


def wrong_kind(path: JsonPath, value: Any, kind: type) -> Problem:
    return Problem.error(path, f"must be {_KIND_NAMES[kind]}, is {value_in_words(value)}")


def objects_in(
    items: Iterable[Any], path: JsonPath, problems: list[Problem]
) -> Iterator[tuple[dict[str, Any], JsonPath]]:
    """The objects of a list with their paths; other items are added to the problems."""
    for index, item in enumerate(items):
        if isinstance(item, dict):
            yield item, (*path, index)
        else:
            problems.append(wrong_kind((*path, index), item, dict))


def duplicate_key_text(other: str) -> str:
    """The message for a key beside its other spelling, because readers differ in which one they use."""
    return f"given twice, also as {other}; remove one"


def merge_ignored(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, where an unknown key in many cases is reported once with the number of others."""
    problems = list(problems)
    alike = merge_same_kind(problem for problem in problems if problem.message == IGNORED_KEY)
    return [*alike, *(problem for problem in problems if problem.message != IGNORED_KEY)]


def merge_same_kind(problems: Iterable[Problem]) -> list[Problem]:
    """The first problem of each kind, with the number of others; items of a list count as the same place."""
    kinds: dict[tuple[Any, ...], list[Problem]] = {}
    for problem in problems:
        keys = tuple(step for step in problem.path if isinstance(step, str))
        kinds.setdefault((problem.severity, problem.message, *keys), []).append(problem)
    return [
        first
        if not others
        else replace(first, message=f"{first.message}; also in {counted(len(others), 'other place')}")
        for first, *others in kinds.values()
    ]


def errors_in(problems: Iterable[Problem]) -> list[Problem]:
    """The problems that prevent running a set or config."""
    return [problem for problem in problems if problem.rule.blocks]


def has_error(problems: Iterable[Problem]) -> bool:
    return any(problem.rule.blocks for problem in problems)
