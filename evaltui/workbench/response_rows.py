"""What the user of a case responds to calls that wait."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from evaltui.core.editing import calls, content, turns
from evaltui.core.editing.calls import ExpectedCall
from evaltui.core.editing.json_paths import Changes
from evaltui.core.model.problems import JsonPath
from evaltui.core.recording.waiting import CONFIRMATION, REQUESTS
from evaltui.workbench.editing import Make
from evaltui.workbench.fields import CaseSource, Completion, Field, Operation, Row, object_of, required_text


def response_row(
    source: CaseSource, path: JsonPath, response: Mapping[str, Any], common: Mapping[str, Any]
) -> Row:
    """The row of the part at `path`, a response; `common` is what rows of the turn's other parts have."""
    name, given = str(response.get("name") or ""), response.get("response")
    turn: int = common["turn"]
    return Row(
        ("turn", turn, "user", path[-1]),
        "part",
        name=f"response to {name or '?'}:",
        value=given,
        is_json=True,
        field=Field(
            f"change the response to {name}",
            json.dumps({} if given is None else given, ensure_ascii=False),
            "json",
            lambda typed: _put(path, "response", object_of(typed)),
        ),
        rename=Field(
            "change the call that is responded to",
            name,
            "line",
            lambda typed: _put(path, "name", required_text("the name of a call")(typed)),
            tuple(Completion(one) for one in _calls_before(source, turn)),
        ),
        **common,
    )


def response_turns(case: int, turn: int, expected: Iterable[ExpectedCall]) -> Iterator[Operation]:
    """Adding a turn that responds to a request of a turn, and what it responds is typed next."""
    for call in expected:
        if call.name in REQUESTS:
            yield Operation(
                f"add a response to {call.name}",
                partial(_insert, case, turn + 1, call.name),
                ("turn", turn + 1, "user", 0),
                "value",
            )


def _calls_before(source: CaseSource, turn: int) -> list[str]:
    """The names of the calls expected before a turn, those that always wait first."""
    found = (
        call for before in range(turn) for call in calls.expected_calls(source.data, source.case, before)
    )
    names = dict.fromkeys(call.name for call in found)
    return sorted(names, key=lambda name: name not in REQUESTS)


def _put(path: JsonPath, name: str, value: Any) -> Make:
    return lambda data, _: content.put_in_response(data, path, name, value)


def _insert(case: int, index: int, name: str, data: Any, config: Any) -> Changes:
    given = {"confirmed": True} if name == CONFIRMATION else {}
    return turns.insert_response_turn(data, config, case, index, {"name": name, "response": given})
