"""`evaltui help`: the list of topics, and the pages of the guide."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from io import StringIO
from typing import ClassVar

from evaltui.commands.output import complain, write_stdout
from evaltui.files.guide import UnknownTopicError, topic, topics

# Longer lines are hard to read, however wide the terminal is.
_WIDEST = 100
# The exit code of a shell.
_NOT_FOUND = 127


def show_help(name: str | None) -> int:
    """Prints a page, or the list of topics; returns the exit code."""
    try:
        text = _list() if name is None else topic(name).text
    except UnknownTopicError as error:
        return complain("help", error)
    if not sys.stdout.isatty():
        write_stdout(text)
        return 0
    size = shutil.get_terminal_size()
    drawn = text if name is None else _drawn(text, min(size.columns, _WIDEST))
    if drawn.count("\n") < size.lines:
        write_stdout(drawn)
    else:
        _page(drawn)
    return 0


def _list() -> str:
    pages = topics()
    width = max(len(page.name) for page in pages)
    rows = "".join(f"  {page.name:{width}}  {page.summary}\n" for page in pages)
    return f"Topics:\n{rows}\nevaltui help TOPIC      show a page\nevaltui COMMAND --help  show options\n"


def _drawn(text: str, width: int) -> str:
    """Markdown with styles, headings at the left."""
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Heading, Markdown
    from rich.theme import Theme

    class LeftHeading(Heading):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            self.text.justify = "left"
            yield self.text

    class Page(Markdown):
        elements: ClassVar = {**Markdown.elements, "heading_open": LeftHeading}

    # The terminal's own background stays behind code, whether it is dark or light.
    theme = Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold cyan"})
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=width, theme=theme)
    console.print(Page(text, code_theme="ansi_dark", hyperlinks=False))
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
