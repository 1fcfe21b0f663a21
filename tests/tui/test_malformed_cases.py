"""Cases that are not shaped like cases: the set says so, and no key ends the program."""

from __future__ import annotations

import json

import pytest

from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.workbench import Workbench

MALFORMED = {
    "a case is a number": [1, {"eval_id": "a", "conversation": []}],
    "a case is nothing": [None],
    "no list of cases": {"a": 1},
    "a conversation is a number": [{"eval_id": "a", "conversation": 3}],
    "a turn is a number": [{"eval_id": "a", "conversation": [1]}],
    "calls are texts": [
        {
            "eval_id": "a",
            "conversation": [
                {"user_content": 4, "final_response": "x", "intermediate_data": {"tool_uses": ["a", 3]}}
            ],
        }
    ],
    "events are numbers": [
        {
            "eval_id": 5,
            "rubrics": "x",
            "final_session_state": [1],
            "conversation": [
                {
                    "user_content": {"parts": [1, None]},
                    "intermediate_data": {
                        "invocation_events": [3, {"content": {"parts": [{"function_call": 3}]}}]
                    },
                }
            ],
        }
    ],
}
# The others break off in the same places as one of these.
EVERY_DAY = {"a case is a number", "a turn is a number", "calls are texts"}
KEYS = (
    "2",
    "j",
    "j",
    "enter",
    "escape",
    "o",
    "escape",
    "space",
    "u",
    "1",
    "j",
    "d",
    "u",
    "D",
    "u",
    "m",
    "escape",
)


def _param(name):
    return pytest.param(MALFORMED[name], id=name, marks=() if name in EVERY_DAY else (pytest.mark.thorough,))


@pytest.mark.parametrize("cases", [_param(name) for name in MALFORMED])
async def test_no_key_ends_the_program(write_agent, cases):
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    text = json.dumps({"eval_set_id": "odd", "eval_cases": cases})
    (folder / "odd.evalset.json").write_text(text, encoding="utf-8")
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(160, 40)) as pilot:
        while (
            not app.workbench.sets.listed
            or app.workbench.sets.opened(app.workbench.sets.listed[0].path) is None
        ):
            await pilot.pause()
        assert app.workbench.sets.errors(app.workbench.sets.listed[0])
        for key in KEYS:
            await pilot.press(key)
        assert app.is_running
    assert app.return_code in (None, 0)
