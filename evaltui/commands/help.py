"""`evaltui help`: the list of pages, a page, a search in all of them."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.theme import Theme

from evaltui.commands.command_table import COMMAND_NAMES
from evaltui.commands.output import UsageError, complain, write_stdout
from evaltui.commands.parser import parser_of
from evaltui.project.guide import GROUPS, TOPICS, search, topic, written_pages
from evaltui.text.figures import counted
from evaltui.text.values import nearest_word

# Longer lines are hard to read, however wide the terminal is.
_WIDEST = 100
# The exit code of a shell.
_NOT_FOUND = 127
# Of a search: passages, then titles only.
_MAX_PASSAGES = 3
_MAX_TITLES = 5


def show_help(options: argparse.Namespace) -> int:
    """Prints the list of pages, a page, or the passages that a search finds; returns the exit code.

    With a folder, writes the pages into it instead. The name of a command that no page has prints its help.
    """
    if options.markdown is not None:
        return _write_pages(options.markdown)
    query = " ".join(options.words)
    if query in COMMAND_NAMES and query not in TOPICS:
        parser_of(query).print_help()
        return 0
    text = _list() if not query else topic(query).text if query in TOPICS else _passages(query)
    if not sys.stdout.isatty():
        write_stdout(text)
        return 0
    size = shutil.get_terminal_size()
    drawn = _drawn(text, min(size.columns, _WIDEST)) if query else text
    if drawn.count("\n") < size.lines:
        write_stdout(drawn)
    else:
        _page(drawn)
    return 0


def _list() -> str:
    width = max(map(len, TOPICS))
    text = ""
    for group, names in GROUPS.items():
        rows = "".join(f"  {name:{width}}  {topic(name).summary}\n" for name in names)
        text += f"{group}:\n{rows}\n"
    return (
        f"{text}evaltui help PAGE       show a page\nevaltui help WORDS      search all pages\n"
        "evaltui COMMAND --help  show options\n"
    )


def _passages(query: str) -> str:
    """The passages that a search finds, as Markdown. Raises UsageError."""
    matches = search(query)
    if not matches:
        hit = nearest_word(query, TOPICS)
        hint = f"Did you mean {hit}? " if hit else ""
        raise UsageError(f"no page has {query!r}. {hint}`evaltui help` lists the pages.")
    shown = "".join(
        f"## {match.section.label}\n\n{match.passage}\n\n`evaltui help {match.section.topic.name}`\n\n"
        for match in matches[:_MAX_PASSAGES]
    )
    others = matches[_MAX_PASSAGES : _MAX_PASSAGES + _MAX_TITLES]
    rows = "".join(
        f"- {match.section.label} (`evaltui help {match.section.topic.name}`)\n" for match in others
    )
    return f"{shown}## More\n\n{rows}" if others else shown.rstrip() + "\n"


def _write_pages(folder: Path) -> int:
    """Writes the pages as Markdown, and the `llms.txt` that lists them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in written_pages().items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        return complain("help", f"--markdown: {folder}: {error.strerror}")
    write_stdout(f"{folder}: {counted(len(TOPICS), 'page')} and llms.txt\n")
    return 0


class _LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Page(Markdown):
    elements: ClassVar = {**Markdown.elements, "heading_open": _LeftHeading}


def _drawn(text: str, width: int) -> str:
    """Markdown with styles, headings at the left."""

    # The terminal's own background stays behind code, whether it is dark or light.
    theme = Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold cyan"})
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=width, theme=theme)
    console.print(_Page(text, code_theme="ansi_dark", hyperlinks=False))
    return out.getvalue()


def _page(text: str) -> None:
    """Shows a text in $PAGER, `less` by default; prints it without a pager if that is empty or not found."""
    pager = os.environ.get("PAGER", "less").strip() or "cat"
    environment = {"LESS": "FRX", **os.environ}
    shown = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, env=environment)
    # ctrl+c belongs to the pager now.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        shown.communicate(text.encode())
    finally:
        signal.signal(signal.SIGINT, handler)
    if shown.returncode == _NOT_FOUND:
        write_stdout(text)
