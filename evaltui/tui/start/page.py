"""The page of an agent without eval cases, and the page of an agent that cannot be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evaltui.core.model.events import Json
from evaltui.core.model.outcome import ErrorInfo
from evaltui.project.agent_source import SourcePlace, root_place, source_lines
from evaltui.project.interpreters import Interpreter
from evaltui.project.workspace import Workspace
from evaltui.runner.python_check import python_lines
from evaltui.text.figures import counted, plural, short_list
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells, pad
from evaltui.text.syntax import code_lines
from evaltui.text.values import cut, visible
from evaltui.tui.main.status import FRAMEWORKS
from evaltui.tui.widgets.writer import Page, write_error
from evaltui.workbench.agent.agent_state import AgentState, api_key
from evaltui.workbench.agent.first_minute import error_place, missing_package
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.workbench import Workbench

_MAX_TOOLS = 20
_TITLE_WIDTH = 24


class Choice(NamedTuple):
    """A line of a page with an action."""

    line: int
    """Its number, 0-based."""
    action: str


class Offer(NamedTuple):
    """A useful action."""

    action: str
    title: str
    remark: str
    number: str = ""
    """Its number in a list of steps."""


_STEPS = (
    Offer("chat_from_here", "Chat with the agent", "Ask what a user would ask", "1"),
    Offer("save_as_case", "Save as case", "Its calls become expected", "2"),
    Offer("run", "Run the case", "Watch mode repeats it", "3"),
)
_OTHER_WAYS = (
    Offer("new_case", "An empty case", "Write it by hand"),
    Offer("new_set", "A new eval set", "Name its file first"),
)


def write_start(page: Page, workbench: Workbench) -> list[Choice]:
    """Writes the facts of the agent and the way to its first case; returns the choices, first to last."""
    page.lines.append([])
    agent = workbench.agent
    if agent.error is not None:
        return _write_broken_start(page, agent, agent.error)
    if agent.info is None:
        page.row(("◐ ", "accent"), ("Loading agent…", "bold"))
        if agent.python_check is not None:
            page.blank()
            page.lines += python_lines(agent.python_check)
        return []
    _write_ready(page, agent, agent.info)
    _write_empty_sets(page, workbench.sets)
    choices = _write_offers(page, "Create your first eval case", _STEPS)
    choices += _write_offers(page, "Or start from", _OTHER_WAYS)
    _write_tools(page, agent.info)
    _write_skipped(page, workbench.sets.workspace)
    return choices


def _write_offers(page: Page, title: str, offers: Sequence[Offer]) -> list[Choice]:
    page.section((title, "bold"))
    choices = []
    for offer in offers:
        choices.append(Choice(len(page.lines), offer.action))
        key = key_of(offer.action)
        head: Line = [(f"  {offer.number:2}", "faint"), (pad(key, 8), "bold accent")]
        page.row(*head, (pad(offer.title, _TITLE_WIDTH), "bold"), (f"{offer.remark}", "muted"))
    return choices


def _write_ready(page: Page, agent: AgentState, info: Json) -> None:
    model = str(info.get("model") or "")
    framework = FRAMEWORKS.get(str(info.get("framework")), str(info.get("framework")))
    facts = ", ".join(part for part in (framework, model) if part)
    name: Line = [(visible(str(info.get("name"))), "bold"), (f"  {visible(facts)}", "muted")]
    page.row((" ✓ READY ", "bold success exp"), ("  ", ""), *name)
    page.blank()
    if (place := root_place(agent.dir)) is not None:
        page.labelled("agent", [(visible(place.shown(agent.dir)), "function underline")])
    if url := agent.address.url:
        page.labelled("URL", [(visible(url), "")])
        what: Span = ("  sets, config, runs, .env", "muted")
        page.labelled("home", [(visible(str(agent.dir.absolute())), ""), what])
    else:
        page.labelled("Python", _python(agent.address.interpreter, str(info.get("python", ""))))
        if agent.python_check is not None and agent.python_check.adk:
            page.labelled("google-adk", [(agent.python_check.adk, "")])
    if (key := api_key(agent.dir, model)) is not None:
        variable, where = key
        missing: Line = [("! GOOGLE_API_KEY is not set", "warning"), ("  Set it in .env", "muted")]
        page.labelled("API key", [(variable, "key"), (f"  from {where}", "muted")] if variable else missing)


def _python(interpreter: Interpreter, version: str) -> Line:
    why = f"from {interpreter.reason}" if interpreter.reason else "runs evaltui and the agent"
    return [(version, ""), (f"  {visible(str(interpreter.path))}", "muted"), (f"  {visible(why)}", "muted")]


def _write_empty_sets(page: Page, sets: OpenSets) -> None:
    names = [visible(eval_set.path.name) for eval_set in sets.listed]
    if names:
        page.labelled(plural(len(names), "eval set"), [(short_list(names), ""), ("  no cases yet", "muted")])


def _write_tools(page: Page, info: Json) -> None:
    tools = info.get("tools") or []
    if not tools:
        return
    page.section((counted(len(tools), "tool"), "bold"))
    heads = [_signature(tool) for tool in tools[:_MAX_TOOLS]]
    width = min(max(map(cells, heads)), page.width // 2)
    for tool, head in zip(tools, heads, strict=False):
        space = " " * max(1, width - cells(head) + 2)
        about = str(tool.get("description") or "").strip().partition("\n")[0]
        page.row(("  ", ""), *head, (space, ""), (visible(about), "muted"))
    page.more(len(tools) - _MAX_TOOLS)


def _write_skipped(page: Page, workspace: Workspace | None) -> None:
    """Writes the files that are no eval sets although they may look like ones."""
    if workspace is None or not workspace.skipped:
        return
    page.section(("Not eval sets", "bold"))
    for skipped in workspace.skipped:
        page.hanging([(f"  {visible(str(skipped.path))}  ", ""), (visible(skipped.reason), "muted")], 4)


def _signature(tool: Json) -> Line:
    """The signature of a tool: `set_light(location, status)`."""
    properties = (tool.get("parameters") or {}).get("properties") or {}
    arguments = cut(", ".join(properties), 40)
    return [
        (visible(str(tool.get("name"))), "function"),
        ("(", "comment"),
        (visible(arguments), "key"),
        (")", "comment"),
    ]


# What cannot be loaded


def _write_broken_start(page: Page, agent: AgentState, error: ErrorInfo) -> list[Choice]:
    place = error_place(agent, error)
    missing = missing_package(agent.dir, error, agent.address.interpreter)
    write_broken(page, agent, error)
    offers = []
    if missing is not None and missing.command:
        offers.append(Offer("copy", "Copy the command", "Paste it in a shell, then retry"))
    if place is not None:
        offers.append(Offer("open_source", f"Open {visible(place.shown(agent.dir))}", "In $EDITOR"))
    remark = "Start the server first" if agent.address.url else "Retries on save"
    offers.append(Offer("reload", "Retry", remark))
    choices = _write_offers(page, "Next", offers)
    if error.traceback.strip():
        page.section(("Traceback", "bold"))
        write_error(page, error)
    return choices


def write_broken(page: Page, agent: AgentState, error: ErrorInfo) -> None:
    """Writes why an agent cannot be loaded, and the lines of its source."""
    place = error_place(agent, error)
    missing = missing_package(agent.dir, error, agent.address.interpreter)
    where = visible(place.shown(agent.dir)) if place else ""
    page.row((" ! ERROR ", "bold error act"), ("  Cannot load agent", "bold"), (f"  {where}", "function"))
    page.blank()
    named = f"{error.type}: " if place else ""
    at_server = f"{error.where}: " if agent.address.url and error.where else ""
    message = f"{named}{at_server}{error.message.strip()}"
    page.block([(visible(message.partition("\n")[0]), "error")], 2)
    if missing is not None:
        # All that is missing, where more than this is.
        check = agent.python_check
        command = check.install if missing.command and check and check.install else missing.command
        _write_missing(page, command, missing.own_module)
    if place is not None:
        write_source(page, place)


def _write_missing(page: Page, command: str, own_module: str) -> None:
    page.blank()
    if own_module:
        page.labelled(
            "did you mean", [(f" {visible(own_module)}", "bold"), ("  a module of this agent", "muted")]
        )
    elif command:
        page.labelled("install", [(visible(command), "bold")])


def write_source(page: Page, place: SourcePlace) -> None:
    """Writes the lines of a file around a marked line."""
    page.blank()
    lines, current = source_lines(place), place.line
    lexer = "json" if place.path.suffix == ".json" else "python"
    coloured = code_lines("\n".join(text.expandtabs(4) for _, text in lines), lexer)
    for (number, _), line in zip(lines, coloured, strict=False):
        mark = ("▌", "bold error") if number == current else (" ", "")
        row = [(text, f"{role} act" if number == current else role) for text, role in line]
        page.row((" ", ""), mark, (f"{number:4}  ", "faint"), *row)
