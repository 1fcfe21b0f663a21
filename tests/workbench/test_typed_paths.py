"""Texts that are typed where a path or a name of a file is asked for."""

import pytest

from evaltui.workbench.cases.set_editing import new_set_problem
from evaltui.workbench.chat.imported import path_problem

LONG = "y" * 300
TEXTS = [LONG, f"~/{LONG}", "~nobody_here/x", "a\0b", f"file:///{LONG}", "'", "file://[", "\\", "/"]


@pytest.mark.parametrize("text", TEXTS)
async def test_no_text_is_too_odd_to_be_refused(text, write_agent, open_workbench):
    workbench = await open_workbench(write_agent("root_agent = lambda message: message"))
    assert new_set_problem(workbench.editing, text)
    assert path_problem(text) == (None if text == "/" else "No such file")
