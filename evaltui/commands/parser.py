"""The parser of every command, made from the tables of commands and options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from evaltui.commands import values
from evaltui.commands.addressing import settle_address
from evaltui.commands.command_table import COMMANDS, Command
from evaltui.commands.exit_codes import WRONG_USE
from evaltui.commands.option import Option
from evaltui.commands.options import OPTIONS, WORKBENCH
from evaltui.project.run_settings import SETTINGS
from evaltui.text.values import did_you_mean

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
        if getattr(options, "only_new_failures", False):
            self._settle_new_failures(options)
        return options

    def _settle_new_failures(self, options: argparse.Namespace) -> None:
        """Sets the options for which `--only-new-failures` is a short name."""
        for flag in ("watch", "estimate", "exit_zero"):
            if getattr(options, flag, False):
                self.error(f"--only-new-failures cannot be used together with --{flag.replace('_', '-')}")
        options.baseline = options.baseline or "last"
        options.fail_on_regression = True

    def error(self, message: str) -> NoReturn:
        if message.startswith(_UNKNOWN):
            message = _SECRET_OPTION.sub(r"\1", message)
        self.exit(WRONG_USE, f"{self.prog}: {message}{self._suggestion(message)}\n")

    def _suggestion(self, message: str) -> str:
        """`. Did you mean --parallel?` after an unknown option."""
        option = re.match(rf"{_UNKNOWN}: (--[\w-]+)", message)
        if option is None:
            return ""

        return did_you_mean(option[1], self._option_string_actions)


class Version(argparse.Action):
    """Prints the version. Package metadata is slow to read, so only here."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"evaltui {version('evaltui')}")
        parser.exit()


_USAGE = """\
evaltui [AGENT_DIR]           open the workbench (default: the current folder)
       evaltui COMMAND ...           run a command
       evaltui COMMAND --help        show its options"""
_DEFAULTS = "[tool.evaltui] of pyproject.toml sets defaults of options: see `evaltui help command-line`."
# A command with fewer options has them below one heading.
_FEW = 12


def parser_of(name: str) -> Parser:
    """The parser of a command, or of the workbench."""
    command = COMMANDS[name]
    options = [option for option in OPTIONS if name in option.commands.split()]
    is_workbench = name == WORKBENCH
    parser = Parser(
        prog=name if is_workbench else f"{WORKBENCH} {name}",
        usage=_USAGE if is_workbench else _usage(name, command) if len(options) >= _FEW else None,
        description="\n".join([command.description, *_examples(command)]),
        epilog="\n".join(_epilog(name, command, options)),
        formatter_class=_Formatter,
    )
    for argument in command.arguments:
        _add(parser, argument)
    groups = {} if len(options) < _FEW else {option.group: None for option in options}
    headings: dict[str, argparse._ActionsContainer] = {
        group: parser.add_argument_group(group) for group in groups if group != "Options"
    }
    exclusive: argparse._ActionsContainer | None = None
    for option in options:
        place = headings.get(option.group, parser)
        if option.instead:
            exclusive = exclusive or place.add_mutually_exclusive_group(required=option.instead == "required")
            place = exclusive
        _add(place, option)
    parser.set_defaults(**command.defaults)
    if is_workbench:
        parser.add_argument("--version", action=Version, nargs=0, help="Show the version")
    return parser


def _add(place: argparse._ActionsContainer, option: Option) -> None:
    keywords = dict(option.more)
    if option.form:
        keywords["metavar"] = option.form
    if option.names in _MAY_BE_BARE:
        keywords["type"] = option.type
    elif option.form:
        keywords["type"] = values.not_empty(option.type or str)
    if not option.form and not {"action", "choices", "nargs"} & keywords.keys():
        keywords["action"] = "store_true"
    place.add_argument(*option.names.split(), help=option.help, **keywords)


def _usage(name: str, command: Command) -> str:
    """The usage line of a command with too many options to name each."""
    ends = {"?": "", "*": " ...", None: ""}
    words = [f"[{argument.form}{ends[argument.more.get('nargs')]}]" for argument in command.arguments]
    return " ".join([WORKBENCH, name, *words, "[OPTION ...]"])


def _examples(command: Command) -> Iterator[str]:
    yield from ("", "examples:") if command.examples else ()
    yield from (f"  {WORKBENCH} {example}" for example in command.examples)


def _epilog(name: str, command: Command, options: Sequence[Option]) -> Iterator[str]:
    if name == WORKBENCH:
        yield "commands:"
        yield from (f"  {other:8} {row.summary}" for other, row in COMMANDS.items() if other != WORKBENCH)
    codes = f"Exit codes: {command.exit_codes}" if command.exit_codes else ""
    yield from filter(None, [" ".join(filter(None, [command.remark, codes]))])
    if any(option.names.removeprefix("--") in SETTINGS for option in options):
        yield _DEFAULTS


class _Formatter(argparse.HelpFormatter):
    """Keeps lines that are indented as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        return "\n".join(
            line
            if not line or line.startswith(" ")
            else super(_Formatter, self)._fill_text(line, width, indent)
            for line in lines
        )
