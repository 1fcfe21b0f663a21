"""The command line: arguments and exit codes. What a command does is in `evaltui.commands`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

WRONG_USE = 2
INTERRUPTED = 130

_WORKBENCH_USAGE = """\
evaltui [AGENT_DIR]           open the workbench (default: the current folder)
       evaltui COMMAND ...           run one of the commands below
       evaltui COMMAND --help        say more about it"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Exit codes: 0 all passed, 1 some failed, 2 wrong use, 3 errors only, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _dispatch(words)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def _dispatch(words: list[str]) -> int:
    if words and words[0] in _COMMANDS:
        parser, run = _COMMANDS[words[0]]
        return run(parser().parse_args(words[1:]))
    return _open_workbench(_workbench_parser().parse_args(words))


def fail(message: str) -> int:
    """Say what was wrong with the call."""
    print(f"evaltui: {message}", file=sys.stderr)
    return WRONG_USE


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without repeating the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USE, f"{self.prog}: {message}\n")


def _workbench_parser() -> _Parser:
    parser = _Parser(
        prog="evaltui",
        usage=_WORKBENCH_USAGE,
        description="A terminal workbench for LLM agents and their eval sets.",
        epilog="commands:\n" + "\n".join(f"  {name:8} {text}" for name, text in _SUMMARIES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("agent_dir", nargs="?", default=".", metavar="AGENT_DIR", help=_AGENT_DIR)
    parser.add_argument("--set", metavar="NAME", help="start in this eval set: its id or its file")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    return parser


class _Version(argparse.Action):
    """Looked up only when asked for: reading package metadata takes longer than anything else here."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"evaltui {version('evaltui')}")
        parser.exit()


_AGENT_DIR = "a package or folder with agent.py, __init__.py or root_agent.yaml, or a single .py file"


def _run_parser() -> _Parser:
    parser = _Parser(
        prog="evaltui run",
        description="Run an agent's eval sets without a screen.",
        epilog="exit codes: 0 all passed, 1 some case failed, 2 wrong use, 3 errors or metrics that could "
        "not be evaluated and no failure, 130 interrupted",
    )
    add = parser.add_argument
    add("agent_dir", type=Path, metavar="AGENT_DIR", help=_AGENT_DIR)
    add(
        "selectors",
        nargs="*",
        metavar="SET[:CASE,CASE...]",
        help="a file, a set id or a folder, all its cases or these; default: every set of the agent",
    )
    add("--config", type=Path, metavar="FILE", help="one config for all sets instead of their own")
    add("--initial-session", type=Path, metavar="FILE", help="session for old-format .test.json files")
    add("--runs", type=_count, metavar="N", help="run each case N times (default: as the config says, or 1)")
    add("--pass-if", type=_pass_if, metavar="all|majority|RATE", help="when a case that differs passes")
    add("--parallel", type=_count, default=4, metavar="N", help="cases at once (default: 4)")
    add("--workers", type=_count, metavar="N", help="agent processes (default: as fits, up to 4)")
    add("--timeout", type=_seconds, default=300.0, metavar="S", help="seconds per case (default: 300)")
    add("--agent", metavar="NAME", help="run this sub-agent instead of the root agent")
    add("--failed", action="store_true", help="only the cases that did not pass in the last run")
    add(
        "--report",
        action="append",
        default=[],
        metavar="console|json|junit[=PATH]",
        help="where results go; may be given several times; - is stdout (default: console)",
    )
    add("--adk-verdicts", action="store_true", help="score exactly as google-adk does, quirks included")
    add("--exit-zero", action="store_true", help="exit with 0 although cases failed or had errors")
    return parser


def _lint_parser() -> _Parser:
    parser = _Parser(
        prog="evaltui lint",
        description="Say what is wrong with eval sets and configs, with path and line.",
        epilog="exit codes: 0 no errors, 1 errors, 2 wrong use",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file or a folder")
    return parser


def _pass_if(text: str) -> str | float:
    if text in ("all", "majority"):
        return text
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not all, majority or a rate such as 0.6")
    return rate


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _run(options: argparse.Namespace) -> int:
    from evaltui.commands.run import run

    return run(options)


def _lint(options: argparse.Namespace) -> int:
    from evaltui.commands.lint import lint

    return lint(options.paths)


def _open_workbench(options: argparse.Namespace) -> int:
    agent_dir = Path(options.agent_dir)
    if not agent_dir.exists():
        known = ", ".join(_COMMANDS)
        return fail(f"{options.agent_dir} is neither a folder nor a file, nor a command ({known})")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return fail(
            "the workbench needs a terminal; without one, "
            f"`evaltui run {options.agent_dir}` runs the eval sets and reports"
        )
    from evaltui.tui.app import open_workbench

    return open_workbench(agent_dir, options.set)


_Command = tuple[Callable[[], _Parser], Callable[[argparse.Namespace], int]]

_COMMANDS: dict[str, _Command] = {"run": (_run_parser, _run), "lint": (_lint_parser, _lint)}
_SUMMARIES = {
    "run": "run an agent's eval sets without a screen",
    "lint": "say what is wrong with eval sets and configs",
}
