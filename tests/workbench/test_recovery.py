"""Unsaved edits of a session that crashed: offered, recovered, merged, discarded."""

import json
from types import SimpleNamespace

import pytest

from evaltui.documents.merge import Choices
from evaltui.documents.recovery import recoverable
from evaltui.documents.values import put
from evaltui.tui.dialogs.unsaved import Recovery, changes_of, file_of
from evaltui.tui.main.status import status_line
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench
from tests.recovered_texts import after


@pytest.fixture
async def crashed(write_agent, write_set):
    """A set with an unsaved edit of case `one`, left behind by a process that is gone."""
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    path = write_set(folder, one=("hello", "hello"), two=("hi", "hi"))
    before = path.read_text()
    await edit(folder, path, 0, "good morning")
    return SimpleNamespace(folder=folder, path=path, before=before)


def putting(where, value):
    return lambda eval_set: put(eval_set.data, where, value)


async def edit(folder, path, case, answer):
    """Edits in a session that ends without saving."""
    workbench = Workbench(folder)
    await workbench.open()
    where = ("eval_cases", case, "conversation", 0, "final_response", "parts", 0, "text")
    assert workbench.editing.do("change the answer", path, putting(where, answer))
    # The lock ends with the process; this one goes on.
    workbench.editing.open_file(path).recovery.lock.release()


async def started(crashed):
    workbench = Workbench(crashed.folder)
    await workbench.open()
    found = recoverable(crashed.folder)
    return workbench, Recovery(workbench, found)


def answers(data):
    return [case["conversation"][0]["final_response"]["parts"][0]["text"] for case in data["eval_cases"]]


def change_outside(crashed, case, answer):
    data = json.loads(crashed.path.read_text())
    data["eval_cases"][case]["conversation"][0]["final_response"]["parts"][0]["text"] = answer
    crashed.path.write_text(json.dumps(data), encoding="utf-8")


async def test_edits_come_back_as_one_step_and_the_file_is_unsaved(crashed):
    workbench, recovery = await started(crashed)
    (offer,) = recovery.offers
    assert (offer.name, changes_of(offer)) == ("greetings.evalset.json", "1 edit: change the answer")
    assert file_of(offer) == "file unchanged"
    assert await recovery.apply()
    assert recovery.recovered == {0}
    assert answers(workbench.editing.data(crashed.path)) == ["good morning", "hi"]
    assert crashed.path.read_text() == crashed.before
    assert workbench.editing.dirty_cases(crashed.path) == {"one"}
    assert workbench.editing.undo_label == "restore unsaved changes"
    workbench.editing.undo()
    assert workbench.editing.open_file(crashed.path).document.text == crashed.before
    workbench.editing.redo()
    assert await workbench.editing.save_all()
    assert answers(json.loads(crashed.path.read_text())) == ["good morning", "hi"]
    assert recoverable(crashed.folder) == []


async def test_what_was_restored_survives_the_next_crash(crashed):
    workbench, recovery = await started(crashed)
    await recovery.apply()
    workbench.editing.open_file(crashed.path).recovery.lock.release()
    (again,) = recoverable(crashed.folder)
    assert answers(json.loads(after(again))) == ["good morning", "hi"]


async def test_edits_are_merged_with_what_changed_meanwhile(crashed):
    change_outside(crashed, 1, "welcome")
    workbench, recovery = await started(crashed)
    assert file_of(recovery.offers[0]).startswith("file changed since")
    await recovery.apply()
    assert workbench.editing.conflicts == []
    assert answers(workbench.editing.data(crashed.path)) == ["good morning", "welcome"]
    workbench.editing.undo()
    assert answers(workbench.editing.data(crashed.path)) == ["hello", "welcome"]
    workbench.editing.redo()
    await workbench.editing.save_all()
    assert answers(json.loads(crashed.path.read_text())) == ["good morning", "welcome"]


@pytest.mark.parametrize(("side", "kept"), [("mine", "good morning"), ("theirs", "good night")])
async def test_a_clash_is_decided_between_both_versions(crashed, side, kept):
    change_outside(crashed, 0, "good night")
    change_outside(crashed, 1, "welcome")
    workbench, recovery = await started(crashed)
    assert await recovery.apply()
    (clash,) = workbench.editing.conflicts
    assert [one.name for one in clash.conflict.cases] == ["one"]
    assert answers(workbench.editing.data(crashed.path)) == ["good morning", "hi"]
    assert answers(json.loads(crashed.path.read_text())) == ["good night", "welcome"]
    assert await workbench.editing.settle(clash, Choices({"one": side}))
    assert answers(json.loads(crashed.path.read_text())) == [kept, "welcome"]
    assert workbench.editing.conflicts == []


async def test_a_file_that_is_gone_comes_back(crashed):
    crashed.path.unlink()
    workbench, recovery = await started(crashed)
    assert file_of(recovery.offers[0]).startswith("file deleted since")
    assert await recovery.apply()
    assert [case.eval_id for case in workbench.sets.by_path(crashed.path).cases] == ["one", "two"]
    assert await workbench.editing.save_all()
    assert answers(json.loads(crashed.path.read_text())) == ["good morning", "hi"]


async def test_two_sessions_that_clash_are_not_mixed(crashed):
    await edit(crashed.folder, crashed.path, 0, "good evening")
    workbench, recovery = await started(crashed)
    assert recovery.choices == ["recover", "later"]
    recovery.step(1, -1)
    assert recovery.choices == ["recover", "recover"]
    assert not await recovery.apply()
    assert "has unsaved changes" in workbench.messages.notice.text
    assert answers(workbench.editing.data(crashed.path)) == ["good evening", "hi"]
    assert recovery.choices == ["recover", "later"]
    assert await recovery.apply()
    assert len(recoverable(crashed.folder)) == 1


async def test_discarded_only_when_applied(crashed):
    workbench, recovery = await started(crashed)
    for step in (1, 1):
        assert len(recoverable(crashed.folder)) == 1
        recovery.step(0, step)
    assert recovery.choices == ["discard"]
    assert len(recoverable(crashed.folder)) == 1
    assert await recovery.apply()
    assert recoverable(crashed.folder) == []
    assert workbench.messages.notice.text == "Unsaved changes: 1 discarded"
    assert crashed.path.read_text() == crashed.before


async def test_a_workbench_with_relative_paths_knows_the_file(crashed, monkeypatch, open_workbench):
    monkeypatch.chdir(crashed.folder.parent)
    workbench = await open_workbench(crashed.folder.relative_to(crashed.folder.parent))
    recovery = Recovery(workbench, recoverable(crashed.folder))
    assert await recovery.apply()
    (path,) = workbench.editing.unsaved()
    assert path == workbench.sets.listed[0].path
    assert workbench.navigation.selection == Selection(path.name, "one")


ANSWER = ("conversation", 0, "final_response")
ROW = ("turn", 0, "answer", 0)
TEXTS = {
    "unfinished": '{"a": [1, ',
    "NUL bytes and half a character": '{"a": "\x00\ud83d"',
    "ten megabytes": "x" * 10_000_000,
}


async def leave_texts(folder, *paths, case=0, text=TEXTS["unfinished"], edits=False):
    """A session that is killed with a text in a field of a case, and before that perhaps an edit of it."""
    workbench = Workbench(folder)
    await workbench.open()
    for path in paths:
        if edits:
            where = ("eval_cases", case, *ANSWER, "parts", 0, "text")
            assert workbench.editing.do("change the answer", path, putting(where, "edited"))
        type_answer(workbench, path, ("one", "two")[case], text)
        workbench.editing.open_file(path).recovery.lock.release()
        # That of the other file goes with another process.
        workbench.drafting.draft = None


def type_answer(workbench, path, eval_id, text):
    workbench.editing.data(path)
    workbench.navigation.select(Selection(path.name, eval_id))
    workbench.selected.follow()
    assert workbench.drafting.open(ROW, "value", workbench.selected.field(ROW, "value"), text)
    workbench.drafting.write()


@pytest.fixture
def typed_in(write_agent, write_set):
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    path = write_set(folder, one=("hello", "hello"), two=("hi", "hi"))
    return SimpleNamespace(folder=folder, path=path)


def text_of(workbench):
    draft = workbench.draft
    return draft and (draft.case.eval_id, draft.text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("edits", [False, True], ids=["text alone", "text and edit"])
async def test_a_text_that_is_not_applied_survives_the_process(typed_in, text, edits):
    await leave_texts(typed_in.folder, typed_in.path, case=1, text=text, edits=edits)
    # Another program has written the file since, and moved the case.
    data = json.loads(typed_in.path.read_text())
    data["eval_cases"].reverse()
    typed_in.path.write_text(json.dumps(data), encoding="utf-8")
    workbench, recovery = await started(typed_in)
    (offer,) = recovery.offers
    assert changes_of(offer).startswith("1 edit: change the answer; 1 text " if edits else "1 text ")
    assert f"not applied in two: {text[:5]}" in changes_of(offer)
    assert await recovery.apply()
    assert text_of(workbench) == ("two", text)
    assert workbench.navigation.selection == Selection(typed_in.path.name, "two")
    assert answers(workbench.editing.data(typed_in.path)) == ["edited" if edits else "hi", "hello"]
    # It survives the next end too, and goes once it is applied or dropped.
    workbench.editing.open_file(typed_in.path).recovery.lock.release()
    assert recoverable(typed_in.folder)[0].draft.text == text
    workbench.drafting.drop()
    await workbench.editing.save_all()
    assert recoverable(typed_in.folder) == []
    assert list((typed_in.folder / ".evaltui" / "unsaved").iterdir()) == []


@pytest.mark.parametrize("change", ["case deleted", "case renamed", "turn deleted"])
async def test_a_text_whose_place_is_gone_stays_until_it_is_discarded(typed_in, change):
    await leave_texts(typed_in.folder, typed_in.path)
    data = json.loads(typed_in.path.read_text())
    if change == "case deleted":
        del data["eval_cases"][0]
    elif change == "case renamed":
        data["eval_cases"][0]["eval_id"] = "other"
    else:
        data["eval_cases"][0]["conversation"].clear()
    typed_in.path.write_text(json.dumps(data), encoding="utf-8")
    workbench, recovery = await started(typed_in)
    assert not await recovery.apply()
    assert text_of(workbench) is None
    (stored,) = recoverable(typed_in.folder)
    assert workbench.messages.notice.text.startswith(
        "one: the place of a typed text was deleted; the text is in "
    )
    assert workbench.messages.notice.text.endswith(stored.file.name)
    assert json.loads(stored.file.read_text())["draft"]["text"] == TEXTS["unfinished"]
    assert recovery.choices == ["later"]
    recovery.step(0, 1)
    assert await recovery.apply()
    assert recoverable(typed_in.folder) == []


async def test_texts_of_two_files_come_back_one_after_the_other(typed_in, write_set):
    other = write_set(typed_in.folder, name="other", one=("a", "b"))
    await leave_texts(typed_in.folder, typed_in.path, other)
    workbench, recovery = await started(typed_in)
    assert recovery.choices == ["recover", "recover"]
    # The second one is recovered once the first is applied.
    assert await recovery.apply()
    assert workbench.editing.undo_label == "change response"
    assert text_of(workbench) == ("one", TEXTS["unfinished"])


@pytest.mark.parametrize("damage", ["", "[]", '{"t": "now", "draft": {"row": 1}}', '{"draft": "x"}'])
async def test_a_damaged_file_keeps_no_other_from_being_recovered(typed_in, write_set, damage):
    other = write_set(typed_in.folder, name="other", one=("a", "b"))
    await leave_texts(typed_in.folder, typed_in.path, other, edits=True)
    first, second = recoverable(typed_in.folder)
    first.file.write_text(damage)
    assert recoverable(typed_in.folder) == [second]


def status(workbench):
    return "".join(text for text, _ in status_line(workbench, 200))


@pytest.mark.parametrize("what", ["edit", "text"])
async def test_the_status_line_says_what_a_crash_would_lose_until_it_can_be_written(
    typed_in, what, open_workbench
):
    in_the_way = typed_in.folder / ".evaltui"
    in_the_way.write_text("")
    workbench = await open_workbench(typed_in.folder)
    where, editing = ("eval_cases", 0, *ANSWER, "parts", 0, "text"), workbench.editing

    def edit(answer):
        assert editing.do("change the answer", typed_in.path, putting(where, answer))

    if what == "edit":
        edit("first")
    else:
        type_answer(workbench, typed_in.path, "two", "{")
    workbench.say("Another sentence")
    assert status(workbench).startswith("! No crash recovery: File exists   ctrl+s saves")
    in_the_way.unlink()
    edit("second")
    assert "No crash recovery" not in status(workbench)
    editing.open_file(typed_in.path).recovery.lock.release()
    (found,) = recoverable(typed_in.folder)
    assert answers(json.loads(after(found))) == ["second", "hi"]
    assert (found.draft is not None) == (what == "text")


async def test_without_unsaved_changes_nothing_can_be_lost(typed_in, open_workbench):
    (typed_in.folder / ".evaltui").write_text("")
    workbench = await open_workbench(typed_in.folder)
    where = ("eval_cases", 0, *ANSWER, "parts", 0, "text")
    assert workbench.editing.do("change the answer", typed_in.path, putting(where, "edited"))
    workbench.editing.undo()
    assert "No crash recovery" not in status(workbench)
    workbench.editing.redo()
    assert "No crash recovery" in status(workbench)
    assert await workbench.editing.save_all()
    assert "No crash recovery" not in status(workbench)


async def test_a_recovery_file_stays_while_what_was_recovered_cannot_be_written(crashed, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    workbench, recovery = await started(crashed)
    monkeypatch.setattr("evaltui.documents.open_file.RecoveryFile.open", refuse)
    assert await recovery.apply()
    assert answers(workbench.editing.data(crashed.path)) == ["good morning", "hi"]
    assert "No crash recovery: No space left on device" in status(workbench)
    assert len(recoverable(crashed.folder)) == 1
