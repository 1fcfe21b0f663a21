"""Eval cases as rows, messages of OpenAI or cells of a table, and the parts that rows have no place for."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evaltui.core.model.datasets import OWN_KEY, UNSPECIFIED
from evaltui.core.model.json_values import ABSENT, field_of, side_by_side
from evaltui.core.model.problems import JsonPath
from evaltui.documents.dataset_meaning import events_of_lists, meaning_of_case, names_at, parts_of, path_in
from evaltui.exchange.imported import Json
from evaltui.exchange.row_cases import case_of_row
from evaltui.exchange.row_files import COLUMNS, Row
from evaltui.exchange.row_mapping import RowMapping
from evaltui.text.values import guarded_cell

_OF_MESSAGES = RowMapping.of(
    {"id": "id", "messages": "messages", "calls": "calls", "state": "state", "tag": "tags"}
)
_OF_COLUMNS = RowMapping.of(
    {"id": "id", "user": "user", "calls": "calls", "expected": "expected", "tag": "tags"}
)


def row_of_case(case: Json, tags: Sequence[str]) -> Json:
    """A case as messages of OpenAI, with its id, state and tags."""
    turns = field_of(case, "conversation") or []
    row: Json = {"id": field_of(case, "eval_id"), "messages": list(_messages(turns))}
    if any(_calls_nothing(turn) for turn in turns):
        # Messages do not say that a turn calls nothing.
        row["calls"] = [[] if _calls_nothing(turn) else None for turn in turns]
    state = field_of(field_of(case, "session_input") or {}, "state")
    return row | ({"state": state} if state else {}) | ({"tags": list(tags)} if tags else {})


def cells_of_case(case: Json, tags: Sequence[str]) -> Json:
    """A case as the cells of a table: all messages of the user, and the expectations of the last turn."""
    turns = field_of(case, "conversation") or []
    last = turns[-1] if turns else {}
    calls = [
        {"name": part["name"], "args": part["args"]}
        for event in events_of_turn(last)
        for kind, part in parts_of(event)
        if kind == "call"
    ]
    has_calls = bool(calls) or _calls_nothing(last)
    return {
        "id": field_of(case, "eval_id"),
        "user": "\n\n".join(text_of_content(field_of(turn, "user_content")) for turn in turns),
        "calls": json.dumps(calls, ensure_ascii=False) if has_calls else "",
        "expected": text_of_content(field_of(last, "final_response")),
        "tags": " ".join(tags),
    }


def table_of(rows: Iterable[Json]) -> str:
    """Rows of cells as CSV, without formulas: see `guarded_cell`."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: guarded_cell(str(value)) for name, value in row.items()} for row in rows)
    return file.getvalue()


def lost_parts(case: Json, row: Json, *, is_csv: bool) -> Iterator[tuple[JsonPath, str]]:
    """The parts of a case that its row does not give when it is imported, each with the reason."""
    read = case_of_row(Row(row, "", is_csv), _OF_COLUMNS if is_csv else _OF_MESSAGES)
    if read is None:
        yield (), "no row can hold it: it has no message of the user"
        return
    paths: dict[JsonPath, None] = {}
    for path, before, after in side_by_side(meaning_of_case(case), meaning_of_case(read)):
        # Calls, results and texts are compared by themselves.
        if path[-1] != "events" and (before is ABSENT or after is ABSENT or before != after):
            paths[path_in(case, names_at(path))] = None
    yield from ((path, "a row has no place for it") for path in paths)
    if case.get(OWN_KEY) != UNSPECIFIED and read.get(OWN_KEY) == UNSPECIFIED:
        yield (OWN_KEY,), "absent responses and calls, which the case checks, are not checked after an import"


def _messages(turns: Sequence[Json]) -> Iterator[Json]:
    for number, turn in enumerate(turns):
        yield {"role": "user", "content": _content(field_of(turn, "user_content"))}
        yield from _of_agent(turn, number)
        if field_of(turn, "final_response") is not None:
            yield {"role": "assistant", "content": _content(field_of(turn, "final_response"))}


def _of_agent(turn: Json, number: int) -> Iterator[Json]:
    """The messages of a turn between that of the user and the response; ids of calls are of the row."""
    open_calls: list[tuple[str, Json]] = []
    for event in events_of_turn(turn):
        parts = list(parts_of(event))
        calls = [part for kind, part in parts if kind == "call"]
        ids = [f"call_{number + 1}_{len(open_calls) + place}" for place in range(1, len(calls) + 1)]
        texts = [part for kind, part in parts if kind == "other"]
        if calls or texts:
            message: Json = {"role": "assistant", "content": _content({"parts": texts}) or None}
            tool_calls = [_tool_call(call_id, call) for call_id, call in zip(ids, calls, strict=True)]
            yield message | ({"tool_calls": tool_calls} if tool_calls else {})
        open_calls += zip(ids, calls, strict=True)
        for result in (part for kind, part in parts if kind == "response"):
            content = json.dumps(field_of(result, "response"), ensure_ascii=False)
            yield {"role": "tool", "tool_call_id": _answered(open_calls, result), "content": content}


def _answered(open_calls: list[tuple[str, Json]], result: Json) -> str:
    """The id of the call that a result is of: by its id, else the first one of its name."""
    for key in ("id", "name"):
        for place, (call_id, call) in enumerate(open_calls):
            if result.get(key) and call.get(key) == result[key]:
                open_calls[place] = call_id, {}
                return call_id
    return ""


def _tool_call(call_id: str, call: Json) -> Json:
    arguments = json.dumps(call["args"], ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": call.get("name"), "arguments": arguments}}


def events_of_turn(turn: Json) -> Iterator[Json]:
    """The events of a turn, of either shape of intermediate data."""
    data = field_of(turn, "intermediate_data")
    if isinstance(data, dict):
        yield from field_of(data, "invocation_events") or events_of_lists(data)


def _calls_nothing(turn: Json) -> bool:
    is_stated = isinstance(field_of(turn, "intermediate_data"), dict)
    parts = (part for event in events_of_turn(turn) for part in parts_of(event))
    return is_stated and not any(kind == "call" for kind, _ in parts)


def _content(content: Any) -> str | list[Json]:
    texts = _texts(content)
    return texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]


def text_of_content(content: Any) -> str:
    """The texts of a content, one per line."""
    return "\n".join(_texts(content))


def _texts(content: Any) -> list[str]:
    parts = (field_of(content, "parts") if isinstance(content, dict) else None) or []
    return [part["text"] for part in parts if part.get("text") and not part.get("thought")]
