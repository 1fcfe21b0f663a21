"""What a model was asked, and what is new in it since the request before."""

from __future__ import annotations

from typing import Any

from evaltui.core.model.events import Json
from evaltui.core.trace.requests import Request
from evaltui.text.lines import Line
from evaltui.text.values import visible, visible_block, visible_lines
from evaltui.tui.pages.calls import inline_args
from evaltui.tui.pages.json_value import write_json
from evaltui.tui.pages.writer import Page

NO_REQUEST = "no request to a model is known here: this framework, or this agent, reports none"


def write_request(page: Page, request: Request | None) -> None:
    """New contents first to the eye: those that were there before are dim."""
    if request is None:
        page.text([(NO_REQUEST, "dim")])
        return
    page.labelled("model", [(visible(request.model), "")])
    if not request.is_first:
        added = len(request.contents) - request.new
        page.labelled("new", [(f"{added} of {len(request.contents)} contents", "accent")])
    for change in request.changes:
        page.labelled("changed", [(visible(change), "yellow")])
    if request.unrecorded:
        page.labelled("not all", [(visible(request.unrecorded), "red")])
    _write_instruction(page, request.system_instruction)
    _write_contents(page, request)
    _write_tools(page, request)
    if request.config:
        page.blank()
        page.row(("Config", "bold"))
        write_json(page, request.config)


def _write_instruction(page: Page, instruction: str) -> None:
    page.blank()
    page.row(("System instruction", "bold"))
    for line in visible_lines(instruction) if instruction else ["none"]:
        page.block([(line, "" if instruction else "dim")], 2)


def _write_contents(page: Page, request: Request) -> None:
    page.blank()
    page.row(("Contents", "bold"), ("  what is new has a +", "dim"))
    for number, content in enumerate(request.contents):
        is_new = number >= request.new
        mark: Line = [("+ " if is_new else "  ", "accent" if is_new else "dim")]
        role = visible(str(content.get("role") or "user"))
        for part in content.get("parts") or ():
            page.text(_part(part, "" if is_new else "dim"), [*mark, (f"{role:<7}", "dim")])


def _part(part: Json, tone: str) -> Line:
    if part.get("text"):
        text = visible_block(str(part["text"]))
        return [("(thought) ", "dim"), (text, tone)] if part.get("thought") else [(text, tone)]
    if call := part.get("function_call"):
        return [("→ ", "dim"), (visible(str(call.get("name"))), tone), (inline_args(call.get("args")), "dim")]
    if result := part.get("function_response"):
        name = visible(str(result.get("name")))
        return [("← ", "dim"), (name, tone), (inline_args(_object(result.get("response"))), "dim")]
    return [(f"({visible(', '.join(part))})", "dim")]


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {"result": value}


def _write_tools(page: Page, request: Request) -> None:
    page.blank()
    page.row(("Tools", "bold"))
    if not request.tools:
        page.row(("  none", "dim"))
    for tool in request.tools:
        description = visible(" ".join(str(tool.get("description") or "").split()))
        page.text(
            [(description, "dim")], [("  ", ""), (visible(str(tool.get("name") or "?")), ""), ("  ", "")]
        )
        schema = tool.get("parameters_json_schema") or tool.get("parameters")
        if schema:
            write_json(page, schema, indent=6)
