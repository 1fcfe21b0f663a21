"""Turns, cases, eval sets and configs as JSON, and their files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def make_turn(
    user: str, answer: str | None = None, calls: Sequence[str | Json] | None = None, **more: Any
) -> Json:
    """A turn. Without `answer` or `calls` it expects none; a call is its name, or its JSON."""
    turn: Json = {"user_content": {"role": "user", "parts": [{"text": user}]}}
    if answer is not None:
        turn["final_response"] = {"role": "model", "parts": [{"text": answer}]}
    if calls is not None:
        uses = [{"name": call, "args": {}} if isinstance(call, str) else call for call in calls]
        turn["intermediate_data"] = {"tool_uses": uses}
    return turn | more


def make_case(eval_id: str, *turns: Json, **more: Any) -> Json:
    return {"eval_id": eval_id, "conversation": list(turns), **more}


def make_set(name: str, *cases: Json) -> Json:
    return {"eval_set_id": name, "eval_cases": list(cases)}


def make_answers(*messages: str, answer: str | None = None) -> Json:
    """A set with a case for each message, `case_0` and so on; it expects `answer`, or the message itself."""
    turns = [make_turn(message, message if answer is None else answer) for message in messages]
    return make_set("basics", *(make_case(f"case_{number}", turn) for number, turn in enumerate(turns)))


def write_eval_set(folder: Path, name: str, *cases: Json) -> Path:
    """Writes `NAME.evalset.json` and returns its path; the id of the set is its name."""
    path = folder / f"{name}.evalset.json"
    path.write_text(json.dumps({"eval_set_id": name, "eval_cases": cases}), encoding="utf-8")
    return path


def write_test_config(folder: Path, **members: Any) -> Path:
    """Writes a `test_config.json` and returns its path; members that are none of a config are criteria."""
    path = folder / "test_config.json"
    config = members if members.keys() & {"criteria", "evaltui"} else {"criteria": members}
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def new_rule(
    tool: str, arg: str, match: Any, case: tuple[str, str] | None = None, eval_set_id: str | None = None
) -> Json:
    """A rule of a config: for a case, for a set, or for every case."""
    rule = {"tool": tool, "arg": arg, "match": match}
    if case is not None:
        return rule | {"set": case[0], "case": case[1]}
    return rule if eval_set_id is None else rule | {"set": eval_set_id}
