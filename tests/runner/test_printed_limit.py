"""An agent that prints without an end does not fill the disk: each case has so many bytes."""

from __future__ import annotations

from eval_data import make_case, make_turn, write_eval_set

from evaltui.runner.host import MOST_LINES, MOST_PRINTED
from evaltui.runs.run_file import RunFile
from tests.commands.command_line import call

LINES, SIZE = 40, 1 << 16
LONGEST = MOST_PRINTED + SIZE
AGENT = f"""
import os, sys

def root_agent(message, session):
    if message == "lines":
        for _ in range({LINES}):
            os.write(1, b"y" * {SIZE - 1} + b"\\n")
    if message == "one line":
        os.write(1, b"y" * {LONGEST} + b"\\n")
    if message == "crash":
        os.write(2, b"y\\n" * {2 * MOST_LINES})
        os.write(2, b"the last words\\n")
        os._exit(3)
    print("printed", message, flush=True)
    return "ok"
"""


def test_what_exceeds_the_limit_of_a_case_is_left_out_and_counted(write_agent):
    agent = write_agent(AGENT)
    cases = [make_case(name, make_turn(name)) for name in ("lines", "one line", "few", "crash")]
    write_eval_set(agent, "s", *cases)
    assert call("run", agent, "--workers", "1", "--parallel", "1") == 1
    (log,) = (agent / ".evaltui" / "runs").glob("*.sqlite")
    assert log.stat().st_size < 4 * MOST_PRINTED
    printed = {one["eval_id"]: [] for one in cases}
    for event in RunFile(log).events_of_kinds("console"):
        printed[event.case].append(event.data["text"])
    for event in RunFile(log).events_of_kinds("error"):
        assert "the last words" in event.data["traceback"]
    whole = MOST_PRINTED // SIZE
    left_out = (LINES - whole) * SIZE + len("printed lines\n")
    assert printed["lines"][:whole] == ["y" * (SIZE - 1)] * whole
    notes = "".join(printed["lines"][whole:])
    assert notes == f"evaltui: {left_out:,} bytes of output left out (limit 1.0 MB or 10,000 lines)"
    assert f"{LONGEST + 1 + len('printed one line') + 1:,} bytes" in printed["one line"][-1]
    assert printed["few"] == ["printed few"]
    assert len(printed["crash"]) < 3 * MOST_LINES
    assert "bytes of output left out" in printed["crash"][-1]
