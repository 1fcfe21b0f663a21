"""A tool, an argument or an agent renamed from a call: a new name, the places, one step for all files."""

import json

import pytest
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from pilots import screen_text, until, workbench_on

from evaltui.tui.dialogs.accept import RenameScreen
from evaltui.tui.dialogs.prompt import PromptScreen
from evaltui.workbench.state import Selection

CALL = {"name": "find_order", "args": {"order_id": 7}}
RULE = {"tool": "find_order", "arg": "order_id", "match": "ignore"}
RECORDED = {
    "kind": "tool",
    "case": "a",
    "repeat": 0,
    "turn": 0,
    "tool": "find_order",
    "args": {},
    "result": 1,
}


@pytest.fixture
def folder(write_agent):
    folder = write_agent("def root_agent(message, session):\n    return message\n", name="desk")
    for name in ("orders", "more"):
        write_eval_set(folder, name, make_case("a", make_turn("hi", calls=[CALL])))
    write_test_config(folder, criteria={"tool_trajectory_avg_score": 1}, evaltui={"rules": [RULE]})
    (folder / "recordings").mkdir()
    (folder / "recordings" / "orders.jsonl").write_text(json.dumps(RECORDED) + "\n")
    return folder


def texts(folder):
    return {path.name: path.read_text() for path in [*folder.glob("*.json"), *folder.glob("recordings/*")]}


async def test_a_tool_is_renamed_in_all_files_after_a_preview(folder):
    before = texts(folder)
    async with workbench_on(folder, (80, 24)) as (app, pilot):
        app.workbench.navigation.select(Selection("orders.evalset.json", "a"))
        await pilot.press("2")
        await until(pilot, lambda: "find_order" in screen_text(app))
        while app.workbench.navigation.selection and "call" not in str(
            app.focused.row and app.focused.row.role
        ):
            await pilot.press("j")
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await pilot.press("enter")
        await until(pilot, lambda: "find_order is its name already" in screen_text(app))
        await pilot.press(*"get_it", "enter")
        await until(
            pilot, lambda: isinstance(app.screen, RenameScreen) and "4 places in 4 files" in screen_text(app)
        )
        assert texts(folder) == before
        for shown in ("find_order → get_it", "enter rename", "esc cancel", "undoes it later"):
            assert shown in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: "Renamed find_order to get_it" in screen_text(app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not app.workbench.editing.unsaved())
        assert texts(folder) == {name: text.replace("find_order", "get_it") for name, text in before.items()}
        await pilot.press("u")
        assert len(app.workbench.editing.unsaved()) == 4
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not app.workbench.editing.unsaved())
        assert texts(folder) == before
