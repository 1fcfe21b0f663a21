"""Syntax colours for values and code: pygments' tokens as roles."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from evaltui.text.figures import counted
from evaltui.text.lines import Line, Span, with_role
from evaltui.text.values import MAX_VALUE, show_change, show_value, visible

if TYPE_CHECKING:
    from pygments.lexer import Lexer

JSON = "json"
"""The role of a JSON value in one line; the colours are added when the line is drawn."""

# More is read by nobody, and takes long to draw.
MAX_LINES = 2_000
MAX_CHARACTERS = 200_000
# Longer texts are drawn once, when their page is written.
_MAX_CACHED_CHARACTERS = 16_000

# The first frame has no code: pygments waits for the first value.
_LEXERS: Mapping[str, tuple[str, str]] = {
    "json": ("pygments.lexers.data", "JsonLexer"),
    "yaml": ("pygments.lexers.data", "YamlLexer"),
    "python": ("pygments.lexers.python", "PythonLexer"),
    "pytb": ("pygments.lexers.python", "PythonTracebackLexer"),
    "markdown": ("pygments.lexers.markup", "MarkdownLexer"),
    "diff": ("pygments.lexers.diff", "DiffLexer"),
}
# What a fence of Markdown may call them.
_ALIASES = {"py": "python", "python3": "python", "yml": "yaml", "md": "markdown", "patch": "diff"}
# The first part of a token's name that is here counts, the longest before shorter ones.
_ROLES: Mapping[str, str] = {
    "Comment": "comment",
    # A text that was cut has no closing quote.
    "Error": "string",
    "Generic.Deleted": "error",
    "Generic.Error": "error",
    "Generic.Heading": "bold accent",
    "Generic.Inserted": "success",
    "Generic.Strong": "bold",
    "Generic.Subheading": "bold accent",
    "Generic.Traceback": "muted",
    "Keyword": "keyword",
    "Keyword.Constant": "number",
    "Literal.Number": "number",
    "Literal.String": "string",
    "Literal.String.Backtick": "number",
    "Literal.String.Doc": "comment",
    "Name.Class": "function",
    "Name.Decorator": "keyword",
    "Name.Exception": "keyword",
    "Name.Function": "function",
    "Name.Tag": "key",
    "Operator": "comment",
    "Operator.Word": "keyword",
    "Punctuation": "comment",
}


def code_lines(text: str, lexer: str) -> Sequence[Line]:
    """The lines of a code text, safe for terminals.

    `lexer` is one of json, yaml, python, pytb, markdown and diff; text in another language has no colours.
    After 2,000 lines or 200 KB, a last line tells how much is omitted.
    """
    return _cached_code(text, lexer) if len(text) <= _MAX_CACHED_CHARACTERS else _code_lines(text, lexer)


def value_line(data: Any, limit: int = MAX_VALUE) -> Line:
    """A value as JSON on one line, cut to `limit` characters with `…`."""
    return json_line(show_value(data, limit))


def change_lines(expected: Any, actual: Any, limit: int = MAX_VALUE) -> tuple[Line, Line]:
    """Two different values, each as by `value_line`, cut so that their first difference is visible."""
    before, after = show_change(expected, actual, limit)
    return json_line(before), json_line(after)


def json_line(text: str) -> Line:
    """A JSON text as one line in the role `JSON`."""
    lines = code_lines(text, "json")
    return list(lines[0]) if lines else []


def color_json(line: Sequence[Span]) -> Line:
    """The line with syntax colours for its JSON; the tints below them stay."""
    drawn: Line = []
    for text, role in line:
        if JSON in role:
            drawn += with_role(role.replace(JSON, "").strip(), json_line(text))
        else:
            drawn.append((text, role))
    return drawn


def arguments_line(args: Mapping[str, Any] | None, limit: int) -> Line:
    """The arguments of a call: ` location "Kitchen" degrees 19`, each value cut to `limit` characters; [] for
    no arguments. Colours are added when the line is drawn."""
    line: Line = []
    for name, data in (args or {}).items():
        line += [("  ", ""), (visible(str(name)), "key"), (" ", ""), (show_value(data, limit), JSON)]
    return line


@lru_cache(maxsize=1024)
def _cached_code(text: str, lexer: str) -> Sequence[Line]:
    return _code_lines(text, lexer)


def _code_lines(text: str, name: str) -> Sequence[Line]:
    name = _ALIASES.get(name, name)
    shown = "\n".join(text[:MAX_CHARACTERS].split("\n", MAX_LINES)[:MAX_LINES])
    lines = (
        _plain_lines(shown)
        if name not in _LEXERS or len(text) > MAX_CHARACTERS
        else _color_lines(shown, name)
    )
    left_out = text.count("\n") + 1 - len(lines)
    if left_out > 0:
        lines.append([(f"… {counted(left_out, 'more line')}", "muted")])
    elif len(shown) < len(text):
        lines.append([(f"… {counted(len(text) - len(shown), 'more character')}", "muted")])
    return lines


def _plain_lines(text: str) -> list[Line]:
    return [[(_safe_text(line), "")] if line else [] for line in text.split("\n")]


def _color_lines(text: str, name: str) -> list[Line]:
    lines: list[Line] = [[]]
    for token, written in _load_lexer(name).get_tokens(text):
        role = _traceback_role(str(token)) if name == "pytb" else _token_role(str(token))
        first, *others = written.split("\n")
        _add(lines[-1], first, role)
        for other in others:
            lines.append([])
            _add(lines[-1], other, role)
    # Lexers end a text with a line feed, whether it has one or not.
    return lines[: text.count("\n") + 1]


def _add(line: Line, text: str, role: str) -> None:
    if line and (line[-1][1] == role or (text.isspace() and "underline" not in line[-1][1])):
        line[-1] = (line[-1][0] + _safe_text(text), line[-1][1])
    elif text:
        line.append((_safe_text(text), role))


def _safe_text(text: str) -> str:
    return visible(text.removesuffix("\r").replace("\t", "    "))


@cache
def _token_role(token: str) -> str:
    name = token.removeprefix("Token.")
    while name and name not in _ROLES:
        name = name.rpartition(".")[0]
    return _ROLES.get(name, "")


def _traceback_role(token: str) -> str:
    """The role of a token of a traceback; file names are marked as links."""
    return "underline function" if token == "Token.Name.Builtin" else _token_role(token)


@cache
def _load_lexer(name: str) -> Lexer:
    module, kind = _LEXERS[name]
    made: Lexer = getattr(importlib.import_module(module), kind)(stripnl=False, ensurenl=True)
    return made
