"""Which cases a filter keeps: a small language over ids, texts, tools, outcomes and scores."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.wording import did_you_mean
from evaltui.files.workspace import CaseInfo, SetEntry
from evaltui.workbench.state import CaseKey

if TYPE_CHECKING:
    from evaltui.core.outcome import CaseResult

# What may be typed for an outcome. Such a word is not looked for in texts; quoted it is.
_STATUSES = {
    "pass": "PASSED",
    "passed": "PASSED",
    "fail": "FAILED",
    "failed": "FAILED",
    "error": "ERROR",
    "flaky": "FLAKY",
    "not_evaluated": "NOT_EVALUATED",
    "not_run": "NOT_RUN",
}

LANGUAGE: tuple[tuple[str, str], ...] = (
    ("late order", "both words in the id or in what the user says"),
    ('"late order"', "exactly this text"),
    ("fail", "came out so: " + ", ".join(word for word in _STATUSES if word not in ("pass", "failed"))),
    ("fail error", "came out as one of these"),
    ("id:late*", "in the id; * is any text, ? any character"),
    ('text:"late order"', "in what the user says"),
    ("tool:book_hotel", "expects a call of this tool"),
    ("set:orders", "in a set with this id"),
    ("score<0.8", "the score that decided; also <= > >= ="),
    ("tool_trajectory<1", "a score of this metric; the beginning of its name is enough"),
    ("-late -fail", "not this"),
)
HELP = "\n".join(f"{form:<20}{meaning}" for form, meaning in LANGUAGE)

_FIELDS = ("id", "text", "tool", "set")
_FIELD_STARTS = frozenset(f"{name}:" for name in _FIELDS)
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
_TERM = re.compile(
    r"""
    (?P<not>-?)
    (?: (?P<field>[A-Za-z_]+): )?
    (?: "(?P<quoted>[^"]*)(?:"|$) | (?P<word>\S+) )
    """,
    re.VERBOSE,
)
_COMPARISON = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?P<sign><=|>=|<|>|=)(?P<number>.*)")


@dataclass(frozen=True)
class Scores:
    """What a case scored: `deciding` is the score that its outcome comes from, `metrics` are all by name."""

    deciding: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


def scores_of(result: CaseResult) -> Scores:
    """The first score with the verdict of the case decides, as the one that the list shows."""
    scored = [metric for metric in result.metrics if metric.score is not None]
    deciding = next((metric.score for metric in scored if metric.status == result.status), None)
    return Scores(deciding, {metric.name: metric.score for metric in scored if metric.score is not None})


@dataclass(frozen=True)
class _Case:
    """A case in the form in which it is searched, folded to one case of letters."""

    eval_id: str
    text: str
    tools: tuple[str, ...]
    set_id: str


_Search = Callable[[str], object]


@dataclass(frozen=True)
class _Text:
    """Look for a text in a field, or in id and text where none is named."""

    field: str
    search: _Search
    negated: bool

    def holds(self, case: _Case) -> bool:
        match self.field:
            case "id":
                found = self.search(case.eval_id)
            case "text":
                found = self.search(case.text)
            case "set":
                found = self.search(case.set_id)
            case "tool":
                found = any(map(self.search, case.tools))
            case _:
                found = self.search(case.eval_id) or self.search(case.text)
        return bool(found) is not self.negated


@dataclass(frozen=True)
class _Compared:
    """Compare the deciding score, or those of the metrics whose name begins so."""

    name: str
    compare: Callable[[float, float], bool]
    number: float
    negated: bool

    def holds(self, scores: Scores) -> bool:
        return any(self.compare(value, self.number) for value in self._values(scores)) is not self.negated

    def _values(self, scores: Scores) -> Iterator[float]:
        if self.name == "score":
            if scores.deciding is not None:
                yield scores.deciding
            return
        if self.name in scores.metrics:
            yield scores.metrics[self.name]
            return
        yield from (value for name, value in scores.metrics.items() if name.startswith(self.name))


@dataclass(frozen=True)
class Filter:
    """Every term must hold; of the statuses, one must be the case's. An empty filter keeps all.

    `problems` are sentences on what cannot be understood, which counts as not typed.
    """

    texts: tuple[_Text, ...] = ()
    scores: tuple[_Compared, ...] = ()
    statuses: frozenset[str] = frozenset()
    not_statuses: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Filter:
        texts: list[_Text] = []
        scores: list[_Compared] = []
        statuses: dict[bool, set[str]] = {False: set(), True: set()}
        problems: list[str] = []
        for term in _TERM.finditer(text):
            negated, name = bool(term["not"]), (term["field"] or "").casefold()
            word = term["word"] or ""
            if name and name not in _FIELDS:
                if hint := did_you_mean(name, _FIELDS):
                    problems.append(f"there is no {name}: to search in{hint}")
                    continue
                # Most likely a word with a colon in it, such as a time or an address.
                word, name = term[0][len(term["not"]) :], ""
            if term["quoted"] is not None and not word:
                if term["quoted"]:
                    texts.append(_Text(name, _contains(term["quoted"].casefold()), negated))
            elif not name and word.casefold() in _STATUSES:
                statuses[negated].add(_STATUSES[word.casefold()])
            elif not name and word.casefold() in _FIELD_STARTS:
                problems.append(f"{word} needs a text, such as {word}late")
            elif not name and (compared := _COMPARISON.fullmatch(word)):
                number = _number(compared["number"])
                if number is None:
                    problems.append(f"{compared[0]} needs a number, such as {compared['name']}<0.8")
                else:
                    sign = _COMPARE[compared["sign"]]
                    scores.append(_Compared(compared["name"].casefold(), sign, number, negated))
            else:
                texts.append(_Text(name, _pattern(word.casefold()), negated))
        found = frozenset(statuses[False]), frozenset(statuses[True])
        return cls(tuple(texts), tuple(scores), *found, tuple(problems))

    def __bool__(self) -> bool:
        return bool(self.texts or self.scores or self.statuses or self.not_statuses)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)", text) else None


def _contains(text: str) -> _Search:
    return lambda value: text in value


def _pattern(word: str) -> _Search:
    """A word is looked for anywhere; with `*` or `?` it has to be the whole value."""
    if not re.search("[*?]", word):
        return _contains(word)
    parts = (re.escape(part) for part in re.split("([*?])", word))
    pattern = "".join({r"\*": ".*", r"\?": "."}.get(part, part) for part in parts)
    return re.compile(pattern, re.DOTALL).fullmatch


class Filtered:
    """The cases that the filter keeps, as `{set: [numbers of its cases, from 0]}` in `kept`."""

    def __init__(self) -> None:
        self.text = ""
        self.filter = Filter()
        self.kept: dict[Path, list[int]] = {}
        self._sets: Sequence[SetEntry] = ()
        self._cases: list[list[_Case]] = []

    @property
    def count(self) -> int:
        return sum(len(numbers) for numbers in self.kept.values())

    @property
    def problem(self) -> str | None:
        """Why a part of the filter counts for nothing, in a sentence."""
        return next(iter(self.filter.problems), None)

    def update(
        self,
        text: str,
        sets: Sequence[SetEntry],
        status: Callable[[CaseKey], str],
        also: CaseKey | None = None,
        scores: Callable[[CaseKey], Scores | None] | None = None,
    ) -> None:
        """Filter anew: the text, the sets or the outcomes may have changed.

        `also` is kept although its outcome or its score is another now. Without `scores` no case has any.
        """
        self.text = text
        self.filter = Filter.parse(text)
        self.kept = {}
        if not self.filter:
            # The folded texts are as large as those of the cases: they are held only while they are searched.
            self._sets, self._cases = (), []
            return
        if sets is not self._sets:
            self._sets = sets
            self._cases = [[_folded(entry, case) for case in entry.cases] for entry in sets]
        for entry, cases in zip(sets, self._cases, strict=True):
            if numbers := self._keep(entry, cases, status, also, scores or (lambda key: None)):
                self.kept[entry.path] = numbers

    def _keep(
        self,
        entry: SetEntry,
        cases: Sequence[_Case],
        status: Callable[[CaseKey], str],
        also: CaseKey | None,
        scores: Callable[[CaseKey], Scores | None],
    ) -> list[int]:
        wanted = self.filter
        by_outcome = bool(wanted.statuses or wanted.not_statuses or wanted.scores)
        kept = []
        for number, case in enumerate(cases):
            if not all(term.holds(case) for term in wanted.texts):
                continue
            if by_outcome:
                key = CaseKey(entry.path, entry.cases[number].eval_id)
                if key != also and not self._came_out(key, status, scores):
                    continue
            kept.append(number)
        return kept

    def _came_out(
        self, key: CaseKey, status: Callable[[CaseKey], str], scores: Callable[[CaseKey], Scores | None]
    ) -> bool:
        wanted = self.filter
        if wanted.statuses or wanted.not_statuses:
            outcome = status(key)
            if outcome in wanted.not_statuses or (wanted.statuses and outcome not in wanted.statuses):
                return False
        if not wanted.scores:
            return True
        scored = scores(key) or Scores()
        return all(term.holds(scored) for term in wanted.scores)


def _folded(entry: SetEntry, case: CaseInfo) -> _Case:
    return _Case(
        case.eval_id.casefold(),
        "\n".join(case.texts).casefold(),
        tuple(map(str.casefold, case.tools)),
        entry.eval_set_id.casefold(),
    )
