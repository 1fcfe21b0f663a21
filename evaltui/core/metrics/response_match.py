"""`response_match_score`: the words that answer and expected answer share, as ROUGE-1 for every script.

Words are those of google-adk 2.13 (`final_response_match_v1`): text in scripts without spaces is split into
characters or grapheme clusters, ASCII words are stemmed by rouge_score, others are unchanged.
"""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec, module_from_spec
from itertools import zip_longest
from types import ModuleType
from typing import Any

from evaltui.core.conversation.waiting import REQUESTS
from evaltui.core.metrics.declaration import MetricInfo, metric
from evaltui.core.metrics.metric import (
    MetricInput,
    TurnScore,
    effective_threshold,
    left_out_turns,
    score_against_expected,
)
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import (
    EvalCase,
    Invocation,
    scored_text,
    tool_calls,
)
from evaltui.core.model.outcome import MetricResult
from evaltui.text.figures import plural, short_list, show_score

_CJK = (
    (0x4E00, 0x9FFF),  # ideographs
    (0x3040, 0x309F),  # hiragana
    (0x30A0, 0x30FF),  # katakana
    (0xAC00, 0xD7AF),  # hangul
)
_NO_SPACES = (
    (0x0E00, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x1780, 0x17FF),  # Khmer
    (0x1000, 0x109F),  # Myanmar
)


def rouge_1_f(candidate: str, reference: str) -> float:
    """The F-measure of the words that two texts share, from 0.0 to 1.0; 0.0 if one has no words."""
    candidate_words, reference_words = _word_counts(candidate), _word_counts(reference)
    if not candidate_words or not reference_words:
        return 0.0
    # Equal words have equal stems: most runs need no stemmer at all.
    if candidate_words == reference_words:
        return 1.0
    candidate_words, reference_words = _stem_counts(candidate), _stem_counts(reference)
    overlap = (candidate_words & reference_words).total()
    if not overlap:
        return 0.0
    precision, recall = overlap / candidate_words.total(), overlap / reference_words.total()
    return 2 * precision * recall / (precision + recall)


def same_words(text: str, other: str) -> bool:
    """Whether two texts have the same words, without regard to order, case, punctuation and white space."""
    return _word_counts(text) == _word_counts(other)


def words(text: str) -> list[str]:
    """The words of a text before stemming, in lower case and compatibility-composed (NFKC)."""
    return "".join(map(_space_out, unicodedata.normalize("NFKC", text).lower())).split()


@lru_cache(maxsize=4096)
def _space_out(char: str) -> str:
    code = ord(char)
    if any(first <= code <= last for first, last in _CJK):
        return f" {char} "
    # Marks, such as vowel signs, are not alphanumeric but belong to the letter before them.
    if unicodedata.category(char).startswith("M"):
        return char
    if any(first <= code <= last for first, last in _NO_SPACES):
        return f" {char}"
    return char if char.isalnum() else " "


# A text is often compared with several others.
@lru_cache(maxsize=64)
def _word_counts(text: str) -> Counter[str]:
    return Counter(words(text))


@lru_cache(maxsize=64)
def _stem_counts(text: str) -> Counter[str]:
    stems: Counter[str] = Counter()
    for word, count in _word_counts(text).items():
        stems[_stem(word) if word.isascii() else word] += count
    return stems


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    return "".join(_ascii_tokenizer().tokenize(word))


@lru_cache(maxsize=1)
def _ascii_tokenizer() -> Any:
    with _stemmer_alone():
        from rouge_score.tokenizers import DefaultTokenizer  # type: ignore[import-untyped]

    return DefaultTokenizer(use_stemmer=True)


@contextmanager
def _stemmer_alone() -> Iterator[None]:
    """Lets a module of NLTK be imported without the rest of NLTK during its block.

    NLTK's packages import SciPy, scikit-learn and pandas if they are installed: two seconds and 170 MB that
    the Porter stemmer does not need. Afterwards NLTK counts as not imported, so that others can import all of
    it.
    """
    if "nltk" in sys.modules:
        yield
        return
    try:
        for name in ("nltk", "nltk.stem"):
            sys.modules[name] = _empty_package(name)
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "nltk"]:
            del sys.modules[name]


def _empty_package(name: str) -> ModuleType:
    """A package object for importing its modules without running its own code."""
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return module_from_spec(spec)


@metric(
    MetricInfo(
        "Word overlap with the expected response (ROUGE-1 F).",
        ("expected turns",),
        compares="response",
        label="response",
    )
)
def response_match_score(inputs: MetricInput) -> MetricResult:
    """ROUGE-1 F of the responses, the mean over turns.

    Raises CriterionError without a threshold. A turn that is expected to wait for the user needs no text;
    without a text, its score is 1.0 if it waits.
    """
    waits = {id(inputs.actual[turn]): names for turn, names in turns_without_text(inputs).items()}

    def score_turn(expected: Invocation, actual: Invocation) -> TurnScore:
        if (awaited := waits.get(id(actual))) is not None:
            return _waiting_score(awaited, actual)
        expected_text = scored_text(expected, thoughts=inputs.thoughts)
        actual_text = scored_text(actual, thoughts=inputs.thoughts)
        score = rouge_1_f(actual_text, expected_text)
        absent = "no response text"
        if actual.output is not None:
            absent = "no text, but an output" + ("" if inputs.as_adk else f". {SCORE_OUTPUTS}")
        return TurnScore(score, _shortfall(score, actual_text, expected_text, absent))

    return score_against_expected(inputs, score_turn, left_out_turns(inputs, compares="responses"))


def turns_without_text(inputs: MetricInput) -> dict[int, frozenset[str]]:
    """Names of expected waiting calls by turn (from 0), for turns without a text on either side."""
    if inputs.as_adk or inputs.expected is None:
        return {}
    return {
        number: names
        for number, names in awaited_calls(inputs.expected).items()
        if number < len(inputs.actual)
        and not scored_text(inputs.expected[number], thoughts=inputs.thoughts)
        and not scored_text(inputs.actual[number], thoughts=inputs.thoughts)
    }


def awaited_calls(turns: Sequence[Invocation]) -> dict[int, frozenset[str]]:
    """Names of calls that are expected to wait for the user's response, by turn (from 0)."""
    awaited = {}
    for number, (turn, following) in enumerate(zip_longest(turns, turns[1:])):
        parts = (following.user_content.parts or []) if following else []
        responded = {part.function_response.name for part in parts if part.function_response}
        if names := _call_names(turn) & (REQUESTS | responded):
            awaited[number] = names
    return awaited


def _waiting_score(awaited: frozenset[str], actual: Invocation) -> TurnScore:
    if awaited & _call_names(actual):
        return TurnScore(1.0)
    return TurnScore(0.0, f"no response text and no call of {' or '.join(sorted(awaited))}")


def _call_names(turn: Invocation) -> frozenset[str]:
    return frozenset(call.name or "" for call in tool_calls(turn.intermediate_data))


def _shortfall(score: float, actual_text: str, expected_text: str, absent: str) -> str:
    if score == 1.0:
        return ""
    if not expected_text:
        return "no response expected, so none can match"
    if not actual_text:
        return absent
    if not words(expected_text) or not words(actual_text):
        return "no words to compare, only punctuation or symbols"
    return f"response match {show_score(score)}"


SCORE_OUTPUTS = 'Set "outputs": "score" in the evaltui block of the config to score it'
_METRIC_NAME = "response_match_score"
_TURNS_NAMED = 3


def never_passes(
    case: EvalCase, config: EvalConfig, context: Collection[int], outputs: Collection[int] = ()
) -> str:
    """Why a case can never pass, and the remedy; "" where it can pass.

    Turns count from 0: those in `context` are not scored, those in `outputs` have an output as response.
    """
    threshold = next(
        (effective_threshold(metric) for metric in config.metrics() if metric.metric_name == _METRIC_NAME),
        None,
    )
    scored = {
        number: scored_text(turn, thoughts=config.evaltui.thoughts == "score")
        for number, turn in enumerate(case.conversation or [])
        if number not in context and (case.checks_unspecified or turn.final_response is not None)
    }
    needs_no_text = awaited_calls(case.conversation or [])
    returned = [number for number in scored if number in outputs and config.evaltui.outputs != "score"]
    wordless = [
        number for number, text in scored.items() if not words(text) and (text or number not in needs_no_text)
    ]
    failing = {*wordless, *returned}
    if threshold is None or not failing or (len(scored) - len(failing)) / len(scored) >= threshold:
        return ""
    named = short_list([str(number + 1) for number in returned or wordless], _TURNS_NAMED)
    if returned:
        turns = plural(len(returned), f"turn {named} has", f"turns {named} have")
        return f"fails: {turns} no text, but an output. {SCORE_OUTPUTS}"
    turns = plural(len(wordless), f"turn {named} expects", f"turns {named} expect")
    return (
        f"never passes: {turns} a response without words; {_METRIC_NAME} scores it 0 "
        f"(threshold {threshold:g}). Mark it as context, or remove {_METRIC_NAME} from the config"
    )
