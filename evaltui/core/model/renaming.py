"""Names of tools, arguments and agents in JSON data: finding and replacing them.

The data are eval sets, and model requests and responses in recordings. User data in them (arguments, results,
session state) is not changed.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Literal

from .json_values import both_spellings, indexed_objects, list_or_empty, object_or_empty
from .problems import JsonPath

NameKind = Literal["tool", "argument", "agent"]
TRANSFER = "transfer_to_agent"
"""The tool by which ADK's agents transfer."""
_HANDOFF = "transfer_to_"


@dataclass(frozen=True)
class Renaming:
    """A renaming of a tool, an argument or an agent."""

    what: NameKind
    old: str
    new: str
    tool: str = ""
    """The tool of an argument; "" for others."""

    @classmethod
    def of(cls, what: NameKind, old: str, new: str) -> Renaming:
        """The renaming of a full name; the new name of an argument may include the tool."""
        tool, _, name = old.rpartition(".") if what == "argument" else ("", "", old)
        return cls(what, name, new.removeprefix(f"{tool}.") if tool else new, tool)

    @property
    def reverse(self) -> Renaming:
        """The inverse renaming."""
        return Renaming(self.what, self.new, self.old, self.tool)

    @property
    def full_name(self) -> str:
        """The old name, for an argument with its tool: `find_order.id`."""
        return f"{self.tool}.{self.old}" if self.tool else self.old

    @property
    def words(self) -> str:
        """The renaming in words: `tool find_order to get_order`."""
        return f"{self.what} {self.full_name} to {self.new}"

    def is_in(self, text: str) -> bool:
        """Whether a JSON text may contain the old name."""
        return self.old in text or json.dumps(self.old)[1:-1] in text


def new_name_problem(what: NameKind, old: str, new: str) -> str:
    """Why a name cannot be used, as a sentence; "" where it can."""
    if not new:
        return "The new name is empty"
    if new == old:
        return f"{new} is its name already"
    if not new.isprintable() or (what != "argument" and re.search(r"[\s\"'`]", new)):
        return f"{new!r} cannot be the name of {'an' if what == 'agent' else 'a'} {what}"
    return ""


@dataclass(frozen=True)
class NamePlace:
    """A name at a place in the data."""

    kind: NameKind
    name: str
    path: JsonPath
    put: Callable[[str], None]
    """Replaces the name."""
    tool: str = ""
    """The tool of an argument; "" for others."""
    others: Collection[str] = ()
    """The names beside it, which it must not get."""

    def fits(self, renaming: Renaming) -> bool:
        """Whether it is the name to change."""
        return (self.kind, self.name, self.tool) == (renaming.what, renaming.old, renaming.tool)


class NameTakenError(ValueError):
    """The new name is already used at a path."""

    def __init__(self, path: JsonPath, message: str) -> None:
        self.path = path
        super().__init__(message)


def rename_places(places: Iterator[NamePlace], renaming: Renaming) -> Iterator[JsonPath]:
    """Renames at these places; yields the path of each from before. Raises NameTakenError."""
    fitting = [place for place in places if place.fits(renaming)]
    for place in fitting:
        if renaming.new in place.others:
            raise NameTakenError(place.path, f"{renaming.new!r} is there already, beside {renaming.old!r}")
    for place in fitting:
        place.put(renaming.new)
        yield place.path


# Texts


def renamed_text(text: str, renaming: Renaming, *, quoted: bool | None = None) -> str:
    """The text with the name replaced as a whole word.

    With `quoted`, only in quotes or backticks; this is the default for plain words such as `id`. An argument
    is renamed only in texts that name its tool.
    """
    if renaming.old not in text or (renaming.tool and not _words(renaming.tool, False).search(text)):
        return text
    if quoted is None:
        quoted = re.fullmatch("[A-Z]?[a-z]+", renaming.old) is not None
    return _words(renaming.old, quoted).sub(lambda _: renaming.new, text)


@lru_cache(maxsize=64)
def _words(name: str, quoted: bool) -> re.Pattern[str]:
    word = re.escape(name)
    if quoted:
        sides = [rf"(?<={start}){word}(?={end}|\()" for start, end in ("``", "''", '""', "“”", "‘’")]
        return re.compile("|".join(sides))
    return re.compile(rf"(?<!\w){word}(?!\w)")


# Places


def names_in(value: Any, path: JsonPath = ()) -> Iterator[NamePlace]:
    """The names in a case, a content, a recorded response, or data that contains these."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from names_in(item, (*path, index))
    if not isinstance(value, dict):
        return
    args_key = next((key for key in _ARGUMENTS if key in value), "args")
    if "tool_name" in value:
        yield from call_names(value, path, "tool_name", args_key)
    elif args_key in value:
        yield from call_names(value, path, args_key=args_key)
    for key, item in value.items():
        if key not in _OPAQUE and key != args_key:
            yield from _READERS.get(key, names_in)(item, (*path, key))


# Arguments of a recorded call: of google-genai, Pydantic AI and LangChain, of OpenAI, of Anthropic.
_ARGUMENTS = ("args", "arguments", "input")


def value_place(holder: Any, key: Any) -> Callable[[str], None]:
    """A function that replaces the value of a key."""

    def put(name: str) -> None:
        holder[key] = name

    return put


def key_place(holder: dict[str, Any], key: str) -> Callable[[str], None]:
    """A function that replaces a key and keeps its value."""

    def put(name: str) -> None:
        members = [(name if other == key else other, value) for other, value in holder.items()]
        holder.clear()
        holder.update(members)

    return put


def _each_item(reader: Callable[[Any, JsonPath], Iterator[NamePlace]]) -> _Reader:
    """A reader of each item of a list."""

    def read(items: Any, path: JsonPath) -> Iterator[NamePlace]:
        for index, item in enumerate(list_or_empty(items)):
            yield from reader(item, (*path, index))

    return read


_Reader = Callable[[Any, JsonPath], Iterator[NamePlace]]


def _tool_name(holder: dict[str, Any], key: str, path: JsonPath) -> Iterator[NamePlace]:
    """The name of a tool, and of the agent in a handoff tool's name."""
    name, put = holder.get(key), value_place(holder, key)
    if not isinstance(name, str):
        return
    yield NamePlace("tool", name, (*path, key), put)
    yield NamePlace("agent", name, (*path, key), put)
    if name.startswith(_HANDOFF) and name != TRANSFER:
        agent = name.removeprefix(_HANDOFF)
        yield NamePlace("agent", agent, (*path, key), lambda new: put(_HANDOFF + new))


def call_names(
    call: Any, path: JsonPath, name_key: str = "name", args_key: str = "args"
) -> Iterator[NamePlace]:
    """The names in a tool call."""
    if not isinstance(call, dict):
        return
    yield from _tool_name(call, name_key, path)
    tool, args = call.get(name_key), call.get(args_key)
    if isinstance(tool, str) and isinstance(args, str):
        yield from _written_args(call, args_key, tool, path)
    if isinstance(tool, str) and isinstance(args, dict):
        yield from _args(args, tool, (*path, args_key))


def _args(args: dict[str, Any], tool: str, path: JsonPath) -> Iterator[NamePlace]:
    for name in list(args):
        yield NamePlace("argument", name, (*path, name), key_place(args, name), tool, args.keys() - {name})
    for key in ("agent_name", "agentName") if tool == TRANSFER else ():
        if isinstance(agent := args.get(key), str):
            yield NamePlace("agent", agent, (*path, key), value_place(args, key))


def _written_args(call: dict[str, Any], key: str, tool: str, path: JsonPath) -> Iterator[NamePlace]:
    """The names in arguments that are JSON text; the text is rewritten only where a name changes."""
    try:
        args = json.loads(call[key])
    except ValueError:
        return
    for place in _args(args, tool, (*path, key)) if isinstance(args, dict) else ():

        def put(new: str, old: str = place.name, kind: str = place.kind) -> None:
            end = r"(?=\s*:)" if kind == "argument" else ""
            call[key] = re.sub(
                re.escape(json.dumps(old)) + end, lambda _: json.dumps(new), call[key], count=1
            )

        yield NamePlace(place.kind, place.name, (*path, key), put, place.tool, place.others)


def _response(response: Any, path: JsonPath) -> Iterator[NamePlace]:
    if isinstance(response, dict):
        yield from _tool_name(response, "name", path)


def _declaration(declared: Any, path: JsonPath) -> Iterator[NamePlace]:
    """The names in a tool declaration, or in a group of declarations."""
    if not isinstance(declared, dict):
        return
    if not isinstance(tool := declared.get("name"), str):
        yield from names_in(declared, path)
        return
    yield from _tool_name(declared, "name", path)
    for key in _SCHEMAS:
        if isinstance(schema := declared.get(key), dict):
            yield from _schema(schema, tool, (*path, key))


_SCHEMAS = ("parameters", "parameters_json_schema", "parametersJsonSchema")


def _schema(schema: dict[str, Any], tool: str, path: JsonPath) -> Iterator[NamePlace]:
    title = schema.get("title")
    if isinstance(title, str) and title.startswith(tool):
        end = title.removeprefix(tool)
        yield NamePlace("tool", tool, (*path, "title"), lambda new: schema.update(title=new + end))
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    others = properties.keys()
    for name, member in list(properties.items()):
        at: JsonPath = (*path, "properties", name)
        if isinstance(member, dict) and member.get("title") == _title_of_name(name):
            yield NamePlace("argument", name, (*at, "title"), _titles(member), tool)
        yield NamePlace("argument", name, at, key_place(properties, name), tool, others - {name})
        if tool == TRANSFER and isinstance(member, dict):
            yield from _texts_of(member.get("enum"), (*at, "enum"), "agent", "")
    yield from _texts_of(schema.get("required"), (*path, "required"), "argument", tool)


def _texts_of(items: Any, path: JsonPath, kind: NameKind, tool: str) -> Iterator[NamePlace]:
    for index, name in enumerate(list_or_empty(items)):
        if isinstance(name, str):
            yield NamePlace(kind, name, (*path, index), value_place(items, index), tool)


def _title_of_name(name: str) -> str:
    """The title that pydantic makes for a name."""
    return name.replace("_", " ").title()


def _titles(member: dict[str, Any]) -> Callable[[str], None]:
    return lambda new: member.update(title=_title_of_name(new))


def declared_names(items: Any, path: JsonPath) -> Iterator[NamePlace]:
    """The names in declarations of a list, which must be distinct."""
    names = {item.get("name") for _, item in indexed_objects(list_or_empty(items))}
    for place in _each_item(_declaration)(items, path):
        beside = {name for name in names if isinstance(name, str)} - {place.name}
        yield place if place.others or place.kind == "argument" else replace(place, others=beside)


def _agents(agents: Any, path: JsonPath) -> Iterator[NamePlace]:
    """The names in details of agents, by name."""
    for name, details in list(object_or_empty(agents).items()):
        yield from names_in(details, (*path, name))
        if isinstance(details, dict) and details.get("name") == name:
            yield NamePlace("agent", name, (*path, name, "name"), value_place(details, "name"))
        yield NamePlace("agent", name, (*path, name), key_place(agents, name), others=agents.keys() - {name})


def _author_names(pair: Any, path: JsonPath) -> Iterator[NamePlace]:
    """The names in a pair of an author and parts."""
    if isinstance(pair, list) and pair and isinstance(pair[0], str):
        yield NamePlace("agent", pair[0], (*path, 0), value_place(pair, 0))
    yield from names_in(pair, path)


def _event(event: Any, path: JsonPath) -> Iterator[NamePlace]:
    author = event.get("author") if isinstance(event, dict) else None
    if isinstance(author, str) and author != "user":
        yield NamePlace("agent", author, (*path, "author"), value_place(event, "author"))
    yield from names_in(event, path)


_READERS_BY_KEY: Mapping[str, _Reader] = {
    "function_call": call_names,
    "function_response": _response,
    "tool_uses": _each_item(call_names),
    "tool_responses": _each_item(_response),
    "function_declarations": declared_names,
    "tool_declarations": declared_names,
    "agent_details": _agents,
    "intermediate_responses": _each_item(_author_names),
    "invocation_events": _each_item(_event),
}
_READERS: Mapping[str, _Reader] = {
    spelling: _READERS_BY_KEY[key] for spelling, key in both_spellings(_READERS_BY_KEY).items()
}
_OPAQUE = both_spellings(
    ("args", "arguments", "response", "state", "session_input", "final_session_state", "text")
)


# Requests to models

Texts = Literal["words", "quoted", "none"]
"""The texts of a request that also get the new name: whole words, quoted words only, or none."""


def renamed_request(
    contents: Sequence[Any], tools: Sequence[Any], instruction: Any, renaming: Renaming, texts: Texts
) -> tuple[list[Any], list[Any], Any]:
    """The contents, tools and instruction of a request with a new name. Raises NameTakenError."""
    copies: list[list[Any]] = json.loads(json.dumps([list(contents), list(tools)]))
    contents, tools = copies
    for _ in rename_places(chain(names_in(contents), declared_names(tools, ())), renaming):
        pass
    if texts == "none":
        return copies[0], copies[1], instruction
    quoted = texts == "quoted"
    if renaming.tool:
        # The description of a tool says which arguments it has, without its name.
        within = replace(renaming, tool="")
        tools = [
            _rename_in_texts(tool, within, quoted) if tool.get("name") == renaming.tool else tool
            for tool in tools
        ]
    in_texts = partial(_rename_in_texts, renaming=renaming, quoted=quoted)
    return in_texts(contents), in_texts(tools), in_texts(instruction)


def _rename_in_texts(value: Any, renaming: Renaming, quoted: bool, key: str = "text") -> Any:
    if isinstance(value, list):
        return [_rename_in_texts(item, renaming, quoted, key) for item in value]
    if isinstance(value, dict):
        return {
            name: item if name in _CALLS else _rename_in_texts(item, renaming, quoted, name)
            for name, item in value.items()
        }
    if not isinstance(value, str) or key not in ("text", "description"):
        return value
    renamed = renamed_text(value, renaming, quoted=quoted)
    if renaming.what != "argument" or renamed == value:
        return renamed
    pairs = zip(value.split("\n"), renamed.split("\n"), strict=True)
    return "\n".join(_sort_arguments(*pair) for pair in pairs)


def _sort_arguments(before: str, after: str) -> str:
    """A line with arguments in ADK's quotes of other agents' calls, with the arguments sorted by name
    again."""
    if before == after or not before.startswith("{"):
        return after
    try:
        args, renamed = (dict(sorted(literal_eval(line).items())) for line in (before, after))
    except (AttributeError, SyntaxError, TypeError, ValueError):
        return after
    return str(renamed) if str(args) == before else after


_CALLS = ("function_call", "function_response")
