"""The filter of cases: a small language over ids, texts, tools, outcomes and scores."""

from __future__ import annotations

import asyncio
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.text.values import did_you_mean
from evaltui.workbench.result.stored_results import ResultRef, RunResults, StoredResult

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult

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
    ("late order", "both words, in the id or in user messages"),
    ('"late order"', "exactly this text"),
    ("fail", "this outcome: " + ", ".join(word for word in _STATUSES if word not in ("pass", "failed"))),
    ("fail error", "one of these outcomes"),
    ("id:late*", "this id; * is any text, ? any character"),
    ('text:"late order"', "this text in a user message"),
    ("tool:book_hotel", "an expected call of this tool"),
    ("set:orders", "this id of the eval set"),
    ("#smoke", "this tag; also tag:smoke"),
    ("score<0.8", "deciding score; also <= > >= ="),
    ("tool_trajectory<1", "score of this metric; a prefix of its name is enough"),
    ("-late -fail", "none of these"),
)

_FIELDS = ("id", "text", "tool", "set", "tag")
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
_WILD = re.compile("[*?]")
_COMPARISON = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?P<sign><=|>=|<|>|=)(?P<number>.*)")


@dataclass(frozen=True)
class Scores:
    """The scores of a case: `deciding` is the score that its outcome comes from, `metrics` has all by
    name."""

    deciding: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


def scores_of(result: CaseResult) -> Scores:
    """The scores of a result; the first one with the verdict of the case decides, as in the list of cases."""
    scored = [metric for metric in result.metrics if metric.score is not None]
    deciding = next((metric.score for metric in scored if metric.status == result.status), None)
    return Scores(deciding, {metric.name: metric.score for metric in scored if metric.score is not None})


class ShownScores:
    """The scores of last results, cached while a filter compares them: those in run files are queries."""

    def __init__(self) -> None:
        self._scores: dict[CaseId, tuple[ResultRef, Scores]] = {}

    def of(self, results: Mapping[CaseId, ResultRef]) -> dict[CaseId, Scores]:
        """The scores of these results; none for an unreadable one."""
        stored: dict[RunResults, dict[int, tuple[CaseId, StoredResult]]] = {}
        for case, ref in results.items():
            if case in self._scores and self._scores[case][0] is ref:
                continue
            if isinstance(ref, StoredResult):
                self._scores[case] = ref, Scores()
                stored.setdefault(ref.file, {})[ref.number] = case, ref
            else:
                self._scores[case] = ref, scores_of(ref.result)
        for file, cases in stored.items():
            for number, metrics in file.scores(cases).items():
                case, in_file = cases[number]
                figures = in_file.figures
                # As the summary has them, metrics are in order.
                with_verdict = (name for name in figures.scores if name in metrics)
                deciding = (metrics[name][0] for name in with_verdict if metrics[name][1] == figures.status)
                scores = {name: score for name, (score, _) in metrics.items()}
                self._scores[case] = in_file, Scores(next(deciding, None), scores)
        return {case: self._scores[case][1] for case in results}

    def forget(self) -> None:
        """Clears the cache, when no filter compares scores any more."""
        self._scores.clear()


class _Searched:
    """The searchable texts of the cases of a set, case-folded.

    Texts are folded when first searched: those of a large set are many megabytes.
    """

    def __init__(self, eval_set: EvalSetFile) -> None:
        self._cases = eval_set.cases
        self._tags = eval_set.tags
        self.set_id = eval_set.eval_set_id.casefold()

    @cached_property
    def ids(self) -> list[str]:
        return [_folded(case.eval_id) for case in self._cases]

    @cached_property
    def texts(self) -> list[str]:
        return [_folded("\n".join(case.outline.texts)) for case in self._cases]

    def fold(self) -> None:
        """Folds ids and texts ahead of a search."""
        _ = self.ids, self.texts

    @cached_property
    def tags(self) -> list[tuple[str, ...]]:
        tags_by_id = self._tags or {}
        return [tuple(map(str.casefold, tags_by_id.get(case.eval_id, ()))) for case in self._cases]

    @cached_property
    def tools(self) -> list[tuple[str, ...]]:
        return [tuple(map(str.casefold, case.outline.tools)) for case in self._cases]


def _folded(text: str) -> str:
    """The case-folded text; the same object where folding changes nothing, to save memory."""
    folded = text.casefold()
    return text if folded == text else folded


_Search = Callable[[str], object]


@dataclass(frozen=True)
class _Text:
    """A filter term: a text in a field, or in id and text where no field is named."""

    field: str
    search: _Search
    negated: bool
    word: str = ""
    """The text to find anywhere in id and text; "" for another kind of search."""

    def among(self, cases: _Searched, numbers: Iterable[int]) -> list[int]:
        """The numbers of the cases that match."""
        if (word := self.word) and not self.field and not self.negated:
            # Most of what is typed: of a hundred thousand cases, two calls for each would be felt.
            ids, texts = cases.ids, cases.texts
            return [number for number in numbers if word in ids[number] or word in texts[number]]
        has_text = self._finder(cases)
        return [number for number in numbers if bool(has_text(number)) is not self.negated]

    def _finder(self, cases: _Searched) -> Callable[[int], object]:
        """A function that tells whether the case with a number has the text."""
        search = self.search
        match self.field:
            case "id":
                ids = cases.ids
                return lambda number: search(ids[number])
            case "text":
                texts = cases.texts
                return lambda number: search(texts[number])
            case "set":
                in_set = search(cases.set_id)
                return lambda number: in_set
            case "tool":
                tools = cases.tools
                return lambda number: any(map(search, tools[number]))
            case "tag":
                tags = cases.tags
                return lambda number: any(map(search, tags[number]))
            case _:
                ids, texts = cases.ids, cases.texts
                return lambda number: search(ids[number]) or search(texts[number])


@dataclass(frozen=True)
class _Compared:
    """A filter term: compares the deciding score, or the scores of metrics whose name starts with `name`."""

    name: str
    compare: Callable[[float, float], bool]
    number: float
    negated: bool

    def holds(self, scores: Scores) -> bool:
        return any(self.compare(value, self.number) for value in self._values(scores)) is not self.negated

    def _values(self, scores: Scores) -> list[float]:
        if self.name == "score":
            return [] if scores.deciding is None else [scores.deciding]
        if self.name in scores.metrics:
            return [scores.metrics[self.name]]
        return [value for name, value in scores.metrics.items() if name.startswith(self.name)]


@dataclass(frozen=True)
class Filter:
    """A parsed filter. All terms must match, and one of the statuses. An empty filter matches all.

    `problems` are sentences on terms that cannot be read; these are ignored.
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
                    problems.append(f"Unknown filter {name!r}{hint}")
                    continue
                # Most likely a word with a colon in it, such as a time or an address.
                word, name = term[0][len(term["not"]) :], ""
            if not name and len(word) > 1 and word.startswith("#"):
                name, word = "tag", word[1:]
            if term["quoted"] is not None and not word:
                if quoted := term["quoted"].casefold():
                    texts.append(_Text(name, _is(quoted) if name == "tag" else _contains(quoted), negated))
            elif not name and word.casefold() in _STATUSES:
                statuses[negated].add(_STATUSES[word.casefold()])
            elif not name and word.casefold() in _FIELD_STARTS:
                problems.append(f"{word} needs a text, e.g. {word}late")
            elif not name and (compared := _COMPARISON.fullmatch(word)):
                number = _number(compared["number"])
                if number is None:
                    problems.append(f"{compared[0]} needs a number, e.g. {compared['name']}<0.8")
                else:
                    sign = _COMPARE[compared["sign"]]
                    scores.append(_Compared(compared["name"].casefold(), sign, number, negated))
            else:
                word = word.casefold()
                plain = "" if _WILD.search(word) else word
                texts.append(_Text(name, _pattern(word, whole=name == "tag"), negated, plain))
        included, excluded = frozenset(statuses[False]), frozenset(statuses[True])
        return cls(tuple(texts), tuple(scores), included, excluded, tuple(problems))

    def __bool__(self) -> bool:
        return bool(self.texts or self.scores or self.statuses or self.not_statuses)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)", text) else None


def _is(text: str) -> _Search:
    return lambda value: value == text


def _contains(text: str) -> _Search:
    return lambda value: text in value


def _pattern(word: str, *, whole: bool = False) -> _Search:
    """A search for a word: anywhere in the value; with `*` or `?`, or as a `whole`, it must match the whole
    value."""
    if not _WILD.search(word):
        return _is(word) if whole else _contains(word)
    texts = word.split("*")
    first, *others = (re.compile(re.escape(text).replace(r"\?", "."), re.DOTALL) for text in texts)
    if not others:
        return first.fullmatch
    *between, last = others

    def fits(value: str) -> bool:
        end = len(value) - len(texts[-1])
        if end < 0 or not last.match(value, end):
            return False
        # Each piece as early as it can be: where this finds no way, there is none.
        match = first.match(value, 0, end)
        for piece in between:
            match = match and piece.search(value, match.end(), end)
        return match is not None

    return fits


class Filtered:
    """The cases that match the filter, as `{set: [numbers of its cases, from 0]}` in `matching`."""

    def __init__(self) -> None:
        self.text = ""
        self.filter = Filter()
        self.matching: dict[str, list[int]] = {}
        self._ids: dict[str, frozenset[str]] = {}
        self._sets: Sequence[EvalSetFile] = ()
        self._searched: list[_Searched] = []

    def ids(self, path: str) -> frozenset[str]:
        """The ids of the matching cases of a set, by the path of `CaseId`."""
        if path not in self._ids:
            cases = next((eval_set.cases for eval_set in self._sets if eval_set.case_path == path), ())
            self._ids[path] = frozenset(cases[number].eval_id for number in self.matching.get(path, ()))
        return self._ids[path]

    @property
    def count(self) -> int:
        return sum(len(numbers) for numbers in self.matching.values())

    @property
    def problem(self) -> str | None:
        """Why a part of the filter is ignored, as a sentence."""
        return next(iter(self.filter.problems), None)

    def update(
        self,
        text: str,
        sets: Sequence[EvalSetFile],
        status: Callable[[CaseId], str],
        also: CaseId | None = None,
        scores: Callable[[Sequence[CaseId]], Mapping[CaseId, Scores]] | None = None,
    ) -> None:
        """Filters again after a change of text, sets or outcomes.

        `also` stays although its outcome or score has changed. `scores` returns the scores of the cases that
        match the other terms; without it no case has scores.
        """
        self.text = text
        self.filter = Filter.parse(text)
        self.matching, self._ids = {}, {}
        if not self.filter:
            # The folded texts are as large as those of the cases: they are held only while they are searched.
            self._sets, self._searched = (), []
            return
        self._search_in(sets)
        for eval_set, searched in zip(sets, self._searched, strict=True):
            if numbers := self._keep(eval_set, searched, status, also, scores or (lambda cases: {})):
                self.matching[eval_set.case_path] = numbers

    async def prepare(self, sets: Sequence[EvalSetFile]) -> None:
        """Folds the texts ahead of typing, so that no key waits for a large set."""
        self._search_in(sets)
        for searched in self._searched:
            await asyncio.to_thread(searched.fold)

    def _search_in(self, sets: Sequence[EvalSetFile]) -> None:
        if sets is not self._sets:
            self._sets = sets
            self._searched = [_Searched(eval_set) for eval_set in sets]

    def _keep(
        self,
        eval_set: EvalSetFile,
        searched: _Searched,
        status: Callable[[CaseId], str],
        also: CaseId | None,
        scores: Callable[[Sequence[CaseId]], Mapping[CaseId, Scores]],
    ) -> list[int]:
        current = self.filter
        numbers: Sequence[int] = range(len(eval_set.cases))
        for term in current.texts:
            numbers = term.among(searched, numbers)
        if not (current.statuses or current.not_statuses or current.scores):
            return list(numbers)
        named = {number: CaseId(eval_set.case_path, eval_set.cases[number].eval_id) for number in numbers}
        if current.statuses or current.not_statuses:
            named = {
                number: case
                for number, case in named.items()
                if case == also or self._has_status(status(case))
            }
        if not current.scores:
            return list(named)
        scores_by_case, nothing = scores(list(named.values())), Scores()
        return [
            number
            for number, case in named.items()
            if case == also or all(term.holds(scores_by_case.get(case, nothing)) for term in current.scores)
        ]

    def _has_status(self, outcome: str) -> bool:
        current = self.filter
        return outcome not in current.not_statuses and (not current.statuses or outcome in current.statuses)
