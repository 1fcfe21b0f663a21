"""The words that users read: no string of the product and no page has a refused phrase or plural."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_manual import every_page, text_of, without_code

ROOT = Path(__file__).parent.parent
PRODUCT = ROOT / "evaltui"
REFUSED = [
    (re.compile(phrase, re.IGNORECASE | re.MULTILINE), instead)
    for phrase, _, instead in (
        line.partition(" => ")
        for line in (ROOT / "tests" / "refused_words.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
]
# Errors of a developer, and patterns for texts of others: no user reads them.
UNREAD_CALLS = {"compile", "AssertionError", "RuntimeError", "startswith", "endswith", "AttributeError"}


def strings_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings of a module that may be read, with its line: of several words; no docstring, pattern or
    part of another one. Values in an f-string are `{}`."""
    unread: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            unread.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            unread |= {id(part) for part in node.values}
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in UNREAD_CALLS:
                unread |= {id(part) for argument in node.args for part in ast.walk(argument)}
    for node in ast.walk(tree):
        if id(node) in unread:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text and re.search("[A-Za-z]", text):
            yield node.lineno, text


def refused_in(text: str) -> Iterator[str]:
    for phrase, instead in REFUSED:
        if found := phrase.search(text):
            yield f"{found[0]!r} in {text[:90]!r}: write {instead!r}"


# How many are left in the screens; the number may only become smaller.
LEFT_IN_SCREENS = 20


def found_in_source(in_screens: bool) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {found}"
        for path in sorted(PRODUCT.rglob("*.py"))
        if path.is_relative_to(PRODUCT / "tui") == in_screens
        for line, text in strings_of(ast.parse(path.read_text(encoding="utf-8")))
        for found in refused_in(text)
    ]


def test_no_string_of_the_product_has_a_refused_phrase():
    assert not (found := found_in_source(in_screens=False)), "\n".join(found)


def test_the_screens_have_no_more_of_them():
    found = found_in_source(in_screens=True)
    assert len(found) <= LEFT_IN_SCREENS, "\n".join(found)


@every_page
def test_no_page_of_the_manual_has_one(page):
    lines = without_code(text_of(page)).splitlines()
    found = [f"{page.name}: {one}" for line in lines for one in refused_in(line)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["1 case(s)", "there is no case to run", "Whatever comes", "Please wait"])
def test_it_finds_a_refused_phrase_and_says_what_to_write(text):
    source = f'"""{text}"""\nsay(f"{text} {{name}}")'
    ((line, found),) = strings_of(ast.parse(source))
    assert line == 2
    assert "write '" in next(refused_in(found))
