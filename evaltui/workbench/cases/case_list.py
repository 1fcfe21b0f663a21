"""The list of cases: its lines, the search by a few letters, and the filter, a small language."""

from __future__ import annotations

import heapq
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import StoredCase
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.text.keys import key_of
from evaltui.text.values import did_you_mean
from evaltui.workbench.result.stored_results import ResultRef, RunResults, StoredResult
from evaltui.workbench.state import Selection

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult


class Row(NamedTuple):
    """One line of the list: a set, one of its cases, or one turn of that; counted from 0."""

    eval_set: EvalSetFile
    case: int | None = None
    turn: int | None = None

    @property
    def depth(self) -> int:
        return 0 if self.case is None else 1 if self.turn is None else 2

    @property
    def selection(self) -> Selection:
        """The selection for the line."""
        eval_id = None if self.case is None else self.eval_set.cases[self.case].eval_id
        return Selection(self.eval_set.case_path, eval_id, self.turn)


def tree_rows(
    sets: Sequence[EvalSetFile],
    matching: Mapping[str, Sequence[int]] | None,
    folded: Collection[str],
    unfolded: Collection[CaseId],
    order: Callable[[EvalSetFile, Sequence[int]], Sequence[int]] = lambda eval_set, numbers: numbers,
) -> list[Row | None]:
    """The lines of the tree of sets and cases; None is an empty line, which separates sets with shown cases.

    `matching` are the numbers of the cases that match the filter; None without a filter. A filter unfolds
    every set. `order` sorts the numbers of a set's cases.
    """
    rows: list[Row | None] = []
    for eval_set in sets:
        path, cases = eval_set.case_path, eval_set.cases
        if matching is not None and path not in matching:
            continue
        numbers: Sequence[int] = range(len(cases)) if matching is None else matching[path]
        if matching is None and path in folded:
            numbers = ()
        if rows and (numbers or ((last := rows[-1]) is not None and last.depth)):
            rows.append(None)
        rows.append(Row(eval_set))
        ids = {case.eval_id for case in unfolded if case.path == path}
        for number in order(eval_set, numbers):
            rows.append(Row(eval_set, number))
            if ids and cases[number].eval_id in ids:
                rows += [Row(eval_set, number, turn) for turn in range(cases[number].outline.turns or 0)]
    return rows


def line_of(rows: Sequence[Row | None], selection: Selection) -> int | None:
    """The line that shows a selection; None where none does."""
    path, turn = selection.path, selection.turn
    for line, row in enumerate(rows):
        if row is not None and row.turn == turn and row.eval_set.case_path == path:
            eval_id = None if row.case is None else row.eval_set.cases[row.case].eval_id
            if eval_id == selection.eval_id:
                return line
    return None


# What a word is worth by where it is found; within one kind, tighter and earlier is better.
_WHOLE_ID_SCORE = 500.0
_ID_START_SCORE = 400.0
_ID_WORD_SCORE = 350.0
_ID_PART_SCORE = 300.0
_ID_LETTERS_SCORE = 200.0
_SET_SCORE = 150.0
_TEXT_SCORE = 100.0
_MAX_RANGE_IN_KIND = 50.0


@dataclass(frozen=True)
class Jump:
    """A search result; `marked` are the places of the typed letters in its id."""

    case: CaseId
    set_id: str
    text: str
    score: float
    marked: tuple[int, ...] = ()


def rank_cases(query: str, sets: Sequence[EvalSetFile], limit: int = 50) -> list[Jump]:
    """The cases that match every word of the query, best first, then in file order.

    A word matches the id, as a whole, inside, or by its letters in order (`bkh` in `book_hotel`), and a part
    of the set's id and of the user's texts. An empty query matches nothing.
    """
    words = query.casefold().split()
    if not words:
        return []
    # Of equal scores, nlargest keeps the order in which they come.
    return heapq.nlargest(limit, _jumps(words, sets), key=lambda jump: jump.score)


def _letters_in(word: str, value: str) -> tuple[int, ...]:
    """The places of the word's letters in a value, in order and as near together as possible."""
    best: tuple[int, ...] = ()
    start = 0
    while places := _letters_from(word, value, start):
        if not best or places[-1] - places[0] < best[-1] - best[0]:
            best = places
        start = places[0] + 1
    return best


def _letters_from(word: str, value: str, start: int) -> tuple[int, ...]:
    """The first place of each letter after the previous one; `()` where a letter is missing."""
    places = []
    for letter in word:
        if (place := value.find(letter, start)) < 0:
            return ()
        places.append(place)
        start = place + 1
    return tuple(places)


def _jumps(words: Sequence[str], sets: Sequence[EvalSetFile]) -> Iterator[Jump]:
    for eval_set in sets:
        set_id = eval_set.eval_set_id.casefold()
        for case in eval_set.cases:
            if (match := _match(words, case, set_id)) is not None:
                score, marked = match
                named = CaseId(eval_set.case_path, case.eval_id)
                yield Jump(named, eval_set.eval_set_id, case.outline.first_text, score, marked)


def _match(words: Sequence[str], case: StoredCase, set_id: str) -> tuple[float, tuple[int, ...]] | None:
    """The mean score of the words, and their places in the id; None where a word does not match."""
    eval_id = case.eval_id.casefold()
    total, marked = 0.0, set[int]()
    for word in words:
        worth, places = _score_in_id(word, eval_id)
        if not worth:
            if word in set_id:
                worth = _SET_SCORE + _MAX_RANGE_IN_KIND * len(word) / len(set_id)
            elif any(word in text.casefold() for text in case.outline.texts):
                worth = _TEXT_SCORE
            else:
                return None
        total += worth
        marked.update(places)
    # Letters that become two when folded would shift the places behind them.
    shown = tuple(sorted(marked)) if len(eval_id) == len(case.eval_id) else ()
    return total / len(words), shown


def _score_in_id(word: str, eval_id: str) -> tuple[float, tuple[int, ...]]:
    at = eval_id.find(word)
    if at >= 0:
        share = _MAX_RANGE_IN_KIND * len(word) / len(eval_id)
        word_start = re.search(rf"(?<![^\W_]){re.escape(word)}", eval_id)
        at = word_start.start() if word_start else at
        places = tuple(range(at, at + len(word)))
        if word == eval_id:
            return _WHOLE_ID_SCORE, places
        if at == 0:
            return _ID_START_SCORE + share, places
        return (_ID_WORD_SCORE if word_start else _ID_PART_SCORE) + share, places
    places = _letters_in(word, eval_id)
    if not places:
        return 0.0, ()
    return _ID_LETTERS_SCORE + _MAX_RANGE_IN_KIND * len(places) / (places[-1] - places[0] + 1), places


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
    ('reaches:"tool set_light"', "result with this cell of the coverage of gaps"),
    ("score<0.8", "deciding score; also <= > >= ="),
    ("tool_trajectory<1", "score of this metric; a prefix of its name is enough"),
    ("-late -fail", "none of these"),
)

_FIELDS = ("id", "text", "tool", "set", "tag", "reaches")
# Fields that a term must match as a whole.
_WHOLE = ("tag", "reaches")
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
_WILDCARD = re.compile("[*?]")
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


def scores_by_case(results: Mapping[CaseId, ResultRef]) -> dict[CaseId, Scores]:
    """The scores of results; none for an unreadable one. Those in run files are one query for each file."""
    scores: dict[CaseId, Scores] = {}
    stored: dict[RunResults, dict[int, tuple[CaseId, StoredResult]]] = {}
    for case, ref in results.items():
        if isinstance(ref, StoredResult):
            stored.setdefault(ref.file, {})[ref.number] = case, ref
        else:
            scores[case] = scores_of(ref.result)
    for file, cases in stored.items():
        for number, metrics in file.scores(cases).items():
            case, in_file = cases[number]
            figures = in_file.figures
            # As the summary has them, metrics are in order.
            with_verdict = (name for name in figures.scores if name in metrics)
            deciding = (metrics[name][0] for name in with_verdict if metrics[name][1] == figures.status)
            values = {name: score for name, (score, _) in metrics.items()}
            scores[case] = Scores(next(deciding, None), values)
    return scores


def _casefolded_texts(eval_set: EvalSetFile, field: str) -> list[tuple[str, ...]]:
    """The case-folded texts of the cases of a set in a field; those of id and messages for ""."""
    texts: Iterable[tuple[str, ...]]
    match field:
        case "id":
            texts = ((case.eval_id,) for case in eval_set.cases)
        case "text":
            texts = (("\n".join(case.outline.texts),) for case in eval_set.cases)
        case "tool":
            texts = (case.outline.tools for case in eval_set.cases)
        case "set":
            texts = ((eval_set.eval_set_id,) for _ in eval_set.cases)
        case "tag":
            tags = eval_set.tags or {}
            texts = (tags.get(case.eval_id, ()) for case in eval_set.cases)
        case _:
            texts = ((case.eval_id, "\n".join(case.outline.texts)) for case in eval_set.cases)
    return [tuple(map(str.casefold, of_case)) for of_case in texts]


_Search = Callable[[str], object]
Reaching = Callable[[_Search], Collection[CaseId]]
"""The cases whose results have a cell of coverage with a matching name, which is in lower case and without
quotes."""


@dataclass(frozen=True)
class _TextTerm:
    """A filter term: a text in a field, or in id and text where no field is named."""

    field: str
    search: _Search
    negated: bool

    def matches(self, texts: Iterable[str]) -> bool:
        return any(map(self.search, texts)) is not self.negated


@dataclass(frozen=True)
class _ScoreTerm:
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

    texts: tuple[_TextTerm, ...] = ()
    scores: tuple[_ScoreTerm, ...] = ()
    statuses: frozenset[str] = frozenset()
    not_statuses: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Filter:
        texts: list[_TextTerm] = []
        scores: list[_ScoreTerm] = []
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
                    texts.append(
                        _TextTerm(name, _equals(quoted) if name in _WHOLE else _contains(quoted), negated)
                    )
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
                    scores.append(_ScoreTerm(compared["name"].casefold(), sign, number, negated))
            else:
                texts.append(_TextTerm(name, _pattern(word.casefold(), whole=name in _WHOLE), negated))
        included, excluded = frozenset(statuses[False]), frozenset(statuses[True])
        return cls(tuple(texts), tuple(scores), included, excluded, tuple(problems))

    def __bool__(self) -> bool:
        return bool(self.texts or self.scores or self.statuses or self.not_statuses)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)", text) else None


def _equals(text: str) -> _Search:
    return lambda value: value == text


def _contains(text: str) -> _Search:
    return lambda value: text in value


def _pattern(word: str, *, whole: bool = False) -> _Search:
    """A search for a word: anywhere in the value; with `*` or `?`, or as a `whole`, it must match the whole
    value."""
    if not _WILDCARD.search(word):
        return _equals(word) if whole else _contains(word)
    return re.compile(translate(word.replace("[", "[[]"))).match


class Filtered:
    """The cases that match the filter, as `{set: [numbers of its cases, from 0]}` in `matching`."""

    def __init__(self) -> None:
        self.text = ""
        self.filter = Filter()
        self.matching: dict[str, list[int]] = {}
        self._ids: dict[str, frozenset[str]] = {}
        self._sets: Sequence[EvalSetFile] = ()
        self._reaching: Reaching | None = None
        # By the path of a set and the field.
        self._folded: dict[tuple[str, str], list[tuple[str, ...]]] = {}

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
        if self._reaching is None and any(term.field == "reaches" for term in self.filter.texts):
            return f"reaches: needs a search for gaps   {key_of('gaps')}"
        return next(iter(self.filter.problems), None)

    def update(
        self,
        text: str,
        sets: Sequence[EvalSetFile],
        status: Callable[[CaseId], str],
        also: CaseId | None = None,
        scores: Callable[[Sequence[CaseId]], Mapping[CaseId, Scores]] = lambda cases: {},
        reaching: Reaching | None = None,
    ) -> None:
        """Filters again after a change of text, sets, outcomes or coverage, which is None before a search for
        gaps.

        `also` stays although its outcome or score has changed. `scores` returns the scores of the cases that
        match the other terms.
        """
        self.text = text
        self.filter = Filter.parse(text)
        self.matching, self._ids, self._reaching = {}, {}, reaching
        if sets is not self._sets or not self.filter:
            # The folded texts are as large as those of the cases: they are held only while they are searched.
            self._sets, self._folded = sets, {}
        for eval_set in sets if self.filter else ():
            if numbers := self._keep(eval_set, status, also, scores):
                self.matching[eval_set.case_path] = numbers

    def _texts(self, eval_set: EvalSetFile, field: str) -> list[tuple[str, ...]]:
        key = eval_set.case_path, field
        if key not in self._folded:
            self._folded[key] = _casefolded_texts(eval_set, field)
        return self._folded[key]

    def _keep(
        self,
        eval_set: EvalSetFile,
        status: Callable[[CaseId], str],
        also: CaseId | None,
        scores: Callable[[Sequence[CaseId]], Mapping[CaseId, Scores]],
    ) -> list[int]:
        current = self.filter
        numbers = list(range(len(eval_set.cases)))
        for term in current.texts:
            if term.field == "reaches":
                numbers = [*self._reach(eval_set, term, numbers)]
                continue
            texts = self._texts(eval_set, term.field)
            numbers = [number for number in numbers if term.matches(texts[number])]
        if not (current.statuses or current.not_statuses or current.scores):
            return numbers
        cases = [(number, CaseId(eval_set.case_path, eval_set.cases[number].eval_id)) for number in numbers]
        cases = [(number, case) for number, case in cases if case == also or self._has_status(status(case))]
        if not current.scores:
            return [number for number, _ in cases]
        values, nothing = scores([case for _, case in cases]), Scores()
        return [
            number
            for number, case in cases
            if case == also or all(term.holds(values.get(case, nothing)) for term in current.scores)
        ]

    def _reach(self, eval_set: EvalSetFile, term: _TextTerm, numbers: Sequence[int]) -> Iterable[int]:
        """The cases whose results have a cell, by their numbers."""
        if self._reaching is None:
            return numbers
        cases, path = self._reaching(term.search), eval_set.case_path
        return (
            number
            for number in numbers
            if (CaseId(path, eval_set.cases[number].eval_id) in cases) is not term.negated
        )

    def _has_status(self, outcome: str) -> bool:
        current = self.filter
        return outcome not in current.not_statuses and (not current.statuses or outcome in current.statuses)
