"""The command line: arguments and exit codes. What a command does is in `evaltui.commands`."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from evaltui.commands.command_table import COMMAND_NAMES, COMMANDS
from evaltui.commands.exit_codes import HAD_ERRORS, WRONG_USE
from evaltui.commands.options import WORKBENCH
from evaltui.commands.output import UsageError, complain
from evaltui.commands.parser import parser_of
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.project.remote_address import is_url, url_hint
from evaltui.runner.interrupts import INTERRUPTED, Interrupts
from evaltui.text.figures import counted
from evaltui.text.values import MAX_VALUE, cut, did_you_mean

# Bytes of a path that systems take.
_LONGEST_PATH = 4096
# Of a disk with no space for what standard output goes to.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Exit codes: 0 all passed, 1 some failed, 2 wrong use, 3 errors only, or one of evaltui itself, 130
    interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with Interrupts():
            code = _dispatch(words)
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            code = fail(f"{cut(str(error.filename), MAX_VALUE)!r}: file name too long")
        elif isinstance(error, PermissionError) and str(error.filename) in words:
            # A file that was named, in a folder that may not be entered.
            code = fail(f"{error.filename}: {error.strerror}")
        elif isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            fail(f"cannot write: {error.strerror}")
            code = HAD_ERRORS
        else:
            # Python's own code is 1, which says that a case failed.
            sys.excepthook(type(error), error, error.__traceback__)
            code = HAD_ERRORS
    if arguments is None:
        # All is written and every process ended. What is left is to take a thousand classes apart one by
        # one, which takes a tenth of a second.
        os._exit(code)
    sys.exit(code)


def _dispatch(words: list[str]) -> int:
    if problem := _refusal(words):
        return fail(problem)
    if words and words[0] in COMMAND_NAMES:
        return _do(words[0], parser_of(words[0]).parse(words[1:]))
    if words and not words[0].startswith("-") and not is_url(words[0]) and not Path(words[0]).exists():
        return _unknown(words[0])
    return _open_workbench(parser_of(WORKBENCH).parse(words))


def _refusal(words: list[str]) -> str:
    """Why no command can be run, a sentence; "" where it can."""
    for word in words:
        # Names of cases and values of options may be lists of any length.
        if len(os.fsencode(word)) > _LONGEST_PATH and not set(word) & {",", "="}:
            return f"{cut(word, MAX_VALUE)!r}: argument too long ({counted(len(word), 'character')})"
    try:
        Path.cwd()
    except FileNotFoundError:
        if words[:1] != ["help"] and not {"-h", "--help", "--version"} & set(words):
            return "the current folder was removed. Change to another folder"
    return ""


def _do(command: str, options: argparse.Namespace) -> int:
    """Runs a command; what was wrong with its call is said here for all of them."""
    if command == "demo":
        return _demo()
    module, _, name = COMMANDS[command].function.partition(":")
    try:
        code: int = getattr(import_module(f"evaltui.commands.{module}"), name)(options)
    except (UsageError, SelectionError, EvalSetError) as error:
        return complain(command, error)
    return code


def fail(message: str) -> int:
    """Say what was wrong with the call."""
    print(f"evaltui: {message}", file=sys.stderr)
    return WRONG_USE


def _unknown(word: str) -> int:
    hint = url_hint(word) or did_you_mean(word, COMMAND_NAMES) or ". `evaltui --help` lists the commands"
    return fail(f"{word} is not a folder, a file or a command{hint}")


def _demo() -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return fail("the demo needs a terminal; without one, `evaltui new DIR` and `evaltui run DIR` work")
    from evaltui.tui.app import open_demo

    return open_demo()


def _open_workbench(options: argparse.Namespace) -> int:
    if not options.agent_dir.exists():
        return _unknown(str(options.agent_dir))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        agent = options.url or (f"-m {options.module}" if options.module else options.agent_dir)
        return fail(f"the workbench needs a terminal. `evaltui run {agent}` runs eval sets without one")
    if options.read_only and options.watch:
        return fail("--watch runs cases, which --read-only refuses: leave one of them out")
    # Until all is loaded there is no garbage to be looked for among it, again and again.
    gc.disable()
    from evaltui.project.agent_address import AgentAddress
    from evaltui.project.interpreters import OWN
    from evaltui.tui.app import open_workbench

    agent = AgentAddress(options.agent_dir, options.agent, OWN, options.module, options.url, options.headers)
    return open_workbench(
        agent,
        options.set,
        watch=options.watch,
        read_only=options.read_only,
        config=options.config,
        options=vars(options),
    )
