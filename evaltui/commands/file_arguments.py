"""What the commands about files take: checking, converting and creating them, and their schemas."""

from __future__ import annotations

from pathlib import Path

from evaltui.commands.arguments import add_settings
from evaltui.commands.parser import Parser


def lint_parser() -> Parser:
    parser = Parser(
        prog="evaltui lint",
        description="Check eval sets and configs; each problem with path and line.",
        epilog="Exit codes: 0 no errors, 1 errors, 2 usage error.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="File or folder")
    parser.add_argument(
        "--format",
        choices=("console", "json", "sarif", "github"),
        default="console",
        help="Form of the output: for people, as JSON, as SARIF 2.1.0, or as annotations of GitHub Actions "
        "(default: console)",
    )
    return parser


def inspect_parser() -> Parser:
    parser = Parser(
        prog="evaltui inspect",
        description="Show what is in recorded traces: formats, conversations, turns, calls, and what is "
        "missing, with what brings it.",
        epilog="Exit codes: 0 read, also where nothing in it is a conversation, 2 usage error or not "
        "readable.",
    )
    _add_traces(parser)
    parser.add_argument(
        "--format",
        choices=("console", "json"),
        default="console",
        help="Form of the output (default: console)",
    )
    return parser


def import_parser() -> Parser:
    parser = Parser(
        prog="evaltui import",
        description="Add the conversations in recorded traces to an eval set, a case each: what the user "
        "says, and what the agent did as what is expected.",
        epilog="All cases are added or none. Exit codes: 0 added, 2 nothing added, with the reason.",
    )
    add = parser.add_argument
    _add_traces(parser)
    add("--into", required=True, metavar="SET", help="Eval set (file or set id), or a new NAME.evalset.json")
    add(
        "--conversation",
        action="append",
        default=[],
        metavar="ID",
        help="Only this conversation, by its id as `evaltui inspect` shows it; repeatable",
    )
    add("--turns", metavar="N-M", help="Only these turns of the conversation, e.g. 2-4, 1,3 or 2-")
    add(
        "--case",
        metavar="ID",
        help="Id of the case (default: the case that the trace names, else the first words of the user)",
    )
    add("--dry-run", action="store_true", help="Show what would be added, and write nothing")
    add(
        "--agent",
        dest="agent_dir",
        type=Path,
        default=Path(),
        metavar="AGENT_DIR",
        help="Agent whose eval set it is, and whose secrets are masked (default: the current folder)",
    )
    return parser


def _add_traces(parser: Parser) -> None:
    parser.add_argument(
        "traces", nargs="+", type=Path, metavar="TRACE", help="File of traces, or a folder of such files"
    )


def schema_parser() -> Parser:
    parser = Parser(
        prog="evaltui schema",
        description="Print the JSON Schema (draft-07) of a file format, for editors and other programs.",
        epilog="Exit codes: 0 printed, 2 usage error, 3 agent not loaded.",
    )
    parser.add_argument(
        "format",
        choices=("evalset", "config", "report", "events"),
        metavar="evalset|config|report|events",
        help="Eval sets, test_config.json, the JSON report, or the lines of run logs",
    )
    parser.add_argument(
        "--agent",
        dest="agent_dir",
        type=Path,
        metavar="AGENT_DIR",
        help="Agent whose tools and their arguments are proposed in eval sets and configs",
    )
    add_settings(parser, "python")
    return parser


def migrate_parser() -> Parser:
    parser = Parser(
        prog="evaltui migrate",
        description="Convert a file of an old format (list of turns or of named sessions) to an eval set.",
        epilog="OLD is not changed. Exit codes: 0 written, 2 not written, with the reason.",
    )
    add = parser.add_argument
    add("old", type=Path, metavar="OLD", help="File to convert")
    add("new", type=Path, metavar="NEW", help="File to write; must not exist; its name becomes the set id")
    add("--initial-session", type=Path, metavar="FILE", help="Session for a list of turns (.test.json)")
    return parser


def new_parser() -> Parser:
    parser = Parser(
        prog="evaltui new",
        description="Create a starter agent with an eval set and a config. It runs offline and passes.",
        epilog="Existing files are never overwritten. Exit codes: 0 created, 2 usage error, nothing written.",
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="Folder of the agent, created if missing")
    add(
        "--adk",
        action="store_const",
        const="adk",
        default="native",
        dest="kind",
        help="Create a google-adk agent (default: an evaltui.Agent, without a framework)",
    )
    return parser
