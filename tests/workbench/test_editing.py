"""Editing from the workbench: done, undone, scored at once, saved, and merged with what others change."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.edits import Put
from evaltui.documents.merge import Choices
from evaltui.documents.recovery import recoverable
from evaltui.documents.values import put
from evaltui.workbench.cases import set_editing
from evaltui.workbench.files import open_files
from evaltui.workbench.files.open_files import OpenFiles
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench
from tests.recovered_texts import after

ECHO = """
    def root_agent(message, session):
        session.state["said"] = message
        return message
"""


@pytest.fixture
def echo(write_agent, write_set):
    folder = write_agent(ECHO)
    write_set(folder, good=("hello", "hello"), bad=("hello", "something else"))
    return folder


async def opened(folder):
    workbench = Workbench(folder)
    await workbench.open()
    return workbench, workbench.sets.listed[0].path


def answer(case, text):
    return lambda eval_set: eval_set.case(case).turn(0).answer.set_text(text)


def rename(workbench, path, case, old, new):
    return workbench.editing.do(
        f"rename {old}",
        path,
        lambda eval_set: eval_set.rename_case(case, new),
        after=Selection(path.name, new),
        moved={CaseId(path.name, old): CaseId(path.name, new)},
    )


async def test_an_edit_shows_in_the_list_and_undo_brings_everything_back(echo):
    workbench, path = await opened(echo)
    before = path.read_bytes()
    assert rename(workbench, path, 0, "good", "better")
    assert [case.eval_id for case in workbench.sets.listed[0].cases] == ["better", "bad"]
    assert workbench.navigation.selection == Selection(path.name, "better")
    assert workbench.editing.dirty_cases(path) == {"better"}
    assert workbench.editing.undo_label == "rename good"
    workbench.editing.undo()
    assert [case.eval_id for case in workbench.sets.listed[0].cases] == ["good", "bad"]
    assert workbench.navigation.selection == Selection(path.name, "good")
    assert not workbench.editing.is_dirty(path)
    workbench.editing.redo()
    assert workbench.navigation.selection == Selection(path.name, "better")
    assert path.read_bytes() == before
    assert await workbench.editing.save_all()
    assert json.loads(path.read_text())["eval_cases"][0]["eval_id"] == "better"
    assert not workbench.editing.is_dirty(path)
    workbench.editing.undo()
    assert workbench.editing.is_dirty(path)


async def test_a_result_goes_with_its_renamed_case(echo, until):
    workbench, path = await opened(echo)
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    assert rename(workbench, path, 0, "good", "better")
    key = CaseId(path.name, "better")
    assert workbench.outcomes.status(key) == "PASSED"
    await until(lambda: workbench.outcomes.trace(key))
    assert [event.kind for event in workbench.outcomes.trace(key).events][:1] == ["user"]
    workbench.editing.undo()
    assert workbench.outcomes.status(CaseId(path.name, "good")) == "PASSED"


async def test_expectations_are_scored_as_one_types_without_the_agent(echo, until):
    workbench, path = await opened(echo)
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    agent = echo / "agent.py"
    agent.write_text("raise RuntimeError('nobody may run this')")
    key = CaseId(path.name, "bad")
    assert workbench.outcomes.status(key) == "FAILED"
    drafting = opened_answer(workbench, key)
    before = workbench.editing.document(path)
    for text in ("h", "he", "hell", "hello"):
        drafting.type(text)
    await until(lambda: workbench.outcomes.get(key).status == "PASSED")
    # Only the result beside the field is by what is typed; the case still fails.
    assert not workbench.outcomes.freshness(key).is_stale
    assert workbench.outcomes.status(key) == "FAILED"
    assert workbench.outcomes.counts_of() == {"PASSED": 1, "FAILED": 1}
    assert workbench.outcomes.results_of_set(workbench.sets.listed[0]).failing == [key]
    assert workbench.editing.document(path) is before
    drafting.type("goodbye")
    await until(lambda: workbench.outcomes.get(key).status == "FAILED")
    drafting.type("hello")
    await until(lambda: workbench.outcomes.get(key).status == "PASSED")
    drafting.drop()
    await until(lambda: workbench.outcomes.get(key).status == "FAILED")
    assert workbench.editing.undo_label is None
    opened_answer(workbench, key).type("hello")
    assert drafting.apply()
    await until(lambda: workbench.outcomes.status(key) == "PASSED")
    assert not workbench.outcomes.is_stale(key)
    workbench.editing.undo()
    await until(lambda: workbench.outcomes.status(key) == "FAILED")
    assert workbench.editing.undo_label is None


def opened_answer(workbench, case):
    """The drafting of the answer of a case's first turn."""
    workbench.navigation.select(Selection(*case))
    workbench.selected.follow()
    row = ("turn", 0, "answer", 0)
    assert workbench.drafting.open(row, "value", workbench.selected.field(row, "value"))
    return workbench.drafting


async def test_the_final_state_is_known_after_the_run(echo, until):
    workbench, path = await opened(echo)
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    key = CaseId(path.name, "good")
    workbench.editing.do("state", path, lambda eval_set: eval_set.case(0).final_state.put("said", "goodbye"))
    await until(lambda: workbench.outcomes.status(key) == "FAILED")
    assert [(diff.expected, diff.actual) for diff in workbench.outcomes.get(key).result.state] == [
        ("goodbye", "hello")
    ]
    workbench.editing.do("state", path, lambda eval_set: eval_set.case(0).final_state.put("said", "hello"))
    await until(lambda: workbench.outcomes.status(key) == "PASSED")


async def test_a_mark_in_a_new_config_is_one_step_with_its_own_file(echo, until):
    workbench, path = await opened(echo)
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    key = CaseId(path.name, "bad")
    config = path.parent / "test_config.json"
    assert workbench.editing.do(
        "context", path, lambda eval_set: eval_set.case(1).turn(0).set_context(on=True)
    )
    await until(lambda: workbench.outcomes.status(key) != "FAILED")
    assert workbench.editing.unsaved() == [config]
    workbench.editing.undo()
    await until(lambda: workbench.outcomes.status(key) == "FAILED")
    workbench.editing.redo()
    assert await workbench.editing.save_all()
    assert json.loads(config.read_text())["evaltui"]["turns"] == [
        {"set": "greetings", "case": "bad", "turn": 0, "mode": "context"}
    ]


async def test_unsaved_edits_are_what_runs(echo, until):
    workbench, path = await opened(echo)
    workbench.editing.do(
        "say", path, lambda eval_set: eval_set.case(1).turn(0).user.set_text("something else")
    )
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    assert workbench.outcomes.counts_of() == {"PASSED": 2}


async def test_only_what_was_edited_is_validated_and_scored(echo, write_set, until, monkeypatch):
    write_set(echo, **{f"case_{number}": ("hello", "hello") for number in range(50)})
    workbench, path = await opened(echo)
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    from evaltui.core.model import validation
    from evaltui.workbench.result import rescoring

    validated, scored = [], []
    check, score = validation.validate_case, rescoring.score_repeat

    async def counted_score(expected, *args, **kwargs):
        scored.append(expected.case.eval_id)
        return await score(expected, *args, **kwargs)

    monkeypatch.setattr(
        validation, "validate_case", lambda raw: validated.append(raw["eval_id"]) or check(raw)
    )
    monkeypatch.setattr(rescoring, "score_repeat", counted_score)
    workbench.editing.do("answer", path, answer(7, "goodbye"))
    await until(lambda: workbench.outcomes.status(CaseId(path.name, "case_7")) == "FAILED")
    assert validated == ["case_7"]
    assert scored == ["case_7"]


async def test_a_change_outside_to_the_same_case_asks(echo):
    workbench, path = await opened(echo)
    workbench.editing.do("answer", path, answer(0, "mine"))
    theirs = path.read_text().replace('[{"text": "hello"}]', '[{"text": "theirs"}]')
    path.write_text(theirs)
    assert not await workbench.editing.save_all()
    (clash,) = workbench.editing.conflicts
    assert path.read_text() == theirs
    names = [case.name for case in clash.conflict.cases]
    assert "good" in names
    assert await workbench.editing.settle(clash, Choices(dict.fromkeys(names, "mine")))
    assert not workbench.editing.conflicts
    assert '"mine"' in path.read_text()


async def test_looking_outside_takes_over_what_does_not_clash(echo):
    workbench, path = await opened(echo)
    workbench.editing.do("answer", path, answer(0, "mine"))
    data = json.loads(path.read_text())
    data["eval_cases"].append({**data["eval_cases"][1], "eval_id": "third"})
    path.write_text(json.dumps(data))
    await workbench.open()
    assert [case.eval_id for case in workbench.sets.listed[0].cases] == ["good", "bad", "third"]
    assert workbench.editing.dirty_cases(path) == {"good"}


@pytest.mark.parametrize("looked_at_only", [False, True])
@pytest.mark.parametrize(
    ("broken", "says"), [('{"eval_set_id": "s",', "line 1: not valid JSON"), ("[]", "expected an object")]
)
async def test_a_file_that_is_broken_outside_is_shown_so_until_it_is_mended(
    echo, broken, says, looked_at_only
):
    workbench, path = await opened(echo)
    if looked_at_only:
        workbench.editing.data(path)
    else:
        workbench.editing.do("answer", path, answer(0, "mine"))
        assert await workbench.editing.save_all()
    saved = path.read_text()
    path.write_text(broken)
    await workbench.open()
    assert workbench.messages.notice.text.startswith(f"{path.name} is unreadable: {says}")
    assert workbench.editing.refuses_to_edit(path).startswith(f"{path.name} is unreadable: line 1: not ")
    assert workbench.sets.listed[0].cases == ()
    before, _, behind = saved.rpartition('"hello"')
    path.write_text(f'{before}"theirs"{behind}')
    await workbench.open()
    assert workbench.editing.refuses_to_edit(path) is None
    assert [case.eval_id for case in workbench.sets.listed[0].cases] == ["good", "bad"]
    assert '"theirs"' in workbench.editing.document(path).text
    assert not workbench.editing.is_dirty(path)
    # What was done before can be taken back still.
    workbench.editing.undo()
    assert '"mine"' not in workbench.editing.document(path).text


async def test_mine_can_be_kept_where_theirs_is_broken(echo):
    workbench, path = await opened(echo)
    workbench.editing.do("answer", path, answer(0, "mine"))
    path.write_text(path.read_text()[:-20])
    assert not await workbench.editing.save_all()
    (clash,) = workbench.editing.conflicts
    assert await workbench.editing.settle(clash, Choices(), "mine")
    assert '"mine"' in path.read_text()
    assert not workbench.editing.is_dirty(path)


async def test_a_file_that_is_broken_before_it_is_edited_is_said(echo):
    workbench, path = await opened(echo)
    path.write_text("{")
    assert not workbench.editing.do("answer", path, answer(0, "mine"))
    assert "not valid JSON" in workbench.messages.notice.text
    with pytest.raises(EvalSetError, match="not valid JSON"):
        workbench.editing.data(path)


async def test_the_agent_is_asked_for_its_tools_once_and_its_error_is_kept(write_agent, write_set, until):
    folder = write_agent(
        """
        from evaltui import Agent, Rule, ScriptedModel

        def find(city: str) -> str:
            "Finds."
            return city

        root_agent = Agent(name="a", model=ScriptedModel([Rule(user=".*", reply="x")]), tools=[find])
        """
    )
    write_set(folder, good=("hello", "x"))
    workbench, _ = await opened(folder)
    workbench.agent.learn_tools()
    await until(lambda: workbench.agent.info)
    assert [tool["name"] for tool in workbench.agent.info["tools"]] == ["find"]
    (folder / "agent.py").write_text("raise RuntimeError('broken')")
    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    assert "broken" in workbench.agent.error.message
    assert [tool["name"] for tool in workbench.agent.info["tools"]] == ["find"]
    await workbench.close()


async def test_what_cannot_be_done_is_said_and_changes_nothing(echo, write_set):
    old = echo / "old.test.json"
    old.write_text('[{"query": "hi", "expected_tool_use": [], "reference": "hi"}]')
    workbench, path = await opened(echo)
    assert not workbench.editing.do(
        "call", path, lambda eval_set: eval_set.case(99).turn(0).insert_call(0, "nothing")
    )
    assert workbench.messages.notice
    assert not workbench.editing.unsaved()
    assert not workbench.editing.do("answer", old, answer(0, "x"))
    assert "old format" in workbench.messages.notice.text


async def test_a_broken_edit_is_an_error_of_the_set_until_it_is_mended(echo):
    workbench, path = await opened(echo)
    workbench.editing.do("add", path, lambda eval_set: eval_set.add_case())
    workbench.editing.do("delete", path, lambda eval_set: eval_set.delete_cases([eval_set.count - 1]))
    assert not workbench.sets.errors(workbench.sets.listed[0])

    workbench.editing.do("break", path, lambda one: put(one.data, ("eval_cases", 0, "eval_id"), "bad"))
    assert any("bad" in str(problem) for problem in workbench.sets.errors(workbench.sets.listed[0]))
    workbench.editing.undo()
    assert not workbench.sets.errors(workbench.sets.listed[0])


@given(steps=st.lists(st.sampled_from(["move", "other", "undo", "redo", "save"]), max_size=25))
def test_undo_and_redo_in_any_order_keep_text_and_what_is_unsaved_true(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("agent")
    path = folder / "a.evalset.json"
    path.write_text('{"eval_set_id": "a", "eval_cases": [{"eval_id": "x", "conversation": []}]}\n')
    files = OpenFiles(folder, lambda path: None)
    file = files.open(path)
    here = Selection(path.name)
    texts, back, moving = [file.document.text], [], None
    for number, step in enumerate(steps):
        if step in ("move", "other"):
            extends = moving if step == "move" else None
            is_extended = extends is not None and files.last_step is extends
            files.do(step, {path: [Put(("name",), str(number))]}, here, here, extends=extends)
            if is_extended:
                texts[-1] = file.document.text
            else:
                texts.append(file.document.text)
            moving = files.last_step if step == "move" else moving
            back.clear()
        elif step == "undo" and len(texts) > 1:
            files.undo()
            back.append(texts.pop())
        elif step == "redo" and back:
            files.redo()
            texts.append(back.pop())
        elif step == "save":
            assert asyncio.run(files.save(path, pytest.fail)) is None
            assert path.read_text() == file.document.text
        assert file.document.text == texts[-1]
        assert file.dirty == (path.read_text() != file.document.text)
    files.discard()


# What others change is a new base


def outside(path, case, text):
    data = json.loads(path.read_text())
    data["eval_cases"][case]["conversation"][0]["final_response"]["parts"][0]["text"] = text
    path.write_text(json.dumps(data))


def answers(data):
    return [case["conversation"][0]["final_response"]["parts"][0]["text"] for case in data["eval_cases"]]


@pytest.mark.parametrize("saved", [True, False])
async def test_undo_takes_back_what_was_done_here_and_nothing_from_outside(echo, saved):
    workbench, path = await opened(echo)
    workbench.editing.do("answer", path, answer(0, "mine"))
    if saved:
        await workbench.editing.save_all()
    outside(path, 1, "theirs")
    await workbench.open()
    assert answers(workbench.editing.data(path)) == ["mine", "theirs"]
    assert workbench.editing.is_dirty(path) is not saved
    workbench.editing.undo()
    assert answers(workbench.editing.data(path)) == ["hello", "theirs"]
    assert workbench.editing.is_dirty(path) is saved
    assert workbench.editing.undo_label is None
    outside(path, 1, "theirs again")
    await workbench.open()
    workbench.editing.redo()
    assert answers(workbench.editing.data(path)) == ["mine", "theirs again"]
    workbench.editing.undo()
    assert answers(workbench.editing.data(path)) == ["hello", "theirs again"]
    await workbench.editing.save_all()
    assert answers(json.loads(path.read_text())) == ["hello", "theirs again"]


async def test_a_step_that_others_have_built_on_stays_and_the_one_before_can_be_undone(echo):
    workbench, path = await opened(echo)
    workbench.editing.do("first", path, answer(1, "first"))
    workbench.editing.do("second", path, answer(0, "second"))
    await workbench.editing.save_all()
    outside(path, 0, "theirs")
    await workbench.open()
    workbench.editing.undo()
    assert workbench.messages.notice.text == f"'second' stays: {path.name} changed on disk at the same place"
    assert answers(workbench.editing.data(path)) == ["theirs", "first"]
    workbench.editing.undo()
    assert answers(workbench.editing.data(path)) == ["theirs", "something else"]
    workbench.editing.redo()
    assert answers(workbench.editing.data(path)) == ["theirs", "first"]


async def test_a_step_is_undone_alone_though_something_came_from_outside_meanwhile(echo):
    workbench, path = await opened(echo)
    workbench.editing.do("other", path, answer(0, "before"))
    workbench.editing.do("answer", path, answer(0, "added"))
    added = workbench.editing.last_step
    outside(path, 1, "theirs")
    await workbench.open()
    assert workbench.editing.last_step is None
    assert workbench.editing.undo_step(added)
    assert not workbench.editing.undo_step(added)
    assert answers(workbench.editing.data(path)) == ["before", "theirs"]


async def test_files_of_one_step_are_saved_together_or_not_at_all(echo):
    workbench, path = await opened(echo)
    config = path.parent / "test_config.json"
    config.write_text('{"criteria": {"response_match_score": 0.8}, "evaltui": {"turns": []}}')
    assert workbench.editing.do(
        "context", path, lambda eval_set: eval_set.case(0).turn(0).set_context(on=True)
    )
    assert await workbench.editing.save_all()
    rename(workbench, path, 0, "good", "better")
    config.write_text(config.read_text().replace("0.8", "0.9"))
    assert await workbench.editing.save_all()
    assert json.loads(config.read_text())["criteria"] == {"response_match_score": 0.9}
    assert json.loads(config.read_text())["evaltui"]["turns"][0]["case"] == "better"
    assert json.loads(path.read_text())["eval_cases"][0]["eval_id"] == "better"
    # Undone together, and refused together.
    workbench.editing.undo()
    before = path.read_text(), config.read_text()
    config.chmod(0o444)
    assert not await workbench.editing.save_all()
    assert workbench.messages.notice.text == (
        f"{path.name} and test_config.json not saved: test_config.json is read-only; "
        "run `chmod u+w test_config.json`"
    )
    assert (path.read_text(), config.read_text()) == before
    assert workbench.editing.unsaved() == [path, config]
    config.chmod(0o644)
    assert await workbench.editing.save_all()
    assert json.loads(config.read_text())["evaltui"]["turns"][0]["case"] == "good"
    assert json.loads(path.read_text())["eval_cases"][0]["eval_id"] == "good"


async def test_a_config_with_a_mistake_locks_only_the_edits_that_need_it(echo):
    config = echo / "test_config.json"
    config.write_text('{"criteria": {,}}')
    workbench, path = await opened(echo)
    assert workbench.editing.do("answer", path, answer(0, "mine"))
    set_editing.new_case(workbench.editing)
    workbench.navigation.select(Selection(path.name, "bad"))
    set_editing.move(workbench.editing, -1)
    assert [case.eval_id for case in workbench.sets.listed[0].cases][:2] == ["good", "bad"]
    assert await workbench.editing.save_all()
    assert '"mine"' in path.read_text()
    for refused in (
        lambda: set_editing.rename_case(workbench.editing, CaseId(path.name, "bad"), 1, "worse"),
        lambda: set_editing.delete(workbench.editing),
    ):
        workbench.say("")
        refused()
        assert "test_config.json" in workbench.messages.notice.text
        assert "not valid JSON" in workbench.messages.notice.text
    assert not workbench.editing.unsaved()


async def test_a_file_that_is_half_written_is_looked_at_again(echo, monkeypatch):
    workbench, path = await opened(echo)
    workbench.editing.do("answer", path, answer(0, "mine"))
    whole = path.read_text().replace("something else", "theirs")
    path.write_text(whole[:-30])

    async def finish(seconds):
        path.write_text(whole)

    monkeypatch.setattr(open_files.asyncio, "sleep", finish)
    assert await workbench.editing.save_all()
    monkeypatch.undo()
    assert answers(json.loads(path.read_text())) == ["mine", "theirs"]
    assert not workbench.editing.unsaved()


async def test_a_set_that_was_deleted_outside_does_not_come_back_by_itself(echo):
    workbench, path = await opened(echo)
    before = path.read_text()
    workbench.editing.do("answer", path, answer(0, "mine"))
    path.unlink()
    assert not await workbench.editing.save_all()
    assert (
        workbench.messages.notice.text
        == f"{path.name} not saved: {path.name} was deleted on disk, too. Choose a side"
    )
    (clash,) = workbench.editing.conflicts
    assert await workbench.editing.settle(clash, Choices(), "theirs")
    assert not path.exists()
    assert not workbench.editing.unsaved()
    workbench.editing.undo()
    assert "stays" in workbench.messages.notice.text
    await workbench.open()
    assert not workbench.sets.listed
    # Written again by somebody, it is what it is there.
    path.write_text(before)
    await workbench.open()
    assert workbench.editing.do("answer", path, answer(1, "new"))
    assert answers(workbench.editing.data(path)) == ["hello", "new"]


async def test_a_config_that_was_deleted_outside_scores_no_more(echo):
    config = echo / "test_config.json"
    config.write_text('{"criteria": {"response_match_score": 0.8}}')
    workbench, path = await opened(echo)
    workbench.editing.do_edits("lower", {config: [Put(("criteria", "response_match_score"), 0.5)]})
    await workbench.editing.save_all()
    config.unlink()
    await workbench.open()
    assert workbench.sets.open(path).config.path is None
    assert workbench.editing.config_data(path) is None


async def test_edits_made_before_an_outside_change_are_recovered_on_top_of_it(echo):
    workbench, path = await opened(echo)
    workbench.editing.do("answer", path, answer(0, "mine"))
    outside(path, 1, "theirs")
    await workbench.open()
    workbench.editing.open_file(path).recovery.lock.release()
    (found,) = recoverable(echo)
    assert found.matches
    assert answers(json.loads(after(found))) == ["mine", "theirs"]


async def test_a_text_of_others_that_is_no_json_is_not_taken_and_says_where(echo):
    workbench, path = await opened(echo)
    assert rename(workbench, path, 0, "good", "better")
    path.write_text('{\n"eval_set_id": oops')
    assert not await workbench.editing.save_all()
    (clash,) = workbench.editing.conflicts
    with pytest.raises(EvalSetError, match=rf"{path.name}:2: not valid JSON"):
        await workbench.editing.settle(clash, Choices(), "theirs")
    assert workbench.editing.dirty_cases(path) == {"better"}
    assert await workbench.editing.settle(clash, Choices(), "mine")
    assert json.loads(path.read_text())["eval_cases"][0]["eval_id"] == "better"
    await workbench.close()
