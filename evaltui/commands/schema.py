"""`evaltui schema`: the JSON Schemas of eval sets, configs, reports and events."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from evaltui.agents.errors import AgentBrokenError
from evaltui.commands.exit_codes import HAD_ERRORS
from evaltui.commands.output import (
    UsageError,
    require_agent,
    write_stderr,
    write_stdout,
)
from evaltui.core.metrics.declaration import MetricInfo, Option
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalSet, Rubric
from evaltui.core.model.events import Event
from evaltui.core.model.tool_schema import DeclaredTool, declared_tools, inline_references, kinds_of
from evaltui.core.schemas.generating import Schema, schema_of
from evaltui.project.agent_address import AgentAddress
from evaltui.project.interpreters import InterpreterError, find_interpreter
from evaltui.project.run_settings import SettingsError
from evaltui.project.settings import secrets_of
from evaltui.runner.host import IMPORT_TIMEOUT
from evaltui.runner.interrupts import run_interruptible
from evaltui.runner.starting import HostSettings, start_host

_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_ALTERNATIVES = ("allOf", "anyOf", "any_of", "oneOf")


def proposed_names(tools: Sequence[DeclaredTool]) -> list[Schema]:
    """The names of tools as alternatives in a schema."""
    return [{"const": tool.name, **_description(tool.description)} for tool in tools]


def propose_calls(call: Schema, tools: Sequence[DeclaredTool]) -> None:
    """Adds the names of tools to the schema of a call, with the arguments of each."""
    name = call["properties"]["name"]
    call["properties"]["name"] = {**name, "anyOf": [*proposed_names(tools), *name["anyOf"]]}
    call["allOf"] = [
        {
            "if": {"properties": {"name": {"const": tool.name}}, "required": ["name"]},
            "then": {"properties": {"args": proposal(inline_references(tool.parameters, tool.parameters))}},
        }
        for tool in tools
        if tool.parameters is not None
    ]


def proposal(schema: Any) -> Schema:
    """A schema that allows every value but has the keys, choices and types of another schema, for proposals
    of editors.

    The other schema must have no references.
    """
    if not isinstance(schema, Mapping):
        return {}
    proposed = _description(schema.get("description"))
    properties: Schema = {}
    values: list[Schema] = []
    for part in _parts(schema):
        properties |= part.get("properties", {})
        values += [subschema for subschema in part.get("anyOf", ()) if subschema]
        proposed |= {"items": part["items"]} if "items" in part else {}
    own = schema.get("properties")
    properties |= (
        {str(name): proposal(subschema) for name, subschema in own.items()}
        if isinstance(own, Mapping)
        else {}
    )
    values += _values(schema)
    if "items" in schema:
        proposed["items"] = proposal(schema["items"])
    if properties:
        proposed["properties"] = properties
    # The last alternative is for any other value.
    return proposed | ({"anyOf": [*values, {}]} if values else {})


def _parts(schema: Mapping[str, Any]) -> list[Schema]:
    alternatives = [schema[name] for name in _ALTERNATIVES if isinstance(schema.get(name), list)]
    return [proposal(schema) for schemas in alternatives for schema in schemas]


def _values(schema: Mapping[str, Any]) -> list[Schema]:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list) and choices:
        return [{"enum": choices}]
    return [{"type": kind} for kind in sorted(kinds_of(schema) & _TYPES)] if "type" in schema else []


def _description(text: Any) -> Schema:
    return {"description": text} if isinstance(text, str) and text else {}


_OLD_FORMAT = "A format before the EvalSet schema; `evaltui migrate` converts it."
_OPTION_TYPES = {"flag": "boolean", "text": "string", "whole number": "integer", "rubrics": "array"}


def eval_set_schema(tools: Sequence[DeclaredTool] = ()) -> Schema:
    """The schema of eval sets, with proposals for names and arguments of these tools."""
    schema = schema_of(EvalSet, "Eval set")
    if tools:
        propose_calls(schema["definitions"]["FunctionCall"], tools)
    outline = ("$schema", "title", "description", "definitions")
    head = {name: schema.pop(name) for name in outline}
    head["definitions"]["EvalSet"] = schema
    return {
        **head,
        "if": {"type": "array"},
        "then": {"description": _OLD_FORMAT},
        "else": {"$ref": "#/definitions/EvalSet"},
    }


def config_schema(tools: Sequence[DeclaredTool] = ()) -> Schema:
    """The schema of configs, with proposals for names of these tools."""
    schema = schema_of(EvalConfig, "Eval config")
    block = schema["definitions"]["EvaltuiBlock"]["properties"]
    names = proposed_names(tools)
    for criteria, source in ((schema["properties"]["criteria"], "adk"), (block["criteria"], "evaltui")):
        anything = criteria["additionalProperties"]
        criteria["properties"] = {
            name: _criterion(info, anything, names)
            for name, info in METRICS.items()
            if info.source == source and info.gates
        }
    if tools:
        rule = schema["definitions"]["ArgRule"]["properties"]
        rule["tool"]["anyOf"] = [*names, {"type": "string"}]
        modes = block["tools"]["additionalProperties"]
        block["tools"]["properties"] = {tool.name: modes for tool in tools}
    return schema


def _criterion(info: MetricInfo, anything: Schema, tools: list[Schema]) -> Schema:
    """Schema of a metric in a config: a threshold, or an object with proposed options."""
    schema = {"description": info.meaning, **anything}
    options: Schema = {}
    for option in info.options:
        _add_option(options, option, tools)
    return schema | ({"properties": options} if options else {})


def _add_option(options: Schema, option: Option, tools: list[Schema]) -> None:
    *above, name = map(str, option.path)
    for step in above:
        options = options.setdefault(step, {"properties": {}})["properties"]
    options[name] = _option_schema(option, tools)


def _option_schema(option: Option, tools: list[Schema]) -> Schema:
    described: dict[str, Any] = {"description": option.meaning}
    described |= {"enum": list(option.choices)} if option.choices else {"type": _OPTION_TYPES[option.kind]}
    if option.kind == "rubrics":
        fields = Rubric.model_json_schema(by_alias=False, mode="serialization")["properties"]
        described["items"] = {"type": "object", "properties": {name: {} for name in fields}}
    schema = proposal(described)
    if option.path == ("tool",) and tools:
        schema["anyOf"] = [*tools, *schema["anyOf"]]
    return schema | ({} if option.default is None else {"default": option.default})


_WITH_TOOLS = ("evalset", "config")


def schema(options: argparse.Namespace) -> int:
    """Prints a schema; 3 where the agent for its tools cannot be loaded."""
    try:
        tools = [] if options.agent_dir is None else _tools(options)
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
    require_agent(options.agent_dir)
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
        case "report" | "matrix":
            from evaltui.reports.json_report import matrix_schema, report_schema

            return report_schema() if kind == "report" else matrix_schema()
        case _:
            return schema_of(Event, "Event of an evaltui run", "event")
