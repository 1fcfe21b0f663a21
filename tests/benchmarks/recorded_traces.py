"""Traces as google-adk 2.13 exports them with content: 500 conversations, 78 MB, and a set that they pass."""

from __future__ import annotations

import json
from pathlib import Path

_TURNS = 3
_RESULT = "row of the result of a search in the shop, with its price and its stock. "
_SECOND = 1_000_000_000
_BEGAN = 1_790_000_000 * _SECOND


def write_traces(folder: Path, conversations: int = 500) -> tuple[Path, Path]:
    """A file as the Collector writes it, a trace per line, and an eval set that all of them pass."""
    traces, cases = folder / "traces.jsonl", []
    with traces.open("w", encoding="utf-8") as file:
        for number in range(conversations):
            file.writelines(json.dumps(one) + "\n" for one in _traces(number))
            cases.append(
                {"eval_id": f"case{number}", "conversation": [_expected(number, n) for n in range(_TURNS)]}
            )
    path = folder / "shop.evalset.json"
    path.write_text(json.dumps({"eval_set_id": "shop", "eval_cases": cases}), encoding="utf-8")
    return traces, path


def _said(number: int, turn: int) -> str:
    return f"conversation {number}: find lamp {turn}"


def _answer(number: int, turn: int) -> str:
    return f"There is one lamp of kind {turn} for customer {number}."


def _expected(number: int, turn: int) -> dict:
    return {
        "user_content": {"role": "user", "parts": [{"text": _said(number, turn)}]},
        "final_response": {"role": "model", "parts": [{"text": _answer(number, turn)}]},
        "intermediate_data": {"tool_uses": [{"name": "find", "args": {"what": "lamp", "page": turn}}]},
    }


def _traces(number: int) -> list[dict]:
    history: list[dict] = []
    documents = []
    for turn in range(_TURNS):
        trace, begin = f"{number * _TURNS + turn + 1:032x}", _BEGAN + (number * 100 + turn * 10) * _SECOND
        arguments = {"what": "lamp", "page": turn}
        result = {"rows": [f"{row}: {_RESULT}" for row in range(140)]}
        call = {"type": "tool_call", "id": "find_0", "name": "find", "arguments": arguments}
        answer = {"role": "assistant", "parts": [{"type": "text", "content": _answer(number, turn)}]}
        asked = {"role": "assistant", "parts": [call]}
        returned = {
            "role": "user",
            "parts": [{"type": "tool_call_response", "id": "find_0", "response": result}],
        }
        history.append({"role": "user", "parts": [{"type": "text", "content": _said(number, turn)}]})
        first = _model(history, [asked])
        history += [asked, returned]
        second = _model(history, [answer])
        history.append(answer)
        tool = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find",
            "gen_ai.tool.call.id": f"adk-{trace}",
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": json.dumps(result),
        }
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
        root = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "shop"}
        spans = [
            _span(trace, 1, 0, begin, 9, {**root, "gen_ai.conversation.id": f"session{number}"}),
            _span(trace, 2, 1, begin, 9, {**agent, "gen_ai.conversation.id": f"session{number}"}),
            _span(trace, 3, 2, begin + _SECOND, 2, first),
            _span(trace, 4, 2, begin + 3 * _SECOND, 1, tool),
            _span(trace, 5, 2, begin + 5 * _SECOND, 2, second),
        ]
        scoped = [{"scope": {"name": "gcp.vertex.agent", "version": "2.13.0"}, "spans": spans}]
        documents.append({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": scoped}]})
    return documents


def _model(inputs: list[dict], outputs: list[dict]) -> dict:
    return {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-2.5-flash",
        "gen_ai.agent.name": "shop",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps(outputs),
    }


def _span(trace: str, number: int, parent: int, begin: int, seconds: int, attributes: dict) -> dict:
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": str(attributes["gen_ai.operation.name"]),
        "kind": 1,
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + seconds * _SECOND),
        "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        "status": {},
    }


def _value(value: object) -> dict:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
