"""The guide: one Markdown page per topic, in `evaltui/guide`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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
        "recordings",
        "cost",
    ),
    "Automate and share": ("command-line", "ci", "pytest", "python", "share", "traces", "scaling"),
    "Connect": ("agents", "adk", "troubleshooting"),
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

    @property
    def label(self) -> str:
        """The title of the page, and that of the section if it is another one."""
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
