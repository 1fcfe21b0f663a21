"""A problem in user data: how bad, where, and what, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ...text.figures import counted
from ...text.values import nearest, visible

JsonPath = tuple[str | int, ...]


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class LintRule(StrEnum):
    """Kinds of problems: the id that code scanning services show, and a sentence for the list of rules."""

    meaning: str

    INVALID_VALUE = "invalid-value", "A key is missing or has a value that ADK refuses"
    UNREADABLE_FILE = "unreadable-file", "A file or folder cannot be read"
    NOT_JSON = "not-json", "A file is not JSON"
    NOT_AN_EVAL_SET = "not-an-eval-set", "A file is not an eval set"
    UNKNOWN_KEY = "unknown-key", "A key is read by nothing"
    DUPLICATE_KEY = "duplicate-key", "A key is given twice"
    DUPLICATE_ID = "duplicate-id", "An id is used twice"
    NOTHING_TO_RUN = "nothing-to-run", "A set or case has nothing to run"
    NEVER_PASSES = "never-passes", "A case can never pass"
    UNKNOWN_ROLE = "unknown-role", "A content has a role that ADK does not know"
    ORPHAN_RESPONSE = "orphan-response", "A tool response has no call"
    UNUSED_CONFIG = "unused-config", "A config does not apply, or several could"
    UNUSABLE_CRITERION = "unusable-criterion", "A criterion cannot be evaluated as it is written"
    UNKNOWN_RUBRIC_TYPE = "unknown-rubric-type", "A rubric has an unknown type"
    UNJUDGED_RUBRIC = "unjudged-rubric", "No criterion judges a rubric"
    DANGLING_REFERENCE = (
        "dangling-reference",
        "A rule or mark names a set, case, turn, tool or argument that is not there",
    )
    HIDDEN_RULE = "hidden-rule", "A rule never applies"
    SLOW_REGEX = "slow-regex", "A regular expression can be very slow"

    def __new__(cls, rule_id: str, meaning: str) -> LintRule:
        rule = str.__new__(cls, rule_id)
        rule._value_ = rule_id
        rule.meaning = meaning
        return rule


class _Details(TypedDict, total=False):
    line: int | None
    file: str | None
    rule: LintRule


@dataclass(frozen=True)
class Problem:
    """One thing wrong at a place."""

    severity: Severity
    path: JsonPath
    message: str
    """A sentence, without the place."""
    line: int | None = None
    """Counted from 1; None where the text is not at hand."""
    file: str | None = None
    rule: LintRule = LintRule.INVALID_VALUE

    @classmethod
    def error(cls, path: JsonPath, message: str, **details: Unpack[_Details]) -> Problem:
        return cls(Severity.ERROR, path, message, **details)

    @classmethod
    def warning(cls, path: JsonPath, message: str, **details: Unpack[_Details]) -> Problem:
        return cls(Severity.WARNING, path, message, **details)

    def __str__(self) -> str:
        """`line 41: eval_cases[2].eval_id: missing`"""
        return f"line {self.line}: {self.sentence}" if self.line else self.sentence

    @property
    def sentence(self) -> str:
        """`eval_cases[2].eval_id: missing`"""
        where = format_path(self.path)
        return f"{where}: {self.message}" if where else self.message

    def is_elsewhere(self, path: Path) -> bool:
        """Whether it is of another file than the one with this path, as its config."""
        return self.file not in (None, str(path))

    def beside(self, path: Path) -> str:
        """The problem as text of the file with this path; one of another file names it:
        `test_config.json:1: no JSON`."""
        if self.file is None or not self.is_elsewhere(path):
            return str(self)
        return replace(self, file=Path(self.file).name).located()

    def located(self, severity: str = "") -> str:
        """`a.evalset.json:41: error: eval_cases[2].eval_id: missing`; no severity where it is empty."""
        sentence = f"{severity}: {self.sentence}" if severity else self.sentence
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        return f"{place}: {sentence}" if place else sentence


class EvalSetError(ValueError):
    """An eval set or config that cannot be used, with every problem found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(problem.located() for problem in self.problems))


class SelectionError(ValueError):
    """The selection does not exist, is ambiguous, or is empty; the message is one line for the user."""


_PLAIN_KEY = re.compile(r"[^\W\d][\w:-]*")


def format_path(path: JsonPath) -> str:
    """`("eval_cases", 2, "conversation", 0)` as `eval_cases[2].conversation[0]`."""
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
    data: Mapping[str, Any], fields: Iterable[Sequence[str]], path: JsonPath
) -> Iterator[Problem]:
    """Warnings for keys that are near to a field that is absent; each field comes with all its spellings.

    Other unknown keys are the user's own: where this is called, ADK tolerates them.
    """
    fields = [tuple(field) for field in fields]
    spellings = {spelling for field in fields for spelling in field}
    absent = [spelling for field in fields if not data.keys() & set(field) for spelling in field]
    for key in data:
        if key not in spellings and (hit := nearest(key, absent, likeness=0.75)):
            yield Problem.warning(
                (*path, key), f"unknown key. Did you mean {visible(hit)}?", rule=LintRule.UNKNOWN_KEY
            )


IGNORED = "unknown key, ignored"

# Keys that people and editors write as comments.
_COMMENT = ("$", "_", "#", "//")


def unknown_keys(
    data: Mapping[str, Any], fields: Iterable[Sequence[str]], path: JsonPath = ()
) -> Iterator[Problem]:
    """Warnings for all keys that are no field, with the field that was probably meant."""
    fields = [tuple(field) for field in fields]
    typos = {problem.path[-1]: problem for problem in likely_typos(data, fields, path)}
    spellings = {spelling for field in fields for spelling in field}
    for key in data:
        if key in typos:
            yield typos[key]
        elif key not in spellings and not key.startswith(_COMMENT):
            yield Problem.warning((*path, key), IGNORED, rule=LintRule.UNKNOWN_KEY)


def given_twice(path: JsonPath, other: str) -> Problem:
    """An error for a key that stands beside its other spelling: readers differ in which of them counts."""
    return Problem.error(path, f"given twice, also as {other}; remove one", rule=LintRule.DUPLICATE_KEY)


def merge_ignored(problems: Iterable[Problem]) -> list[Problem]:
    """The problems; an unknown key that many cases have is named at the first, with the number of others."""
    problems = list(problems)
    alike = merge_alike(problem for problem in problems if problem.message == IGNORED)
    return [*alike, *(problem for problem in problems if problem.message != IGNORED)]


def merge_alike(problems: Iterable[Problem]) -> list[Problem]:
    """The first of each kind of problem, with the number of others; entries of a list are alike."""
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


def has_error(problems: Iterable[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)
