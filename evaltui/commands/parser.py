"""The parser of every command, and the kinds of values that options take."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evaltui.commands.addressing import settle_address
from evaltui.commands.exit_codes import WRONG_USE
from evaltui.files.hosts import canonical
from evaltui.files.remote_address import is_url
from evaltui.files.run_settings import BUDGET, COUNT, FOLDER, SCHEDULER, SECONDS
from evaltui.files.schedulers import refusal_of
from evaltui.text.values import MAX_VALUE, cut

if TYPE_CHECKING:
    from evaltui.core.model.errors import ErrorKind
    from evaltui.core.model.limits import Limit
    from evaltui.runs.shards import Shard


_MAY_BE_BARE = ("--retry-errors",)
_UNKNOWN = "unrecognized arguments"
# What stands behind such a word is for nobody to read.
_SECRET_OPTION = re.compile(r"(--[\w-]*(?:token|key|secret|password)[\w-]*)[ =]\S+")


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage."""

    def __init__(self, **options: Any) -> None:
        # Who writes `--token SECRET` means no `--token-env`.
        super().__init__(add_help=False, allow_abbrev=False, **options)
        self.add_argument("-h", "--help", action="help", help="Show this help")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The options, with the agent that they name: see `settle_address`.

        Ends the program where they cannot be used.
        """
        # Without a value, the option would take the word that follows.
        options = self.parse_intermixed_args([f"{word}=" if word in _MAY_BE_BARE else word for word in words])
        if "home" in options:
            try:
                settle_address(options)
            except ValueError as error:
                self.error(str(error))
        return options

    def error(self, message: str) -> NoReturn:
        if message.startswith(_UNKNOWN):
            message = _SECRET_OPTION.sub(r"\1", message)
        self.exit(WRONG_USE, f"{self.prog}: {message}{self._meant(message)}\n")

    def _meant(self, message: str) -> str:
        """`. Did you mean --parallel?` after an unknown option."""
        option = re.match(rf"{_UNKNOWN}: (--[\w-]+)", message)
        if option is None:
            return ""
        from evaltui.text.values import did_you_mean

        return did_you_mean(option[1], self._option_string_actions)


class Version(argparse.Action):
    """Prints the version. Package metadata is slow to read, so only here."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"evaltui {version('evaltui')}")
        parser.exit()


# Python reads no number of more.
_MOST_DIGITS = 4_300
_HIGHEST_PORT = 65_535


def agent_word(text: str) -> str | Path:
    """The agent that a word names: its URL, or its folder or file."""
    return text if is_url(text) else Path(text)


def pass_if(text: str) -> str | float:
    if text in ("all", "majority"):
        return text
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not all, majority or a pass rate, e.g. 0.6")
    return rate


def alpha(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not between 0 and 1, e.g. 0.05")
    return number


def error_kinds(text: str) -> frozenset[ErrorKind]:
    """`rate_limit,network`; "" for those that another try may do without, `all` for every kind."""
    from evaltui.core.model.errors import MAY_PASS, ErrorKind

    names = text.split(",") if text else sorted(MAY_PASS)
    kinds = tuple(ErrorKind)
    if wrong := [name for name in names if name not in (*kinds, "all")]:
        raise argparse.ArgumentTypeError(
            f"{cut(wrong[0], MAX_VALUE)!r} is not a kind of error: {', '.join(kinds)} or all"
        )
    return frozenset(kinds) if "all" in names else frozenset(map(ErrorKind, names))


def limit(text: str) -> Limit:
    from evaltui.core.model.limits import parse_limit

    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r}: {error}") from error


def budget(text: str) -> str:
    if not BUDGET.accepts(text):
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not {BUDGET.wanted}")
    return text


def shard(text: str) -> Shard:
    from evaltui.runs.shards import Shard

    number, slash, count = text.partition("/")
    if slash and all(one.isdecimal() and len(one) < _MOST_DIGITS for one in (number, count)):
        found = Shard(int(number), int(count))
        if 1 <= found.number <= found.count:
            return found
    raise argparse.ArgumentTypeError(
        f"{cut(text, MAX_VALUE)!r} is not a shard I/N with I from 1 to N, e.g. 3/8"
    )


def names(text: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of metrics, e.g. safety_v1,hallucinations_v1"
        )
    return found


def count(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else 0
    if not COUNT.accepts(number):
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not {COUNT.wanted}")
    return number


def variables(text: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(","))
    if not all(name.isidentifier() for name in found):
        raise argparse.ArgumentTypeError(
            f"{cut(text, MAX_VALUE)!r} is not a list of names, e.g. GOOGLE_API_KEY"
        )
    return found


def add_cluster(parser: Parser) -> None:
    """Options of `run` about other machines."""
    parser.add_argument(
        "--ship-env",
        type=variables,
        default=(),
        metavar="NAME,...",
        help="With --scheduler: set these environment variables on the workers, as they are here or in .env; "
        "no other is sent",
    )
    parser.add_argument(
        "--strict-env",
        action="store_true",
        help="With --scheduler: use no worker with other versions of Python or of the packages of the agent",
    )
    parser.add_argument(
        "--machines", type=count, metavar="M", help="With --estimate: time on M machines, each as this one"
    )


def scheduler(text: str) -> str:
    if not SCHEDULER.accepts(text):
        why = refusal_of(text) or f"{cut(text, MAX_VALUE)!r} is not {SCHEDULER.wanted}"
        raise argparse.ArgumentTypeError(why)
    return text


def port(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else -1
    if not 0 <= number <= _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not a port from 0 to {_HIGHEST_PORT}")
    return number


def host(text: str) -> str:
    """As browsers write it, which is what they send."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not an address or a name, e.g. 127.0.0.1")
    return canonical(text.strip())


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not SECONDS.accepts(number):
        raise argparse.ArgumentTypeError(f"{cut(text, MAX_VALUE)!r} is not {SECONDS.wanted}")
    return number


def folder(text: str) -> Path:
    if not FOLDER.accepts(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not {FOLDER.wanted}")
    return Path(text)
