"""What the commands for recorded traces take."""

from __future__ import annotations

from pathlib import Path

from evaltui.commands.arguments import RUN, add_settings, add_verdicts
from evaltui.commands.parser import Parser, pass_if


def score_parser() -> Parser:
    parser = Parser(
        prog="evaltui score",
        description="Score the conversations in recorded traces against eval sets. No agent is run. Read are "
        "files of OTLP (JSON, JSON lines, protobuf), Tempo, Jaeger and ADK; see `evaltui help traces`.",
        epilog=f"{RUN} Exit codes: 0 all passed, 1 some case failed, 2 usage error, 3 errors, metrics not "
        "evaluated, cases without a conversation or conversations without a case, but no failure, "
        "130 interrupted.",
    )
    add = parser.add_argument
    add("traces", nargs="+", type=Path, metavar="TRACE", help="File of traces, or a folder of such files")
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
    add_settings(parser, "parallel", "timeout", "python", "results-dir", "keep-runs")
    add_verdicts(parser)
    # Of the options of `run`, those of an agent that is run.
    parser.set_defaults(agent=None, module="", url="", headers=(), record="off", tools=None)
    parser.set_defaults(failed=False, resume=None, retry_errors=None, runs=None)
    return parser
