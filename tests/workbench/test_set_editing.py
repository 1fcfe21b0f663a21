"""Sets and cases as a whole: each action is one step, takes the config along, selects what one expects."""

import asyncio
import json

import pytest
from fake_runs import FakeRuns, as_expected
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.actions import ACTIONS_BY_ID
from evaltui.workbench.case.case_plan import gathering_moves, moves
from evaltui.workbench.cases import set_editing
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench

ECHO = "def root_agent(message, session):\n    return message\n"
HELLO = ("hello", "hello")
MARK = {"turn": 0, "mode": "context"}


@pytest.fixture
def folder(write_agent, write_set):
    folder = write_agent(ECHO)
    write_set(folder, "first", a=HELLO, b=HELLO, c=HELLO, d=HELLO)
    write_set(folder, "second", a=HELLO, z=HELLO)
    return folder


async def opened(folder):
    workbench = Workbench(folder)
    await workbench.open()
    return workbench


def ids(workbench, name):
    entry = next(entry for entry in workbench.sets.listed if entry.path.name.startswith(name))
    return [case.eval_id for case in entry.cases]


def path_of(workbench, name):
    return next(entry.path for entry in workbench.sets.listed if entry.path.name.startswith(name))


def select(workbench, name, eval_id=None, turn=None):
    path = workbench.sets.case_path(path_of(workbench, name))
    workbench.navigation.select(Selection(path, eval_id, turn))


def mark(workbench, name, *eval_ids):
    path = workbench.sets.case_path(path_of(workbench, name))
    workbench.navigation.marking.toggle([CaseId(path, eval_id) for eval_id in eval_ids])


def config_of(workbench, name):
    return workbench.editing.config_data(path_of(workbench, name))


def marked_turns(config):
    return [(turn["set"], turn["case"]) for turn in config["evaltui"]["turns"]]


def mark_turns(folder, *refs):
    turns = [{"set": owner, "case": case, **MARK} for owner, case in refs]
    config = {"criteria": {}, "evaltui": {"turns": turns}}
    (folder / "test_config.json").write_text(json.dumps(config), encoding="utf-8")


def texts(workbench):
    return {
        draft.path: draft.document.text
        for entry in workbench.sets.listed
        for path in (entry.path, entry.path.parent / "test_config.json")
        if (draft := workbench.editing.open_file(path))
    }


def undone_in_one_step(workbench, before):
    """Undo gives the bytes on disk and what was selected before."""
    selection = before
    assert workbench.editing.unsaved()
    workbench.editing.undo()
    assert workbench.navigation.selection == selection
    assert workbench.editing.undo_label is None
    assert all(text == path.read_text("utf-8") for path, text in texts(workbench).items())


# New


async def test_a_new_case_comes_after_the_selected_one_and_is_selected(folder):
    workbench = await opened(folder)
    select(workbench, "first", "b")
    before = workbench.navigation.selection
    assert set_editing.new_case(workbench.editing)
    assert ids(workbench, "first") == ["a", "b", "case_5", "c", "d"]
    assert workbench.navigation.selection == Selection(path_of(workbench, "first").name, "case_5")
    undone_in_one_step(workbench, before)
    select(workbench, "first")
    assert set_editing.new_case(workbench.editing)
    assert ids(workbench, "first")[-1] == "case_5"


async def test_a_filter_that_would_hide_the_new_case_is_cleared(folder):
    workbench = await opened(folder)
    workbench.navigation.set_filter("id:b")
    assert set_editing.new_case(workbench.editing)
    assert workbench.navigation.filtered.text == ""
    assert workbench.navigation.selection.eval_id == "case_5"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("", "A set id has letters"),
        ("my set", "A set id has letters"),
        ("a/b", "A set id has letters"),
        ("first", "first already exists"),
        ("notes", "notes.evalset.json already exists"),
        ("fine_1", None),
    ],
)
async def test_the_id_of_a_new_set_is_checked(folder, wanted, reason):
    workbench = await opened(folder)
    (folder / "notes.evalset.json").write_text("{}")
    problem = set_editing.new_set_problem(workbench.editing, wanted)
    assert problem is None if reason is None else reason in problem


async def test_a_new_set_is_put_where_the_selected_one_lives(write_agent, write_set, open_workbench):
    folder = write_agent(ECHO)
    workbench = await opened(folder)
    assert set_editing.folder_for_new_set(workbench.editing) == folder
    (folder / "eval").mkdir()
    write_set(folder / "eval", "first", a=HELLO)
    await workbench.open()
    assert set_editing.folder_for_new_set(workbench.editing) == folder / "eval"
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    given_set = write_set(elsewhere, "given", a=HELLO)
    workbench = await open_workbench(folder, [given_set])
    select(workbench, "given", "a")
    assert set_editing.folder_for_new_set(workbench.editing) == folder


# Renaming


async def test_the_id_of_a_case_is_checked(folder):
    workbench = await opened(folder)
    check = set_editing.case_id_problem(workbench.editing, path_of(workbench, "first"), 1)
    assert check("") == "Case id is missing"
    assert check("a") == "a already exists"
    assert check("b") is check("z") is None


@pytest.mark.parametrize("edit", ["rename", "delete"])
async def test_the_result_of_a_case_that_was_renamed_or_deleted_meanwhile_is_not_counted(
    folder, edit, open_workbench
):
    def act(case, repeat):
        runs.go_on.clear()
        return as_expected(case, repeat)

    runs = FakeRuns(act)
    runs.go_on.clear()
    workbench = await open_workbench(folder, run_service=runs)
    select(workbench, "first", "a")
    workbench.runs.run_set()
    # The run has read the set.
    while workbench.agent.info is None:
        await asyncio.sleep(0)
    if edit == "rename":
        assert set_editing.rename_case(workbench.editing, CaseId("first.evalset.json", "a"), 0, "new")
    else:
        set_editing.delete(workbench.editing)
    runs.go_on.set()
    while not workbench.runs.current.done:
        await asyncio.sleep(0)
    assert not workbench.outcomes.counts()["PASSED"]
    workbench.editing.undo()
    assert workbench.outcomes.counts()["PASSED"] == 1


async def test_of_two_cases_with_the_same_id_the_right_one_is_renamed(folder):
    path = folder / "first.evalset.json"
    path.write_text(path.read_text("utf-8").replace('"eval_id": "c"', '"eval_id": "b"'), encoding="utf-8")
    workbench = await opened(folder)
    select(workbench, "first", "b")
    set_editing.delete(workbench.editing)
    assert "first.evalset.json has several cases with this id" in workbench.messages.notice.text
    assert not workbench.editing.unsaved()
    assert set_editing.rename_case(workbench.editing, CaseId(path.name, "b"), 2, "late")
    assert ids(workbench, "first") == ["a", "b", "late", "d"]


async def test_the_id_of_a_renamed_set_is_checked(folder):
    workbench = await opened(folder)
    path = path_of(workbench, "first")
    assert set_editing.set_id_problem(workbench.editing, path, "second") == "second already exists"
    assert set_editing.set_id_problem(workbench.editing, path, "first") is None
    assert "letters" in set_editing.set_id_problem(workbench.editing, path, "a-b")


# Several cases


async def test_the_mark_of_a_case_that_is_gone_goes_with_it(folder):
    workbench = await opened(folder)
    mark(workbench, "second", "z", "a")
    mark(workbench, "first", "b")
    path = path_of(workbench, "second")
    path.write_text(path.read_text().replace('"eval_id": "z"', '"eval_id": "y"'))
    await workbench.open()
    marking = workbench.navigation.marking
    marking.keep_existing(workbench.sets.listed)
    assert list(marking.marked) == [CaseId(path.name, "a"), CaseId(path_of(workbench, "first").name, "b")]


async def test_duplicates_come_after_the_last_one_with_their_marks(folder):
    mark_turns(folder, ("first", "a"), ("second", "z"))
    workbench = await opened(folder)
    select(workbench, "first", "d")
    before = workbench.navigation.selection
    mark(workbench, "first", "c", "a")
    mark(workbench, "second", "z")
    set_editing.duplicate(workbench.editing)
    assert ids(workbench, "first") == ["a", "b", "c", "a_2", "c_2", "d"]
    assert ids(workbench, "second") == ["a", "z", "z_2"]
    turns = marked_turns(config_of(workbench, "first"))
    assert turns == [("first", "a"), ("second", "z"), ("first", "a_2"), ("second", "z_2")]
    assert workbench.navigation.selection.eval_id == "a_2"
    assert not workbench.navigation.marking.marked
    undone_in_one_step(workbench, before)


@pytest.mark.parametrize(
    ("gone", "selected", "after"),
    [
        ("b", "b", "c"),
        ("d", "d", "c"),
        ("bc", "b", "d"),
        ("ab", "d", "d"),
        ("abcd", "a", None),
    ],
)
async def test_what_is_selected_once_cases_are_deleted(folder, gone, selected, after):
    workbench = await opened(folder)
    select(workbench, "first", selected)
    before = workbench.navigation.selection
    mark(workbench, "first", *gone)
    set_editing.delete(workbench.editing)
    assert ids(workbench, "first") == [one for one in "abcd" if one not in gone]
    assert workbench.navigation.selection == Selection(before.path, after)
    named = gone if len(gone) == 1 else f"{len(gone)} cases"
    assert workbench.messages.notice.text.startswith(f"Deleted {named}   u undo")
    undone_in_one_step(workbench, before)


async def test_deleting_from_two_sets_takes_what_their_config_says_of_them(folder):
    mark_turns(folder, ("first", "a"), ("second", "a"), ("first", "b"), ("second", "z"))
    workbench = await opened(folder)
    select(workbench, "first", "d")
    mark(workbench, "second", "a")
    mark(workbench, "first", "b")
    set_editing.delete(workbench.editing)
    assert (ids(workbench, "first"), ids(workbench, "second")) == (["a", "c", "d"], ["z"])
    assert marked_turns(config_of(workbench, "first")) == [("first", "a"), ("second", "z")]
    undone_in_one_step(workbench, Selection(path_of(workbench, "first").name, "d"))


async def test_moving_among_the_cases_that_a_filter_shows(folder):
    workbench = await opened(folder)
    select(workbench, "first", "c")
    workbench.navigation.set_filter("set:first -id:b")
    set_editing.move(workbench.editing, -1)
    assert ids(workbench, "first") == ["c", "a", "b", "d"]
    assert workbench.navigation.selection.eval_id == "c"
    set_editing.move(workbench.editing, -1)
    assert workbench.messages.notice.text == "Already the first"
    workbench.editing.undo()
    assert ids(workbench, "first") == ["a", "b", "c", "d"]


async def test_marked_cases_move_together_and_stay_marked(folder):
    workbench = await opened(folder)
    select(workbench, "first", "b")
    mark(workbench, "first", "b", "d")
    set_editing.move(workbench.editing, -1)
    assert ids(workbench, "first") == ["b", "a", "d", "c"]
    set_editing.move(workbench.editing, -1)
    assert ids(workbench, "first") == ["b", "d", "a", "c"]
    set_editing.move(workbench.editing, -1)
    assert ids(workbench, "first") == ["b", "d", "a", "c"]
    assert len(workbench.navigation.marking) == 2


# Between sets


async def test_copies_get_free_ids_and_can_be_pasted_again(folder):
    mark_turns(folder, ("first", "a"))
    workbench = await opened(folder)
    select(workbench, "first", "a")
    mark(workbench, "first", "a", "b")
    set_editing.copy(workbench.editing)
    select(workbench, "second", "a")
    before = workbench.navigation.selection
    set_editing.paste(workbench.editing)
    assert ids(workbench, "second") == ["a", "a_2", "b", "z"]
    assert workbench.navigation.selection == Selection(before.path, "b")
    assert marked_turns(config_of(workbench, "first")) == [("first", "a"), ("second", "a_2")]
    undone_in_one_step(workbench, before)
    select(workbench, "second")
    set_editing.paste(workbench.editing)
    set_editing.paste(workbench.editing)
    assert ids(workbench, "second") == ["a", "z", "a_2", "b", "a_3", "b_2"]


async def test_what_was_copied_can_be_pasted_after_it_was_deleted(folder):
    workbench = await opened(folder)
    select(workbench, "first", "b")
    set_editing.copy(workbench.editing)
    set_editing.delete(workbench.editing)
    set_editing.paste(workbench.editing)
    assert ids(workbench, "first") == ["a", "c", "b", "d"]


async def test_cutting_moves_cases_of_several_sets_in_one_step(folder):
    mark_turns(folder, ("first", "b"), ("second", "a"))
    workbench = await opened(folder)
    select(workbench, "first", "b")
    mark(workbench, "first", "b", "c")
    mark(workbench, "second", "a")
    set_editing.copy(workbench.editing, cut=True)
    assert ids(workbench, "first") == ["a", "b", "c", "d"]
    assert workbench.navigation.marking.is_cut(CaseId(path_of(workbench, "first").name, "b"))
    set_editing.new_set(workbench.editing, "third")
    before = workbench.navigation.selection
    set_editing.paste(workbench.editing)
    assert [ids(workbench, name) for name in ("first", "second", "third")] == [
        ["a", "d"],
        ["z"],
        ["b", "c", "a"],
    ]
    assert marked_turns(config_of(workbench, "first")) == [("third", "b"), ("third", "a")]
    assert workbench.navigation.selection == Selection(path_of(workbench, "third").name, "a")
    assert ACTIONS_BY_ID["paste_case"].refusal(workbench) == "No case copied or cut"
    workbench.editing.undo()
    assert workbench.navigation.selection == before
    assert [ids(workbench, name) for name in ("first", "second", "third")] == [
        ["a", "b", "c", "d"],
        ["a", "z"],
        [],
    ]
    assert marked_turns(config_of(workbench, "first")) == [("first", "b"), ("second", "a")]


async def test_a_result_goes_with_a_case_that_is_moved(folder, until):
    workbench = await opened(folder)
    select(workbench, "first", "a")
    workbench.runs.run_case()
    await until(lambda: workbench.runs.current.over)
    set_editing.copy(workbench.editing, cut=True)
    select(workbench, "second", "z")
    set_editing.paste(workbench.editing)
    assert ids(workbench, "second") == ["a", "z", "a_2"]
    assert workbench.outcomes.status(CaseId(path_of(workbench, "second").name, "a_2")) == "PASSED"


async def test_a_set_without_a_config_gets_one_where_marks_come_along(folder, write_set):
    mark_turns(folder, ("first", "a"))
    (folder / "eval").mkdir()
    target = write_set(folder / "eval", "third", y=HELLO)
    workbench = await opened(folder)
    select(workbench, "first", "b")
    set_editing.copy(workbench.editing)
    select(workbench, "third", "y")
    set_editing.paste(workbench.editing)
    assert config_of(workbench, "third") is None
    select(workbench, "first", "a")
    set_editing.copy(workbench.editing)
    select(workbench, "third", "y")
    set_editing.paste(workbench.editing)
    assert ids(workbench, "third") == ["y", "a", "b"]
    assert marked_turns(config_of(workbench, "third")) == [("third", "a")]
    assert await workbench.editing.save_all()
    assert (target.parent / "test_config.json").exists()


# Refusals


async def test_turns_and_old_formats_are_left_alone(folder):
    (folder / "older.test.json").write_text(json.dumps(OLD), encoding="utf-8")
    workbench = await opened(folder)
    select(workbench, "first", "a", 0)
    assert ACTIONS_BY_ID["copy_case"].refusal(workbench) == "Turns are edited in the case pane"
    select(workbench, "first")
    assert ACTIONS_BY_ID["copy_case"].refusal(workbench) == "No case selected"
    select(workbench, "older", "older")
    assert "has an old format   i  Convert" in ACTIONS_BY_ID["copy_case"].refusal(workbench)
    assert "has an old format   i  Convert" in workbench.editing.refuses_to_edit(workbench.navigation.file)


async def test_a_case_that_a_filter_hides_is_not_deleted(folder):
    workbench = await opened(folder)
    select(workbench, "second", "z")
    workbench.navigation.set_filter("set:first")
    assert workbench.navigation.selection.eval_id == "a"
    select(workbench, "second", "z")
    set_editing.delete(workbench.editing)
    assert workbench.messages.notice.text == "The selected case is filtered out   esc clear filter"
    assert ids(workbench, "second") == ["a", "z"]


async def test_a_set_that_cannot_be_written_any_more_is_said(folder):
    workbench = await opened(folder)
    select(workbench, "first", "a")
    path_of(workbench, "first").unlink()
    set_editing.delete(workbench.editing)
    assert "first.evalset.json" in workbench.messages.notice.text


# Old formats

OLD = [{"query": "hello", "expected_tool_use": [], "reference": "hello"}]


async def test_an_old_file_is_converted_into_a_new_one(folder):
    old = folder / "older.test.json"
    old.write_text(json.dumps(OLD), encoding="utf-8")
    workbench = await opened(folder)
    select(workbench, "older", "older")
    assert ACTIONS_BY_ID["convert"].refusal(workbench) is None
    before = old.read_bytes()
    eval_set, problems = set_editing.convert_file(old)
    assert not problems
    new = folder / set_editing.name_for_converted(old)
    assert new.name == "older.evalset.json"
    assert await set_editing.convert(workbench.editing, old, eval_set, new, workbench.say)
    assert json.loads(new.read_text("utf-8"))["eval_set_id"] == "older"
    assert old.read_bytes() == before
    assert workbench.navigation.selection == Selection(new.name)
    assert workbench.sets.by_path(new).format == "eval set"
    assert not workbench.editing.unsaved()
    assert "nothing to convert" in ACTIONS_BY_ID["convert"].refusal(workbench)
    assert set_editing.name_for_converted(old) == "older_converted.evalset.json"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("new.json", "end in .evalset.json or .test.json"),
        (".evalset.json", "end in .evalset.json"),
        ("../new.evalset.json", "a name without folders"),
        ("first.evalset.json", "first.evalset.json already exists"),
        ("older.test.json", "older.test.json already exists"),
        ("new.evalset.json", None),
    ],
)
async def test_the_name_of_the_new_file_is_checked(folder, wanted, reason):
    old = folder / "older.test.json"
    old.write_text(json.dumps(OLD), encoding="utf-8")
    workbench = await opened(folder)
    problem = set_editing.converted_name_problem(workbench.editing, old, wanted)
    assert problem is None if reason is None else reason in problem


async def test_a_file_that_came_meanwhile_is_not_overwritten(folder):
    old = folder / "older.test.json"
    old.write_text(json.dumps(OLD), encoding="utf-8")
    workbench = await opened(folder)
    eval_set, _ = set_editing.convert_file(old)
    new = folder / "new.evalset.json"
    new.write_text("mine")
    assert not await set_editing.convert(workbench.editing, old, eval_set, new, workbench.say)
    assert new.read_text() == "mine"
    assert workbench.messages.notice.text == "new.evalset.json already exists"


# Order


def performed(order, steps):
    order = list(order)
    for index, to in steps:
        order.insert(to, order.pop(index))
    return order


@given(st.sets(st.integers(0, 7)), st.integers(0, 8))
def test_gathering_keeps_the_order_of_both(numbers, index):
    order = performed(range(8), gathering_moves(sorted(numbers), index))
    others = [number for number in range(8) if number not in numbers]
    place = sum(number < index for number in others)
    assert order == [*others[:place], *sorted(numbers), *others[place:]]


@given(st.sets(st.integers(0, 7)), st.sets(st.integers(0, 7)), st.sampled_from([-1, 1]))
def test_moving_never_moves_what_is_hidden_past_what_is_shown_and_stays(shown, wanted, step):
    wanted &= shown
    order = performed(range(8), moves(sorted(shown), set(wanted), step))
    others = [number for number in range(8) if number not in wanted]
    assert [number for number in order if number not in wanted] == others
    seen = [number for number in order if number in shown]
    for number in wanted:
        assert seen.index(number) in (sorted(shown).index(number), sorted(shown).index(number) + step)
