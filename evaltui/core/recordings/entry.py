"""One line of a recording: a model's answer, a tool's result, or a text that several answers share."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from evaltui.core.model.events import Json
from evaltui.core.recordings.request import Asked, Fingerprints, call_key
from evaltui.text.values import cut

# What stands for an agent's name where a judge was asked; the metric follows.
JUDGE_OF = "judge of "
# Enough to see which message is meant.
_SAID = 120
_UNFIT = re.compile("[\ud800-\udfff\u2028\u2029\x85]")


@dataclass(frozen=True)
class ModelCall:
    """A request to a model, and what came of it. `agent` asked it, or a judge: see `JUDGE_OF`.

    `responses` are the framework's own, more than one where they were streamed; `error` is what was raised
    after them. Of the request, `instruction` and `tools` name `Shared` lines, `contents` has a fingerprint of
    each content, and `said` the beginning of those that no earlier entry of the case has. `exact` and
    `masked` are further keys, where there are any: see `Fingerprints`.
    """

    case: str
    repeat: int
    turn: int
    model: str
    key: str
    contents: str
    agent: str = ""
    exact: str = ""
    masked: str = ""
    instruction: str = ""
    tools: str = ""
    config: Json = field(default_factory=dict)
    said: Json = field(default_factory=dict)
    responses: list[Json] = field(default_factory=list)
    error: Json | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.key, self.exact, self.masked)))

    @property
    def content_prints(self) -> list[str]:
        return self.contents.split()

    @property
    def shared(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.instruction, self.tools)))


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool, and what came of it: `result`, or the `error` that it raised.

    `state` are the keys of the session state that it set, `removed` those that it took away, `actions` what
    else it asked of its framework.
    """

    case: str
    repeat: int
    turn: int
    tool: str
    args: Json
    result: Any = None
    error: Json | None = None
    state: Json = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    actions: Json = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        return (call_key(self.tool, self.args),)

    @property
    def shared(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class Shared:
    """A system instruction (`text`), or tools as they were declared, of any number of requests."""

    id: str
    text: Any = None
    tools: list[Json] | None = None


Entry = ModelCall | ToolCall

_KINDS: dict[str, type[ModelCall] | type[ToolCall] | type[Shared]] = {
    "model": ModelCall,
    "tool": ToolCall,
    "shared": Shared,
}
# What the rest of the program relies on.
_TYPES: dict[str, type] = {"str": str, "int": int, "Json": dict, "list[Json]": list}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def entry_to_json(line: Entry | Shared) -> Json:
    """`kind` first, then the fields in their order; nothing that says nothing."""
    data: Json = {"kind": _NAMES[type(line)]}
    for item in fields(line):
        value = getattr(line, item.name)
        empty = item.default_factory() if item.default_factory is not MISSING else item.default
        if value != empty:
            data[item.name] = list(value) if isinstance(value, tuple) else value
    return data


def entry_from_json(data: Any) -> Entry | Shared:
    """Unknown keys (of a later version) are ignored. Raises ValueError for what is no line of a recording."""
    kind = _KINDS.get(str(data.get("kind"))) if isinstance(data, dict) else None
    if kind is None:
        raise ValueError("it is of no kind that is known")
    given = {item.name: data[item.name] for item in fields(kind) if item.name in data}
    for item in fields(kind):
        wanted = _TYPES.get(str(item.type))
        if wanted and item.name in given and not isinstance(given[item.name], wanted):
            raise ValueError(f"{item.name} is no {wanted.__name__}")
    if "removed" in given:
        given["removed"] = tuple(given["removed"])
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(str(error)) from None


def written(line: Entry | Shared) -> str:
    """One line of text without its end."""
    data = entry_to_json(line)
    text = json.dumps(data, ensure_ascii=False)
    # A lone surrogate cannot be written as UTF-8, and at these some readers break lines.
    return json.dumps(data) if _UNFIT.search(text) else text


def shared_of(prints: Fingerprints) -> list[Shared]:
    """The lines that an entry with these fingerprints refers to."""
    asked = prints.asked
    lines = [Shared(prints.instruction, text=asked.instruction)] if asked.instruction else []
    return [*lines, Shared(prints.tools, tools=list(asked.tools))] if asked.tools else lines


def said_of(prints: Fingerprints, known: Collection[str]) -> Json:
    """The beginning of each content that is not `known` yet, by fingerprint."""
    pairs = zip(prints.contents, prints.asked.contents, strict=True)
    return {mark: describe(content) for mark, content in pairs if mark not in known}


def describe(content: Json) -> str:
    """A content in a few words: who says what, calls what, returns what."""
    said = [_describe_part(part) for part in content.get("parts") or []]
    return cut(f"{content.get('role') or 'model'}: {' · '.join(said)}", _SAID)


def _describe_part(part: Json) -> str:
    if call := part.get("function_call"):
        return f"calls {call.get('name')} {json.dumps(call.get('args') or {}, ensure_ascii=False)}"
    if result := part.get("function_response"):
        return f"{result.get('name')} returned {json.dumps(result.get('response'), ensure_ascii=False)}"
    if "text" in part:
        return str(part["text"])
    return next((name for name in part), "nothing")


def asked_of(call: ModelCall, shared: Mapping[str, Shared]) -> Asked:
    """What is known of the request that an entry answers; contents are not."""
    instruction, tools = shared.get(call.instruction), shared.get(call.tools)
    return Asked(
        call.model,
        (),
        (instruction.text if instruction else "") or "",
        (tools.tools if tools else None) or (),
        call.config,
    )
