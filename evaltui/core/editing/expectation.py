"""What a turn says of tool calls, of which there are four kinds, and whether it is scored at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from evaltui.core.editing import references
from evaltui.core.editing.calls import add_call, expected_calls
from evaltui.core.editing.intermediate import (
    field_parts,
    intermediate_path,
    list_path,
    shape,
    without_parts,
)
from evaltui.core.editing.json_paths import Changes, eval_id, in_style, list_at, set_id
from evaltui.core.jsondoc.edits import Edit, Put, Remove

Kind = Literal["calls", "none", "unspecified", "unchecked"]
KINDS: tuple[Kind, ...] = ("calls", "none", "unspecified", "unchecked")


@dataclass(frozen=True)
class TurnExpectation:
    """`calls`: these calls; `none`: no call; `unspecified`: nothing is said; `unchecked`: calls may be any.

    A `context` turn is run and not scored, whatever it says of calls.
    """

    kind: Kind
    context: bool


def expectation(data: Any, config: Any, case: int, turn: int) -> TurnExpectation:
    """`config` is the data of the config that scores the set, None where there is no file."""
    mode = references.mode_of(config, (set_id(data), eval_id(data, case)), turn)
    if mode == "skip":
        return TurnExpectation("unchecked", context=False)
    return TurnExpectation(_said_of_calls(data, case, turn), context=mode == "context")


def switch(data: Any, config: Any, case: int, turn: int, kind: Kind) -> Changes:
    """Make a turn's expectation one of the four kinds.

    `unchecked` is a mark in the config, which takes the place of `context`, and leaves the calls where they
    are; without a config file, give the data of a new one. `calls` adds a call without a name where there is
    none. `none` takes out the calls and their responses, `unspecified` all that is said of what happens
    before the answer.
    """
    owner = set_id(data), eval_id(data, case)
    if kind == "unchecked":
        return Changes([], references.mark(config, owner, turn, "skip"))
    checked = references.unmark(config, owner, turn, "skip")
    if kind == _said_of_calls(data, case, turn):
        return Changes([], checked)
    if kind == "calls":
        return Changes(add_call(data, case, turn, ""), checked)
    if kind == "none":
        return Changes(_without_calls(data, case, turn), checked)
    return Changes([Remove(intermediate_path(data, case, turn))], checked)


def set_context(data: Any, config: Any, case: int, turn: int, *, on: bool) -> Changes:
    """Run a turn without scoring it, in place of a mark that leaves its calls unchecked; or score it."""
    owner = set_id(data), eval_id(data, case)
    if on:
        return Changes([], references.mark(config, owner, turn, "context"))
    return Changes([], references.unmark(config, owner, turn, "context"))


def _said_of_calls(data: Any, case: int, turn: int) -> Kind:
    if shape(data, case, turn) is None:
        return "unspecified"
    return "calls" if expected_calls(data, case, turn) else "none"


def _without_calls(data: Any, case: int, turn: int) -> list[Edit]:
    form = shape(data, case, turn)
    if form is None:
        path = intermediate_path(data, case, turn)
        return [Put(path, in_style(data, path[:-1], {"tool_uses": []}))]
    if form == "events":
        gone = [
            *field_parts(data, case, turn, "function_call"),
            *field_parts(data, case, turn, "function_response"),
        ]
        return without_parts(data, case, turn, gone)
    edits: list[Edit] = [Put(list_path(data, case, turn, "tool_uses"), [])]
    responses = list_path(data, case, turn, "tool_responses")
    return [*edits, Remove(responses)] if list_at(data, responses) else edits
