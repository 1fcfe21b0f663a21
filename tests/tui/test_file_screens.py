"""Two versions of a file, leaving with unsaved changes, and what a crash left behind."""

import json

import pytest
from pilots import screen_lines, screen_text, turn, until, workbench_on, write_cases

from evaltui.documents.edits import Move, Put
from evaltui.documents.recovery import recoverable
from evaltui.documents.values import put
from evaltui.tui.dialogs.merge_conflict import MergeConflictScreen
from evaltui.tui.dialogs.unsaved import RecoveryScreen, UnsavedScreen
from evaltui.workbench.workbench import Workbench

NARROW, WIDE = (80, 24), (160, 45)
ECHO = "def root_agent(message, session):\n    return message\n"


@pytest.fixture
def parrot(write_agent):
    return write_agent(ECHO, name="parrot")


@pytest.fixture
def talk(parrot):
    cases = {name: [turn("hello", name)] for name in ("one", "two", "three")}
    return write_cases(parrot, "talk", cases)


def edit(workbench, path, case, answer):
    where = ("eval_cases", case, "conversation", 0, "final_response", "parts", 0, "text")
    assert workbench.editing.do("change the answer", path, lambda one: put(one.data, where, answer))


def change_outside(path, case, answer):
    data = json.loads(path.read_text())
    data["eval_cases"][case]["conversation"][0]["final_response"]["parts"][0]["text"] = answer
    path.write_text(json.dumps(data), encoding="utf-8")


def answers(path):
    cases = json.loads(path.read_text())["eval_cases"]
    return [case["conversation"][0]["final_response"]["parts"][0]["text"] for case in cases]


# Two versions


async def clashing(app, pilot, talk, cases=(0, 1)):
    """A save that clashes in these cases, which opens the screen."""
    for case in cases:
        edit(app.workbench, talk, case, f"mine {case}")
        change_outside(talk, case, f"theirs {case}")
    assert not await app.workbench.editing.save_all()
    await until(
        pilot, lambda: isinstance(app.screen, MergeConflictScreen) and "undecided" in screen_text(app)
    )


async def test_versions_are_shown_at_every_size_that_the_terminal_gets(talk, every_frame):
    async with workbench_on(talk.parent, (64, 20)) as (app, pilot):
        edit(app.workbench, talk, 0, "light " * 60)
        change_outside(talk, 0, "lamps " * 60)
        assert not await app.workbench.editing.save_all()
        await until(pilot, lambda: "undecided" in screen_text(app))
        for size in ((83, 24), (64, 50), (160, 45), (61, 16), (90, 24), (78, 18), (139, 40)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: "undecided" in screen_text(app))


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (160, 45)], ids=["below", "two", "three"])
async def test_the_words_that_differ_are_in_view_however_long_the_text_is(talk, size):
    text = "Turn off the bedroom light, and tell me which of the lamps it was that is turned off {}, please"
    change_outside(talk, 0, text.format("first"))
    async with workbench_on(talk.parent, size) as (app, pilot):
        edit(app.workbench, talk, 0, text.format("here"))
        change_outside(talk, 0, text.format("outside"))
        assert not await app.workbench.editing.save_all()
        await until(pilot, lambda: "undecided" in screen_text(app))
        dialog = screen_text(app).partition("changed here and outside")[2]
        assert "…" not in dialog.replace("… ", "")
        words = dialog.replace("│", " ").split()
        assert {"here,", "outside,"} <= {*words}
        tinted = app.theme_variables["exp-hi"].lower()
        strips = app.screen._compositor.render_strips()
        marked = [
            one.text.strip()
            for strip in strips
            for one in strip
            if one.style and one.style.bgcolor and one.style.bgcolor.name.lower() == tinted
        ]
        assert marked == ["here", "outside"]


def is_closed(app):
    return lambda: not isinstance(app.screen, MergeConflictScreen)


async def test_each_case_is_decided_and_the_file_saved(talk):
    async with workbench_on(talk.parent, NARROW) as (app, pilot):
        await clashing(app, pilot, talk)
        change_outside(talk, 2, "new outside")
        await pilot.press("enter")
        await until(pilot, lambda: "2 undecided   ← mine" in screen_text(app))
        await pilot.press("left")
        await until(pilot, lambda: app.screen.rows.current == 1)
        await pilot.press("right")
        assert app.screen.rows.choices.cases == {"one": "mine", "two": "theirs"}
        await pilot.press("enter")
        await until(pilot, is_closed(app))
        assert answers(talk) == ["mine 0", "theirs 1", "new outside"]
        assert app.workbench.editing.unsaved() == []


@pytest.mark.parametrize(("key", "kept"), [("H", "mine"), ("L", "theirs")])
async def test_one_side_of_all(talk, key, kept):
    async with workbench_on(talk.parent, NARROW) as (app, pilot):
        await clashing(app, pilot, talk)
        await pilot.press(key, "ctrl+s")
        await until(pilot, is_closed(app))
        assert answers(talk) == [f"{kept} 0", f"{kept} 1", "three"]


async def test_versions_by_mouse(talk):
    async with workbench_on(talk.parent, NARROW) as (app, pilot):
        await clashing(app, pilot, talk)
        lines = screen_lines(app)
        one = next(number for number, line in enumerate(lines) if "case one" in line)
        await pilot.click(offset=(lines[one].index(" theirs "), one))
        await until(pilot, lambda: app.screen.rows.choices.cases == {"one": "theirs"})
        lines = screen_lines(app)
        two = next(number for number, line in enumerate(lines) if "case two" in line)
        await pilot.click(offset=(lines[two].index(" mine "), two))
        await until(pilot, lambda: app.screen.rows.undecided == 0)
        keys = next(n for n, line in enumerate(screen_lines(app)) if "enter merge" in line)
        await pilot.click(offset=(screen_lines(app)[keys].index("merge"), keys))
        await until(pilot, is_closed(app))
        assert answers(talk) == ["theirs 0", "mine 1", "three"]


async def test_a_case_that_was_removed_outside(talk):
    async with workbench_on(talk.parent, NARROW) as (app, pilot):
        edit(app.workbench, talk, 0, "mine")
        data = json.loads(talk.read_text())
        del data["eval_cases"][0]
        talk.write_text(json.dumps(data), encoding="utf-8")
        await app.workbench.editing.save_all()
        await until(pilot, lambda: "(removed outside)" in screen_text(app))
        await pilot.press("left", "enter")
        await until(pilot, lambda: not isinstance(app.screen, MergeConflictScreen))
        assert sorted(answers(talk)) == ["mine", "three", "two"]


async def test_a_config_is_decided_by_member_and_the_order_of_cases_as_a_whole(parrot):
    names = ("one", "two", "three", "four")
    talk = write_cases(parrot, "talk", {name: [turn("hello", name)] for name in names})
    config = talk.parent / "test_config.json"
    config.write_text('{"criteria": {"response_match_score": 0.8}}', encoding="utf-8")
    async with workbench_on(talk.parent, WIDE) as (app, pilot):
        where = ("criteria", "response_match_score")
        edits = {talk: [Move(("eval_cases",), 3, 0)], config: [Put(where, 0.5)]}
        app.workbench.editing.do_edits("lower it", edits)
        config.write_text('{"criteria": {"response_match_score": 0.9, "safety_v1": 1}}', encoding="utf-8")
        data = json.loads(talk.read_text())
        data["eval_cases"].insert(1, data["eval_cases"].pop())
        talk.write_text(json.dumps(data), encoding="utf-8")
        await app.workbench.editing.save_all()
        await until(pilot, lambda: "order of eval_cases" in screen_text(app))
        await pilot.press("left", "enter")
        await until(pilot, lambda: "member criteria.response_match_score" in screen_text(app))
        # Neither file of the step was written.
        assert answers(talk) == ["one", "four", "two", "three"]
        await pilot.press("right", "enter")
        await until(pilot, lambda: not isinstance(app.screen, MergeConflictScreen))
        assert json.loads(config.read_text()) == {"criteria": {"response_match_score": 0.9, "safety_v1": 1}}
        assert answers(talk) == ["four", "one", "two", "three"]


async def test_a_file_that_was_deleted_outside_comes_back_only_when_that_is_chosen(talk):
    async with workbench_on(talk.parent, NARROW) as (app, pilot):
        edit(app.workbench, talk, 0, "mine")
        talk.unlink()
        assert not await app.workbench.editing.save_all()
        await until(pilot, lambda: "changed here, deleted outside" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, is_closed(app))
        assert not talk.exists()
        await app.workbench.editing.save_all()
        await until(pilot, lambda: "changed here, deleted outside" in screen_text(app))
        await pilot.press("left", "enter")
        await until(pilot, is_closed(app))
        assert answers(talk) == ["mine", "two", "three"]


# Leaving with unsaved changes


async def quitting(app, pilot, talk):
    edit(app.workbench, talk, 1, "changed")
    await pilot.press("q")
    await until(pilot, lambda: isinstance(app.screen, UnsavedScreen) and "esc cancel" in screen_text(app))


@pytest.mark.parametrize(
    ("answer", "saves"),
    [("enter", True), ("s", True), ("save and quit", True), ("d", False), ("discard", False)],
)
async def test_quitting_asks_and_does_what_is_answered_by_key_or_mouse(talk, answer, saves):
    async with workbench_on(talk.parent, NARROW) as (app, pilot):
        await quitting(app, pilot, talk)
        row = next((row for row, line in enumerate(screen_lines(app)) if f" {answer}" in line), 0)
        if len(answer) > 5:
            await pilot.click(offset=(screen_lines(app)[row].index(answer), row))
        else:
            await pilot.press(answer)
        await until(pilot, lambda: app.return_code is not None)
    assert answers(talk) == ["one", "changed" if saves else "two", "three"]
    assert recoverable(talk.parent) == []


@pytest.mark.parametrize("answer", ["q", "cancel"])
async def test_quitting_can_be_cancelled(talk, answer):
    async with workbench_on(talk.parent, NARROW) as (app, pilot):
        await quitting(app, pilot, talk)
        row = next(row for row, line in enumerate(screen_lines(app)) if "esc cancel" in line)
        if answer == "cancel":
            await pilot.click(offset=(screen_lines(app)[row].index(answer), row))
        else:
            await pilot.press(answer)
        await until(pilot, lambda: not isinstance(app.screen, UnsavedScreen))
        assert app.workbench.editing.unsaved() == [talk]


async def test_quitting_waits_for_what_is_being_saved(talk):
    async with workbench_on(talk.parent, NARROW) as (app, pilot):
        edit(app.workbench, talk, 1, "changed")
        await pilot.press("ctrl+s", "q")
        await until(pilot, lambda: app.return_code is not None)
    assert answers(talk) == ["one", "changed", "three"]
    assert recoverable(talk.parent) == []


# After a crash


async def crashed(folder, path, *cases):
    """Edits in a session that ends without saving."""
    workbench = Workbench(folder)
    await workbench.open()
    for case in cases:
        edit(workbench, path, case, f"unsaved {case}")
    # The lock ends with the process; this one goes on.
    workbench.editing.open_file(path).recovery.lock.release()


async def recovering(app, pilot):
    await until(pilot, lambda: "enter apply" in screen_text(app))


async def test_of_two_files_one_is_discarded_and_one_recovered(parrot, talk):
    other = write_cases(parrot, "other", {"one": [turn("hello", "one")]})
    await crashed(parrot, other, 0)
    await crashed(parrot, talk, 0)
    async with workbench_on(parrot, NARROW) as (app, pilot):
        await recovering(app, pilot)
        lines = screen_lines(app)
        row = next(number for number, line in enumerate(lines) if "other.evalset.json" in line)
        await pilot.click(offset=(lines[row].index("other"), row))
        await pilot.click(offset=(lines[row].index("discard"), row))
        await until(pilot, lambda: app.screen._recovery.choices.count("discard") == 1)
        assert len(recoverable(parrot)) == 2, "nothing is done before it is confirmed"
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, RecoveryScreen))
        assert recoverable(parrot) == []
        assert app.workbench.editing.unsaved() == [talk]
