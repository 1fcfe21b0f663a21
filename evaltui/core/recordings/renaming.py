"""Renaming tools, arguments and agents in recordings.

Answers get the new name. Requests keep the old one, because keys are made of the whole request, which is not
stored: a line in the recording has both names, and a request is also looked up with the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

from ..model.renaming import (
    NamePlace,
    NameTakenError,
    Renaming,
    Texts,
    call_names,
    declared_names,
    names_in,
    rename_places,
    renamed_request,
    value_place,
)
from .entry import JsonRequest


def rename_in_line(data: dict[str, Any], renaming: Renaming) -> int:
    """Renames in a line of a recording as JSON; returns the number of changed places.

    Raises NameTakenError, also where a tool with the new name is declared beside it.
    """
    if data.get("kind") == "shared":
        for place in declared_names(data.get("tools"), ("tools",)):
            if place.fits(renaming) and renaming.new in place.others:
                raise NameTakenError(place.path, f"the agent had both {renaming.old} and {renaming.new}")
        return 0
    return len(list(rename_places(_names_in_line(data), renaming)))


def _names_in_line(data: dict[str, Any]) -> Iterator[NamePlace]:
    if data.get("kind") == "tool":
        yield from call_names(data, (), "tool")
        actions = data.get("actions")
        agent = actions.get("transfer_to_agent") if isinstance(actions, dict) else None
        if isinstance(actions, dict) and isinstance(agent, str):
            path = ("actions", "transfer_to_agent")
            yield NamePlace("agent", agent, path, value_place(actions, "transfer_to_agent"))
    elif data.get("kind") == "model":
        if isinstance(agent := data.get("agent"), str):
            yield NamePlace("agent", agent, ("agent",), value_place(data, "agent"))
        yield from names_in(data.get("responses"), ("responses",))


def under_earlier_names(request: JsonRequest, renamings: Sequence[Renaming]) -> Iterator[JsonRequest]:
    """The request with the names before the last renaming, then with those before the one before, and so on.

    Each comes with and without renaming in texts, because texts may not have had the name.
    """
    for count in range(1, len(renamings) + 1):
        for texts in get_args(Texts):
            with suppress(NameTakenError):
                yield _renamed_back(request, renamings[-count:], texts)


def _renamed_back(request: JsonRequest, renamings: Sequence[Renaming], texts: Texts) -> JsonRequest:
    contents, tools, instruction = request.contents, request.tools, request.instruction
    for renaming in reversed(renamings):
        contents, tools, instruction = renamed_request(contents, tools, instruction, renaming.reverse, texts)
    return replace(request, contents=contents, tools=tools, instruction=instruction)
