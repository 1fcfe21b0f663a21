"""The tables of the README that are made from the code.

`python -m tests.readme_tables README.md` makes them anew. Each stands between `<!-- NAME -->` and
`<!-- /NAME -->`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from evaltui.workbench.actions import ACTIONS, place_of
from evaltui.workbench.filtering import LANGUAGE
from evaltui.workbench.keymap import key_name


def with_tables(text: str) -> str:
    """A README with its tables made anew. Raises ValueError where it has no place for one of them."""
    for name, lines in _TABLES.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if not end:
            raise ValueError(f"the README has no place for the table {name!r}")
        text = "".join((before, begin, *(f"{line}\n" for line in lines()), end, after))
    return text


def _keys() -> Iterator[str]:
    yield "| keys | what they do | where | name in `keys.toml` |"
    yield "|---|---|---|---|"
    for action in ACTIONS:
        keys = " ".join(f"`{key_name(key)}`" for key in action.keys)
        yield f"| {keys} | {action.help} | {place_of(action)} | `{action.id}` |"


def _filter() -> Iterator[str]:
    yield "| filter | keeps cases |"
    yield "|---|---|"
    for form, meaning in LANGUAGE:
        yield f"| `{form}` | {meaning.replace('|', chr(92) + '|')} |"


_TABLES: Mapping[str, Callable[[], Iterator[str]]] = {"keys": _keys, "filter": _filter}


if __name__ == "__main__":
    readme = Path(sys.argv[1])
    readme.write_text(with_tables(readme.read_text(encoding="utf-8")), encoding="utf-8")
