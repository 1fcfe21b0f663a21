"""The command line: arguments and exit codes. What a command does is in `evaltui.commands`."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from evaltui.commands.exit_codes import HAD_ERRORS, WRONG_USE
from evaltui.commands.options import WORKBENCH
from evaltui.commands.parser import parser_of
from evaltui.files.remote_address import is_url, url_hint
from evaltui.runner.parent.interrupts import INTERRUPTED, Interrupts
from evaltui.text.figures import counted
from evaltui.text.values import MAX_VALUE, cut

# Bytes of a path that systems take.
_LONGEST_PATH = 4096


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
    if words and words[0] in _COMMANDS:
        return _COMMANDS[words[0]](parser_of(words[0]).parse(words[1:]))
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


def fail(message: str) -> int:
    """Say what was wrong with the call."""
    print(f"evaltui: {message}", file=sys.stderr)
    return WRONG_USE


def _unknown(word: str) -> int:
    from evaltui.text.values import did_you_mean

    hint = url_hint(word) or did_you_mean(word, _COMMANDS) or ". `evaltui --help` lists the commands"
    return fail(f"{word} is not a folder, a file or a command{hint}")


def _run(options: argparse.Namespace) -> int:
    from evaltui.commands.run import run

    return run(options)


def _chat(options: argparse.Namespace) -> int:
    from evaltui.commands.chat import chat

    return chat(options)


def _record(options: argparse.Namespace) -> int:
    from evaltui.commands.record import record

    return record(options)


def _listen(options: argparse.Namespace) -> int:
    from evaltui.commands.listen import listen

    return listen(options)


def _serve(options: argparse.Namespace) -> int:
    from evaltui.commands.serve import serve

    return serve(options)


def _lint(options: argparse.Namespace) -> int:
    from evaltui.commands.lint import lint

    return lint(options)


def _rename(options: argparse.Namespace) -> int:
    from evaltui.commands.rename import rename

    return rename(options)


def _schema(options: argparse.Namespace) -> int:
    from evaltui.commands.schema import schema

    return schema(options)


def _inspect(options: argparse.Namespace) -> int:
    from evaltui.commands.inspect_traces import inspect_traces

    return inspect_traces(options)


def _import(options: argparse.Namespace) -> int:
    from evaltui.commands.import_traces import import_traces

    return import_traces(options)


def _export(options: argparse.Namespace) -> int:
    from evaltui.commands.export import export

    return export(options)


def _migrate(options: argparse.Namespace) -> int:
    from evaltui.commands.eval_sets import migrate

    return migrate(options.old, options.new, options.initial_session)


def _metrics(options: argparse.Namespace) -> int:
    from evaltui.commands.metrics import metrics

    return metrics(options)


def _runs(options: argparse.Namespace) -> int:
    from evaltui.commands.runs import runs

    return runs(options)


def _compare(options: argparse.Namespace) -> int:
    from evaltui.commands.runs import compare_runs

    return compare_runs(options)


def _score(options: argparse.Namespace) -> int:
    from evaltui.commands.score import score

    return score(options)


def _merge(options: argparse.Namespace) -> int:
    from evaltui.commands.merge import merge_runs

    return merge_runs(options)


def _report(options: argparse.Namespace) -> int:
    from evaltui.commands.report import report

    return report(options)


def _help(options: argparse.Namespace) -> int:
    from evaltui.commands.help import show_help
    from evaltui.files.guide import TOPICS

    if options.topic in _COMMANDS and options.topic not in TOPICS:
        parser_of(options.topic).print_help()
        return 0
    return show_help(options.topic)


def _new(options: argparse.Namespace) -> int:
    from evaltui.commands.eval_sets import new

    return new(options.folder, options.kind)


def _demo(options: argparse.Namespace) -> int:
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
    from evaltui.files.agent_address import AgentAddress
    from evaltui.files.interpreters import OWN
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


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "new": _new,
    "demo": _demo,
    "run": _run,
    "chat": _chat,
    "record": _record,
    "runs": _runs,
    "compare": _compare,
    "report": _report,
    "score": _score,
    "listen": _listen,
    "serve": _serve,
    "merge": _merge,
    "inspect": _inspect,
    "import": _import,
    "export": _export,
    "lint": _lint,
    "rename": _rename,
    "schema": _schema,
    "migrate": _migrate,
    "metrics": _metrics,
    "help": _help,
}
