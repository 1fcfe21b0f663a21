"""The rows of a case, from its id to its last turn or its simulated user."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from evaltui.core.editing import cases, session, turns
from evaltui.core.editing.json_paths import (
    case_path,
    eval_id,
    get,
    list_at,
    place,
    set_id,
    value_at,
)
from evaltui.core.jsondoc.edits import Edit, Remove
from evaltui.core.model.aliases import camel
from evaltui.core.model.personas import PREBUILT_PERSONAS
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.core.model.tool_schema import check_state
from evaltui.workbench.editing import Make
from evaltui.workbench.fields import (
    CaseSource,
    Completion,
    Field,
    FieldError,
    Operation,
    Row,
    required_text,
    value_field,
    value_of,
    with_problems,
)
from evaltui.workbench.rubric_rows import add_rubric, rubric_rows
from evaltui.workbench.turn_rows import add_turn, turn_rows

_KNOWN = (
    "eval_id",
    "conversation",
    "conversation_scenario",
    "session_input",
    "creation_timestamp",
    "rubrics",
    "final_session_state",
)
_IN_SESSION = ("app_name", "user_id", "session_id", "state")


def case_rows(source: CaseSource) -> list[Row]:
    """Every row of a case. Raises EditError where the set has no such case."""
    path = case_path(source.data, source.case)
    rows = [
        *_facts(source, path),
        *_session(source, path),
        *_final_state(source, path),
        *rubric_rows(source, None),
        *_unknown(source, path, _KNOWN, ("extra",)),
        *_conversation(source, path),
    ]
    below = adds_to_case(source)
    rows = [replace(row, adds=(*row.adds, *_others(row, below))) for row in rows]
    found = [problem for problem in source.problems if problem.path[: len(path)] == path]
    return with_problems(rows, found)


def adds_to_case(source: CaseSource) -> tuple[Operation, ...]:
    """What can be added to a case, wherever in it one is."""
    data, case = source.data, source.case
    simulated = isinstance(get(data, case_path(data, case), "conversation_scenario"), dict)
    count = len(list_at(data, place(data, case_path(data, case), "conversation")))
    last = Operation(
        "add a turn at the end",
        lambda data, _: turns.add_turn(data, case),
        ("turn", count, "user", 0),
        "value",
    )
    other = (
        Operation(
            "make it a conversation, without the simulated user",
            lambda data, _: session.to_conversation(data, case),
            ("turn", 0),
        )
        if simulated
        else Operation(
            "make it a scenario, with a simulated user",
            lambda data, config: session.to_scenario(data, config, case),
            ("scenario", "starting_prompt"),
        )
    )
    return (
        *(() if simulated else (last,)),
        _add_state(source),
        _add_final_state(source),
        add_rubric(source, None),
        other,
    )


def _others(row: Row, more: tuple[Operation, ...]) -> tuple[Operation, ...]:
    labels = {one.label for one in row.adds}
    return tuple(one for one in more if one.label not in labels)


# What stands above the turns


def _facts(source: CaseSource, path: JsonPath) -> Iterator[Row]:
    data, case = source.data, source.case
    old = eval_id(data, case)

    def rename(text: str) -> Make:
        if problem := cases.eval_id_problem(data, case, text):
            raise FieldError(problem)
        return lambda data, config: cases.rename_case(data, config, case, text)

    field = Field("rename the case", old, "line", rename, live=False)
    own = place(data, path, "eval_id")
    yield Row(("id",), "fact", "id", value=old, field=field, rename=field, path=own)
    yield Row(("set",), "fact", "set", value=set_id(data))
    created = get(data, path, "creation_timestamp")
    if isinstance(created, int | float) and created:
        yield Row(("created",), "fact", "created", value=_moment(created))


def _moment(timestamp: float) -> str:
    try:
        return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{timestamp}"


_SESSION_WORDS: tuple[tuple[session.SessionField, str, str], ...] = (
    ("app_name", "app", session.DEFAULT_APP_NAME),
    ("user_id", "user", session.DEFAULT_USER_ID),
    ("session_id", "id", "a new one in each run"),
)


def _session(source: CaseSource, path: JsonPath) -> Iterator[Row]:
    data, case = source.data, source.case
    own = place(data, path, "session_input")
    if isinstance(value_at(data, own), dict):
        for number, (name, word, default) in enumerate(_SESSION_WORDS):
            yield _session_row(source, own, name, word, default, "session" if number == 0 else "")
        yield from _unknown(source, own, _IN_SESSION, ("session",), label="")
    else:
        # Whoever wants names or an id of a session finds them below `session` then.
        field = Field(
            "set the user of the session",
            "",
            "line",
            lambda text: lambda data, _: session.set_session_field(data, case, "user_id", text),
        )
        shown = "what ADK begins with, and an empty state"
        yield Row(("session", "user_id"), "fact", "session", shown=shown, quiet=True, field=field, path=own)
    yield from _state(source, own)


def _session_row(
    source: CaseSource, own: JsonPath, name: session.SessionField, word: str, default: str, label: str
) -> Row:
    data, case = source.data, source.case
    value = get(data, own, name)
    text = value if isinstance(value, str) else ""

    def change(text: str) -> Make:
        return lambda data, _: session.set_session_field(data, case, name, text)

    return Row(
        ("session", name),
        "part",
        label,
        word,
        value=text,
        shown=None if text else default,
        quiet=not text,
        field=Field(f"change the session's {word}", text, "line", change),
        delete=Operation(
            "remove the session input",
            lambda data, _: session.remove_session(data, case),
            ("session", "user_id"),
        )
        if name != "session_id"
        else Operation(
            "remove the session id",
            lambda data, _: session.set_session_field(data, case, "session_id", ""),
        ),
        path=place(data, own, name),
    )


def _add_state(source: CaseSource) -> Operation:
    state = get(
        source.data, place(source.data, case_path(source.data, source.case), "session_input"), "state"
    )
    count = len(state) if isinstance(state, dict) else 0
    case = source.case

    def add(data: Any, _: Any) -> list[Edit]:
        return session.put_state(data, case, _new_key(state), "")

    return Operation("add a key to the state", add, ("state", count), "name")


def _add_final_state(source: CaseSource) -> Operation:
    state = get(source.data, case_path(source.data, source.case), "final_session_state")
    count = len(state) if isinstance(state, dict) else 0
    case = source.case

    def add(data: Any, _: Any) -> list[Edit]:
        return session.put_final_state(data, case, _new_key(state), "")

    return Operation("add a key to the final state", add, ("final_state", count), "name")


def _new_key(members: Any) -> str:
    """The name that a member has until one is typed."""
    taken = members if isinstance(members, dict) else {}
    number = 1
    while (key := "key" if number == 1 else f"key_{number}") in taken:
        number += 1
    return key


def _state(source: CaseSource, own: JsonPath) -> Iterator[Row]:
    data, case = source.data, source.case
    path = place(data, own, "state")
    state = value_at(data, path)
    add = _add_state(source)
    if not isinstance(state, dict) or not state:
        if isinstance(value_at(data, own), dict):
            yield Row(("state",), "fact", "state", shown="empty", quiet=True, adds=(add,), path=path)
        else:
            yield Row(("state",), "fact", "state", shown="empty", quiet=True, adds=(add,))
        return
    saved = get(source.saved, place(source.saved, (), "session_input"), "state")
    changed = check_state(saved, state) if isinstance(saved, dict) else []
    yield from _members(
        source,
        state,
        "state",
        "state",
        path,
        add,
        lambda key, value: lambda data, _: session.put_state(data, case, key, value),
        lambda key, wanted: lambda data, _: session.rename_state(data, case, key, wanted),
        lambda key: lambda data, _: session.remove_state(data, case, key),
        changed,
    )


def _final_state(source: CaseSource, path: JsonPath) -> Iterator[Row]:
    data, case = source.data, source.case
    own = place(data, path, "final_session_state")
    state = value_at(data, own)
    add = _add_final_state(source)
    if not isinstance(state, dict) or not state:
        yield Row(
            ("final_state",), "fact", "final state", shown="not checked", quiet=True, adds=(add,), path=own
        )
        return
    before = get(data, place(data, path, "session_input"), "state")
    changed = check_state(before, state) if isinstance(before, dict) else []
    yield from _members(
        source,
        state,
        "final_state",
        "final state",
        own,
        add,
        lambda key, value: lambda data, _: session.put_final_state(data, case, key, value),
        lambda key, wanted: lambda data, _: session.rename_final_state(data, case, key, wanted),
        lambda key: lambda data, _: session.remove_final_state(data, case, key),
        changed,
    )


def _members(
    source: CaseSource,
    state: dict[str, Any],
    id: str,
    label: str,
    path: JsonPath,
    add: Operation,
    put: Callable[[str, Any], Make],
    rename: Callable[[str, str], Make],
    remove: Callable[[str], Make],
    changed: list[Problem],
) -> Iterator[Row]:
    """The keys of a state, each a row."""
    for number, (key, value) in enumerate(state.items()):
        yield Row(
            (id, number),
            "part",
            label if number == 0 else "",
            key,
            value=value,
            is_json=True,
            field=value_field(f"change {key} of the {label}", value, _putting(put, key)),
            rename=key_field(f"rename {key} of the {label}", key, state, rename, (id, number)),
            adds=(add,),
            delete=Operation(f"remove {key} from the {label}", remove(key)),
            path=(*path, key),
            findings=tuple(problem for problem in changed if problem.path[0] == key),
        )


def _putting(put: Callable[[str, Any], Make], key: str) -> Callable[[Any], Make]:
    return lambda value: put(key, value)


def key_field(
    label: str,
    key: str,
    members: dict[str, Any],
    rename: Callable[[str, str], Make],
    row: tuple[str | int, ...],
    completions: tuple[Completion, ...] = (),
) -> Field:
    """The name of a member of an object; it is followed by its value."""

    def change(text: str) -> Make:
        if text != key and text in members:
            raise FieldError(f"there is {text!r} already")
        return rename(key, required_text("a key")(text))

    then = Operation("go to its value", None, row, "value")
    return Field(label, key, "line", change, completions, then=then)


# What nobody knows is kept, and shown


def _unknown(
    source: CaseSource, owner: JsonPath, known: tuple[str, ...], id: tuple[str, ...], label: str | None = None
) -> Iterator[Row]:
    holder = value_at(source.data, owner)
    expected = {*known, *map(camel, known)}
    for key, value in holder.items() if isinstance(holder, dict) else ():
        if key not in expected:
            yield Row(
                (*id, "unknown", key),
                "part" if label is not None else "fact",
                key if label is None else label,
                key if label is not None else "",
                value=value,
                shown=json.dumps(value, ensure_ascii=False),
                quiet=label is None,
                delete=Operation(f"remove {key}", _removing((*owner, key))),
                path=(*owner, key),
            )


def _removing(path: JsonPath) -> Make:
    return lambda data, _: [Remove(path)]


# Turns, or a simulated user


def _conversation(source: CaseSource, path: JsonPath) -> Iterator[Row]:
    data = source.data
    scenario = place(data, path, "conversation_scenario")
    conversation = value_at(data, place(data, path, "conversation"))
    if isinstance(conversation, list):
        for turn, raw in enumerate(conversation):
            place_of = source.case, turn, len(conversation)
            before, rows = source.known.get(place_of, (None, []))
            if before is not raw:
                rows = turn_rows(source, turn)
                source.known[place_of] = raw, rows
            yield from rows
    if isinstance(conversation, list) and not conversation:
        yield Row(
            ("turns",),
            "hint",
            shown="The conversation is empty: there is nothing to run. o adds a turn.",
            quiet=True,
            adds=(add_turn(source, 0),),
        )
    if isinstance(value_at(data, scenario), dict):
        yield from _scenario(source, scenario)


def _scenario(source: CaseSource, own: JsonPath) -> Iterator[Row]:
    data, case = source.data, source.case
    yield Row(("scenario",), "section", "Simulated user", path=own)
    texts: tuple[tuple[str, str, Callable[[Any, int, str], list[Edit]]], ...] = (
        ("starting_prompt", "begins", session.set_starting_prompt),
        ("conversation_plan", "plan", session.set_plan),
    )
    for name, label, put in texts:
        value = get(data, own, name)
        text = value if isinstance(value, str) else ""
        yield Row(
            ("scenario", name),
            "fact",
            label,
            value=text,
            shown=None if text else "(nothing)",
            quiet=not text,
            field=Field(f"change what the simulated user {label}", text, "text", _text_change(put, case)),
            path=place(data, own, name),
        )
    yield from _persona(source, own)


def _text_change(put: Callable[[Any, int, str], list[Edit]], case: int) -> Callable[[str], Make]:
    return lambda text: lambda data, _: put(data, case, text)


def _persona(source: CaseSource, own: JsonPath) -> Iterator[Row]:
    data, case = source.data, source.case
    path = place(data, own, "user_persona")
    persona = value_at(data, path)

    def change(text: str) -> Make:
        value = value_of(text.strip()) if text.strip() else None
        if isinstance(value, str) and value not in PREBUILT_PERSONAS:
            raise FieldError(f"the built-in personas are {', '.join(PREBUILT_PERSONAS)}")
        if value is not None and not isinstance(value, str | dict):
            raise FieldError("must be the name of a built-in persona, or one of your own as a JSON object")
        return lambda data, _: session.set_persona(data, case, value)

    known = tuple(Completion(name) for name in PREBUILT_PERSONAS)
    remove = Operation("remove the persona", lambda data, _: session.set_persona(data, case, None))
    if isinstance(persona, dict):
        text = json.dumps(persona, ensure_ascii=False, indent=2)
        field = Field("change the persona", text, "json", change)
        yield Row(
            ("scenario", "user_persona"),
            "fact",
            "persona",
            value=persona,
            shown=_persona_text(persona),
            field=field,
            delete=remove,
            path=path,
        )
        return
    text = persona if isinstance(persona, str) else ""
    yield Row(
        ("scenario", "user_persona"),
        "fact",
        "persona",
        value=text,
        shown=None if text else "none",
        quiet=not text,
        field=Field("choose the persona", text, "value", change, known),
        delete=remove if text else None,
        path=path,
    )


def _persona_text(persona: dict[str, Any]) -> str:
    """What a persona of one's own is, a line for each thing it says."""
    lines = [f"{persona.get('id', '')}  {persona.get('description', '')}"]
    behaviors = persona.get("behaviors")
    for behavior in behaviors if isinstance(behaviors, list) else ():
        if isinstance(behavior, dict):
            lines.append(f"{behavior.get('name', '')}  {behavior.get('description', '')}")
            lines += [f"· {one}" for one in _texts(behavior, "behavior_instructions")]
            lines += [f"✗ {one}" for one in _texts(behavior, "violation_rubrics")]
    return "\n".join(lines)


def _texts(holder: dict[str, Any], name: str) -> list[str]:
    value = holder.get(name, holder.get(camel(name)))
    return [str(one) for one in value] if isinstance(value, list) else []
