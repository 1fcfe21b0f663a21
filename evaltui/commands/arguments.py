"""What the command line takes: one parser for the workbench and one for each command."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, get_args

from evaltui.commands.output import WRONG_USE
from evaltui.core.model.modes import RecordMode, ToolMode

_WORKBENCH_USAGE = """\
evaltui [AGENT_DIR]           open the workbench (default: the current folder)
       evaltui COMMAND ...           run one of the commands below
       evaltui COMMAND --help        say more about it"""
_RUN = (
    "RUN is an id or the unique beginning of one, a name, last, or the path of a run log or of a result file "
    "of google-adk; `evaltui runs` lists them."
)
_AGENT_DIR = "a package or folder with agent.py, __init__.py or root_agent.yaml, or a single .py file"

_WHOSE = "the agent whose runs they are; not needed for paths (default: the current folder)"


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without repeating the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USE, f"{self.prog}: {message}\n")


def workbench_parser(commands: Mapping[str, str]) -> Parser:
    """`commands` are the names of the commands with what each of them does."""
    parser = Parser(
        prog="evaltui",
        usage=_WORKBENCH_USAGE,
        description="A terminal workbench for LLM agents and their eval sets.",
        epilog="commands:\n" + "\n".join(f"  {name:8} {text}" for name, text in commands.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("agent_dir", nargs="?", default=".", metavar="AGENT_DIR", help=_AGENT_DIR)
    parser.add_argument("--set", metavar="NAME", help="start in this eval set: its id or its file")
    parser.add_argument("--watch", action="store_true", help="run again whatever a save concerns")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="one config for all sets instead of their own, remembered for this agent; own: their own again",
    )
    _add_record(parser)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    return parser


class _Version(argparse.Action):
    """Looked up only when asked for: reading package metadata takes longer than anything else here."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"evaltui {version('evaltui')}")
        parser.exit()


def run_parser() -> Parser:
    parser = Parser(
        prog="evaltui run",
        description="Run an agent's eval sets without a screen.",
        epilog=f"{_RUN} exit codes: 0 all passed, 1 some case failed, 2 wrong use, 3 errors or metrics that "
        "could not be evaluated and no failure, 130 interrupted",
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
    add("--resume", metavar="RUN", help="go on with an interrupted run: what is missing or had an error")
    add("--baseline", metavar="RUN", help="compare with this run, case by case")
    add(
        "--fail-on-regression",
        action="store_true",
        help="exit with 1 only for cases that do not pass and that the baseline does not excuse, with 0 else",
    )
    add(
        "--require",
        type=_names,
        default=(),
        metavar="METRIC,...",
        help="do not begin the run unless a config asks for these metrics and they can be computed here",
    )
    add(
        "--report",
        action="append",
        default=[],
        metavar="console|json|junit|csv[=PATH]",
        help="where results go; may be given several times; - is stdout (default: console)",
    )
    _add_record(parser)
    add(
        "--tools",
        choices=get_args(ToolMode),
        help="live: call tools; record: call them and keep the results; stub: never call them, take results "
        "from the recording or the case (default: as --record; the config may say otherwise of single tools)",
    )
    add("--watch", action="store_true", help="then run again whatever a save concerns, until Ctrl-C")
    add("--adk-verdicts", action="store_true", help="score exactly as google-adk does, quirks included")
    add("--exit-zero", action="store_true", help="exit with 0 although cases failed or had errors")
    return parser


def _add_record(parser: Parser) -> None:
    parser.add_argument(
        "--record",
        choices=get_args(RecordMode),
        help="model calls, and tools with them: auto replays what is recorded beside the set and records the "
        "rest, replay never asks, record asks and records anew, off asks and keeps nothing (default: off)",
    )


def chat_parser() -> Parser:
    parser = Parser(
        prog="evaltui chat",
        description="Talk to an agent line by line, in any terminal or through a pipe. A line that ends in a "
        "backslash goes on in the next; Ctrl-C cancels a turn, the end of the input ends the conversation.",
        epilog="exit codes: 0 every turn came to its end, 2 wrong use, 3 a turn failed, 130 interrupted",
    )
    _add_agent(parser)
    return parser


def record_parser() -> Parser:
    parser = Parser(
        prog="evaltui record",
        description="Say to an agent what a file says, and add the conversation to an eval set as a case: "
        "with every call, result and text expected as it was.",
        epilog="exit codes: 0 recorded, 2 wrong use, 3 the agent failed, 130 interrupted; nothing is written "
        "but with 0",
    )
    _add_agent(parser)
    add = parser.add_argument
    add("set", metavar="SET", help="a file or a set id; or the file of a new set: NAME.evalset.json")
    add("--case", required=True, metavar="ID", help="the id of the new case")
    add(
        "--turns",
        required=True,
        metavar="FILE",
        help="what the user says, a blank line between messages; while a call waits, a message is the "
        "response to it; - is standard input",
    )
    return parser


def _add_agent(parser: Parser) -> None:
    """An agent to talk to, and how."""
    add = parser.add_argument
    add("agent_dir", type=Path, metavar="AGENT_DIR", help=_AGENT_DIR)
    add("--agent", metavar="NAME", help="talk to this sub-agent instead of the root agent")
    add(
        "--initial-session",
        type=Path,
        metavar="FILE",
        help='where the conversation begins: {"app_name", "user_id", "state"}',
    )
    add("--timeout", type=_seconds, default=300.0, metavar="S", help="seconds per turn (default: 300)")


def lint_parser() -> Parser:
    parser = Parser(
        prog="evaltui lint",
        description="Say what is wrong with eval sets and configs, with path and line.",
        epilog="exit codes: 0 no errors, 1 errors, 2 wrong use",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file or a folder")
    return parser


def migrate_parser() -> Parser:
    parser = Parser(
        prog="evaltui migrate",
        description="Convert a file of an old format (a list of turns, or of named sessions) to an EvalSet.",
        epilog="OLD stays as it is. exit codes: 0 written, 2 not written, with the reason",
    )
    add = parser.add_argument
    add("old", type=Path, metavar="OLD", help="the file to convert")
    add("new", type=Path, metavar="NEW", help="the file to write, which must not exist; it names the set")
    add("--initial-session", type=Path, metavar="FILE", help="session for a list of turns (.test.json)")
    return parser


def metrics_parser() -> Parser:
    parser = Parser(
        prog="evaltui metrics",
        description="List every metric: its range, what it means and needs, and whether it can run here, and "
        "if not why.",
        epilog="exit codes: 0 listed, 2 wrong use",
    )
    parser.add_argument(
        "place",
        nargs="?",
        type=Path,
        metavar="AGENT_DIR|SET",
        help="an agent, or the file of a set: say first which of the metrics it asks for run",
    )
    return parser


def runs_parser() -> Parser:
    parser = Parser(
        prog="evaltui runs",
        description="List an agent's newest runs: id, start (local time), outcome and what was selected.",
    )
    add = parser.add_argument
    add("agent_dir", type=Path, metavar="AGENT_DIR", help=_AGENT_DIR)
    add("--name", nargs=2, metavar=("RUN", "NAME"), help="give a run a name by which it is found, instead")
    return parser


def compare_parser() -> Parser:
    parser = Parser(
        prog="evaltui compare",
        description="Hold a run against an earlier one, case by case: broken, fixed, flaky, new, gone, "
        "expectation changed, and how scores, time and tokens differ.",
        epilog=f"{_RUN} exit codes: 0 compared, 1 as --fail-on-regression says, 2 wrong use",
    )
    add = parser.add_argument
    add("agent_dir", nargs="?", default=Path(), type=Path, metavar="AGENT_DIR", help=_WHOSE)
    add("base", metavar="BASE", help="the earlier run")
    add("candidate", metavar="CANDIDATE", help="the later run")
    add(
        "--report",
        action="append",
        default=[],
        metavar="console|json[=PATH]",
        help="where the comparison goes; may be given several times; - is stdout (default: console)",
    )
    add(
        "--fail-on-regression",
        action="store_true",
        help="exit with 1 where a case does not pass in CANDIDATE and BASE does not excuse it",
    )
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


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of metrics such as safety_v1,hallucinations_v1"
        )
    return names


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
