"""Names the tests that concern changed files: `pytest $(python -m tests.concerning)`.

Without arguments it takes the files that differ from the last commit. A changed test concerns itself. A
module of evaltui concerns the tests that import it, else those that import the modules that use it, and so
on upwards; then tests with its name or its folder's, and the transcripts of what its room shows. Another
file concerns the tests that name it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|.+)|import[ \t]+(.+))$", re.MULTILINE
)
_OF_ALL = ("tests/test_house.py", "tests/test_words.py")
_GOLDEN = {
    "commands": "transcripts",
    "documents": "edits",
    "reports": "transcripts",
    "runs": "transcripts",
    "tui": "screens",
    "views": "transcripts",
    "workbench": "screens",
}
_SHORTEST_NAME = 5


def concerning(paths: Iterable[str]) -> list[str]:
    """The test files that concern changed files, given relative to the project's folder; sorted."""
    tests = {test for path in paths for test in _of_file(path)}
    return sorted({*tests, *_OF_ALL} if tests else tests)


def _of_file(path: str) -> set[str]:
    if path.startswith("tests/") and Path(path).name.startswith("test_"):
        return {path} if (ROOT / path).is_file() else set()
    if not path.endswith(".py"):
        name = Path(path).name
        return {test for test, text in _texts("tests").items() if _is_test(test) and name in text}
    room = Path(path).parts[1]
    golden = {f"tests/golden/test_golden_{_GOLDEN[room]}.py"} if room in _GOLDEN else set()
    return golden | _named_like(path) | _importing(path)


def _named_like(path: str) -> set[str]:
    """The tests with a module's name in theirs, else with its folder's."""
    for name in (Path(path).stem, Path(path).parent.name):
        tests = {test for test in filter(_is_test, _texts("tests")) if name in Path(test).stem}
        if tests and len(name) >= _SHORTEST_NAME:
            return tests
    return set()


def _importing(path: str) -> set[str]:
    level, seen = {path}, {path}
    while level:
        users = {user for user, imported in imports().items() if imported & level} - seen
        if tests := set(filter(_is_test, users)):
            return tests
        seen |= users
        level = users
    return set()


def _is_test(path: str) -> bool:
    return Path(path).name.startswith("test_")


@cache
def _texts(folder: str) -> dict[str, str]:
    files = (path for path in (ROOT / folder).rglob("*.py") if ".venv" not in path.parts)
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


@cache
def imports() -> dict[str, set[str]]:
    """The files that each file of evaltui and of the tests imports."""
    texts = {**_texts("evaltui"), **_texts("tests")}
    return {path: {file for file in _imported(path, text) if file in texts} for path, text in texts.items()}


def _imported(path: str, text: str) -> Iterator[str]:
    folder = Path(path).parent
    for dots, module, names, plain in _IMPORT.findall(text):
        above = folder.parents[len(dots) - 2] if len(dots) > 1 else folder if dots else Path()
        base = (above / module.replace(".", "/")).as_posix()
        words = re.findall(r"[\w.]+", plain or names)
        paths = [word.replace(".", "/") for word in words]
        imported = paths if plain else [base, *(f"{base}/{path}" for path in paths)]
        for name in imported:
            # Helpers of tests are imported by their names alone, from any folder of tests.
            bases = [name, f"{folder.as_posix()}/{name}", f"tests/{name}"]
            yield from (file for base in bases for file in (f"{base}.py", f"{base}/__init__.py"))


def _changed() -> list[str]:
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line[3:] for line in lines]


if __name__ == "__main__":
    print(*concerning(sys.argv[1:] or _changed()), sep="\n")
