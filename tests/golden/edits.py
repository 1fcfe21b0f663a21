"""Golden edits: the same series of edits in several styles, and what each does to the bytes on disk.

`python -m tests.golden.edits` writes `edits/STYLE.txt`: for every edit, the lines of the set and of its
config that a save changes then.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import re
import tempfile
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.documents.editing.set import SetEditor
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.case.fields import Operation, Part, Row, RowId, RowSource
from evaltui.workbench.case.rows.turns import next_expectation, toggle_context
from evaltui.workbench.case.selected_case import case_rows
from evaltui.workbench.cases import set_editing
from evaltui.workbench.cases.set_editing import change_tags, common_tags
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.rows import MetricRow, ReferenceRow, SettingRow
from evaltui.workbench.result.acceptable import choices_in_result
from evaltui.workbench.result.accepting import accept, propose
from evaltui.workbench.result.relaxing import Relaxing, RuleScope
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench
from tests.golden.steady import steady
from tests.waiting import PATIENCE_WITH_PROCESSES, until

FOLDER = Path(__file__).with_name("edits")
SET, CONFIG = "house.evalset.json", "test_config.json"
AGENT = """
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        if message.startswith("light"):
            yield tool_call("set_light", {"room": "Hall", "level": "3", "at": {"hour": 7}})
            yield tool_call("notify", {"text": "done"})
        yield text("Done: " + message)
"""


def _say(text: str, role: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


_LIGHT = {
    "name": "set_light",
    "args": {"room": "Hall", "level": 3, "at": {"hour": 6, "days": ["sat", "sun"]}},
}
_DATA = {
    "eval_set_id": "house",
    "name": "The house",
    "owner": {"team": "café/ops", "since": 2024.0},
    "eval_cases": [
        {
            "eval_id": "light",
            "session_input": {"app_name": "house", "user_id": "ann", "state": {"mode": "day", "rooms": 3}},
            "final_session_state": {"mode": "night"},
            "conversation": [
                {
                    "user_content": _say("light on", "user"),
                    "intermediate_data": {
                        "tool_uses": [_LIGHT],
                        "tool_responses": [{"name": "set_light", "response": {"ok": True}}],
                    },
                    "final_response": _say("Done.", "model"),
                },
                {"user_content": _say("bye \U0001f44b", "user"), "final_response": _say("Bye.", "model")},
            ],
            "ticket": "HOUSE-7",
        },
        {
            "eval_id": "events",
            "conversation": [
                {
                    "user_content": _say("light off", "user"),
                    "intermediate_data": {
                        "invocation_events": [
                            {
                                "author": "house",
                                "content": {"role": "model", "parts": [{"function_call": _LIGHT}]},
                            }
                        ]
                    },
                    "final_response": _say("Done.", "model"),
                }
            ],
        },
        {"eval_id": "last", "conversation": [{"user_content": _say("hello", "user")}]},
    ],
}
_OLD = [
    {
        "query": "light on",
        "expected_tool_use": [{"tool_name": "set_light", "tool_input": {"room": "Hall"}}],
        "expected_intermediate_agent_responses": [{"author": "house", "text": "One moment."}],
        "reference": "Done.",
    },
    {"query": "bye", "expected_tool_use": [], "reference": "Bye."},
]
_RULES = [{"tool": "set_light", "arg": "at.hour", "match": "ignore", "set": "house", "case": "light"}]
_CONFIG = {
    "criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8},
    "own": [1.0, {"keep": "this"}],
    "evaltui": {"rules": _RULES, "turns": [{"set": "house", "case": "light", "turn": 1, "mode": "context"}]},
}


def _camel(value: Any, *, names: bool = True) -> Any:
    """Keys of fields in camelCase; those of arguments and states stay."""
    if isinstance(value, list):
        return [_camel(item, names=names) for item in value]
    if not isinstance(value, dict):
        return value
    own = {"args", "state", "response", "final_session_state", "owner"}
    return {
        "".join(part.title() if number else part for number, part in enumerate(key.split("_")))
        if names
        else key: _camel(item, names=names and key not in own)
        for key, item in value.items()
    }


def _odd(value: Any) -> str:
    """Indented by three, with blanks before colons, escaped slashes and letters."""
    return json.dumps(value, indent=3, separators=(" ,", " : ")).replace("/", "\\/") + "\n\n\n"


STYLES: dict[str, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
    "plain": (lambda value: json.dumps(value, indent=2, ensure_ascii=False) + "\n",) * 2,
    "camel": (
        lambda value: json.dumps(_camel(value), indent=4, ensure_ascii=False) + "\n",
        lambda value: json.dumps(value, indent=4) + "\n",
    ),
    "crlf-tabs": (lambda value: json.dumps(value, indent="\t").replace("\n", "\r\n"),) * 2,
    "bom-compact": (lambda value: "\ufeff" + json.dumps(value, separators=(",", ":"), ensure_ascii=False),)
    * 2,
    "odd": (_odd, _odd),
}


class Editor:
    """Edits of one set through a workbench, by cases and rows."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self.editing = workbench.editing
        self.path = workbench.agent.dir / SET

    def select(self, eval_id: str | None) -> None:
        self.workbench.navigation.select(Selection(SET, eval_id))

    def source(self, eval_id: str) -> RowSource:
        eval_set = SetEditor(self.editing.data(self.path), self.editing.config_for_edit(self.path))
        return RowSource(eval_set.case(eval_set.eval_ids.index(eval_id)))

    def row(self, eval_id: str, row: RowId) -> Row:
        return next(one for one in case_rows(self.source(eval_id)) if one.id == row)

    def type(self, eval_id: str, row: RowId, text: str, part: Part = "value") -> None:
        """Types a text into a row, or into the name of it."""
        field = self.row(eval_id, row).of(part)
        assert field is not None
        self._do(Operation(field.label, field.change(text)))

    def do(self, eval_id: str, row: RowId, name: str) -> None:
        """Inserts at a row, duplicates, deletes or cycles it, or adds what is called so."""
        at = self.row(eval_id, row)
        adds = {operation.label: operation for operation in at.adds}
        self._do(adds[name] if name in adds else getattr(at, name))

    def move(self, eval_id: str, row: RowId, step: int) -> None:
        move = self.row(eval_id, row).move
        assert move is not None
        self._do(move(step))

    def expect(self, eval_id: str, turn: int) -> None:
        """The next kind of expectation of a turn."""
        self._do(next_expectation(self.source(eval_id), turn)[0])

    def context(self, eval_id: str, turn: int) -> None:
        self._do(toggle_context(self.source(eval_id), turn))

    def _do(self, operation: Operation) -> None:
        assert operation.make is not None
        assert self.editing.do(operation.label, self.path, operation.make), self.workbench.messages.notice

    def rename(self, eval_id: str, wanted: str) -> None:
        number = SetEditor(self.editing.data(self.path)).eval_ids.index(eval_id)
        assert set_editing.rename_case(self.editing, CaseId(SET, eval_id), number, wanted)

    def tag(self, eval_id: str, typed: str) -> None:
        self.select(eval_id)
        change_tags(self.editing, common_tags(self.editing), typed)

    def chosen(self, eval_id: str | None, act: Callable[..., None], *given: Any, **named: Any) -> None:
        """Something that is done to the selected case, or set."""
        self.select(eval_id)
        act(self.editing, *given, **named)

    def criterion(self, act: str, kind: type, *given: Any, **fields: Any) -> None:
        """Something that is done to a row of the criteria."""
        bench = self.workbench
        criteria = Criteria(self.editing, self.path)
        rows = (row for section in criteria.sections() for row in section.rows if isinstance(row, kind))
        row = next(row for row in rows if all(getattr(row, name) == fields[name] for name in fields))
        assert getattr(criteria, act)(row, *given), bench.messages.notice

    async def accept(self, eval_id: str, title: str, at: DifferenceAt) -> None:
        self.select(eval_id)
        self.workbench.navigation.select_difference(at)
        choices = {choice.title: choice for choice in choices_in_result(self.editing)}
        choice = choices[title]
        proposal = await propose(self.editing, choice)
        assert accept(self.editing, proposal), proposal.problem

    def relax(self, eval_id: str, at: DifferenceAt, arg: str, match: Any, scope: RuleScope) -> None:
        bench, case = self.workbench, CaseId(SET, eval_id)
        made = Relaxing(bench.agent, self.editing, case, at)
        assert made.apply(made.rule(arg, match, scope))

    def texts(self) -> dict[str, str]:
        """The files as they are on disk, with what is seen of no text spelt out."""
        raw = {name: self.path.with_name(name).read_bytes() for name in (SET, CONFIG)}
        return {
            name: text.decode().replace("\r", "\\r").replace("\ufeff", "\\ufeff")
            for name, text in raw.items()
        }


CALL = ("turn", 0, "call", 0)
Edit = Callable[[Editor], Awaitable[None] | None]

# By name; each is saved before the next one.
EDITS: dict[str, Edit] = {
    "accept an argument": lambda e: e.accept(
        "light", "This argument", DifferenceAt("argument", 0, 0, "level")
    ),
    "accept a response": lambda e: e.accept("light", "This response", DifferenceAt("answer", 0)),
    "relax an argument in a case": lambda e: e.relax(
        "events", DifferenceAt("argument", 0, 0, "at.hour"), "at.hour", "ignore", "case"
    ),
    "accept the calls of events": lambda e: e.accept(
        "events", "Calls of this turn", DifferenceAt("argument", 0, 0, "level")
    ),
    "relax an argument everywhere": lambda e: e.relax(
        "light", DifferenceAt("argument", 0, 0, "at.hour"), "at.hour", {"approx": {"abs": 1}}, "all"
    ),
    "type a message": lambda e: e.type("light", ("turn", 0, "user", 0), 'Füße "hoch"\n日本 \\ 🎉'),
    "type a response": lambda e: e.type("last", ("turn", 0, "answer", 0), "Hello."),
    "type a text argument": lambda e: e.type("light", (*CALL, "arg", 0), "Kitchen"),
    "type a number": lambda e: e.type("light", (*CALL, "arg", 1), "2.50"),
    "type an object": lambda e: e.type("light", (*CALL, "arg", 2), '{"hour": 8, "days": []}'),
    "type an argument of an event": lambda e: e.type("events", (*CALL, "arg", 0), "Attic"),
    "rename an argument": lambda e: e.type("light", (*CALL, "arg", 0), "place", "name"),
    "rename a call": lambda e: e.type("light", CALL, "dim_light"),
    "add an argument": lambda e: e.do("light", (*CALL, "arg", 1), "add argument"),
    "duplicate an argument": lambda e: e.do("light", (*CALL, "arg", 1), "duplicate"),
    "move an argument": lambda e: e.move("light", (*CALL, "arg", 1), 1),
    "delete an argument": lambda e: e.do("light", (*CALL, "arg", 3), "delete"),
    "add a call": lambda e: e.do("light", CALL, "add call"),
    "add a call to events": lambda e: e.do("events", CALL, "add call"),
    "duplicate a call": lambda e: e.do("light", CALL, "duplicate"),
    "move a call": lambda e: e.move("light", CALL, 1),
    "delete a call": lambda e: e.do("light", CALL, "delete"),
    "add a tool response": lambda e: e.do("events", CALL, "add response to this call"),
    "type a tool response": lambda e: e.type("light", ("turn", 0, "response", 0), '{"ok": false}'),
    "delete a tool response": lambda e: e.do("light", ("turn", 0, "response", 0), "delete"),
    "add an intermediate response": lambda e: e.do("light", ("turn", 0), "add intermediate response"),
    "calls are not checked": lambda e: e.expect("light", 1),
    "calls are expected": lambda e: e.expect("light", 1),
    "score a context turn": lambda e: e.context("light", 1),
    "mark a context turn": lambda e: e.context("last", 0),
    "add a turn": lambda e: e.do("last", ("turn", 0), "add turn"),
    "insert a turn": lambda e: e.do("light", ("turn", 0), "insert"),
    "move a turn": lambda e: e.move("light", ("turn", 0), 1),
    "duplicate a turn": lambda e: e.do("light", ("turn", 0), "duplicate"),
    "delete a turn": lambda e: e.do("light", ("turn", 1), "delete"),
    "type a state": lambda e: e.type("light", ("state", 1), "4"),
    "rename a key of the state": lambda e: e.type("light", ("state", 0), "daytime", "name"),
    "delete a key of the state": lambda e: e.do("light", ("state", 0), "delete"),
    "type a final state": lambda e: e.type("light", ("final_state", 0), '["day", null, 1e3]'),
    "type a user id": lambda e: e.type("light", ("session", "user_id"), "bob"),
    "delete a field of the session": lambda e: e.do("light", ("session", "app_name"), "delete"),
    "add a rubric to a case": lambda e: e.do("light", ("id",), "add rubric to case"),
    "type a rubric": lambda e: e.type("light", ("rubric", 0), "Says please"),
    "delete an unknown field": lambda e: e.do("light", ("extra", "unknown", "ticket"), "delete"),
    "tag a case": lambda e: e.tag("light", "smoke night"),
    "change tags": lambda e: e.tag("light", "smoke"),
    "rename a case": lambda e: e.rename("light", "lights"),
    "rename a set": lambda e: (set_editing.rename_set(e.editing, e.path, "home"), None)[1],
    "new case": lambda e: e.chosen("lights", lambda editing: set_editing.new_case(editing)),
    "duplicate a case": lambda e: e.chosen("lights", set_editing.duplicate),
    "move a case down": lambda e: e.chosen("lights", set_editing.move, step=1),
    "move a case up": lambda e: e.chosen("last", set_editing.move, step=-1),
    "cut a case and paste it": lambda e: (
        e.chosen("events", set_editing.copy, cut=True),
        e.chosen("last", set_editing.paste),
    )[1],
    "copy a case and paste it": lambda e: (
        e.chosen("events", set_editing.copy),
        e.chosen("lights", set_editing.paste),
    )[1],
    "delete a case with its references": lambda e: e.chosen("lights", set_editing.delete),
    "raise a threshold": lambda e: e.criterion("move", MetricRow, 1, name="response_match_score"),
    "type a threshold": lambda e: e.criterion("type", MetricRow, "0.625", name="response_match_score"),
    "add a metric": lambda e: e.criterion("add", MetricRow, name="safety_v1"),
    "add a metric that ADK does not have": lambda e: e.criterion("add", MetricRow, name="trajectory_recall"),
    "remove a metric": lambda e: e.criterion("remove", MetricRow, name="tool_trajectory_avg_score"),
    "set the repeats": lambda e: e.criterion("type", SettingRow, "5", name="runs"),
    "remove the repeats": lambda e: e.criterion("remove", SettingRow, name="runs"),
    "remove a rule": lambda e: e.criterion("remove", ReferenceRow, block="rules", index=0),
}


async def series(style: str, folder: Path) -> str:
    """What each edit does to the files of a set in a style, and that undoing takes all of it back."""
    agent = folder / "house"
    agent.mkdir()
    (agent / "agent.py").write_text(textwrap.dedent(AGENT), encoding="utf-8")
    for name, data, write in zip((SET, CONFIG), (_DATA, _CONFIG), STYLES[style], strict=True):
        (agent / name).write_bytes(write(data).encode())
    workbench = Workbench(agent)
    await workbench.open()
    editor = Editor(workbench)
    workbench.runs.run_all()
    await until(
        lambda: workbench.runs.current and workbench.runs.current.over, seconds=PATIENCE_WITH_PROCESSES
    )
    first = before = editor.texts()
    lines = [f"# {style}\n"]
    for name, edit in EDITS.items():
        if (made := edit(editor)) is not None:
            await made
        now = await _saved(editor)
        lines += [f"\n## {name}\n", *(line for file in now for line in _diff(file, before[file], now[file]))]
        before = now
    while workbench.editing.undo_label:
        workbench.editing.undo()
    assert await _saved(editor) == first
    while workbench.editing.redo_label:
        workbench.editing.redo()
    assert await _saved(editor) == before
    await workbench.close()
    for file, text in before.items():
        lines += [f"\n# {file}\n", text]
    return "".join(lines)


async def _saved(editor: Editor) -> dict[str, str]:
    assert await editor.editing.save_all(), editor.workbench.messages.notice
    return editor.texts()


def _diff(file: str, before: str, after: str) -> Iterator[str]:
    pieces = difflib.unified_diff(_lines(before), _lines(after), file, file, n=1)
    yield from (piece if piece.endswith("\n") else piece + "\n" for piece in pieces)


def _lines(text: str) -> list[str]:
    """A file of one line is compared by its members."""
    return text.splitlines(keepends=True) if text.count("\n") > 1 else re.split(r"(?<=[,{\[])", text)


async def new_files(folder: Path) -> str:
    """A new set with a case and a config, and a set that is converted from an old format."""
    agent = folder / "house"
    agent.mkdir()
    (agent / "agent.py").write_text(textwrap.dedent(AGENT), encoding="utf-8")
    (agent / "older.test.json").write_text(json.dumps(_OLD, indent=2), encoding="utf-8")
    workbench = Workbench(agent)
    await workbench.open()
    editing = workbench.editing
    assert set_editing.new_set(editing, "house")
    set_editing.new_case(editing)
    editor = Editor(workbench)
    editor.criterion("add", MetricRow, name="safety_v1")
    converted, problems = set_editing.convert_file(agent / "older.test.json")
    assert converted is not None, problems
    assert await set_editing.convert(
        editing, agent / "older.test.json", converted, agent / "newer.evalset.json", workbench.say
    )
    assert await editing.save_all()
    await workbench.close()
    names = (SET, CONFIG, "newer.evalset.json")
    text = "".join(f"# {name}\n{(agent / name).read_bytes().decode()}\n" for name in names)
    return re.sub(r'("creation_timestamp": )[\d.]+', r"\1EPOCH", text)


async def _write(name: str, text: Callable[[Path], Awaitable[str]]) -> None:
    with steady(), tempfile.TemporaryDirectory() as folder:
        (FOLDER / f"{name}.txt").write_text(await text(Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for style in STYLES:
        asyncio.run(_write(style, partial(series, style)))
    asyncio.run(_write("new-files", new_files))
