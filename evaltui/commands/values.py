"""The types of option values; each raises ArgumentTypeError for a wrong text."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.errors import TRANSIENT_KINDS, ErrorKind
from evaltui.core.model.limits import Limit, parse_limit
from evaltui.project.hosts import canonical
from evaltui.project.remote_address import is_url
from evaltui.project.run_settings import BUDGET, COUNT, FOLDER, SCHEDULER, SECONDS, refusal_of
from evaltui.text.values import MAX_VALUE, cut

if TYPE_CHECKING:
    from evaltui.runs.shards import Shard


Type = Callable[[str], object]

# Python reads no number of more.
_MAX_DIGITS = 4_300
_HIGHEST_PORT = 65_535


def not_empty(read: Type) -> Type:
    """Refuses an empty text, such as that of an unset variable, where it would mean a default."""

    def read_given(text: str) -> object:
        if not text:
            raise argparse.ArgumentTypeError("the value is empty")
        return read(text)

    return read_given


def agent_word(text: str) -> str | Path:
    """The address of an agent in a word: its URL, or its folder or file."""
    return text if is_url(text) else Path(text)


def _float(text: str) -> float:
    """The number in a text; 0 for no number, which no option accepts."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def pass_if(text: str) -> str | float:
    if text in ("all", "majority"):
        return text
    rate = _float(text)
    if not 0 < rate <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not all, majority or a pass rate, e.g. 0.6")
    return rate


def rate(text: str) -> float:
    number = _float(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not a rate up to 1, e.g. 0.8")
    return number


def alpha(text: str) -> float:
    number = _float(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not between 0 and 1, e.g. 0.05")
    return number


def error_kinds(text: str) -> frozenset[ErrorKind]:
    """`rate_limit,network`; "" for those that another try may do without, `all` for every kind."""
    names = text.split(",") if text else sorted(TRANSIENT_KINDS)
    kinds = tuple(ErrorKind)
    if wrong := [name for name in names if name not in (*kinds, "all")]:
        raise argparse.ArgumentTypeError(
            f"{cut(wrong[0], MAX_VALUE)!r} is not a kind of error: {', '.join(kinds)} or all"
        )
    return frozenset(kinds) if "all" in names else frozenset(map(ErrorKind, names))


def limit(text: str) -> Limit:
    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r}: {error}") from error


def budget(text: str) -> str:
    if not BUDGET.accepts(text):
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not {BUDGET.description}")
    return text


def shard(text: str) -> Shard:
    from evaltui.runs.shards import Shard

    number, slash, count = text.partition("/")
    if slash and all(digits.isdecimal() and len(digits) < _MAX_DIGITS for digits in (number, count)):
        value = Shard(int(number), int(count))
        if 1 <= value.number <= value.count:
            return value
    raise argparse.ArgumentTypeError(
        f"{cut(text, MAX_VALUE)!r} is not a shard I/N with I from 1 to N, e.g. 3/8"
    )


def names(text: str) -> tuple[str, ...]:
    metrics = tuple(name.strip() for name in text.split(","))
    if not all(metrics):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of metrics, e.g. safety_v1,hallucinations_v1"
        )
    return metrics


def count(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < _MAX_DIGITS else 0
    if not COUNT.accepts(number):
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not {COUNT.description}")
    return number


def variables(text: str) -> tuple[str, ...]:
    variable_names = tuple(name.strip() for name in text.split(","))
    if not all(name.isidentifier() for name in variable_names):
        raise argparse.ArgumentTypeError(
            f"{cut(text, MAX_VALUE)!r} is not a list of names, e.g. GOOGLE_API_KEY"
        )
    return variable_names


def scheduler(text: str) -> str:
    if not SCHEDULER.accepts(text):
        why = refusal_of(text) or f"{cut(text, MAX_VALUE)!r} is not {SCHEDULER.description}"
        raise argparse.ArgumentTypeError(why)
    return text


def port(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < _MAX_DIGITS else -1
    if not 0 <= number <= _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not a port from 0 to {_HIGHEST_PORT}")
    return number


def host(text: str) -> str:
    """A host name or address in the spelling that browsers send."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not an address or a name, e.g. 127.0.0.1")
    return canonical(text.strip())


def seconds(text: str) -> float:
    number = _float(text)
    if not SECONDS.accepts(number):
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not {SECONDS.description}")
    return number


def folder(text: str) -> Path:
    if not FOLDER.accepts(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not {FOLDER.description}")
    return Path(text)


def confidence(text: str) -> float:
    level = _float(text)
    if not 0.5 < level < 1:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not between 0.5 and 1, e.g. 0.95")
    return level
