"""Keys that texts mention come from the keymap: one that the user has chosen is named everywhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltui.text.keys import key_of
from evaltui.workbench.actions import ACTIONS, ACTIONS_BY_ID
from evaltui.workbench.keymap import key_name, use_keys
from tests.test_words import PRODUCT, strings_of

# Without a screen there are no actions; the registry, the names of keys and the tour are their own source.
ELSEWHERE = (
    "commands",
    "core",
    "documents",
    "files",
    "runner",
    "runs",
    "reports",
    "templates",
    "text",
    "workbench/actions",
)
SOURCES = {"workbench/keymap.py", "workbench/agent/tour.py"}
NAMES = {key_name(key) for action in ACTIONS for key in action.keys}
KEYS = NAMES - set("!=*?<>")
LONG = [
    name for name in NAMES if re.fullmatch(r"(ctrl|alt|shift)\+.+|f\d+|esc|backspace|page (up|down)", name)
]
LETTERS = [name for name in NAMES if re.fullmatch("[b-zB-Z/]", name)]
WORDS = [name for name in NAMES if len(name) > 1 and name not in LONG]
# `ctrl+s` anywhere; `u undo` at the beginning, after three spaces, or as in `; u undoes it`; of the names
# that are words, `enter sends`, but not `delete call`.
NAMED = re.compile(
    rf"(?<![\w+])({'|'.join(map(re.escape, LONG))})(?![\w+])"
    rf"|(?:^|   |[(;:,] |: |and )({'|'.join(map(re.escape, LETTERS))}) {{1,3}}(?=[A-Za-z])(?!or |is |are )"
    rf"|(?:   |[(;:,…] |: )({'|'.join(map(re.escape, WORDS))}) {{1,3}}(?=[A-Za-z])"
    rf"|(?:^|and )({'|'.join(map(re.escape, WORDS))}) (?=[a-z]+s\b)(?!res)"
)


def modules() -> Iterator[Path]:
    for path in sorted(PRODUCT.rglob("*.py")):
        place = path.relative_to(PRODUCT).as_posix()
        if not place.startswith(ELSEWHERE) and place not in SOURCES:
            yield path


def fixed_keys(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines of a module with a key in a text, or drawn as one in the accent."""
    for line, text in strings_of(tree):
        if NAMED.search(text):
            yield line, text
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            texts = [one.value for one in node.elts if isinstance(one, ast.Constant)]
            if len(texts) == 2 and "accent" in str(texts[1]) and str(texts[0]).strip() in KEYS:
                yield node.lineno, str(texts[0])


def test_no_text_of_a_screen_has_a_key_that_is_fixed():
    found = [
        f"{path.relative_to(PRODUCT)}:{line}: {text!r}: write key_of(…)"
        for path in modules()
        for line, text in fixed_keys(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)


def test_keys_are_asked_for_by_ids_of_actions():
    asked = {
        (path.name, node.args[0].value)
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "key_of"
        if node.args and isinstance(node.args[0], ast.Constant)
    }
    assert asked
    assert not [one for one in asked if one[1] not in ACTIONS_BY_ID]


@pytest.mark.parametrize(
    "text", ["Deleted x   u undo", "r  Run case", "Run in progress (ctrl+c cancels)", "none; f4 edits it"]
)
def test_it_finds_a_key_that_is_fixed(text):
    assert list(fixed_keys(ast.parse(f"say({text!r})")))


def test_the_users_keys_are_named():
    use_keys({"undo": ("ctrl+g", "u")})
    assert key_of("undo") == "ctrl+g"
    assert key_of("redo") == "U"
    use_keys({})
    assert key_of("undo") == "u"
