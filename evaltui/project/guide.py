"""The guide: one Markdown page per topic, in `evaltui/guide`; and the search in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import log
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "guide"

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Start": ("start", "howto", "workbench"),
    "Everyday work": (
        "cases",
        "results",
        "criteria",
        "judges",
        "chat",
        "watching",
        "repeats",
        "variants",
        "models",
        "recordings",
        "cost",
    ),
    "Automate and share": (
        "command-line",
        "ci",
        "pytest",
        "python",
        "share",
        "traces",
        "datasets",
        "scaling",
    ),
    "Connect": ("agents", "adk", "agents-cli", "troubleshooting"),
    "Look up": ("files", "options", "keys"),
}
"""Names of the pages by subject, in reading order."""

TOPICS = tuple(name for names in GROUPS.values() for name in names)
"""Names of the pages, in reading order."""

# With its line where it has one of its own.
# Not inside code, as `<!-- evaltui-report -->`, nor behind the key `[`.
_COMMENT = re.compile(r"^<!--.*?-->\n|<!--(?:(?!-->).)*-->(?!`)", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>\s*")
_PAGE_LINK = re.compile(r"(?<!`)\[([^\]]+)\]\(([\w-]+)\.md(?:#[\w-]*)?\)")
_REPOSITORY_LINK = re.compile(r"(?<!`)\[([^\]]+)\]\((?!https?:)[^)]*\)")
_HEADING = re.compile(r"#{1,6} +(.+)")
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class Topic:
    """A page of the guide."""

    name: str
    """The topic for `evaltui help`."""
    title: str
    summary: str
    """A summary in one line."""
    text: str
    """Markdown as a terminal shows it: no pictures and comments, links to pages as `evaltui help NAME`."""


@dataclass(frozen=True)
class Section:
    """A heading of a page, with the text up to the next heading."""

    topic: Topic
    title: str
    line: int
    """Line of the heading in the topic's text, 0-based."""
    text: str
    """The lines below the heading."""

    @property
    def label(self) -> str:
        """The title of the page, followed by that of the section if it differs."""
        return " › ".join(dict.fromkeys((self.topic.title, self.title)))


@cache
def topic(name: str) -> Topic:
    """Reads one of `TOPICS`."""
    text = _for_terminals(_read(name))
    title, summary = text.split("\n\n", 2)[:2]
    return Topic(name, title.removeprefix("# "), summary, text)


def topics() -> tuple[Topic, ...]:
    """Every page, in reading order."""
    return tuple(map(topic, TOPICS))


def sections(page: Topic) -> Iterator[Section]:
    """The sections of a page, the title's first. A `#` inside a code block is no heading."""
    lines = page.text.splitlines()
    starts, in_code = [], False
    for number, line in enumerate(lines):
        in_code ^= line.startswith("```")
        if not in_code and _HEADING.fullmatch(line):
            starts.append(number)
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield Section(page, lines[start].lstrip("# "), start, "\n".join(lines[start + 1 : end]).strip())


def written_pages() -> dict[str, str]:
    """File names and texts of all pages as plain Markdown, and of `llms.txt`, which lists them."""
    pages = {f"{name}.md": _plain(_read(name)) for name in TOPICS}
    listed = "# evaltui\n\n> A terminal workbench that tests LLM agents: eval sets, runs, differences, CI.\n"
    for group, names in GROUPS.items():
        rows = "".join(f"- [{topic(name).title}]({name}.md): {topic(name).summary}\n" for name in names)
        listed += f"\n## {group}\n\n{rows}"
    return {**pages, "llms.txt": listed}


def _read(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def _plain(text: str) -> str:
    """A page without comments and pictures."""
    return _BLANK_LINES.sub("\n\n", _PICTURE.sub("", _COMMENT.sub("", text)))


def _for_terminals(text: str) -> str:
    text = _PAGE_LINK.sub(r"\1 (`evaltui help \2`)", _plain(text))
    return _REPOSITORY_LINK.sub(r"\1", text)


_WORD = re.compile(r"[\w.@/-]*\w")
# Words of questions.
_QUESTION = (
    "a about all an and are as at be but by can cannot do does for from get has have how i if in into "
    "is it its me my no not now of on one or our so than that the their them then there these this to "
    "two use was we what when where which who why will with without you your"
)
_STOP = frozenset(_QUESTION.split())
_ITEM = re.compile(r"- |\d+\. ")
_ENDS = re.compile(r"(?<=\w{3})(?:ings?|ables?|ed|es|s|ly)$|(?<=\w{5})e$")
# How much a word counts in the heading of a section, in the title of its page, anywhere in its text, and in
# the passage with most of the words.
_IN_HEADING, _IN_TITLE, _IN_TEXT, _TOGETHER = 3.0, 1.0, 0.5, 3.0
# Of a page to look up names, whose headings are in every search.
_OF_NAMES = 0.6
# Of the best score: a section with less is no match.
_LEAST = 0.4
# Of the weight of all words: with so much in its heading, a section is shown from its beginning.
_OF_HEADING = 0.4
# Lines of a section that is shown from its beginning.
_MAX_LINES = 24


@dataclass(frozen=True)
class Match:
    """A section that a search found."""

    section: Section
    passage: str
    """The beginning of the section if its heading has most of the words; else its paragraph, list item or
    table row with the most of them, as Markdown."""

    @property
    def first_line(self) -> str:
        """The first line with text in the passage, without Markdown marks; "" for none."""
        lines = [line.strip("|- ") for line in self.passage.splitlines() if re.match(r"[\w|*-]", line)]
        # Of a table row, the head and the rule stand above it.
        row = lines[2:3] if self.passage.startswith("|") else lines[:1]
        return row[0].replace("**", "").replace("`", "") if row else ""


class _Indexed(NamedTuple):
    """A section in lower case."""

    section: Section
    heading: str
    title: str
    parts: tuple[str, ...]


@cache
def _index() -> tuple[_Indexed, ...]:
    return tuple(
        _Indexed(
            section,
            section.title.casefold(),
            f"{page.name} {page.title}".casefold(),
            tuple(part.casefold() for part in _parts(section.text)),
        )
        for page in topics()
        for section in sections(page)
    )


def search(words: str) -> list[Match]:
    """Sections with the words, the best first.

    Upper and lower case and the ends of words do not matter, nor do words such as `how` and `the`. A rare
    word counts more than a frequent one, a word in a heading more than one in a text.
    """
    telling = (word for word in _WORD.findall(words.casefold()) if word not in _STOP)
    terms = [*dict.fromkeys(_ENDS.sub("", word) for word in telling)]
    index = _index()
    hits = {term: [[_has(part, term) for part in entry.parts] for entry in index] for term in terms}
    # 1 for a word of every section, more for a rarer one.
    weights = {term: 1 + log(len(index) / max(1, sum(map(any, hits[term])))) for term in terms}
    scores = [
        (_score(entry, weights, {term: hits[term][number] for term in terms}), number)
        for number, entry in enumerate(index)
    ]
    best = max(scores, default=(0.0, 0))[0]
    ranked = sorted((-score, number) for score, number in scores if score and score >= best * _LEAST)
    return [Match(index[number].section, _passage(index[number].section, weights)) for _, number in ranked]


def _has(text: str, stem: str) -> bool:
    """Whether a word of the text, in lower case, begins with the stem: `rename` with `renam`."""
    # Looking for the letters first spares most of the regexes.
    return stem in text and bool(_beginning_with(stem).search(text))


@cache
def _beginning_with(stem: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){re.escape(stem)}")


_Weights = Mapping[str, float]


def _score(entry: _Indexed, weights: _Weights, hits: Mapping[str, list[bool]]) -> float:
    """0 for a section without any of the words; `hits` says which of its parts have a word."""
    in_text = sum(weights[term] for term in weights if any(hits[term]))
    heading = _weight(entry.heading, weights)
    if not in_text and not heading:
        return 0.0
    together = max(
        (sum(weights[term] for term in weights if hits[term][part]) for part in range(len(entry.parts))),
        default=0.0,
    )
    title = _weight(entry.title, weights)
    score = _IN_HEADING * heading + _IN_TITLE * title + _IN_TEXT * in_text + _TOGETHER * together
    return score * (_OF_NAMES if entry.section.topic.name in GROUPS["Look up"] else 1)


def _weight(text: str, weights: _Weights) -> float:
    """The sum of the weights of the words in a text."""
    text = text.casefold()
    return sum(weight for term, weight in weights.items() if _has(text, term))


def _passage(section: Section, weights: _Weights) -> str:
    is_table = section.text.startswith("|")
    if not is_table and _weight(section.title, weights) >= _OF_HEADING * sum(weights.values()):
        return _beginning(section.text)

    def value(part: str) -> tuple[float, bool]:
        return _weight(part, weights), "```" in part

    return _beginning(max(_parts(section.text), key=value, default=""))


def _beginning(text: str) -> str:
    """The first lines of a text; whole blocks if it is longer."""
    lines = text.strip().splitlines()
    if len(lines) <= _MAX_LINES:
        return "\n".join(lines)
    blank = [number for number in range(3, _MAX_LINES) if not lines[number]]
    outside = [number for number in blank if not sum(line.startswith("```") for line in lines[:number]) % 2]
    end = outside[-1] if outside else _MAX_LINES
    cut = lines[:end]
    return "\n".join([*cut, *(["```"] if sum(line.startswith("```") for line in cut) % 2 else []), "", "…"])


def _parts(text: str) -> Iterator[str]:
    """Paragraphs with the code, table or list that they introduce, list items, table rows with the head."""
    blocks: list[str] = []
    in_code = False
    for block in text.split("\n\n"):
        introduced = block.startswith("```") and blocks and not blocks[-1].startswith(("|", "-"))
        if in_code or introduced:
            blocks[-1] += f"\n\n{block}"
        else:
            blocks.append(block)
        in_code ^= block.count("```") % 2 == 1
    for block, following in pairwise([*blocks, ""]):
        lines = block.splitlines()
        if block.startswith("|") and len(lines) > 2:
            yield from ("\n".join([*lines[:2], row]) for row in lines[2:])
        elif _ITEM.match(block):
            yield from re.split(r"\n(?=- |\d+\. )", block)
        elif block.endswith(":") and (following.startswith("|") or _ITEM.match(following)):
            yield f"{block}\n\n{following}"
        else:
            yield block
