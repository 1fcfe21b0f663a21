"""All commands, with their meaning, arguments and examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaltui.commands import values
from evaltui.commands.exit_codes import codes_in_words
from evaltui.commands.option import Option
from evaltui.commands.options import WORKBENCH


@dataclass(frozen=True)
class Command:
    """A command, or the workbench, which is opened without one."""

    summary: str
    """The line in the list of commands."""
    description: str
    """The description in its help, in a sentence or a few."""
    exit_codes: str = ""
    arguments: tuple[Option, ...] = ()
    """Positional arguments, in order."""
    examples: tuple[str, ...] = ()
    """Command lines without `evaltui`."""
    remark: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Parsed values that no option sets."""
    function: str = ""
    """The module in `commands` and the function there, which takes the options: `runs:compare_runs`; "" for
    what `cli` does itself."""


def _argument(name: str, form: str, help: str, type: values.Type | None = None, **more: Any) -> Option:
    return Option(name, "", "Options", help, form, type, more)


_RUN = (
    "RUN is a number, an id or its unique beginning, a name, last, or the path of a run log or an ADK result "
    "file; `evaltui runs` lists the runs."
)
_AGENT = (
    "Package or folder with agent.py, __init__.py or root_agent.yaml, one .py file, or the URL of an agent "
    "behind a network"
)
_AGENT_OF_RUNS = "Agent of the runs; not needed for paths (default: the current folder)"


def _agent_dir(help: str = _AGENT, default: Path | None = None) -> Option:
    """The agent, which `-m` may name instead."""
    return _argument("agent_dir", "AGENT_DIR", help, values.agent_word, nargs="?", default=default)


def _served_agent(help: str) -> Option:
    return _argument("agent_dir", "AGENT_DIR", help, Path, nargs="?", default=Path())


_SELECTORS = _argument(
    "selectors",
    "SET[:CASE,CASE...]",
    "Eval set (file, set id or folder), with all cases or only these (default: every set)",
    nargs="*",
)
_TRACES = _argument(
    "traces", "TRACE", "File of traces or ADK sessions, or a folder of such files", Path, nargs="+"
)
_OF_A_RUN_AGENT = {"module": "", "url": "", "headers": ()}

COMMANDS: Mapping[str, Command] = {
    WORKBENCH: Command(
        "Open the workbench",
        "A terminal workbench for LLM agents and their eval sets.",
        arguments=(_agent_dir(default=Path()),),
    ),
    "new": Command(
        "Create a starter agent with an eval set",
        "Create a starter agent with an eval set and a config. It runs offline and passes.",
        "0 created, 2 usage error, nothing written.",
        (_argument("folder", "DIR", "Folder of the agent, created if missing", Path),),
        remark="Existing files are never overwritten.",
        function="eval_sets:new",
    ),
    "demo": Command(
        "Show the loop in a minute with a sample agent",
        "Open a sample agent in a temporary folder, offline. A line at the bottom says what to press next.",
    ),
    "run": Command(
        "Run an agent's eval sets without a screen",
        "Run an agent's eval sets without a screen.",
        codes_in_words(),
        (
            _agent_dir(),
            _SELECTORS,
        ),
        (
            "run my_agent",
            "run my_agent orders:late,refund --runs 5 --pass-if majority",
            "run my_agent --only-new-failures --report junit=results.xml",
        ),
        _RUN,
        function="run:run",
    ),
    "chat": Command(
        "Chat with an agent line by line",
        "Chat with an agent line by line, at a terminal or through a pipe. A backslash at the end of a line "
        "continues the message; ctrl+c cancels the turn, ctrl+d ends the chat.",
        "0 all turns finished, 2 usage error, 3 turn failed or agent not loaded, 130 interrupted.",
        (_agent_dir(),),
        function="chat:chat",
    ),
    "record": Command(
        "Record a case from a file of user turns",
        "Record a case from a file of user turns: every call, result and text becomes the expectation.",
        "0 recorded, 2 usage error, 3 agent failed, 130 interrupted. Only 0 writes the set.",
        (
            _agent_dir(),
            _argument("set", "SET", "Eval set (file or set id), or a new file NAME.evalset.json"),
        ),
        ("record my_agent orders --case refund --turns turns.txt",),
        function="record:record",
    ),
    "runs": Command(
        "List an agent's runs",
        "List an agent's latest runs: number, id, start (local time), outcome, selected cases.",
        "0 listed or named, 2 usage error.",
        (_agent_dir(),),
        function="runs:runs",
    ),
    "compare": Command(
        "Compare two runs",
        "Compare two runs, case by case: broken, unclear, fixed, flaky, new, gone, expectation changed; with "
        "scores, time and tokens.",
        "0 compared, 2 usage error; with --fail-on-regression 1 regression, 3 selected cases of CANDIDATE "
        "without a result, or without a verdict in both runs, or no case in both.",
        (
            _agent_dir(_AGENT_OF_RUNS, Path()),
            _argument("base", "BASE", "Earlier run"),
            _argument("candidate", "CANDIDATE", "Later run"),
        ),
        ("compare my_agent 17 last",),
        _RUN,
        function="runs:compare_runs",
    ),
    "report": Command(
        "Write reports of stored runs",
        "Write reports of runs that are stored. Several runs are reported as one: of a case that several "
        "have, the latest run wins.",
        "0 written, 2 usage error, 3 a report could not be written.",
        (
            _argument(
                "runs",
                "RUN",
                "Run to report (default: last); a first word that is a folder or .py file is the agent "
                "(default: the current folder)",
                nargs="*",
            ),
        ),
        ("report my_agent --report html=report.html",),
        _RUN,
        function="report:report",
    ),
    "score": Command(
        "Score recorded traces against eval sets",
        "Score the conversations in recorded traces against eval sets. No agent is run; functions of metrics "
        "and judges run in its Python. Files of OTLP (JSON, JSON lines, protobuf), Tempo, Jaeger and ADK are "
        "read; see `evaltui help traces`.",
        "0 all passed, 1 some case failed, 2 usage error, 3 errors, metrics not evaluated, cases without a "
        "conversation, conversations without a case, or records missing, but no failure, 130 interrupted.",
        (_argument("traces", "TRACE", _TRACES.help, Path, nargs="*"),),
        ("score traces.jsonl --sets orders",),
        _RUN,
        # Of the options of `run`, those of an agent that is run.
        {
            **_OF_A_RUN_AGENT,
            "agent": None,
            "tools": None,
            "failed": False,
            "runs": None,
            "confidence": None,
            "max_runs": None,
            "ship_env": (),
            "strict_env": False,
        },
        function="score:score",
    ),
    "listen": Command(
        "Receive traces and score sessions as they complete",
        "Receive traces of agents over OTLP/HTTP and score each session against its nearest case once it is "
        "complete. No agent is run. It takes protobuf and JSON at /v1/traces and /v1/logs.",
        "2 usage error, 130 interrupted, by which it ends.",
        (_served_agent("Folder of the agent with its eval sets (default: the current folder)"),),
        defaults=_OF_A_RUN_AGENT,
        function="listen:listen",
    ),
    "serve": Command(
        "Serve the workbench to a browser",
        "Serve the workbench to a browser. It prints an address with a token; anyone with it can run the "
        "agent. Each browser tab has a session of its own.",
        "2 usage error, 130 interrupted, by which it ends.",
        (_served_agent("Folder or file of the agent, or a folder of agents (default: the current folder)"),),
        function="serve:serve",
    ),
    "merge": Command(
        "Put the logs of shards together as one run",
        "Put run logs together as one run: all shards of a run, or runs of different cases of an agent. "
        "Without -o, the run is stored with the agent's runs. Of a case that several logs have, the latest "
        "run wins.",
        "as of `evaltui run` for the whole run; 2 also for logs of different plans, 3 also for cases of "
        "missing shards and unfinished ones.",
        (
            _argument(
                "logs",
                "LOG",
                "Path of a run log, or an id or name of a stored run; a first word that is a folder or .py "
                "file is the agent (default: the current folder)",
                nargs="+",
            ),
        ),
        ("merge shards/*.sqlite -o whole.sqlite --report junit=results.xml",),
        function="merge:merge_runs",
    ),
    "inspect": Command(
        "Show the contents of recorded traces and ADK sessions",
        "Show the contents of recorded traces, and of sessions and scenarios of ADK: formats, conversations, "
        "turns, calls, and missing content with the variable that brings it.",
        "0 read, also without a conversation, 2 usage error or not readable.",
        (_TRACES,),
        function="inspect_traces:inspect_traces",
    ),
    "import": Command(
        "Add traces, sessions, rows, tests or a dataset to a set",
        "Add cases to an eval set: the conversations in recorded traces and ADK sessions, with the actual "
        "calls and responses as expected ones; scenarios of ADK, with a simulated user; the rows of a CSV, "
        "JSON or JSON lines file (LangSmith, Langfuse, Phoenix, Braintrust, OpenAI, own columns), the tests "
        "of a promptfoo config or the cases of a dataset of agents-cli. Files of rows, tests or cases may be "
        "imported again: cases are updated by id, and edits of the set are kept.",
        "0 added, 1 nothing written: declined, conflicts, or --strict and something not taken, 2 usage "
        "error, nothing added.",
        (
            _argument(
                "traces",
                "FILE",
                "File of traces, sessions, rows, tests or cases; or a folder of traces",
                Path,
                nargs="+",
            ),
        ),
        (
            "import traces.jsonl --into orders --conversation 4f2a --dry-run",
            "import .adk/session.db --into orders --conversation 4f2a",
            "import rows.csv --into orders --map user=question --map expected=answer --map id=key",
        ),
        "All cases are added or none. See `evaltui help traces` and `evaltui help datasets`.",
        function="import_files:import_files",
    ),
    "export": Command(
        "Write a run as traces or results, a set as a dataset",
        "Write a stored run as OpenTelemetry traces (OTLP as JSON), or send it: a trace per turn, with what "
        "the metrics say of it. Or write the actual conversations of a run as results of agents-cli, or an "
        "eval set as a dataset of agents-cli or as rows, with a list of what does not fit.",
        "0 exported, 1 nothing written: --strict and something does not fit, 2 usage error or nothing to "
        "export, 3 not all accepted by the endpoint.",
        (_agent_dir("Agent of the run or set; not needed for a path (default: the current folder)", Path()),),
        (
            "export --run last -o run.json",
            "export --run last --format dataset -o artifacts/traces/run.json",
            "export --set orders --format dataset -o tests/eval/datasets/orders.json",
        ),
        remark="OTEL_EXPORTER_OTLP_HEADERS has headers for the endpoint.",
        function="export:export",
    ),
    "gaps": Command(
        "Show changes that your eval sets would not notice",
        "Change the recorded conversations of passing cases (a call missing, another number, a negation, an "
        "invented promise) and score them again, without the agent, and without model calls but those of "
        "--judges: changes that their cases do not notice, and the tools, arguments and state keys that no "
        "case covers.",
        "0 shown, 1 rate of noticed changes below --fail-under, 2 usage error or no run, 3 nothing to "
        "change, or --fail-under not decided.",
        (
            _agent_dir("Agent of the runs (default: the current folder)", Path()),
            _SELECTORS,
        ),
        ("gaps my_agent", "gaps my_agent orders --report json=gaps.json --fail-under 0.8"),
        _RUN,
        defaults={"python": None},
        function="gaps:gaps",
    ),
    "lint": Command(
        "Check eval sets and configs",
        "Check eval sets and configs; each problem with path and line.",
        "0 no errors, 1 errors (with --diff: something to mend), 2 usage error.",
        (_argument("paths", "PATH", "File or folder", Path, nargs="+"),),
        function="lint:lint",
    ),
    "rename": Command(
        "Rename a tool, an argument or an agent in all files",
        "Rename a tool, an argument or an agent of your agent in everything that expects it: eval sets, "
        "rules, tool modes and criteria of configs, texts of rubrics, and recordings, which replay as "
        "before. The changes are shown first. The agent's code stays.",
        "0 renamed, 1 declined, 2 usage error, name not there or new name taken, nothing changed.",
        (
            _argument("what", "tool|argument|agent", "Kind of name", choices=("tool", "argument", "agent")),
            _argument("old", "OLD", "Name in the files; of an argument with its tool: TOOL.ARGUMENT"),
            _argument("new", "NEW", "New name"),
            _argument(
                "paths",
                "PATH",
                "File or folder; recordings of its eval sets belong to them (default: the current folder)",
                Path,
                nargs="*",
            ),
        ),
        (
            "rename tool find_order get_order my_agent",
            "rename argument get_order.id order_id my_agent --yes",
        ),
        "All files are changed or none. Names that are plain words, such as id, are renamed in texts of "
        "rubrics only in quotes or backticks.",
        function="rename:rename",
    ),
    "schema": Command(
        "Print the JSON Schema of a file format",
        "Print the JSON Schema (draft-07) of a file format, for editors and other programs.",
        "0 printed, 2 usage error, 3 agent not loaded.",
        (
            _argument(
                "format",
                "evalset|config|report|matrix|events",
                "Eval sets, test_config.json, the JSON report, or the events of a run",
                choices=("evalset", "config", "report", "matrix", "events"),
            ),
        ),
        function="schema:schema",
    ),
    "migrate": Command(
        "Convert a dataset or a file of an old format to an eval set",
        "Convert a file of an old format (list of turns or of named sessions), or an EvaluationDataset of "
        "agents-cli, to an eval set.",
        "0 written, 1 not written: --strict and something does not fit, 2 not written, with the reason.",
        (
            _argument("old", "OLD", "File to convert", Path),
            _argument("new", "NEW", "File to write; must not exist; its name becomes the set id", Path),
        ),
        remark="OLD is not changed. `evaltui export --set` writes an eval set as a dataset.",
        function="eval_sets:migrate",
    ),
    "metrics": Command(
        "List metrics and their requirements",
        "List metrics: range, meaning, requirements, and if they can be evaluated here.",
        "0 listed, 2 usage error.",
        (
            _argument(
                "place",
                "AGENT_DIR|SET",
                "Agent or eval set; its metrics are listed first",
                values.agent_word,
                nargs="?",
            ),
        ),
        function="metrics:metrics",
    ),
    "help": Command(
        "Show or search the guide",
        "Show a page of the guide, the passages that a search finds, or the list of pages.",
        "0 shown, 2 nothing found.",
        (
            _argument(
                "words",
                "WORDS",
                "A page, a command for its options, or words to search in all pages",
                nargs="*",
            ),
        ),
        ("help criteria", "help rename a tool"),
        function="help:show_help",
    ),
}

COMMAND_NAMES = tuple(name for name in COMMANDS if name != WORKBENCH)
