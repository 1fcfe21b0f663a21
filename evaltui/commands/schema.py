"""`evaltui schema`: the JSON Schemas of eval sets, configs, reports and events."""

from __future__ import annotations

import argparse
import json
from typing import Any

from evaltui.agents.errors import AgentBrokenError
from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import (
    UsageError,
    complain,
    require_one_agent,
    write_stderr,
    write_stdout,
)
from evaltui.core.model.events import Event
from evaltui.core.model.tool_schema import DeclaredTool, declared_tools
from evaltui.core.schemas.eval_files import config_schema, eval_set_schema
from evaltui.core.schemas.generating import schema_of
from evaltui.project.agent_address import AgentAddress
from evaltui.project.interpreters import InterpreterError, find_interpreter
from evaltui.project.run_settings import SettingsError
from evaltui.project.settings import secrets_of
from evaltui.runner.host import IMPORT_TIMEOUT
from evaltui.runner.interrupts import run_interruptible
from evaltui.runner.starting import HostSettings, start_host

_WITH_TOOLS = ("evalset", "config")


def schema(options: argparse.Namespace) -> int:
    """Prints a schema; 3 where the agent for its tools cannot be loaded."""
    try:
        tools = [] if options.agent_dir is None else _tools(options)
    except UsageError as error:
        return complain("schema", error)
    except AgentBrokenError as broken:
        hidden = secrets_of(options.agent_dir).mask_text(str(broken.error))
        write_stderr(f"evaltui schema: Cannot load agent: {hidden}")
        return HAD_ERRORS
    write_stdout(f"{json.dumps(_schema(options.format, tools), indent=2)}\n")
    return 0


def _tools(options: argparse.Namespace) -> list[DeclaredTool]:
    """The tools of the agent. Raises UsageError and AgentBrokenError."""
    if options.format not in _WITH_TOOLS:
        raise UsageError(
            f"--agent is for {' and '.join(_WITH_TOOLS)}; the schema of {options.format} has no tools"
        )
    named = argparse.Namespace(agent_dir=options.agent_dir, url="", module="")
    require_one_agent(named)
    try:
        interpreter = find_interpreter(options.agent_dir, options.python)
    except (InterpreterError, SettingsError) as error:
        raise UsageError(str(error)) from error
    if interpreter.problem:
        raise UsageError(interpreter.problem)
    return declared_tools(run_interruptible(_loaded(AgentAddress(options.agent_dir, None, interpreter))))


async def _loaded(agent: AgentAddress) -> dict[str, Any]:
    host = start_host(HostSettings(agent, IMPORT_TIMEOUT))
    # A schema is printed to be read by a program: what the agent prints goes elsewhere.
    hide = secrets_of(agent.folder).mask_text
    host.host.listen(lambda stream, line: write_stderr(hide(line)))
    try:
        return await host.loading
    finally:
        await host.end()


def _schema(kind: str, tools: list[DeclaredTool]) -> dict[str, Any]:
    match kind:
        case "evalset":
            return eval_set_schema(tools)
        case "config":
            return config_schema(tools)
        case "report":
            from evaltui.reports.json_report import report_schema

            return report_schema()
        case "matrix":
            from evaltui.reports.matrix_json import matrix_schema

            return matrix_schema()
        case _:
            return schema_of(Event, "Event of an evaltui run", "event")
