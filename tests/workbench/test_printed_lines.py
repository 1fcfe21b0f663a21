"""What is printed is kept in bounds, and what was dropped is counted."""

import evaltui.workbench.agent.agent_state as console_module
from evaltui.core.model.case_id import CaseId
from evaltui.workbench.agent.agent_state import MAX_LINE_LENGTH, MAX_LINES, Console


def test_the_last_lines_are_kept():
    console = Console()
    for number in range(MAX_LINES + 5):
        console.add(1, "stdout", str(number), None)
    assert len(console) == MAX_LINES
    assert console.dropped == 5
    assert console[0].text == "5"
    assert [line.text for line in console][-1] == str(MAX_LINES + 4)


def test_a_line_without_end_is_cut_and_says_so():
    console = Console()
    key = CaseId("set", "case")
    console.add(2, "stderr", "x" * (MAX_LINE_LENGTH + 7), key)
    assert (len(console[0].text), console[0].cut) == (MAX_LINE_LENGTH, 7)
    assert (console[0].run, console[0].case) == (2, key)


def test_long_lines_are_bounded_together(monkeypatch):
    monkeypatch.setattr(console_module, "MAX_CHARACTERS", 100)
    console = Console()
    for _ in range(8):
        console.add(1, "stdout", "x" * 30, None)
    assert (len(console), console.dropped) == (3, 5)
