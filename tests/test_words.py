"""The words that users read: no string of the product and no page has a refused phrase or a figure made by
hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from evaltui.commands.command_table import COMMANDS
from evaltui.commands.parser import parser_of
from evaltui.workbench.actions import ACTIONS
from evaltui.workbench.workbench import Workbench
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


@cache
def modules() -> dict[str, ast.Module]:
    """The modules of the product by their paths; each process of the tests imports this file, one asks."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PRODUCT.rglob("*.py"))
    }


# Errors of a developer, and patterns for texts of others: no user reads them.
UNREAD_CALLS = {"compile", "AssertionError", "startswith", "endswith"}


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
            text = joined(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text and re.search("[A-Za-z]", text):
            yield node.lineno, text


def joined(node: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def refused_in(text: str) -> Iterator[str]:
    for phrase, instead in REFUSED:
        if found := phrase.search(text):
            yield f"{found[0]!r} in {text[:90]!r}: write {instead!r}"


def test_no_string_of_the_product_has_a_refused_phrase():
    found = [
        f"{path}:{line}: {phrase}"
        for path, tree in modules().items()
        for line, text in strings_of(tree)
        for phrase in refused_in(text)
    ]
    assert not found, "\n".join(found)


@every_page
def test_no_page_of_the_manual_has_one(page):
    found = [f"{page.name}: {one}" for one in refused_in(without_code(text_of(page)))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_help_of_a_command_has_one(command):
    parser = parser_of(command)
    assert not list(refused_in(" ".join(parser.format_help().split())))


@pytest.mark.parametrize("text", ["1 case(s)", "there is no case to run", "Whatever comes", "Please wait"])
def test_it_finds_a_refused_phrase_and_says_what_to_write(text):
    source = f'"""{text}"""\nsay(f"{text} {{name}}")'
    ((line, found),) = strings_of(ast.parse(source))
    assert line == 2
    assert "write '" in next(refused_in(found))


def test_titles_are_short_and_footers_shorter():
    assert [action.title for action in ACTIONS if len(action.title.split()) > 4] == []
    assert [
        word
        for action in ACTIONS
        if action.rank is not None
        and len((word := action.footer_word(Workbench(Path("nowhere")))).split()) > 2
    ] == []
    assert [action.title for action in ACTIONS if not action.title[0].isupper()] == []


# Figures

NOUNS = (
    "agents|arguments|calls|cases|characters|criteria|differences|edits|entries|errors|events|files|keys|lines|"
    "messages|metrics|repeats|requests|responses|results|rules|runs|sets|times|tokens|tools|turns|values|"
    "votes|warnings"
)
MANY = re.compile(rf"\{{\}} (?:(?:equal|expected|live|model|more|other|tool) )?(?:{NOUNS})\b(?! the\b)")
BY_HAND = re.compile(r"[.,_%]")
# The module that makes figures; names of recovery files and times in JUnit are read by programs.
MAKES_FIGURES = ("evaltui/text/figures.py", "evaltui/documents/recovery.py", "evaltui/reports/junit.py")


def by_hand(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Plurals and numbers that a module makes itself, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and is_one(node.test) and of_one_noun(node.body, node.orelse):
            yield node.lineno, f"{ast.unparse(node)}: plural() or counted()"
        elif isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            form = joined(node.format_spec)
            if BY_HAND.search(form):
                yield node.lineno, f"{ast.unparse(node.value)}:{form}: a show_… function"
        elif isinstance(node, ast.JoinedStr) and (found := MANY.search(joined(node))):
            yield node.lineno, f"{found[0]}: counted()"
        elif isinstance(node, ast.JoinedStr):
            yield from ((node.lineno, f"{made}: show_number()") for made in counts_without_commas(node))


def counts_without_commas(node: ast.JoinedStr) -> Iterator[str]:
    """Lengths that are said to be more, or some of many, as they are."""
    for part, behind in pairwise(node.values):
        is_plain = isinstance(part, ast.FormattedValue) and part.format_spec is None
        if is_plain and isinstance(behind, ast.Constant) and re.match(r" more\b| of |/", str(behind.value)):
            made = ast.unparse(part.value)
            if made.startswith("len("):
                yield made


def is_one(test: ast.expr) -> bool:
    """Whether a number is compared with one."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Eq | ast.NotEq)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == 1
    )


def of_one_noun(one: ast.expr, other: ast.expr) -> bool:
    """Whether two texts are the singular and the plural of something."""
    if not all(isinstance(text, ast.JoinedStr | ast.Constant) for text in (one, other)):
        return False
    texts = [joined(text) if isinstance(text, ast.JoinedStr) else str(text.value) for text in (one, other)]
    stems = [{word.removesuffix("s") for word in text.split()} - {"{}"} for text in texts]
    return "s" in texts or ("counted(" not in ast.unparse(other) and bool(stems[0] & stems[1]))


def test_figures_are_made_in_one_module():
    found = [
        f"{path}:{line}: {one}"
        for path, tree in modules().items()
        if path not in MAKES_FIGURES
        for line, one in by_hand(tree)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "made",
    [
        "f\"{n} line{'' if n == 1 else 's'}\"",
        '"the case" if n == 1 else f"all {n} cases"',
        'f"{n} calls"',
        'f"{n} live calls"',
        'f"{score:.2f}"',
        'f"{rate:.0%}"',
        'f"{n:,}"',
        'f"and {len(cases) - 3} more"',
        "f\"{len(some)} of {counted(m, 'case')} left out\"",
        'f"{when:%H:%M}"',
    ],
)
def test_it_finds_figures_made_by_hand(made):
    assert list(by_hand(ast.parse(made)))


@pytest.mark.parametrize(
    "made",
    [
        "f\"{counted(n, 'call')} live\"",
        'f"{name:<{width}}"',
        'f"{show_score(score):>6}"',
        '"key" if n == 1 else f"key_{n}"',
        'f"{name} tests"',
        'f"and {show_number(n)} more"',
    ],
)
def test_other_formats_are_fine(made):
    assert not list(by_hand(ast.parse(made)))
