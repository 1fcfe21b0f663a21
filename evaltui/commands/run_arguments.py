"""What the commands on stored runs take."""

from __future__ import annotations

from pathlib import Path

from evaltui.commands.arguments import (
    REPORTS,
    RUN,
    add_agent_dir,
    add_alpha,
    add_baseline,
    add_home,
    add_settings,
    add_store_durations,
)
from evaltui.commands.parser import Parser


def runs_parser() -> Parser:
    parser = Parser(
        prog="evaltui runs",
        description="List an agent's latest runs: id, start (local time), outcome, selected cases.",
        epilog="Exit codes: 0 listed or named, 2 usage error.",
    )
    add = parser.add_argument
    add_agent_dir(parser)
    add("--name", nargs=2, metavar=("RUN", "NAME"), help="Name a run instead of listing runs")
    add_home(parser)
    add_settings(parser, "results-dir")
    return parser


def compare_parser() -> Parser:
    parser = Parser(
        prog="evaltui compare",
        description="Compare two runs, case by case: broken, unclear, fixed, flaky, new, gone, expectation "
        "changed; with scores, time and tokens.",
        epilog=f"{RUN} Exit codes: 0 compared, 2 usage error; with --fail-on-regression 1 regression, 3 "
        "selected cases of CANDIDATE without a result, or without a verdict in both runs.",
    )
    add = parser.add_argument
    add_agent_dir(parser, "Agent of the runs; not needed for paths (default: the current folder)", Path())
    add("base", metavar="BASE", help="Earlier run")
    add("candidate", metavar="CANDIDATE", help="Later run")
    add(
        "--report",
        action="append",
        default=[],
        metavar="console|json[=PATH]",
        help="Write the comparison; repeatable; - is stdout (default: console)",
    )
    add(
        "--fail-on-regression",
        action="store_true",
        help="Exit 1 if a case does not pass in CANDIDATE, unless BASE failed the same expectation, "
        "or repeats are no evidence; else 3 if a selected case of CANDIDATE has no result, or no verdict in "
        "both runs",
    )
    add_alpha(parser)
    add_home(parser)
    add_settings(parser, "results-dir")
    return parser


def report_parser() -> Parser:
    parser = Parser(
        prog="evaltui report",
        description="Write reports of runs that are stored. Several runs are reported as one: a case that "
        "several have counts as the run that was started last has it.",
        epilog=f"{RUN} Exit codes: 0 written, 2 usage error, 3 a report could not be written.",
    )
    add = parser.add_argument
    add(
        "runs",
        nargs="*",
        metavar="RUN",
        help="Run to report (default: last); a first word that is a folder or .py file is the agent "
        "(default: the current folder)",
    )
    add(
        "--report",
        action="append",
        default=[],
        metavar=REPORTS,
        help="Write a report; repeatable; - is stdout (default: console)",
    )
    add("--baseline", metavar="RUN", help="Compare with this run, case by case")
    add_alpha(parser)
    add_settings(parser, "results-dir")
    return parser


def merge_parser() -> Parser:
    parser = Parser(
        prog="evaltui merge",
        description="Put run logs together as one run: all shards of a run, or runs of different cases of an "
        "agent. Without -o, the run is stored with the agent's runs.",
        epilog="A case that several logs have counts once, as the run that was started last has it. Exit "
        "codes: as of `evaltui run` for the whole run; 2 also for logs of different plans, 3 also for "
        "missing shards and unfinished cases.",
    )
    add = parser.add_argument
    add(
        "logs",
        nargs="+",
        metavar="LOG",
        help="Path of a run log, or an id or name of a stored run; a first word that is a folder or .py file "
        "is the agent (default: the current folder)",
    )
    add(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="Write the log of the merged run to FILE; it is stored, too, if the agent is named",
    )
    add(
        "--report",
        action="append",
        default=[],
        metavar=REPORTS,
        help="Write a report of the merged run; repeatable; - is stdout",
    )
    add_store_durations(parser)
    add_baseline(parser)
    add_settings(parser, "results-dir", "keep-runs")
    return parser
