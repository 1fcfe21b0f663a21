"""Which cases a filter keeps: a small language over ids, texts, tools, outcomes and scores."""

from __future__ import annotations

import asyncio
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.files.eval_set_file import EvalSetFile
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
    """What a case scored: `deciding` is the score that its outcome comes from, `metrics` are all by name."""

    deciding: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


def scores_of(result: CaseResult) -> Scores:
    """The first score with the verdict of the case decides, as the one that the list shows."""
    scored = [metric for metric in result.metrics if metric.score is not None]
    deciding = next((metric.score for metric in scored if metric.status == result.status), None)
    return Scores(deciding, {metric.name: metric.score for metric in scored if metric.score is not None})


class ShownScores:
    """The scores of last results, as long as a filter compares them; those in runs' files are queries."""

    def __init__(self) -> None:
        self._scores: dict[CaseId, tuple[ResultRef, Scores]] = {}

    def of(self, results: Mapping[CaseId, ResultRef]) -> dict[CaseId, Scores]:
        """The scores of these results; none of one that cannot be read."""
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
        """No filter compares scores any more."""
        self._scores.clear()


class _Searched:
    """The cases of a set as they are searched, folded to one case of letters.

    Only what is looked in is folded: the texts of a large set are many megabytes.
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
        """Have ids and texts ready."""
        _ = self.ids, self.texts

    @cached_property
    def tags(self) -> list[tuple[str, ...]]:
        known = self._tags or {}
        return [tuple(map(str.casefold, known.get(case.eval_id, ()))) for case in self._cases]

    @cached_property
    def tools(self) -> list[tuple[str, ...]]:
        return [tuple(map(str.casefold, case.outline.tools)) for case in self._cases]


def _folded(text: str) -> str:
    """Where that changes nothing the same object: of many cases a copy takes megabytes."""
    folded = text.casefold()
    return text if folded == text else folded


_Search = Callable[[str], object]


@dataclass(frozen=True)
class _Text:
    """Look for a text in a field, or in id and text where none is named."""

    field: str
    search: _Search
    negated: bool
    word: str = ""
    """What is looked for anywhere in id and text; "" where something else is asked."""

    def among(self, cases: _Searched, numbers: Iterable[int]) -> list[int]:
        """Those of the cases that it holds for."""
        if (word := self.word) and not self.field and not self.negated:
            # Most of what is typed: of a hundred thousand cases, two calls for each would be felt.
            ids, texts = cases.ids, cases.texts
            return [number for number in numbers if word in ids[number] or word in texts[number]]
        has_text = self._finder(cases)
        return [number for number in numbers if bool(has_text(number)) is not self.negated]

    def _finder(self, cases: _Searched) -> Callable[[int], object]:
        """Whether the case with a number has the text."""
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
    """Compare the deciding score, or those of the metrics whose name begins so."""

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
        found = frozenset(statuses[False]), frozenset(statuses[True])
        return cls(tuple(texts), tuple(scores), *found, tuple(problems))

    def __bool__(self) -> bool:
        return bool(self.texts or self.scores or self.statuses or self.not_statuses)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)", text) else None


def _is(text: str) -> _Search:
    return lambda value: value == text


def _contains(text: str) -> _Search:
    return lambda value: text in value


def _pattern(word: str, *, whole: bool = False) -> _Search:
    """A word is looked for anywhere; with `*` or `?`, or as a `whole`, it has to be the whole value."""
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
        found = first.match(value, 0, end)
        for piece in between:
            found = found and piece.search(value, found.end(), end)
        return found is not None

    return fits


class Filtered:
    """The cases that the filter keeps, as `{set: [numbers of its cases, from 0]}` in `kept`."""

    def __init__(self) -> None:
        self.text = ""
        self.filter = Filter()
        self.kept: dict[str, list[int]] = {}
        self._ids: dict[str, frozenset[str]] = {}
        self._sets: Sequence[EvalSetFile] = ()
        self._searched: list[_Searched] = []

    def ids(self, path: str) -> frozenset[str]:
        """Of the cases of a set that it keeps, by the path of `CaseId`."""
        if path not in self._ids:
            cases = next((one.cases for one in self._sets if one.case_path == path), ())
            self._ids[path] = frozenset(cases[number].eval_id for number in self.kept.get(path, ()))
        return self._ids[path]

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
        sets: Sequence[EvalSetFile],
        status: Callable[[CaseId], str],
        also: CaseId | None = None,
        scores: Callable[[Sequence[CaseId]], Mapping[CaseId, Scores]] | None = None,
    ) -> None:
        """Filter anew: the text, the sets or the outcomes may have changed.

        `also` is kept although its outcome or its score is another now. `scores` is asked for those of the
        cases that the other words leave; without it no case has any.
        """
        self.text = text
        self.filter = Filter.parse(text)
        self.kept, self._ids = {}, {}
        if not self.filter:
            # The folded texts are as large as those of the cases: they are held only while they are searched.
            self._sets, self._searched = (), []
            return
        self._search_in(sets)
        for eval_set, searched in zip(sets, self._searched, strict=True):
            if numbers := self._keep(eval_set, searched, status, also, scores or (lambda cases: {})):
                self.kept[eval_set.case_path] = numbers

    async def prepare(self, sets: Sequence[EvalSetFile]) -> None:
        """Fold what a word is looked for in, before one is typed; a key does not wait for a large set."""
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
        wanted = self.filter
        numbers: Sequence[int] = range(len(eval_set.cases))
        for term in wanted.texts:
            numbers = term.among(searched, numbers)
        if not (wanted.statuses or wanted.not_statuses or wanted.scores):
            return list(numbers)
        named = {number: CaseId(eval_set.case_path, eval_set.cases[number].eval_id) for number in numbers}
        if wanted.statuses or wanted.not_statuses:
            named = {
                number: case for number, case in named.items() if case == also or self._came_out(status(case))
            }
        if not wanted.scores:
            return list(named)
        known, nothing = scores(list(named.values())), Scores()
        return [
            number
            for number, case in named.items()
            if case == also or all(term.holds(known.get(case, nothing)) for term in wanted.scores)
        ]

    def _came_out(self, outcome: str) -> bool:
        wanted = self.filter
        return outcome not in wanted.not_statuses and (not wanted.statuses or outcome in wanted.statuses)
