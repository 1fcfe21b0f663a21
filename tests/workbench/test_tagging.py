"""Tags in the workbench: changed for the chosen cases in one step, followed, filtered by."""

import json

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.tags import tags_in
from evaltui.documents.editing.set import SetEditor
from evaltui.workbench.case.fields import RowSource
from evaltui.workbench.case.selected_case import case_rows
from evaltui.workbench.cases import set_editing
from evaltui.workbench.cases.set_editing import change_tags, common_tags, name_chosen, tags_hint
from evaltui.workbench.state import Selection

HELLO = ("hello", "hello")
FIRST = "first.evalset.json"


@pytest.fixture
async def workbench(write_agent, write_set, open_workbench):
    folder = write_agent("root_agent = lambda message: message")
    write_set(folder, "first", a=HELLO, b=HELLO, c=HELLO)
    (folder / "tests").mkdir()
    write_set(folder / "tests", "second", a=HELLO, z=HELLO)
    return await open_workbench(folder)


def tags(workbench):
    found = {case: workbench.sets.tags(case) for case in workbench.sets.every_case()}
    return {f"{case.path.split('.')[0]}:{case.eval_id}": " ".join(own) for case, own in found.items() if own}


def mark(workbench, *names):
    cases = [
        CaseId(f"{path}.evalset.json", eval_id) for path, _, eval_id in (one.partition(":") for one in names)
    ]
    workbench.navigation.marking.toggle(cases)


def tag(workbench, typed):
    change_tags(workbench.editing, common_tags(workbench.editing), typed)


async def test_marked_cases_of_several_sets_are_tagged_in_one_step(workbench):
    mark(workbench, "first:a", "first:c", "tests/second:z")
    assert name_chosen(workbench.editing) == "3 cases"
    tag(workbench, "#smoke, slow")
    assert tags(workbench) == {
        "first:a": "smoke slow",
        "first:c": "smoke slow",
        "tests/second:z": "smoke slow",
    }
    assert workbench.sets.known_tags() == ["slow", "smoke"]
    workbench.editing.undo()
    assert tags(workbench) == {}
    workbench.editing.redo()
    assert await workbench.editing.save_all()
    path = workbench.agent.dir / "tests" / "test_config.json"
    assert tags_in(json.loads(path.read_text()), "second") == {"z": ("smoke", "slow")}
    await workbench.open()
    assert len(tags(workbench)) == 3


async def test_what_only_some_have_stays(workbench):
    workbench.navigation.select(Selection(FIRST, "a"))
    tag(workbench, "smoke slow")
    workbench.navigation.select(Selection(FIRST, "b"))
    tag(workbench, "slow")
    mark(workbench, "first:a", "first:b")
    assert common_tags(workbench.editing) == ["slow"]
    assert tags_hint(workbench.editing) == "Some also have smoke; these stay"
    tag(workbench, "train")
    assert tags(workbench) == {"first:a": "smoke train", "first:b": "train"}


async def test_tags_follow_what_becomes_of_cases_and_sets(workbench):
    mark(workbench, "first:a", "first:b")
    tag(workbench, "x")
    workbench.navigation.marking.clear()
    path = workbench.sets.file_of(FIRST)
    set_editing.rename_case(workbench.editing, CaseId(FIRST, "a"), 0, "aa")
    assert tags(workbench) == {"first:aa": "x", "first:b": "x"}
    set_editing.rename_set(workbench.editing, path, "other")
    assert tags(workbench) == {"first:aa": "x", "first:b": "x"}
    workbench.navigation.select(Selection(FIRST, "b"))
    set_editing.copy(workbench.editing, cut=True)
    workbench.navigation.select(Selection("tests/second.evalset.json"))
    set_editing.paste(workbench.editing)
    assert tags(workbench) == {"first:aa": "x", "tests/second:b": "x"}


async def test_a_config_that_was_changed_outside_gives_its_tags(workbench):
    file, criteria = workbench.agent.dir / "test_config.json", {"response_match_score": 0.5}
    file.write_text(json.dumps({"criteria": criteria}))
    mark(workbench, "first:a")
    tag(workbench, "mine")
    assert await workbench.editing.save_all()
    data = json.loads(file.read_text())
    data["evaltui"]["tags"].append({"set": "first", "case": "b", "tags": ["theirs"]})
    file.write_text(json.dumps(data))
    await workbench.open()
    assert tags(workbench) == {"first:a": "mine", "first:b": "theirs"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("#smoke", ["a", "b"]),
        ("tag:SMOKE", ["a", "b"]),
        ("#smo", []),
        ("#smo*", ["a", "b"]),
        ("-#smoke", ["c", "a", "z"]),
        ("#smoke -#slow", ["b"]),
        ("#smoke #slow", ["a"]),
        ('tag:"slow" id:a', ["a"]),
        ('"#smoke"', []),
        ("#", []),
    ],
)
async def test_the_filter_knows_tags(workbench, text, names):
    mark(workbench, "first:a", "first:b")
    tag(workbench, "smoke")
    mark(workbench, "first:b")
    tag(workbench, "smoke slow")
    workbench.navigation.set_filter(text)
    assert [case.eval_id for case in workbench.navigation._shown_cases()] == names


async def test_the_filter_follows_tags_that_are_given(workbench):
    workbench.navigation.set_filter("#new")
    assert workbench.navigation.filtered.count == 0
    mark(workbench, "first:c")
    tag(workbench, "new")
    assert workbench.navigation.filtered.count == 1


async def test_the_case_page_has_the_tags_and_changes_them(workbench):
    workbench.navigation.select(Selection(FIRST, "a"))
    tag(workbench, "x y")

    def row():
        editor = SetEditor(workbench.editing.data(path), workbench.editing.config_data(path)).case(0)
        return next((one for one in case_rows(RowSource(editor)) if one.id == ("tags",)), None)

    path = workbench.sets.file_of(FIRST)

    assert row().value == "x y"
    assert workbench.editing.do("change tags", path, row().field.change("y z"))
    assert tags(workbench) == {"first:a": "y z"}
    assert workbench.editing.do("remove tags", path, row().delete.make)
    assert row() is None
