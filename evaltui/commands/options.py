"""Every option of every command, a row each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from evaltui.commands import values
from evaltui.commands.option import REPEATED, Group, Option
from evaltui.core.model.modes import DEFAULT_MODE
from evaltui.core.statistics import ALPHA
from evaltui.project.run_settings import BUDGET, COUNT, FOLDER, SCHEDULER, SECONDS, SETTINGS
from evaltui.reports.writers import WRITERS

WORKBENCH = "evaltui"
"""The name of the command that opens the workbench."""
# As in core, which is slower to import.
MAX_RUNS = 50

_REPORTS = f"{'|'.join(WRITERS)}[=PATH]"
_TYPES: Mapping[str, values.Type] = {
    COUNT.form: values.count,
    SECONDS.form: values.seconds,
    FOLDER.form: values.folder,
    BUDGET.form: values.budget,
    SCHEDULER.form: values.scheduler,
}


def _setting(name: str, group: Group, commands: str, end: str = "") -> Option:
    """The option of a run-wide setting."""
    setting = SETTINGS[name]
    choices, form = setting.kind.choices, setting.kind.form
    meaning = f"{setting.meaning}{end} (default: {setting.default})"
    more = {"choices": choices} if choices else {}
    return Option(f"--{name}", commands, group, meaning, "" if choices else form, _TYPES.get(form), more)


OPTIONS: tuple[Option, ...] = (
    # Cases
    Option("--set", WORKBENCH, "Cases", "Select this eval set (id or file)", "NAME"),
    Option(
        "--sets",
        "score",
        "Cases",
        "Eval sets (file, set id or folder), with all cases or only these (default: all sets of --home)",
        "SET[:CASE,CASE...]",
        more={"dest": "selectors", "nargs": "+", "action": "extend", "default": []},
    ),
    *(
        Option(name, "run score", "Cases", meaning, "NAME", more=REPEATED)
        for name, meaning in (
            ("--tag", "Only cases with this tag; repeatable: with all of these"),
            ("--not-tag", "Only cases without this tag; repeatable: with none of these"),
        )
    ),
    Option("--failed", "run", "Cases", "Run only cases whose last result is not a pass"),
    Option("--resume", "run score", "Cases", "Resume an interrupted run: missing cases and errors", "RUN"),
    Option(
        "--retry-errors",
        "run score",
        "Cases",
        "Run errors of these kinds again, of the last run or that of --resume; other results are kept "
        "(default: rate_limit,network,host_lost)",
        "=KIND,...",
        values.error_kinds,
    ),
    Option("--watch", WORKBENCH, "Cases", "Start in watch mode: a save runs affected cases"),
    Option("--watch", "run", "Cases", "Run affected cases again on each save, until ctrl+c"),
    Option(
        "--case-from",
        "score",
        "Cases",
        "Attribute of spans with the id of the case, or SET:CASE (default: evaltui.eval.case.id, "
        "agentevals.eval.case.id, the session's id, then the user's messages)",
        "ATTRIBUTE",
    ),
    Option("--only-paired", "score", "Cases", "Leave out selected cases without a conversation"),
    Option("--config", "run score", "Cases", "Use this config for all sets", "FILE", Path),
    Option(
        "--config",
        WORKBENCH,
        "Cases",
        "Use this config for all sets, remembered for this agent; own restores the config of each set",
        "FILE",
    ),
    Option(
        "--initial-session",
        "run score",
        "Cases",
        "Session for .test.json files in the old format",
        "FILE",
        Path,
    ),
    # Repeats
    Option(
        "--runs",
        "run",
        "Repeats",
        "Run each case N times (default: as in the config, else 1)",
        "N",
        values.count,
    ),
    Option(
        "--pass-if", "run score", "Repeats", "How many repeats must pass", "all|majority|RATE", values.pass_if
    ),
    Option(
        "--confidence",
        "run",
        "Repeats",
        "Repeat each case until it is clear whether it passes; 0.95: at most 1 of 20 verdicts is wrong. "
        "See `evaltui help repeats`",
        "P",
        values.confidence,
    ),
    Option(
        "--max-runs",
        "run",
        "Repeats",
        f"With --confidence: stop after N repeats; a case that is still unclear is not evaluated "
        f"(default: {MAX_RUNS})",
        "N",
        values.count,
    ),
    # Agent
    Option(
        "--agent",
        f"{WORKBENCH} run chat record",
        "Agent",
        "If the folder has several agents: the one to use, e.g. desk or agents/desk; if it has one: a "
        "sub-agent to run instead of the root agent",
        "NAME",
    ),
    Option(
        "--agent",
        "import",
        "Agent",
        "Agent whose eval set it is, and whose secrets are masked (default: the current folder)",
        "AGENT_DIR",
        Path,
        {"dest": "agent_dir", "default": Path()},
    ),
    Option(
        "--agent",
        "schema",
        "Agent",
        "Agent whose tools and their arguments are proposed in eval sets and configs",
        "AGENT_DIR",
        Path,
        {"dest": "agent_dir"},
    ),
    _setting("python", "Agent", f"{WORKBENCH} run chat record score listen schema", "; auto finds it again"),
    _setting("timeout", "Agent", f"{WORKBENCH} run chat record score listen"),
    _setting("parallel", "Agent", f"{WORKBENCH} run score"),
    _setting("workers", "Agent", f"{WORKBENCH} run"),
    Option(
        "-m",
        f"{WORKBENCH} run chat record runs compare export gaps metrics",
        "Agent",
        "Agent by its dotted name instead of AGENT_DIR: a package or module, or module:attribute",
        "MODULE",
        more={"dest": "module"},
    ),
    Option(
        "--home",
        f"{WORKBENCH} run chat record runs compare export gaps metrics",
        "Agent",
        "Folder of the eval sets, configs, runs and .env of an agent with a URL "
        "(default: the current folder)",
        "DIR",
        Path,
    ),
    Option(
        "--home",
        "score",
        "Agent",
        "Folder of the agent, where its runs are kept (default: that of the agent around the first eval set, "
        "else the current folder)",
        "DIR",
        Path,
        {"dest": "agent_dir"},
    ),
    Option(
        "--header-env",
        f"{WORKBENCH} run chat record",
        "Agent",
        "Send this header to the agent's URL, with the value of an environment variable; repeatable",
        "NAME=VARIABLE",
        more=REPEATED,
    ),
    Option(
        "--initial-session",
        "chat record",
        "Agent",
        'Session at the start: {"app_name", "user_id", "state"}',
        "FILE",
        Path,
    ),
    # Recording
    _setting("record", "Recording", f"{WORKBENCH} run"),
    Option(
        "--record",
        "score gaps",
        "Recording",
        "Model calls of judges: auto replays known calls and records new ones; replay never calls a model; "
        f"record calls and stores again; off stores nothing (default: {DEFAULT_MODE})",
        more={"choices": SETTINGS["record"].kind.choices},
    ),
    _setting("tools", "Recording", f"{WORKBENCH} run"),
    # Limits and cost
    _setting("budget", "Limits and cost", f"{WORKBENCH} run score gaps"),
    Option(
        "--limit",
        f"{WORKBENCH} run score gaps",
        "Limits and cost",
        "Rate limit per model: requests and tokens per minute, calls at once; * matches any letters; "
        "repeatable (default: the table limits of [tool.evaltui], else no limit)",
        "MODEL:rpm=N,tpm=N,concurrent=N",
        values.limit,
        {"dest": "limits", "action": "append"},
    ),
    Option(
        "--allow-unmetered",
        f"{WORKBENCH} run score gaps",
        "Limits and cost",
        "With --budget: run even if some model calls cannot be counted; models without a price count as free",
    ),
    Option(
        "--estimate",
        "run",
        "Limits and cost",
        "Show what the run would take by the last run of each case (console or json), and run nothing",
    ),
    Option(
        "--judges",
        "gaps",
        "Limits and cost",
        "Ask the judges of the criteria about changes that no other metric noticed; without it, their number "
        "and the price are shown",
    ),
    # Variants
    Option(
        "--variant",
        "run",
        "Variants",
        "Run the agent with changes: model=NAME, instruction=FILE (of one agent: model.AGENT, "
        "instruction.AGENT), config.FIELD=VALUE, env.NAME=VALUE, git=COMMIT or agent=DIR. A name alone: a "
        "variant of [tool.evaltui.variants], base (the agent as it is), or all of these. Repeatable: several "
        "are run as a matrix",
        "NAME:KEY=VALUE,…",
        more=REPEATED,
    ),
    # Machines
    _setting("scheduler", "Machines", f"{WORKBENCH} run"),
    Option(
        "--ship-env",
        "run",
        "Machines",
        "With --scheduler: set these environment variables on the workers, as they are here or in .env; no "
        "other is sent",
        "NAME,...",
        values.variables,
        {"default": ()},
    ),
    Option(
        "--strict-env",
        "run",
        "Machines",
        "With --scheduler: use no worker with other versions of Python or of the packages of the agent",
    ),
    Option(
        "--machines",
        "run",
        "Machines",
        "With --estimate: time on M machines, each as this one",
        "M",
        values.count,
    ),
    Option(
        "--shard",
        "run score",
        "Machines",
        "Run only the I-th of N parts of the selected cases; `evaltui merge` puts the runs together",
        "I/N",
        values.shard,
    ),
    Option(
        "--durations",
        "run score",
        "Machines",
        "Divide into shards that take equally long, by FILE (default: by a hash of file and id)",
        "FILE",
        Path,
    ),
    Option(
        "--store-durations",
        "run score merge",
        "Machines",
        "Write how long each case took to FILE, for --durations; other cases in it stay",
        "FILE",
        Path,
    ),
    # Reports
    Option(
        "--report",
        "run score report",
        "Reports",
        "Write a report; repeatable; - is stdout (default there: console)",
        _REPORTS,
        more=REPEATED,
    ),
    Option(
        "--report",
        "merge",
        "Reports",
        "Write a report of the merged run; repeatable; - is stdout",
        _REPORTS,
        more=REPEATED,
    ),
    Option(
        "--report",
        "compare gaps",
        "Reports",
        "Write the result; repeatable; - is stdout (default: console)",
        "console|json[=PATH]",
        more=REPEATED,
    ),
    Option(
        "--format",
        "inspect",
        "Reports",
        "Form of the output (default: console)",
        more={"choices": ("console", "json"), "default": "console"},
    ),
    Option(
        "--format",
        "listen",
        "Reports",
        "A line per session for people, or as JSON (default: console)",
        more={"choices": ("console", "json"), "default": "console"},
    ),
    Option(
        "--format",
        "lint",
        "Reports",
        "Form of the output: for people, as JSON, as SARIF 2.1.0, or as annotations of GitHub Actions "
        "(default: console)",
        more={"choices": ("console", "json", "sarif", "github"), "default": "console"},
    ),
    Option(
        "--name",
        "runs",
        "Reports",
        "Name a run instead of listing runs",
        more={"nargs": 2, "metavar": ("RUN", "NAME")},
    ),
    Option(
        "-o --output",
        "merge",
        "Reports",
        "Write the log of the merged run to FILE; it is stored, too, if the agent is named",
        "FILE",
        Path,
    ),
    Option(
        "--run",
        "export",
        "Reports",
        "Run: `last`, a number, a path, a name, an id or the beginning of one",
        "RUN",
    ),
    Option("--set", "export", "Reports", "Eval set (file or set id) instead of a run", "SET"),
    Option(
        "--format",
        "export",
        "Reports",
        "Format: otlp (traces) or dataset (EvaluationDataset of agents-cli) of a run; dataset, promptfoo or "
        "rows (messages of OpenAI as JSON lines; a table if FILE ends in .csv) of a set (default: otlp)",
        more={"choices": ("otlp", "dataset", "rows", "promptfoo"), "default": "otlp"},
    ),
    Option("--run", "gaps", "Reports", "Run to change (default: the agent's newest with the case)", "RUN"),
    Option(
        "-o",
        "export",
        "Reports",
        "File to write; - is stdout",
        "FILE",
        Path,
        {"dest": "output"},
        instead="required",
    ),
    Option(
        "--endpoint",
        "export",
        "Reports",
        "Send to this OTLP/HTTP endpoint, e.g. http://localhost:4318; /v1/traces is added",
        "URL",
        instead="required",
    ),
    _setting("results-dir", "Reports", f"{WORKBENCH} run score runs compare report merge export gaps"),
    _setting("keep-runs", "Reports", f"{WORKBENCH} run score merge listen"),
    # CI
    Option("--baseline", "run score report merge", "CI", "Compare with this run, case by case", "RUN"),
    Option(
        "--fail-on-regression",
        "run score merge compare",
        "CI",
        "Exit 1 only if a case fails that passed in the baseline (with repeats: if the difference is "
        "significant); exit 3 for cases without a result, or a verdict in both runs, and for no case in both",
    ),
    Option(
        "--only-new-failures",
        "run score merge",
        "CI",
        "Exit 1 only for failures that the baseline does not have: --fail-on-regression, and --baseline last "
        "unless that names another run",
    ),
    Option("--fail-under", "gaps", "CI", "Exit 1 below this rate of noticed changes", "RATE", values.rate),
    Option(
        "--alpha",
        "run score report merge compare",
        "CI",
        f"Significance level for regressions of repeated cases (default: {ALPHA})",
        "A",
        values.alpha,
    ),
    Option(
        "--require",
        "run score",
        "CI",
        "Start only if these metrics are configured and can be evaluated here",
        "METRIC,...",
        values.names,
        {"default": ()},
    ),
    Option("--adk-verdicts", "run score", "CI", "Use ADK's verdicts unchanged"),
    Option("--exit-zero", "run score", "CI", "Exit 0 even if cases failed or had errors"),
    # Few commands have these.
    Option(
        "--read-only",
        f"{WORKBENCH} serve",
        "Options",
        "Show sets, runs and results only: no edits, no runs, no chats, no editor",
    ),
    Option("--case", "record", "Options", "Id of the new case", "ID", more={"required": True}),
    Option(
        "--turns",
        "record",
        "Options",
        "User messages, separated by blank lines; while a call waits, the message is its response; "
        "- is stdin",
        "FILE",
        more={"required": True},
    ),
    Option(
        "--into",
        "import",
        "Options",
        "Eval set (file or set id), or a new NAME.evalset.json",
        "SET",
        more={"required": True},
    ),
    Option(
        "--conversation",
        "import",
        "Options",
        "Only this conversation, by its id as `evaltui inspect` shows it; repeatable",
        "ID",
        more=REPEATED,
    ),
    Option(
        "--turns", "import", "Options", "Only these turns of the conversation, e.g. 2-4, 1,3 or 2-", "N-M"
    ),
    Option(
        "--case",
        "import",
        "Options",
        "Id of the case (default: the case that the trace names, else the first words of the user)",
        "ID",
    ),
    Option("--dry-run", "import", "Options", "Show what would be added, and write nothing"),
    Option(
        "--map",
        "import",
        "Options",
        "Member of a row that is a field of the case: id, user, messages, expected, calls, state, tag or "
        "ignore; repeatable (default: as in the last import, else by the names of members)",
        "FIELD=PATH",
        more=REPEATED,
    ),
    Option(
        "--conflicts",
        "import",
        "Options",
        "Cases that the set and the file have both changed since the last import: keep mine (of the set) or "
        "take theirs",
        more={"choices": ("mine", "theirs")},
    ),
    Option("--yes", "import", "Options", "Write rows and tests without asking; they are shown all the same"),
    Option(
        "--strict", "export import migrate", "Options", "Exit 1 and write nothing if something does not fit"
    ),
    Option(
        "--markdown",
        "help",
        "Options",
        "Write all pages as Markdown into this folder, with an llms.txt that lists them",
        "DIR",
        Path,
    ),
    Option("--fix", "lint", "Options", "Repair problems that have exactly one right repair"),
    Option("--diff", "lint", "Options", "Show the changes of --fix, and make none"),
    Option("--yes", "rename", "Options", "Rename without asking; the changes are shown all the same"),
    Option(
        "--initial-session", "migrate", "Options", "Session for a list of turns (.test.json)", "FILE", Path
    ),
    Option(
        "--adk",
        "new",
        "Options",
        "Create a google-adk agent (default: an evaltui.Agent, without a framework)",
        more={"action": "store_const", "const": "adk", "default": "native", "dest": "kind"},
    ),
    *(
        Option(
            "--port",
            command,
            "Options",
            f"Port, 0 for any that is free (default: {port})",
            "N",
            values.port,
            {"default": port},
        )
        for command, port in (("serve", 8700), ("listen", 4318))
    ),
    *(
        Option(
            "--host",
            command,
            "Options",
            f"Address; others than those of this machine need {needed} (default: 127.0.0.1)",
            "ADDRESS",
            values.host,
            {"default": "127.0.0.1"},
        )
        for command, needed in (("serve", "TLS or --origin"), ("listen", "a token"))
    ),
    Option(
        "--origin",
        "serve",
        "Options",
        "Another address that browsers use, such as that of a proxy: https://desk.example; repeatable",
        "URL",
        more=REPEATED,
    ),
    Option("--tls-cert", "serve", "Options", "Certificate, to speak HTTPS", "FILE", Path),
    Option("--tls-key", "serve", "Options", "Key of the certificate (default: in its file)", "FILE", Path),
    Option(
        "--token",
        "listen",
        "Options",
        "Take only requests with Authorization: Bearer TOKEN",
        "TOKEN",
        instead="optional",
    ),
    Option(
        "--token-env",
        "listen",
        "Options",
        "The same, with the value of an environment variable, which other users do not see",
        "VARIABLE",
        instead="optional",
    ),
    Option(
        "--token-env",
        "serve",
        "Options",
        "Take the token from an environment variable (default: a new one every time)",
        "VARIABLE",
    ),
    # Names of `adk eval`, so that its command lines work. Details are always printed.
    *(
        Option(name, "run", "Options", argparse.SUPPRESS, form, type_, {"default": argparse.SUPPRESS, **more})
        for name, form, type_, more in (
            ("--config_file_path", "FILE", Path, {"dest": "config"}),
            ("--num_runs", "N", values.count, {"dest": "runs"}),
            ("--print_detailed_results", "", None, {}),
        )
    ),
)
