"""Names and docstrings say what a thing is, and tests come in through the seams: the counts only fall."""

import ast
import re
from pathlib import Path

import pytest
from concerning import ROOT, imports

import evaltui

PACKAGE = Path(evaltui.__file__).parent

MOST_VAGUE_NAMES = 6
MOST_RIDDLES = 0
MOST_IMPORTS_INSIDE = 1566

VAGUE = re.compile(
    r"_*(ones?|found|known|given|wanted|asked|said|kept|told|taken|came|come|meant|begun|begins?|looks?|takes?"
    r"|tells?|things?|stuff|obj)"
)
# How docstrings begin that must be decoded.
RIDDLE = re.compile(r"(What|That|As|Those|Whatever|Whoever|Nobody|Nothing|Of|None of|So|Such|The things?)\b")
# What tests may import: public names, the data they hold, and where each front end begins.
SEAMS = (
    "evaltui/__init__.py",
    "evaltui/cli.py",
    "evaltui/core/model/",
    "evaltui/documents/case_file.py",
    "evaltui/documents/edits.py",
    "evaltui/events.py",
    "evaltui/pytest_plugin.py",
    "evaltui/runs/run_file.py",
    "evaltui/runs/store.py",
    "evaltui/tui/app.py",
    "evaltui/workbench/actions/__init__.py",
    "evaltui/workbench/messages.py",
    "evaltui/workbench/state.py",
    "evaltui/workbench/workbench.py",
)


@pytest.fixture(scope="module")
def trees():
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def names_in(tree):
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name


def docstrings_in(tree):
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else ():
            match part:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield part.lineno, text


def listed(places):
    return "\n".join(f"{path.relative_to(ROOT)}:{line}: {text}" for path, line, text in places)


def test_names_say_what_a_thing_is(trees):
    vague = [
        (path, line, name)
        for path, tree in trees.items()
        for line, name in names_in(tree)
        if VAGUE.fullmatch(name)
    ]
    assert len(vague) <= MOST_VAGUE_NAMES, listed(vague)


def test_docstrings_need_no_decoding(trees):
    riddles = [
        (path, line, text.strip().splitlines()[0])
        for path, tree in trees.items()
        for line, text in docstrings_in(tree)
        if RIDDLE.match(text.strip())
    ]
    assert len(riddles) <= MOST_RIDDLES, listed(riddles)


def test_tests_come_in_through_the_seams():
    inside = [
        (test, file)
        for test, files in imports().items()
        if test.startswith("tests/")
        for file in files
        if file.startswith("evaltui/") and not file.startswith(SEAMS)
    ]
    assert len(inside) <= MOST_IMPORTS_INSIDE
