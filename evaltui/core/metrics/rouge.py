"""ROUGE-1 for every script.

The words are those of google-adk 2.13 (`final_response_match_v1`): scripts written without spaces are cut
into characters or grapheme clusters, ASCII words are stemmed by rouge_score, others are kept as they are.
"""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

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
    """The F-measure of the words that two texts share, from 0.0 to 1.0; 0.0 where either has no word."""
    given, wanted = Counter(words(candidate)), Counter(words(reference))
    if not given or not wanted:
        return 0.0
    # Equal words have equal stems: most runs need no stemmer at all.
    if given == wanted:
        return 1.0
    given, wanted = _stems(given), _stems(wanted)
    overlap = (given & wanted).total()
    if not overlap:
        return 0.0
    precision, recall = overlap / given.total(), overlap / wanted.total()
    return 2 * precision * recall / (precision + recall)


def words(text: str) -> list[str]:
    """The words of a text before stemming, in lower case and compatibility-composed (NFKC)."""
    return "".join(map(_spaced, unicodedata.normalize("NFKC", text).lower())).split()


@lru_cache(maxsize=4096)
def _spaced(char: str) -> str:
    code = ord(char)
    if any(first <= code <= last for first, last in _CJK):
        return f" {char} "
    # Marks, such as vowel signs, are not alphanumeric but belong to the letter before them.
    if unicodedata.category(char).startswith("M"):
        return char
    if any(first <= code <= last for first, last in _NO_SPACES):
        return f" {char}"
    return char if char.isalnum() else " "


def _stems(counts: Counter[str]) -> Counter[str]:
    stems: Counter[str] = Counter()
    for word, count in counts.items():
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
    """Inside, a module of NLTK loads without the rest of NLTK, which its packages import when they load.

    That is SciPy, scikit-learn and pandas where they are installed: two seconds and 170 MB, none of which the
    Porter stemmer needs. Afterwards NLTK counts as not imported, so that who wants it gets the whole of it.
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
    """A package whose modules can be imported, and whose own code has not been run."""
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return module_from_spec(spec)
