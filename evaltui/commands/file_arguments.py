"""What the commands about files take: checking, converting and creating them, and their schemas."""

from __future__ import annotations

from pathlib import Path

from evaltui.commands.arguments import add_settings
from evaltui.commands.parser import Parser


def lint_parser() -> Parser:
    parser = Parser(
        prog="evaltui lint",
        description="Check eval sets and configs; each problem with path and line.",
        epilog="Exit codes: 0 no errors, 1 errors (with --diff: something to mend), 2 usage error.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="File or folder")
    parser.add_argument(
        "--format",
        choices=("console", "json", "sarif", "github"),
        default="console",
        help="Form of the output: for people, as JSON, as SARIF 2.1.0, or as annotations of GitHub Actions "
        "(default: console)",
    )
    parser.add_argument("--fix", action="store_true", help="Mend problems that have exactly one right mend")
    parser.add_argument("--diff", action="store_true", help="Show the changes of --fix, and make none")
    return parser


def schema_parser() -> Parser:
    parser = Parser(
        prog="evaltui schema",
        description="Print the JSON Schema (draft-07) of a file format, for editors and other programs.",
        epilog="Exit codes: 0 printed, 2 usage error, 3 agent not loaded.",
    )
    parser.add_argument(
        "format",
        choices=("evalset", "config", "report", "matrix", "events"),
        metavar="evalset|config|report|matrix|events",
        help="Eval sets, test_config.json, the JSON report, or the events of a run",
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
        description="Convert a file of an old format (list of turns or of named sessions), or an "
        "EvaluationDataset of agents-cli, to an eval set.",
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
