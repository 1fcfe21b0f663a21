"""What the commands for recorded traces take."""

from __future__ import annotations

from pathlib import Path

from evaltui.commands.arguments import (
    RUN,
    add_agent_dir,
    add_home,
    add_limits,
    add_resuming,
    add_settings,
    add_verdicts,
)
from evaltui.commands.parser import Parser, pass_if
from evaltui.core.model.modes import DEFAULT_MODE
from evaltui.files.run_settings import SETTINGS

_TRACES = "File of traces, or a folder of such files"


def score_parser() -> Parser:
    parser = Parser(
        prog="evaltui score",
        description="Score the conversations in recorded traces against eval sets. No agent is run; "
        "functions of metrics and judges run in its Python. Read are files of OTLP (JSON, JSON lines, "
        "protobuf), Tempo, Jaeger and ADK; see `evaltui help traces`.",
        epilog=f"{RUN} Exit codes: 0 all passed, 1 some case failed, 2 usage error, 3 errors, metrics not "
        "evaluated, cases without a conversation or conversations without a case, but no failure, "
        "130 interrupted.",
    )
    add = parser.add_argument
    add("traces", nargs="*", type=Path, metavar="TRACE", help=_TRACES)
    add(
        "--sets",
        dest="selectors",
        nargs="+",
        action="extend",
        default=[],
        metavar="SET[:CASE,CASE...]",
        help="Eval sets (file, set id or folder), with all cases or only these (default: all sets of --home)",
    )
    add(
        "--case-from",
        metavar="ATTRIBUTE",
        help="Attribute of spans with the id of the case, or SET:CASE (default: evaltui.eval.case.id, "
        "agentevals.eval.case.id, the session's id, then the user's messages)",
    )
    add("--only-paired", action="store_true", help="Leave out selected cases without a conversation")
    add(
        "--home",
        dest="agent_dir",
        type=Path,
        metavar="DIR",
        help="Folder of the agent, where its runs are kept (default: that of the agent around the first eval "
        "set, else the current folder)",
    )
    add("--config", type=Path, metavar="FILE", help="Use this config for all sets")
    add("--initial-session", type=Path, metavar="FILE", help="Session for .test.json files in the old format")
    add("--pass-if", type=pass_if, metavar="all|majority|RATE", help="Pass policy for several conversations")
    add(
        "--record",
        choices=SETTINGS["record"].kind.choices,
        help="Model calls of judges: auto replays known calls and records new ones; replay never calls a "
        f"model; record calls and stores again; off stores nothing (default: {DEFAULT_MODE})",
    )
    add_settings(parser, "parallel", "timeout", "python", "results-dir", "keep-runs", "budget")
    add_limits(parser)
    add_resuming(parser)
    add_verdicts(parser)
    # Of the options of `run`, those of an agent that is run.
    parser.set_defaults(agent=None, module="", url="", headers=(), tools=None)
    parser.set_defaults(failed=False, runs=None, confidence=None, max_runs=None)
    parser.set_defaults(ship_env=(), strict_env=False)
    return parser


def inspect_parser() -> Parser:
    parser = Parser(
        prog="evaltui inspect",
        description="Show the contents of recorded traces: formats, conversations, turns, calls, and missing "
        "content with the variable that brings it.",
        epilog="Exit codes: 0 read, also without a conversation, 2 usage error or not readable.",
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
        description="Add the conversations in recorded traces to an eval set, a case each: the user's "
        "messages, and the actual calls and responses as the expected ones.",
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


def export_parser() -> Parser:
    parser = Parser(
        prog="evaltui export",
        description="Write a stored run as OpenTelemetry traces (OTLP as JSON), or send it: a trace "
        "per turn, with what the metrics say of it.",
        epilog="OTEL_EXPORTER_OTLP_HEADERS has headers for the endpoint. Exit codes: 0 exported, 2 usage "
        "error or nothing to export, 3 not all accepted by the endpoint.",
    )
    add = parser.add_argument
    add_agent_dir(parser, "Agent of the run; not needed for a path (default: the current folder)", Path())
    add(
        "--run",
        required=True,
        metavar="RUN",
        help="Run: `last`, a path, a name, an id or the beginning of one",
    )
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("-o", dest="output", type=Path, metavar="FILE", help="File to write; - is stdout")
    to.add_argument(
        "--endpoint",
        metavar="URL",
        help="Send to this OTLP/HTTP endpoint, e.g. http://localhost:4318; /v1/traces is added",
    )
    add_home(parser)
    add_settings(parser, "results-dir")
    return parser


def _add_traces(parser: Parser) -> None:
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help=_TRACES)
