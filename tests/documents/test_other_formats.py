"""Another format of case file is edited, undone, saved, merged and recovered by the same workbench.

A case is a line of JSON with other keys; lines that begin with `#` are comments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from evaltui.core.model.stored_cases import CaseList, StoredCase
from evaltui.documents import formats
from evaltui.documents.case_file import CASES, CaseFile, Chunk, is_same
from evaltui.documents.edits import Edit, EditError, Put
from evaltui.documents.recovery import recoverable
from evaltui.project.eval_set_file import read_eval_set_file, validated
from evaltui.tui.dialogs.unsaved import Recovery
from evaltui.workbench.workbench import Workbench
from tests.changed_values import apply_to_data

TEXT = """\
# Questions to the house.
{"id": "light", "ask": "light on", "want": "Done."}

# The last one.
{"id": "bye",   "ask": "bye", "want": "Bye \\u00e9"}
"""


class Question(StoredCase):
    """A case as a line."""

    def _parsed(self) -> Any:
        line = json.loads(self.text)
        turn = {
            "user_content": {"role": "user", "parts": [{"text": line["ask"]}]},
            "final_response": {"role": "model", "parts": [{"text": line["want"]}]},
        }
        return {"eval_id": line["id"], "conversation": [turn]}

    @classmethod
    def of_case(cls, case: Any) -> Question:
        """Raises EditError for a case that a line cannot say."""
        try:
            (turn,) = case["conversation"]
            texts = [turn[side]["parts"][0]["text"] for side in ("user_content", "final_response")]
        except (KeyError, ValueError, IndexError):
            raise EditError("a question has one message and one response") from None
        line = {"id": case["eval_id"], "ask": texts[0], "want": texts[1]}
        return cls(json.dumps(line))


class Questions:
    """The whole file."""

    key = CASES

    def __init__(self, head: str, chunks: tuple[Chunk, ...], tail: str) -> None:
        self.head, self.chunks, self.tail = head, chunks, tail

    @classmethod
    def parsed(cls, text: str, like: CaseFile | None) -> Questions | None:
        """None for a text that is none of these."""
        if not text.startswith("#"):
            return None
        shared = {chunk.case.text: chunk.case for chunk in like.chunks} if like else {}
        chunks, lead = [], ""
        for line in text.splitlines(keepends=True):
            if line.startswith("{"):
                own = line.removesuffix("\n")
                chunks.append(Chunk(lead, shared.get(own) or Question(own)))
                lead = "\n"
            else:
                lead += line
        return cls("", tuple(chunks), lead)

    @property
    def text(self) -> str:
        return "".join((self.head, *(chunk.lead + chunk.case.text for chunk in self.chunks), self.tail))

    @property
    def frame(self) -> str:
        return self.head + self.tail

    @property
    def cases(self) -> tuple[StoredCase, ...]:
        return tuple(chunk.case for chunk in self.chunks)

    @property
    def value(self) -> Any:
        return {"eval_set_id": "questions", CASES: CaseList(self.cases)}

    def read(self, text: str) -> CaseFile:
        if (file := Questions.parsed(text, self)) is None:
            raise ValueError("no questions")
        return file

    def has_text_of(self, other: CaseFile) -> bool:
        return len(self.chunks) == len(other.chunks) and all(map(is_same, self.chunks, other.chunks))

    def with_chunks(self, chunks: Iterable[Chunk]) -> Questions:
        return Questions(self.head, tuple(chunks), self.tail)

    def edited(self, edits: Iterable[Edit]) -> CaseFile:
        chunks = list(self.chunks)
        for edit in edits:
            if edit.path[:1] != (CASES,):
                raise EditError("a file of questions has nothing but cases", edit.path)
            if len(edit.path) > 2 or (len(edit.path) == 2 and isinstance(edit, Put)):
                lead, case = chunks[int(edit.path[1])]
                data = apply_to_data(case.value, [replace(edit, path=edit.path[2:])])
                chunks[int(edit.path[1])] = Chunk(lead, Question.of_case(data))
            else:
                chunks = list(_in_list(chunks, edit))
        document = self.with_chunks(chunks)
        return self if document.has_text_of(self) else document

    @property
    def lines_of_cases(self) -> list[int]:
        lines = [1]
        for chunk in self.chunks:
            lines.append(lines[-1] + chunk.lead.count("\n"))
        return lines[1:]

    def line_of(self, path: Any) -> int:
        return self.lines_of_cases[path[1]] if len(path) > 1 else 1

    def text_at(self, path: Any) -> str:
        value = self.value
        for step in path:
            value = value[step]
        return json.dumps(value)


def _in_list(chunks: list[Chunk], edit: Edit) -> Iterator[Chunk]:
    """The chunks after an edit of the list of cases; each case takes the comments above it along."""
    by_text = {chunk.case.text: chunk for chunk in chunks}
    data = [chunk.case.value for chunk in chunks]
    path = edit.path[1:]
    for case in apply_to_data(data, [replace(edit, path=path)]):
        known = next((chunk for chunk in by_text.values() if chunk.case.value == case), None)
        yield known or Chunk("\n", Question.of_case(case))


@pytest.fixture
async def opened(write_agent, monkeypatch):
    monkeypatch.setattr(formats, "ADAPTERS", [Questions.parsed])
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    path = folder / "house.evalset.json"
    path.write_text(TEXT, encoding="utf-8")
    workbench = Workbench(folder)
    await workbench.open()
    yield workbench, path
    await workbench.close()


def answer(workbench, path, case, text):
    return workbench.editing.do("answer", path, lambda one: one.case(case).turn(0).answer.set_text(text))


def test_problems_have_their_place(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "ADAPTERS", [Questions.parsed])
    path = tmp_path / "house.evalset.json"
    path.write_text(TEXT.replace('"bye",   "ask": "bye"', '"light", "ask": "bye"'))
    file = validated(read_eval_set_file(path, "", tmp_path))
    assert [case.eval_id for case in file.cases] == ["light", "light"]
    (problem,) = file.errors
    assert (problem.line, problem.file) == (5, str(path))


async def test_a_case_is_edited_undone_and_saved_in_its_own_words(opened):
    workbench, path = opened
    assert answer(workbench, path, 0, "Light is on.")
    assert workbench.editing.dirty_cases(path) == {"light"}
    workbench.editing.undo()
    assert workbench.editing.document(path).text == TEXT
    assert not workbench.editing.is_dirty(path)
    workbench.editing.redo()
    assert await workbench.editing.save_all()
    assert path.read_text() == TEXT.replace("Done.", "Light is on.")


async def test_cases_are_moved_and_removed_with_their_comments(opened):
    workbench, path = opened
    assert workbench.editing.do("move", path, lambda one: one.move_cases([(1, 0)]))
    assert workbench.editing.do("remove", path, lambda one: one.delete_cases([1]))
    assert await workbench.editing.save_all()
    comment, last = path.read_text().splitlines()[-2:]
    assert (comment, json.loads(last)["id"]) == ("# The last one.", "bye")


async def test_changes_outside_are_merged_by_case_and_clashes_asked(opened):
    workbench, path = opened
    assert answer(workbench, path, 0, "Light is on.")
    path.write_text(TEXT.replace("Bye", "Farewell"))
    assert await workbench.editing.save_all()
    assert path.read_text() == TEXT.replace("Done.", "Light is on.").replace("Bye", "Farewell")
    assert answer(workbench, path, 0, "mine")
    path.write_text(path.read_text().replace("Light is on.", "theirs"))
    assert not await workbench.editing.save_all()
    (conflict,) = workbench.editing.conflicts
    assert [clash.name for clash in conflict.conflict.cases] == ["light"]


async def test_what_a_case_cannot_say_is_refused(opened):
    workbench, path = opened
    assert not workbench.editing.do("add turn", path, lambda one: one.case(0).insert_turn(1, "again"))
    assert "a question has one message and one response" in workbench.messages.notice.text


async def test_unsaved_changes_come_back(opened):
    workbench, path = opened
    assert answer(workbench, path, 0, "Light is on.")
    workbench.editing.open_file(path).recovery.lock.release()
    again = Workbench(path.parent)
    await again.open()
    recovery = Recovery(again, recoverable(path.parent))
    assert await recovery.apply()
    assert again.editing.document(path).text == TEXT.replace("Done.", "Light is on.")
    await again.close()
