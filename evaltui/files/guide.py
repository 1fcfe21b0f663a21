"""The guide: one Markdown page per topic, in `evaltui/guide`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evaltui.text.values import nearest

FOLDER = Path(__file__).parents[1] / "guide"

TOPICS = (
    "workbench",
    "keys",
    "cases",
    "results",
    "variants",
    "criteria",
    "statistics",
    "cost",
    "limits",
    "judges",
    "chat",
    "recordings",
    "watching",
    "serving",
    "headless",
    "ci",
    "scaling",
    "traces",
    "python",
    "pytest",
    "formats",
    "adk",
    "agents",
    "benchmarks",
    "architecture",
)
"""Names of the pages, in reading order."""

# With its line where it has one of its own.
_COMMENT = re.compile(r"^<!--.*?-->\n|<!--.*?-->", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>\s*")
_PAGE_LINK = re.compile(r"\[([^\]]+)\]\((\w+)\.md(?:#[\w-]*)?\)")
_REPOSITORY_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
_HEADING = re.compile(r"#{1,6} +(.+)")
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class Topic:
    """A page of the guide."""

    name: str
    """The topic for `evaltui help`."""
    title: str
    summary: str
    """One line."""
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


class UnknownTopicError(ValueError):
    """No page has this name; the message is one line."""


@cache
def topic(name: str) -> Topic:
    """Reads a page. Raises UnknownTopicError."""
    if name not in TOPICS:
        hit = nearest(name, TOPICS)
        hint = f"Did you mean {hit}? " if hit else ""
        raise UnknownTopicError(f"unknown topic {name!r}. {hint}`evaltui help` lists the topics.")
    text = _for_terminals((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
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


def search(words: str) -> list[Section]:
    """Sections with all of the words, upper and lower case alike; those with one in the heading first."""
    terms = words.casefold().split()
    matches = [
        section
        for page in topics()
        for section in sections(page)
        if all(word in f"{section.title}\n{section.text}".casefold() for word in terms)
    ]
    return sorted(matches, key=lambda section: not any(word in section.title.casefold() for word in terms))


def _for_terminals(text: str) -> str:
    text = _PICTURE.sub("", _COMMENT.sub("", text))
    text = _PAGE_LINK.sub(r"\1 (`evaltui help \2`)", text)
    return _BLANK_LINES.sub("\n\n", _REPOSITORY_LINK.sub(r"\1", text))
