"""What the command line takes: one parser for the workbench and one for each command."""

from __future__ import annotations

from argparse import SUPPRESS, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from pathlib import Path

from evaltui.commands.exit_codes import codes_in_words
from evaltui.commands.parser import (
    Parser,
    Version,
    add_cluster,
    agent_word,
    alpha,
    budget,
    count,
    error_kinds,
    folder,
    limit,
    names,
    scheduler,
    seconds,
    shard,
)
from evaltui.core.statistics.differences import ALPHA
from evaltui.files.run_settings import BUDGET, COUNT, FOLDER, SCHEDULER, SECONDS, SETTINGS

_WORKBENCH_USAGE = """\
evaltui [AGENT_DIR]           open the workbench (default: the current folder)
       evaltui COMMAND ...           run a command
       evaltui COMMAND --help        show its options"""
RUN = (
    "RUN is an id or its unique beginning, a name, last, or the path of a run log or an ADK result file; "
    "`evaltui runs` lists the runs."
)
_DEFAULTS = "[tool.evaltui] of pyproject.toml sets defaults of options: see `evaltui help headless`."
_TYPES: Mapping[str, Callable[[str], object]] = {
    COUNT.form: count,
    SECONDS.form: seconds,
    FOLDER.form: folder,
    BUDGET.form: budget,
    SCHEDULER.form: scheduler,
}
REPORTS = "console|json|junit|csv|markdown|html[=PATH]"
AGENT_DIR = (
    "Package or folder with agent.py, __init__.py or root_agent.yaml, one .py file, or the URL of an agent "
    "behind a network"
)


def add_agent_dir(parser: Parser, help: str = AGENT_DIR, default: Path | None = None) -> None:
    """The agent, which `-m` may name instead."""
    parser.add_argument(
        "agent_dir", nargs="?", default=default, type=agent_word, metavar="AGENT_DIR", help=help
    )


def workbench_parser(commands: Mapping[str, str]) -> Parser:
    """Parser of `evaltui` without a command. `commands`: a summary for each name."""
    parser = Parser(
        prog="evaltui",
        usage=_WORKBENCH_USAGE,
        description="A terminal workbench for LLM agents and their eval sets.",
        epilog="commands:\n" + "\n".join(f"  {name:8} {text}" for name, text in commands.items()),
        formatter_class=RawDescriptionHelpFormatter,
    )
    add_agent_dir(parser, default=Path())
    _add_agent_name(parser)
    parser.add_argument("--set", metavar="NAME", help="Select this eval set (id or file)")
    parser.add_argument(
        "--watch", action="store_true", help="Start in watch mode: a save runs affected cases"
    )
    add_read_only(parser)
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="Use this config for all sets, remembered for this agent; own restores the config of each set",
    )
    add_settings(parser, *SETTINGS)
    add_limits(parser)
    _add_network(parser)
    parser.add_argument("--version", action=Version, nargs=0, help="Show the version")
    return parser


def run_parser() -> Parser:
    from evaltui.commands.repeat_arguments import add_repeats

    parser = Parser(
        prog="evaltui run",
        description="Run an agent's eval sets without a screen.",
        epilog=f"{RUN} Exit codes: {codes_in_words()}",
    )
    add = parser.add_argument
    add_agent_dir(parser)
    add(
        "selectors",
        nargs="*",
        metavar="SET[:CASE,CASE...]",
        help="Eval set (file, set id or folder), with all cases or only these (default: every set)",
    )
    add("--config", type=Path, metavar="FILE", help="Use this config for all sets")
    add("--initial-session", type=Path, metavar="FILE", help="Session for .test.json files in the old format")
    add_repeats(parser)
    _add_agent_name(parser)
    add_settings(parser, *SETTINGS)
    add_limits(parser)
    _add_network(parser)
    _add_reporting(parser)
    _add_names_of_adk(parser)
    return parser


def _add_names_of_adk(parser: Parser) -> None:
    """Options of `adk eval`, hidden, so that its command lines work. Details are always printed."""
    add = parser.add_argument
    add("--config_file_path", dest="config", type=Path, default=SUPPRESS, help=SUPPRESS)
    add("--num_runs", dest="runs", type=count, default=SUPPRESS, help=SUPPRESS)
    add("--print_detailed_results", action="store_true", default=SUPPRESS, help=SUPPRESS)


def _add_reporting(parser: Parser) -> None:
    """Options of `run` about the cases of earlier runs, reports and verdicts."""
    from evaltui.files.variant_settings import FORM as VARIANT_FORM

    add = parser.add_argument
    add(
        "--variant",
        action="append",
        default=[],
        metavar=VARIANT_FORM,
        help="Run the agent with changes: model=NAME, instruction=FILE (of one agent: model.AGENT, "
        "instruction.AGENT), config.FIELD=VALUE, env.NAME=VALUE, git=COMMIT or agent=DIR. A name alone: "
        "a variant of [tool.evaltui.variants], base (the agent as it is), or all of these. Repeatable: "
        "several are run as a matrix",
    )
    add_cluster(parser)
    add("--failed", action="store_true", help="Run only cases that did not pass in the last run")
    add_resuming(parser)
    add(
        "--estimate",
        action="store_true",
        help="Show what the run would take by the last run of each case (console or json), and run nothing",
    )
    add("--watch", action="store_true", help="Run affected cases again on each save, until ctrl+c")
    add_verdicts(parser)


def add_resuming(parser: Parser) -> None:
    """Options about a run that is brought to its end."""
    add = parser.add_argument
    add("--resume", metavar="RUN", help="Resume an interrupted run: missing cases and errors")
    add(
        "--retry-errors",
        type=error_kinds,
        metavar="=KIND,...",
        help="Run errors of these kinds again, of the last run or that of --resume; other results are kept "
        "(default: rate_limit,network,host_lost)",
    )


def add_verdicts(parser: Parser) -> None:
    """Options about parts of the cases, reports and verdicts."""
    add = parser.add_argument
    add(
        "--tag",
        action="append",
        default=[],
        metavar="NAME",
        help="Only cases with this tag; repeatable: with all of these",
    )
    add(
        "--not-tag",
        action="append",
        default=[],
        metavar="NAME",
        help="Only cases without this tag; repeatable: with none of these",
    )
    add(
        "--shard",
        type=shard,
        metavar="I/N",
        help="Run only the I-th of N parts of the selected cases; `evaltui merge` puts the runs together",
    )
    add(
        "--durations",
        type=Path,
        metavar="FILE",
        help="Divide into shards that take equally long, by FILE (default: by a hash of file and id)",
    )
    add_store_durations(parser)
    add_baseline(parser)
    add(
        "--require",
        type=names,
        default=(),
        metavar="METRIC,...",
        help="Start only if these metrics are configured and can be evaluated here",
    )
    add(
        "--report",
        action="append",
        default=[],
        metavar=REPORTS,
        help="Write a report; repeatable; - is stdout (default there: console)",
    )
    add("--adk-verdicts", action="store_true", help="Use ADK's verdicts unchanged")
    add("--exit-zero", action="store_true", help="Exit 0 even if cases failed or had errors")


def add_baseline(parser: Parser) -> None:
    """Options about a run to compare with."""
    add = parser.add_argument
    add("--baseline", metavar="RUN", help="Compare with this run, case by case")
    add(
        "--fail-on-regression",
        action="store_true",
        help="Exit 1 only for regressions: cases that do not pass, unless the baseline failed the same "
        "expectation, or repeats are no evidence; else 3 for cases without a result, or without a verdict in "
        "both runs; else 0",
    )
    add_alpha(parser)


def add_alpha(parser: Parser) -> None:
    parser.add_argument(
        "--alpha",
        type=alpha,
        metavar="A",
        help="Highest p that makes a regression of a repeated case that broke: of its own repeats (Fisher's "
        f"exact test), or of all cases together (McNemar's) (default: {ALPHA})",
    )


def add_store_durations(parser: Parser) -> None:
    parser.add_argument(
        "--store-durations",
        type=Path,
        metavar="FILE",
        help="Write how long each case took to FILE, for --durations; other cases in it stay",
    )


def add_read_only(parser: Parser) -> None:
    parser.add_argument(
        "--read-only",
        action="store_true",
        help="Show sets, runs and results only: no edits, no runs, no chats, no editor",
    )


def _add_agent_name(parser: Parser) -> None:
    parser.add_argument(
        "--agent",
        metavar="NAME",
        help="One of the agents in the folder, by its path or the end of it; of one agent, a sub-agent "
        "instead of the root agent",
    )


def add_settings(parser: Parser, *names: str) -> None:
    """Options for run-wide settings, which `[tool.evaltui]` has, too."""
    for name in names:
        setting = SETTINGS[name]
        meaning = f"{setting.meaning}{'; auto finds it again' if name == 'python' else ''}"
        parser.add_argument(
            f"--{name}",
            type=_TYPES.get(setting.kind.form, str),
            choices=setting.kind.choices or None,
            metavar=None if setting.kind.choices else setting.kind.form,
            help=f"{meaning} (default: {setting.default})",
        )
    parser.epilog = f"{parser.epilog}\n{_DEFAULTS}" if parser.epilog else _DEFAULTS


def add_limits(parser: Parser) -> None:
    """Options on what models are asked."""
    parser.add_argument(
        "--limit",
        dest="limits",
        action="append",
        type=limit,
        metavar="MODEL:rpm=N,tpm=N,concurrent=N",
        help="At most this for all models of this name (* for any letters): requests and tokens per minute, "
        "calls at once; repeatable (default: the table limits of [tool.evaltui], else no limit)",
    )
    parser.add_argument(
        "--allow-unmetered",
        action="store_true",
        help="With --budget: run agents whose model calls are not seen, and count models without a price as "
        "free",
    )


def _add_network(parser: Parser) -> None:
    """Options of agents behind a network that are asked."""
    add_home(parser)
    parser.add_argument(
        "--header-env",
        action="append",
        default=[],
        metavar="NAME=VARIABLE",
        help="Send this header to the agent's URL, with the value of an environment variable; repeatable",
    )


def add_home(parser: Parser) -> None:
    """Options of agents that no path names."""
    parser.add_argument(
        "-m",
        dest="module",
        metavar="MODULE",
        help="Agent by its dotted name instead of AGENT_DIR: a package or module, or module:attribute",
    )
    parser.add_argument(
        "--home",
        type=Path,
        metavar="DIR",
        help="Folder of the eval sets, configs, runs and .env of an agent with a URL (default: the current "
        "folder)",
    )


def chat_parser() -> Parser:
    parser = Parser(
        prog="evaltui chat",
        description="Chat with an agent line by line, at a terminal or through a pipe. A backslash at the "
        "end of a line continues the message; ctrl+c cancels the turn, ctrl+d ends the chat.",
        epilog="Exit codes: 0 all turns finished, 2 usage error, 3 turn failed or agent not loaded, "
        "130 interrupted.",
    )
    _add_agent(parser)
    return parser


def record_parser() -> Parser:
    parser = Parser(
        prog="evaltui record",
        description="Record a case from a file of user turns: every call, result and text becomes the "
        "expectation.",
        epilog="Exit codes: 0 recorded, 2 usage error, 3 agent failed, 130 interrupted. "
        "Only 0 writes the set.",
    )
    _add_agent(parser)
    add = parser.add_argument
    add("set", metavar="SET", help="Eval set (file or set id), or a new file NAME.evalset.json")
    add("--case", required=True, metavar="ID", help="Id of the new case")
    add(
        "--turns",
        required=True,
        metavar="FILE",
        help="User messages, separated by blank lines; while a call waits, the message is its response; "
        "- is stdin",
    )
    return parser


def _add_agent(parser: Parser) -> None:
    """Arguments that name an agent and the session of a conversation with it."""
    add = parser.add_argument
    add_agent_dir(parser)
    _add_agent_name(parser)
    add(
        "--initial-session",
        type=Path,
        metavar="FILE",
        help='Session at the start: {"app_name", "user_id", "state"}',
    )
    add_settings(parser, "timeout", "python")
    _add_network(parser)


def metrics_parser() -> Parser:
    parser = Parser(
        prog="evaltui metrics",
        description="List metrics: range, meaning, requirements, and if they can be evaluated here.",
        epilog="Exit codes: 0 listed, 2 usage error.",
    )
    parser.add_argument(
        "place",
        nargs="?",
        type=agent_word,
        metavar="AGENT_DIR|SET",
        help="Agent or eval set; its metrics are listed first",
    )
    add_home(parser)
    return parser


def demo_parser() -> Parser:
    return Parser(
        prog="evaltui demo",
        description="Open a sample agent in a temporary folder, offline. A line at the bottom says what to "
        "press next.",
    )


def help_parser() -> Parser:
    parser = Parser(
        prog="evaltui help",
        description="Show a page of the guide, or the list of its topics.",
        epilog="Exit codes: 0 shown, 2 unknown topic.",
    )
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="Page, or a command for its options")
    return parser
